"""Reading what a client sent, as an API server decodes a request body
(``endpoints/handlers/create.go``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object, owner_references
from kubepy.api.scheme import Resource
from kubepy.api.types import Decoded, DecodeError, first_error, type_of
from kubepy.api.values.goformat import json_type_name
from kubepy.apiserver.request import RequestContext, Warn, WriteOptions
from kubepy.apiserver.server import RequestScope, Server
from kubepy.quoting import printable, quote

if TYPE_CHECKING:
    from kubepy.api.typed import OwnerReference

DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
    "1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
    '"json:\\"kind,omitempty\\"" }'
)
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"  # Go names the scheme by the place where it is made
# Versions that are not served any more, but that the server's scheme still has, with their groups.
_OLD_VERSIONS = {
    "apps": ("apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"),
    "batch": ("batch/v1beta1",),
    "networking": ("networking.k8s.io/v1beta1", "extensions/v1beta1"),
    "policy": ("policy/v1beta1",),
    "rbac": ("rbac.authorization.k8s.io/v1alpha1", "rbac.authorization.k8s.io/v1beta1"),
    "storage": ("storage.k8s.io/v1alpha1", "storage.k8s.io/v1beta1"),
}


class UnknownFieldError(Exception):
    """A controller of kubepy's own has written fields that there are not."""

    def __init__(self, component: str, resource: str, fields: Sequence[str]) -> None:
        shown = ", ".join(map(quote, fields))
        super().__init__(f"{component}: {resource}: unknown field {shown}")


# --- kinds ----------------------------------------------------------------------------------------


def internal_package(group: str) -> str:
    """Return the Go package of a group's objects in the server's memory."""
    return "core" if group in ("", "events.k8s.io") else group.partition(".")[0]


def conversion_error(resource: Resource, api_version: str, kind: str) -> str:
    """Return the reason why an object cannot become one of the resource, "" if it is another
    version of it."""
    group, _, version = api_version.rpartition("/")
    package = internal_package(resource.group)
    if kind == resource.kind and api_version in _OLD_VERSIONS.get(package, ()):
        return ""
    if not type_of({"apiVersion": api_version, "kind": kind}):
        return (
            f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme "
            f'"{_SCHEME}"'
        )
    if kind != resource.kind or internal_package(group) != package:
        return f"converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion"
    return ""


def type_meta_error(obj: Any) -> str:
    """Return the reason why apiVersion and kind of a body cannot be read, "" if they can."""
    if not isinstance(obj, dict):
        return f"cannot unmarshal {json_type_name(obj)} into Go value of type {_TYPE_META}"
    if field := next(
        (name for name in ("apiVersion", "kind") if not isinstance(obj.get(name), str | None)), ""
    ):
        return (
            f"cannot unmarshal {json_type_name(obj[field])} into Go struct field .{field} of "
            f"type string"
        )
    return ""


# --- decoding -------------------------------------------------------------------------------------


def decode_request(scope: RequestScope, resource: Resource, obj: Object) -> Object:
    """Return a complete copy of ``obj``: fields that its type does not know are dropped, missing
    ones defaulted.

    :param resource: the kind that is expected, which for a subresource is not that of the request.

    Raises BadRequest for values of the wrong type and, with ``Strict``, for unknown fields;
    ``Warn`` warns of them.
    """
    options, unknown_fields = scope.request.write_options, list[str]()
    decoded = decode(scope.server, resource, obj, options, scope.context.warn, unknown_fields)
    _refuse_unknown_fields(scope, resource, unknown_fields)
    return _with_reset(scope, decoded, obj)


def _refuse_unknown_fields(
    scope: RequestScope, resource: Resource, unknown_fields: Sequence[str]
) -> None:
    """Refuse fields that the schema of a built-in kind does not have in a write of kubepy's own
    controllers: they would be dropped in silence. Raises UnknownFieldError."""
    component = scope.context.component
    if unknown_fields and component and not resource.custom:
        raise UnknownFieldError(component, resource.key, unknown_fields)


def decode(
    server: Server,
    resource: Resource,
    obj: Object,
    options: WriteOptions,
    warn: Warn,
    unknown_fields: list[str] | None = None,
) -> Object:
    """Decode an object without a request, as :func:`decode_request`.

    :param warn: takes warnings.
    :param unknown_fields: takes the paths of the fields that are dropped.
    """
    api_version = _check_kind(resource, obj)
    for warning in server.strategy(resource).warnings_of_version(api_version):
        warn(warning)

    def cannot_be_handled(detail: str) -> errors.BadRequest:
        kind, version = resource.kind, api_version.rpartition("/")[2]
        return errors.BadRequest(
            f"{kind} in version {quote(version)} cannot be handled as a {kind}: {detail}"
        )

    try:
        decoded = server.strategy(resource).decode(
            {**obj, "apiVersion": api_version, "kind": resource.kind}
        )
    except DecodeError as error:
        if options.strict.text:  # a text whose order is known
            error = first_error({**obj, "apiVersion": api_version, "kind": resource.kind}) or error
        raise cannot_be_handled(str(error)) from error

    if unknown_fields is not None:
        unknown_fields += decoded.unknown_fields
    _check_fields(decoded, options, cannot_be_handled, warn)
    return _complete(server, resource, decoded)


def _check_kind(resource: Resource, obj: Object) -> str:
    """Return the version in which an object is written. Raises BadRequest if it is of another
    kind."""
    api_version, kind = (
        obj.get("apiVersion") or resource.api_version,
        obj.get("kind") or resource.kind,
    )
    others = () if resource.custom else resource.other_versions
    versions = [resource.api_version, *(f"{resource.group}/{other}" for other in others)]
    if resource.kind == "Event":
        versions.append("events.k8s.io/v1")
    if api_version not in versions:
        raise errors.BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )

    if not isinstance(kind, str):
        raise errors.BadRequest(
            f"couldn't get version/kind; json parse error: json: {type_meta_error(obj)}"
        )

    if kind != resource.kind:
        version = api_version.rpartition("/")[2]
        detail = (
            f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme "
            f'"{_SCHEME}"'
        )
        raise errors.BadRequest(
            f"{kind} in version {quote(version)} cannot be handled as a {resource.kind}: {detail}"
        )

    return str(api_version)


def _check_fields(
    decoded: Decoded, options: WriteOptions, refuse: Callable[[str], errors.Status], warn: Warn
) -> None:
    """Refuse unknown fields or warn of them. Raises what ``refuse`` makes."""
    complaints = options.strict.texts(decoded.unknown_fields)
    if complaints and options.field_validation == "Strict":
        raise refuse(f"strict decoding error: {', '.join(complaints)}")
    if options.field_validation == "Warn":
        for text in complaints:
            for line in text.removeprefix("yaml: unmarshal errors:\n").split("\n"):
                warn(line.strip())


def _complete(server: Server, resource: Resource, decoded: Decoded) -> Object:
    """Set the defaults of an object that is decoded, and return it."""
    decoded.object.setdefault("metadata", {})
    server.strategy(resource).default(decoded.object)
    return decoded.object


def _with_reset(scope: RequestScope, decoded: Object, obj: Object) -> Object:
    """Keep the empty managedFields of a request, which reset those of its object; decoding drops
    empty lists."""
    metadata = obj.get("metadata")
    if (
        isinstance(metadata, dict)
        and metadata.get("managedFields") == []
        and not scope.request.subresource
    ):
        decoded["metadata"]["managedFields"] = []
    return decoded


class PatchErrorStyle(NamedTuple):
    """The words of an error about the result of a patch: the value that it shows, and the text of
    the problem.

    ``is_json``: the result was decoded from JSON, which says what kind it is.
    """

    value: Callable[[], str]
    detail: Callable[[DecodeError], str]
    is_json: bool = False


def decode_patched(
    scope: RequestScope, resource: Resource, obj: Object, style: PatchErrorStyle
) -> Object:
    """Decode the result of a patch and check that it is still the same object.

    Raises Invalid, about the field ``patch``, where a decoding of a body raises BadRequest;
    BadRequest for another name or namespace.
    """

    def invalid_patch(detail: str) -> errors.Invalid:
        return errors.invalid("", "", [errors.invalid_value("patch", style.value(), detail)])

    strategy = scope.server.strategy(resource)
    if (style.is_json or not isinstance(obj, dict)) and (reason := type_meta_error(obj)):
        raise invalid_patch(f"couldn't get version/kind; json parse error: json: {reason}")
    if resource.custom:
        _check_custom_kind(resource, obj)
    elif style.is_json:
        if not obj.get("apiVersion"):  # Go decodes an object of no version into nothing
            raise _unnamed(scope)
        api_version, kind = obj["apiVersion"], obj.get("kind") or resource.kind
        if (api_version, kind) != (resource.api_version, resource.kind) and (
            detail := conversion_error(resource, str(api_version), str(kind))
        ):
            raise invalid_patch(detail)

    try:
        decoded = strategy.decode(
            {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
        )
    except DecodeError as error:
        raise invalid_patch(style.detail(error)) from None

    _refuse_unknown_fields(scope, resource, decoded.unknown_fields)
    _check_fields(decoded, scope.request.write_options, invalid_patch, scope.context.warn)
    new = _complete(scope.server, resource, decoded)
    _with_reset(scope, new, obj)
    match_namespace(new, scope)
    match_name(new, scope)
    return new


def _check_custom_kind(resource: Resource, obj: Object) -> None:
    """Check that a patch leaves a custom resource what it is. Raises Invalid."""
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if (value := obj.get(field) or expected) != expected:
            metadata = obj.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            problem = errors.invalid_value(field, value, f"must be {expected}")
            raise errors.invalid(f"{obj.get('kind')}.{resource.group}", name, [problem])


# --- agreement with the request -------------------------------------------------------------------


def check_subresource(scope: RequestScope) -> None:
    """Check that the request's verb can change its subresource. Raises NotFound,
    MethodNotAllowed."""
    if name := scope.request.subresource:
        check_view(scope.resource, name, scope.request.verb)


def check_view(resource: Resource, name: str, verb: str) -> None:
    """Check that a subresource is a view of its object with this verb. Raises NotFound,
    MethodNotAllowed."""
    subresource = resource.subresource(name)
    if subresource is None:
        raise errors.no_such_resource()
    if not subresource.is_view or verb not in subresource.verbs:
        raise errors.method_not_allowed()


def match_namespace(obj: Object, scope: RequestScope) -> None:
    """Give the object the namespace of the request. Raises BadRequest if it has another one."""
    ensure_namespace(obj["metadata"], scope.namespace)


def ensure_namespace(metadata: Object, requested: str) -> None:
    """Give metadata the namespace of a request (``EnsureObjectNamespaceMatchesRequestNamespace``).

    Raises BadRequest if it has another one.
    """
    namespace = metadata.get("namespace", "")
    if namespace == requested:
        return
    if namespace and requested:
        raise errors.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if requested:
        metadata["namespace"] = requested
    else:
        del metadata["namespace"]


def _unnamed(scope: RequestScope) -> errors.BadRequest:
    return errors.BadRequest(
        f"the name of the object ({scope.name} based on URL) was undeterminable: name must be "
        "provided"
    )


def match_name(obj: Object, scope: RequestScope) -> None:
    """Check that the object of an update has the name in the request (``checkName``). Raises
    BadRequest."""
    name = obj["metadata"].get("name", "")
    if name == scope.name:
        return
    if not name:
        raise _unnamed(scope)
    raise errors.BadRequest(
        f"the name of the object ({printable(name)}) does not match the name on the URL "
        f"({printable(scope.name)})"
    )


def drop_duplicate_owners(context: RequestContext, obj: Object) -> None:
    """Drop the repetition of an owner reference, with a warning (``dedupOwnerReferences``)."""
    unique: list[OwnerReference] = []
    duplicates = []
    for reference in owner_references(obj):
        if reference in unique:
            duplicates.append(reference.get("uid", ""))
        else:
            unique.append(reference)
    if duplicates:
        obj["metadata"]["ownerReferences"] = unique
        context.warn(f"{DUPLICATE_OWNERS}{', '.join(duplicates)}")
