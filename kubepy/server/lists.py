"""Lists: the objects of a resource that a request asks for."""

from __future__ import annotations

from typing import NamedTuple, cast

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.apiserver.client import ObjectList
from kubepy.apiserver.request import ListOptions, Request
from kubepy.server.messages import Call
from kubepy.server.parameters import ListParameters


class ListResult(NamedTuple):
    """The objects of a list, and where it goes on.

    :ivar continue_token: "" at the end.
    :ivar remaining_item_count: of what follows, None where that is not known.
    """

    items: list[Object]
    resource_version: str
    continue_token: str = ""
    remaining_item_count: int | None = None


def read_list(call: Call, resource: Resource, parameters: ListParameters) -> ListResult:
    """Return the objects of a list, or the part of them that the parameters ask for."""
    options = ListOptions(parameters.label_selector, parameters.field_selector)
    listed = cast(ObjectList, call.client.do(Request("list", resource.gvr, call.info.namespace, options=options)))
    return ListResult(listed.items, listed.resource_version)
