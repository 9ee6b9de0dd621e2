"""Which owners of one kind an object belongs to, and waking them: the handlers that controllers have in common.

A controller reference wakes its owner, and one that changed the old owner as well; an orphan wakes every owner whose
selector fits, again when its labels change (``addPod``, ``updatePod``, ``deletePod`` of the workload controllers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import (
    Object,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.selectors import LabelSelector, SelectorError, from_label_selector
from kubepy.runtime.reconcile import Informers, Key, WatchEvent
from kubepy.runtime.workqueue import WorkQueue

# What a controller does about its owner's expectations when an object is seen to come or go.
Observed = Callable[[Key, Object], None]


class Ownership:
    """The owners of one resource (``replicasets.apps``) and kind, and the queue that wakes them.

    ``read_selector``: how their ``spec.selector`` is to be read.
    """

    def __init__(self, informers: Informers, resource: str, kind: str, queue: WorkQueue[Key],
                 read_selector: Callable[[Any], LabelSelector] = from_label_selector) -> None:
        self._informers = informers
        self._resource = resource
        self._kind = kind
        self._queue = queue
        self._read_selector = read_selector
        self._selectors: dict[str, tuple[Any, LabelSelector]] = {}  # uid → what it was read from, and the selector

    def key_of(self, owner: Object) -> Key:
        return Key(self._resource, namespace_of(owner), name_of(owner))

    def owner_of(self, obj: Object | None) -> Object | None:
        """The owner that controls an object, if it is there (``resolveControllerRef``)."""
        reference = controller_of(obj) if obj is not None else None
        if obj is None or reference is None or reference["kind"] != self._kind:
            return None
        owner = self._informers.get(self._resource, namespace_of(obj), reference["name"])
        return owner if owner is not None and uid_of(owner) == reference["uid"] else None

    def wake(self, owner: Object | None) -> None:
        if owner is not None:
            self._queue.add(self.key_of(owner))

    def wake_matching(self, orphan: Object) -> None:
        """Wake every owner that an orphan fits: one of them may adopt it."""
        labels = labels_of(orphan)
        for owner in self._informers.list(self._resource, namespace_of(orphan)) if labels else ():
            selector = self.selector_of(owner)
            if selector is not None and not selector.is_empty() and selector.matches(labels):
                self.wake(owner)

    def selector_of(self, owner: Object) -> LabelSelector | None:
        """The owner's selector, read once; None when it cannot be read."""
        source = owner["spec"].get("selector")
        known = self._selectors.get(uid_of(owner))
        if known is not None and known[0] == source:
            return known[1]
        try:
            selector = self._read_selector(source)
        except SelectorError:
            return None
        self._selectors[uid_of(owner)] = (source, selector)
        return selector

    def forget(self, owner: Object) -> None:
        self._selectors.pop(uid_of(owner), None)

    def changed(self, event: WatchEvent, created: Observed, deleted: Observed) -> Object | None:
        """Wake whoever an object's change concerns; returns the owner that has it now.

        An object counts as deleted from its deletionTimestamp on. ``created`` and ``deleted`` get the owner's key.
        """
        old, new = event.old, event.new
        if new is None or is_being_deleted(new):
            self._deleted(new or old, deleted)
            return None
        reference = controller_of(new)
        if reference is not None and reference["kind"] != self._kind and (
                old is None or controller_of(old) == reference):
            return None  # another kind's, before and after
        owner = self.owner_of(new)
        if old is None:
            if owner is not None:
                created(self.key_of(owner), new)
        elif controller_of(old) != reference:
            self.wake(self.owner_of(old))
        if reference is not None:
            self.wake(owner)
        elif old is None or labels_of(old) != labels_of(new) or controller_of(old) is not None:
            self.wake_matching(new)
        return owner

    def _deleted(self, obj: Object | None, deleted: Observed) -> None:
        if obj is not None and (owner := self.owner_of(obj)) is not None:
            deleted(self.key_of(owner), obj)
            self.wake(owner)
