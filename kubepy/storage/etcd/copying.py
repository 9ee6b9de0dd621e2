"""The copy that ``kubepy fork`` makes in etcd of what another store holds.

Objects keep their uids and times; their resourceVersions are those that etcd gives. Nobody else
should work with the cluster before the copy is whole: its settings come first, so that nobody makes
another cluster there, and say ``reconcile: never`` until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from kubepy.storage.errors import StorageError
from kubepy.storage.model import Key, Object

if TYPE_CHECKING:
    from kubepy.storage.etcd.store import EtcdStore
    from kubepy.storage.state import State

ENTRIES_TOGETHER = 100  # of the timeline: each has views of its object of at most some kilobytes
UNDER_WAY = {"reconcile": "never"}


def write_state(
    state: State,
    store: EtcdStore,
    settings: Mapping[str, Any],
    implied: Iterable[tuple[Key, Object]] = (),
) -> int:
    """Write all that another store holds into an etcd without a cluster; return the revision at
    which everything is there.

    :param settings: those of the copy.
    :param implied: objects that the other store does not hold and the copy is to have.

    Raises StorageError, also where a cluster is there.
    """
    if store.has_objects() or not store.initialize({**settings, **UNDER_WAY}):
        raise StorageError(f"{store.address} is a cluster already")
    records = [record for resource in state.tables for record in state.records(resource, None)]
    records.sort(key=lambda record: record.revision)
    with store.transaction() as transaction:
        transaction.set_values(state.all_meta(), {})
        for record in records:
            assert record.json is not None
            transaction.create(record.key, json.loads(record.json), is_plain=True)
        for key, obj in implied:
            transaction.create(key, obj)
    entries = iter(state.timeline_entries())
    while some := list(islice(entries, ENTRIES_TOGETHER)):
        store.add_to_timeline(some)
    revision = store.revision
    store.set_values(settings={name: settings.get(name) for name in UNDER_WAY})
    return revision
