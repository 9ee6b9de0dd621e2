"""Printing objects: ``-o yaml|json|name|jsonpath…|go-template…``, and the messages of commands that change something.

:func:`printer_for` picks a printer by the flags. Tables and columns are in :mod:`kubepy.cli.runtime.tables`. Upstream:
``cli-runtime/pkg/{genericclioptions/print_flags.go,printers}``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.values.goformat import printable, quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.reading import read_string
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.session import Session

JSON_AND_YAML = ("json", "yaml", "kyaml")
TEMPLATES = ("go-template", "go-template-file", "template", "templatefile")
JSONPATHS = ("jsonpath", "jsonpath-as-json", "jsonpath-file")
WITH_ARGUMENT = (*TEMPLATES, *JSONPATHS, "custom-columns", "custom-columns-file")
# What is printed only where it is asked for: to make it costs more than all else that printing a field does.
MANAGERS = ("metadata", "managedFields")
FORMATS = (*JSON_AND_YAML, "name", *TEMPLATES, *JSONPATHS)

Printer = Callable[[Object], None]
SUFFIXES = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


def printer_for(session: Session, given: Invocation, operation: str = "", dry_run: str = "none", *,
                formats: tuple[str, ...] = FORMATS, typed: bool = False) -> Printer:
    """The printer that ``-o`` and ``--template`` ask for; without them the message ``kind/name operation``.

    ``typed``: kubectl has the object as a Go struct, not as a map, so its fields stand in the struct's order and its
    numbers lose their types on the way to a template.
    Raises CliError for a format that is not there or is given wrongly.
    """
    style, argument = requested(given)
    if style in ("", "name") and "name" in formats:
        return name_printer(session, operation + SUFFIXES[dry_run] if operation else "", short=style == "name")
    if style not in formats:
        raise no_printer(given.output, formats)
    return format_printer(session, given, style, argument, typed=typed)


def format_printer(session: Session, given: Invocation, style: str, argument: str, *,
                   typed: bool = False) -> Printer:
    """The printer of a format that prints whole objects or templates."""
    if style in JSON_AND_YAML:
        return document_printer(session, given, style, typed=typed)
    if not argument:
        raise CliError("template format specified but no template given")
    if style in JSONPATHS:
        return _jsonpath_printer(session, given, style, argument, typed)
    return _template_printer(session, given, style, argument, typed)


def requested(given: Invocation) -> tuple[str, str]:
    """The format and its argument: ``jsonpath={.x}`` → ("jsonpath", "{.x}"); --template gives either of them."""
    output, template = given.flag("output", ""), given.flag("template", "")
    if template and not output:
        output = "go-template"
    if output.lower() in (*JSON_AND_YAML, "name"):
        return output.lower(), ""
    if template:
        return output, template
    style, _, argument = output.partition("=")
    return (style, argument) if style in WITH_ARGUMENT else (output, "")


def no_printer(output: str, formats: tuple[str, ...]) -> CliError:
    return CliError(f"unable to match a printer suitable for the output format {quote(output)}, allowed formats are: "
                    f"{','.join(sorted(formats))}")


def is_list(obj: Object) -> bool:
    return isinstance(obj.get("items"), list)


# --- names --------------------------------------------------------------------------------------------------------


def name_printer(session: Session, operation: str, *, short: bool = False) -> Printer:
    """``configmap/x created``; ``short`` is ``-o name``."""
    tail = "" if short or not operation else f" {operation}"

    def print_names(obj: Object) -> None:
        for one in obj["items"] if is_list(obj) else [obj]:
            name = one.get('metadata', {}).get('name') or '<unknown>'
            session.print(printable(f"{name_of_kind(one)}/{name}") + tail)

    return print_names


def name_of_kind(obj: Object) -> str:
    """``daemonset.apps``, ``configmap``: by apiVersion and kind alone."""
    group, slash, _ = obj.get("apiVersion", "").partition("/")
    kind: str = obj.get("kind", "<unknown>").lower()
    return f"{kind}.{group}" if slash else kind


# --- JSON, YAML and KYAML -----------------------------------------------------------------------------------------


def document_printer(session: Session, given: Invocation, style: str, *, typed: bool = False) -> Printer:
    """Documents of YAML after the first are set off by ``---``."""
    printed = 0

    def print_document(obj: Object) -> None:
        nonlocal printed
        printed += 1
        text = document(style, shown(session, given, obj), typed=typed)
        session.print(("---\n" if printed > 1 and style == "yaml" else "") + text, end="")

    return print_document


def document(style: str, obj: Object, *, typed: bool = False, indent: int = 4) -> str:
    """An object as JSON (0: on one line), YAML or KYAML, ending in a newline."""
    if style == "yaml":
        from kubepy.storage.yaml import dump

        return dump(obj)
    if style == "kyaml":
        from kubepy.cli.runtime import kyaml

        return kyaml.dump(in_go_order(obj) if typed else in_sorted_order(obj))
    return _json(obj, typed, indent) + "\n"


def _json(obj: Object, typed: bool, indent: int = 0) -> str:
    return to_json(in_go_order(obj), indent, sort_keys=False) if typed else to_json(obj, indent)


def in_sorted_order(value: Any) -> Any:
    """A JSON value with the keys of all its objects sorted, as those of Go's maps are."""
    if isinstance(value, dict):
        return {key: in_sorted_order(value[key]) for key in sorted(value)}
    return [in_sorted_order(one) for one in value] if isinstance(value, list) else value


def in_go_order(obj: Object) -> Object:
    """An object with its fields in the order of Go's type of its kind."""
    from kubepy.api.types import go_order, type_of

    name = type_of(obj)
    ordered: Object = go_order(name, obj) if name else obj
    return ordered


def shown(session: Session, given: Invocation, obj: Object) -> Object:
    """The object without managedFields, unless they are asked for (``OmitManagedFieldsPrinter``)."""
    return told(session, obj, managers=bool(given.flag("show-managed-fields")))


def told(session: Session, obj: Object, *, managers: bool) -> Object:
    """An object or a list of objects, each with all its managedFields or without any."""
    if is_list(obj):
        return {**obj, "items": [told(session, item, managers=managers) for item in obj["items"]]}
    if managers and session.has_cluster and isinstance(obj.get("metadata"), dict):
        return session.client.with_managed_fields(obj)
    return without_managers(obj)


def without_managers(obj: Object) -> Object:
    """The object without managedFields: itself if it has none."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


# --- templates ----------------------------------------------------------------------------------------------------


def _read_template(path: str) -> str:
    try:
        return read_string(path)
    except OSError as error:
        raise CliError(f"error reading --template {printable(path)}, open {printable(path)}: "
                       f"{(error.strerror or str(error)).lower()}") from None


def _jsonpath_printer(session: Session, given: Invocation, style: str, template: str, typed: bool) -> Printer:
    from kubepy.api.jsonpath import JSONPathError, may_print, parse

    if style == "jsonpath-file":
        template = _read_template(template)
    try:
        path = parse(template, given.flag("allow-missing-template-keys", True))
    except JSONPathError as error:
        raise CliError(printable(f"error parsing jsonpath {template}, {error}")) from None

    managers = may_print(path, MANAGERS)

    def input_of(obj: Object, *, managers: bool) -> Object:
        asked = told(session, obj, managers=managers)
        return with_floats(asked) if typed else asked

    def print_path(obj: Object) -> None:
        asked = input_of(obj, managers=managers)
        try:
            text = path.print_as_json(asked) if style == "jsonpath-as-json" else path.print(asked)
        except JSONPathError as error:
            raise CliError(path.explain(input_of(obj, managers=True), error)) from None
        session.print(text, end="")

    return print_path


def with_floats(value: Any) -> Any:
    """A JSON value as Go reads it without a type in mind: every number a float."""
    if isinstance(value, dict):
        return {key: with_floats(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_floats(one) for one in value]
    return float(value) if type(value) is int else value


def _template_printer(session: Session, given: Invocation, style: str, template: str, typed: bool) -> Printer:
    from kubepy.cli.gotemplate import ExecutionError, Template, TemplateError

    if style in ("go-template-file", "templatefile"):
        template = _read_template(template)
    try:
        parsed = Template(template)
    except TemplateError as error:
        raise CliError(f"error parsing template {template}, {error}") from None

    managers = parsed.may_print(MANAGERS)

    def print_template(obj: Object) -> None:
        asked = told(session, obj, managers=managers)
        try:
            text = parsed.render(asked, missing_ok=given.flag("allow-missing-template-keys", True))
        except ExecutionError as error:
            asked = told(session, obj, managers=True)
            begun, message = parsed.explain(asked, error, _json(asked, typed))
            session.print(begun, end="")
            raise CliError(message) from None
        session.print(text, end="")

    return print_template
