"""The handler of each request."""

from __future__ import annotations

import json

from kubepy.api import errors
from kubepy.api.scheme import GroupVersionResource
from kubepy.api.values import goformat
from kubepy.apiserver.request import Patch
from kubepy.server.messages import TEXT, Call, Handler, RequestInfo, Response


def find_handler(info: RequestInfo) -> Handler:
    """Return the handler of a request. Raises NotFound."""
    if info.is_resource_request:
        return _serve
    if info.path in ("/healthz", "/livez", "/readyz"):
        return lambda call: Response(200, b"ok", TEXT)
    raise errors.no_such_resource()


def _serve(call: Call) -> Response:
    info, request = call.info, call.request
    gvr = GroupVersionResource(info.api_group, info.api_version, info.resource)
    if info.verb == "list":
        listed = call.client.list(gvr, namespace=info.namespace or None)
        resource = call.cluster.scheme.get(gvr.group_resource)
        assert resource
        return _json(200, {"kind": f"{resource.kind}List", "apiVersion": resource.api_version,
                           "metadata": {"resourceVersion": listed.resource_version}, "items": listed.items})
    if info.verb == "get":
        return _json(200, call.client.get(gvr, info.name, namespace=info.namespace))
    if info.verb == "create":
        return _json(201, call.client.create(gvr, json.loads(request.body), namespace=info.namespace))
    if info.verb == "update":
        return _json(200, call.client.update(gvr, json.loads(request.body), namespace=info.namespace))
    if info.verb == "patch":
        patch = Patch(request.header("content-type"), json.loads(request.body))
        return _json(200, call.client.patch(gvr, info.name, patch, namespace=info.namespace))
    if info.verb == "delete":
        return _json(200, call.client.delete(gvr, info.name, namespace=info.namespace))
    raise errors.method_not_allowed()


def _json(status: int, obj: object) -> Response:
    return Response(status, goformat.to_json(obj, sort_keys=False).encode())
