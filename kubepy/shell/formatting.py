"""The formats of ``printf`` and the escapes of ``echo -e``."""

from __future__ import annotations

import re

SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\])|([ce\"'])|0([0-7]{1,3})|([0-7]{1,3})|x([0-9a-fA-F]{1,2})"
    r"|u([0-9a-fA-F]{1,4}))"
)
SPECIFIER = re.compile(r"%([-+ 0#']*)(\*|\d+)?(?:\.(\*|\d+)?)?([a-zA-Z%])?")


class FormatError(Exception):
    """A format that is wrong."""


def _byte(code: int) -> str:
    """Return a byte as text; those that are no ASCII as surrogates that encode to it."""
    code &= 255
    if code < 128:
        return chr(code)
    return bytes([code]).decode("utf-8", "surrogateescape")


def unescape(
    text: str, *, is_format: bool = False, has_hexadecimal: bool = True
) -> tuple[str, bool]:
    """Undo backslashes. Return the text, and whether ``\\c`` has cut it off."""
    parts = []
    position = 0
    while position < len(text):
        found = ESCAPE.match(text, position)
        if found is None:
            parts.append(text[position])
            position += 1
            continue
        simple, other, zero_octal, octal, hexadecimal, unicode = found.groups()
        position = found.end()
        if simple:
            parts.append(SIMPLE[simple])
        elif other == "c" and not is_format:
            return "".join(parts), True
        elif other == "e":
            parts.append("\x1b")
        elif other:
            parts.append(other if is_format and other in "\"'" else f"\\{other}")
        elif zero_octal and not is_format:
            parts.append(_byte(int(zero_octal, 8)))
        elif zero_octal:
            parts.append(_byte(int(zero_octal[:2] or "0", 8)) + zero_octal[2:])
        elif octal:
            parts.append(_byte(int(octal, 8)))
        elif not has_hexadecimal:
            parts.append(found[0])
        elif hexadecimal:
            parts.append(_byte(int(hexadecimal, 16)))
        else:
            parts.append(chr(int(unicode, 16)))
    text = "".join(parts)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"), False


class _Arguments:
    """The arguments of a format, of which missing ones are empty."""

    def __init__(self, values: list[str]) -> None:
        self.values = values
        self.position = 0
        self.problems: list[str] = []

    @property
    def are_left(self) -> bool:
        return self.position < len(self.values)

    def take(self) -> str | None:
        if not self.are_left:
            return None
        self.position += 1
        return self.values[self.position - 1]

    def integer(self) -> int:
        text = self.take()
        if text is None or text == "":
            return 0
        if text[0] in "'\"":
            return ord(text[1]) if len(text) > 1 else 0
        found = re.match(r"\s*([-+]?(?:0[xX][0-9a-fA-F]+|\d+))", text)
        if found is None or found.end() != len(text):
            problem = "not completely converted" if found else "expected numeric value"
            self.problems.append(f"{text}: {problem}")
        return _integer(found[1]) if found else 0

    def real(self) -> float:
        text = self.take() or "0"
        try:
            return float(text)
        except ValueError:
            self.problems.append(f"{text}: expected numeric value")
            return 0.0


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits.startswith("0") and len(digits) > 1 and all(each in "01234567" for each in digits):
        return sign * int(digits, 8)
    return sign * int(digits)


def format_text(pattern: str, values: list[str]) -> tuple[str, list[str]]:
    """Return what ``printf`` prints, and the problems that it had with its arguments. The format
    is used again while arguments are left. Raises FormatError."""
    arguments = _Arguments(values)
    parts: list[str] = []
    while True:
        before = arguments.position
        is_cut = _format_once(pattern, arguments, parts)
        if is_cut or not arguments.are_left or arguments.position == before:
            return "".join(parts), arguments.problems


def _format_once(pattern: str, arguments: _Arguments, parts: list[str]) -> bool:
    position = 0
    while position < len(pattern):
        index = pattern.find("%", position)
        literal = pattern[position:] if index < 0 else pattern[position:index]
        text, _ = unescape(literal, is_format=True)
        parts.append(text)
        if "\\c" in literal:
            parts[-1] = unescape(literal.partition("\\c")[0], is_format=True)[0]
            return True
        if index < 0:
            return False
        found = SPECIFIER.match(pattern, index)
        if found is None or found[4] is None:
            raise FormatError(f"missing format character: {pattern[index:]}")
        position = found.end()
        text, is_cut = _converted(found, arguments)
        parts.append(text)
        if is_cut:
            return True
    return False


def _converted(found: re.Match[str], arguments: _Arguments) -> tuple[str, bool]:
    """Return the text of one specifier, and whether it ends the output."""
    flags, width_text, precision_text, conversion = found.groups()
    if conversion == "%":
        return "%", False
    width = arguments.integer() if width_text == "*" else int(width_text or 0)
    if width < 0:
        flags += "-"
        width = -width
    has_precision = "." in found[0]
    precision = arguments.integer() if precision_text == "*" else int(precision_text or 0)
    is_cut = False
    match conversion:
        case "s" | "b":
            text = arguments.take() or ""
            if conversion == "b":
                text, is_cut = unescape(text)
            if has_precision:
                text = _cut(text, precision)
        case "c":
            text = _cut(arguments.take() or "", 1)
        case "q":
            text = _quoted(arguments.take() or "")
        case "d" | "i" | "u" | "x" | "X" | "o":
            value = arguments.integer()
            if conversion in "uxXo" and value < 0:
                value += 1 << 64
            text = _digits(
                value,
                conversion,
                flags,
                precision if has_precision else -1,
                width,
            )
        case "f" | "F" | "e" | "E" | "g" | "G":
            size = precision if has_precision else 6
            text = f"%{flags.replace(chr(39), '')}.{size}{conversion}" % arguments.real()
            if "0" in flags and "-" not in flags:
                sign = text[:1] if text[:1] in "+- " else ""
                text = sign + text[len(sign) :].rjust(width - len(sign), "0")
        case _:
            raise FormatError(f"%{conversion}: invalid directive")
    missing = " " * (width - _size(text))
    return (text + missing if "-" in flags else missing + text), is_cut


def _size(text: str) -> int:
    """Return the number of a text's bytes, by which widths count."""
    return len(text.encode("utf-8", "surrogateescape"))


def _cut(text: str, size: int) -> str:
    """Return the first bytes of a text."""
    data = text.encode("utf-8", "surrogateescape")
    return data[:size].decode("utf-8", "surrogateescape")


def _digits(value: int, conversion: str, flags: str, precision: int, width: int) -> str:
    """Return an integer by a conversion."""
    absolute = abs(value)
    letters = {"x": "x", "X": "X", "o": "o"}.get(conversion, "d")
    digits = format(absolute, letters)
    if precision >= 0:
        digits = digits.rjust(precision, "0")
    prefix = ""
    if "#" in flags and absolute:
        prefix = {"x": "0x", "X": "0X", "o": "0"}.get(conversion, "")
    sign = ""
    if value < 0:
        sign = "-"
    elif "+" in flags and conversion in "di":
        sign = "+"
    elif " " in flags and conversion in "di":
        sign = " "
    if "0" in flags and "-" not in flags and precision < 0:
        digits = digits.rjust(width - len(sign) - len(prefix), "0")
    return sign + prefix + digits


def _quoted(text: str) -> str:
    if text and re.fullmatch(r"[A-Za-z0-9_./:@%+=,-]+", text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
