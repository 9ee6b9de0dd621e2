"""``--sort-by``. Upstream: ``kubectl/pkg/cmd/get/sorter.go``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any, NamedTuple

from kubepy.api.jsonpath import JSONPath, JSONPathError, parse, relaxed
from kubepy.api.meta import Object
from kubepy.api.values.goformat import type_name
from kubepy.cli.errors import CliError
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api.values import quantity as quantities


class UnsortableError(CliError):
    """A field that has values without an order."""


class _Valued(NamedTuple):
    """An object and the values of the field that it is sorted by; none: it has no such field."""

    values: list[Any]
    obj: Object


def sort_path(field: str) -> JSONPath:
    """Return the path of ``--sort-by``. Raises CliError."""
    try:
        return parse(relaxed(field), True)
    except JSONPathError as error:
        raise CliError(str(error)) from None


def sorted_by(field: str, objects: Sequence[Object]) -> list[Object]:
    """Sort objects by a field. Raises CliError if no object has it, UnsortableError if its values
    have no order.

    Objects without the field come first, in reverse: upstream's comparison calls an absent value
    less than any other, another absent one included.
    """
    path = sort_path(field)
    try:
        candidates = [_Valued((path.find(obj) or [[]])[0], obj) for obj in objects]
    except JSONPathError as error:
        raise CliError(str(error)) from None

    if objects and not any(valued.values for valued in candidates):
        raise no_such_field(field)

    def compare(left: _Valued, right: _Valued) -> int:
        left_value = left.values[0]
        right_value = right.values[0]
        if _less(field, left_value, right_value):
            return -1
        return int(_less(field, right_value, left_value))

    absent = [valued.obj for valued in reversed(candidates) if not valued.values]
    in_order = sorted((valued for valued in candidates if valued.values), key=cmp_to_key(compare))
    return absent + [valued.obj for valued in in_order]


def no_such_field(field: str) -> CliError:
    return CliError(
        f"couldn't find any field with path {quote(relaxed(field))} in the list of objects"
    )


def _less(field: str, left: Any, right: Any) -> bool:
    """Compare as Go's isLess: strings as quantities when both are. Raises CliError."""
    if left is None or right is None:
        return left is None and right is not None
    if isinstance(left, bool | list | dict):
        raise _unsortable(field, f"unsortable type: {type_name(left)}")
    if type(left) is not type(right):
        raise _unsortable(field, "unsortable interface: interface")
    quantities = _quantity(left), _quantity(right)
    return bool(left < right if None in quantities else quantities[0] < quantities[1])


def _unsortable(field: str, reason: str) -> UnsortableError:
    return UnsortableError(
        f"Field {relaxed(field)} is an unsortable type: interface, err: {reason}"
    )


def _quantity(value: Any) -> Any:
    try:
        if isinstance(value, str):
            return quantities.parse_quantity(value)
        return None
    except quantities.QuantityError:
        return None
