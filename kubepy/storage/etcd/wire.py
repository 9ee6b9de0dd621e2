"""The messages of etcd's API in protobuf's wire format.

A message is read as its fields in their order (:func:`read_fields`) and written field by field.
The numbers are those of etcd's ``api/etcdserverpb/rpc.proto`` and ``api/mvccpb/kv.proto``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes are no message."""


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it; one below zero has ten bytes."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def number_field(field: int, value: int) -> bytes:
    """Return a field that holds a number or a boolean; nothing for zero."""
    if not value:
        return b""
    tag = varint(field << 3)
    return tag + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a field that holds bytes or a text; nothing where they are empty."""
    if not value:
        return b""
    return message_field(field, value)


def message_field(field: int, value: bytes) -> bytes:
    """Return a field that holds a message, be it empty."""
    tag = varint(field << 3 | _DELIMITED)
    size = varint(len(value))
    return tag + size + value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Give each field's number and value: an integer, or the bytes of a text or a message.

    Raises WireError.
    """
    at = 0
    end = len(data)
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = read_varint(data, at - 1)
            kind = tag & 7
            if kind == _VARINT:
                value, at = read_varint(data, at)
                yield tag >> 3, value
            elif kind == _DELIMITED:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = read_varint(data, at - 1)
                yield tag >> 3, data[at : at + size]
                at += size
            elif kind in (_FIXED64, _FIXED32):
                at += 8 if kind == _FIXED64 else 4
            else:
                raise WireError(f"wire type {kind} is unknown")
    except IndexError:
        raise WireError("a message ends too early") from None
    if at > end:
        raise WireError("a message ends too early")


def signed(number: int) -> int:
    """Return an int64 of its bits."""
    if number >> 63:
        return number - (1 << 64)
    return number
