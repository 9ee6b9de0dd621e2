"""A deliberately strange store: it does all that the protocol lets a store do.

A transaction writes one object after the other, each in a commit of its own. Any of them may meet a
conflict, and a batch may end between any two. The change log is given in parts of one change, and
may be compacted at any revision; the function of ``watch`` may miss any commit. Others may be given
revisions before a commit is. So a store over etcd will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubepy.storage import CompactedError, ConflictError, Key
from kubepy.storage.memory import MemoryStore, MemoryTransaction
from kubepy.storage.model import (
    DELETED,
    ChangesSince,
    CommittedChanges,
    LogEntry,
)
from kubepy.storage.state import State
from kubepy.storage.transaction import StoredChange


class StrangeStore(MemoryStore):
    """A store in memory with one object a commit.

    :ivar before_object: is called before each object of a transaction is written, with its key and
        its number in the transaction, counted from 0. What it raises ends the commit there.
    :ivar others: how many revisions others are given before each commit.
    :ivar is_missed: tells whether the function of ``watch`` misses the commit of a revision.
    """

    def __init__(
        self,
        state: State | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(state, **options)
        self.before_object: Callable[[Key, int], None] = lambda key, number: None
        self.is_missed: Callable[[int], bool] = lambda revision: False
        self.others = 0
        self._compacted = self._state.compacted
        self._past: list[State] = [self._state]  # by revision
        # The small values of the transaction under way, with its newest revision at that time.
        self._values: list[tuple[int, Mapping[str, str | None]]] = []

    def compact(self, revision: int) -> None:
        """Forget the changes up to a revision."""
        self._compacted = revision

    def changes(self, since: int) -> ChangesSince:
        """Return the next change after a revision."""
        compacted = max(self._compacted, self._state.compacted)
        if since < compacted:
            raise CompactedError(f"the change log was compacted at revision {compacted}")
        later = [state for state in self._past if state.revision > since]
        if not later:
            return super().changes(since)
        try:
            revision, changes, _ = later[0].changes(since)
        except CompactedError:
            return super().changes(since)  # says why
        return ChangesSince(revision, changes, has_more=len(later) > 1)

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        with super().transaction() as changes:
            self._values.clear()
            yield changes

    def set_values(
        self, meta: Mapping[str, str | None] = {}, *, settings: Mapping[str, Any] = {}
    ) -> None:
        if (current := self._current()) is not None:
            self._values.append((current.revision, dict(meta)))
        super().set_values(meta, settings=settings)

    def _commit(self, changes: MemoryTransaction) -> None:
        before = self._state
        if self.others and not changes.is_empty():
            changes.renumber(before.revision + self.others)
            self._values = [(revision + self.others, meta) for revision, meta in self._values]
        try:
            for number, (change, entry) in enumerate(_steps(changes)):
                self.before_object(change.key, number)
                self._write(change, entry)
        finally:
            is_whole = self._state.revision >= changes.revision or changes.is_empty()
            if is_whole:
                self._finish(changes, before)

    def _write(self, change: StoredChange[Any], entry: LogEntry) -> None:
        """Commit one object."""
        base = self._state
        values = (meta for revision, meta in self._values if revision < change.revision)
        written = [(name, (value,)) for meta in values for name, value in meta.items()]
        state = base.changed([change], [entry], change.revision)
        self._state = state._replace(meta=state.meta.changed(written))
        self._past.append(self._state)
        if self._listener is None or self.is_missed(change.revision):
            return
        _, changes, _ = self._state.changes(base.revision)
        self._listener(CommittedChanges(base.revision, change.revision, changes))

    def _finish(self, changes: MemoryTransaction, before: State) -> None:
        """Commit what no client can see: small values, settings, the timeline."""
        whole = changes.after()
        self._state = self._state._replace(
            revision=whole.revision,
            settings=whole.settings,
            meta=whole.meta,
            timeline=whole.timeline,
            forgotten=whole.forgotten,
        )
        if whole.revision > self._past[-1].revision:
            self._past.append(self._state)
        else:
            self._past[-1] = self._state


def _steps(changes: MemoryTransaction) -> Iterator[tuple[StoredChange[Any], LogEntry]]:
    """Yield the writes of a transaction in the order of their revisions, with their entries of the
    change log. An object that was replaced by another of its name is two of them."""
    by_key = {change.key: change for change in changes.changed()}
    gone: set[Key] = set()
    for entry in changes.log():
        change = by_key[Key(*entry[2:5])]
        if entry.type == DELETED:
            gone.add(change.key)
            yield StoredChange(change.key, change.before, None, entry.revision), entry
        elif change.key in gone:
            yield change._replace(before=None), entry
        else:
            yield change, entry


class BatchEndedError(Exception):
    """A process died, or lost its election, between two objects of a batch."""


def conflict_at(number: int) -> Callable[[Key, int], None]:
    """Return a function for ``before_object`` that raises a conflict at an object."""

    def check(key: Key, present: int) -> None:
        if present == number:
            raise ConflictError(f"{key.place} was changed by somebody else")

    return check


def end_before(number: int) -> Callable[[Key, int], None]:
    """Return a function for ``before_object`` that ends the batch before an object."""

    def check(key: Key, present: int) -> None:
        if present == number:
            raise BatchEndedError(key.place)

    return check
