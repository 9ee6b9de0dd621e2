r"""kubectl's JSONPath: ``{range .items[*]}{.metadata.name}{"\n"}{end}``, filters, slices, unions,
``..``.

:func:`parse` returns a :class:`JSONPath`, whose ``find`` returns the values, a list for each part,
and ``print`` the text. Upstream: ``client-go/util/jsonpath`` (``parser.go``, ``jsonpath.go``);
unlike there, wildcards visit the values of a map in the order of its keys, so that the same object
always gives the same text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from kubepy.api.values.goformat import (
    code_point,
    format_value,
    go_syntax,
    quote,
    to_json,
    type_name,
)
from kubepy.api.values.gonumbers import NumberError, atoi, int_or_none

_DICT_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)")
_ESCAPED = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|(\\)"
)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")


class JSONPathError(Exception):
    """A template that cannot be read or does not fit the object; the message is upstream's."""


class ListNode(NamedTuple):
    """The nodes between ``{`` and ``}``: each works on the values that the one before it has
    found."""

    nodes: list[Node]


class LiteralNode(NamedTuple):
    value: Any


class FieldNode(NamedTuple):
    name: str


class IdentifierNode(NamedTuple):
    """The word ``range`` or ``end``."""

    name: str


class ArrayNode(NamedTuple):
    """A slice ``[start:end:step]``. ``single``: an index alone, whose end follows from its
    start."""

    start: int | None
    end: int | None
    step: int | None
    single: bool


class FilterNode(NamedTuple):
    """A filter ``[?(left operator right)]``; the operator ``exists`` has no right side."""

    left: ListNode
    operator: str
    right: ListNode


class WildcardNode(NamedTuple):
    name: str = "*"


class RecursiveNode(NamedTuple):
    name: str = ".."


class UnionNode(NamedTuple):
    branches: list[ListNode]


Node = (
    ListNode
    | LiteralNode
    | FieldNode
    | IdentifierNode
    | ArrayNode
    | FilterNode
    | WildcardNode
    | RecursiveNode
    | UnionNode
)


class _Parser:
    """Reads one template. ``start`` is where the current token begins, ``at`` the position of the
    next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0
        self.nodes: list[Node] = []

    def parse(self) -> list[Node]:
        """Return the parts of the template: literal text and groups. Raises JSONPathError."""
        parts: list[Node] = []
        while self.at < len(self.text):
            brace = self.text.find("{", self.at)
            self.at = len(self.text) if brace < 0 else brace
            if text := self.take():
                parts.append(LiteralNode(text))
            if brace >= 0:
                parts.append(self.group())
        return parts

    def take(self) -> str:
        """Return the token read so far; the next one begins here."""
        token = self.text[self.start : self.at]
        self.start = self.at
        return token

    def next(self) -> str:
        """Return the next character, "" at the end."""
        character = self.text[self.at : self.at + 1]
        self.at += len(character)
        return character

    def follows(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.at)

    def group(self) -> ListNode:
        self.at += 1
        self.take()
        self.nodes = []
        while not self.follows("}"):
            self.node()
        self.at += 1
        self.take()
        return ListNode(self.nodes)

    def node(self) -> None:
        """Read one node inside the braces."""
        if self.follows("[?("):
            return self.filter()
        if self.follows(".."):
            return self.recursive()
        character = self.next()
        if character in ("", "\r", "\n"):
            raise JSONPathError("unclosed action")
        if character in " @$":
            self.take()
        elif character == "[":
            self.array()
        elif character in "\"'":
            self.quoted(character)
        elif character == ".":
            self.field()
        elif character in "+-" or character.isdecimal():
            self.number()
        elif _is_word(character):
            self.identifier()
        else:
            raise JSONPathError(f"unrecognized character in action: {code_point(character)}")

        return None

    def identifier(self) -> None:
        while self.at < len(self.text) and self.text[self.at] not in _TERMINATORS:
            self.at += 1
        word = self.take()
        self.nodes.append(
            LiteralNode(word == "true") if word in ("true", "false") else IdentifierNode(word)
        )

    def recursive(self) -> None:
        if self.nodes and isinstance(self.nodes[-1], RecursiveNode):
            raise JSONPathError("invalid multiple recursive descent")
        self.at += 2
        self.take()
        self.nodes.append(RecursiveNode())
        if _is_word(self.text[self.at : self.at + 1]):
            self.field()

    def number(self) -> None:
        """Read an integer or a float (``strconv.ParseFloat``)."""
        while (
            self.text[self.at : self.at + 1] == "." or self.text[self.at : self.at + 1].isdecimal()
        ):
            self.at += 1

        text = self.take()
        if (whole := int_or_none(text)) is not None:
            self.nodes.append(LiteralNode(whole))
            return
        try:
            value = float(text)
        except ValueError:
            value = math.inf

        if math.isinf(value):
            raise JSONPathError(f"cannot parse number {text}")
        self.nodes.append(LiteralNode(value))

    def field(self) -> None:
        self.take()
        while self.at < len(self.text) and self.text[self.at] not in _TERMINATORS:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at = min(self.at, len(self.text))
        name = self.take()
        self.nodes.append(WildcardNode() if name == "*" else FieldNode(name.replace("\\", "")))

    def quoted(self, end: str) -> None:
        while True:
            character = self.next()
            if character in ("", "\n"):
                raise JSONPathError("unterminated quoted string")
            if character == end and self.text[self.at - 2] != "\\":
                break
        self.nodes.append(LiteralNode(_unquote(self.take())))

    def array(self) -> None:
        """Read an index, a slice, a union or a quoted key, up to the closing bracket."""
        while (character := self.next()) != "]":
            if character in ("", "\n"):
                raise JSONPathError("unterminated array")
        text = self.take()[1:-1]
        if "," in text:
            self.nodes.append(
                UnionNode([_action(f"[{branch.strip(' ')}]") for branch in text.split(",")])
            )
            return

        if key := _DICT_KEY.fullmatch(text):
            self.nodes += _action(f".{key[1]}").nodes
            return
        text = ":" if text == "*" else text
        indexes = _SLICE.fullmatch(text)
        if indexes is None:
            raise JSONPathError(f"invalid array index {text}")
        start, end, step = (_index(part) for part in indexes.groups(default=""))
        if indexes[2] is None:
            self.nodes.append(ArrayNode(start, (start or 0) + 1, step, True))
        else:
            self.nodes.append(ArrayNode(start, end, step, False))

    def filter(self) -> None:
        self.at += len("[?(")
        self.take()
        self.skip_filter()
        if self.next() != "]":
            raise JSONPathError("unclosed array expect ]")
        text = self.take()[:-2]
        if comparison := _COMPARISON.fullmatch(text):
            self.nodes.append(
                FilterNode(_action(comparison[1]), comparison[2], _action(comparison[3]))
            )
        else:
            self.nodes.append(FilterNode(_action(text), "exists", ListNode([])))

    def skip_filter(self) -> None:
        """Skip to the bracket that ends a filter: one that is not in quotes."""
        quote = ""
        closed = False
        while True:
            character = self.next()
            if character in ("", "\n"):
                raise JSONPathError("unterminated filter")
            if character in "\"'" and not quote:
                quote = character
            elif character == quote and self.text[self.at - 2] != "\\":
                closed = True
            elif character == ")" and bool(quote) is closed:
                return


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()


def _action(text: str) -> ListNode:
    """Parse a piece of a path by itself."""
    first = _Parser("{" + text + "}").parse()[0]
    assert isinstance(first, ListNode)  # it begins with a brace
    return first


def _index(text: str) -> int | None:
    number = text.removeprefix(":")
    if number == "-":
        raise JSONPathError("array index - is not a number")
    try:
        if number:
            return atoi(number)
        return None
    except NumberError:
        raise JSONPathError(f"array index {number} is not a number") from None


def _unquote(text: str) -> str:
    """Return the text of a string in single or double quotes. Raises JSONPathError."""
    quote = text[0]
    inner = text[1:-1]
    if "\\" not in inner:
        return inner

    def replace(escape: re.Match[str]) -> str:
        if escape[6] or (escape[1] in ("'", '"') and escape[1] != quote):
            raise JSONPathError(f"unquote string {text} error invalid syntax")
        if escape[1]:
            return _CONTROL.get(escape[1], escape[1])
        if escape[5]:
            return chr(int(escape[5], 8))
        return chr(int(escape[2] or escape[3] or escape[4], 16))

    return _ESCAPED.sub(replace, inner)


# --- evaluation -----------------------------------------------------------------------------------

Values = list[Any]
_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")


@cache
def parse(template: str, allow_missing_keys: bool = False) -> JSONPath:
    """Parse a template. Raises JSONPathError. ``allow_missing_keys``: a missing field is not an
    error."""
    return JSONPath(template, _Parser(template).parse(), allow_missing_keys)


def relaxed(expression: str) -> str:
    """Return the template that ``metadata.name``, ``.metadata.name`` or ``{metadata.name}`` stand
    for.

    Raises JSONPathError (``RelaxedJSONPathExpression``).
    """
    if not expression:
        return expression
    match = _RELAXED.fullmatch(expression)
    if match is None:
        raise JSONPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or "
            "'{name1.name2}' or "
            "'{.name1.name2}'"
        )
    return "{." + (match[1] or match[2]) + "}"


def cell(path: JSONPath, obj: Any) -> str:
    """Return a cell of ``-o custom-columns``: all values, or ``<none>``. Raises JSONPathError."""
    results = path.find(obj)
    texts = [format_value(value) for values in results for value in values]
    return ",".join(texts if results and results[0] else ["<none>", *texts])


class JSONPath:
    """A parsed template; it holds no state between uses."""

    def __init__(self, template: str, parts: list[Node], allow_missing_keys: bool = False) -> None:
        self.template = template
        self.parts = parts
        self._allow_missing_keys = allow_missing_keys

    def find(self, obj: Any) -> list[Values]:
        """Return the values of each part of the template. Raises JSONPathError."""
        return _Evaluation(self.parts, self._allow_missing_keys).find(obj, 0)

    def print(self, obj: Any) -> str:
        """Fill in the template. Raises JSONPathError."""
        return "".join(" ".join(map(print_value, values)) for values in self.find(obj))

    def print_as_json(self, obj: Any) -> str:
        """Print each part's values as an indented JSON list (``-o jsonpath-as-json``). Raises
        JSONPathError."""
        return "".join(to_json(values, indent=4) + "\n" for values in self.find(obj))

    def explain(self, obj: Any, error: JSONPathError) -> str:
        """Return kubectl's message for a template that does not fit the object."""
        return (
            f"error executing jsonpath {quote(self.template)}: Error executing template: {error}. "
            f"Printing more "
            f"information for debugging the template:\n\ttemplate was:\n\t\t{self.template}\n"
            f"\tobject given to jsonpath engine was:\n\t\t{go_syntax(obj)}\n\n\n"
        )


def print_value(value: Any) -> str:
    """Print a value: maps and lists as JSON, None as ``null``."""
    if isinstance(value, (dict, list)):
        return to_json(value)
    if value is None:
        return "null"
    return format_value(value)


class _Failure(JSONPathError):
    """An error with the values that had been found by then, which are the result of an "exists"
    filter, as upstream."""

    def __init__(self, message: str, values: Values) -> None:
        super().__init__(message)
        self.values = values


class _Evaluation:
    """One evaluation of a template. Ranges are counted as upstream does it, so that unbalanced ones
    behave alike."""

    def __init__(self, parts: list[Node], allow_missing_keys: bool) -> None:
        self.parts = parts
        self.allow_missing_keys = allow_missing_keys
        self.begun = 0
        self.inside = 0
        self.ended = 0
        self.last_end = -1

    def find(self, obj: Any, start: int) -> list[Values]:
        """Return the values of the parts from ``start`` to the end of the range that they are
        in."""
        parts: list[Values] = []
        index = start
        while index < len(self.parts):
            values = self.walk([obj], self.parts[index])
            if 0 < self.ended <= self.inside:
                self.ended -= 1
                self.last_end = index
                break
            if self.begun > 0:
                parts += self.loop(values, index + 1)
                index = max(index, self.last_end)
            else:
                parts.append(values)
            index += 1

        return parts

    def loop(self, values: Values, start: int) -> list[Values]:
        """Evaluate the range's parts for each value; without values once for None, to find the end
        of the range."""
        self.begun -= 1
        self.inside += 1
        parts = [part for value in values for part in self.find(value, start)]
        if not values:
            self.find(None, start)
        self.inside -= 1
        return parts

    def walk(self, values: Values, node: Node) -> Values:
        match node:
            case ListNode():
                for inner in node.nodes:
                    values = self.walk(values, inner)
                return values
            case LiteralNode():
                if isinstance(node.value, str):
                    return [node.value]
                return [node.value for _ in values]
            case FieldNode():
                return self.field(values, node.name)
            case WildcardNode():
                return [child for value in values for child in _children(value)]
            case ArrayNode():
                return self.slices(values, node)
            case UnionNode():
                return self.union(values, node)
            case RecursiveNode():
                return _descend(values)
            case FilterNode():
                return [item for value in values for item in self.filter(value, node, values)]
            case IdentifierNode():
                return self.identifier(values, node.name)

    def slices(self, values: Values, node: ArrayNode) -> Values:
        """Return the slice of each list. As upstream, the first empty slice ends it: lists that
        follow are left out."""
        items: Values = []
        for value in (value for value in values if value is not None):
            if not isinstance(value, list):
                raise _Failure(f"{type_name(value)} is not array or slice", values)
            length = len(value)
            start = node.start or 0
            end = length if node.end is None else node.end
            step = node.step
            start += length if start < 0 else 0
            end += length if end < 0 or (end == 0 and node.single) else 0
            if start == end:
                break
            if not 0 <= start < length:
                raise _Failure(f"array index out of bounds: index {start}, length {length}", values)
            if not 0 <= end <= length:
                raise _Failure(
                    f"array index out of bounds: index {end - 1}, length {length}", values
                )
            if start > end:
                raise _Failure(f"starting index {start} is greater than ending index {end}", values)
            if step is not None and step <= 0:
                raise _Failure("step must be > 0", values)
            items += value[start:end:step]

        return items

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
        fields = [value[name] for value in values if isinstance(value, dict) and name in value]
        if values and not fields and not self.allow_missing_keys:
            raise _Failure(f"{name} is not found", fields)
        return fields

    def union(self, values: Values, node: UnionNode) -> Values:
        try:
            return [value for branch in node.branches for value in self.walk(values, branch)]
        except _Failure as failure:
            raise _Failure(str(failure), values) from failure

    def filter(self, value: Any, node: FilterNode, values: Values) -> Values:
        if not isinstance(value, list):
            raise _Failure(
                f"{format_value(value)} is not array or slice and cannot be filtered", values
            )
        return [item for item in value if self.passes(item, node, values)]

    def passes(self, value: Any, node: FilterNode, values: Values) -> bool:
        if node.operator == "exists":
            try:
                return bool(self.walk([value], node.left))
            except _Failure as failure:
                return bool(failure.values)
        left = self.operand(value, node.left, values)
        right = self.operand(value, node.right, values) if left else []
        return bool(left and right) and _compare(left[0], node.operator, right[0])

    def operand(self, value: Any, node: Node, values: Values) -> Values:
        """Return the value of a side of a comparison; none if there is nothing."""
        try:
            results = self.walk([value], node)
        except _Failure as failure:
            raise _Failure(str(failure), values) from failure
        if len(results) > 1:
            raise _Failure("can only compare one element at a time", values)
        return results


def _children(value: Any) -> Values:
    """Return the values of a map by key, the elements of a list, or the bytes of a string."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if isinstance(value, str):
        return list(value.encode())
    if isinstance(value, list):
        return value
    return []


def _descend(values: Values) -> Values:
    """Return all values below that have children, each before its children."""
    descendants: Values = []
    for value in values:
        if children := _children(value):
            descendants.append(value)
            if not isinstance(value, str):
                descendants += _descend(children)
    return descendants


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
    return bool(
        {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    )


# --- printed fields -------------------------------------------------------------------------------

# Places of a path besides depths along the hidden field's path: at the list of items, beside the
# hidden path, anywhere.
_ITEMS = -1
_ELSEWHERE = -2
_ANYWHERE = -3


def may_print(path: JSONPath, hidden: Sequence[str]) -> bool:
    """Return whether a template may print the field at the path ``hidden`` of an object, or of the
    items of a list.

    Only the template is looked at; in doubt the answer is yes.
    """
    for nodes in (part.nodes for part in path.parts if isinstance(part, ListNode)):
        match nodes:
            case [
                IdentifierNode(name="range"),
                *path_nodes,
            ]:  # prints nothing itself, and the paths in it begin anew
                harmless = _place(path_nodes, hidden) in (0, _ITEMS, _ELSEWHERE)
            case [LiteralNode() | IdentifierNode(), *_]:
                harmless = True
            case _:
                harmless = _place(nodes, hidden) == _ELSEWHERE
        if not harmless:
            return True
    return False


def _place(nodes: Iterable[Any], hidden: Sequence[str], place: int = 0) -> int:
    """Return the place that nodes lead to from another place."""
    for node in nodes:
        if place in (_ELSEWHERE, _ANYWHERE) or place == len(hidden):
            break
        match node:
            case FieldNode() if place == 0 and node.name == "items":
                place = _ITEMS
            case FieldNode():
                place = place + 1 if place >= 0 and node.name == hidden[place] else _ELSEWHERE
            case ArrayNode() | FilterNode():
                place = 0 if place == _ITEMS else place
            case UnionNode():
                ends = {_place(branch.nodes, hidden, place) for branch in node.branches}
                place = ends.pop() if len(ends) == 1 else _ANYWHERE
            case WildcardNode():
                place = 0 if place == _ITEMS else _ANYWHERE
            case RecursiveNode():
                place = _ANYWHERE

    return place
