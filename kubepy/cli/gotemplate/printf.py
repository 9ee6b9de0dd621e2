"""Go's ``fmt.Sprintf``, ``Sprint`` and ``Sprintln`` over JSON values (``fmt/print.go``, ``fmt/format.go``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import frexp
from typing import Any, NamedTuple

from kubepy.api.values import goformat
from kubepy.api.values.goformat import format_value, go_syntax
from kubepy.cli.gotemplate.nodes import Boxed, Byte, Int


def type_name(value: Any) -> str:
    """``%T``."""
    return {Int: "int", Byte: "uint8", Boxed: "interface {}"}.get(type(value)) or goformat.type_name(value)


def sprint(values: Sequence[Any]) -> str:
    """With a blank between two that are both no strings."""
    text, before = "", ""
    for index, value in enumerate(values):
        if index and not isinstance(value, str) and not isinstance(before, str):
            text += " "
        text += format_value(value)
        before = value
    return text


def sprintln(values: Sequence[Any]) -> str:
    return " ".join(map(format_value, values)) + "\n"


class Style(NamedTuple):
    """What stands between ``%`` and the verb."""

    flags: str = ""
    width: int = 0
    precision: int = -1

    def pad(self, text: str, zeros: bool = False) -> str:
        if "-" in self.flags:
            return text.ljust(self.width)
        if "0" in self.flags and zeros:
            sign = text[:1] if text[:1] in ("+", "-", " ") else ""
            return sign + text[len(sign):].rjust(self.width - len(sign), "0")
        return text.rjust(self.width)


def sprintf(form: str, values: Sequence[Any]) -> str:
    """Values in a format. What is wrong shows in the text, as ``%!d(string=x)``."""
    return _Format(form, values).run()


TOO_LARGE = 1_000_000  # of a width or precision (``tooLarge``)
DIGITS = tuple("0123456789")


def _small(digits: str) -> int | None:
    """A number of a format; None for what is none, and for one that goes on after it has become too large
    (``parsenum``)."""
    if not digits.isascii() or not digits.isdecimal():
        return None
    significant = digits.lstrip("0")[:len(str(TOO_LARGE)) + 2] or "0"
    return int(significant) if int(significant[:-1] or 0) <= TOO_LARGE else None


class _Format:
    def __init__(self, form: str, values: Sequence[Any]) -> None:
        self.form = form
        self.values = values
        self.at = 0
        self.number = 0  # of the next value
        self.reordered = False
        self.good = True  # whether the index of the argument, if any, was
        self.troubles = ""

    def run(self) -> str:
        text = ""
        while self.at < len(self.form):
            percent = self.form.find("%", self.at)
            end = len(self.form) if percent < 0 else percent
            text += self.form[self.at:end]
            self.at = end
            if percent >= 0:
                text += self.directive()
        return text + self.extra()

    def extra(self) -> str:
        rest = self.values[self.number:]
        if self.reordered or not rest:
            return ""
        return "%!(EXTRA " + ", ".join("<nil>" if one is None else f"{type_name(one)}={format_value(one)}"
                                       for one in rest) + ")"

    def directive(self) -> str:
        self.at += 1
        self.good, self.troubles = True, ""
        flags = self.flags()
        indexed = self.index()
        width, indexed = self.size(indexed, "%!(BADWIDTH)")
        if width < 0:
            flags, width = flags.replace("0", "") + "-", -width
        precision = -1
        if self.form[self.at:self.at + 1] == ".":
            self.at += 1
            self.good = self.good and not indexed
            indexed = self.index()
            starred = self.form[self.at:self.at + 1] == "*"
            precision, indexed = self.size(indexed, "%!(BADPREC)")
            self.troubles += "%!(BADPREC)" if starred and precision < 0 and not self.troubles else ""
        if not indexed:
            self.index()
        return self.troubles + self.verb(Style(flags, width, precision))

    def flags(self) -> str:
        start = self.at
        while self.form[self.at:self.at + 1] in tuple("#0+- "):
            self.at += 1
        flags = self.form[start:self.at]
        return flags.replace("0", "") if "-" in flags else flags

    def index(self) -> bool:
        """``[n]``: the number of the next value."""
        if self.form[self.at:self.at + 1] != "[":
            return False
        self.reordered = True
        end = self.form.find("]", self.at)
        digits = self.form[self.at + 1:end] if end >= 0 else ""
        self.at = end + 1 if end >= 0 else self.at + 1
        number = _small(digits)
        self.good = number is not None and 1 <= number <= len(self.values)
        if number is not None and self.good:
            self.number = number - 1
        return self.good

    def size(self, indexed: bool, trouble: str) -> tuple[int, bool]:
        """A width or precision, of the format or (``*``) of the values; whether an index still waits for its verb."""
        if self.form[self.at:self.at + 1] == "*":
            self.at += 1
            value = self.values[self.number] if self.number < len(self.values) else None
            self.number += 1
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= TOO_LARGE:
                return int(value), False
            self.troubles += trouble
            return 0, False
        start = self.at
        while self.form[self.at:self.at + 1] in DIGITS:
            self.at += 1
        digits = self.form[start:self.at]
        self.good = self.good and not (digits and indexed)
        size = _small(digits or "0")
        if size is None:  # "crazy long" to Go, which reads no further
            self.at = len(self.form)
        return size or 0, indexed

    def verb(self, style: Style) -> str:
        if self.at >= len(self.form):
            return "%!(NOVERB)"
        verb = self.form[self.at]
        self.at += 1
        if verb == "%":
            return "%"
        if not self.good:
            return f"%!{verb}(BADINDEX)"
        if self.number >= len(self.values):
            return f"%!{verb}(MISSING)"
        self.number += 1
        return format_one(verb, self.values[self.number - 1], style)


PLAIN = Style()


def format_one(verb: str, value: Any, style: Style = PLAIN) -> str:
    """One value with one verb."""
    if verb == "v":
        style = style._replace(flags=style.flags.replace("+", ""))  # %+v names the fields of structs
    if verb == "T":
        return style.pad(type_name(value) if value is not None else "<nil>")
    if verb == "v" and "#" in style.flags:
        return go_syntax(value) if value is not None else "<nil>"
    if value is None:
        return style.pad("<nil>", zeros=True) if verb == "v" else f"%!{verb}(<nil>)"
    return _formed(verb, value, style)


def _formed(verb: str, value: Any, style: Style) -> str:
    if value is None:
        return "<nil>"
    form = next((form for kind, form in _FORMS.items() if isinstance(value, kind)), _compound)
    return form(verb, value, style)


def bad(verb: str, value: Any, style: Style) -> str:
    """A verb that does not fit: what the value is without one, padded all the same."""
    return f"%!{verb}({type_name(value)}={_formed('v', value, style)})"


def _bool(verb: str, value: bool, style: Style) -> str:
    return style.pad("true" if value else "false", zeros=True) if verb in "tv" else bad(verb, value, style)


def _compound(verb: str, value: Any, style: Style) -> str:
    """Lists and maps: each of their values with the verb."""
    if verb == "p":
        return bad(verb, value, style)
    if isinstance(value, dict):
        pairs = (f"{_formed(verb, key, style)}:{_formed(verb, value[key], style)}" for key in sorted(value))
        return f"map[{' '.join(pairs)}]"
    return f"[{' '.join(_formed(verb, one, style) for one in value)}]"


def _string(verb: str, value: str, style: Style) -> str:
    if verb in "xX":
        data = value.encode() if style.precision < 0 else value.encode()[:style.precision]
        digits = [f"{byte:02x}" for byte in data]
        prefix = "0x" if "#" in style.flags else ""
        joined = f" {prefix}".join(digits) if " " in style.flags else "".join(digits)
        text = prefix + joined if digits else ""
        return style.pad(text.upper() if verb == "X" else text)
    if verb not in "svq":
        return bad(verb, value, style)
    if style.precision >= 0:
        value = value[:style.precision]
    if verb == "q":
        value = _quoted(value, style)
    return style.pad(value, zeros=True)


def _quoted(value: str, style: Style) -> str:
    if "#" in style.flags and "`" not in value and (value.isprintable() or value.replace("\t", "").isprintable()):
        return f"`{value}`"
    text = goformat.quote(value)
    return _ascii(text) if "+" in style.flags else text


def _ascii(text: str) -> str:
    return "".join(one if one.isascii() else f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"
                   for one in text)


_BASES = {"d": ("d", ""), "v": ("d", ""), "b": ("b", "0b"), "o": ("o", "0"), "O": ("o", "0o"), "x": ("x", "0x"),
          "X": ("X", "0X")}


def _integer(verb: str, value: int, style: Style) -> str:
    if verb == "c":
        return style.pad(chr(value) if 0 <= value < 0x110000 else "\ufffd")
    if verb == "q":
        character = chr(value) if 0 <= value < 0x110000 else "\ufffd"
        inner = goformat.quote(character)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return style.pad(f"'{_ascii(inner) if '+' in style.flags else inner}'")
    if verb == "U":
        return style.pad(_code_point(value, sharp="#" in style.flags))
    if verb not in _BASES:
        return bad(verb, value, style)
    letter, prefix = _BASES[verb]
    digits = format(abs(value), letter)
    if style.precision >= 0:
        digits = "" if style.precision == 0 and value == 0 else digits.rjust(style.precision, "0")
    if verb == "O" or "#" in style.flags:
        digits = prefix + digits
    return style.pad(_sign(value < 0, style) + digits, zeros=style.precision < 0)


def _code_point(value: int, *, sharp: bool) -> str:
    if sharp and 0 <= value < 0x110000:
        return goformat.code_point(chr(value))
    return f"U+{value % 2**64:04X}"


def _sign(negative: bool, style: Style) -> str:
    if negative:
        return "-"
    return "+" if "+" in style.flags else " " if " " in style.flags else ""


def _float(verb: str, value: float, style: Style) -> str:
    sharp = "#" if "#" in style.flags else ""
    if verb in "vgG" and style.precision < 0:
        text = _six_digits(format_value(abs(value))) if sharp else format_value(abs(value))
        text = text.upper() if verb == "G" else text
    elif verb in "xX":
        text = _hexadecimal(abs(value))
        text = text.upper() if verb == "X" else text
    elif verb == "b":
        text = _power_of_two(abs(value))
    elif verb in "eEfFgGv":
        precision = 6 if style.precision < 0 else style.precision
        text = format(abs(value), f"{sharp}.{precision}{'g' if verb == 'v' else verb}")
    else:
        return bad(verb, value, style)
    return style.pad(_sign(value < 0, style) + text, zeros=True)


def _six_digits(text: str) -> str:
    """With a point, and zeros up to six digits (``#``)."""
    mantissa, e, exponent = text.partition("e")
    digits = len(mantissa.replace(".", "").lstrip("0"))
    return mantissa + ("" if "." in mantissa else ".") + "0" * (6 - digits) + e + exponent


def _power_of_two(value: float) -> str:
    """``4503599627370496p-52``: all 53 bits as an integer."""
    mantissa, exponent = frexp(value)
    return f"{int(mantissa * 2**53)}p{exponent - 53 if value else -1074:+d}"


def _hexadecimal(value: float) -> str:
    mantissa, _, exponent = value.hex().partition("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{exponent[0]}{exponent[1:]:0>2}"


# bool before int, which it is one of
_FORMS: dict[type, Callable[[str, Any, Style], str]] = {bool: _bool, str: _string, int: _integer,
                                                         float: _float}
