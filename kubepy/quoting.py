"""Quote the texts of others in messages: names, kinds, paths, values.

Such a text may hold characters that steer a terminal (escape sequences, line breaks, bidirectional
controls). Go's ``%q`` escapes them, and upstream quotes nearly every such text with it. The texts
that upstream prints as they are (``%s``) are made printable all the same: nobody needs the raw
bytes in a message.
"""

from __future__ import annotations

_NAMED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_QUOTED = {**_NAMED, '"': r"\"", "\\": r"\\"}


def quote(text: str) -> str:
    """Return a text as ``%q`` prints it: a double-quoted Go string (``strconv.Quote``).

    Bytes that are no UTF-8, as names of files have them (``surrogateescape``), are shown as bytes:
    ``\\xff``.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_QUOTED.get(character) or _escape(character) for character in text) + '"'


def printable(text: str) -> str:
    """Return a text without quotes in which only the characters that cannot be printed are escaped,
    line breaks too."""
    if text.isprintable():
        return text
    return "".join(_NAMED.get(character) or _escape(character) for character in text)


def printable_lines(text: str) -> str:
    """Return a message of several lines, escaped as ``printable`` does, but for its line breaks and
    tabs."""
    if text.isprintable():
        return text
    return "".join(character if character in "\n\t" else printable(character) for character in text)


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
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
