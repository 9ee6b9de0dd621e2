"""Write YAML as go-yaml v2 does behind sigs.k8s.io/yaml (``emitterc.go``, ``encode.go``,
``sorter.go``).

Keys sorted in go-yaml's natural order, two spaces a level, lists not indented under their key, long
single-line scalars folded at the first lone space past column 80. The same strings and key sets
come again and again in a cluster, so their written form is remembered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cmp_to_key
from typing import Any

from kubepy.storage.frozen import thawed
from kubepy.storage.yaml.scalars import INT64_MIN, UINT64_MAX, format_float, is_string

BEST_WIDTH = 80
SIMPLE_KEY_BYTES = 128

_MEMO_ENTRIES = 20_000
_MEMO_TEXT = 80

# Everything that go-yaml's emitter calls unprintable, the line breaks that are not "\n", and lone
# surrogates.
_SPECIAL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\U00010000-\U0010ffff]"
)
# go-yaml writes U+2028 and U+2029 raw, which readers of YAML 1.2 take for other text; escaped, all
# agree.
_SEPARATOR = re.compile("[\u2028\u2029]")
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_NOT_PLAIN = re.compile(
    r"""\A[ #,\[\]{}&*!|>'"%@`]|\A[-?](?: |\Z)|\A(?:---|\.\.\.)|:(?: |\Z)| \#| \Z"""
)
_ESCAPED = re.compile('["\\\\\n]|' + _SPECIAL.pattern + "|" + _SEPARATOR.pattern)
_ESCAPES = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_LONE_SPACE = re.compile(r"(?<! ) (?! )")
_FIRST_SPACE = re.compile(r"(?<! ) ")
_LETTERS = re.compile(r"[A-Za-z]*\Z")

# Fields of the fields of documents, as the containers in the spec of a pod, by their identity:
# others are too small or seldom shared. The value itself is kept, so that no other one can get its
# identity.
Written = dict[int, tuple[Any, str]]

_texts: dict[str, str] = {}  # strings that are written the same at every column
_orders: dict[
    tuple[str, ...], list[tuple[str, str]]
] = {}  # keys of a mapping → in order, each with its "key:"


def dump(obj: Any, written: Written | None = None) -> str:
    """Return a value as a document, ending in a newline.

    Takes JSON values: dict with string keys, list, str, int, float, bool, None.

    :param written: parts of documents with their text, which this one is added to. Documents that
        are written with the same one have to stay as they are: what they share is written once.
    """
    if written is None:
        obj = thawed(obj)
    lines: list[str] = []
    _node(obj, "", "", lines, written)
    lines.append("")
    return "\n".join(lines)


def dump_entry(name: str, value: Any, pad: str) -> str:
    """Return the lines of one entry of a mapping that stands at ``pad`` (spaces)."""
    lines: list[str] = []
    _mapping({name: thawed(value)}, pad, pad, lines, None)
    return "\n".join([*lines, ""])


def dump_item(value: Any, pad: str = "") -> str:
    """Return the lines of one item of a list that stands at ``pad`` (spaces)."""
    lines: list[str] = []
    _sequence([thawed(value)], pad, pad, lines, None)
    return "\n".join([*lines, ""])


def in_order(names: Iterable[str]) -> list[str]:
    """Return the keys of a mapping in the order in which they are written."""
    keys = tuple(names)
    return [name for name, _ in _orders.get(keys) or _order(keys)]


def _node(value: Any, lead: str, pad: str, lines: list[str], written: Written | None) -> None:
    """Write a value whose first line begins with ``lead``, and whose nested lines stand at
    ``pad``."""
    if value and type(value) is dict:
        _mapping(value, lead, pad, lines, written)
    elif value and type(value) is list:
        _sequence(value, lead, pad, lines, written)
    else:
        lines.append(
            lead
            + (string(value, len(lead), pad or "  ") if isinstance(value, str) else atom(value))
        )


def _mapping(
    obj: dict[str, Any], lead: str, pad: str, lines: list[str], written: Written | None
) -> None:
    """Write the entries; the first follows ``lead`` (``- `` in a list), the others stand at
    ``pad``."""
    names = tuple(obj)
    order = _orders.get(names) or _order(names)
    for name, key in order:
        value = obj[name]
        kind = type(value)
        if not key:  # it is too long for a line, or has several: ``? key`` and ``: value``
            inner = pad + "  "
            lines.append(f"{lead}? {string(name, len(lead) + 2, inner)}")
            _node(value, pad + ": ", inner, lines, written)
        elif kind is str:
            text = _texts.get(value)
            if text is None:
                text = string(value, len(lead) + len(key) + 1, pad + "  ")
            lines.append(f"{lead}{key} {text}")
        elif value and (kind is dict or kind is list):
            lines.append(lead + key)
            inner = pad + "  " if kind is dict else pad
            write = _mapping if kind is dict else _sequence
            if written is None or pad != "  ":
                write(value, inner, inner, lines, written)
            elif (known := written.get(id(value))) is not None:
                lines.append(known[1])
            else:
                part: list[str] = []
                write(value, inner, inner, part, None)
                lines.append(text := "\n".join(part))
                written[id(value)] = value, text
        else:
            lines.append(f"{lead}{key} {atom(value)}")
        lead = pad


def _sequence(
    items: list[Any], lead: str, pad: str, lines: list[str], written: Written | None
) -> None:
    inner = pad + "  "
    for item in items:
        if type(item) is dict and item:
            _mapping(item, lead + "- ", inner, lines, written)
        else:
            _node(item, lead + "- ", inner, lines, written)
        lead = pad


def atom(value: Any) -> str:
    """Return a value that is written on one line whatever its place: a number, boolean, null, empty
    collection."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if INT64_MIN <= value <= UINT64_MAX:
            return str(value)
        return format_float(float(value))

    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise ValueError(f"unsupported value: {value}")
        # As it comes out of JSON: a float without a fraction is an integer as far as 64 bits go.
        is_integer = value.is_integer() and INT64_MIN <= value <= UINT64_MAX
        if is_integer:
            return str(int(value))
        return format_float(value)

    if isinstance(value, dict | list) and not value:
        return "{}" if isinstance(value, dict) else "[]"
    raise TypeError(f"{type(value).__name__} is no JSON value")


# --- keys -----------------------------------------------------------------------------------------


def _order(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the keys in order, each with its written form; "" for one that needs the ``?``
    form."""
    in_order = sorted(names)
    if not all(
        map(_LETTERS.match, names)
    ):  # go-yaml's order is not transitive: sorted from one start, it has one end
        in_order.sort(key=cmp_to_key(_compare))

    order: list[tuple[str, str]] = []
    for name in in_order:
        is_short = len(name) < SIMPLE_KEY_BYTES // 4 or len(name.encode()) <= SIMPLE_KEY_BYTES
        is_simple = is_short and "\n" not in name and "\r" not in name
        # go-yaml writes even the key ``<<`` plain, and reads it as a merge then; a file has to read
        # back as written.
        written = '"<<":' if name == "<<" else f"{quote(name)}:"
        order.append((name, written if is_simple else ""))

    if len(_orders) >= _MEMO_ENTRIES:
        _orders.clear()
    _orders[names] = order
    return order


def _compare(a: str, b: str) -> int:
    """Compare two keys in go-yaml's natural order: letters after everything else, runs of digits by
    their number (``keyList.Less``)."""
    at = next(
        (index for index, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), None
    )
    if at is None:
        return len(a) - len(b)
    first = a[at]
    second = b[at]
    if first.isalpha() or second.isalpha():
        if first.isalpha() and second.isalpha():
            return ord(first) - ord(second)
        return 1 if first.isalpha() else -1
    a_number, a_end = _digits(a, at, "0" in (first, second))
    b_number, b_end = _digits(b, at, "0" in (first, second))
    return a_number - b_number or a_end - b_end or ord(first) - ord(second)


def _digits(text: str, start: int, leading: bool) -> tuple[int, int]:
    """Return the number that the digits from ``start`` make, as Go's int64 wraps it, and where they
    end.

    Zeros count for their length once a digit other than 0 stands before them (``leading``).
    """
    end = start
    while end < len(text) and text[end].isdecimal():
        end += 1
    number = 0
    for digit in text[start:end]:  # whatever alphabet it is of
        number = number * 10 + ord(digit) - ord("0")
    before = start
    while before > 0 and text[before - 1].isdecimal():
        before -= 1
    if leading and text[before:start].strip("0"):
        number += 10 ** (end - start)
    return (number - INT64_MIN) % 2**64 + INT64_MIN, end


# --- strings --------------------------------------------------------------------------------------


def string(value: str, column: int, indent: str) -> str:
    """Return a string that begins at ``column``; its further lines stand at ``indent``."""
    text = _texts.get(value)
    if text is not None:
        return text
    if "\n" in value and may_be_literal(value):
        return literal(value, indent)
    text = quote(value)
    if " " in text:
        if column + len(text) <= BEST_WIDTH:
            return text
        return _fold(text, column, indent)

    if len(text) <= _MEMO_TEXT:
        if len(_texts) >= _MEMO_ENTRIES:
            _texts.clear()
        _texts[value] = text

    return text


def quote(value: str) -> str:
    """Return a string on one line: plain if a reader takes it for the same string, else quoted."""
    if "\n" in value or _SPECIAL.search(value) or _SEPARATOR.search(value):
        return double_quote(value)
    if not is_string(value) or _BASE60.fullmatch(value):
        return double_quote(value)
    if _NOT_PLAIN.search(value):
        return "'" + value.replace("'", "''") + "'"
    return value


def double_quote(value: str) -> str:
    """Return a string in double quotes."""
    return '"' + _ESCAPED.sub(_escape, value) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    if code <= 0xFFFF:
        return f"\\u{code:04X}"
    return f"\\U{code:08X}"


def _fold(text: str, column: int, indent: str) -> str:
    """Break a long scalar at the first fitting space past the width; its end may stick out, as
    go-yaml's does."""
    mark = text[0] if text[0] in "'\"" else ""
    inside = range(1 + len(mark), len(text) - 1 - len(mark)) if mark else range(len(text))
    broken = ""
    start = 0
    for match in (_FIRST_SPACE if mark == '"' else _LONE_SPACE).finditer(text):
        at = match.start()
        if column + at - start > BEST_WIDTH and at in inside:
            guard = (
                "\\" if text[at + 1] == " " else ""
            )  # in double quotes: keeps the space that begins the line
            broken += f"{text[start:at]}\n{indent}{guard}"
            start = at + 1
            column = len(indent) + len(guard)
    return broken + text[start:]


def may_be_literal(value: str) -> bool:
    """Return whether a string can be written as a ``|`` block."""
    return not (
        value.endswith(" ") or " \n" in value or _SPECIAL.search(value) or _SEPARATOR.search(value)
    )


def literal(value: str, indent: str, steps: int = 2) -> str:
    """Return a ``|`` block without the line break that ends it; ``steps``: how far it is indented
    below its parent."""
    hint = str(steps) if value[0] in " \n\t" else ""
    chomp = "" if value.endswith("\n") else "-"
    if value == "\n" or value.endswith("\n\n"):
        chomp = "+"
    body = value.removesuffix("\n").split("\n")
    return f"|{hint}{chomp}\n" + "\n".join(indent + line if line else "" for line in body)
