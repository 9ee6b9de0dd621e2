"""The flags of ``get``, and the printers that they ask for: tables, ``-o custom-columns`` and the
others.

Upstream: ``kubectl/pkg/cmd/get/{get_flags,customcolumn}.go``.
"""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.values.goformat import printable
from kubepy.cli.errors import CliError
from kubepy.cli.files import read_string
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import (
    AllNamespacesOptions,
    ChunkSizeOptions,
    FieldSelectorOptions,
    KustomizeOptions,
    PrintFlags,
    SelectorOptions,
    SubresourceOptions,
    filename_flag,
    output_flag,
    subresource_flag,
)
from kubepy.cli.runtime.output import (
    FORMATS,
    MANAGERS,
    Printer,
    format_printer,
    is_list,
    name_printer,
    no_printer,
    requested,
    shown_object,
)
from kubepy.cli.runtime.tables import Style, escaped, format_lines
from kubepy.lazy import NamedTuple, lazy_imports

with lazy_imports():
    from kubepy.api import jsonpath

GET_FORMATS = (*FORMATS, "custom-columns", "custom-columns-file", "wide")


class GetOptions(
    KustomizeOptions,
    SelectorOptions,
    FieldSelectorOptions,
    AllNamespacesOptions,
    SubresourceOptions,
    ChunkSizeOptions,
    PrintFlags,
):
    """The flags of ``get``."""

    watch: bool = bool_flag(
        "watch", "w", help="After listing/getting the requested object, watch for changes."
    )
    watch_only: bool = bool_flag(
        "watch-only",
        help="Watch for changes to the requested object(s), without listing/getting first.",
    )
    output_watch_events: bool = bool_flag(
        "output-watch-events",
        help="Output watch event objects when --watch or --watch-only is used.",
    )
    ignore_not_found: bool = bool_flag(
        "ignore-not-found", help="Suppress NotFound errors for objects that were named."
    )
    filename: list[str] = filename_flag("identifying the resource to get from the cluster.")
    subresource: str = subresource_flag("get")
    output: str = output_flag(
        "json, yaml, kyaml, name, go-template, go-template-file, template, templatefile, "
        "jsonpath, jsonpath-as-json, jsonpath-file, custom-columns, custom-columns-file, wide"
    )
    no_headers: bool = bool_flag(
        "no-headers",
        help="When using the default or custom-column output format, don't print headers.",
    )
    show_labels: bool = bool_flag(
        "show-labels", help="When printing, show all labels as the last column."
    )
    label_columns: list[str] = string_slice_flag(
        "label-columns", "L", help="Labels that are going to be presented as columns."
    )
    show_kind: bool = bool_flag(
        "show-kind", help="If present, list the resource type for the requested object(s)."
    )
    sort_by: str = string_flag(
        "sort-by",
        help="If non-empty, sort list types using this field specification, a "
        "JSONPath expression (e.g. '{.metadata.name}').",
    )
    server_print: bool = bool_flag(
        "server-print", default=True, help="If false, tables show names and ages only."
    )
    raw: str = string_flag(
        "raw",
        help="The path of a request, e.g. /api/v1/nodes or /readyz: print what a server "
        "would answer.",
    )

    @property
    def wants_table(self) -> bool:
        return self.output == "wide" or (not self.output and not self.template)

    @property
    def style(self) -> Style:
        """The appearance of tables."""
        return Style(
            wide=self.output == "wide",
            headers=not self.no_headers,
            with_kind=self.show_kind,
            labels=self.label_columns,
            show_labels=self.show_labels,
            own_columns=self.server_print,
            subresource=self.subresource,
        )


def style_for(resource: Resource, options: GetOptions, style: Style) -> Style:
    """Add the namespace for a namespaced type; like kubectl's, later tables of other types keep
    it."""
    return style._replace(
        with_namespace=style.with_namespace or (options.all_namespaces and resource.namespaced)
    )


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
