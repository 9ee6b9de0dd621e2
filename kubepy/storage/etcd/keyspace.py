"""The place of a cluster: an etcd, and the keys in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.errors import WatchDeniedError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.ownkeys import OwnKeys, end_of, load_entries, load_text
from kubepy.storage.etcd.rest import RestNotes
from kubepy.storage.etcd.values import StoredForms, Values
from kubepy.storage.state import ObjectRecord
from kubepy.storage.timeline import TimelineEntry, cut

if TYPE_CHECKING:
    from kubepy.storage.etcd.address import Address
    from kubepy.storage.etcd.client import KeyValue, RangeResult, Watch
    from kubepy.storage.model import Key


EVERYTHING = b"\0"  # the first of all keys, and the end of them


class Keyspace:
    """The keys of a cluster, and the connection over which they are read and written.

    :param volatile: the resources of which objects may say when they are over.
    :ivar watches_all: watches are of all keys; else of those of objects alone, because this user
        may not watch others.
    """

    def __init__(
        self,
        address: Address,
        forms: StoredForms,
        client: EtcdClient | None = None,
        volatile: Collection[str] = (),
    ) -> None:
        self.volatile = volatile
        self.watches_all = True
        self.timeout = address.timeout
        self.client = client or EtcdClient(address)
        self.keys = EtcdKeys(address.prefix)
        self.own = OwnKeys(address.prefix)
        self.rest = RestNotes(self.client, self.own.rest)
        self.values = Values(self.keys, forms, is_protobuf=address.values == "protobuf")

    def watch(self, start_revision: int, *, prev_kv: bool = False) -> Watch:
        """Watch all keys, or those of objects (``watches_all``), from a revision on.

        Every revision of etcd is a write of some key: so whoever watches all of them hears when one
        is reached, without etcd telling its progress (which 3.4 does wrongly when it is asked). A
        watch of objects alone has come as far as its last event: see :meth:`tick`.
        """
        if self.watches_all:
            try:
                return self.client.watch(
                    EVERYTHING, EVERYTHING, start_revision=start_revision, prev_kv=prev_kv
                )
            except WatchDeniedError:
                self.watches_all = False
        start, end = self.keys.everything
        return self.client.watch(start, end, start_revision=start_revision, prev_kv=prev_kv)

    def tick(self) -> None:
        """Let an event come to those who watch objects alone. When it has come, so has all that
        was before it."""
        put = Put(self.keys.tick, b"")
        self.rest.write([], [put])

    def is_own(self, key: bytes) -> bool:
        """Return whether a key is kubepy's own."""
        if key == self.keys.tick:
            return True
        return key.startswith(self.own.start)

    def meta(self, name: str, revision: int | None = None) -> str | None:
        """Return a small value at a revision; None: the newest."""
        key = self.own.meta_key(name)
        kv, _ = self.client.get(key) if revision is None else self.client.get(key, revision)
        return load_text(kv.value) if kv is not None else None

    def meta_names(self, revision: int) -> list[str]:
        """Return the names of all small values at a revision."""
        start = self.own.meta
        end = end_of(start)
        names: list[str] = []
        for page in self.client.pages(start, end, revision=revision, keys_only=True):
            names += [self.own.meta_name(kv.key) for kv in page.kvs]
        return names

    def records(
        self, pages: Iterable[RangeResult], expirations: Mapping[Key, tuple[float, int]]
    ) -> Iterator[ObjectRecord]:
        """Yield the objects of pages, without values that are none."""
        for page in pages:
            for kv in page.kvs:
                key = self.keys.parse(kv.key)
                if key is None:
                    continue
                text = self.values.find(key, kv.value)
                if text is None:
                    continue
                expires, revision = expirations.get(key, (None, 0))
                is_current = revision == kv.mod_revision
                yield ObjectRecord(key, kv.mod_revision, text, expires if is_current else None)

    def expirations(self, revision: int = 0) -> dict[Key, tuple[float, int]]:
        """Return when volatile objects are over, with the revisions of the writes that said so."""
        expirations: dict[Key, tuple[float, int]] = {}
        start = self.own.expiring
        for page in self.client.pages(start, end_of(start), revision=revision):
            for kv in page.kvs:
                moment, key = self.own.read_expiry(kv.key)
                if expirations.get(key, (0.0, 0))[1] < kv.mod_revision:
                    expirations[key] = moment, kv.mod_revision
        return expirations

    def timeline(self, revision: int, first: int, length: float, after: int) -> list[TimelineEntry]:
        """Return the entries of the timeline at a revision: see ``Source.timeline``."""
        start = self.own.timeline
        kvs: list[KeyValue] = []
        for page in self.client.pages(start, end_of(start), revision=revision):
            kvs += page.kvs
        entries: list[TimelineEntry] = []
        for kv in kvs:  # their keys have the order of the writes
            entries += load_entries(kv.value, kv.mod_revision)
        return [entry for entry in cut(entries, first, length) if entry.revision > after]
