r"""kubectl's JSONPath: ``{range .items[*]}{.metadata.name}{"\n"}{end}``, filters, slices, unions, ``..``.

:func:`parse` gives a :class:`JSONPath`, whose ``find`` gives the values, a list for each part, and ``print`` the text.
Upstream: ``client-go/util/jsonpath``; but wildcards go over a map by key, so that an object always gives the same text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from kubepy.api.jsonpath.parser import (
    Array,
    Field,
    Filter,
    Group,
    Identifier,
    JSONPathError,
    Literal,
    Node,
    Parser,
    Recursive,
    Union,
    Wildcard,
)
from kubepy.api.values.goformat import format_value, go_syntax, quote, to_json, type_name

__all__ = ["JSONPath", "JSONPathError", "cell", "parse", "print_value", "relaxed"]

Values = list[Any]
_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")


@cache
def parse(template: str, allow_missing_keys: bool = False) -> JSONPath:
    """Read a template. Raises JSONPathError. ``allow_missing_keys``: a field that is not there is no error."""
    return JSONPath(template, Parser(template).parse(), allow_missing_keys)


def relaxed(expression: str) -> str:
    """The template that ``metadata.name``, ``.metadata.name`` or ``{metadata.name}`` stand for.

    Raises JSONPathError (``RelaxedJSONPathExpression``).
    """
    if not expression:
        return expression
    found = _RELAXED.fullmatch(expression)
    if found is None:
        raise JSONPathError("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or "
                            "'{.name1.name2}'")
    return "{." + (found[1] or found[2]) + "}"


def cell(path: JSONPath, obj: Any) -> str:
    """A cell of ``-o custom-columns``: all values, or ``<none>``. Raises JSONPathError."""
    found = path.find(obj)
    texts = [format_value(value) for values in found for value in values]
    return ",".join(texts if found and found[0] else ["<none>", *texts])


class JSONPath:
    """A template that has been read (by :func:`parse`); it holds no state between uses."""

    def __init__(self, template: str, parts: list[Node], allow_missing_keys: bool = False) -> None:
        self.template = template
        self.parts = parts
        self._allow_missing_keys = allow_missing_keys

    def find(self, obj: Any) -> list[Values]:
        """The values of each part of the template. Raises JSONPathError."""
        return _Run(self.parts, self._allow_missing_keys).find(obj, 0)

    def print(self, obj: Any) -> str:
        """The template filled in. Raises JSONPathError."""
        return "".join(" ".join(map(print_value, values)) for values in self.find(obj))

    def print_as_json(self, obj: Any) -> str:
        """``-o jsonpath-as-json``: each part's values as an indented JSON list. Raises JSONPathError."""
        return "".join(to_json(values, indent=4) + "\n" for values in self.find(obj))

    def explain(self, obj: Any, error: JSONPathError) -> str:
        """All that kubectl says when the template does not fit the object."""
        return (f"error executing jsonpath {quote(self.template)}: Error executing template: {error}. Printing more "
                f"information for debugging the template:\n\ttemplate was:\n\t\t{self.template}\n"
                f"\tobject given to jsonpath engine was:\n\t\t{go_syntax(obj)}\n\n\n")


def print_value(value: Any) -> str:
    """A value in the text: maps and lists as JSON, ``null`` for nothing."""
    if isinstance(value, (dict, list)):
        return to_json(value)
    return "null" if value is None else format_value(value)


class _Failure(JSONPathError):
    """An error on the way, with the values so far: an "exists" filter takes those for an answer, as upstream does."""

    def __init__(self, message: str, values: Values) -> None:
        super().__init__(message)
        self.values = values


class _Bounds(NamedTuple):
    start: int
    end: int
    step: int


class _Run:
    """One evaluation. Ranges are counted as upstream counts them, so that unbalanced ones behave alike."""

    def __init__(self, parts: list[Node], allow_missing_keys: bool) -> None:
        self.parts = parts
        self.allow_missing_keys = allow_missing_keys
        self.begun = 0
        self.inside = 0
        self.ended = 0
        self.last_end = -1

    def find(self, obj: Any, start: int) -> list[Values]:
        """The values of the parts from ``start`` on, to the end of the range that they are in."""
        found: list[Values] = []
        index = start
        while index < len(self.parts):
            values = self.walk([obj], self.parts[index])
            if 0 < self.ended <= self.inside:
                self.ended -= 1
                self.last_end = index
                break
            if self.begun > 0:
                found += self.loop(values, index + 1)
                index = max(index, self.last_end)
            else:
                found.append(values)
            index += 1
        return found

    def loop(self, values: Values, start: int) -> list[Values]:
        """The range's parts once for each value; for none, once for nothing, only to find the range's end."""
        self.begun -= 1
        self.inside += 1
        found = [part for value in values for part in self.find(value, start)]
        if not values:
            self.find(None, start)
        self.inside -= 1
        return found

    def walk(self, values: Values, node: Node) -> Values:
        match node:
            case Group():
                for one in node.nodes:
                    values = self.walk(values, one)
                return values
            case Literal():
                return [node.value] if isinstance(node.value, str) else [node.value for _ in values]
            case Field():
                return self.field(values, node.name)
            case Wildcard():
                return [one for value in values for one in _children(value)]
            case Array():
                return _slices(values, node)
            case Union():
                return self.union(values, node)
            case Recursive():
                return _descend(values)
            case Filter():
                return [one for value in values for one in self.filter(value, node, values)]
            case Identifier():
                return self.identifier(values, node.name)

    def identifier(self, values: Values, name: str) -> Values:
        if name == "range":
            self.begun += 1
            return values
        if name != "end":
            raise _Failure(f"unrecognized identifier {name}", values)
        if not self.inside:
            raise _Failure("not in range, nothing to end", [])
        self.ended += 1
        return []

    def field(self, values: Values, name: str) -> Values:
        found = [value[name] for value in values if isinstance(value, dict) and name in value]
        if values and not found and not self.allow_missing_keys:
            raise _Failure(f"{name} is not found", found)
        return found

    def union(self, values: Values, node: Union) -> Values:
        try:
            return [one for branch in node.branches for one in self.walk(values, branch)]
        except _Failure as failure:
            raise _Failure(str(failure), values) from failure

    def filter(self, value: Any, node: Filter, values: Values) -> Values:
        if not isinstance(value, list):
            raise _Failure(f"{format_value(value)} is not array or slice and cannot be filtered", values)
        return [one for one in value if self.passes(one, node, values)]

    def passes(self, value: Any, node: Filter, values: Values) -> bool:
        if node.operator == "exists":
            try:
                return bool(self.walk([value], node.left))
            except _Failure as failure:
                return bool(failure.values)
        left = self.operand(value, node.left, values)
        right = self.operand(value, node.right, values) if left else []
        return bool(left and right) and _compare(left[0], node.operator, right[0])

    def operand(self, value: Any, node: Node, values: Values) -> Values:
        """What a side of a comparison is: one value or, where there is nothing, none."""
        try:
            found = self.walk([value], node)
        except _Failure as failure:
            raise _Failure(str(failure), values) from failure
        if len(found) > 1:
            raise _Failure("can only compare one element at a time", values)
        return found


def _children(value: Any) -> Values:
    """The values of a map by key, the elements of a list, the bytes of a string."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if isinstance(value, str):
        return list(value.encode())
    return value if isinstance(value, list) else []


def _descend(values: Values) -> Values:
    """Everything below that holds something, each before what it holds."""
    found: Values = []
    for value in values:
        if children := _children(value):
            found.append(value)
            if not isinstance(value, str):
                found += _descend(children)
    return found


def _slices(values: Values, node: Array) -> Values:
    """That part of each list. The first part that is empty ends it, as upstream: what follows is left out."""
    found: Values = []
    for value in (one for one in values if one is not None):
        if not isinstance(value, list):
            raise _Failure(f"{type_name(value)} is not array or slice", values)
        bounds = _bounds(node, len(value))
        if bounds.start == bounds.end:
            break
        if wrong := _out_of_bounds(bounds, len(value)):
            raise _Failure(wrong, values)
        found += value[bounds.start:bounds.end:bounds.step]
    return found


def _bounds(node: Array, length: int) -> _Bounds:
    """Start, end and step, counted from the start of a list of that length."""
    start = node.start or 0
    if start < 0:
        start += length
    end = length if node.end is None else node.end
    if end < 0 or (end == 0 and node.single):
        end += length
    return _Bounds(start, end, 1 if node.step is None else node.step)


def _out_of_bounds(bounds: _Bounds, length: int) -> str:
    if not 0 <= bounds.start < length:
        return f"array index out of bounds: index {bounds.start}, length {length}"
    if not 0 <= bounds.end <= length:
        return f"array index out of bounds: index {bounds.end - 1}, length {length}"
    if bounds.start > bounds.end:
        return f"starting index {bounds.start} is greater than ending index {bounds.end}"
    return "" if bounds.step > 0 else "step must be > 0"


def _compare(left: Any, operator: str, right: Any) -> bool:
    """Compare two scalars of one type, as Go's templates do. Raises _Failure."""
    if operator not in ("<", ">", "==", "!=", "<=", ">="):
        raise _Failure(f"unrecognized filter operator {operator}", [])
    for side in (left, right):
        if not isinstance(side, (bool, int, float, str)):
            raise _Failure("invalid type for comparison", [])
    if type(left) is not type(right):
        raise _Failure("incompatible types for comparison", [])
    if operator in ("==", "!="):
        return bool((left == right) is (operator == "=="))
    if isinstance(left, bool):
        raise _Failure("invalid type for comparison", [])
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator])
