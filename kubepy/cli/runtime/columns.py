"""``-o custom-columns``. Upstream: ``kubectl/pkg/cmd/get/customcolumn.go``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.jsonpath import JSONPathError, cell, may_print, parse, relaxed
from kubepy.api.meta import Object
from kubepy.api.values.goformat import printable
from kubepy.cli.errors import CliError
from kubepy.cli.reading import read_string
from kubepy.cli.runtime.output import MANAGERS, Printer, is_list, told
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import escaped, format_lines


class Column(NamedTuple):
    """``path``: JSONPath, read when the first object is printed, as kubectl does it: after the headers."""

    header: str
    path: str


def columns_of_spec(spec: str) -> list[Column]:
    """``NAME:.metadata.name,IMAGE:.spec.image``. Raises CliError."""
    if not spec:
        raise CliError("custom-columns format specified but no custom columns given")
    columns = []
    for part in spec.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise CliError(printable(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"))
        columns.append(_column(header, path))
    return columns


def columns_of_file(name: str) -> list[Column]:
    """A file with a line of headers and a line of paths. Raises CliError."""
    if not name:
        raise CliError("custom-columns format specified but no custom columns given")
    try:
        text = read_string(name).splitlines()
    except OSError as error:
        raise CliError(f"error reading template {printable(name)}, open {printable(name)}: "
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
        return Column(header, relaxed(path))
    except JSONPathError as error:
        raise CliError(str(error)) from None


def columns_printer(session: Session, columns: list[Column], *, headers: bool = True) -> Printer:
    """The headers once, and a row for each object; in case of an error, what there was before it."""
    pending = ["\t".join(column.header for column in columns)] if headers else []

    def print_columns(obj: Object) -> None:
        text = pending.copy()
        pending.clear()
        try:
            for row in _rows(session, columns, obj):
                text.append(row)
        except JSONPathError as error:
            raise CliError(str(error)) from None
        finally:
            session.print(format_lines(text), end="")

    return print_columns


def _rows(session: Session, columns: list[Column], obj: Object) -> Iterator[str]:
    paths = [parse(column.path, True) for column in columns]
    asked = told(session, obj, managers=any(may_print(path, MANAGERS) for path in paths))
    for one in asked["items"] if is_list(asked) else [asked]:
        yield "\t".join([escaped(cell(path, one)) for path in paths])
