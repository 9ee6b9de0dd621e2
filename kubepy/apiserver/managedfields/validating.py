"""Validation of an applied configuration: fields that its type does not have, values of the wrong
type.

Upstream: ``structured-merge-diff/typed/{validate,helpers}.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.fieldpath import path_text
from kubepy.apiserver.managedfields.typed import child, element_of, list_keys
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import goformat

_NUMERIC = ("integer", "number")


def problems(value: Any, schema: Schema | None) -> list[str]:
    """Return messages such as ``.spec.colour: field not declared in schema``, in order of paths."""
    return [
        f"{printable(path)}: {printable(problem)}" if path else problem
        for path, problem in _problems(value, schema, "")
    ]


def text_of(messages: list[str]) -> str:
    """Join several problems into one message."""
    if len(messages) == 1:
        return messages[0]
    return "\n".join(["errors:", *(f"  {problem}" for problem in messages)])


def _problems(value: Any, schema: Schema | None, path: str) -> Iterator[tuple[str, str]]:
    if schema is None or value is None or schema.int_or_string:
        return
    if schema.type == "object":
        yield from _map_problems(value, schema, path)
    elif schema.type == "array":
        yield from _list_problems(value, schema, path)
    elif schema.type and (problem := _scalar_problem(value, schema.type)):
        yield path, problem


def _map_problems(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, f"expected map, got &{{{goformat.format_value(value)}}}"
        return
    for name in sorted(value):
        if child(schema, name) is None and not takes_anything(schema):
            yield f"{path}.{name}", "field not declared in schema"
            return  # as upstream, which goes through a map no further
        yield from _problems(value[name], child(schema, name), f"{path}.{name}")


def takes_anything(schema: Schema) -> bool:
    """Tell whether a map can have keys that its type does not name."""
    return schema.preserves_unknown_fields or not schema.fields()


def _list_problems(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield path, f"expected list, got &{{{goformat.format_value(value)}}}"
        return
    names = list_keys(schema)
    known = set[str]()
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if names is not None:
            try:
                element = element_of(schema, item)
            except ValueError as error:
                yield path, f"element {index}: {error}"
                continue
            if element in known:
                yield path, f"duplicate entries for key {path_text((element,))}"
            known.add(element)
            place = path + path_text((element,))
        yield from _problems(item, schema.items(), place)


def _scalar_problem(value: Any, kind: str) -> str:
    type_name = goformat.type_name(value)
    shown = goformat.go_syntax(value)
    if kind in _NUMERIC and type_name not in ("int64", "float64"):
        return f"expected numeric (int or float), got {type_name}"
    if kind == "string" and type_name != "string":
        return f"expected string, got &value.valueUnstructured{{Value:{shown}}}"
    if kind == "boolean" and type_name != "bool":
        return f"expected boolean, got &value.valueUnstructured{{Value:{shown}}}"
    return ""
