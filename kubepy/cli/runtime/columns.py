"""``-o custom-columns`` and ``--sort-by``. Upstream: ``kubectl/pkg/cmd/get/{customcolumn,sorter}.go``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.output import Printer, is_list, told
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import format_lines
from kubepy.cluster.jsonpath.evaluator import JSONPath, JSONPathError, cell, parse, relaxed
from kubepy.cluster.objects.meta import Object


class Column(NamedTuple):
    """``of_managers``: it may show managedFields, which objects have only when they are asked for."""

    header: str
    path: JSONPath
    of_managers: bool = False


# --- custom columns -----------------------------------------------------------------------------------------------


def columns_of_spec(spec: str) -> list[Column]:
    """``NAME:.metadata.name,IMAGE:.spec.image``. Raises CliError."""
    if not spec:
        raise CliError("custom-columns format specified but no custom columns given")
    columns = []
    for part in spec.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise CliError(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
        columns.append(_column(header, path))
    return columns


def columns_of_file(name: str) -> list[Column]:
    """A file with a line of headers and a line of paths. Raises CliError."""
    if not name:
        raise CliError("custom-columns format specified but no custom columns given")
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read().splitlines()
    except OSError as error:
        raise CliError(f"error reading template {name}, open {name}: "
                       f"{(error.strerror or str(error)).lower()}") from None
    for number, what in enumerate(("header", "spec")):
        if len(text) <= number:
            raise CliError(f"invalid template, missing {what} line. Expected format is one line of space separated "
                           "headers, one line of space separated column specs.")
    headers, paths = text[0].split(), text[1].split()
    if len(headers) != len(paths):
        raise CliError(f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match")
    return [_column(header, path) for header, path in zip(headers, paths, strict=True)]


def _column(header: str, path: str) -> Column:
    try:
        return Column(header, parse(relaxed(path), True), "managedFields" in path)
    except JSONPathError as error:
        raise CliError(str(error)) from None


def columns_printer(session: Session, columns: list[Column], *, headers: bool = True) -> Printer:
    def print_columns(obj: Object) -> None:
        text = ["\t".join(column.header for column in columns)] if headers else []
        asked = told(session, obj, managers=any(column.of_managers for column in columns))
        objects = asked["items"] if is_list(asked) else [asked]
        text += ["\t".join(_cell(column, one) for column in columns) for one in objects]
        session.print(format_lines(text), end="")

    return print_columns


def _cell(column: Column, obj: Object) -> str:
    try:
        return cell(column.path, obj)
    except JSONPathError as error:
        raise CliError(str(error)) from None


# --- sorting ------------------------------------------------------------------------------------------------------


def sort_path(field: str) -> JSONPath:
    """The path of ``--sort-by``. Raises CliError."""
    try:
        return parse(relaxed(field), True)
    except JSONPathError as error:
        raise CliError(str(error)) from None


def sorted_by(field: str, objects: Sequence[Object]) -> list[Object]:
    """Objects in the order of a field; those without it first. Raises CliError if none has it."""
    path = sort_path(field)
    values = [_first(path, obj) for obj in objects]
    if objects and not any(found for found, _ in values):
        raise no_such_field(field)
    return _in_order(list(zip(values, objects, strict=True)))


Valued = tuple[tuple[bool, Any], Object]


def _in_order(pairs: list[Valued]) -> list[Object]:
    """Sorted as Go's ``sort.Sort`` does it with kubectl's comparison, for which an absent value is less than any other,
    another absent one included: up to 12 by insertion, which turns the absent ones around. Longer ones stably."""
    if len(pairs) > 12:
        pairs.sort(key=functools.cmp_to_key(_compare))
        return [obj for _, obj in pairs]
    for start in range(1, len(pairs)):
        at = start
        while at > 0 and _is_before(pairs[at][0], pairs[at - 1][0]):
            pairs[at], pairs[at - 1] = pairs[at - 1], pairs[at]
            at -= 1
    return [obj for _, obj in pairs]


def _is_before(one: tuple[bool, Any], other: tuple[bool, Any]) -> bool:
    if not one[0]:
        return True
    return other[0] and _less(one[1], other[1])


def no_such_field(field: str) -> CliError:
    return CliError(f'couldn\'t find any field with path "{relaxed(field)}" in the list of objects')


def _first(path: JSONPath, obj: Object) -> tuple[bool, Any]:
    found = path.find(obj)
    return (True, found[0][0]) if found and found[0] else (False, None)


def _compare(one: Valued, other: Valued) -> int:
    (has_one, value), (has_other, other_value) = one[0], other[0]
    if not (has_one and has_other):
        return int(has_one) - int(has_other)
    if _less(value, other_value):
        return -1
    return 1 if _less(other_value, value) else 0


def _less(one: Any, other: Any) -> bool:
    """Go's isLess: strings compare as quantities when both are."""
    if isinstance(one, str) and isinstance(other, str):
        quantities = _quantity(one), _quantity(other)
        if None not in quantities:
            return bool(quantities[0] < quantities[1])
        return one < other
    if one is None or other is None:
        return one is None and other is not None
    if isinstance(one, (list, dict, bool)) or type(one) is not type(other):
        return False
    return bool(one < other)


def _quantity(text: str) -> Any:
    from kubepy.cluster.values.quantity import QuantityError, parse_quantity

    try:
        return parse_quantity(text)
    except QuantityError:
        return None
