"""The generated tables of types, read a Go package at a time.

A type is named by its package and its name: ``core/v1.PodSpec``, ``apps.DaemonSetUpdateStrategy``
(internal), and written as Go writes it: ``*int32``, ``[]core/v1.Container``, ``map[string]string``.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

_DATA = Path(__file__).parent / "data"
_INTEGERS = ("byte", "int", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_PRIMITIVES = frozenset(("bool", "string", "float64", "map", "interface", *_INTEGERS))
_NAME = re.compile(r"[\w/.]+")

# The one package of named types that is no API group.
_NAMED_ELSEWHERE = {
    "types.UID": "string",
    "types.NodeName": "string",
    "types.NamespacedName": "string",
}


class Field(NamedTuple):
    """A field of a Go struct. ``json`` is "" for an inline one, ``number`` 0 for one that protobuf
    does not have."""

    go: str
    json: str
    type: str
    omit_empty: bool
    omit_zero: bool
    inline: bool
    number: int = 0


class _Package(NamedTuple):
    structs: dict[str, list[str]]
    named: dict[str, str]


def package_of(api_version: str) -> str | None:
    """Return the Go package of an apiVersion (``rbac/v1``), or None if it is not built in."""
    return _index().get(api_version)


@cache
def _index() -> dict[str, str]:
    index: dict[str, str] = json.loads((_DATA / "index.json").read_bytes())
    return index


@cache
def _package(name: str) -> _Package:
    path = _DATA / f"{name.replace('/', '_')}.json"
    if not path.exists():
        return _Package({}, {})
    table = json.loads(path.read_bytes())
    return _Package(table["structs"], table["named"])


@lru_cache(maxsize=4096)  # clients choose the names of kinds
def is_struct(type_name: str) -> bool:
    package, _, name = type_name.rpartition(".")
    return name in _package(package).structs


@cache
def fields(type_name: str) -> tuple[Field, ...]:
    """Return the fields of a struct in the order of its declaration. Raises KeyError for a type
    that is no struct."""
    package, _, name = type_name.rpartition(".")
    rows = (row.split() for row in _package(package).structs[name])
    return tuple(
        Field(
            go,
            "" if "i" in flags else json_name,
            _qualified(type_, package),
            "o" in flags,
            "z" in flags,
            "i" in flags,
            int(number[0]) if number else 0,
        )
        for go, json_name, type_, flags, *number in rows
    )


@cache
def flat_fields(type_name: str) -> tuple[Field, ...]:
    """Return the keys of the type's JSON: its fields, those of inlined structs in their place."""
    flat: list[Field] = []
    for field in fields(type_name):
        flat.extend(flat_fields(field.type) if field.inline else [field])
    return tuple(flat)


def underlying(type_name: str) -> str | None:
    """Return the type behind a named type that is no struct (``core/v1.RestartPolicy``:
    ``string``)."""
    if type_name in _NAMED_ELSEWHERE:
        return _NAMED_ELSEWHERE[type_name]
    package, _, name = type_name.rpartition(".")
    type_ = _package(package).named.get(name) if package else None
    if type_ is None:
        return None
    return _qualified(type_, package)


def go_type(type_name: str) -> str:
    """Return a type as Go prints it, its packages without their paths: ``[]v1.Container``."""
    return re.sub(r"[\w/]+/(?=\w+\.)", "", type_name)


def map_parts(type_name: str) -> tuple[str, str]:
    """Return the key and value type of ``map[K]V``."""
    key, _, value = type_name.removeprefix("map[").partition("]")
    return key, value


def _qualified(type_: str, package: str) -> str:
    """Return a type with the package of every name in it that has none."""
    return _NAME.sub(
        lambda match: (
            match[0] if "." in match[0] or match[0] in _PRIMITIVES else f"{package}.{match[0]}"
        ),
        type_,
    )
