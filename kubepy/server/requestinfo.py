"""What a request is about, read from its method and path (``apiserver/pkg/endpoints/request/requestinfo.go``)."""

from __future__ import annotations

from urllib.parse import unquote

from kubepy.server.messages import HttpRequest, RequestInfo

VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def parse_request_info(request: HttpRequest) -> RequestInfo:
    """Return what a request is about."""
    parts = tuple(unquote(part) for part in request.path.strip("/").split("/"))
    verb = request.method.lower()
    match parts:
        case ["api", version, *rest] if rest:
            prefix, group = "api", ""
        case ["apis", group, version, *rest] if rest:
            prefix = "apis"
        case _:
            return RequestInfo(False, verb, request.path, parts)
    verb = VERBS.get(request.method, "")
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    if verb == "get" and not name:
        verb = "watch" if request.parameter("watch") in ("1", "true") else "list"
    return RequestInfo(True, verb, request.path, parts, prefix, group, version, namespace, resource, subresource, name)
