"""Sets of fields, and how the API writes them (``fieldsV1``).

A path is a tuple of elements, and an element is a string as in fieldsV1: ``f:spec`` a field,
``k:{"name":"c"}`` the item of a list with these keys, ``v:"x"`` the item of a set. Upstream:
``structured-merge-diff/fieldpath``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import goformat

Path = tuple[str, ...]
Fields = frozenset[Path]
EMPTY: Fields = frozenset()

_MEMBER = "."
_NUMERIC_KEY = re.compile(
    r'k:\{.*":\d|v:\d'
)  # of list items, whose numbers decide about their order


def field(name: str) -> str:
    return f"f:{name}"


def keys(values: dict[str, Any]) -> str:
    """Return the path element of a list item by its sorted keys."""
    return f"k:{_json(dict(sorted(values.items())))}"


def item(value: Any) -> str:
    """Return the path element of a scalar in a set."""
    return f"v:{_json(value)}"


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def fields_path(*names: str) -> Path:
    """Return the path of nested fields."""
    return tuple(field(name) for name in names)


# --- fieldsV1 -------------------------------------------------------------------------------------


def to_fields_v1(fields: Iterable[Path]) -> dict[str, Any]:
    """Return the tree of a set; a field that is a member and has others below it has the entry
    ``.``."""
    root: dict[str, Any] = {}
    paths = sorted(fields)
    if any(
        element[0] != "f" and _NUMERIC_KEY.match(element)
        for element in set(chain.from_iterable(paths))
    ):
        paths.sort(key=lambda path: [_element_order(element) for element in path])
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node[_MEMBER] = {}
    return _without_lone_members(root)


def _without_lone_members(node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {} if child.keys() == {_MEMBER} else _without_lone_members(child)
        for key, child in node.items()
    }


def from_fields_v1(tree: Any) -> Fields:
    """Return the set of a tree. Raises ValueError for an invalid tree."""
    paths: set[Path] = set()
    _collect(tree, (), paths)
    return frozenset(paths)


def _collect(node: Any, path: Path, paths: set[Path]) -> None:
    if not isinstance(node, dict):
        raise ValueError(f"fields must be an object, not {_json(node)}")
    if path and not node:
        paths.add(path)
    for element, child in node.items():
        if element == _MEMBER:
            paths.add(path)
        elif element[:2] in ("f:", "k:", "v:", "i:"):
            _collect(child, (*path, element), paths)
        elif element[1:2] != ":":
            raise ValueError(
                f"missing colon: {element}"
            )  # other kinds of elements, of a later version, are left out


# --- order and words ------------------------------------------------------------------------------


def in_order(fields: Iterable[Path]) -> list[Path]:
    """Sort a set as upstream iterates over it: at each level first the members, then the paths
    below them."""
    return sorted(
        fields,
        key=lambda path: [
            (position < len(path) - 1, *_element_order(element))
            for position, element in enumerate(path)
        ],
    )


def _element_order(element: str) -> tuple[Any, ...]:
    kind = element[0]
    text = element[2:]
    if kind == "f":
        return (0, text)
    value = json.loads(text)
    if kind == "k":
        return (1, [(name, *_value_order(key)) for name, key in value.items()])
    return (2 if kind == "v" else 3, *_value_order(value))


def _value_order(value: Any) -> tuple[int, Any]:
    """Return a sort key: values of one kind are compared with each other, then numbers, strings,
    booleans."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, str(value))


def path_text(path: Path) -> str:
    """Write a path as ``.spec.containers[name="c"].image``."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind = element[0]
    text = element[2:]
    if kind == "f":
        return f".{printable(text)}"
    if kind == "k":
        keys = json.loads(text)
        return "[" + ",".join(f"{name}={value_text(value)}" for name, value in keys.items()) + "]"
    if kind == "v":
        return f"[={value_text(json.loads(text))}]"
    return f"[{text}]"


def value_text(value: Any) -> str:
    if isinstance(value, str):
        return goformat.quote(value)
    return goformat.format_value(value)
