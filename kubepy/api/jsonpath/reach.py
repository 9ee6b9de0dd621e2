"""What a JSONPath template may print of an object, told from the template alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubepy.api.jsonpath.evaluator import JSONPath
from kubepy.api.jsonpath.parser import Array, Field, Filter, Group, Identifier, Literal, Recursive, Union, Wildcard

# Where a path may be besides at a depth of the hidden field's path: at the list of items, beside that path, anywhere.
_ITEMS, _ELSEWHERE, _ANYWHERE = -1, -2, -3


def may_print(path: JSONPath, hidden: Sequence[str]) -> bool:
    """Whether it may print the field at ``hidden`` of an object, or of the items of a list. In doubt, it may."""
    return any(isinstance(part, Group) and _may_print(part.nodes, hidden) for part in path.parts)


def _may_print(nodes: Sequence[Any], hidden: Sequence[str]) -> bool:
    if nodes and nodes[0] == Identifier("range"):  # it prints nothing itself, and what is in it begins anew
        return _place(nodes[1:], hidden) not in (0, _ITEMS, _ELSEWHERE)
    return not (nodes and isinstance(nodes[0], Literal | Identifier)) and _place(nodes, hidden) != _ELSEWHERE


def _place(nodes: Iterable[Any], hidden: Sequence[str], place: int = 0) -> int:
    for node in nodes:
        if place in (_ELSEWHERE, _ANYWHERE) or place == len(hidden):
            break
        place = _step(place, node, hidden)
    return place


def _step(place: int, node: Any, hidden: Sequence[str]) -> int:
    match node:
        case Field():
            if place == 0 and node.name == "items":
                return _ITEMS
            return place + 1 if place >= 0 and node.name == hidden[place] else _ELSEWHERE
        case Array() | Filter():
            return 0 if place == _ITEMS else place
        case Union():
            ends = {_place(branch.nodes, hidden, place) for branch in node.branches}
            return ends.pop() if len(ends) == 1 else _ANYWHERE
        case Wildcard():
            return 0 if place == _ITEMS else _ANYWHERE
        case Recursive():
            return _ANYWHERE
    return place
