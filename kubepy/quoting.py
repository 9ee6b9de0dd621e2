"""Quote the texts of others in messages: names, kinds, paths, values.

Such a text may hold characters that steer a terminal (escape sequences, line breaks, bidirectional
controls). Go's ``%q`` escapes them, and upstream quotes nearly every such text with it. The texts
that upstream prints as they are (``%s``) are made printable all the same: nobody needs the raw
bytes in a message.
"""

from __future__ import annotations

from collections.abc import Mapping

_NAMED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_QUOTED = {**_NAMED, '"': r"\"", "\\": r"\\"}
_LINES = {**_NAMED, "\n": "\n", "\t": "\t"}


def quote(text: str) -> str:
    """Return a text as ``%q`` prints it: a double-quoted Go string (``strconv.Quote``).

    Bytes that are no UTF-8, as names of files have them (``surrogateescape``), are shown as bytes:
    ``\\xff``.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = _escaped(text, _QUOTED)
    return f'"{escaped}"'


def printable(text: str) -> str:
    """Return a text without quotes in which only the characters that cannot be printed are escaped,
    line breaks too."""
    if text.isprintable():
        return text
    return _escaped(text, _NAMED)


def printable_lines(text: str) -> str:
    """Return a message of several lines, escaped as ``printable`` does, but for its line breaks and
    tabs."""
    if text.isprintable():
        return text
    return _escaped(text, _LINES)


def _escaped(text: str, sequences: Mapping[str, str]) -> str:
    """Return a text whose characters have these sequences in their places, or else are escaped
    unless they can be printed."""
    parts = []
    for character in text:
        sequence = sequences.get(character)
        parts.append(_escape(character) if sequence is None else sequence)
    return "".join(parts)


def _escape(character: str) -> str:
    """Return a character as it is if it can be printed, else its escape sequence in a Go string."""
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte
        return f"\\x{code - 0xDC00:02x}"
    if 0xD800 <= code <= 0xDFFF:  # half of a pair, which Go reads as the replacement character
        return "\\ufffd"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
