"""The footprint of an expression: the fields of an object that its value depends on.

Most writes change a few fields. Where none of them is in the footprint of a remembered body, its
value holds for the new object as well.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

from kubepy.api.cel.syntax import CallExpr, Ident, Literal, Macro, Node, Select, children_of

Path = tuple[str, ...]
Paths = tuple[Path, ...]
MISSING = object()


def paths_of(node: Node, variable: str) -> Paths | None:
    """Return the paths of the fields of a variable that an expression reads, sorted; None if it
    reads the variable in another way."""
    paths = _paths(node, variable)
    return None if () in paths else tuple(sorted(paths))


def _paths(node: Node, variable: str) -> set[Path]:
    """Return the paths; () stands for the whole object."""
    path = _path(node, variable)
    if path is not None:
        return {path}
    if isinstance(node, Macro) and variable in node.variables:
        return _paths(node.range, variable)  # in the body it is another variable
    return set[Path]().union(*(_paths(child, variable) for child in children_of(node)))


def _path(node: Node, variable: str) -> Path | None:
    """Return the path of a chain of selections that begins with a variable; None for other
    nodes."""
    fields: list[str] = []
    while not isinstance(node, Ident):
        step = _step(node)
        if step is None:
            return None
        node, field = step
        fields.append(field)
    if node.name != variable:
        return None
    return tuple(reversed(fields))


def _step(node: Node) -> tuple[Node, str] | None:
    """Return what a selection goes on from, and its field; None for other nodes."""
    match node:
        case Select(operand=holder, field=field):
            return holder, field
        case CallExpr(function="_[_]" | "_[?_]", args=(holder, Literal(value=str(field)))):
            return holder, field
    return None


def have_same(paths: Paths | None, old: Any, new: Any) -> bool:
    """Return whether two objects have the same at all of some paths; None: they may differ."""
    return paths is not None and all(map(are_same_at, paths, repeat(old), repeat(new)))


def are_same_at(path: Path, old: Any, new: Any) -> bool:
    """Return whether two objects have the same at a path, or nothing from the same field on."""
    for field in path:
        if not isinstance(old, dict) or not isinstance(new, dict):
            break
        old = old.get(field, MISSING)
        new = new.get(field, MISSING)
        if old is new:
            return True
    return are_same(old, new)


def are_same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are the same; 1, 1.0 and true are three."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(are_same(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list) and len(left) == len(right) and all(map(are_same, left, right))
        )
    return type(left) is type(right) and bool(left == right)
