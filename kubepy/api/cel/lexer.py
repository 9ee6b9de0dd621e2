"""The words of an expression."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api.cel.syntax import CelSyntaxError
from kubepy.api.cel.values import Uint

_QUOTED = r"""(?P<prefix>[rRbB]{0,2})(?P<quote>\"\"\"|'''|"|')"""
_TOKEN = re.compile(rf"""
    (?P<space>\s+|//[^\n]*)
  | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<string>{_QUOTED})
  | (?P<ident>[A-Za-z_]\w*)
  | (?P<escaped>`[\w.\-/ ]+`)
  | (?P<op>\?\.|\[\?|&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{{}}=])
""", re.VERBOSE | re.ASCII)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\?\"'`])|x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|"
                     r"([0-3][0-7]{2}))", re.ASCII)
LONGEST_INTEGER = 4000  # digits: Python reads no more than 4,300
_SIMPLE = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))


class Token(NamedTuple):
    """``kind``: op, ident, literal or end; ``value`` is the text of the first two, the value of a literal."""

    kind: str
    value: Any
    at: int


def tokens(text: str) -> Iterator[Token]:
    """Raises CelSyntaxError."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise CelSyntaxError(f"Syntax error: token recognition error at: '{text[at]}'", at)
        kind = found.lastgroup or ""
        if found["string"] is not None:
            token, at = _string(text, found, at)
            yield token
            continue
        if kind != "space":
            yield _token(kind, found[0], at)
        at = found.end()
    yield Token("end", "<EOF>", at)


def _token(kind: str, text: str, at: int) -> Token:
    match kind:
        case "int":
            return Token("literal", _whole(text), at)
        case "uint":
            return Token("literal", Uint(_whole(text[:-1])), at)
        case "float":
            return Token("literal", _double(text, at), at)
        case "escaped":
            return Token("ident", text[1:-1], at)
    return Token(kind, text, at)


def _whole(text: str) -> int:
    """The value of digits; the parser refuses what does not fit into 64 bits, as all that is above 2**64 does not."""
    if text.startswith("0x"):
        return int(text, 16)
    return int(text) if len(text) <= LONGEST_INTEGER else 2**64


def _double(text: str, at: int) -> float:
    value = float(text)
    if math.isinf(value):
        raise CelSyntaxError("Syntax error: invalid double literal", at)
    return value


def _string(text: str, found: re.Match[str], at: int) -> tuple[Token, int]:
    """A string or bytes literal, and where it ends."""
    prefix, quote = found["prefix"].lower(), found["quote"]
    start, end = found.end(), found.end()
    while not text.startswith(quote, end):
        if end >= len(text) or (len(quote) == 1 and text[end] == "\n"):
            raise CelSyntaxError(f"Syntax error: token recognition error at: '{text[at:end]}'", at)
        end += 2 if text[end] == "\\" and "r" not in prefix else 1
    content = text[start:end]
    if "r" not in prefix:
        content = _unescaped(content, at, is_bytes="b" in prefix)
    value: Any = content
    if "b" in prefix:
        value = content.encode("latin-1") if "r" not in prefix else content.encode()
    return Token("literal", value, at), end + len(quote)


def _unescaped(content: str, at: int, *, is_bytes: bool) -> str:
    """In bytes an escaped number is one byte, and everything else is UTF-8 (kept here as one character a byte)."""
    parts = []
    position = 0
    while position < len(content):
        if content[position] != "\\":
            character = content[position]
            parts.append(character.encode().decode("latin-1") if is_bytes else character)
            position += 1
            continue
        found = _ESCAPE.match(content, position)
        if found is None:
            raise CelSyntaxError("Syntax error: unable to unescape string", at)
        parts.append(_SIMPLE[found[1]] if found[1] else chr(_code(found)))
        position = found.end()
    return "".join(parts)


def _code(found: re.Match[str]) -> int:
    digits = next(group for group in found.groups()[1:5] if group) if not found[6] else found[6]
    return int(digits, 8 if found[6] else 16)
