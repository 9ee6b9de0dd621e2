"""Objects in Kubernetes' protobuf, as typed clients send them, to and from the shape of their JSON.

A body is four bytes of magic and a message ``runtime.Unknown``: apiVersion and kind, and the bytes
of the object. The numbers and types of all fields are in the tables of ``kubepy.api.types``; the
codec of a message is built when it is first used. Upstream:
``apimachinery/pkg/runtime/serializer/protobuf`` and the code that gogo/protobuf generates, whose
errors these are. Fields that a message does not have are skipped, as there.
"""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.clock import EPOCH, ZERO_TIME, format_micro_time, format_time
from kubepy.api.meta import Object
from kubepy.api.types import table
from kubepy.api.types.decoder import DROP_NIL, KEEP, decoder, drop_of
from kubepy.api.types.special import DecodeError, decode_micro_time, decode_time
from kubepy.api.types.table import Field
from kubepy.api.values.goformat import format_duration, format_float, parse_duration, to_json
from kubepy.quoting import quote

MAGIC = b"k8s\0"

_UNEXPECTED_END = "unexpected EOF"
_VARINT, _FIXED64, _DELIMITED, _START_GROUP, _END_GROUP, _FIXED32 = range(6)
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"  # Go names the scheme by the place where it is made

# The kinds of meta/v1 that exist in every group and version, and those that belong to v1.
_OPTIONS = frozenset(
    ("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions")
)
_UNVERSIONED = frozenset(("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"))


class ProtobufError(ValueError):
    """Bytes are no object, in the server's words.

    :ivar subject: the kind that they say they are, ``Pod in version "v1"``; "" if they do not get
        that far.
    """

    def __init__(self, message: str, subject: str = "") -> None:
        super().__init__(message)
        self.subject = subject


def decode(
    data: bytes,
    api_version: str = "",
    kind: str = "",
    fields_version: Callable[[str, str], str] | None = None,
) -> Object:
    """Decode a whole body into what the JSON of the same object would be after decoding.

    :param api_version: with ``kind`` what the request is about: taken where the body does not say.
    :param fields_version: returns for an apiVersion and a kind the apiVersion whose fields the
        object has, where there are no tables of its own.

    Raises ProtobufError.
    """
    subject = ""
    try:
        unknown = _read_envelope(data)
        meta = unknown["typeMeta"]
        meta = {"apiVersion": meta["apiVersion"] or api_version, "kind": meta["kind"] or kind}
        if meta["kind"]:
            subject = f"{meta['kind']} in version {quote(meta['apiVersion'].rpartition('/')[2])}"
        fields_meta = meta
        if fields_version is not None:
            fields_meta = meta | {"apiVersion": fields_version(meta["apiVersion"], meta["kind"])}
        return meta | _read_object(fields_meta, unknown["raw"])
    except DecodeError as error:
        raise ProtobufError(str(error), subject) from None


def encode(obj: Object, written_version: str = "") -> bytes:
    """Encode an object, a list, a Status … as a whole body. Raises NotAcceptable for kinds without
    protobuf.

    :param written_version: the apiVersion that the body says, in place of the object's.
    """
    api_version = obj.get("apiVersion", "")
    kind = obj.get("kind", "")
    return MAGIC + _message("runtime.Unknown").write(
        {
            "typeMeta": {"apiVersion": written_version or api_version, "kind": kind},
            "raw": _message_of(api_version, kind).write(obj),
        }
    )


def encode_list(api_version: str, kind: str, metadata: Object, items: Iterable[bytes]) -> bytes:
    """Encode a list whose objects are already encoded."""
    unknown = _message("runtime.Unknown")
    parts = [_message_of(api_version, kind).write({"metadata": metadata})]
    for item in items:
        parts += (b"\x12", _delimited(unknown.read(item, len(MAGIC), len(item))["raw"]))
    return MAGIC + unknown.write(
        {"typeMeta": {"apiVersion": api_version, "kind": kind}, "raw": b"".join(parts)}
    )


def encode_watch_event(event_type: str, encoded: bytes) -> bytes:
    """Return the frame of a watch event: its length in four bytes, and a WatchEvent that holds an
    encoded object."""
    event = b"".join(
        (b"\n", _delimited(event_type.encode()), b"\x12", _delimited(b"\n" + _delimited(encoded)))
    )
    return struct.pack(">I", len(event)) + event


def has_message(api_version: str, kind: str) -> bool:
    """Tell whether objects of a kind can be encoded. Custom resources and Tables cannot."""
    return _type_of(api_version, kind) is not None


def _type_of(api_version: str, kind: str) -> str | None:
    package = table.package_of(api_version)
    if (
        kind in _OPTIONS
        or (kind in _UNVERSIONED and api_version in ("", "v1"))
        or (api_version == "meta.k8s.io/v1beta1" and kind == "PartialObjectMetadata")
    ):
        package = "meta/v1"
    name = f"{package}.{kind}"
    if package is None or not table.is_struct(name):
        return None
    fields = table.fields(name)
    if fields and fields[0].go == "TypeMeta" and any(field.number for field in fields):
        return name
    return None


def _message_of(api_version: str, kind: str) -> _Message:
    name = _type_of(api_version, kind)
    if name is None:
        raise errors.NotAcceptable(
            f"object {kind} in version {api_version} does not implement the protobuf "
            "marshalling interface and cannot be encoded to a protobuf message"
        )
    return _message(name)


def _read_envelope(data: bytes) -> Object:
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(MAGIC):
        raise DecodeError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if len(data) == len(MAGIC):
        raise DecodeError("empty body")
    unknown = _guarded(_message("runtime.Unknown"), data, len(MAGIC))
    meta = {"apiVersion": "", "kind": "", **unknown.get("typeMeta", {})}
    return {"raw": b"", **unknown, "typeMeta": meta}


def _read_object(meta: Object, raw: bytes) -> Object:
    for missing, value in (("Kind", meta["kind"]), ("apiVersion", meta["apiVersion"])):
        if not value:
            raise DecodeError(
                f"Object '{missing}' is missing in 'runtime.TypeMeta{{APIVersion:"
                f"{quote(meta['apiVersion'])}, Kind:{quote(meta['kind'])}}}'"
            )
    name = _type_of(meta["apiVersion"], meta["kind"])
    if name is None:
        raise DecodeError(
            f"no kind {quote(meta['kind'])} is registered for version {quote(meta['apiVersion'])} "
            f'in scheme "{_SCHEME}"'
        )
    return _guarded(_message(name), raw)


def _guarded(message: _Message, data: bytes, at: int = 0) -> Object:
    try:
        return message.read(data, at, len(data))
    except IndexError:
        raise DecodeError(_UNEXPECTED_END) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None


# --- the wire format ------------------------------------------------------------------------------


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends."""
    value = shift = 0
    while True:
        if shift >= 64:
            raise DecodeError("proto: integer overflow")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _read_length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return where the bytes begin and end whose length is at ``at``."""
    size, at = _read_varint(data, at)
    if size >> 63:
        raise DecodeError("proto: negative length found during unmarshaling")
    if at + size > end:
        raise DecodeError(_UNEXPECTED_END)
    return at, at + size


def _skip(data: bytes, at: int, end: int, wire: int) -> int:
    """Return the end of a value that no field is for; groups may be nested in each other."""
    depth = 0
    while True:
        if wire == _VARINT:
            at = _read_varint(data, at)[1]
        elif wire == _DELIMITED:
            at = _read_length(data, at, end)[1]
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        elif wire == _START_GROUP:
            depth += 1
        elif wire != _END_GROUP:
            raise DecodeError(f"proto: illegal wireType {wire}")
        else:
            depth -= 1
        if at > end:
            raise DecodeError(_UNEXPECTED_END)
        if not depth:
            return at
        tag, at = _read_varint(data, at)
        wire = tag & 7


_SMALL = tuple(bytes((number,)) for number in range(128))


def varint(value: int) -> bytes:
    """Return a number as protobuf writes it; one below zero has ten bytes."""
    if 0 <= value < 128:
        return _SMALL[value]
    value &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _delimited(data: bytes) -> bytes:
    return varint(len(data)) + data


# --- messages -------------------------------------------------------------------------------------

_SINGLE, _REPEATED, _PACKED, _MAP, _INLINE = range(5)


class _Slot(NamedTuple):
    """Reading of a field. ``drop``: the values that leave it out."""

    json: str
    mode: int
    read: Callable[..., Any]
    drop: int


class _Writer(NamedTuple):
    """Writing of a field. ``optional``: it is left out where JSON does not have it, instead of
    writing its zero."""

    json: str
    mode: int
    tag: bytes
    codec: _Codec
    optional: bool


class _Message:
    """A message: the fields of a Go struct by their numbers."""

    def __init__(self, type_name: str, fields: tuple[Field, ...], *, complete: bool) -> None:
        self._name = type_name.rpartition(".")[2]
        self._type_name = type_name
        self._fields = sorted(
            (field for field in fields if field.number), key=lambda field: field.number
        )
        self._complete = complete

    @cached_property
    def _slots(self) -> dict[int, _Slot]:
        """The readers by tag: number and wire type."""
        slots = {}
        for field in self._fields:
            mode, type_name = _mode_of(field)
            codec = _map_codec(type_name) if mode == _MAP else _codec(type_name)
            drop = drop_of(field) if self._complete else KEEP
            slots[field.number << 3 | codec.wire] = _Slot(field.json, mode, codec.read, drop)
            if mode == _REPEATED and codec.wire == _VARINT:
                slots[field.number << 3 | _DELIMITED] = _Slot(
                    field.json, _PACKED, _packed(codec.read), drop
                )
        return slots

    @cached_property
    def _zeros(self) -> list[tuple[str, Callable[..., Any]]]:
        """The fields that JSON always has, with what makes their zero value."""
        if not self._complete:
            return []
        return [
            (field.json, decoder(field.type))
            for field in table.flat_fields(self._type_name)
            if field.number and drop_of(field) == KEEP
        ]

    def read(self, data: bytes, at: int, end: int, old: Object | None = None) -> Object:
        """Return the message from ``at`` to ``end``, merged into an earlier occurrence of it."""
        result: Object = {} if old is None else old
        slots = self._slots
        while at < end:
            tag, at = (data[at], at + 1) if data[at] < 128 else _read_varint(data, at)
            slot = slots.get(tag)
            if slot is None:
                at = self._skip_unknown(tag, data, at, end)
                continue
            name, mode, read, drop = slot
            if tag & 7 == _DELIMITED:
                start = at + 1
                at = start + data[at]
                if at - start > 127 or at > end:
                    start, at = _read_length(data, start - 1, end)
                if mode == _INLINE:
                    read(data, start, at, result)
                    continue
                value = read(data, start, at, result.get(name) if mode == _SINGLE else None)
            else:
                number, at = (
                    _read_varint(data, at) if tag & 7 == _VARINT else _read_fixed64(data, at)
                )
                value = read(number)
            if mode != _SINGLE:
                _add(result, name, mode, value)
            elif value or not drop or (drop == DROP_NIL and value is not None):
                result[name] = value
            else:
                result.pop(name, None)

        if at > end:
            raise DecodeError(_UNEXPECTED_END)
        for name, zero in self._zeros:
            if name not in result:
                result[name] = zero(None, None, [])
        return result

    def _skip_unknown(self, tag: int, data: bytes, at: int, end: int) -> int:
        number = tag >> 3 & 0xFFFFFFFF
        wire = tag & 7
        if wire == _END_GROUP:
            raise DecodeError(f"proto: {self._name}: wiretype end group for non-group")
        if not 0 < number < 2**31:
            raise DecodeError(
                f"proto: {self._name}: illegal tag {_signed(number, 32)} (wire type {tag})"
            )
        if field := next((field for field in self._fields if field.number == number), None):
            raise DecodeError(f"proto: wrong wireType = {wire} for field {field.go}")
        return _skip(data, at, end, wire)

    @cached_property
    def _writers(self) -> list[_Writer]:
        writers = []
        for field in self._fields:
            mode, type_name = _mode_of(field)
            codec = _map_codec(type_name) if mode == _MAP else _codec(type_name)
            optional = field.type.startswith("*") or field.type in _BYTES or field.type == _RAW
            writers.append(
                _Writer(field.json, mode, varint(field.number << 3 | codec.wire), codec, optional)
            )
        return writers

    def write(self, value: Object) -> bytes:
        """Encode a message: its fields by their numbers, maps by their keys. Fields that are no
        pointers always are."""
        parts: list[bytes] = []
        for name, mode, tag, codec, optional in self._writers:
            item: Any = value if mode == _INLINE else value.get(name)
            items: Sequence[Any]
            if mode == _MAP:
                items = [{"key": key, "value": item[key]} for key in sorted(item)] if item else ()
            elif mode == _REPEATED:
                items = item or ()
            else:
                items = () if optional and item is None else (item,)
            for item in items:
                encoded = codec.write(item)
                parts += (
                    (tag, varint(len(encoded)), encoded)
                    if codec.wire == _DELIMITED
                    else (tag, encoded)
                )

        return b"".join(parts)


def _add(result: Object, name: str, mode: int, value: Any) -> None:
    """Add a value to a list or a map, or values to a list."""
    if mode == _MAP:
        entries = result[name] = result.get(name) or {}
        entries[value["key"]] = value["value"]
    else:
        items: list[Any] = result.get(name) or []
        items += value if mode == _PACKED else (value,)
        result[name] = items


def _mode_of(field: Field) -> tuple[int, str]:
    """Return the mode of a field, and the type of its values; of a map the type of the map."""
    type_name = _resolved(field.type)
    if field.inline:
        return _INLINE, type_name
    if type_name.startswith("map["):
        return _MAP, type_name
    if type_name.startswith("[]") and type_name not in _BYTES:
        return _REPEATED, _resolved(type_name[2:])
    return _SINGLE, type_name


def _resolved(type_name: str) -> str:
    """Return the type behind pointers and names (``*core/v1.RestartPolicy``: ``string``).

    A named list of strings is a message of its own, others are not.
    """
    type_name = type_name.removeprefix("*")
    under = None if type_name in _SPECIAL else table.underlying(type_name)
    if under in (None, "[]string"):
        return type_name
    return _resolved(str(under))


@cache
def _message(type_name: str) -> _Message:
    if type_name in _SPECIAL or type_name in _ENVELOPE:
        fields = _ENVELOPE.get(type_name) or _SPECIAL[type_name].fields or table.fields(type_name)
        return _Message(type_name, fields, complete=False)
    if not table.is_struct(type_name):
        return _Message(type_name, (_field("Items", "items", "[]string", 1),), complete=False)
    return _Message(type_name, table.fields(type_name), complete=True)


# --- values ---------------------------------------------------------------------------------------


class _Codec(NamedTuple):
    """Reading and writing of values of a type.

    :ivar read: takes a number, or for delimited ones the data, their first and last index and an
        earlier value.
    :ivar write: takes a value of JSON, or None for Go's zero value.
    """

    wire: int
    read: Callable[..., Any]
    write: Callable[[Any], bytes]


@cache
def _codec(type_name: str) -> _Codec:
    """Return the codec of a single value, which is no map."""
    if type_name in _SCALARS:
        return _SCALARS[type_name]
    if type_name in _SPECIAL:
        return _special_codec(type_name)
    message = _message(type_name)
    if table.underlying(type_name) == "[]string":
        return _Codec(
            _DELIMITED,
            lambda *place: message.read(*place).get("items"),
            lambda value: message.write({"items": value}),
        )
    return _Codec(_DELIMITED, message.read, lambda value: message.write(value or {}))


def _map_codec(type_name: str) -> _Codec:
    """Return the codec of an entry of a map, ``{"key": …, "value": …}``."""
    key_type, value_type = table.map_parts(type_name)
    message = _Message(
        type_name,
        (_field("Key", "key", key_type, 1), _field("Value", "value", value_type, 2)),
        complete=False,
    )
    zero = decoder(value_type)

    def read_entry(data: bytes, at: int, end: int, old: None) -> Object:
        entry = message.read(data, at, end)
        entry.setdefault("key", "")
        if "value" not in entry:
            entry["value"] = "" if value_type in _BYTES else zero(None, None, [])
        return entry

    return _Codec(_DELIMITED, read_entry, message.write)


def _packed(read: Callable[[int], Any]) -> Callable[..., list[Any]]:
    def read_packed(data: bytes, at: int, end: int, old: None) -> list[Any]:
        values = []
        while at < end:
            number, at = _read_varint(data, at)
            values.append(read(number))
        if at > end:
            raise DecodeError(_UNEXPECTED_END)
        return values

    return read_packed


def _integer(bits: int) -> _Codec:
    return _Codec(_VARINT, lambda number: _signed(number, bits), lambda value: varint(value or 0))


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    if number >> bits - 1:
        return number - (1 << bits)
    return number


def _read_fixed64(data: bytes, at: int) -> tuple[int, int]:
    if at + 8 > len(data):
        raise DecodeError(_UNEXPECTED_END)
    return int.from_bytes(data[at : at + 8], "little"), at + 8


def _float(number: int) -> float:
    (value,) = struct.unpack("<d", number.to_bytes(8, "little"))
    if not math.isfinite(value):
        raise DecodeError(f"json: unsupported value: {format_float(value)}")
    if value.is_integer():
        return int(value)
    return float(value)


def _text(data: bytes, at: int, end: int, old: Any) -> str:
    """Return a string; each byte that is not UTF-8 becomes U+FFFD, as in the JSON that Go makes of
    it."""
    try:
        return data[at:end].decode()
    except UnicodeDecodeError:
        return re.sub("[\udc80-\udcff]", "\ufffd", data[at:end].decode(errors="surrogateescape"))


_BYTES = ("[]byte", "[]uint8")
_RAW = "raw"  # the bytes of JSON that is kept as it came
_SCALARS = {
    "string": _Codec(_DELIMITED, _text, lambda value: (value or "").encode(errors="replace")),
    "bool": _Codec(_VARINT, bool, lambda value: b"\1" if value else b"\0"),
    "float64": _Codec(_FIXED64, _float, lambda value: struct.pack("<d", value or 0)),
    **{f"int{bits or ''}": _integer(bits or 64) for bits in (0, 16, 32, 64)},
    **dict.fromkeys(
        _BYTES,
        _Codec(
            _DELIMITED,
            lambda data, at, end, old: b64encode(data[at:end]).decode(),
            lambda value: b64decode(value or ""),
        ),
    ),
    _RAW: _Codec(_DELIMITED, lambda data, at, end, old: data[at:end], bytes),
}


# --- messages whose JSON is something else --------------------------------------------------------


class _Special(NamedTuple):
    """A type that writes its JSON itself.

    :ivar fields: those of its message; () where the table has them.
    :ivar from_message: makes the value in JSON of the message.
    :ivar to_message: makes the message of the value in JSON.
    """

    fields: tuple[Field, ...]
    from_message: Callable[[Object], Any]
    to_message: Callable[[Any], Object]


def _special_codec(type_name: str) -> _Codec:
    special = _SPECIAL[type_name]
    message = _message(type_name)

    def read_special(data: bytes, at: int, end: int, old: Any) -> Any:
        return special.from_message(message.read(data, at, end))

    return _Codec(_DELIMITED, read_special, lambda value: message.write(special.to_message(value)))


def _field(go: str, name: str, type_name: str, number: int) -> Field:
    return Field(
        go, name, type_name, omit_empty=False, omit_zero=False, inline=False, number=number
    )


def _moment(message: Object, microseconds: int = 0) -> datetime | None:
    """Return the time of a Timestamp, None for Go's zero time. Raises DecodeError for years that
    RFC 3339 lacks."""
    try:
        moment = EPOCH + timedelta(seconds=message.get("seconds", 0), microseconds=microseconds)
    except OverflowError:
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]") from None
    if message and moment != ZERO_TIME:
        return moment
    return None


def _time_from(message: Object) -> str | None:
    moment = _moment(message)
    if moment:
        return format_time(moment)
    return None


def _micro_time_from(message: Object) -> str | None:
    moment = _moment(message, int(message.get("nanos", 0) / 1000))
    if moment:
        return format_micro_time(moment)
    return None


def _timestamp(text: str | None) -> Object:
    """Make the Timestamp of a time as the decoder writes it; the zero time has no fields."""
    if text is None:
        return {}
    since = datetime.fromisoformat(text) - EPOCH
    return {"seconds": since.days * 86400 + since.seconds, "nanos": since.microseconds * 1000}


def _int_or_string_from(message: Object) -> int | str:
    match message.get("type", 0):
        case 0:
            return int(message.get("intVal", 0))
        case 1:
            return str(message.get("strVal", ""))
    raise DecodeError("impossible IntOrString.Type")


def _int_or_string_to(value: int | str | None) -> Object:
    if isinstance(value, str):
        return {"type": 1, "strVal": value}
    return {"type": 0, "intVal": value}


def _json_from(message: Object) -> Any:
    """Parse JSON that is kept as it came, or an object that is itself in protobuf."""
    raw = message.get("raw")
    if raw is None:
        return None
    try:
        if raw.startswith(MAGIC):
            return decode(raw)
        return json.loads(raw)
    except ValueError as error:
        raise DecodeError(
            f"json: error calling MarshalJSON for type runtime.RawExtension: {error}"
        ) from None


def _json_to(value: Any) -> Object:
    if value is None:
        return {}
    return {"raw": to_json(value).encode()}


def _schema_or_other_to(value: Any) -> Object:
    if isinstance(value, dict):
        return {"Schema": value, "Allows": True}
    if isinstance(value, bool):
        return {"Allows": value}
    return {"JSONSchemas": value, "Property": value}


_TIMESTAMP = (_field("Seconds", "seconds", "*int64", 1), _field("Nanos", "nanos", "*int32", 2))
_JSON = _Special((_field("Raw", "raw", _RAW, 1),), _json_from, _json_to)
_SPECIAL = {
    "meta/v1.Time": _Special(
        _TIMESTAMP, _time_from, lambda value: _timestamp(value and decode_time(value))
    ),
    "meta/v1.MicroTime": _Special(
        _TIMESTAMP, _micro_time_from, lambda value: _timestamp(value and decode_micro_time(value))
    ),
    "meta/v1.Duration": _Special(
        (_field("Duration", "duration", "int64", 1),),
        lambda message: format_duration(message.get("duration", 0) / 1e9),
        lambda value: {"duration": round(parse_duration(value or "0") * 1e9)},
    ),
    "resource.Quantity": _Special(
        (_field("String_", "string", "string", 1),),
        lambda message: decoder("resource.Quantity")(message.get("string"), None, []),
        lambda value: {"string": decoder("resource.Quantity")(value, None, [])},
    ),
    "intstr.IntOrString": _Special(
        (
            _field("Type", "type", "int64", 1),
            _field("IntVal", "intVal", "int32", 2),
            _field("StrVal", "strVal", "string", 3),
        ),
        _int_or_string_from,
        _int_or_string_to,
    ),
    "runtime.RawExtension": _JSON,
    "meta/v1.FieldsV1": _JSON,
}
for _package in ("apiextensions/v1", "apiextensions/v1beta1"):
    _SPECIAL |= {
        f"{_package}.JSON": _JSON,
        f"{_package}.JSONSchemaPropsOrBool": _Special(
            (),
            lambda message: message.get("Schema", message.get("Allows", False)),
            _schema_or_other_to,
        ),
        f"{_package}.JSONSchemaPropsOrArray": _Special(
            (),
            lambda message: message.get("JSONSchemas") or message.get("Schema"),
            _schema_or_other_to,
        ),
        f"{_package}.JSONSchemaPropsOrStringArray": _Special(
            (),
            lambda message: message.get("Property") or message.get("Schema"),
            _schema_or_other_to,
        ),
    }
_ENVELOPE = {
    "runtime.TypeMeta": (
        _field("APIVersion", "apiVersion", "string", 1),
        _field("Kind", "kind", "string", 2),
    ),
    "runtime.Unknown": (
        _field("TypeMeta", "typeMeta", "runtime.TypeMeta", 1),
        _field("Raw", "raw", _RAW, 2),
        _field("ContentEncoding", "contentEncoding", "string", 3),
        _field("ContentType", "contentType", "string", 4),
    ),
}
