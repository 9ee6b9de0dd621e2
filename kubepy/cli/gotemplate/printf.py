"""Format JSON values as Go's ``Sprintf``, ``Sprint`` and ``Sprintln`` do (``fmt/print.go``,
``fmt/format.go``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import frexp
from typing import Any, NamedTuple

from kubepy.api.values import goformat
from kubepy.api.values.goformat import format_value, go_syntax
from kubepy.cli.gotemplate.nodes import Boxed, Byte, Int


def type_name(value: Any) -> str:
    """Return the type as ``%T`` prints it."""
    return {Int: "int", Byte: "uint8", Boxed: "interface {}"}.get(
        type(value)
    ) or goformat.type_name(value)


def sprint(values: Sequence[Any]) -> str:
    """Concatenate values, with a space between two of which neither is a string."""
    text = ""
    before = ""
    for index, value in enumerate(values):
        if index and not isinstance(value, str) and not isinstance(before, str):
            text += " "
        text += format_value(value)
        before = value
    return text


def sprintln(values: Sequence[Any]) -> str:
    return " ".join(map(format_value, values)) + "\n"


class FormatSpec(NamedTuple):
    """The flags, width and precision between ``%`` and the verb."""

    flags: str = ""
    width: int = 0
    precision: int = -1

    def pad(self, text: str, zeros: bool = False) -> str:
        if "-" in self.flags:
            return text.ljust(self.width)
        if "0" in self.flags and zeros:
            sign = text[:1] if text[:1] in ("+", "-", " ") else ""
            return sign + text[len(sign) :].rjust(self.width - len(sign), "0")
        return text.rjust(self.width)


def sprintf(template: str, values: Sequence[Any]) -> str:
    """Format values by a template. Mistakes show in the text, as ``%!d(string=x)``."""
    return _Formatter(template, values).run()


TOO_LARGE = 1_000_000  # of a width or precision (``tooLarge``)
DIGITS = tuple("0123456789")


def _small(digits: str) -> int | None:
    """Return a number of a template (``parsenum``); None for other text, and for one that grows too
    large."""
    if not digits.isascii() or not digits.isdecimal():
        return None
    significant = digits.lstrip("0")[: len(str(TOO_LARGE)) + 2] or "0"
    if int(significant[:-1] or 0) <= TOO_LARGE:
        return int(significant)
    return None


class _Formatter:
    def __init__(self, template: str, values: Sequence[Any]) -> None:
        self.template = template
        self.values = values
        self.at = 0
        self.number = 0  # of the next value
        self.reordered = False
        self.good = True  # whether the argument's index, if there is one, is valid
        self.problems = ""

    def run(self) -> str:
        text = ""
        while self.at < len(self.template):
            percent = self.template.find("%", self.at)
            end = len(self.template) if percent < 0 else percent
            text += self.template[self.at : end]
            self.at = end
            if percent >= 0:
                text += self.directive()

        rest = self.values[self.number :]
        if self.reordered or not rest:
            return text
        extra = (
            "<nil>" if value is None else f"{type_name(value)}={format_value(value)}"
            for value in rest
        )
        return f"{text}%!(EXTRA {', '.join(extra)})"

    def directive(self) -> str:
        """Format one directive: ``%``, flags, width, precision and verb."""
        self.at += 1
        self.good = True
        self.problems = ""
        flags = self.flags()
        indexed = self.index()
        width, indexed = self.size(indexed, "%!(BADWIDTH)")
        if width < 0:
            flags = flags.replace("0", "") + "-"
            width = -width
        precision = -1
        if self.template[self.at : self.at + 1] == ".":
            self.at += 1
            self.good = self.good and not indexed
            indexed = self.index()
            starred = self.template[self.at : self.at + 1] == "*"
            precision, indexed = self.size(indexed, "%!(BADPREC)")
            self.problems += (
                "%!(BADPREC)" if starred and precision < 0 and not self.problems else ""
            )

        if not indexed:
            self.index()
        return self.problems + self.verb(FormatSpec(flags, width, precision))

    def flags(self) -> str:
        start = self.at
        while self.template[self.at : self.at + 1] in tuple("#0+- "):
            self.at += 1
        flags = self.template[start : self.at]
        if "-" in flags:
            return flags.replace("0", "")
        return flags

    def index(self) -> bool:
        """Read ``[n]``, the number of the next value. Return whether there was a valid one."""
        if self.template[self.at : self.at + 1] != "[":
            return False
        self.reordered = True
        end = self.template.find("]", self.at)
        digits = self.template[self.at + 1 : end] if end >= 0 else ""
        self.at = end + 1 if end >= 0 else self.at + 1
        number = _small(digits)
        self.good = number is not None and 1 <= number <= len(self.values)
        if number is not None and self.good:
            self.number = number - 1
        return self.good

    def size(self, indexed: bool, problem: str) -> tuple[int, bool]:
        """Return a width or precision, of the template or (``*``) of a value, and whether an index
        is still unused."""
        if self.template[self.at : self.at + 1] == "*":
            self.at += 1
            value = self.values[self.number] if self.number < len(self.values) else None
            self.number += 1
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= TOO_LARGE:
                return int(value), False
            self.problems += problem
            return 0, False

        start = self.at
        while self.template[self.at : self.at + 1] in DIGITS:
            self.at += 1
        digits = self.template[start : self.at]
        self.good = self.good and not (digits and indexed)
        size = _small(digits or "0")
        if size is None:  # "crazy long" to Go, which reads no further
            self.at = len(self.template)
        return size or 0, indexed

    def verb(self, spec: FormatSpec) -> str:
        if self.at >= len(self.template):
            return "%!(NOVERB)"
        verb = self.template[self.at]
        self.at += 1
        if verb == "%":
            return "%"
        if not self.good:
            return f"%!{verb}(BADINDEX)"
        if self.number >= len(self.values):
            return f"%!{verb}(MISSING)"
        self.number += 1
        return format_one(verb, self.values[self.number - 1], spec)


PLAIN = FormatSpec()


def format_one(verb: str, value: Any, spec: FormatSpec = PLAIN) -> str:
    """Format a value with a verb."""
    if verb == "v":
        spec = spec._replace(flags=spec.flags.replace("+", ""))  # %+v names the fields of structs
    if verb == "T":
        return spec.pad(type_name(value) if value is not None else "<nil>")
    if verb == "v" and "#" in spec.flags:
        if value is not None:
            return go_syntax(value)
        return "<nil>"
    if value is None:
        if verb == "v":
            return spec.pad("<nil>", zeros=True)
        return f"%!{verb}(<nil>)"
    return _format_plain(verb, value, spec)


def _format_plain(verb: str, value: Any, spec: FormatSpec) -> str:
    if value is None:
        return "<nil>"
    formatter = next(
        (formatter for kind, formatter in _FORMATTERS.items() if isinstance(value, kind)), _compound
    )
    return formatter(verb, value, spec)


def bad(verb: str, value: Any, spec: FormatSpec) -> str:
    """Format a value whose type does not fit its verb; the value is padded all the same."""
    return f"%!{verb}({type_name(value)}={_format_plain('v', value, spec)})"


def _bool(verb: str, value: bool, spec: FormatSpec) -> str:
    if verb in "tv":
        return spec.pad("true" if value else "false", zeros=True)
    return bad(verb, value, spec)


def _compound(verb: str, value: Any, spec: FormatSpec) -> str:
    """Format the values of a list or map with the verb."""
    if verb == "p":
        return bad(verb, value, spec)
    if isinstance(value, dict):
        pairs = (
            f"{_format_plain(verb, key, spec)}:{_format_plain(verb, value[key], spec)}"
            for key in sorted(value)
        )
        return f"map[{' '.join(pairs)}]"
    return f"[{' '.join(_format_plain(verb, item, spec) for item in value)}]"


def _string(verb: str, value: str, spec: FormatSpec) -> str:
    if verb in "xX":
        data = value.encode() if spec.precision < 0 else value.encode()[: spec.precision]
        digits = [f"{byte:02x}" for byte in data]
        prefix = "0x" if "#" in spec.flags else ""
        joined = f" {prefix}".join(digits) if " " in spec.flags else "".join(digits)
        text = prefix + joined if digits else ""
        return spec.pad(text.upper() if verb == "X" else text)

    if verb not in "svq":
        return bad(verb, value, spec)
    text = value[: spec.precision] if spec.precision >= 0 else value
    if verb == "q":
        is_raw = (
            "#" in spec.flags
            and "`" not in text
            and (text.isprintable() or text.replace("\t", "").isprintable())
        )
        if is_raw:
            text = f"`{text}`"
        else:
            text = goformat.quote(text)
            if "+" in spec.flags:
                text = _ascii(text)

    return spec.pad(text, zeros=True)


def _ascii(text: str) -> str:
    return "".join(map(_ascii_character, text))


def _ascii_character(character: str) -> str:
    if character.isascii():
        return character
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


_BASES = {
    "d": ("d", ""),
    "v": ("d", ""),
    "b": ("b", "0b"),
    "o": ("o", "0"),
    "O": ("o", "0o"),
    "x": ("x", "0x"),
    "X": ("X", "0X"),
}


def _integer(verb: str, value: int, spec: FormatSpec) -> str:
    if verb == "c":
        return spec.pad(chr(value) if 0 <= value < 0x110000 else "\ufffd")
    if verb == "q":
        character = chr(value) if 0 <= value < 0x110000 else "\ufffd"
        inner = goformat.quote(character)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return spec.pad(f"'{_ascii(inner) if '+' in spec.flags else inner}'")

    if verb == "U":
        is_character = "#" in spec.flags and 0 <= value < 0x110000
        return spec.pad(
            goformat.code_point(chr(value)) if is_character else f"U+{value % 2**64:04X}"
        )

    if verb not in _BASES:
        return bad(verb, value, spec)
    letter, prefix = _BASES[verb]
    digits = format(abs(value), letter)
    if spec.precision >= 0:
        digits = "" if spec.precision == 0 and value == 0 else digits.rjust(spec.precision, "0")
    if verb == "O" or "#" in spec.flags:
        digits = prefix + digits
    return spec.pad(_sign(value < 0, spec) + digits, zeros=spec.precision < 0)


def _sign(negative: bool, spec: FormatSpec) -> str:
    if negative:
        return "-"
    if "+" in spec.flags:
        return "+"
    if " " in spec.flags:
        return " "
    return ""


def _float(verb: str, value: float, spec: FormatSpec) -> str:
    sharp = "#" if "#" in spec.flags else ""
    if verb in "vgG" and spec.precision < 0:
        text = format_value(abs(value))
        if sharp:  # a point, and zeros up to six digits
            mantissa, e, exponent = text.partition("e")
            digits = len(mantissa.replace(".", "").lstrip("0"))
            text = mantissa + ("" if "." in mantissa else ".") + "0" * (6 - digits) + e + exponent
        text = text.upper() if verb == "G" else text
    elif verb in "xX":
        mantissa, _, exponent = abs(value).hex().partition("p")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        text = f"{mantissa}p{exponent[0]}{exponent[1:]:0>2}"
        text = text.upper() if verb == "X" else text
    elif verb == "b":  # all 53 bits as an integer: 4503599627370496p-52
        fraction, power = frexp(abs(value))
        text = f"{int(fraction * 2**53)}p{power - 53 if value else -1074:+d}"
    elif verb in "eEfFgGv":
        precision = 6 if spec.precision < 0 else spec.precision
        text = format(abs(value), f"{sharp}.{precision}{'g' if verb == 'v' else verb}")
    else:
        return bad(verb, value, spec)

    return spec.pad(_sign(value < 0, spec) + text, zeros=True)


# bool stands before int, of which it is a subclass.
_FORMATTERS: dict[type, Callable[[str, Any, FormatSpec], str]] = {
    bool: _bool,
    str: _string,
    int: _integer,
    float: _float,
}
