"""Paths to fields of a structural schema: ``.spec.size``, ``.labels['a.b']`` (``schema/cel.ValidFieldPath``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.schema.structural import Schema

# A quoted text without an end is one word up to the end of the path.
_TOKEN = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPath(NamedTuple):
    """``text``: the path as errors write it, with a dot before every field and brackets around every key of a map."""

    text: str
    schema: Schema


def find_field(schema: Schema, path: str, *, arrays: bool = True) -> FieldPath:
    """The field at a path. ``arrays``: names may stand in brackets. Raises ValueError in upstream's words."""
    tokens = iter(_TOKEN.findall(path))
    found = FieldPath("", schema)
    for token in tokens:
        if token == "[" and not arrays:
            raise ValueError("array notation is not allowed")
        if token == "[":
            name = _quoted(_next(tokens))
            found = _step(found, name)
            if (end := _next(tokens)) != "]":
                raise ValueError(f"expected ] but got {end}")
        elif token == ".":
            found = _step(found, _next(tokens))
        else:
            raise ValueError(f"expected [ or . but got: {token}")
    return found


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise ValueError("unexpected end of JSON path")
    return token


def _step(place: FieldPath, name: str) -> FieldPath:
    """Into a field, or into the values of a map."""
    properties, others = place.schema.get("properties"), place.schema.get("additionalProperties")
    if properties and name in properties:
        return FieldPath(f"{place.text}.{name}", properties[name])
    if not properties and isinstance(others, dict):
        return FieldPath(f"{place.text}[{name}]", others)
    raise ValueError("does not refer to a valid field")


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise ValueError(f"expected single quoted string but got {token}")
    return _ESCAPED.sub(_unescape, token[1:-1])


def _unescape(found: re.Match[str]) -> str:
    if found[1] not in _ESCAPES:
        raise ValueError(f"invalid string literal: invalid escape char {found[0]}")
    return _ESCAPES[found[1]]
