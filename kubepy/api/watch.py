"""Changes as controllers and watches receive them."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object, uid_of
from kubepy.storage import Key


class WatchEvent(NamedTuple):
    """One object before and after a change; ``old`` is None for an addition, ``new`` None for a
    deletion.

    An object that was replaced by another with the same name (another uid) arrives as a deletion
    and an addition. ``is_update``: the object was there before, also where ``old`` is None because
    what it was is not known any more. ``former``: a state before ``new``, or before the last state
    ``old`` of a deleted object, that had other labels or owners. Without one an object that is not
    known any more had those that it has now.
    """

    key: Key
    old: Object | None
    new: Object | None
    is_update: bool = False
    former: Object | None = None

    def steps(self) -> list[WatchEvent]:
        """Return the event for somebody who does not know what the object was: what it was before
        its labels or owners changed comes first, so that whoever it concerned then hears of it."""
        key, old, new, _, former = self
        if former is None or (new is not None and old is not None):
            return [self]
        first = WatchEvent(key, None, former, is_update=True)
        last = new if new is not None else old
        changed = WatchEvent(key, former, last, is_update=True)
        if new is not None:
            return [first, changed]
        return [first, changed, WatchEvent(key, last, None)]


def split_replacement(event: WatchEvent) -> list[WatchEvent]:
    """A change of uid is a deletion and an addition: another object under the same name."""
    if event.old is None or event.new is None or uid_of(event.old) == uid_of(event.new):
        return [event]
    return [WatchEvent(event.key, event.old, None), WatchEvent(event.key, None, event.new)]
