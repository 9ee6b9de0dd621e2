"""The body of a request: JSON, YAML or protobuf, as an object of the kind that is expected.

Upstream: ``apiserver/pkg/endpoints/handlers/{create,rest,patch}.go``,
``apimachinery/pkg/runtime/serializer``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.errors import BadRequest
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.types import DecodeError, decode_as
from kubepy.api.values.goformat import json_type_name
from kubepy.apiserver.request import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    NO_ERRORS,
    STRATEGIC_MERGE_PATCH,
    Patch,
    StrictErrors,
)
from kubepy.apiserver.requests.decoding import conversion_error, type_meta_error
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.server.messages import JSON, PROTOBUF, YAML, HttpRequest
from kubepy.server.negotiation import SUPPORTED

with lazy_imports():
    from kubepy.api import protobuf
    from kubepy.storage import yaml
    from kubepy.storage.yaml import constructor

PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
CUSTOM_PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_SHOWN = 30  # bytes of a body that cannot be read


class Body(NamedTuple):
    """An object as it was sent, with what strict decoding has to say about its text."""

    object: Any
    strict: StrictErrors = NO_ERRORS


class _UnreadableError(Exception):
    """A body is not what its Content-Type says, or (``subject``) not what it says itself that it
    is."""

    def __init__(self, message: str, subject: str = "") -> None:
        super().__init__(message)
        self.subject = subject


# --- texts ----------------------------------------------------------------------------------------


def _media_type(request: HttpRequest) -> str:
    """Return the media type of a body; JSON where the client does not say. Raises
    UnsupportedMediaType."""
    media_type = (request.header("content-type") or JSON).partition(";")[0].strip().lower()
    if media_type not in SUPPORTED:
        raise _unknown_format(SUPPORTED)
    return media_type


def _unknown_format(media_types: tuple[str, ...]) -> errors.UnsupportedMediaType:
    return errors.UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types "
        f"include: {', '.join(media_types)}"
    )


def _read(data: bytes, media_type: str, api_version: str = "", kind: str = "") -> Body:
    """Read a body; protobuf that does not say what it is has the kind that is expected. Raises
    _UnreadableError."""
    if media_type == PROTOBUF:
        try:
            return Body(protobuf.decode(data, api_version, kind))
        except protobuf.ProtobufError as error:
            raise _UnreadableError(str(error), error.subject) from None

    if media_type == YAML:
        try:
            return _read_yaml(data)
        except yaml.YamlError as error:
            raise _UnreadableError(
                str(error).removeprefix("error converting YAML to JSON: ")
            ) from None

    text = data.decode(errors="replace")
    try:
        return Body(yaml.read_json(text), _strict_errors(text))
    except yaml.YamlError as error:
        raise _UnreadableError(
            f"couldn't get version/kind; json parse error: {error.message}"
        ) from None


def _strict_errors(text: str) -> StrictErrors:
    """Return the errors in a JSON text that can be read."""
    if not yaml.repeats_keys(text):
        return StrictErrors(text=text)
    repeated: dict[str, int] = {}
    for place, (path, is_repeated) in enumerate(yaml.key_paths(text)):
        if is_repeated:
            repeated.setdefault(path, place)
    return StrictErrors(
        tuple((place, f"duplicate field {quote(path)}") for path, place in repeated.items()), text
    )


def _read_yaml(data: bytes) -> Body:
    """Read the first document. Raises YamlError."""
    text = data.decode(errors="replace")
    value = next((document.object for document in yaml.load_each(text)), None)
    lines = [
        f"  line {line}: key {quote(key)} already set in map"
        for line, key in constructor.repeated_keys(text)
    ]
    return Body(
        value,
        StrictErrors(((0, "\n".join(["yaml: unmarshal errors:", *lines])),))
        if lines
        else NO_ERRORS,
    )


# --- objects --------------------------------------------------------------------------------------


def read_object(request: HttpRequest, resource: Resource) -> Body:
    """Return the object in the body of a creation or an update, which must be of a kind, in its
    version.

    Raises UnsupportedMediaType, BadRequest.
    """
    media_type = _media_type(request)
    if resource.custom and media_type == PROTOBUF:
        raise _unknown_format((JSON, YAML))
    try:
        body = _read(request.body, media_type, resource.api_version, resource.kind)
    except _UnreadableError as error:
        if error.subject:
            raise BadRequest(
                f"{error.subject} cannot be handled as a {resource.kind}: {error}"
            ) from None
        raise _unrecognized(resource, request.body, str(error)) from None

    obj = {} if body.object is None else body.object
    if reason := type_meta_error(obj):
        raise _unrecognized(
            resource, request.body, f"couldn't get version/kind; json parse error: json: {reason}"
        )

    if resource.custom:
        _check_custom_kind(request, resource, obj)
    else:
        _check_kind(resource, obj.get("apiVersion") or "", obj.get("kind") or "")

    if resource.custom:  # its unknown fields are in their own order
        return Body(obj, StrictErrors(body.strict.repeated))
    return Body(
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            **{
                name: value
                for name, value in obj.items()
                if value or name not in ("apiVersion", "kind")
            },
        },
        body.strict,
    )


def _unrecognized(resource: Resource, body: bytes, reason: str) -> BadRequest:
    """Make the error about a body whose kind cannot be found out; it shows the beginning
    (``summarizeData``)."""
    head = body[:_SHOWN]
    summary = head.decode(errors="replace") if body.startswith(b"{") else head.hex()
    summary = f"{summary} ..." if len(body) > _SHOWN else summary or "<empty>"
    return BadRequest(
        f"the object provided is unrecognized (must be of type {resource.kind}): {reason} "
        f"({summary})"
    )


def _check_kind(resource: Resource, api_version: str, kind: str) -> None:
    """Check that an object is of the kind that is expected; what it does not say is as expected.
    Raises BadRequest."""
    api_version, kind = api_version or resource.api_version, kind or resource.kind
    if (api_version, kind) == (resource.api_version, resource.kind):
        return
    if detail := conversion_error(resource, api_version, kind):
        version = api_version.rpartition("/")[2]
        raise BadRequest(
            f"{kind} in version {quote(version)} cannot be handled as a {resource.kind}: {detail}"
        )
    raise _other_version(api_version, resource)


def _other_version(api_version: str, resource: Resource) -> BadRequest:
    return BadRequest(
        f"the API version in the data ({api_version}) does not match the expected API version "
        f"({resource.api_version})"
    )


def _check_custom_kind(request: HttpRequest, resource: Resource, obj: Object) -> None:
    """Check that a custom resource says what it is. Raises BadRequest, Invalid."""
    if not obj.get("kind"):
        text = request.body.decode(errors="replace")
        raise _unrecognized(resource, request.body, f"Object 'Kind' is missing in '{text}'")
    if obj.get("apiVersion") != resource.api_version:
        raise _other_version(obj.get("apiVersion") or "", resource)
    if obj["kind"] != resource.kind:
        metadata = obj.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        problem = errors.invalid_value("kind", obj["kind"], f"must be {resource.kind}")
        raise errors.invalid(f"{obj['kind']}.{resource.group}", name, [problem])


def read_delete_options(request: HttpRequest) -> Object:
    """Return the ``metav1.DeleteOptions`` in the body of a deletion. Raises UnsupportedMediaType,
    BadRequest."""
    media_type = _media_type(request)
    try:
        options = _read(request.body, media_type, "v1", "DeleteOptions").object
    except _UnreadableError as error:
        raise BadRequest(str(error)) from None

    options = {} if options is None else options
    if reason := type_meta_error(options):
        raise BadRequest(f"couldn't get version/kind; json parse error: json: {reason}")
    kind = options.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        raise BadRequest(
            f"no kind {quote(kind)} is registered for version "
            f"{quote(options.get('apiVersion') or 'meta.k8s.io/v1')} in scheme "
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
        )

    try:
        return decode_as("meta/v1.DeleteOptions", options).object
    except DecodeError as error:
        raise BadRequest(str(error)) from None


# --- patches --------------------------------------------------------------------------------------


def read_patch(request: HttpRequest, resource: Resource) -> Body:
    """Return the Patch in a body. Raises UnsupportedMediaType, BadRequest."""
    patch_type = require_patch_type(request, resource)
    if patch_type == APPLY_PATCH:
        try:
            body = _read_yaml(request.body)
        except yaml.YamlError as error:
            detail = str(error).removeprefix("error converting YAML to JSON: ")
            raise BadRequest(
                f"error decoding YAML: error converting YAML to JSON: {detail}"
            ) from None
        config = {} if body.object is None else body.object
        if not isinstance(config, dict):
            raise BadRequest(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
                f"unmarshal {json_type_name(config)} into Go value of type map[string]interface "
                f"{{}}"
            )
        return body._replace(object=Patch(patch_type, config))

    text = request.body.decode(errors="replace")
    try:
        value = yaml.read_json(text)
    except yaml.YamlError as error:
        prefix = "" if patch_type == STRATEGIC_MERGE_PATCH else "error decoding patch: "
        raise BadRequest(f"{prefix}{error.message}") from None

    prefix = "json patch " if patch_type == JSON_PATCH else ""
    strict = tuple((0, f"{prefix}{error}") for _, error in _strict_errors(text).repeated)
    return Body(Patch(patch_type, value), StrictErrors(strict))


def require_patch_type(request: HttpRequest, resource: Resource) -> str:
    """Return the type of a patch. Raises UnsupportedMediaType for one that the resource does not
    take."""
    content_type = request.header("content-type")
    patch_type = content_type.partition(";")[0] or content_type
    patch_types = CUSTOM_PATCH_TYPES if resource.custom else PATCH_TYPES
    if patch_type in patch_types:
        return patch_type
    if resource.custom or not request.body:
        raise _unknown_format(patch_types)
    error = errors.UnsupportedMediaType("415: Unsupported Media Type")
    error.has_details = True
    raise error
