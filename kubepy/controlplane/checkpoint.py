"""Where a manager got to, kept between processes: the revision it has seen, what is still queued, what it remembers.

With it the next process starts from what changed since, as a controller that never stopped would. Without it (a fresh
clone, another version of kubepy) everything is looked at anew, which is always right and only costs time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kubepy import __version__
from kubepy.api.clock import parse_time
from kubepy.runtime.reconcile import Key


class Pending(NamedTuple):
    """A key in a reconciler's queue; ``due`` None is now. ``skippable``: its delay need not be waited for."""

    reconciler: str
    key: Key
    due: datetime | None
    skippable: bool = False


class Checkpoint(NamedTuple):
    """``revision``: everything up to it has been delivered. ``memories``: what each reconciler remembers, as JSON."""

    revision: int
    pending: tuple[Pending, ...] = ()
    memories: Mapping[str, Any] = {}

    def is_settled(self, now: datetime, within: float = 0.0) -> bool:
        """Whether nothing is left that falls due within so many seconds."""
        return all(one.due is not None and (one.due - now).total_seconds() > within for one in self.pending)

    def can_skip_waits(self) -> bool:
        return any(one.skippable for one in self.pending)


class CheckpointStore(NamedTuple):
    """Where checkpoints are kept; the composition root connects it to the state folder."""

    load: Callable[[], str | None]
    save: Callable[[str], None]


def dump(checkpoint: Checkpoint, reconcilers: Sequence[str]) -> str:
    pending = [[one.reconciler, *one.key, one.due.astimezone(UTC).isoformat() if one.due else None, one.skippable]
               for one in checkpoint.pending]
    return json.dumps({
        "version": __version__, "reconcilers": list(reconcilers), "revision": checkpoint.revision, "pending": pending,
        "memories": checkpoint.memories,
    }, separators=(",", ":"), sort_keys=True)


def parse(text: str | None, reconcilers: Sequence[str]) -> Checkpoint | None:
    """The checkpoint, or None where there is none of this version with these reconcilers."""
    if not text:
        return None
    record = json.loads(text)
    if record["version"] != __version__ or record["reconcilers"] != list(reconcilers):
        return None
    return _read(record)


def latest(text: str | None) -> Checkpoint | None:
    """The checkpoint of whichever manager wrote it, or None where there is none."""
    return _read(json.loads(text)) if text else None


def _read(record: Mapping[str, Any]) -> Checkpoint:
    pending = tuple(Pending(owner, Key(resource, namespace, name), parse_time(due) if due else None, any(skippable))
                    for owner, resource, namespace, name, due, *skippable in record["pending"])
    return Checkpoint(record["revision"], pending, record["memories"])
