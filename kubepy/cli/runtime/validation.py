"""What the command line itself says of a manifest before the server sees it.

A document must say what it is. Fields are the server's to validate, but for kinds that no server takes, Lists above
all: kubectl goes through those, and the items of Lists, by their OpenAPI. Upstream: ``kubectl/pkg/validation``,
``kube-openapi/pkg/util/proto/validation``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import Schema
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.quoting import quote

STOP_VALIDATE = "if you choose to ignore these errors, turn validation off with --validate=false"
NO_OBJECT = "invalid object to validate"
UNSUPPORTED = "cannot perform warn validation if server-side field validation is unsupported, skipping validation"


def validate(factory: Factory, content: Any, source: str, validation: str) -> None:
    """Raises CliError for what is no object, and for Lists with items that are not as their types say.

    ``validation``: ``Strict``, ``Warn`` or ``Ignore``.
    """
    problems = [] if validation == "Ignore" else problems_of(factory, content, validation)
    if problems:
        raise CliError(f"error validating {quote(source)}: error validating data: {one_text(problems)}; "
                       f"{STOP_VALIDATE}")


def problems_of(factory: Factory, content: Any, validation: str) -> list[str]:
    """The problems of a document; with ``Warn`` none that are the server's to find."""
    problems = type_problems(content)
    if problems or factory.scheme.for_kind(content["apiVersion"], content["kind"]):
        return problems
    if validation == "Warn":
        factory.log("schema.go:145", UNSUPPORTED)
        return []
    is_list = (content["apiVersion"], content["kind"]) == ("v1", "List")
    return _list_problems(content) if is_list else _object_problems(content)


def one_text(problems: list[str]) -> str:
    """Several problems as one, each told once."""
    told = list(dict.fromkeys(problems))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def type_problems(content: Any) -> list[str]:
    """What keeps a document from naming its kind (``getObjectKind``)."""
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


def _list_problems(content: Object) -> list[str]:
    if not isinstance(content.get("items"), list):
        return [NO_OBJECT]
    return [problem for item in content["items"] for problem in type_problems(item) or _object_problems(item)]


def _object_problems(obj: Object) -> list[str]:
    """What of an object is not as the OpenAPI of its kind says; of an unknown kind nothing."""
    from kubepy.api.schema.openapi import schema_for

    schema = schema_for(obj["apiVersion"], obj["kind"])
    return list(_problems(obj, schema, obj["kind"], schema.name)) if schema else []


def _problems(value: Any, schema: Schema, path: str, type_path: str) -> Iterator[str]:
    """``path`` is where in the object, ``type_path`` where in the types."""
    if schema.name:
        type_path = schema.name
    found = _kind_of(value)
    wanted = _wanted(schema)
    if wanted and found != wanted and (found in ("map", "array") or not _is_taken(found, wanted)):
        yield _error(path, f"invalid type for {type_path}: got {quote(found)}, expected {quote(wanted)}")
    elif found == "map" and schema.fields():
        yield from _field_problems(value, schema, path, type_path)
    elif found == "map" and (values := schema.values()):
        yield from _entry_problems(value, values, path, type_path)
    elif found == "array" and (items := schema.items()):
        yield from _item_problems(value, items, path, type_path)


def _is_taken(found: str, wanted: str) -> bool:
    """Whether a scalar passes for another: anything for a string, one number for the other."""
    return wanted == "string" or {found, wanted} == {"number", "integer"}


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


def _entry_problems(value: Object, values: Schema, path: str, type_path: str) -> Iterator[str]:
    for name in sorted(value):
        if value[name] is None:
            yield f'unknown object type "nil" in {path}.{name}'
        else:
            yield from _problems(value[name], values, f"{path}.{name}", type_path)


def _item_problems(value: list[Any], items: Schema, path: str, type_path: str) -> Iterator[str]:
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if item is None:
            yield _error(path, f'unknown object type "nil" in {place}')
        else:
            yield from _problems(item, items, place, type_path)


def _error(path: str, why: str) -> str:
    return f"ValidationError({path}): {why}"


def _kind_of(value: Any) -> str:
    """The kind of a value, as the messages name it."""
    if isinstance(value, bool):
        return "boolean"
    return {dict: "map", list: "array", int: "integer", float: "number"}.get(type(value), "string")


def _wanted(schema: Schema) -> str:
    """The kind that a type wants, "" where anything goes."""
    if schema.int_or_string or schema.go_name == "Quantity":
        return "string"
    return {"object": "map"}.get(schema.type, schema.type)
