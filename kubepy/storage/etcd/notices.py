"""Watches: what the client asks etcd and what etcd tells."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.storage.etcd.messages import KeyValue, read_key_value, revision_of
from kubepy.storage.etcd.wire import (
    WireError,
    bytes_field,
    message_field,
    number_field,
    read_fields,
)


class KeyEvent(NamedTuple):
    """A change. ``kv`` of a deletion has only key and mod_revision."""

    is_delete: bool
    kv: KeyValue
    prev_kv: KeyValue | None


class WatchBatch(NamedTuple):
    """Events in the order of their revisions, all of each revision. Everything of the range up to
    ``revision`` has been given then; a batch may have no events and tell only that."""

    revision: int
    events: list[KeyEvent]


class WatchResponse(NamedTuple):
    """An answer to a watch, as etcd sends it."""

    revision: int
    created: bool
    canceled: bool
    compact_revision: int
    cancel_reason: str
    events: list[KeyEvent]


def watch_request(
    start: bytes, end: bytes, start_revision: int, *, prev_kv: bool, progress: bool
) -> bytes:
    """Encode a WatchRequest that creates a watch."""
    return message_field(
        1,
        bytes_field(1, start)
        + bytes_field(2, end)
        + number_field(3, start_revision)
        + number_field(4, progress)
        + number_field(6, prev_kv),
    )


def read_watch(data: bytes) -> WatchResponse:
    """Read a WatchResponse."""
    revision = compact_revision = 0
    created = canceled = False
    reason = b""
    events = []
    for field, content in read_fields(data):
        if field == 1:
            revision = revision_of(content)
        elif field == 3:
            created = bool(content)
        elif field == 4:
            canceled = bool(content)
        elif field == 5:
            compact_revision = content
        elif field == 6:
            reason = content
        elif field == 11:
            events.append(_read_event(content))
    return WatchResponse(revision, created, canceled, compact_revision, reason.decode(), events)


def _read_event(data: bytes) -> KeyEvent:
    is_delete = False
    kv = prev_kv = None
    for field, content in read_fields(data):
        if field == 1:
            is_delete = content == 1
        elif field == 2:
            kv = read_key_value(content)
        elif field == 3:
            prev_kv = read_key_value(content)
    if kv is None:
        raise WireError("an event has no key")
    return KeyEvent(is_delete, kv, prev_kv)
