"""Creations and deletions that a controller asked for and has not observed
(``pkg/controller/controller_utils.go``).

A sync that creates or deletes sets its expectations; the handlers count them down as the informers
observe. Until they are met a sync must not create or delete again, or it would do the same work
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

TIMEOUT = timedelta(
    minutes=5
)  # ExpectationsTimeout: events that have not come by then are not waited for


@dataclass
class _Expected:
    creations: int
    deletions: int
    since: datetime
    uids: set[str] = field(
        default_factory=set
    )  # of the pods that are to be deleted, where they are tracked


class Expectations(Generic[K]):
    """Creations and deletions that are still to be observed, for each owner's key."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._expected: dict[K, _Expected] = {}

    def expect(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        """Set the writes that a sync is about to do; earlier expectations are forgotten
        (``SetExpectations``)."""
        self._expected[key] = _Expected(creations, deletions, self._now())

    def expect_deletions(self, key: K, uids: Iterable[str]) -> None:
        """As ``expect``, but each pod counts once, however often its deletion is observed
        (``UIDTracking…``)."""
        tracked = set(uids)
        self._expected[key] = _Expected(0, len(tracked), self._now(), tracked)

    def lower(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        expected = self._expected.get(key)
        if expected:
            expected.creations -= creations
            expected.deletions -= deletions

    def creation_observed(self, key: K) -> None:
        self.lower(key, creations=1)

    def deletion_observed(self, key: K, uid: str | None = None) -> None:
        """Expect one deletion less; with a uid only if just that pod's deletion is still
        expected."""
        if uid is None:
            self.lower(key, deletions=1)
            return
        expected = self._expected.get(key)
        if expected is not None and uid in expected.uids:
            expected.uids.remove(uid)
            expected.deletions -= 1

    def are_satisfied(self, key: K) -> bool:
        """Return whether everything has been observed, or was expected too long ago
        (``SatisfiedExpectations``)."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and expected.deletions <= 0):
            return True
        return self._now() - expected.since > TIMEOUT

    def forget(self, key: K) -> None:
        """Drop the expectations of an owner that is gone: one of the same name starts clean."""
        self._expected.pop(key, None)
