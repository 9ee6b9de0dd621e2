"""What the flags of ``get`` ask for: a table and its style, or another format's printer."""

from __future__ import annotations

from kubepy.api.scheme import Resource
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.output import FORMATS, Printer, format_printer, name_printer, no_printer, requested
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import Style

GET_FORMATS = (*FORMATS, "custom-columns", "custom-columns-file", "wide")


def is_table(given: Invocation) -> bool:
    return given.output == "wide" or (not given.output and not given.template)


def style_of(given: Invocation) -> Style:
    return Style(wide=given.output == "wide", headers=not given.no_headers, with_kind=given.show_kind,
                 labels=given.label_columns, show_labels=given.show_labels, own_columns=given.server_print,
                 subresource=given.subresource)


def for_type(style: Style, given: Invocation, resource: Resource) -> Style:
    """With the namespace for a namespaced type; kubectl then goes on with it for those that are not."""
    return style._replace(with_namespace=style.with_namespace or (given.all_namespaces and resource.namespaced))


def object_printer(session: Session, given: Invocation, *, typed: bool = False) -> Printer:
    """The printer of an output format other than a table. ``typed``: see ``printer_for``. Raises CliError."""
    style, argument = requested(given)
    if style == "name":
        return name_printer(session, "", short=True)
    if style in ("custom-columns", "custom-columns-file"):
        from kubepy.cli.runtime.columns import columns_of_file, columns_of_spec, columns_printer

        if style == "custom-columns-file":  # kubectl forgets --no-headers there
            return columns_printer(session, columns_of_file(argument))
        return columns_printer(session, columns_of_spec(argument), headers=not given.no_headers)
    if style not in GET_FORMATS or style == "wide":
        raise no_printer(given.output, GET_FORMATS)
    return format_printer(session, given, style, argument, typed=typed)
