"""Types that read and write their JSON themselves: times, quantities, int-or-string, free-form JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.types.errors import DecodeError, Where, mismatch
from kubepy.api.types.times import decode_micro_time, decode_time

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def _time(value: Any, where: Where, state: list[str]) -> str | None:
    return None if value is None else decode_time(_text(value, where))


def _micro_time(value: Any, where: Where, state: list[str]) -> str | None:
    return None if value is None else decode_micro_time(_text(value, where))


def _text(value: Any, where: Where) -> str:
    if type(value) is not str:
        raise mismatch(value, where, "string")
    return value


def _quantity(value: Any, where: Where, state: list[str]) -> str:
    from kubepy.api.values.quantity import FORMAT_WRONG, Quantity, QuantityError

    if value is None:
        return "0"
    if isinstance(value, bool | dict | list):
        raise DecodeError(FORMAT_WRONG)
    try:  # white space around a quantity is the JSON decoder's to forgive, not the parser's
        return str(Quantity.parse(value.strip() if isinstance(value, str) else value))
    except QuantityError as error:
        raise DecodeError(str(error)) from None


def _int_or_string(value: Any, where: Where, state: list[str]) -> int | str:
    if type(value) is str or (type(value) is int and INT32_MIN <= value <= INT32_MAX):
        return value
    if value is None:
        return 0
    if type(value) is float and value.is_integer() and INT32_MIN <= value <= INT32_MAX:
        return int(value)
    raise mismatch(value, where, "int32", exactly=True)


def _free_form(value: Any, where: Where, state: list[str]) -> Any:
    return value


SPECIAL: dict[str, Callable[[Any, Where, list[str]], Any]] = {
    "meta/v1.Time": _time,
    "meta/v1.MicroTime": _micro_time,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "meta/v1.FieldsV1": _free_form,
    "runtime.RawExtension": _free_form,
    "apiextensions/v1.JSON": _free_form,
}
