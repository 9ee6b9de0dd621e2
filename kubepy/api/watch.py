"""Changes as controllers and watches receive them."""

from __future__ import annotations

from kubepy.api.meta import Object, uid_of
from kubepy.lazy import NamedTuple
from kubepy.storage import Key


class WatchEvent(NamedTuple):
    """One object before and after a change; ``old`` is None for an addition, ``new`` None for a deletion.

    An object that was replaced by another with the same name (another uid) arrives as a deletion and an addition.
    ``is_update``: the object was there before, also where ``old`` is None because what it was is not known any more.
    """

    key: Key
    old: Object | None
    new: Object | None
    is_update: bool = False


def split_replacement(event: WatchEvent) -> list[WatchEvent]:
    """A change of uid is a deletion and an addition: another object under the same name."""
    if event.old is None or event.new is None or uid_of(event.old) == uid_of(event.new):
        return [event]
    return [WatchEvent(event.key, event.old, None), WatchEvent(event.key, None, event.new)]
