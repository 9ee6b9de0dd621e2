"""Values of expressions: CEL's own kinds, and those that Kubernetes adds (``apiserver/pkg/cel``).

bool, str, bytes, float, list, dict and None are Python's; ``int`` is CEL's int of 64 bits. Objects
of a schema are :class:`Record`, which tells a missing field from a missing key.
"""

from __future__ import annotations

import json
from datetime import datetime
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any, NamedTuple

from kubepy.api.values.gourls import GoUrl
from kubepy.api.values.quantity import Quantity
from kubepy.storage.frozen import FrozenDict, FrozenList

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1
MAX_MESSAGE = 5 * 1024  # bytes of the value of a messageExpression


class CelError(Exception):
    """An error of an evaluation, in cel-go's words."""


class Uint(int):
    """An unsigned number of 64 bits."""


class Record(dict[str, Any]):
    """An object whose fields a schema declares."""


class StructValue(Record):
    """An object that an expression makes, of a type that it names: ``Object.spec``."""

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name


def reserved(word: str) -> str:
    """Return the spelling of a field whose name is a reserved word of CEL; expressions may write
    the word as well."""
    return f"__{word}__"


class SetList(list[Any]):
    """A list of type set: the order of its items has no meaning."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, list)
            and len(self) == len(other)
            and all(equals_any(item, other) for item in self)
        )

    __hash__ = None


class MapList(list[Any]):
    """A list of type map: items are identified by their keys, and their order has no meaning."""

    keys: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list) or len(self) != len(other):
            return False
        return all(equals_any(item, other) for item in self)

    def key_of(self, item: Record) -> str:
        return json.dumps([item.get(key) for key in self.keys], default=str)

    __hash__ = None


def equals_any(item: Any, others: list[Any]) -> bool:
    return any(bool(item == other) for other in others)


class Duration(NamedTuple):
    nanos: int


class CelType(NamedTuple):
    """The value of ``type(x)``."""

    name: str


class OptionalValue(NamedTuple):
    value: Any
    has_value: bool


NONE = OptionalValue(None, has_value=False)


class Format(NamedTuple):
    """A named check of strings: ``format.dns1123Label()``."""

    name: str


class Semver(NamedTuple):
    major: int
    minor: int
    patch: int
    prerelease: str


_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    FrozenList: "list",
    FrozenDict: "map",
    type(None): "null",
    datetime: "timestamp",
    Duration: "duration",
    CelType: "type",
    OptionalValue: "optional",
    Record: "object",
    StructValue: "object",
    SetList: "list",
    MapList: "list",
    Quantity: "quantity",
    GoUrl: "url",
    IPv4Address: "ip",
    IPv6Address: "ip",
    IPv4Interface: "cidr",
    IPv6Interface: "cidr",
    Format: "format",
    Semver: "semver",
}
# The names in expressions (``type(x)``) of kinds that are called otherwise here.
TYPE_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "format": "kubernetes.NamedFormat",
    "semver": "kubernetes.Semver",
}


def kind_of(value: Any) -> str:
    return _KINDS[type(value)]


def kind_of_type(python_type: type) -> str:
    return _KINDS[python_type]
