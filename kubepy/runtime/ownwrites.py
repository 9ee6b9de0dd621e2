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
    """Objects as they were written, each until the write is observed. They have their versions once
    it is committed.

    A batch that fails has written nothing, and its versions are given again to other states of the
    same objects. The informers list everything anew then, and what was noted before that counts no
    more.
    """

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        # with the listing before which each was written
        self._written: dict[Key, tuple[int, AnyObject]] = {}

    def note(self, key: Key, stored: AnyObject) -> None:
        """Note an object as this reconciler has just written it."""
        self._written[key] = self._informers.listings, stored

    def observe(self, event: WatchEvent) -> bool:
        """Return whether a change is the write that was noted last for its object; no other can be
        from now on."""
        listings, written = self._written.pop(event.key, (-1, None))
        if event.new is None or written is None or listings != self._informers.listings:
            return False
        version: str = written["metadata"]["resourceVersion"]
        observed: str = event.new["metadata"]["resourceVersion"]
        return version == observed
