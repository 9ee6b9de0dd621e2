"""KYAML: YAML without significant whitespace, where every string that is no key stands in double
quotes.

Keys stay in the order they come in. Upstream: ``sigs.k8s.io/yaml/kyaml``.
"""

from __future__ import annotations

import re
from datetime import date
from math import isinf
from typing import Any

from kubepy.api.values.goformat import to_json

_BREAK = "\\\n"  # YAML folds a line that ends in a backslash into the next one
_NAMED = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\r": r"\r",
    "\v": r"\v",
    "\0": r"\0",
    "\x1b": r"\e",
    "\x85": r"\N",
    "\xa0": r"\_",
    "\u2028": r"\L",
    "\u2029": r"\P",
}
_WORDS = frozenset(("null", "true", "false", "t", "f", "y", "n", "yes", "no", "on", "off"))
_NOT_FINITE = frozenset(("inf", "infinity", "nan"))
_PREFIXED = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+")
_FLOAT = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")


def dump(value: Any) -> str:
    """Return a JSON value as one document with its ``---``, ending in a newline."""
    return f"---\n{_node(value, 0)}\n"


def _node(value: Any, level: int) -> str:
    pad = "  " * level
    if value and isinstance(value, dict):
        lines = [
            f"{pad}  {_key(key)}: {_node(entry, level + 1)},\n" for key, entry in value.items()
        ]
        return "{\n" + "".join(lines) + pad + "}"

    if value and isinstance(value, list):
        if all(
            isinstance(item, dict | list) for item in value
        ):  # brackets stay together: [{ … }, { … }]
            return "[" + ", ".join(_node(item, level) for item in value) + "]"
        return "[\n" + "".join(f"{pad}  {_node(item, level + 1)},\n" for item in value) + pad + "]"

    if isinstance(value, str):
        return _string(value, level + 1)
    return to_json(value)


# --- strings --------------------------------------------------------------------------------------


def _string(text: str, level: int) -> str:
    """Return a string in double quotes; one of several lines has a line for each, with a blank
    before most of them."""
    if "\n" not in text:
        return f'"{_escaped(text)}"'
    pad = "  " * level
    lines = []
    for line in text.split("\n"):
        # A reader drops the blanks that a line begins with, up to a backslash.
        guard = "\\" if line and (line[0].isspace() and line[0] not in "\x1c\x1d\x1e\x1f") else " "
        lines.append(pad + guard + _escaped(line))
    ends = rf"\n{_BREAK}".join(lines)
    closed = ends.removesuffix(lines[-1]) if text.endswith("\n") else ends + _BREAK
    return f'"{_BREAK}{closed}{pad}"'


def _escaped(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(map(_character, text))


def _character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable() or character == "\t":
        return character
    if escape := _NAMED.get(character):
        return escape
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _key(text: str) -> str:
    """Return a key, without quotes if it is letters, digits and ``_``, and inside it ``-``, ``.``
    and ``/``."""
    last = len(text) - 1
    is_word = bool(text) and all(
        character.isalnum() or character == "_" or (character in "-./" and 0 < at < last)
        for at, character in enumerate(text)
    )
    # A reader of YAML takes some words for something other than a string.
    if is_word and not (
        text.lower() in _WORDS or _is_number(text.replace("_", "")) or _is_date(text)
    ):
        return text
    return '"' + "\\n".join(_escaped(line).replace("\t", "\\t") for line in text.split("\n")) + '"'


def _is_number(text: str) -> bool:
    if _PREFIXED.fullmatch(text):
        return int(text, 0) < 2**63
    if _FLOAT.fullmatch(text):
        return not isinf(float(text))
    return text.lower() in _NOT_FINITE or _HEX_FLOAT.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        date(int(match[1]) or 4, int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True
