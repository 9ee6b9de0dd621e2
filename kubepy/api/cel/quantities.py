"""Functions of quantities and semantic versions
(``apiserver/pkg/cel/library/{quantity,semverlib}.go``)."""

from __future__ import annotations

import re

from kubepy.api.cel.operators import to_int
from kubepy.api.cel.types import overload
from kubepy.api.cel.values import INT_MAX, INT_MIN, CelError, Semver
from kubepy.api.values.goformat import quote
from kubepy.api.values.gonumbers import int_or_none, number_error
from kubepy.api.values.quantity import NANO, Quantity, QuantityError, is_quantity

_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)


@overload("isQuantity(string) -> bool")
def _is_quantity(text: str) -> bool:
    return is_quantity(text)


@overload("quantity(string) -> quantity")
def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise CelError(str(error)) from None


@overload("quantity.sign() -> int")
def _sign(quantity: Quantity) -> int:
    return (quantity.nanos > 0) - (quantity.nanos < 0)


@overload("quantity.isInteger() -> bool")
def _is_integer(quantity: Quantity) -> bool:
    return quantity.nanos % NANO == 0 and INT_MIN <= quantity.nanos // NANO <= INT_MAX


@overload("quantity.asInteger() -> int")
def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return to_int(quantity.nanos // NANO)


@overload("quantity.asApproximateFloat() -> double")
def _as_float(quantity: Quantity) -> float:
    return quantity.nanos / NANO


@overload("quantity.isGreaterThan(quantity) -> bool")
def _greater(quantity: Quantity, other: Quantity) -> bool:
    return quantity > other


@overload("quantity.isLessThan(quantity) -> bool")
def _less(quantity: Quantity, other: Quantity) -> bool:
    return quantity < other


@overload("quantity.compareTo(quantity) -> int")
def _compare(quantity: Quantity, other: Quantity) -> int:
    return (quantity > other) - (quantity < other)


@overload("quantity.add(quantity) -> quantity")
def _add(quantity: Quantity, other: Quantity) -> Quantity:
    return quantity + other


@overload("quantity.sub(quantity) -> quantity")
def _sub(quantity: Quantity, other: Quantity) -> Quantity:
    return quantity - other


@overload("quantity.add(int) -> quantity")
def _add_whole(quantity: Quantity, other: int) -> Quantity:
    return quantity + Quantity.of(other)


@overload("quantity.sub(int) -> quantity")
def _sub_whole(quantity: Quantity, other: int) -> Quantity:
    return quantity - Quantity.of(other)


# --- semantic versions ----------------------------------------------------------------------------


def _normalized(text: str) -> str:
    """Write versions such as ``v1.2`` and ``01.2.3`` in full."""
    core, separator, rest = re.sub(r"^v", "", text).partition("-")
    parts = [part.lstrip("0") or part[:1] for part in core.split(".")]
    return ".".join([*parts, *["0"] * (3 - len(parts))]) + separator + rest


def _parse(text: str, *, normalize: bool) -> Semver | None:
    match = _SEMVER.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        return None
    numbers = [
        match[1],
        match[2],
        match[3],
        *(part for part in (match[4] or "").split(".") if part.isdecimal()),
    ]
    if any(len(number) > 1 and int_or_none(number) is None for number in numbers):
        return None
    return Semver(int(match[1]), int(match[2]), int(match[3]), match[4] or "")


@overload("isSemver(string) -> bool", "isSemver(string, bool) -> bool")
def _is_semver(text: str, normalize: bool = False) -> bool:
    return _parse(text, normalize=normalize) is not None


@overload("semver(string) -> semver", "semver(string, bool) -> semver")
def _semver(text: str, normalize: bool = False) -> Semver:
    version = _parse(text, normalize=normalize)
    if version is None:
        raise CelError(_semver_error(_normalized(text) if normalize else text))
    return version


def _semver_error(text: str) -> str:
    """Return the error of a text that is not a version, in the words of ``blang/semver``."""
    parts = text.split(".", 2)
    if not text or len(parts) < 3:
        if text:
            return "No Major.Minor.Patch elements found"
        return "Version string empty"

    for name, part in zip(
        ("major", "minor", "patch"), (*parts[:2], re.split("[-+]", parts[2])[0]), strict=True
    ):
        if not re.fullmatch("[0-9]+", part):
            return f"Invalid character(s) found in {name} number {quote(part)}"
        if len(part) > 1 and part.startswith("0"):
            return f"{name.title()} number must not contain leading zeroes {quote(part)}"
        if int_or_none(part) is None:
            return str(number_error(part, "ParseUint", "value out of range"))

    return f"Invalid character(s) found in prerelease {quote(parts[2].partition('-')[2])}"


@overload("semver.major() -> int")
def _major(version: Semver) -> int:
    return version.major


@overload("semver.minor() -> int")
def _minor(version: Semver) -> int:
    return version.minor


@overload("semver.patch() -> int")
def _patch(version: Semver) -> int:
    return version.patch


def _rank(version: Semver) -> tuple[object, ...]:
    """Return a sort key: a version with a pre-release comes before the one without, numbers come
    before words."""
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in version.prerelease.split(".")
    )
    return (version.major, version.minor, version.patch, not version.prerelease, parts)


@overload("semver.compareTo(semver) -> int")
def _compare_versions(version: Semver, other: Semver) -> int:
    return (_rank(version) > _rank(other)) - (_rank(version) < _rank(other))


@overload("semver.isGreaterThan(semver) -> bool")
def _is_newer(version: Semver, other: Semver) -> bool:
    return _rank(version) > _rank(other)


@overload("semver.isLessThan(semver) -> bool")
def _is_older(version: Semver, other: Semver) -> bool:
    return _rank(version) < _rank(other)
