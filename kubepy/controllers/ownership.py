"""Owners of one kind and waking them: the event handlers that workload controllers have in common.

A controller reference wakes its owner, and one that changed the old owner as well; an orphan wakes
every owner whose selector fits, again when its labels change (``addPod``, ``updatePod``,
``deletePod`` of the workload controllers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

from kubepy.api.meta import (
    AnyObject,
    ObjectT,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.selectors import LabelSelector, SelectorError, from_label_selector
from kubepy.runtime.informers import PODS, Index, Informers, Query, TypedResource, owned_by
from kubepy.runtime.reconcile import Key, WatchEvent
from kubepy.runtime.workqueue import WorkQueue

TO_CLAIM = " to claim"  # the end of a group's name
# Called with the owner's key and the object when an object is seen to come or go.
Observed = Callable[[Key, AnyObject], None]


def _nothing(owner: Key, obj: AnyObject) -> None:
    """Do nothing: the controller keeps no expectations."""


def _have_same_owners(old: AnyObject, new: AnyObject | None) -> bool:
    """Return whether two states share their list of owners, as most do."""
    if new is None:
        return False
    return old["metadata"].get("ownerReferences") is new["metadata"].get("ownerReferences")


class Ownership(Generic[ObjectT]):
    """The owners of one resource (``replicasets.apps``) and kind, and the queue that wakes them.

    :param read_selector: reads their ``spec.selector``.
    """

    def __init__(
        self,
        informers: Informers,
        resource: TypedResource[ObjectT],
        kind: str,
        queue: WorkQueue[Key],
        read_selector: Callable[[Any], LabelSelector] = from_label_selector,
    ) -> None:
        self._informers = informers
        self._owners = informers.lister(resource)
        self._resource = resource
        self._kind = kind
        self._queue = queue
        self._read_selector = read_selector
        self._selectors = informers.add_index(resource, self._index_selector)
        self._fitting: tuple[AnyObject, Mapping[str, str]] | None = (
            None  # an owner and labels that it selects
        )

    def _index_selector(self, owner: ObjectT) -> tuple[str, LabelSelector] | None:
        try:
            return "", self._read_selector(owner["spec"].get("selector"))
        except SelectorError:
            return None

    def key_of(self, owner: AnyObject) -> Key:
        return Key(self._resource, namespace_of(owner), name_of(owner))

    def owner_of(self, obj: AnyObject | None) -> ObjectT | None:
        """Return the owner that controls an object, if it is there (``resolveControllerRef``)."""
        reference = controller_of(obj) if obj is not None else None
        if obj is None or reference is None or reference["kind"] != self._kind:
            return None
        owner = self._owners.get(namespace_of(obj), reference["name"])
        if owner is not None and uid_of(owner) == reference["uid"]:
            return owner
        return None

    def selector_of(self, owner: AnyObject) -> LabelSelector | None:
        """Return the selector of an observed owner; None when it cannot be read."""
        return self._selectors.get(self.key_of(owner))

    def index_group(self, obj: AnyObject, uid: str, *, matches: bool = True) -> str:
        """Return the group of an object that the owner with this uid controls, in an index of the
        informers.

        It is the uid, or the group of those that are still :meth:`to_claim`: their labels do not
        match the owner's selector, or not all else ``matches``, or the owner has not been observed
        yet. A selector never changes.
        """
        owner = self.owner_of(obj) if matches else None
        labels = labels_of(obj)
        if owner is None:
            return uid + TO_CLAIM
        if self._fitting is not None and self._fitting[0] is owner and self._fitting[1] == labels:
            return uid
        selector = self.selector_of(owner)
        if selector is None or not selector.matches(labels):
            return uid + TO_CLAIM
        self._fitting = owner, labels
        return uid

    def queries_of_group(self, group: str) -> tuple[Query, ...]:
        """Return the queries for the pods in a group of :meth:`index_group`."""
        return owned_by(group.removesuffix(TO_CLAIM), PODS)

    def to_claim(self, resource: str, owner: AnyObject, index: Index[Any, Any]) -> list[Key]:
        """Return the keys of dependents that are to be released perhaps, and of orphans, in key
        order.

        Those that were observed before their owner are grouped again.
        """
        for key in list(index.group(uid_of(owner) + TO_CLAIM)):
            index.observe(key, self._informers.get(*key))
        dependents = index.group(uid_of(owner) + TO_CLAIM)
        orphans = self._informers.orphans(resource, namespace_of(owner))
        if dependents:
            return sorted({*dependents, *orphans})
        return orphans

    def wake(self, owner: AnyObject | None) -> None:
        if owner is not None:
            self._queue.add(self.key_of(owner))

    def wake_matching(self, orphan: AnyObject) -> None:
        """Wake every owner that an orphan fits: one of them may adopt it."""
        labels = labels_of(orphan)
        for owner in self._owners.list(namespace_of(orphan)) if labels else ():
            selector = self.selector_of(owner)
            if selector is not None and not selector.is_empty() and selector.matches(labels):
                self.wake(owner)

    def changed(
        self, event: WatchEvent, created: Observed = _nothing, deleted: Observed = _nothing
    ) -> ObjectT | None:
        """Wake the owners that an object's change concerns; return the owner that has it now.

        An object counts as deleted from its deletionTimestamp on. ``created`` and ``deleted`` get
        the owner's key.
        """
        old = event.old
        new = event.new
        reference = controller_of(new) if new is not None else None
        before = reference if old is None or _have_same_owners(old, new) else controller_of(old)
        if (
            reference is not None
            and reference["kind"] != self._kind
            and (before is reference or before == reference)
        ):
            return None  # another kind's, before and after

        if new is None or is_being_deleted(new):
            obj = new or old
            if obj is not None and (owner := self.owner_of(obj)) is not None:
                deleted(self.key_of(owner), obj)
                self.wake(owner)
            if new is not None and before != reference:
                self.wake(self.owner_of(old))
            return None

        owner = self.owner_of(new)
        if old is None:
            if owner is not None:
                created(self.key_of(owner), new)
        elif before is not reference and before != reference:
            self.wake(self.owner_of(old))

        if reference is not None:
            self.wake(owner)
        elif old is None or labels_of(old) != labels_of(new) or before is not None:
            self.wake_matching(new)

        return owner
