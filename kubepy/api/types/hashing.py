"""The hashes in the names of ReplicaSets, ControllerRevisions and pods: the same as in a real
cluster.

A pod template is printed as go-spew prints the Go struct (``pkg/util/hash``,
``k8s.io/utils/dump.ForHash``: ``%#v``, no methods, no addresses, sorted keys) and hashed. The print
names every field of every struct with its type, down to the unexported ones of a Quantity.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kubepy.api.clock import SUFFIX_ALPHABET, parse_time
from kubepy.api.meta import AnyObject
from kubepy.api.types import table
from kubepy.api.values.goformat import to_json
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import quantity

_PRIME = 16777619
_OFFSET = 2166136261
_MASK = 2**32 - 1
_PRIME_128 = 2**88 + 2**8 + 0x3B
_OFFSET_128 = 0x6C62272E07BB014262B821756295C58D


def compute_hash(template: AnyObject, collision_count: int | None = None) -> str:
    """Return the hash of a pod template as the API server stores it
    (``controller.ComputeHash``)."""
    return _hash_template(json.dumps(template), collision_count)


@lru_cache(maxsize=256)
def _hash_template(template: str, collision_count: int | None) -> str:
    data = go_syntax("core/v1.PodTemplateSpec", json.loads(template)).encode()
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little")
    value = _OFFSET
    for byte in data:  # FNV-1a
        value = (value ^ byte) * _PRIME & _MASK
    return _safe_encode(value)


def hash_controller_revision(data: AnyObject, collision_count: int | None = None) -> str:
    """Return the hash of a ControllerRevision's data (``history.HashControllerRevision``)."""
    return _hash_controller_revision(to_json(data), collision_count)


@lru_cache(maxsize=256)
def _hash_controller_revision(raw: str, collision_count: int | None) -> str:
    data = (raw + ("" if collision_count is None else str(collision_count))).encode()
    value = _OFFSET
    for byte in data:  # FNV-1
        value = value * _PRIME & _MASK ^ byte
    return _safe_encode(value)


def deep_hash(type_name: str, value: Any) -> str:
    """Return the hash of a value of a Go type, in hexadecimal: FNV-1a of 128 bits
    (``hash.DeepHashObject``)."""
    return _deep_hash(type_name, json.dumps(value))


@lru_cache(maxsize=256)
def _deep_hash(type_name: str, value: str) -> str:
    number = _OFFSET_128
    for byte in go_syntax(type_name, json.loads(value)).encode():
        number = (number ^ byte) * _PRIME_128 % 2**128
    return f"{number:032x}"


def _safe_encode(value: int) -> str:
    """Encode a number's decimal digits (``rand.SafeEncodeString``)."""
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(value))


# --- go-spew --------------------------------------------------------------------------------------


def go_syntax(type_name: str, value: Any) -> str:
    """Return a value of a Go type as ``spew.Sprintf("%#v")`` prints it for a hash."""
    parts: list[str] = []
    _write(type_name, value, parts)
    return "".join(parts)


def _write(type_name: str, value: Any, parts: list[str], *, typed: bool = True) -> None:
    """Print a value into ``parts``. Elements of lists and maps come without their type
    (``typed``)."""
    if type_name.startswith("*"):
        if value is None:
            parts.append(f"({table.go_type(type_name)})<nil>" if typed else "<nil>")
        else:
            parts.append(f"({table.go_type(type_name)})" if typed else "<*>")
            _write(type_name[1:], value, parts, typed=False)
        return

    if typed:
        parts.append(f"({table.go_type(type_name)})")
    if type_name in _SPECIAL:
        parts.append(_SPECIAL[type_name](value))
    elif table.is_struct(type_name):
        fields = table.fields(type_name)
        for index, field in enumerate(fields):
            parts.append(f"{' ' if index else '{'}{field.go}:")
            _write(field.type, value if field.inline else (value or {}).get(field.json), parts)
        parts.append("}" if fields else "{}")
    else:
        _write_plain(table.underlying(type_name) or type_name, value, parts)


def _write_plain(type_name: str, value: Any, parts: list[str]) -> None:
    if type_name.startswith("[]"):
        inner = type_name[2:]
        for index, item in enumerate(value or ()):
            parts.append(" " if index else "[")
            _write(inner, item, parts, typed=False)
        parts.append(
            "]" if value else "<nil>"
        )  # protobuf, which the controllers read, has no empty lists
    elif type_name.startswith("map["):
        inner = table.map_parts(type_name)[1]
        for index, key in enumerate(sorted(value or ())):
            parts.append(f"{' ' if index else 'map['}{key}:")
            _write(inner, value[key], parts, typed=False)
        parts.append("]" if value else "<nil>")
    elif type_name == "string":
        parts.append(value or "")
    elif type_name == "bool":
        parts.append("true" if value else "false")
    else:
        parts.append(str(value or 0))


def _time(value: Any) -> str:
    """Print a template's creationTimestamp, which is never set: Go's zero time (wall, ext, loc)."""
    # Seconds since the year 1, as time.Time counts; upstream's would name the controller's own time
    # zone as loc.
    seconds = 0 if value is None else int(parse_time(value).timestamp()) + 62135596800
    return f"{{Time:(time.Time){{wall:(uint64)0 ext:(int64){seconds} loc:(*time.Location)<nil>}}}}"


def _int_or_string(value: Any) -> str:
    kind, number, text = (1, 0, value) if isinstance(value, str) else (0, value or 0, "")
    return f"{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"


def _quantity(value: Any) -> str:
    parsed, amount = quantity.scan("0" if value is None else value)
    number = amount or quantity.Int64Amount(0, 0)
    decimal = "(*inf.Dec)<nil>" if amount is not None else _decimal(parsed.nanos)
    return (
        f"{{i:(resource.int64Amount){{value:(int64){number.value} "
        f"scale:(resource.Scale){number.scale}}} "
        f"d:(resource.infDecAmount){{Dec:{decimal}}} s:(string){parsed.text} "
        f"Format:(resource.Format){parsed.format}}}"
    )


def _decimal(nanos: int) -> str:
    """Print a big amount: ``inf.Dec`` in billionths, its digits in words of 64 bits, the lowest
    first."""
    words = []
    rest = abs(nanos)
    while rest:
        words.append(str(rest & 2**64 - 1))
        rest >>= 64
    negative = "true" if nanos < 0 else "false"
    unscaled = f"(big.Int){{neg:(bool){negative} abs:(big.nat)[{' '.join(words)}]}}"
    return f"(*inf.Dec){{unscaled:{unscaled} scale:(inf.Scale)9}}"


_SPECIAL: dict[str, Callable[[Any], str]] = {
    "meta/v1.Time": _time,
    "intstr.IntOrString": _int_or_string,
    "resource.Quantity": _quantity,
}
