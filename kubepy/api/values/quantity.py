"""Amounts of cpu, memory and the like: ``resource.Quantity``
(``k8s.io/apimachinery/pkg/api/resource``).

A quantity is a whole number of billionths and the family of suffixes of its text. Equal amounts
compare equal, whatever their suffixes; ``str()`` returns the canonical form that the API server
stores (``1.5`` is ``1500m``).
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import NamedTuple

from kubepy.api.values.gonumbers import int_or_none

DECIMAL_SI = "DecimalSI"
BINARY_SI = "BinarySI"
DECIMAL_EXPONENT = "DecimalExponent"

NANO = 10**9
_MAX = (2**63 - 1) * NANO
# No real amount comes near these; 1e999999999 would take all memory to compare.
MAX_DIGITS = 1000
_MAX_EXPONENT = 1000

FORMAT_WRONG = (
    r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"

_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIXES = {suffix: (10, exponent, DECIMAL_SI) for suffix, exponent in _DECIMAL.items()} | {
    suffix: (2, exponent, BINARY_SI) for suffix, exponent in _BINARY.items()
}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}


class QuantityError(ValueError):
    """A text that is not a quantity, in upstream's words."""


@total_ordering
class Quantity:
    """An immutable amount. ``nanos``: billionths; ``format``: DecimalSI, BinarySI or
    DecimalExponent.

    ``text``: the original text, if upstream keeps it (it accepts more texts as canonical than it
    would print itself).
    """

    __slots__ = ("format", "nanos", "text")

    def __init__(self, nanos: int, format: str = DECIMAL_SI, text: str = "") -> None:
        self.nanos = nanos
        self.format = format
        self.text = text

    @classmethod
    def parse(cls, value: str | int | float) -> Quantity:
        """Read a quantity of a manifest. Raises QuantityError."""
        return parse_quantity(value if isinstance(value, str) else repr(value))

    @classmethod
    def of(cls, value: int, format: str = DECIMAL_SI) -> Quantity:
        return cls(value * NANO, format)

    @classmethod
    def of_milli(cls, value: int, format: str = DECIMAL_SI) -> Quantity:
        return cls(value * 10**6, format)

    def value(self) -> int:
        """Return the whole number, rounded up, at most an int64 (``Value``)."""
        return _int64(-(-self.nanos // NANO))

    def milli_value(self) -> int:
        """Return thousandths, rounded up, at most an int64 (``MilliValue``)."""
        return _int64(-(-self.nanos // 10**6))

    def is_zero(self) -> bool:
        return self.nanos == 0

    def __add__(self, other: Quantity) -> Quantity:
        """Return the sum, in the family of the first summand unless that is zero."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        return self.text or _canonical(self.nanos, self.format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _int64(value: int) -> int:
    return max(-(2**63), min(value, 2**63 - 1))


class Int64Amount(NamedTuple):
    """An amount ``value * 10**scale``, as which upstream holds most quantities in memory; for pod
    template hashes."""

    value: int
    scale: int


class ScannedQuantity(NamedTuple):
    """A quantity, and its ``int64Amount`` if upstream holds it as one (otherwise as an
    ``inf.Dec``)."""

    quantity: Quantity
    amount: Int64Amount | None


def parse_quantity(text: str) -> Quantity:
    """Read a quantity of a manifest (``ParseQuantity``). Raises QuantityError."""
    return scan(text).quantity


def is_quantity(text: str) -> bool:
    try:
        scan(text)
    except QuantityError:
        return False
    return True


@lru_cache(maxsize=4096)
def scan(text: str) -> ScannedQuantity:
    """Read a quantity together with its representation in upstream's memory. Raises
    QuantityError."""
    match = _PATTERN.fullmatch(text)
    if match is None or not text:
        raise QuantityError(FORMAT_WRONG)
    if text == "0":
        return ScannedQuantity(Quantity(0, DECIMAL_SI, text), Int64Amount(0, 0))
    sign = match[1]
    number = match[2].lstrip("0") or "0"
    fraction = match[3] or ""
    suffix = match[4]
    base, exponent, format = _interpret(suffix)
    digits = number + fraction
    if len(digits) > MAX_DIGITS:
        raise QuantityError(NUMERIC_WRONG)
    amount = _int64_amount(number, fraction, exponent, format)
    if format == BINARY_SI:
        is_canonical = exponent % 10 == 0 and int(digits) & 7 != 0
    else:
        is_canonical = (
            (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        )

    up = base ** max(exponent, 0)
    down = base ** max(-exponent, 0) * 10 ** len(fraction)
    nanos = -(-int(digits) * up * NANO // down)  # rounded up
    if format == BINARY_SI:
        nanos = min(nanos, _MAX)
        format = DECIMAL_SI if 0 < nanos < NANO else format
    kept_text = text if amount is not None and is_canonical else ""
    if sign != "-":
        return ScannedQuantity(Quantity(nanos, format, kept_text), amount)
    return ScannedQuantity(
        Quantity(-nanos, format, kept_text), amount and Int64Amount(-amount.value, amount.scale)
    )


def _int64_amount(number: str, fraction: str, exponent: int, format: str) -> Int64Amount | None:
    """Follow the fast path of ``ParseQuantity``: for few enough digits, none of them finer than
    billionths."""
    if format == BINARY_SI:
        precision = -1 if fraction else 15 - len(number) - exponent * 3 // 10 - 1
        factor = 2**exponent
        scale = 0
    else:
        precision = 18 - len(number + fraction)
        factor = 1
        scale = exponent - len(fraction)
    value = int(number + fraction) * factor
    if precision >= 0 and scale >= -9 and value < 2**63:
        return Int64Amount(value, scale)
    return None


def _interpret(suffix: str) -> tuple[int, int, str]:
    """Return base, exponent and family of a suffix."""
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    exponent = int_or_none(suffix[1:]) if suffix[0] in "eE" else None
    if exponent is None or abs(exponent) > _MAX_EXPONENT:
        raise QuantityError(SUFFIX_WRONG)
    return 10, exponent, DECIMAL_EXPONENT


def _canonical(nanos: int, format: str) -> str:
    """Print an amount with the largest suffix that leaves a whole number."""
    if nanos == 0:
        return "0"
    if format == BINARY_SI and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        mantissa, exponent = _without_factors(nanos // NANO, 1024, 6)
        return f"{mantissa}{_BINARY_SUFFIX.get(exponent * 10, '')}"
    powers = _MAX_EXPONENT if format == DECIMAL_EXPONENT else 9
    mantissa, thousands = _without_factors(nanos, 1000, powers)
    exponent = thousands * 3 - 9
    if format == DECIMAL_EXPONENT:
        if exponent:
            return f"{mantissa}e{exponent}"
        return str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"


def _without_factors(number: int, factor: int, most: int) -> tuple[int, int]:
    """Divide a number by a factor while there is no remainder, at most ``most`` times; return it
    and the count."""
    times = 0
    while times < most and number % factor == 0:
        number //= factor
        times += 1
    return number, times
