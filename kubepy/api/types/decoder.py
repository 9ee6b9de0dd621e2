"""Decoding of objects as in the API server: JSON into the Go type, through protobuf, and back
(sigs.k8s.io/json).

For every Go type a function is built on first use: ``decode(value, where, state)`` returns the
value as the server encodes it, None for nil. ``where`` is the place for messages: a chain of
(outer, key, name of the struct or "").
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.types import table
from kubepy.api.types.special import SPECIAL, DecodeError, Where, mismatch, path_of
from kubepy.storage.frozen import thawed

State = list[str]  # the paths of unknown fields
Decoder = Callable[[Any, Where, State], Any]

_BYTES = ("[]byte", "[]uint8")
_INTEGER_BITS = {"int": 64, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS = {"byte": 8, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


class Decoded(NamedTuple):
    """An object as the server holds it; only free-form parts are shared with the input.

    ``unknown_fields``: the paths of the fields that its type does not have, in the order of the
    keys (``spec.template.spec.containers[0].foo``). Duplicate keys cannot be among them: parsing
    has dropped them.
    """

    object: Object
    unknown_fields: list[str]


def decode(obj: Object) -> Decoded:
    """Decode an object by its apiVersion and kind. Of kinds without a table only the metadata is
    decoded.

    Raises DecodeError for values of the wrong type.
    """
    obj = thawed(obj)
    if (type_name := type_of(obj)) is not None:
        return decode_as(type_name, obj)
    if "metadata" not in obj:
        return Decoded(dict(obj), [])
    decoded = _decode_at("meta/v1.ObjectMeta", obj["metadata"], None)
    return Decoded(
        {**obj, "metadata": decoded.object}, [f"metadata.{path}" for path in decoded.unknown_fields]
    )


def first_error(obj: Object) -> DecodeError | None:
    """Return the first error of an object in the order of its keys; :func:`decode` finds that of
    the sorted keys."""
    if (type_name := type_of(obj)) is not None:
        try:
            decoder(type_name)(obj, None, [])
        except DecodeError as error:
            return error
    return None


def type_of(obj: Object) -> str | None:
    """Return the Go type of an object: ``apps/v1.DaemonSet``; None for kinds without a table."""
    package = table.package_of(obj.get("apiVersion", ""))
    type_name = f"{package}.{obj.get('kind')}"
    if package is not None and table.is_struct(type_name):
        return type_name
    return None


def decode_as(type_name: str, value: Any) -> Decoded:
    """Decode a value as the Go type ``core/v1.PodTemplateSpec``. Raises DecodeError."""
    return _decode_at(type_name, thawed(value), None)


def decode_metadata(value: Any) -> Object:
    """Decode the ``metadata`` of an object of any kind. Raises DecodeError."""
    metadata: Object = _decode_at(
        "meta/v1.ObjectMeta", thawed(value), (None, "metadata", "metadataOnlyObject")
    ).object
    return metadata


def _decode_at(type_name: str, value: Any, where: Where) -> Decoded:
    unknown: State = []
    try:
        decoded = decoder(type_name)(value, where, unknown)
    except DecodeError:
        decoder(type_name)(_in_key_order(value), where, [])
        raise
    if len(unknown) > 1:
        unknown = []
        decoder(type_name)(_in_key_order(value), where, unknown)
    return Decoded(decoded, unknown)


def _in_key_order(value: Any) -> Any:
    """Sort all keys, as clients send them: the first of several errors is reported, and unknown
    fields in order."""
    if isinstance(value, dict):
        return {key: _in_key_order(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_in_key_order(item) for item in value]
    return value


# --- decoders -------------------------------------------------------------------------------------


@cache
def decoder(type_name: str) -> Decoder:
    if type_name in _TYPES:
        return _TYPES[type_name]
    if type_name in _BYTES:
        return _decode_bytes
    if type_name.startswith("*"):
        return _pointer(type_name)
    if type_name.startswith("[]"):
        return _slice(type_name)
    if type_name.startswith("map["):
        return _map(type_name)
    if table.is_struct(type_name):
        return _struct(type_name)
    return _scalar(type_name)


def _schema_or_other(value: Any, where: Where, state: list[str]) -> Any:
    """Decode ``JSONSchemaPropsOrArray``, ``…OrStringArray``, which ignore unknown fields and values
    of other types."""
    schema = decoder("apiextensions/v1.JSONSchemaProps")
    if isinstance(value, list):
        return [
            schema(item, where, []) if isinstance(item, dict) else item for item in value
        ] or None
    if isinstance(value, dict):
        return schema(value, where, [])
    return None


def _schema_or_bool(value: Any, where: Where, state: list[str]) -> Any:
    """Decode ``JSONSchemaPropsOrBool``."""
    if isinstance(value, bool | None):
        return value
    if not isinstance(value, dict):
        raise DecodeError("boolean or JSON schema expected")
    return decoder("apiextensions/v1.JSONSchemaProps")(value, where, [])


# The schemas of both versions are the same.
_TYPES = dict(SPECIAL)
for _package in ("apiextensions/v1", "apiextensions/v1beta1"):
    _TYPES |= {
        f"{_package}.JSONSchemaPropsOrBool": _schema_or_bool,
        f"{_package}.JSONSchemaPropsOrArray": _schema_or_other,
        f"{_package}.JSONSchemaPropsOrStringArray": _schema_or_other,
    }


def _pointer(type_name: str) -> Decoder:
    inner = decoder(type_name[1:])

    def decode_pointer(value: Any, where: Where, state: State) -> Any:
        if value is None:
            return None
        return inner(value, where, state)

    return decode_pointer


def _slice(type_name: str) -> Decoder:
    inner = type_name[2:]
    shown = table.go_type(type_name)
    is_text = kind_of(inner) == "string"
    lazy = _Lazy(inner)

    def decode_slice(value: Any, where: Where, state: State) -> Any:
        if not value and (value is None or type(value) is list):
            return None  # protobuf does not tell an empty list from none
        if type(value) is not list:
            raise mismatch(value, where, shown)
        if is_text and all(type(item) is str for item in value):
            return value.copy()
        decode_item = lazy.decoder
        return [decode_item(item, (where, index, ""), state) for index, item in enumerate(value)]

    return decode_slice


def _map(type_name: str) -> Decoder:
    inner = table.map_parts(type_name)[1]
    shown = table.go_type(type_name)
    is_text = kind_of(inner) == "string"
    lazy = _Lazy(inner)

    def decode_map(value: Any, where: Where, state: State) -> Any:
        if not value and (value is None or type(value) is dict):
            return None
        if type(value) is not dict:
            raise mismatch(value, where, shown)
        if is_text and all(type(item) is str for item in value.values()):
            return value.copy()
        decode_item = lazy.decoder
        if inner in _BYTES:  # null is no bytes, which protobuf keeps
            value = {key: "" if item is None else item for key, item in value.items()}
        return {key: decode_item(item, (where, key, ""), state) for key, item in value.items()}

    return decode_map


class _Lazy:
    """The decoder of a type, built when it decodes its first value: types may contain
    themselves."""

    def __init__(self, type_name: str) -> None:
        self._type_name = type_name

    @property
    def decoder(self) -> Decoder:
        return decoder(self._type_name)


KEEP = 0
DROP_NIL = 1
DROP_EMPTY = 2


class _Slot(NamedTuple):
    """Decoding of a field of a struct. ``kind`` is the type of values that need no further
    decoding."""

    kind: str
    drop: int
    lazy: _Lazy


def _struct(type_name: str) -> Decoder:
    name = type_name.rpartition(".")[2]
    slots: dict[str, _Slot] = {}
    required: list[tuple[str, _Lazy]] = []
    for field in table.flat_fields(type_name):
        slot = slots[field.json] = _Slot(kind_of(field.type), drop_of(field), _Lazy(field.type))
        if slot.drop == KEEP:
            required.append((field.json, slot.lazy))

    def decode_struct(value: Any, where: Where, state: State) -> Any:
        if type(value) is not dict:
            if value is not None:
                raise mismatch(value, where, table.go_type(type_name))
            value = {}

        result: Object = {}
        for key, item in value.items():
            slot = slots.get(key)
            if slot is None:
                state.append(path_of((where, key, name)))
                continue
            kind, drop, lazy = slot
            if (kind == "string" and type(item) is str) or (kind == "bool" and type(item) is bool):
                if item or not drop:
                    result[key] = item
                continue
            decoded = lazy.decoder(item, (where, key, name), state)
            if not drop or (decoded if drop == DROP_EMPTY else decoded is not None):
                result[key] = decoded

        for key, lazy in required:
            if key not in result:
                result[key] = lazy.decoder(None, (where, key, name), state)
        return result

    return decode_struct


@cache
def kind_of(type_name: str) -> str:
    """Return ``string`` or ``bool`` for types of that kind, ``struct``, ``special``, or the type as
    it is written."""
    if type_name in _TYPES:
        return "special"
    if table.is_struct(type_name):
        return "struct"
    under = table.underlying(type_name)
    if under is None:
        return type_name
    return kind_of(under)


def drop_of(field: table.Field) -> int:
    """Return the values that leave a field out: none, nil, or any empty value. Structs are never
    empty."""
    if field.omit_zero or (field.omit_empty and field.type.startswith("*")):
        return DROP_NIL
    if not field.omit_empty or kind_of(field.type) in ("struct", "special"):
        if field.omit_empty and field.type in _NIL_ABLE:
            return DROP_NIL
        return KEEP
    return DROP_EMPTY


_NIL_ABLE = ("runtime.RawExtension", "meta/v1.FieldsV1")


def _scalar(type_name: str) -> Decoder:
    under = table.underlying(type_name)
    if under is not None and under.startswith(("[]", "map[")):
        return decoder(under)
    kind = kind_of(type_name)
    shown = table.go_type(type_name)
    if kind == "string":
        return _exactly(str, "", shown)
    if kind == "bool":
        return _exactly(bool, False, shown)
    if kind == "float64":
        return _float(shown)
    if kind in _INTEGER_BITS:
        limit = 2 ** (_INTEGER_BITS[kind] - 1)
        return _integer(shown, -limit, limit - 1)
    if kind in _UNSIGNED_BITS:
        return _integer(shown, 0, 2 ** _UNSIGNED_BITS[kind] - 1)
    return _as_it_is


def _as_it_is(value: Any, where: Where, state: State) -> Any:
    return value


def _exactly(type_: type, zero: Any, shown: str) -> Decoder:
    """Return a decoder that takes values of one type, and null for its zero value."""

    def decode_exactly(value: Any, where: Where, state: State) -> Any:
        if type(value) is type_:
            return value
        if value is None:
            return zero
        raise mismatch(value, where, shown)

    return decode_exactly


def _float(shown: str) -> Decoder:
    def decode_float(value: Any, where: Where, state: State) -> Any:
        if type(value) is float:
            if value.is_integer():
                return int(value)
            return value
        if type(value) is int or value is None:
            return value or 0
        raise mismatch(value, where, shown)

    return decode_float


def _integer(shown: str, low: int, high: int) -> Decoder:
    def decode_integer(value: Any, where: Where, state: State) -> Any:
        if value is None:
            return 0
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and low <= value <= high:
            return value
        raise mismatch(value, where, shown, exactly=True)

    return decode_integer


def _decode_bytes(value: Any, where: Where, state: State) -> Any:
    """Decode ``[]byte``: base64, encoded again as Go does, without line breaks."""
    if value is None:
        return None
    if type(value) is not str:
        raise mismatch(value, where, "[]uint8")
    text = value.replace("\r", "").replace("\n", "")
    try:
        return b64encode(b64decode(text, validate=True)).decode()
    except ValueError:
        raise DecodeError(f"illegal base64 data at input byte {_illegal_byte(value)}") from None


def _illegal_byte(text: str) -> int:
    """Return the byte at which Go's decoder stops (``encoding/base64``)."""
    alphabet = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    data = text.encode()
    in_quantum = 0
    for at, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte in alphabet:
            in_quantum = (in_quantum + 1) % 4
            continue
        if byte == ord("=") and in_quantum >= 2:
            return _after_padding(data, at, in_quantum)
        return at
    return len(data) - in_quantum


def _after_padding(data: bytes, at: int, in_quantum: int) -> int:
    """Return the first invalid byte after padding began at ``at``."""
    rest = [index for index in range(at + 1, len(data)) if data[index] not in b"\r\n"]
    if in_quantum == 3:
        if rest:
            return rest[0]
        return len(data)
    if not rest:
        return len(data)
    if data[rest[0]] != ord("="):
        return rest[0] - 1
    if len(rest) > 1:
        return rest[1]
    return len(data)
