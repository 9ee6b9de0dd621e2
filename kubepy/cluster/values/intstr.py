"""``intstr.IntOrString``: a number, or a percentage of one (``apimachinery/pkg/util/intstr``)."""

from __future__ import annotations


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number as it is, ``"30%"`` of ``total``; None is 0. Raises ValueError for anything else."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value[:-1] if value.endswith("%") else ""
    if not digits.removeprefix("-").isdecimal():
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    product = int(digits) * total
    return -(-product // 100) if round_up else product // 100
