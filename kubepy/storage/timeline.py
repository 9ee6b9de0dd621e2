"""The timeline of a store: what each write did to an object, as far back as it is kept.

A store knows no kinds. A :class:`TimelineRecorder`, which the API server gives it, makes a small
view of an object before and after a write; where something shows, the write has an entry. Entries
are part of the transaction that they describe, one for each write: several writes of one object in
a transaction, and several moments in it, stay apart. So they do not depend on how writes are
grouped into transactions.

Entries are kept for a time of the cluster's, and not more than so many. What goes is always the
beginning, in the order of writes: where the clock was set back, entries may be older than others
that come before them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from kubepy.storage.model import Key, Object

TIMELINE_LENGTH = 50_000  # entries that are kept at most
TIMELINE_SLACK = 5_000  # so many more are there before the oldest are removed
AGE_SLACK = 1 / 24  # of the time for which entries are kept: so much longer they may be there
SECOND = 1_000_000  # microseconds
NEVER = -(2**62)  # a time before all others, in microseconds

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
View = tuple[Any, ...]  # of an object: strings, numbers, booleans
# Takes a key and the object before and after a write (None: not there); returns a view of each and
# a note on what views do not have, or None where nothing shows.
Look = Callable[[Key, Object | None, Object | None], "tuple[View | None, View | None, str] | None"]


class TimelineEntry(NamedTuple):
    """The effect of one write.

    :ivar at: the cluster's time, in microseconds since the epoch.
    :ivar before: a view of the object before the write; None where it was not there.
    :ivar after: likewise after it.
    :ivar note: what views do not have: which fields of the spec have changed.
    :ivar is_outside: something else than kubepy has written a file.
    """

    revision: int
    at: int
    key: Key
    before: View | None
    after: View | None
    note: str = ""
    is_outside: bool = False


Entries = list[TimelineEntry]


class TimelineRecorder(NamedTuple):
    """The maker of the entries of one transaction.

    :ivar resources: those that the timeline is about.
    :ivar keep: for how many seconds of the cluster's time entries are kept; infinity: all are,
        however many.
    :ivar edit_time: returns the time that files were edited at: that of the settings, which may
        have been among them.
    """

    resources: frozenset[str]
    look: Look
    keep: float
    edit_time: Callable[[], float]

    def entries(
        self,
        key: Key,
        revision: int,
        now: float,
        old: Object | None,
        new: Object | None,
        *,
        is_outside: bool = False,
    ) -> Entries:
        """Return the entry of a write, or none. ``now``: the cluster's time in seconds since the
        epoch."""
        seen = self.look(key, old, new)
        return (
            []
            if seen is None
            else [TimelineEntry(revision, microseconds(now), key, *seen, is_outside)]
        )


NewRecorder = Callable[[], TimelineRecorder]  # is called when a transaction begins


def microseconds(seconds: float) -> int:
    """Return a time, which goes by microseconds, as their number."""
    return round(seconds * SECOND) if seconds != -inf else NEVER


def longest(keep: float) -> float:
    """Return how many entries are kept at most."""
    return TIMELINE_LENGTH if keep != inf else inf


def is_overlong(first: int, last: int, count: int, keep: float) -> bool:
    """Return whether the oldest entries are to be removed, by the times of the first and the last
    entry."""
    return count > longest(keep) + TIMELINE_SLACK or (last - first) / SECOND > keep * (
        1 + AGE_SLACK
    )


def cut(entries: Entries, since: int, length: float) -> Entries:
    """Return the entries after the last that is older than a time, at most so many."""
    start = max(0, len(entries) - int(length)) if length != inf else 0
    start = next(
        (number for number in range(len(entries), start, -1) if entries[number - 1].at < since),
        start,
    )
    return entries[start:]


def to_text(entry: TimelineEntry) -> str:
    """Return the views of an entry as a store writes them."""
    return _encoder.encode((entry.before, entry.after))


def from_text(text: str) -> tuple[View | None, View | None]:
    """Read what :func:`to_text` wrote. Raises TypeError, ValueError."""
    before, after = json.loads(text)
    return None if before is None else tuple(before), None if after is None else tuple(after)
