"""Routes: the handler of a request.

The servers of an API server stand in a chain: what none of them has a path for is answered as text
(``404 page not found``), unless its group and version are served. Upstream:
``apiserver/pkg/server/handler.go``.
"""

from __future__ import annotations

from kubepy.api import errors
from kubepy.lazy import lazy_imports
from kubepy.server.messages import Handler, HandlerContext, RequestInfo, Response
from kubepy.server.requestinfo import find_resource, path_not_found

with lazy_imports():
    from kubepy.server import discovery, handlers, health, openapi, subresources

_SPECIFICATIONS = ("openapi",)
_APIS = ("api", "apis")


def find_handler(info: RequestInfo) -> Handler:
    """Return the handler of any request but a watch."""
    if info.is_resource_request:
        if info.subresource or info.resource == "bindings":
            own = subresources.find_handler(info)
            if own is not None:
                return own
        return handlers.BY_VERB.get(info.verb, refuse)

    first = info.parts[0] if info.parts else ""
    found: Handler | None
    if first in _APIS:
        found = discovery.find_handler(info)
    elif first in _SPECIFICATIONS:
        found = openapi.find_handler(info)
    else:
        found = health.find_handler(info)

    return found or refuse


def refuse(context: HandlerContext) -> Response:
    """Refuse a path that is not served, or a method that none has. Raises NotFound,
    MethodNotAllowed."""
    if context.info.is_resource_request:
        find_resource(context.cluster.scheme, context.info)
        raise (
            errors.no_such_resource()
            if context.info.verb == "proxy"
            else errors.method_not_allowed()
        )
    raise path_not_found()
