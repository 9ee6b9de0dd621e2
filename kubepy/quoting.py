"""Texts of others in messages: names, kinds, paths, values.

Whoever chose them may have put in what steers a terminal (escape sequences, line breaks, bidirectional controls). Go's
``%q`` escapes that, and upstream quotes nearly every such text with it. What upstream prints as it is (``%s``) is
made printable all the same: nobody needs the raw bytes in a message.
"""

from __future__ import annotations

_NAMED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_QUOTED = {**_NAMED, '"': r"\"", "\\": r"\\"}


def quote(text: str) -> str:
    """``%q``: a double-quoted Go string (``strconv.Quote``).

    Bytes that are no UTF-8, as names of files have them (``surrogateescape``), are shown as such: ``\\xff``.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_QUOTED.get(character) or _printable(character) for character in text) + '"'


def printable(text: str) -> str:
    """A text without quotes of which only what cannot be printed is escaped, line breaks too."""
    if text.isprintable():
        return text
    return "".join(_NAMED.get(character) or _printable(character) for character in text)


def printable_lines(text: str) -> str:
    """A message of several lines: all is escaped that ``printable`` escapes, but for line breaks and tabs."""
    if text.isprintable():
        return text
    return "".join(character if character in "\n\t" else printable(character) for character in text)


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte
        return f"\\x{code - 0xDC00:02x}"
    if 0xD800 <= code <= 0xDFFF:  # half of a pair, which Go reads as the replacement character
        return "\\ufffd"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
