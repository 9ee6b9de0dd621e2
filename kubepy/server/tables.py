"""Objects as tables and as their metadata alone, as a server sends them to kubectl.

The columns and cells are those of ``kubepy.apiserver.kinds``. Upstream:
``apiserver/pkg/endpoints/handlers/response.go``, ``apiserver/pkg/registry/rest/table.go``, ``pkg/printers/storage``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver import kinds
from kubepy.server.lists import ListResult
from kubepy.server.messages import Call, HttpRequest
from kubepy.server.negotiation import PARTIAL, PARTIAL_LIST, TABLE, Target, shown

_INCLUDED = ("Metadata", "Object", "None", "")


class TableOptions(NamedTuple):
    """``metav1.TableOptions``.

    :ivar include_object: what a row has besides its cells: ``Metadata``, ``Object`` or ``None``.
    :ivar headers: with definitions of the columns; a watch has them in its first event only.
    """

    include_object: str = "Metadata"
    headers: bool = True


def table_options(request: HttpRequest) -> TableOptions:
    """Raises BadRequest."""
    include = request.parameter("includeObject")
    if include not in _INCLUDED:
        problem = errors.invalid_value("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise errors.BadRequest(f"Unable to convert to Table as requested: {problem}")
    return TableOptions(include or "Metadata")


def partial_object(obj: Object, target: Target) -> Object:
    """Return the PartialObjectMetadata of an object."""
    return {"kind": PARTIAL, "apiVersion": target.api_version, "metadata": obj.get("metadata") or {}}


def list_meta(result: ListResult) -> Object:
    """Return the ``metav1.ListMeta`` of a list."""
    meta: Object = {"resourceVersion": result.resource_version}
    if result.continue_token:
        meta["continue"] = result.continue_token
    if result.remaining_item_count is not None:
        meta["remainingItemCount"] = result.remaining_item_count
    return meta


def partial_list(call: Call, result: ListResult, target: Target) -> Object:
    """Return the PartialObjectMetadataList of a list."""
    items = [partial_object(shown(call.client, obj), target) for obj in result.items]
    return {"kind": PARTIAL_LIST, "apiVersion": target.api_version, "metadata": list_meta(result), "items": items}


def table_object(call: Call, resource: Resource, result: ListResult | Object, target: Target,
                 options: TableOptions) -> Object:
    """Return the ``metav1.Table`` of a list, or of one object."""
    is_list = isinstance(result, ListResult)
    objects: list[Object] = result.items if isinstance(result, ListResult) else [result]
    subresource = call.info.subresource if not is_list and objects[0].get("kind") == "Scale" else ""
    table = kinds.table(resource, objects, call.cluster.clock.now(), subresource)
    rows = [{"cells": cells, "object": _row_object(call, obj, target, options)}
            for cells, obj in zip(table.rows, objects, strict=True)]
    if isinstance(result, ListResult):
        meta = list_meta(result)
    else:
        meta = {name: value for name, value in (result.get("metadata") or {}).items() if name == "resourceVersion"}
    columns = [{"name": column.name, "type": column.type, "format": column.format, "description": column.description,
                "priority": column.priority} for column in table.columns]
    return {"kind": TABLE, "apiVersion": target.api_version, "metadata": meta,
            "columnDefinitions": columns if options.headers else None, "rows": rows}


def _row_object(call: Call, obj: Object, target: Target, options: TableOptions) -> Object | None:
    if options.include_object == "None":
        return None
    whole = shown(call.client, obj)
    return whole if options.include_object == "Object" else partial_object(whole, target)


def transform(call: Call, resource: Resource, obj: Object | ListResult, target: Target) -> Object:
    """Return an object or a list as the client wants it. Raises NotAcceptable for a list where one object was asked
    for, and the other way round."""
    kind = f"*{_package(resource)}.{resource.kind}"
    if target.kind == TABLE:
        return table_object(call, resource, obj, target, table_options(call.request))
    if isinstance(obj, ListResult):
        if target.kind == PARTIAL:
            raise errors.NotAcceptable(f"you requested {PARTIAL}, but the requested object is a list ({kind}List)")
        return partial_list(call, obj, target)
    if target.kind == PARTIAL_LIST:
        raise errors.NotAcceptable(f"you requested {PARTIAL_LIST}, but the requested object is not a list ({kind})")
    return partial_object(shown(call.client, obj), target)


def _package(resource: Resource) -> str:
    """Return the Go package of the objects of a resource in the server's memory."""
    if resource.custom:
        return "unstructured"
    return "core" if resource.group in ("", "events.k8s.io") else resource.group.partition(".")[0]
