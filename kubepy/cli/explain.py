"""``kubepy explain``. Upstream: ``kubectl/pkg/cmd/explain/explain.go``, ``explain/v2/templates/plaintext.tmpl``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubepy.api.schema.openapi import Schema
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.runtime.builder import warn_of_short_name
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.cli.runtime.wordwrap import wrap
from kubepy.quoting import printable, quote

FLAGS = [
    boolean("recursive", "R", help="Print the fields of fields."),
    string("api-version", help="Get the explanation of a particular API version (API group/version)."),
    string("output", "o", default="plaintext", help="Format in which to render the schema: plaintext."),
]
SHORT_ENUM = 4  # values shown in a list of fields
DESCRIPTION_WIDTH, FIELDS_WIDTH = 76, 78
_SYNTAX = re.compile(r"[^\[\](){}@'\"*?\s]+")


@verb("explain", "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext]",
      flags=FLAGS, examples="""
# What a DaemonSet holds
kubepy explain ds

# All fields of its update strategy, and theirs
kubepy explain ds.spec.updateStrategy --recursive
""")
def explain(factory: Factory, given: Invocation) -> None:
    """Describe the fields and structure of a resource.

    A field is named by its path: <type>.<field>[.<field>]."""
    if not given.args:
        raise CliError("You must specify the type of resource to explain. Use \"kubepy api-resources\" for a complete "
                       "list of supported resources.\n")
    if len(given.args) > 1:
        raise CliError("We accept only this format: explain RESOURCE\n")
    resource, path = target(factory, given.args[0])
    resource = _of_version(factory, resource, given.api_version)
    _check_format(given.output)
    schema = schema_of(factory, resource)
    factory.print("\n".join([*_head(resource), ""]))
    factory.print(explanation(schema, path, recursive=given.recursive), end="\n\n")


def _check_format(output: str) -> None:
    if output == "plaintext-openapiv2":
        raise CliError("the format plaintext-openapiv2 is not supported: use plaintext")
    if output != "plaintext":
        raise CliError(printable(f"unrecognized format: {output}"))


# --- what is asked for --------------------------------------------------------------------------------------------


def target(factory: Factory, word: str) -> tuple[Resource, list[str]]:
    """The resource and the path of ``ds.spec.template``, ``daemonsets.apps.spec``. Raises CliError."""
    word = word.removesuffix(".")
    if not _SYNTAX.fullmatch(word) or word.startswith(".") or ".." in word:
        raise CliError("invalid jsonpath syntax, first node must be field node")
    name = word.partition(".")[0]
    found = [one for one in factory.scheme if name.lower() in (one.plural, one.singular_name, *one.short_names)]
    if not found:
        raise UnprefixedError(f"the server doesn't have a resource type {quote(name)}")
    warn_of_short_name(factory, name)
    for one in found:
        if word.startswith(one.key):
            return one, [part for part in word[len(one.key):].split(".") if part]
    return found[0], word.split(".")[1:]


def _of_version(factory: Factory, resource: Resource, api_version: str) -> Resource:
    """The resource in the version asked for, which may be of another group. Raises CliError."""
    if not api_version:
        return resource
    group, _, version = api_version.rpartition("/")
    wanted = f"{group}/{version}, Resource={resource.plural}"
    served = [one for one in factory.scheme if one.group == group and version in (one.version, *one.other_versions)]
    if not served:
        raise CliError(f"couldn't find resource for {quote(wanted)}")
    for one in served:
        if one.plural == resource.plural:
            return one._replace(version=version)
    raise CliError(f"error: GVR ({wanted}) not found in OpenAPI schema")


def schema_of(factory: Factory, resource: Resource) -> Schema:
    """Raises CliError for a kind that OpenAPI says nothing of."""
    from kubepy.api.schema.openapi import schema_for

    if resource.custom:
        return Schema(_custom_node(factory, resource))
    schema = schema_for(resource.api_version, resource.kind)
    if schema is None:
        raise CliError(f"there is no description of {resource.kind} in {resource.api_version}")
    return schema


def _custom_node(factory: Factory, resource: Resource) -> dict[str, Any]:
    """The schema of a custom resource, with the fields that every object has as a built-in type describes them."""
    from kubepy.api.schema.openapi import definition

    found = factory.client.get("customresourcedefinitions.apiextensions.k8s.io", resource.key)
    version = next(one for one in found["spec"]["versions"] if one["name"] == resource.version)
    node = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    every = definition("io.k8s.api.core.v1.ConfigMap")["properties"]
    general = {name: {key: value for key, value in every[name].items() if key != "enum"}
               for name in ("apiVersion", "kind", "metadata")}
    return {**node, "properties": {**(node.get("properties") or {}), **general}}


# --- what is said -------------------------------------------------------------------------------------------------


def _head(resource: Resource) -> Iterator[str]:
    if resource.group:
        yield f"GROUP:      {resource.group}"
    yield f"KIND:       {resource.kind}"
    yield f"VERSION:    {resource.version}"


def explanation(schema: Schema, path: list[str], *, recursive: bool = False) -> str:
    """All below the head: the field that the path names, its description, its fields. Raises CliError."""
    lines: list[str] = []
    for index, name in enumerate(path):
        owner = _holder(schema)
        field = owner.field(name)
        if field is None:
            raise CliError(f"field {quote(path[-1])} does not exist")
        if index == len(path) - 1:
            lines = [f"FIELD: {name} <{type_name(field)}>", *(_long_enum(owner, name, field) or [""]), ""]
        schema = field
    return "\n".join([*lines, *_description(schema), *field_lines(schema, 1, recursive=recursive, title="FIELDS:")])


def _holder(schema: Schema) -> Schema:
    """Where the fields are: what a list or map holds."""
    while not schema.fields() and (inner := schema.items() or schema.values()) is not None:
        schema = inner
    return schema


def _description(schema: Schema) -> list[str]:
    text = "".join(f"{one}\n" for one in descriptions(schema)) or "<empty>"
    return ["DESCRIPTION:", _indented(wrap(text, DESCRIPTION_WIDTH), 4)]


def descriptions(schema: Schema) -> Iterator[str]:
    """What a field says of itself, then its type, then what it holds."""
    if schema.own_description:
        yield schema.own_description
    if schema.name and schema.type_description:
        yield schema.type_description
    inner = schema.items() or schema.values()
    if inner is not None:
        yield from descriptions(inner)


def _indented(text: str, amount: int) -> str:
    pad = " " * amount
    return pad + text.replace("\n", "\n" + pad)


def field_lines(schema: Schema, level: int, *, recursive: bool, title: str = "",
                seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The fields of a type, by name; with ``recursive`` a line each, and theirs below, once for a type."""
    holder = _holder(schema)
    fields = {} if holder.name in seen else holder.fields()
    if fields and title:
        yield title
    for name, field in sorted(fields.items()):
        yield _field_line(holder, name, field, level)
        if recursive:
            yield from field_lines(field, level + 1, recursive=True, seen=seen | {holder.name} - {""})
        else:
            text = wrap(field.own_description or "<no description>", FIELDS_WIDTH - 2 * level)
            yield _indented(text, 2 * level + 2) + "\n"


def _field_line(owner: Schema, name: str, field: Schema, level: int) -> str:
    required = " -required-" if name in owner.required else ""
    values = enum_of(owner, name, field)
    shown = ", ".join(values[:SHORT_ENUM]) + (", ...." if len(values) > SHORT_ENUM else "")
    enum = f"\n{'  ' * level}enum: {shown}" if values else ""
    return f"{'  ' * level}{name}\t<{type_name(field)}>{required}{enum}"


def _long_enum(owner: Schema, name: str, field: Schema) -> list[str]:
    values = enum_of(owner, name, field)
    return ["ENUM:", *(f"    {one}" for one in values)] if values else []


def enum_of(owner: Schema, name: str, field: Schema) -> list[str]:
    """The values that a field can have; an empty one is shown as two quotes."""
    from kubepy.api.schema.openapi import enums

    values = enums().get(f"{owner.name}.{name}", []) if owner.name else field.enum
    return [str(one) or '""' for one in values]


def type_name(schema: Schema) -> str:
    """``string``, ``[]Container``, ``map[string]string``, ``PodSpec``, ``Object``."""
    if (items := schema.items()) is not None:
        return f"[]{type_name(items)}"
    if (values := schema.values()) is not None:
        return f"map[string]{type_name(values)}"
    if schema.name and schema.type in ("", "object"):
        return schema.go_name
    return "Object" if schema.type in ("", "object") else schema.type
