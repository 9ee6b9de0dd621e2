"""The validation of manifests by the command line itself, before the server sees them.

A document must name its kind. Fields are validated by the server, except for kinds that no server
takes, Lists above all: kubectl checks those, and the items of Lists, by their OpenAPI. Upstream:
``kubectl/pkg/validation``, ``kube-openapi/pkg/util/proto/validation``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import Schema
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api.schema import openapi

STOP_VALIDATE = "if you choose to ignore these errors, turn validation off with --validate=false"
NO_OBJECT = "invalid object to validate"
UNSUPPORTED = (
    "cannot perform warn validation if server-side field validation is unsupported, "
    "skipping validation"
)


def validate(factory: Factory, content: Any, source: str, validation: str) -> None:
    """Raise CliError for a document that is no object, and for Lists with items that their types do
    not allow.

    ``validation``: ``Strict``, ``Warn`` or ``Ignore``.
    """
    problems = [] if validation == "Ignore" else problems_of(factory, content, validation)
    if problems:
        raise CliError(
            f"error validating {quote(source)}: error validating data: {one_text(problems)}; "
            f"{STOP_VALIDATE}"
        )


def problems_of(factory: Factory, content: Any, validation: str) -> list[str]:
    """Return the problems of a document; with ``Warn`` none that the server reports."""
    problems = type_problems(content)
    if problems or factory.scheme.for_kind(content["apiVersion"], content["kind"]):
        return problems
    if validation == "Warn":
        factory.log("schema.go:145", UNSUPPORTED)
        return []
    if (content["apiVersion"], content["kind"]) != ("v1", "List"):
        return _object_problems(content)
    if not isinstance(content.get("items"), list):
        return [NO_OBJECT]
    return [
        problem
        for item in content["items"]
        for problem in type_problems(item) or _object_problems(item)
    ]


def one_text(problems: list[str]) -> str:
    """Return several problems as one text, each once."""
    unique = list(dict.fromkeys(problems))
    if len(unique) == 1:
        return unique[0]
    return f"[{', '.join(unique)}]"


def type_problems(content: Any) -> list[str]:
    """Return the reasons why a document does not name its kind (``getObjectKind``)."""
    if not isinstance(content, dict):
        return [NO_OBJECT]
    problems = []
    for name in ("apiVersion", "kind"):
        if content.get(name) is None:
            problems.append(f"{name} not set")
        elif not isinstance(content[name], str):
            problems.append(f"{name} isn't string type")
        elif name == "apiVersion" and content[name].count("/") > 1:
            problems.append(f"unexpected GroupVersion string: {content[name]}")
    return problems


def _object_problems(obj: Object) -> list[str]:
    """Return the differences of an object from the OpenAPI of its kind; none for an unknown
    kind."""
    schema = openapi.schema_for(obj["apiVersion"], obj["kind"])
    if schema:
        return list(_problems(obj, schema, obj["kind"], schema.name))
    return []


def _problems(value: Any, schema: Schema, path: str, type_path: str) -> Iterator[str]:
    """Yield the problems of a value at ``path`` in the object and ``type_path`` in its types."""
    if schema.name:
        type_path = schema.name
    if isinstance(value, bool):
        kind = "boolean"
    else:
        kind = {dict: "map", list: "array", int: "integer", float: "number"}.get(
            type(value), "string"
        )

    expected = (
        "string"
        if schema.int_or_string or schema.go_name == "Quantity"
        else {"object": "map"}.get(schema.type, schema.type)
    )  # "" where anything is allowed
    # A scalar passes for another: anything for a string, one number for the other.
    passes = kind not in ("map", "array") and (
        expected == "string" or {kind, expected} == {"number", "integer"}
    )
    if expected and kind != expected and not passes:
        yield _error(
            path, f"invalid type for {type_path}: got {quote(kind)}, expected {quote(expected)}"
        )
    elif kind == "map" and schema.fields():
        yield from _field_problems(value, schema, path, type_path)
    elif kind == "map" and (values := schema.values()):
        for name in sorted(value):
            if value[name] is None:
                yield f'unknown object type "nil" in {path}.{name}'
            else:
                yield from _problems(value[name], values, f"{path}.{name}", type_path)
    elif kind == "array" and (items := schema.items()):
        for index, item in enumerate(value):
            if item is None:
                yield _error(path, f'unknown object type "nil" in {path}[{index}]')
            else:
                yield from _problems(item, items, f"{path}[{index}]", type_path)


def _field_problems(value: Object, schema: Schema, path: str, type_path: str) -> Iterator[str]:
    for name in sorted(value):
        field = schema.field(name)
        if value[name] is None:
            continue
        if field is None:
            yield _error(path, f"unknown field {quote(name)} in {type_path}")
        else:
            yield from _problems(value[name], field, f"{path}.{name}", f"{type_path}.{name}")
    for name in schema.required:
        if value.get(name) is None:
            yield _error(path, f"missing required field {quote(name)} in {type_path}")


def _error(path: str, message: str) -> str:
    return f"ValidationError({path}): {message}"
