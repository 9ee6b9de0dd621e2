"""What ``get`` prints in formats other than tables: one document or a stream of objects, ``-o
custom-columns``, ``-o name`` and the others.

Upstream: ``kubectl/pkg/cmd/get/{get,get_flags,customcolumn}.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError, raise_all, raise_together
from kubepy.cli.files import read_string
from kubepy.cli.get_flags import GetOptions
from kubepy.cli.runtime.builder import objects_of
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Result
from kubepy.cli.runtime.output import (
    FORMATS,
    MANAGERS,
    ItemStream,
    Printer,
    format_printer,
    is_list,
    name_printer,
    no_printer,
    requested,
    shown_object,
)
from kubepy.cli.runtime.tables import escaped, format_lines
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import jsonpath
    from kubepy.cli.runtime import sorting

GET_FORMATS = (*FORMATS, "custom-columns", "custom-columns-file", "wide")
STREAMED = (
    "json",
    "yaml",
    "name",
    "custom-columns",
    "custom-columns-file",
)  # formats that print object by object


def print_objects(factory: Factory, options: GetOptions, result: Result) -> None:
    if result.scopes and requested(options)[0] in STREAMED and not options.sort_by:
        _print_stream(factory, options, result)
        return
    infos, errors = result.infos()
    if errors and result.single:
        raise_all(errors)
    if not infos and options.ignore_not_found:
        raise_together(errors)
        return
    printer = object_printer(factory, options)
    objects = [info.content for info in infos]
    obj = objects[0] if result.single and len(objects) == 1 else list_of(objects)
    if options.sort_by and isinstance(obj.get("items"), list):
        obj = {**obj, "items": sorting.sorted_by(options.sort_by, obj["items"])}
    printer(obj)
    raise_together(errors)


def _print_stream(factory: Factory, options: GetOptions, result: Result) -> None:
    """Print the objects of types one by one: never are all of them in memory."""
    entries = [objects_of(factory, scope, at_once=False) for scope in result.scopes]
    errors = result.in_one([entry for entry in entries if isinstance(entry, Exception)])
    items = ItemStream(
        chain.from_iterable(entry for entry in entries if not isinstance(entry, Exception))
    )
    if items or not options.ignore_not_found:
        object_printer(factory, options)(list_of(items))
    raise_together(errors)


def list_of(items: Sequence[Object] | ItemStream) -> Object:
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def object_printer(factory: Factory, options: GetOptions, *, typed: bool = False) -> Printer:
    """Return the printer of an output format other than a table. ``typed``: see ``printer_for``.
    Raises CliError."""
    style, argument = requested(options)
    if style == "name":
        return name_printer(factory, "", short=True)
    if style == "custom-columns":
        return columns_printer(factory, columns_of_spec(argument), headers=not options.no_headers)
    if style == "custom-columns-file":  # kubectl forgets --no-headers here
        return columns_printer(factory, columns_of_file(argument))
    if style not in GET_FORMATS or style == "wide":
        raise no_printer(options.output, GET_FORMATS)
    return format_printer(factory, options, (style, argument), typed=typed)


# --- custom columns -------------------------------------------------------------------------------


class CustomColumn(NamedTuple):
    """A column: its header, and a JSONPath, read when the first object is printed, as in kubectl:
    after the headers."""

    header: str
    path: str


def columns_of_spec(spec: str) -> list[CustomColumn]:
    """Read ``NAME:.metadata.name,IMAGE:.spec.image``. Raises CliError."""
    if not spec:
        raise CliError("custom-columns format specified but no custom columns given")
    columns = []
    for part in spec.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise CliError(
                printable(
                    f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"
                )
            )
        columns.append(_column(header, path))
    return columns


def columns_of_file(name: str) -> list[CustomColumn]:
    """Read a file with a line of headers and a line of paths. Raises CliError."""
    if not name:
        raise CliError("custom-columns format specified but no custom columns given")
    try:
        text = read_string(name).splitlines()
    except OSError as error:
        raise CliError(
            f"error reading template {printable(name)}, open {printable(name)}: "
            f"{(error.strerror or str(error)).lower()}"
        ) from None

    for number, part in enumerate(("header", "spec")):
        if len(text) <= number:
            raise CliError(
                f"invalid template, missing {part} line. Expected format is one line of space "
                f"separated "
                "headers, one line of space separated column specs."
            )

    headers = text[0].split()
    paths = text[1].split()
    if len(headers) != len(paths):
        raise CliError(
            f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't "
            f"match"
        )

    return [_column(header, path) for header, path in zip(headers, paths, strict=True)]


def _column(header: str, path: str) -> CustomColumn:
    try:
        return CustomColumn(header, jsonpath.relaxed(path))
    except jsonpath.JSONPathError as error:
        raise CliError(str(error)) from None


def columns_printer(
    factory: Factory, columns: list[CustomColumn], *, headers: bool = True
) -> Printer:
    """Return a printer of the headers once, and a row for each object; rows before an error are
    printed."""
    pending = ["\t".join(column.header for column in columns)] if headers else []

    def print_columns(obj: Object) -> None:
        lines = pending.copy()
        pending.clear()
        try:
            paths = [jsonpath.parse(column.path, True) for column in columns]
            managers = any(jsonpath.may_print(path, MANAGERS) for path in paths)
            printed = shown_object(factory, obj, managers=managers)
            for item in printed["items"] if is_list(printed) else [printed]:
                lines.append("\t".join([escaped(jsonpath.cell(path, item)) for path in paths]))
        except jsonpath.JSONPathError as error:
            raise CliError(str(error)) from None
        finally:
            factory.print(format_lines(lines), end="")

    return print_columns
