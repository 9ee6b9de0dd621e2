"""Printing objects: ``-o yaml|json|name|jsonpath…|go-template…``, and the messages of commands that
change something.

:func:`printer_for` picks a printer by the flags. Tables and columns are
in :mod:`kubepy.cli.runtime.tables`. Upstream:
``cli-runtime/pkg/{genericclioptions/print_flags.go,printers}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from kubepy.api.meta import Object, without_managers
from kubepy.api.values.goformat import printable, quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.files import read_string
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import PrintFlags
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import jsonpath
    from kubepy.api import types as go_types
    from kubepy.cli import gotemplate
    from kubepy.cli.runtime import kyaml
    from kubepy.storage import yaml

JSON_AND_YAML = ("json", "yaml", "kyaml")
TEMPLATES = ("go-template", "go-template-file", "template", "templatefile")
JSONPATHS = ("jsonpath", "jsonpath-as-json", "jsonpath-file")
WITH_ARGUMENT = (*TEMPLATES, *JSONPATHS, "custom-columns", "custom-columns-file")
# Printed only where it is asked for: making it costs more than everything else in printing an
# object.
MANAGERS = ("metadata", "managedFields")
PRINTED_TOGETHER = 100  # items of a list that are written at once
FORMATS = (*JSON_AND_YAML, "name", *TEMPLATES, *JSONPATHS)

Printer = Callable[[Object], None]
SUFFIXES = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


def printer_for(
    factory: Factory,
    options: PrintFlags,
    operation: str = "",
    dry_run: str = "none",
    *,
    formats: tuple[str, ...] = FORMATS,
    typed: bool = False,
) -> Printer:
    """Return the printer that ``-o`` and ``--template`` ask for; without them that of
    ``kind/name operation``.

    :param typed: kubectl has the object as a Go struct, not as a map: fields stand in the struct's
        order, and numbers lose their types on the way to a template.
    :raises CliError: for an unknown format or a wrong argument.
    """
    style, argument = requested(options)
    if style in ("", "name") and "name" in formats:
        return name_printer(
            factory, operation + SUFFIXES[dry_run] if operation else "", short=style == "name"
        )
    if style not in formats:
        raise no_printer(options.output, formats)
    return format_printer(factory, options, (style, argument), typed=typed)


def format_printer(
    factory: Factory,
    options: PrintFlags,
    style_and_argument: tuple[str, str],
    *,
    typed: bool = False,
) -> Printer:
    """Return the printer of a format for whole objects or templates."""
    style, argument = style_and_argument
    if style in JSON_AND_YAML:
        return document_printer(factory, options, style, typed=typed)
    if not argument:
        raise CliError("template format specified but no template given")
    if style in ("jsonpath-file", "go-template-file", "templatefile"):
        try:
            argument = read_string(argument)
        except OSError as error:
            raise CliError(
                f"error reading --template {printable(argument)}, open {printable(argument)}: "
                f"{(error.strerror or str(error)).lower()}"
            ) from None

    missing_ok = options.allow_missing_template_keys
    if style in JSONPATHS:
        return _jsonpath_printer(
            factory, argument, missing_ok, as_json=style == "jsonpath-as-json", typed=typed
        )

    return _template_printer(factory, argument, missing_ok, typed=typed)


def requested(options: PrintFlags) -> tuple[str, str]:
    """Return format and argument: ("jsonpath", "{.x}") for ``jsonpath={.x}``; --template gives
    either of them."""
    output = options.output
    template = options.template
    if template and not output:
        output = "go-template"
    if output.lower() in (*JSON_AND_YAML, "name"):
        return output.lower(), ""
    if template:
        return output, template
    style, _, argument = output.partition("=")
    if style in WITH_ARGUMENT:
        return (style, argument)
    return (output, "")


def no_printer(output: str, formats: tuple[str, ...]) -> CliError:
    return CliError(
        f"unable to match a printer suitable for the output format {quote(output)}, allowed "
        f"formats are: "
        f"{','.join(sorted(formats))}"
    )


class ItemStream:
    """The items of a list that is printed, each read when it is its turn, which is possible once.
    False without any."""

    def __init__(self, items: Iterable[Object]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Iterator[Object]:
        return self._items

    def __bool__(self) -> bool:
        for item in self._items:
            self._items = chain((item,), self._items)
            return True
        return False

    def map(self, change: Callable[[Object], Object]) -> ItemStream:
        """Return the stream of the changed items, which takes the place of this one."""
        return ItemStream(map(change, self))


def is_list(obj: Object) -> bool:
    return isinstance(obj.get("items"), list | ItemStream)


# --- names ----------------------------------------------------------------------------------------


def name_printer(factory: Factory, operation: str, *, short: bool = False) -> Printer:
    """Return a printer of ``configmap/x created``, or with ``short`` of names (``-o name``)."""
    tail = "" if short or not operation else f" {operation}"

    def print_names(obj: Object) -> None:
        for item in obj["items"] if is_list(obj) else [obj]:
            name = item.get("metadata", {}).get("name") or "<unknown>"
            factory.print(printable(f"{name_of_kind(item)}/{name}") + tail)

    return print_names


def name_of_kind(obj: Object) -> str:
    """Return ``daemonset.apps``, ``configmap``: from apiVersion and kind alone."""
    group, slash, _ = obj.get("apiVersion", "").partition("/")
    kind: str = obj.get("kind", "<unknown>").lower()
    if slash:
        return f"{kind}.{group}"
    return kind


# --- JSON, YAML and KYAML -------------------------------------------------------------------------


def document_printer(
    factory: Factory, options: PrintFlags, style: str, *, typed: bool = False
) -> Printer:
    """Return a printer of documents; those of YAML after the first are set off by ``---``."""
    printed = 0

    def print_document(obj: Object) -> None:
        nonlocal printed
        printed += 1
        shown = shown_object(factory, obj, managers=options.show_managed_fields)
        if isinstance(shown.get("items"), ItemStream):
            pieces = list_pieces(style, shown)
        else:
            pieces = iter([document(style, shown, typed=typed)])
        factory.print("---\n" if printed > 1 and style == "yaml" else "", end="")
        while text := "".join(islice(pieces, PRINTED_TOGETHER)):
            factory.print(text, end="")

    return print_document


def list_pieces(style: str, obj: Object, indent: int = 4) -> Iterator[str]:
    """Yield the text of a list whose items are a stream, in JSON or YAML: the beginning, each item,
    the end."""
    items = obj["items"]
    empty = '"items": []' if style == "json" else "items: []\n"
    before, _, after = document(style, {**obj, "items": []}, indent=indent).partition(empty)
    if not items:
        yield before + empty + after
    elif style == "json":
        line = "\n" + " " * (2 * indent)
        yield f'{before}"items": [{line}{to_json(next(iter(items)), indent, depth=2)}'
        yield from (f",{line}{to_json(item, indent, depth=2)}" for item in items)
        yield f"\n{' ' * indent}]{after}"
    else:
        yield f"{before}items:\n"
        yield from (yaml.dump_item(item) for item in items)
        yield after


def document(style: str, obj: Object, *, typed: bool = False, indent: int = 4) -> str:
    """Return an object as JSON (0: on one line), YAML or KYAML, ending in a newline."""
    if style == "yaml":
        return yaml.dump(obj)
    if style == "kyaml":
        return kyaml.dump(in_go_order(obj) if typed else go_types.in_key_order(obj))
    return _json(obj, typed, indent) + "\n"


def _json(obj: Object, typed: bool, indent: int = 0) -> str:
    if typed:
        return to_json(in_go_order(obj), indent, sort_keys=False)
    return to_json(obj, indent)


def in_go_order(obj: Object) -> Object:
    """Return an object with its fields in the order of Go's type of its kind."""
    name = go_types.type_of(obj)
    ordered: Object = go_types.go_order(name, obj) if name else obj
    return ordered


def shown_object(factory: Factory, obj: Object, *, managers: bool) -> Object:
    """Return an object or a list of objects, each with all its managedFields or without any.

    Upstream: ``OmitManagedFieldsPrinter``.
    """

    def show(item: Object) -> Object:
        return shown_object(factory, item, managers=managers)

    if is_list(obj):
        items = obj["items"]
        return {
            **obj,
            "items": items.map(show) if isinstance(items, ItemStream) else list(map(show, items)),
        }
    if managers and factory.has_cluster and isinstance(obj.get("metadata"), dict):
        return factory.client.with_managed_fields(obj)
    return without_managers(obj)


# --- templates ------------------------------------------------------------------------------------


def _jsonpath_printer(
    factory: Factory, template: str, missing_ok: bool, *, as_json: bool, typed: bool
) -> Printer:
    try:
        path = jsonpath.parse(template, missing_ok)
    except jsonpath.JSONPathError as error:
        raise CliError(printable(f"error parsing jsonpath {template}, {error}")) from None

    managers = jsonpath.may_print(path, MANAGERS)

    def input_of(obj: Object, *, managers: bool) -> Object:
        shown = shown_object(factory, obj, managers=managers)
        return with_floats(shown) if typed else shown

    def print_path(obj: Object) -> None:
        value = input_of(obj, managers=managers)
        try:
            text = path.print_as_json(value) if as_json else path.print(value)
        except jsonpath.JSONPathError as error:
            raise CliError(path.explain(input_of(obj, managers=True), error)) from None
        factory.print(text, end="")

    return print_path


def with_floats(value: Any) -> Any:
    """Return a JSON value as Go reads it without a type in mind: every number a float."""
    if isinstance(value, dict):
        return {key: with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_floats(item) for item in value]
    if type(value) is int:
        return float(value)
    return value


def _template_printer(factory: Factory, template: str, missing_ok: bool, *, typed: bool) -> Printer:
    try:
        parsed = gotemplate.Template(template)
    except gotemplate.TemplateError as error:
        raise CliError(f"error parsing template {template}, {error}") from None

    managers = parsed.may_print(MANAGERS)

    def print_template(obj: Object) -> None:
        try:
            text = parsed.render(
                shown_object(factory, obj, managers=managers), missing_ok=missing_ok
            )
        except gotemplate.ExecutionError as error:
            shown = shown_object(factory, obj, managers=True)
            begun, message = parsed.explain(shown, error, _json(shown, typed))
            factory.print(begun, end="")
            raise CliError(message) from None
        factory.print(text, end="")

    return print_template
