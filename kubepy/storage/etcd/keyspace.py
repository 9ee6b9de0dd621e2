"""The place of a cluster: an etcd, and the keys in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kubepy.storage.etcd.client import EtcdClient
from kubepy.storage.etcd.errors import ValueFormatError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.ownkeys import OwnKeys, end_of, load_entries
from kubepy.storage.etcd.rest import RestNotes
from kubepy.storage.etcd.values import StoredForms, Values
from kubepy.storage.state import ObjectRecord
from kubepy.storage.timeline import TimelineEntry, cut

if TYPE_CHECKING:
    from kubepy.storage.etcd.address import Address
    from kubepy.storage.etcd.client import KeyValue, RangeResult
    from kubepy.storage.model import Key


class Keyspace:
    """The keys of a cluster, and the connection over which they are read and written."""

    def __init__(
        self, address: Address, forms: StoredForms, client: EtcdClient | None = None
    ) -> None:
        self.timeout = address.timeout
        self.client = client or EtcdClient(address)
        self.keys = EtcdKeys(address.prefix)
        self.own = OwnKeys(address.prefix)
        self.rest = RestNotes(self.client, self.own.rest)
        self.values = Values(self.keys, forms, is_protobuf=address.values == "protobuf")

    def records(
        self, pages: Iterable[RangeResult], expirations: Mapping[Key, tuple[float, int]]
    ) -> Iterator[ObjectRecord]:
        """Yield the objects of pages, without values that are none."""
        for page in pages:
            for kv in page.kvs:
                key = self.keys.parse(kv.key)
                if key is None:
                    continue
                try:
                    text = self.values.decode(key, kv.value)
                except ValueFormatError:
                    continue
                expires, revision = expirations.get(key, (None, 0))
                is_current = revision == kv.mod_revision
                yield ObjectRecord(key, kv.mod_revision, text, expires if is_current else None)

    def expirations(self, revision: int) -> dict[Key, tuple[float, int]]:
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
