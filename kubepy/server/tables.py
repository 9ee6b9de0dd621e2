"""Objects as tables and as their metadata alone, as a server sends them to kubectl.

The columns and cells are those of ``kubepy.apiserver.kinds``. Upstream:
``apiserver/pkg/endpoints/handlers/response.go``, ``apiserver/pkg/registry/rest/table.go``,
``pkg/printers/storage``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.types import go_order, type_of
from kubepy.apiserver import kinds, printers
from kubepy.apiserver.printers import Cell, Column
from kubepy.apiserver.requests.decoding import internal_package
from kubepy.server.messages import HandlerContext, HttpRequest
from kubepy.server.negotiation import PARTIAL, PARTIAL_LIST, TABLE, GroupVersionKind, shown

_ENDED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
CREATED_AT = "Created At"
_API_SERVICE_COLUMNS = {
    "Service": "The reference to the service that hosts this API endpoint.",
    "Available": "Whether this service is available.",
}
_INCLUDED = ("Metadata", "Object", "None", "")


class ListResult(NamedTuple):
    """The objects of a list, and where it goes on.

    :ivar continue_token: "" at the end.
    :ivar remaining_item_count: of what follows, None where that is not known.
    """

    items: list[Object]
    resource_version: str
    continue_token: str = ""
    remaining_item_count: int | None = None


class TableOptions(NamedTuple):
    """``metav1.TableOptions``.

    :ivar include_object: what a row has besides its cells: ``Metadata``, ``Object`` or ``None``.
    :ivar headers: with definitions of the columns; a watch has them in its first event only.
    """

    include_object: str = "Metadata"
    headers: bool = True


def table_options(request: HttpRequest) -> TableOptions:
    """Read the parameters of a Table. Raises BadRequest."""
    include = request.parameter("includeObject")
    if include not in _INCLUDED:
        problem = errors.invalid_value(
            "includeObject", include, "must be 'Metadata', 'Object', 'None', or empty"
        )
        raise errors.BadRequest(f"Unable to convert to Table as requested: {problem}")
    return TableOptions(include or "Metadata")


def partial_object(obj: Object, target: GroupVersionKind) -> Object:
    """Return the PartialObjectMetadata of an object."""
    metadata = go_order("meta/v1.ObjectMeta", obj.get("metadata") or {})
    return {"kind": PARTIAL, "apiVersion": target.api_version, "metadata": metadata}


def list_meta(result: ListResult) -> Object:
    """Return the ``metav1.ListMeta`` of a list."""
    meta: Object = {"resourceVersion": result.resource_version}
    if result.continue_token:
        meta["continue"] = result.continue_token
    if result.remaining_item_count is not None:
        meta["remainingItemCount"] = result.remaining_item_count
    return meta


def partial_list(context: HandlerContext, result: ListResult, target: GroupVersionKind) -> Object:
    """Return the PartialObjectMetadataList of a list."""
    items = [partial_metadata(context, obj, target) for obj in result.items]
    return {
        "kind": PARTIAL_LIST,
        "apiVersion": target.api_version,
        "metadata": list_meta(result),
        "items": items or None,
    }  # as upstream: a nil slice


def table_object(
    context: HandlerContext,
    resource: Resource,
    result: ListResult | Object,
    target: GroupVersionKind,
    options: TableOptions,
) -> Object:
    """Return the ``metav1.Table`` of a list, or of one object."""
    objects: list[Object] = result.items if isinstance(result, ListResult) else [result]
    subresource = "scale" if objects and objects[0].get("kind") == "Scale" else ""
    table = kinds.table(resource, objects, context.cluster.clock.now(), subresource)
    rows = [
        _row(resource, cells, obj) | {"object": _row_object(context, obj, target, options)}
        for cells, obj in zip(table.rows, objects, strict=True)
    ]
    if isinstance(result, ListResult):
        meta = list_meta(result)
    else:
        meta = {
            name: value
            for name, value in (result.get("metadata") or {}).items()
            if name == "resourceVersion"
        }

    definitions = (
        column_definitions(resource, table.columns, subresource) if options.headers else None
    )
    is_plain = any(
        column.name == CREATED_AT for column in table.columns
    )  # upstream makes these rows elsewhere
    return {
        "kind": TABLE,
        "apiVersion": target.api_version,
        "metadata": meta,
        "columnDefinitions": definitions,
        "rows": None if is_plain and not rows else rows,
    }


def _row(resource: Resource, cells: list[Cell], obj: Object) -> Object:
    """Return the cells of a row, and its condition, if the object is a pod that has ended."""
    phase = (obj.get("status") or {}).get("phase") if resource.key == "pods" else None
    if phase not in _ENDED:
        return {"cells": cells}
    return {
        "cells": cells,
        "conditions": [
            {"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}
        ],
    }


@cache
def _definitions() -> Object:
    return cast(
        Object, json.loads((Path(printers.__file__).parent / "data" / "columns.json").read_bytes())
    )


def column_definitions(
    resource: Resource, columns: Sequence[Column], subresource: str = ""
) -> list[Object]:
    """Return the definitions of the columns of a table, as a server describes them."""
    texts = _definitions()["descriptions"]
    kind = (
        f"autoscaling.{subresource.capitalize()}"
        if subresource
        else f"{package_of(resource)}.{resource.kind}"
    )
    rows = [] if resource.custom else _definitions().get(kind, [])
    if [row[0] for row in rows] == [column.name for column in columns]:
        return [
            {
                "name": name,
                "type": type_,
                "format": format_,
                "description": texts[text],
                "priority": priority,
            }
            for name, type_, format_, priority, text in rows
        ]

    described = dict(
        zip(
            ("Name", "Age"),
            (texts[row[4]] for row in _definitions()["core.ServiceAccount"]),
            strict=True,
        )
    )
    described[CREATED_AT] = described["Age"]
    described |= _API_SERVICE_COLUMNS if resource.kind == "APIService" else {}
    return [
        {
            "name": column.name,
            "type": "date" if column.name == CREATED_AT else column.type,
            "format": "name" if column.name == "Name" else column.format,
            "description": column.description or described.get(column.name, ""),
            "priority": column.priority,
        }
        for column in columns
    ]


def _row_object(
    context: HandlerContext, obj: Object, target: GroupVersionKind, options: TableOptions
) -> Object | None:
    if options.include_object == "None":
        return None
    if options.include_object == "Object":
        return shown(context.client, obj)
    return partial_metadata(context, obj, target)


def partial_metadata(context: HandlerContext, obj: Object, target: GroupVersionKind) -> Object:
    """Return the PartialObjectMetadata of a stored object, with its managedFields."""
    if type_of(obj) is None:  # the managedFields have another order then
        return partial_object(shown(context.client, obj), target)
    return partial_object(context.client.with_managed_fields(obj), target)


def transform(
    context: HandlerContext, resource: Resource, obj: Object | ListResult, target: GroupVersionKind
) -> Object:
    """Return an object or a list as the client wants it. Raises NotAcceptable for a list where one
    object was asked for, and the other way round."""
    kind = f"*{package_of(resource)}.{resource.kind}"
    if target.kind == TABLE:
        return table_object(context, resource, obj, target, table_options(context.request))
    if isinstance(obj, ListResult):
        if target.kind == PARTIAL:
            raise errors.NotAcceptable(
                f"you requested {PARTIAL}, but the requested object is a list ({kind}List)"
            )
        return partial_list(context, obj, target)
    if target.kind == PARTIAL_LIST:
        raise errors.NotAcceptable(
            f"you requested {PARTIAL_LIST}, but the requested object is not a list ({kind})"
        )
    return partial_metadata(context, obj, target)


def package_of(resource: Resource) -> str:
    """Return the Go package of the objects of a resource in the server's memory."""
    return "unstructured" if resource.custom else internal_package(resource.group)
