"""The defaults in a structural schema (``apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object, clone
from kubepy.api.schema.structural import EMBEDDED, prune
from kubepy.api.schema.validating import validate
from kubepy.apiserver.validation.customs import validate_embedded

RULES = "x-kubernetes-validations"
_OBJECT: Object = {"apiVersion": "validation/v1", "kind": "Validation"}
_STANDARD = ("apiVersion", "kind", "metadata")


class _Around(NamedTuple):
    """Where a schema stands. ``build``: a value there → the whole object around it, ``in_meta``: of its metadata."""

    build: Callable[[Any], Any]
    in_meta: bool = False

    def at(self, name: str, *, standard: bool) -> _Around:
        return _Around(lambda value: self.build({name: value}), self.in_meta or standard)

    def item(self) -> _Around:
        return _Around(lambda value: self.build([value]), self.in_meta)


_ROOT = _Around(lambda value: value)


def validate_defaults(schema: Object, path: str) -> list[FieldError]:
    """Defaults hold nothing unknown, obey their own schema and its rules, and make no unsound metadata."""
    return list(_walk({**schema, EMBEDDED: True}, path, _ROOT))


def _walk(schema: Object, path: str, around: _Around) -> Iterator[FieldError]:
    embedded = bool(schema.get(EMBEDDED))
    here = _ROOT if embedded else around
    if (default := schema.get("default")) is not None:
        yield from _check(schema, default, f"{path}.default", here)
    if schema.get("items") is not None:
        yield from _walk(schema["items"], f"{path}.items", here.item())
    for name, property_ in (schema.get("properties") or {}).items():
        below = here.at(name, standard=embedded and name in _STANDARD)
        yield from _walk(property_, f"{path}.properties[{name}]", below)


def _check(schema: Object, default: Any, path: str, around: _Around) -> Iterator[FieldError]:
    if not around.in_meta:
        pruned = clone(default)
        prune(schema, pruned, is_resource=bool(schema.get(EMBEDDED)))
        if pruned != default:
            yield invalid_value(path, default, "must not have unknown fields")
    yield from list(_unsound(schema, default, path, around)) or _invalid(schema, default, path) or _refused(
        schema, default, path)


def _unsound(schema: Object, default: Any, path: str, around: _Around) -> Iterator[FieldError]:
    """What is wrong with the metadata that a default makes, or with objects embedded in it."""
    if not around.in_meta:
        yield from validate_embedded(schema, default, path)
    elif wrong := validate_embedded({EMBEDDED: True}, {**_OBJECT, **around.build(default)}):
        why = "; ".join(str(error).removeprefix(".") for error in wrong)
        yield invalid_value(path, default, f"must result in valid metadata: {why}")


def _invalid(schema: Object, default: Any, path: str) -> list[FieldError]:
    return [error._replace(field=path + (f".{error.field}" if error.field else ""))
            for error in validate(schema, default)]


def _refused(schema: Object, default: Any, path: str) -> list[FieldError]:
    """What the schema's own rules say of it, as to a new value. Nearly no schema has rules: see ``_validate_rules``."""
    if RULES not in str(schema):
        return []
    from kubepy.api.cel.rules import RuleSet

    return [error._replace(field=f"{path}.{error.field}" if error.field != "<nil>" else path)
            for error in RuleSet(schema).validate(default)]
