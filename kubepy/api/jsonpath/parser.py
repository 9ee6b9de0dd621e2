"""The grammar of kubectl's JSONPath templates: text to nodes (``client-go/util/jsonpath/parser.go``)."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from kubepy.api.values.goformat import code_point
from kubepy.api.values.gonumbers import NumberError, atoi, int_or_none

_DICT_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)")
_ESCAPED = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|(\\)")
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")


class JSONPathError(Exception):
    """A template that cannot be read or does not fit the object; the message is upstream's."""


class Group(NamedTuple):
    """What is between ``{`` and ``}``: each node works on what the one before it found."""

    nodes: list[Node]


class Literal(NamedTuple):
    value: Any


class Field(NamedTuple):
    name: str


class Identifier(NamedTuple):
    """``range`` or ``end``."""

    name: str


class Array(NamedTuple):
    """``[start:end:step]``. ``single``: an index alone, whose end follows from its start."""

    start: int | None
    end: int | None
    step: int | None
    single: bool


class Filter(NamedTuple):
    """``[?(left operator right)]``; the operator ``exists`` has no right side."""

    left: Group
    operator: str
    right: Group


class Wildcard(NamedTuple):
    name: str = "*"


class Recursive(NamedTuple):
    name: str = ".."


class Union(NamedTuple):
    branches: list[Group]


Node = Group | Literal | Field | Identifier | Array | Filter | Wildcard | Recursive | Union


class Parser:
    """Reads one template. ``start`` is where the token being read begins, ``at`` where reading stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0
        self.nodes: list[Node] = []

    def parse(self) -> list[Node]:
        """The parts of the template: literal text and groups. Raises JSONPathError."""
        parts: list[Node] = []
        while self.at < len(self.text):
            brace = self.text.find("{", self.at)
            self.at = len(self.text) if brace < 0 else brace
            if text := self.take():
                parts.append(Literal(text))
            if brace >= 0:
                parts.append(self.group())
        return parts

    def take(self) -> str:
        """The token read so far; the next one begins here."""
        token = self.text[self.start:self.at]
        self.start = self.at
        return token

    def next(self) -> str:
        """The next character, or "" at the end."""
        character = self.text[self.at:self.at + 1]
        self.at += len(character)
        return character

    def follows(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.at)

    def group(self) -> Group:
        self.at += 1
        self.take()
        self.nodes = []
        while not self.follows("}"):
            self.node()
        self.at += 1
        self.take()
        return Group(self.nodes)

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
        self.nodes.append(Literal(word == "true") if word in ("true", "false") else Identifier(word))

    def recursive(self) -> None:
        if self.nodes and isinstance(self.nodes[-1], Recursive):
            raise JSONPathError("invalid multiple recursive descent")
        self.at += 2
        self.take()
        self.nodes.append(Recursive())
        if _is_word(self.text[self.at:self.at + 1]):
            self.field()

    def number(self) -> None:
        while self.text[self.at:self.at + 1] == "." or self.text[self.at:self.at + 1].isdecimal():
            self.at += 1
        text = self.take()
        whole = int_or_none(text)
        self.nodes.append(Literal(_float(text) if whole is None else whole))

    def field(self) -> None:
        self.take()
        while self.at < len(self.text) and self.text[self.at] not in _TERMINATORS:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at = min(self.at, len(self.text))
        name = self.take()
        self.nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def quoted(self, end: str) -> None:
        while True:
            character = self.next()
            if character in ("", "\n"):
                raise JSONPathError("unterminated quoted string")
            if character == end and self.text[self.at - 2] != "\\":
                break
        self.nodes.append(Literal(_unquote(self.take())))

    def array(self) -> None:
        while (character := self.next()) != "]":
            if character in ("", "\n"):
                raise JSONPathError("unterminated array")
        text = self.take()[1:-1]
        if "," in text:
            self.nodes.append(Union([_action(f"[{branch.strip(' ')}]") for branch in text.split(",")]))
        elif key := _DICT_KEY.fullmatch(text):
            self.nodes += _action(f".{key[1]}").nodes
        else:
            self.nodes.append(_array(":" if text == "*" else text))

    def filter(self) -> None:
        self.at += len("[?(")
        self.take()
        self.skip_filter()
        if self.next() != "]":
            raise JSONPathError("unclosed array expect ]")
        text = self.take()[:-2]
        if found := _COMPARISON.fullmatch(text):
            self.nodes.append(Filter(_action(found[1]), found[2], _action(found[3])))
        else:
            self.nodes.append(Filter(_action(text), "exists", Group([])))

    def skip_filter(self) -> None:
        """Go past the bracket that ends a filter: one that is not in quotes."""
        quote, closed = "", False
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


def _float(text: str) -> float:
    """``strconv.ParseFloat``. Raises JSONPathError."""
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if math.isinf(number):
        raise JSONPathError(f"cannot parse number {text}")
    return number


def _action(text: str) -> Group:
    """What a piece of a path means by itself."""
    first = Parser("{" + text + "}").parse()[0]
    assert isinstance(first, Group)  # it begins with a brace
    return first


def _array(text: str) -> Array:
    found = _SLICE.fullmatch(text)
    if found is None:
        raise JSONPathError(f"invalid array index {text}")
    start, end, step = (_index(part) for part in found.groups(default=""))
    if found[2] is None:
        return Array(start, (start or 0) + 1, step, True)
    return Array(start, end, step, False)


def _index(text: str) -> int | None:
    number = text.removeprefix(":")
    if number == "-":
        raise JSONPathError("array index - is not a number")
    try:
        return atoi(number) if number else None
    except NumberError:
        raise JSONPathError(f"array index {number} is not a number") from None


def _unquote(text: str) -> str:
    """The string in single or double quotes. Raises JSONPathError."""
    quote, inner = text[0], text[1:-1]
    if "\\" not in inner:
        return inner

    def replace(found: re.Match[str]) -> str:
        if found[6] or (found[1] in ("'", '"') and found[1] != quote):
            raise JSONPathError(f"unquote string {text} error invalid syntax")
        if found[1]:
            return _CONTROL.get(found[1], found[1])
        return chr(int(found[5], 8)) if found[5] else chr(int(found[2] or found[3] or found[4], 16))

    return _ESCAPED.sub(replace, inner)
