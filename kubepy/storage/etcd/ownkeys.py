"""The values of kubepy's own, under ``/kubepy/``: no object is there, and nothing that a
kube-apiserver reads.

    /kubepy/settings                   the settings of the cluster, as JSON
    /kubepy/meta/NAME                  small values
    /kubepy/timeline/TIME-NUMBER       the entries of one write on the timeline
    /kubepy/expiring/TIME/RESOURCE/…   when a volatile object is over, in a cluster with a clock
    /kubepy/locks/NAME                 who holds a lock, and the election of the controllers
    /kubepy/rest                       revisions that have written nothing but such values
    /kubepy/mark                       is not there: read for the newest revision alone
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Sequence
from itertools import count
from typing import Any

from kubepy.storage.model import Key, Object
from kubepy.storage.timeline import TimelineEntry, from_text, to_text

LARGE = 64 << 10  # bytes from which on a small value is compressed
_COMPRESSED = b"\0z"  # begins a value that is
_numbers = count()  # of the entries of this process
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class OwnKeys:
    """The keys of one cluster.

    :param prefix: before all of them: ``""`` or ``/NAME…``.
    :ivar start: the first of them, up to ``end``.
    """

    def __init__(self, prefix: str) -> None:
        own = f"{prefix}/kubepy/".encode()
        self.start = own
        self.end = own[:-1] + b"0"
        self.settings = own + b"settings"
        self.mark = own + b"mark"
        self.rest = own + b"rest"
        self.meta = own + b"meta/"
        self.timeline = own + b"timeline/"
        self.expiring = own + b"expiring/"
        self.locks = own + b"locks/"

    def meta_key(self, name: str) -> bytes:
        return self.meta + name.encode()

    def meta_name(self, key: bytes) -> str:
        return key[len(self.meta) :].decode()

    def lock(self, name: str) -> bytes:
        return self.locks + name.encode()

    def new_timeline_key(self) -> bytes:
        """Return a key that nobody else writes: those of one process sort in their order, those of
        several by time. Transactions that are under way together may be done in another order."""
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(_numbers):09d}"
        return self.timeline + name.encode()

    def expiry(self, expires: float, key: Key) -> bytes:
        """Return the key that says when an object is over: they sort by time."""
        return self.expiring + f"{expires:020.6f}/{'/'.join(key)}".encode()

    def read_expiry(self, key: bytes) -> tuple[float, Key]:
        moment, *names = key[len(self.expiring) :].decode().split("/")
        return float(moment), Key(*names)


def end_of(prefix: bytes) -> bytes:
    """Return the end of the keys that begin with a prefix, which ends with a slash."""
    return prefix[:-1] + b"0"


def dump_text(text: str) -> bytes:
    """Return the bytes of a small value; large ones, which the memory of the controllers may be,
    are compressed."""
    value = text.encode()
    if len(value) < LARGE:
        return value
    return _COMPRESSED + zlib.compress(value, 1)


def load_text(value: bytes) -> str:
    if value.startswith(_COMPRESSED):
        value = zlib.decompress(value[len(_COMPRESSED) :])
    return value.decode()


def dump_settings(settings: Object) -> bytes:
    return _encoder.encode(settings).encode()


def load_settings(value: bytes) -> Object:
    settings: Object = json.loads(value)
    return settings


def dump_entries(entries: Sequence[TimelineEntry]) -> bytes:
    """Return the entries of the timeline of one write; its revision is that of the key."""
    rows = [
        [entry.at, *entry.key, entry.note, entry.is_outside, to_text(entry)] for entry in entries
    ]
    return _encoder.encode(rows).encode()


def load_entries(value: bytes, revision: int) -> list[TimelineEntry]:
    entries: list[TimelineEntry] = []
    rows: list[list[Any]] = json.loads(value)
    for at, resource, namespace, name, note, is_outside, views in rows:
        key = Key(resource, namespace, name)
        before, after = from_text(views)
        entries.append(TimelineEntry(revision, at, key, before, after, note, is_outside))
    return entries
