"""``kubepy explain``. Upstream: ``kubectl/pkg/cmd/explain/explain.go``,
``explain/v2/templates/plaintext.tmpl``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.schema.definitions import Descriptions, schemas_folder
from kubepy.api.schema.openapi import Schema, enums, schema_for
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.runtime.builder import warn_of_short_name
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.cli import installation
    from kubepy.server import openapi, operations


class ExplainOptions(Options):
    """The flags of ``explain``."""

    recursive: bool = bool_flag("recursive", "R", help="Print the fields of fields.")
    api_version: str = string_flag(
        "api-version", help="Get the explanation of a particular API version (API group/version)."
    )
    output: str = string_flag(
        "output", "o", default="plaintext", help="Format in which to render the schema: plaintext."
    )


SHORT_ENUM = 4  # values shown in a list of fields
DESCRIPTION_WIDTH = 76
FIELDS_WIDTH = 78
_SYNTAX = re.compile(r"[^\[\](){}@'\"*?\s]+")


@command(
    "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] "
    "[-o|--output=plaintext]",
    ExplainOptions,
    examples="""
# The fields of a kind
kubepy explain ds

# All fields below one, without descriptions
kubepy explain ds.spec.updateStrategy --recursive

# One field, with its type
kubepy explain pods.spec.containers.imagePullPolicy

# A kind in the version that is named
kubepy explain horizontalpodautoscalers --api-version=autoscaling/v2

# The spec of a kind by one of its short names
kubepy explain hpa.spec --output=plaintext
""",
)
def explain(factory: Factory, options: ExplainOptions) -> None:
    """Describe the fields and structure of a resource.

    A field is named by its path: <type>.<field>[.<field>]."""
    if not options.args:
        raise CliError(
            'You must specify the type of resource to explain. Use "kubepy api-resources" for a '
            "complete "
            "list of supported resources.\n"
        )

    if len(options.args) > 1:
        raise CliError("We accept only this format: explain RESOURCE\n")
    resource, path = target(factory, options.args[0])
    resource = _of_version(factory, resource, options.api_version)
    if options.output == "plaintext-openapiv2":
        raise CliError("the format plaintext-openapiv2 is not supported: use plaintext")
    if options.output != "plaintext":
        raise CliError(printable(f"unrecognized format: {options.output}"))
    descriptions = Descriptions(schemas_folder())
    explainer = Explainer(descriptions, options.recursive)
    root = Described(schema_of(factory, resource))
    if descriptions.folder is None:
        factory.say(f"descriptions need {installation.missing_extra('explain')}")
    head = [f"GROUP:      {resource.group}"] if resource.group else []
    factory.print(
        "\n".join([*head, f"KIND:       {resource.kind}", f"VERSION:    {resource.version}", ""])
    )
    factory.print(explainer.explanation(root, path), end="\n\n")


# --- the resource and its schema ------------------------------------------------------------------


def target(factory: Factory, word: str) -> tuple[Resource, list[str]]:
    """Return the resource and the path of ``ds.spec.template``, ``daemonsets.apps.spec``. Raises
    CliError."""
    word = word.removesuffix(".")
    if not _SYNTAX.fullmatch(word) or word.startswith(".") or ".." in word:
        raise CliError("invalid jsonpath syntax, first node must be field node")
    name = word.partition(".")[0]
    resources = [
        resource
        for resource in factory.scheme
        if name.lower() in (resource.plural, resource.singular_name, *resource.short_names)
    ]
    if not resources:
        raise UnprefixedError(f"the server doesn't have a resource type {quote(name)}")
    warn_of_short_name(factory, name)
    for resource in resources:
        if word.startswith(resource.key):
            return resource, [part for part in word[len(resource.key) :].split(".") if part]
    return resources[0], word.split(".")[1:]


def _of_version(factory: Factory, resource: Resource, api_version: str) -> Resource:
    """Return the resource in the version asked for, which may be of another group. Raises
    CliError."""
    if not api_version:
        return resource
    group, _, version = api_version.rpartition("/")
    name = f"{group}/{version}, Resource={resource.plural}"
    served = [
        other
        for other in factory.scheme
        if other.group == group and version in (other.version, *other.other_versions)
    ]
    if not served:
        raise CliError(f"couldn't find resource for {quote(name)}")
    for other in served:
        if other.plural == resource.plural:
            return other._replace(version=version)
    raise CliError(f"error: GVR ({name}) not found in OpenAPI schema")


def schema_of(factory: Factory, resource: Resource) -> Schema:
    """Return the schema of a kind. Raises CliError for a kind without one."""
    if resource.custom:
        return _custom_schema(factory, resource)
    schema = schema_for(resource.api_version, resource.kind)
    if schema is None:
        raise CliError(f"there is no description of {resource.kind} in {resource.api_version}")
    return schema


def _custom_schema(factory: Factory, resource: Resource) -> Schema:
    """Return the schema of a custom resource; apiVersion, kind and metadata are described as in
    built-in types."""
    crd = factory.client.get("customresourcedefinitions.apiextensions.k8s.io", resource.key)
    definitions = openapi.custom_definitions(resource, crd)
    return Schema(definitions[operations.type_name(resource)])


# --- the explanation ------------------------------------------------------------------------------


class Described(NamedTuple):
    """A schema with the type and the name of the field that it is the schema of; those of a kind
    have neither."""

    schema: Schema
    owner: str = ""
    field: str = ""


class Explainer:
    """Writes what ``explain`` prints below the head. ``recursive``: fields are listed with theirs,
    one per line."""

    def __init__(self, descriptions: Descriptions, recursive: bool) -> None:
        self._descriptions = descriptions
        self._recursive = recursive

    def explanation(self, place: Described, path: list[str]) -> str:
        """Return the field that the path names, its description and its fields. Raises CliError."""
        lines: list[str] = []
        for index, name in enumerate(path):
            owner = holder_of(place.schema)
            field = owner.field(name)
            if field is None:
                raise CliError(f"field {quote(path[-1])} does not exist")
            if index == len(path) - 1:
                values = [f"    {value}" for value in enum_of(owner, name, field)]
                lines = [
                    f"FIELD: {name} <{type_name(field)}>",
                    *(["ENUM:", *values] if values else [""]),
                    "",
                ]
            place = Described(field, owner.name, name)

        text = "".join(f"{description}\n" for description in self._describe(place)) or "<empty>"
        lines += ["DESCRIPTION:", indented(wrap(text, DESCRIPTION_WIDTH), 4)]
        fields = list(self._field_lines(place.schema, 1, frozenset()))
        return "\n".join([*lines, *(["FIELDS:"] if fields else []), *fields])

    def _describe(self, place: Described) -> Iterator[str]:
        """Yield the descriptions of a field, of its type, and of the items or values that it
        holds."""
        if text := self._own_description(place):
            yield text
        if place.schema.name and (text := self._descriptions.type(place.schema.name)):
            yield text
        inner = place.schema.items() or place.schema.values()
        if inner is not None:
            yield from self._describe(Described(inner))

    def _own_description(self, place: Described) -> str:
        return place.schema.description or (
            self._descriptions.field(place.owner, place.field) if place.owner else ""
        )

    def _field_lines(self, schema: Schema, level: int, above: frozenset[str]) -> Iterator[str]:
        """Yield the fields of a type by name; ``above`` are the types around it, which are not
        listed again."""
        owner = holder_of(schema)
        fields = {} if owner.name in above else owner.fields()
        for name, field in sorted(fields.items()):
            yield field_line(owner, name, field, level)
            if self._recursive:
                yield from self._field_lines(field, level + 1, above | {owner.name} - {""})
            else:
                text = (
                    self._own_description(Described(field, owner.name, name)) or "<no description>"
                )
                yield indented(wrap(text, FIELDS_WIDTH - 2 * level), 2 * level + 2) + "\n"


def holder_of(schema: Schema) -> Schema:
    """Return the schema that has the fields: that of the items of a list, of the values of a
    map."""
    while not schema.fields() and (inner := schema.items() or schema.values()) is not None:
        schema = inner
    return schema


def indented(text: str, amount: int) -> str:
    pad = " " * amount
    return pad + text.replace("\n", "\n" + pad)


def field_line(owner: Schema, name: str, field: Schema, level: int) -> str:
    """Return a field of a list of fields: name, type, whether it is required, the first of its
    values."""
    required = " -required-" if name in owner.required else ""
    values = enum_of(owner, name, field)
    shown = ", ".join(values[:SHORT_ENUM]) + (", ...." if len(values) > SHORT_ENUM else "")
    enum = f"\n{'  ' * level}enum: {shown}" if values else ""
    return f"{'  ' * level}{name}\t<{type_name(field)}>{required}{enum}"


def enum_of(owner: Schema, name: str, field: Schema) -> list[str]:
    """Return the values that a field can have; an empty one is shown as two quotes."""
    values = enums().get(f"{owner.name}.{name}", []) if owner.name else field.enum
    return [str(value) or '""' for value in values]


def type_name(schema: Schema) -> str:
    """Return the type as explain shows it: ``string``, ``[]Container``, ``map[string]string``,
    ``PodSpec``, ``Object``."""
    if (items := schema.items()) is not None:
        return f"[]{type_name(items)}"
    if (values := schema.values()) is not None:
        return f"map[string]{type_name(values)}"
    if schema.name and schema.type in ("", "object"):
        return schema.go_name
    if schema.type in ("", "object"):
        return "Object"
    return schema.type


# --- lines ----------------------------------------------------------------------------------------


def wrap(text: str, limit: int) -> str:
    """Wrap lines at ``limit`` characters, as mitchellh/go-wordwrap does; longer words stay
    whole."""
    return "\n".join(_wrap_line(line, limit) for line in text.split("\n"))


def _wrap_line(line: str, limit: int) -> str:
    wrapped = ""
    width = 0
    space = ""
    word = ""
    for char in line:
        if char.isspace() and char != "\N{NO-BREAK SPACE}":
            if not space or word:
                wrapped = wrapped + space + word
                width = width + len(space) + len(word)
                space = ""
                word = ""
            space += char
            continue
        word += char
        if width + len(space) + len(word) > limit and len(word) < limit:
            wrapped = wrapped + "\n"
            width = 0
            space = ""

    if word or width + len(space) <= limit:
        wrapped += space + word
    return wrapped
