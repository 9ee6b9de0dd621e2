"""``intstr.IntOrString``: a number, or a percentage of one (``apimachinery/pkg/util/intstr``)."""

from __future__ import annotations

from kubepy.api.values.goformat import quote
from kubepy.api.values.gonumbers import NumberError, atoi


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number as it is, ``"30%"`` of ``total``; None is 0. Raises ValueError for anything else."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    try:
        product = atoi(value[:-1]) * total
    except NumberError as error:
        raise ValueError(f"invalid value for IntOrString: invalid value {quote(value)}: {error}") from None
    return -(-product // 100) if round_up else product // 100
