"""Reading what a client sent, as an API server decodes a request body (``endpoints/handlers/create.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.types import DecodeError
from kubepy.apiserver.requests.server import Server
from kubepy.quoting import quote


def decode_request(server: Server, resource: Resource, obj: Object, field_validation: str) -> Object:
    """A complete copy of ``obj``: what its type does not know is dropped, what is missing is defaulted.

    Raises BadRequest for values of the wrong type and, with ``Strict``, for unknown fields; ``Warn`` warns of them.
    """
    api_version = _expect_kind(resource, obj)
    strategy = server.strategy(resource)
    server.warn_all(strategy.warnings_of_version(api_version))
    try:
        decoded = strategy.decode({**obj, "apiVersion": api_version, "kind": resource.kind})
    except DecodeError as error:
        raise _cannot_be_handled(resource, api_version, str(error)) from error
    complaints = strict_complaints(decoded.unknown_fields)
    if complaints and field_validation == "Strict":
        raise _cannot_be_handled(resource, api_version, f"strict decoding error: {', '.join(complaints)}")
    if field_validation == "Warn":
        server.warn_all(complaints)
    decoded.object.setdefault("metadata", {})
    strategy.default(decoded.object)
    return decoded.object


_SCHEME = "pkg/api/legacyscheme/scheme.go:30"  # as Go names it, by where it is made


def _expect_kind(resource: Resource, obj: Object) -> str:
    """The version in which the object is written. Raises BadRequest if it says that it is of another kind."""
    api_version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    versions = [resource.api_version, *(f"{resource.group}/{other}" for other in resource.other_versions)]
    if api_version not in versions:
        why = f"the API version in the data ({api_version}) does not match the expected API version "
        raise errors.BadRequest(f"{why}({resource.api_version})")
    if kind != resource.kind:
        version = api_version.rpartition("/")[2]
        why = f'no kind {quote(kind)} is registered for version {quote(api_version)} in scheme "{_SCHEME}"'
        raise errors.BadRequest(f"{kind} in version {quote(version)} cannot be handled as a {resource.kind}: {why}")
    return str(api_version)


def strict_complaints(unknown_fields: list[str]) -> list[str]:
    """What strict decoding says of fields that the type does not know."""
    return [f"unknown field {quote(path)}" for path in unknown_fields]


def _cannot_be_handled(resource: Resource, api_version: str, why: str) -> errors.Status:
    kind, version = resource.kind, api_version.rpartition("/")[2]
    return errors.BadRequest(f"{kind} in version {quote(version)} cannot be handled as a {kind}: {why}")


class PatchWords(NamedTuple):
    """How an error about the result of a patch is told: the value it shows, and what is wrong."""

    shown: Callable[[], str]
    why: Callable[[DecodeError], str]


def decode_patched(server: Server, resource: Resource, obj: Object, field_validation: str, words: PatchWords) -> Object:
    """The same for the result of a patch: its complaints are Invalid, about the field ``patch``."""
    strategy = server.strategy(resource)
    try:
        decoded = strategy.decode({**obj, "apiVersion": resource.api_version, "kind": resource.kind})
    except DecodeError as error:
        raise _invalid_patch(words, words.why(error)) from None
    complaints = strict_complaints(decoded.unknown_fields)
    if complaints and field_validation == "Strict":
        raise _invalid_patch(words, f"strict decoding error: {', '.join(complaints)}")
    if field_validation == "Warn":
        server.warn_all(complaints)
    decoded.object.setdefault("metadata", {})
    strategy.default(decoded.object)
    return decoded.object


def _invalid_patch(words: PatchWords, why: str) -> errors.Status:
    return errors.invalid("", "", [errors.invalid_value("patch", words.shown(), why)])
