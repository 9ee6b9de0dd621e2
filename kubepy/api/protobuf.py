"""Protobuf: to come."""

from __future__ import annotations

from kubepy.api.meta import Object


class ProtobufError(ValueError):
    """Bytes are no object."""


def decode(data: bytes) -> Object:
    """Return the object that bytes encode. Raises ProtobufError."""
    raise ProtobufError("protobuf is not supported")


def encode_watch_event(event_type: str, encoded: bytes) -> bytes:
    """Return an event of a watch, with its length before it."""
    raise NotImplementedError


def encode(obj: Object) -> bytes:
    """Return an object as protobuf."""
    raise NotImplementedError
