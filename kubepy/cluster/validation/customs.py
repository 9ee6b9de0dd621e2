"""Custom resources, beyond their schemas: embedded objects, finalizers (``registry/customresource``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubepy.cluster.errors import FieldError, invalid_value, required
from kubepy.cluster.objects.meta import FOREGROUND, ORPHAN, Object
from kubepy.cluster.schema.structural import EMBEDDED, Schema
from kubepy.cluster.validation.labels import label_key
from kubepy.cluster.validation.metadata import validate_object_meta
from kubepy.cluster.validation.names import dns1035_label, path_segment

_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_PREFER = "prefer a domain-qualified finalizer name"
_CONFLICTS = "to avoid accidental conflicts with other finalizer writers"


def finalizer_warnings(finalizers: Iterable[str]) -> list[str]:
    warnings = []
    for name in sorted(set(finalizers)):
        complaints = list(label_key(name))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            complaints.append(f"{_PREFER} {'including a path (/) ' if '.' in name else ''}{_CONFLICTS}")
        warnings += [f'metadata.finalizers: "{name}": {why}' for why in complaints]
    return warnings


# --- embedded objects -----------------------------------------------------------------------------------------------


def validate_embedded(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """Every object of ``x-kubernetes-embedded-resource`` has a kind, a version and sound metadata."""
    return list(_walk(schema, value, path))


def _walk(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(schema.get("items") or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get(EMBEDDED):
            yield from _check(value, path)
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key in sorted(value):
            if key in fields:
                yield from _walk(fields[key], value[key], f"{path}.{key}" if path else key)
            elif isinstance(others, Mapping):
                yield from _walk(others, value[key], f"{path}[{key}]")


def _check(value: Object, path: str) -> Iterator[FieldError]:
    yield from (required(f"{path}.{field}") for field in ("apiVersion", "kind") if field not in value)
    for field in ("apiVersion", "kind"):
        found = value.get(field)
        if field in value and not isinstance(found, str):
            yield invalid_value(f"{path}.{field}", found, "must be a string")
        elif found == "":
            yield invalid_value(f"{path}.{field}", "", "must not be empty")
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        yield invalid_value(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    if isinstance(kind, str) and kind and (wrong := dns1035_label(kind.lower())):
        why = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        yield invalid_value(f"{path}.kind", kind, why)
    if isinstance(metadata := value.get("metadata"), dict):
        named = {**metadata, "name": metadata.get("name") or "fakename"}
        yield from validate_object_meta(named, namespaced=bool(metadata.get("namespace")), name_rule=path_segment,
                                        path=f"{path}.metadata")
