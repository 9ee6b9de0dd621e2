"""Integers in texts, read as Go's ``strconv`` reads them, and ``intstr.IntOrString``.

Python refuses to read integers of more than 4,300 digits with an error of its own; here a number
that does not fit into its bits is out of range, however long it is. Digits are ASCII; Python's
``int`` takes others, blanks and ``_``.
"""

from __future__ import annotations

import re

from kubepy.quoting import quote

_DECIMAL = r"[+-]?[0-9]+"
_MOST_DIGITS = 20  # of 64 bits


class NumberError(ValueError):
    """A text that is not a number of this size, in Go's words:
    ``strconv.Atoi: parsing "x": invalid syntax``."""


def parse_int(text: str, bits: int = 64, function: str = "ParseInt") -> int:
    """Read a decimal integer of so many bits (``strconv.ParseInt(text, 10, bits)``). Raises
    NumberError."""
    if not re.fullmatch(_DECIMAL, text):
        raise number_error(text, function, "invalid syntax")
    value = _bounded(text)
    if value is None or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise number_error(text, function, "value out of range")
    return value


def parse_uint(text: str, bits: int = 64) -> int:
    """Read a decimal integer without a sign (``strconv.ParseUint(text, 10, bits)``). Raises
    NumberError."""
    if not re.fullmatch(_DECIMAL, text) or text[0] in "+-":
        raise number_error(text, "ParseUint", "invalid syntax")
    value = _bounded(text)
    if value is None or value >= 2**bits:
        raise number_error(text, "ParseUint", "value out of range")
    return value


def atoi(text: str) -> int:
    """Read an ``int`` (``strconv.Atoi``). Raises NumberError."""
    return parse_int(text, function="Atoi")


def int_or_none(text: str, bits: int = 64) -> int | None:
    """Read a decimal integer of so many bits; None for anything else."""
    try:
        return parse_int(text, bits)
    except NumberError:
        return None


def _bounded(text: str) -> int | None:
    """Return the value of decimal digits; None if they do not fit into 64 bits."""
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    if text[0] == "-":
        return -int(digits)
    return int(digits)


def number_error(text: str, function: str, problem: str) -> NumberError:
    return NumberError(f"strconv.{function}: parsing {quote(text)}: {problem}")


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Return a number as it is, and ``"30%"`` as that part of ``total``; None is 0. Raises
    ValueError for all else.

    Upstream: ``GetScaledValueFromIntOrPercent`` in ``apimachinery/pkg/util/intstr``.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    try:
        product = atoi(value[:-1]) * total
    except NumberError as error:
        raise ValueError(
            f"invalid value for IntOrString: invalid value {quote(value)}: {error}"
        ) from None

    if round_up:
        return -(-product // 100)
    return product // 100
