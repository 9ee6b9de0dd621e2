"""The versions that a reconciler's own writes have led to, for one that has nothing to do after
them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import AnyObject
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.api.watch import WatchEvent
    from kubepy.runtime.informers import Informers


class OwnWrites:
    """Versions of objects, each from the write until it is observed.

    A batch that fails has written nothing, and its versions are given again to other states of the
    same objects. The informers list everything anew then, and what was noted before that counts no
    more.
    """

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._versions: dict[
            Key, tuple[int, str]
        ] = {}  # with the listing before which it was written

    def note(self, key: Key, stored: AnyObject) -> None:
        """Note an object as this reconciler has just written it."""
        self._versions[key] = self._informers.listings, stored["metadata"]["resourceVersion"]

    def observe(self, event: WatchEvent) -> bool:
        """Return whether a change is the write that was noted last for its object; no other can be
        from now on."""
        noted = self._versions.pop(event.key, None)
        if event.new is None:
            return False
        return noted == (self._informers.listings, event.new["metadata"]["resourceVersion"])
