"""The functions of templates: Go's own (``text/template/funcs.go``), and ``exists`` and
``base64decode``.

Values are those of JSON, ``None`` for a null (a nil interface), ``NOTHING`` for a missing value.
The last two functions are kubectl's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kubepy.cli.gotemplate.nodes import Byte, Int
from kubepy.cli.gotemplate.printf import format_one, sprint, sprintf, sprintln, type_name
from kubepy.lazy import lazy_imports
from kubepy.storage.frozen import plain_type

with lazy_imports():
    from urllib import parse


class _Nothing:
    def __repr__(self) -> str:
        return "<invalid reflect.Value>"


NOTHING = _Nothing()


class FunctionError(Exception):
    """A function refuses its arguments; the message is Go's."""


class NoFunctionError(FunctionError):
    """``call`` of a value that is no function. Only the run knows how the template writes that
    value."""


class Function(NamedTuple):
    """A function of templates.

    :param least: the number of arguments.
    :param more: any number of arguments may follow.
    :param texts: the positions of arguments that must be strings.
    :param absent: it distinguishes a missing value from null.
    :param boxes: arguments after the first that come out of a list or map reach it as ``Boxed``,
        and it refuses them.
    """

    call: Callable[..., Any]
    least: int
    more: bool = False
    texts: tuple[int, ...] = ()
    absent: bool = False
    boxes: bool = False


def exists(name: str) -> bool:
    return name in FUNCTIONS


def truth(value: Any) -> bool:
    """Return False for a missing value, null, false, zero and what is empty."""
    return value is not NOTHING and bool(value)


# --- comparing ------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    """Return the basic kind of a value that can be ordered, or ""."""
    if isinstance(value, bool):
        return "bool"
    return next(
        (
            kind
            for type_, kind in ((int, "int"), (float, "float"), (str, "string"))
            if isinstance(value, type_)
        ),
        "",
    )


def _is_nil(value: Any) -> bool:
    return value is NOTHING or value is None


def _eq(first: Any, *others: Any) -> bool:
    if not others:
        raise FunctionError("missing argument for comparison")
    return any(_equal(first, other) for other in others)


def _equal(first: Any, other: Any) -> bool:
    kind = _kind(first)
    if kind != _kind(other):
        if not _is_nil(first) and not _is_nil(other):
            raise _incompatible(first, other)
        return False

    if kind:
        return bool(first == other)
    if not _is_nil(first) and not _is_nil(other):
        if plain_type(first) is not plain_type(other):
            raise FunctionError(
                f"non-comparable types {format_one('s', first)}: {type_name(first)}, "
                f"{type_name(other)}: {format_one('v', other)}"
            )
        raise FunctionError(f"non-comparable type {format_one('s', other)}: {type_name(other)}")

    return _is_nil(first) and _is_nil(other)


def _incompatible(first: Any, other: Any) -> FunctionError:
    return FunctionError(
        f"incompatible types for comparison: {type_name(first)} and {type_name(other)}"
    )


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def ordered(first: Any, other: Any) -> bool:
        kinds = _kind(first), _kind(other)
        if "" in kinds:
            raise FunctionError("invalid type for comparison")
        if kinds[0] != kinds[1]:
            raise _incompatible(first, other)
        if kinds[0] == "bool":
            raise FunctionError("invalid type for comparison")
        return bool(compare(first, other))

    return ordered


# --- reaching into values -------------------------------------------------------------------------


def _len(value: Any) -> Int:
    if value is None:
        raise FunctionError("len of nil pointer")
    if value is NOTHING:
        raise FunctionError("reflect: call of reflect.Value.Type on zero Value")
    if isinstance(value, str):
        return Int(len(value.encode()))
    if not isinstance(value, (list, dict)):
        raise FunctionError(f"len of type {type_name(value)}")
    return Int(len(value))


def _index(item: Any, *indices: Any) -> Any:
    if _is_nil(item):
        raise FunctionError("index of untyped nil")
    for index in indices:
        if item is None:
            raise FunctionError("index of nil pointer")
        if isinstance(item, dict):
            if _is_nil(index):
                raise FunctionError("value is nil; should be of type string")
            if not isinstance(index, str):
                raise FunctionError(f"value has type {type_name(index)}; should be string")
            item = item.get(index)
        elif isinstance(item, (list, str)):
            elements = [Byte(byte) for byte in item.encode()] if isinstance(item, str) else item
            number = _number(index, len(elements))
            if number == len(elements):
                kind = "string" if isinstance(item, str) else "slice"
                raise FunctionError(f"reflect: {kind} index out of range")
            item = elements[number]
        else:
            raise FunctionError(f"can't index item of type {type_name(item)}")

    return item


def _number(index: Any, most: int) -> int:
    if _is_nil(index):
        raise FunctionError("cannot index slice/array with nil")
    if _kind(index) != "int":
        raise FunctionError(f"cannot index slice/array with type {type_name(index)}")
    if not 0 <= index <= most:
        raise FunctionError(f"index out of range: {index}")
    return int(index)


def _slice(item: Any, *indices: Any) -> Any:
    if _is_nil(item):
        raise FunctionError("slice of untyped nil")
    if len(indices) > 3:
        raise FunctionError(f"too many slice indexes: {len(indices)}")
    if not isinstance(item, (list, str)):
        raise FunctionError(f"can't slice item of type {type_name(item)}")
    if isinstance(item, str) and len(indices) == 3:
        raise FunctionError("cannot 3-index slice a string")
    elements = item.encode() if isinstance(item, str) else item
    bounds = [_number(index, len(elements)) for index in indices]
    start, end = [*bounds, *[0, len(elements)][len(bounds) :]][:2]
    if start > end:
        raise FunctionError(f"invalid slice index: {start} > {end}")
    part = elements[start:end]
    if isinstance(part, bytes):
        return part.decode(errors="replace")
    return part


def _exists(item: Any, *indices: Any) -> bool:
    """Return whether ``index`` would find something; it always does without indices.
    (kubectl's.)"""
    for index in indices:
        if isinstance(item, dict):
            item = item.get(index) if isinstance(index, str) else None
        elif isinstance(item, (list, str)) and _kind(index) == "int" and 0 <= index < len(item):
            item = item[index]
        else:
            return False
    return not indices or not _is_nil(item)


# --- text -----------------------------------------------------------------------------------------

_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_JS = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}


def _text(values: Sequence[Any]) -> str:
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return sprint(["<no value>" if _is_nil(value) else value for value in values])


def _html(*values: Any) -> str:
    return "".join(_HTML.get(character, character) for character in _text(values))


def _js(*values: Any) -> str:
    return "".join(
        _JS.get(character) or (character if character.isprintable() else f"\\u{ord(character):04X}")
        for character in _text(values)
    )


def _urlquery(*values: Any) -> str:
    return parse.quote_plus(_text(values))


def _base64decode(text: str) -> str:
    import base64

    try:
        return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True).decode(
            errors="replace"
        )
    except ValueError:  # binascii.Error is one
        # Go's decoder stops at the first character that is no digit of base 64, or where the last
        # group is incomplete.
        position = next(
            (
                index
                for index, character in enumerate(text)
                if not (character.isascii() and character.isalnum()) and character not in "+/\r\n"
            ),
            len(text) - len(text) % 4,
        )
        raise FunctionError(
            f"base64 decode failed: illegal base64 data at input byte {position}"
        ) from None


def _call(function: Any, *_arguments: Any) -> Any:
    if _is_nil(function):
        raise FunctionError("call of nil")
    raise NoFunctionError(f"of type {type_name(function)}")


FUNCTIONS = {
    "and": Function(
        lambda *values: values[-1], 1, more=True
    ),  # `Run` evaluates no more arguments than it needs
    "or": Function(lambda *values: values[-1], 1, more=True),
    "not": Function(lambda value: not truth(value), 1, absent=True),
    "len": Function(_len, 1, absent=True),
    "index": Function(_index, 1, more=True, absent=True),
    "slice": Function(_slice, 1, more=True, absent=True, boxes=True),
    "eq": Function(_eq, 1, more=True, absent=True),
    "ne": Function(lambda first, other: not _equal(first, other), 2, absent=True),
    "lt": Function(_ordered(operator.lt), 2, absent=True),
    "le": Function(_ordered(operator.le), 2, absent=True),
    "gt": Function(_ordered(operator.gt), 2, absent=True),
    "ge": Function(_ordered(operator.ge), 2, absent=True),
    "print": Function(lambda *values: sprint(values), 0, more=True),
    "println": Function(lambda *values: sprintln(values), 0, more=True),
    "printf": Function(
        lambda template, *values: sprintf(template, values), 1, more=True, texts=(0,)
    ),
    "html": Function(_html, 0, more=True),
    "js": Function(_js, 0, more=True),
    "urlquery": Function(_urlquery, 0, more=True),
    "call": Function(_call, 1, more=True, absent=True),
    "exists": Function(_exists, 1, more=True),
    "base64decode": Function(_base64decode, 1, texts=(0,)),
}
