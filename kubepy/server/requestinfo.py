"""The meaning of a request: its verb, and the resource, namespace, name and subresource that its
path names.

Upstream: ``apiserver/pkg/endpoints/request/requestinfo.go``, ``pkg/endpoints/installer.go`` (the
paths of a resource).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from kubepy.api import errors
from kubepy.api.scheme import Resource, Scheme
from kubepy.api.selectors import SelectorError, parse_fields
from kubepy.server.messages import HttpRequest, RequestInfo

VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS_IN_PATHS = ("proxy", "watch")  # /api/v1/watch/pods: deprecated


class PathNotFound(errors.NotFound):
    """The answer to a path that no API is served at: text, which clients take for a NotFound."""


def path_not_found() -> PathNotFound:
    return PathNotFound("the server could not find the requested resource")


def parse_request_info(request: HttpRequest) -> RequestInfo:
    """Return what a request is about. It may be something that is not served: see
    ``find_resource``."""
    path = unquote(request.path, errors="replace")
    parts = tuple(path.strip("/").split("/")) if path.strip("/") else ()
    info = RequestInfo(
        is_resource_request=False, verb=request.method.lower(), path=path, parts=parts
    )
    if len(parts) < 3 or parts[0] not in ("api", "apis") or (parts[0] == "apis" and len(parts) < 4):
        return info
    group, version, *rest = ("", *parts[1:]) if parts[0] == "api" else parts[1:]
    info = info._replace(
        is_resource_request=True,
        api_prefix=parts[0],
        api_group=group,
        api_version=version,
        verb=VERBS.get(request.method, ""),
    )
    if rest[0] in _VERBS_IN_PATHS:
        info = info._replace(verb=rest[0])
        if len(rest) < 2:
            return info
        rest = rest[1:]

    return _choose_verb(_of_parts(info, rest), request.query)


def _of_parts(info: RequestInfo, parts: list[str]) -> RequestInfo:
    """Read ``namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE/…`` or
    ``RESOURCE/NAME/SUBRESOURCE/…``."""
    if parts[0] == "namespaces" and len(parts) > 1:
        info = info._replace(namespace=parts[1])
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource, *subresource_path = (*parts, "", "", "")
    if info.verb == "proxy":
        subresource, subresource_path = "", []
    return info._replace(
        resource=resource,
        name=name,
        subresource=subresource,
        subresource_path="/".join(subresource_path[: len(parts) - 3]),
    )


def _choose_verb(info: RequestInfo, query: Mapping[str, list[str]]) -> RequestInfo:
    """Tell a list and a watch from a get, and the deletion of a collection from that of an object.

    A field selector for one name makes it the name of the request, for authorization.
    """
    if info.name:
        return info
    if info.verb == "get":
        watches = "watch" in query and query["watch"][0].lower() not in ("false", "0")
        info = info._replace(verb="watch" if watches else "list")
        return info._replace(name=_selected_name(query.get("fieldSelector", [""])[0]))
    return info._replace(verb="deletecollection") if info.verb == "delete" else info


def _selected_name(selector: str) -> str:
    """Return the name that a field selector requires, "" if it requires none or can be no part of a
    path."""
    try:
        terms = parse_fields(selector)
    except SelectorError:
        return ""
    name = next(
        (term.value for term in terms if term.field == "metadata.name" and not term.negated), ""
    )
    return "" if name in (".", "..") or "/" in name or "%" in name else name


# --- resources ------------------------------------------------------------------------------------


def find_resource(scheme: Scheme, info: RequestInfo) -> Resource:
    """Return the resource of a request, in the version of its path.

    Raises NotFound if there is none: PathNotFound where no group is served at the path.
    """
    resource = scheme.get(f"{info.resource}.{info.api_group}" if info.api_group else info.resource)
    if resource is not None and info.api_version not in (
        resource.version,
        *resource.other_versions,
    ):
        resource = None

    if resource is None or (resource.custom and not _is_scoped_as(resource, info)):
        # The server of custom resources passes on what it does not have, to the end of the chain.
        is_built_in = any(other.group == info.api_group and not other.custom for other in scheme)
        raise errors.no_such_resource() if is_built_in else path_not_found()

    if not _is_scoped_as(resource, info) or (info.subresource_path and info.subresource != "proxy"):
        raise errors.no_such_resource()
    if "" in info.parts and info.subresource != "proxy":  # a name or a namespace is empty
        raise errors.no_such_resource()
    if info.subresource and info.subresource not in resource.subresources:
        raise (
            errors.not_found(resource.key, info.name)
            if resource.custom
            else errors.no_such_resource()
        )

    return resource.at(info.api_version)


def _is_scoped_as(resource: Resource, info: RequestInfo) -> bool:
    """Tell whether a path has a namespace where the resource has one; lists may be about all of
    them."""
    if not resource.namespaced:
        return not info.namespace or (info.resource == "namespaces" and info.namespace == info.name)
    if info.namespace:
        return True
    is_collection = not info.name or (
        info.verb in ("list", "watch") and info.parts[-1] == info.resource
    )
    return is_collection and (not resource.custom or info.verb in ("list", "watch"))
