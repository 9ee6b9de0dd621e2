"""The summary of a manager's run: changed objects, failures, and keys that are due later."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import uid_of
from kubepy.runtime.contention import Contest
from kubepy.runtime.pacing import Excess
from kubepy.runtime.reconcile import Key, WatchEvent


class SyncFailure(NamedTuple):
    """A sync that raised; its key is tried again after its back-off."""

    reconciler: str
    key: Key
    error: str


class Due(NamedTuple):
    """A key that is to be reconciled at a time."""

    time: datetime
    reconciler: str
    key: Key


class ObjectChange(NamedTuple):
    """``verb``: created, configured, deleted. ``kind`` is kept since the resource may not be served
    any more."""

    key: Key
    verb: str
    kind: str

    @property
    def printed_name(self) -> str:
        """The name that kubectl prints: ``daemonset.apps/agent``."""
        plural, dot, group = self.key.resource.partition(".")
        return f"{self.kind.lower() or plural}{dot}{group}/{self.key.name}"


class Summary:
    """The net changes of a run: an object that was created and deleted again is left out.

    :ivar due: what remains, earliest first.
    :ivar contests: controllers that undo each other's work, and wait for that reason.
    :ivar excesses: workloads that ask for far more pods than they get.
    :ivar is_cut: the run has ended at the bound of its writes, with work left to be done now.
    """

    def __init__(self) -> None:
        self.failures: list[SyncFailure] = []
        self.due: list[Due] = []
        self.contests: list[Contest] = []
        self.excesses: list[Excess] = []
        self.is_cut = False
        self._before: dict[Key, str] = {}  # uid before the run, "" where there was none
        self._after: dict[Key, str] = {}
        self._kinds: dict[Key, str] = {}
        self._changes: list[WatchEvent] = []  # of the transaction under way

    def record(self, event: WatchEvent) -> None:
        """Note a change of the transaction under way."""
        self._changes.append(event)

    def commit(self) -> None:
        """Count the changes of a transaction that was committed."""
        for event in self._changes:
            self._count(event)
        self._changes.clear()

    def discard(self) -> None:
        """Forget the changes of a transaction that came to nothing."""
        self._changes.clear()

    def _count(self, event: WatchEvent) -> None:
        self._before.setdefault(event.key, uid_of(event.old) if event.old else "")
        self._after[event.key] = uid_of(event.new) if event.new else ""
        self._kinds[event.key] = (event.new or event.old or {}).get("kind", "")

    def touched(self) -> int:
        """Count the objects that were changed, including those created and deleted again."""
        return len(self._after)

    def changes(self) -> list[ObjectChange]:
        """Return the changes, in the order in which objects were first changed."""
        changes = []
        for key, before in self._before.items():
            after = self._after[key]
            if before or after:
                if before == after:
                    verb = "configured"
                elif after:
                    verb = "created"
                else:
                    verb = "deleted"
                changes.append(ObjectChange(key, verb, self._kinds[key]))
        return changes
