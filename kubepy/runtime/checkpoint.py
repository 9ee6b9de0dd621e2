"""The checkpoint of a manager: the revision it has delivered, its queued keys, and the memory of
its reconcilers.

With it the next process starts from the changes since, as a controller that never stopped would.
Without it (a fresh clone, another version of kubepy) the manager reconciles every object, which is
always right and only costs time.

The memories are a value of the store of their own: they grow with the cluster (the events of 25,000
pods are 1.6 MB), and of all commands only those that run controllers need them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.lazy import lazy_imports
from kubepy.storage import CompactedError, Key

with lazy_imports():
    from kubepy.api import errors

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.apiserver.settings import ClusterSettings
    from kubepy.storage.state import State
    from kubepy.storage.store import Store

# what is no reconciler's among the memories
EVENTS, CONTENTION, PACING = "events", "contention", "pacing"
CHECKPOINT, MEMORIES = (
    "manager.checkpoint",
    "manager.memories",
)  # the names of its two parts in the store
# The formats of checkpoints. A checkpoint of any other format counts as none: raise it whenever the
# fields of one, or what a reconciler remembers, change. It is not the version of kubepy: timers and
# back-offs last through an upgrade.
WITH_MEMORIES = "0.1.0"  # of one part, as before there were two
VERSION = "0.1.0, two parts"
MANAGER_LOCK = "manager.lock"  # the lock of the process that runs the controllers
UNWATCHED = frozenset(
    ("events", "events.events.k8s.io")
)  # resources whose changes no reconciler acts on


class Pending(NamedTuple):
    """A key in a reconciler's queue; ``due`` None is now.

    ``skippable``: nobody needs to wait for its delay. ``repeating``: it comes again and again.
    ``failures``: the number of syncs that failed in a row, by which its back-off grows.
    """

    reconciler: str
    key: Key
    due: datetime | None
    skippable: bool = False
    repeating: bool = False
    failures: int = 0


class Checkpoint(NamedTuple):
    """``revision``: all changes up to it have been delivered. ``memories``: the memory of each
    reconciler, as JSON.

    ``turn``: the position of the reconciler whose turn it is, and the number of keys that are left
    to it; () between two rounds. ``is_cut``: the last run ended at the bound of its writes, with
    work left to be done. ``is_paced``: controllers would go on in a run that works to the end.
    """

    revision: int
    pending: tuple[Pending, ...] = ()
    memories: Mapping[str, Any] = {}
    turn: tuple[int, ...] = ()
    is_cut: bool = False
    is_paced: bool = False

    def is_settled(self, now: datetime, within: float = 0.0) -> bool:
        """Return whether no key falls due within so many seconds, and no repeating one now."""
        return all(
            due is not None and (due - now).total_seconds() > (0.0 if repeating else within)
            for _, _, due, _, repeating, _ in self.pending
        )

    def next_due(self, *, single: bool = False) -> datetime | None:
        """Return when the next key falls due, None for never. ``single``: the next one that does
        not repeat."""
        return min(
            (
                pending.due
                for pending in self.pending
                if pending.due and not (single and pending.repeating)
            ),
            default=None,
        )

    def can_skip_waits(self) -> bool:
        return any(pending.skippable for pending in self.pending)


def dump(checkpoint: Checkpoint, reconcilers: Sequence[str]) -> str:
    """Write a checkpoint of this version, of these reconcilers, as a line of JSON, and the memories
    as another."""
    pending = [
        [reconciler, *key, due.astimezone(UTC).isoformat() if due else None, *flags]
        for reconciler, key, due, *flags in checkpoint.pending
    ]
    head = {
        "version": VERSION,
        "reconcilers": list(reconcilers),
        "revision": checkpoint.revision,
        "pending": pending,
        "memories": None,
        "turn": checkpoint.turn,
        "cut": checkpoint.is_cut,
        "paced": checkpoint.is_paced,
    }
    return "\n".join(
        json.dumps(part, separators=(",", ":"), sort_keys=True)
        for part in (head, checkpoint.memories)
    )


def parse(text: str | None, reconcilers: Sequence[str]) -> Checkpoint | None:
    """Read a checkpoint; None where there is none of this version with these reconcilers."""
    if not text:
        return None
    head, _, memories = text.partition("\n")
    record = json.loads(head)
    if record["version"] not in (VERSION, WITH_MEMORIES) or record["reconcilers"] != list(
        reconcilers
    ):
        return None
    if record["version"] == VERSION:
        if not memories:
            return None
        record["memories"] = json.loads(memories)
    return _read(record)


def load(store: Store) -> str | None:
    """Return the text of the checkpoint in a store, with the memories."""
    head = store.meta(CHECKPOINT)
    memories = store.meta(MEMORIES)
    if head and memories:
        return f"{head}\n{memories}"
    return head


def save(store: Store, text: str) -> None:
    """Put the text of a checkpoint into a store, all of it in one transaction."""
    head, _, memories = text.partition("\n")
    store.set_values({CHECKPOINT: head, MEMORIES: memories})


def move(store: Store, state: State, revision: int) -> None:
    """Let the checkpoint in a copied store go by the copy's revisions.

    One after which nothing has changed in the origin is of ``revision``, the copy's first, then. An
    earlier one is removed: the changes since are not in the copy, so that its controllers look at
    everything.

    :param state: that of the origin, which was copied.
    """
    head = store.meta(CHECKPOINT)
    if not head:
        return
    record = json.loads(head)
    try:
        _, changes, _ = state.changes(record["revision"])
        is_current = not changes
    except CompactedError:
        is_current = False
    if is_current:
        store.set_values({CHECKPOINT: json.dumps({**record, "revision": revision})})
    else:
        store.set_values({CHECKPOINT: None, MEMORIES: None})


def identity(reconcilers: Sequence[str], settings: ClusterSettings) -> tuple[str, ...]:
    """Return what a checkpoint must be of: these reconcilers, and the settings that they go by."""
    faults = f" {settings.faults.source}" if settings.faults else ""
    absent = f" {settings.absent.objects}" if settings.absent else ""
    return (
        *reconcilers,
        f"{settings.bootstrap} {settings.networking} {settings.kubelet.identity}{faults}{absent}",
    )


def settled_checkpoint(
    cluster: LocalCluster,
    within: float = 0.0,
    *,
    of_this_version: bool = True,
    reads: Iterable[Key] | None = None,
) -> Checkpoint | None:
    """Return the last checkpoint, without its memories, if nothing has changed since and nothing
    falls due within so many seconds.

    Every command that reads asks for it, so it imports no controller, and takes the reconcilers of
    this version for granted. Without ``of_this_version`` whatever another version of kubepy wrote
    counts as well.

    :param reads: the objects that the command reads, if it is about some alone: then edits of other
        files in place are left for a command that reads those.
    """
    cluster.client.take_over_time()
    text = cluster.store.meta(CHECKPOINT)
    record = json.loads(text) if text else None
    if not record or (
        of_this_version
        and (
            record["version"] not in (VERSION, WITH_MEMORIES)
            or record["reconcilers"][-1:] != list(identity((), cluster.settings))
        )
    ):
        return None

    checkpoint = _read(record)
    if not checkpoint.is_settled(cluster.clock.now(), within):
        return None
    try:
        _, changes = cluster.client.changes(checkpoint.revision, reads=reads, takes_over_time=False)
    except errors.Expired:
        return None  # the index was rebuilt

    if all(change.key.resource in UNWATCHED for change in changes):
        return checkpoint
    return None


def was_cut(store: Store) -> bool:
    """Return whether the last run of the controllers ended at the bound of its writes, with work
    left to be done."""
    text = store.meta(CHECKPOINT)
    return bool(text and json.loads(text).get("cut"))


def latest(text: str | None) -> Checkpoint | None:
    """Read a checkpoint of any version without its memories, or None where there is none."""
    if text:
        return _read(json.loads(text))
    return None


def _read(record: Mapping[str, Any]) -> Checkpoint:
    pending = tuple(
        Pending(
            owner,
            Key(resource, namespace, name),
            parse_time(due) if due else None,
            *flags,
        )
        for owner, resource, namespace, name, due, *flags in record["pending"]
    )
    return Checkpoint(
        record["revision"],
        pending,
        record["memories"] or {},
        tuple(record.get("turn", ())),
        bool(record.get("cut")),
        bool(record.get("paced")),
    )
