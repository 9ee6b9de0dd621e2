"""The garbage collector: deletes what only absent owners own, and carries out how an owner's deletion spreads.

- background: the owner goes at once, then its dependents, having no owner left;
- foreground (finalizer ``foregroundDeletion``): dependents go first; the owner waits for those with blockOwnerDeletion;
- orphan (finalizer ``orphan``): the owner is taken off its dependents, then it goes.

Owners are looked up in the dependent's own namespace. The graph of owners is the informers' index. Upstream:
``pkg/controller/garbagecollector``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    FOREGROUND,
    ORPHAN,
    Object,
    has_finalizer,
    is_being_deleted,
    namespace_of,
    owner_references,
    uid_of,
)
from kubepy.api.scheme import Resource
from kubepy.apiserver.client import DeleteOptions
from kubepy.controllers.ref_manager import with_owner_references
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class Owners(NamedTuple):
    """The references of a dependent, sorted out (``classifyReferences``): owners that are there, that are not, and that
    wait for their dependents to be deleted."""

    solid: list[Object]
    dangling: list[Object]
    waiting: list[Object]


class Identity(NamedTuple):
    """An owner as a reference names it (``ownerReferenceCoordinates``), with the resource and namespace it was in."""

    resource: str
    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str


class UnknownOwnerError(Exception):
    """No resource is known for an owner's kind: whether that owner exists can't be said."""


class InvalidOwnerError(Exception):
    """A cluster-scoped object names a namespaced owner, which can't be looked up anywhere."""


class GarbageCollector:
    name = "garbage-collector-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, self.name)
        self._scheme = context.scheme
        self._kinds: dict[tuple[str, str], Resource | None] = {}
        self._unresolved: set[Key] = set()  # with an owner of an unknown kind
        self._blocked: set[Key] = set()  # in foreground deletion, waiting for dependents
        self._absent: dict[str, Identity] = {}  # owners seen to be deleted that still have dependents, by uid
        self._retired: set[str] = set()  # resources whose CustomResourceDefinition was deleted
        self.queue = context.new_queue()

    def remember(self) -> Any:
        """Those whose next step no change of their own will bring about."""
        return [list(key) for key in sorted(self._unresolved | self._blocked)]

    def recall(self, memory: Any) -> None:
        for key in memory:
            self.queue.add(Key(*key))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {EVERY_RESOURCE: self._changed}

    def _changed(self, event: WatchEvent) -> None:
        if event.key.resource == CRDS:
            self._kinds_changed(event)
        if event.new is None:
            self._gone(event.key, event.old)
            return
        if is_being_deleted(event.new) and (has_finalizer(event.new, FOREGROUND) or has_finalizer(event.new, ORPHAN)):
            self._deletion_spreads(event.key, event.old, event.new)
        self._references_changed(event.key, event.old, event.new)

    def _kinds_changed(self, event: WatchEvent) -> None:
        """A definition that is gone without having been deleted may only be a file that can't be read now."""
        self._kinds.clear()
        if event.new is None and event.old is not None and is_being_deleted(event.old):
            self._retired.add(event.key.name)
        else:
            self._retired.discard(event.key.name)
        for key in sorted(self._unresolved):
            self.queue.add(key)

    def _gone(self, key: Key, obj: Object | None) -> None:
        self._unresolved.discard(key)
        self._blocked.discard(key)
        if obj is None:
            return
        if dependents := self._informers.dependents(uid_of(obj)):
            kind = obj.get("apiVersion", ""), obj.get("kind", "")
            self._absent[uid_of(obj)] = Identity(key.resource, key.namespace, *kind, key.name, uid_of(obj))
        for dependent in dependents:
            self.queue.add(dependent)
        for reference in owner_references(obj):
            self._wake_waiting_owner(reference)
            self._forget_absent(reference["uid"])

    def _deletion_spreads(self, key: Key, old: Object | None, new: Object) -> None:
        """The deletion has just begun, or its finalizers are others now (``processTransitions``)."""
        if old is not None and is_being_deleted(old) and old["metadata"].get("finalizers") == new["metadata"].get(
                "finalizers"):
            return
        if not has_finalizer(new, ORPHAN):
            for dependent in self._informers.dependents(uid_of(new)):
                self.queue.add(dependent)
        self.queue.add(key)

    def _references_changed(self, key: Key, old: Object | None, new: Object) -> None:
        before, now = owner_references(old) if old else [], owner_references(new)
        if before == now:
            return
        if not all(self._is_solid(key, reference) for reference in now):
            self.queue.add(key)
        blocking = {one["uid"] for one in now if one.get("blockOwnerDeletion")}
        for reference in before:
            if reference.get("blockOwnerDeletion") and reference["uid"] not in blocking:
                self._wake_waiting_owner(reference)
            self._forget_absent(reference["uid"])

    def _forget_absent(self, uid: str) -> None:
        if uid in self._absent and not self._informers.dependents(uid):
            del self._absent[uid]

    def _is_absent(self, key: Key, reference: Object) -> bool:
        """Whether the owner was seen to be deleted, and its kind with it (``absentOwnerCache``)."""
        identity = self._absent.get(reference["uid"])
        return (identity is not None and identity.resource in self._retired
                and identity.namespace in ("", key.namespace) and self._informers.key_of(reference["uid"]) is None
                and identity[2:] == (reference["apiVersion"], reference["kind"], reference["name"], reference["uid"]))

    def _is_solid(self, key: Key, reference: Object) -> bool:
        try:
            owner = self._find_owner(key, reference)
        except (UnknownOwnerError, InvalidOwnerError):
            return False
        return owner is not None and not waits_for_dependents(owner)

    def _wake_waiting_owner(self, reference: Object) -> None:
        key = self._informers.key_of(reference["uid"])
        owner = self._informers.get(*key) if key else None
        if key is not None and owner is not None and waits_for_dependents(owner):
            self.queue.add(key)

    # --- sync

    def sync(self, key: Key) -> None:
        self._unresolved.discard(key)
        self._blocked.discard(key)
        item = self._informers.get(*key)
        if item is None:
            return
        with suppress(NotFound):
            if not is_being_deleted(item):
                self._attempt_to_delete(key, item)
            elif has_finalizer(item, ORPHAN):
                self._orphan_dependents(key, item)
            elif has_finalizer(item, FOREGROUND):
                self._finish_foreground_deletion(key, item)

    def _attempt_to_delete(self, key: Key, item: Object) -> None:
        """``attemptToDeleteItem``. Raises Status."""
        references = owner_references(item)
        if not references:
            return
        try:
            owners = self._classify(key, references)
        except UnknownOwnerError:
            self._unresolved.add(key)
            return
        except InvalidOwnerError:
            self._report_other_namespaces(key, item, references)
            return
        self._report_other_namespaces(key, item, owners.dangling)
        if owners.solid:
            self._drop_owners(key, item, [*owners.dangling, *owners.waiting])
        elif owners.waiting and (dependents := self._informers.dependents(uid_of(item))):
            self._delete_in_foreground(key, item, dependents)
        else:
            self._delete(key, item, policy_of(item))

    def _classify(self, key: Key, references: list[Object]) -> Owners:
        """Raises UnknownOwnerError, InvalidOwnerError, Status."""
        owners = Owners([], [], [])
        for reference in references:
            owner = self._owner(key, reference)
            if owner is None:
                owners.dangling.append(reference)
            elif waits_for_dependents(owner):
                owners.waiting.append(reference)
            else:
                owners.solid.append(reference)
        return owners

    def _owner(self, key: Key, reference: Object) -> Object | None:
        """The owner, or None for one that is gone for certain. Raises UnknownOwnerError, InvalidOwnerError, Status.

        An owner that went together with its CustomResourceDefinition can't be asked for any more.
        """
        if self._resource(reference) is None and self._is_absent(key, reference):
            return None
        return self._find_owner(key, reference) or self._confirm_absence(key, reference)

    def _find_owner(self, key: Key, reference: Object) -> Object | None:
        """The owner of that kind, name and uid in the dependent's namespace (or in none), or None.

        Raises UnknownOwnerError, InvalidOwnerError.
        """
        resource = self._resource(reference)
        if resource is None:
            raise UnknownOwnerError
        if resource.namespaced and not key.namespace:
            raise InvalidOwnerError
        owner = self._informers.get(resource.key, key.namespace if resource.namespaced else "", reference["name"])
        return owner if owner is not None and uid_of(owner) == reference["uid"] else None

    def _confirm_absence(self, key: Key, reference: Object) -> Object | None:
        """Ask the API for an owner that no informer knows, before anything is deleted for lack of it.

        What can't be read now may well be there: then this raises, and the dependent stays until it can be read again.
        """
        resource = self._resource(reference)
        assert resource is not None  # _find_owner has found it
        namespace = key.namespace if resource.namespaced else ""
        try:
            owner = self._client.get(resource.key, reference["name"], namespace=namespace)
        except NotFound:
            return None
        return owner if uid_of(owner) == reference["uid"] else None

    def _resource(self, reference: Object) -> Resource | None:
        kind = (reference["apiVersion"], reference["kind"])
        if kind not in self._kinds:
            self._kinds[kind] = self._scheme.for_kind(*kind)
        return self._kinds[kind]

    def _report_other_namespaces(self, key: Key, item: Object, references: list[Object]) -> None:
        """Say so where an owner exists, but in a namespace where it can't own the item."""
        for reference in references:
            owner = self._informers.key_of(reference["uid"])
            if owner is not None and owner.namespace and owner.namespace != key.namespace:
                where = (f"[{reference['apiVersion']}/{reference['kind']}, namespace: {key.namespace}, "
                         f"name: {reference['name']}, uid: {reference['uid']}]")
                message = f'ownerRef {where} does not exist in namespace "{key.namespace}"'
                self._recorder.event(item, "Warning", "OwnerRefInvalidNamespace", message)

    # --- writes

    def _drop_owners(self, key: Key, item: Object, references: list[Object]) -> None:
        """Take owners off an item that has another one left."""
        uids = {reference["uid"] for reference in references}
        if uids:
            kept = [one for one in owner_references(item) if one["uid"] not in uids]
            self._client.update(key.resource, with_owner_references(item, kept), namespace=key.namespace)

    def _delete_in_foreground(self, key: Key, item: Object, dependents: list[Key]) -> None:
        """An owner waits for the item, and the item has dependents of its own: they go first.

        When one of those waits as well there may be a circle of owners, so the item stops blocking its owners.
        """
        found = [self._informers.get(*dependent) for dependent in dependents]
        if any(one is not None and waits_for_dependents(one) for one in found):
            unblocked = [{**one, "blockOwnerDeletion": False} if one.get("blockOwnerDeletion") else one
                         for one in owner_references(item)]
            item = self._client.update(key.resource, with_owner_references(item, unblocked), namespace=key.namespace)
        self._delete(key, item, "Foreground")

    def _delete(self, key: Key, item: Object, policy: str) -> None:
        options = DeleteOptions(propagation_policy=policy, uid=uid_of(item),
                                resource_version=item["metadata"].get("resourceVersion"))
        self._client.delete(key.resource, key.name, namespace=key.namespace, options=options)

    def _finish_foreground_deletion(self, key: Key, owner: Object) -> None:
        """Let the owner go when nothing blocks it any more (``processDeletingDependentsItem``)."""
        blocking = [one for one in self._informers.dependents(uid_of(owner)) if self._blocks(one, owner)]
        if not blocking:
            self._remove_finalizer(key, owner, FOREGROUND)
            return
        self._blocked.add(key)
        for dependent in blocking:
            obj = self._informers.get(*dependent)
            if obj is not None and not is_being_deleted(obj):
                self.queue.add(dependent)

    def _blocks(self, dependent: Key, owner: Object) -> bool:
        obj = self._informers.get(*dependent)
        references = owner_references(obj) if obj else []
        return any(one["uid"] == uid_of(owner) and one.get("blockOwnerDeletion") for one in references)

    def _orphan_dependents(self, key: Key, owner: Object) -> None:
        for dependent in self._informers.dependents(uid_of(owner)):
            obj = self._informers.get(*dependent)
            if obj is not None:
                self._drop_owners(dependent, obj, [{"uid": uid_of(owner)}])
        self._remove_finalizer(key, owner, ORPHAN)

    def _remove_finalizer(self, key: Key, obj: Object, finalizer: str) -> None:
        kept = [one for one in obj["metadata"].get("finalizers") or [] if one != finalizer]
        changed = {**obj, "metadata": {**obj["metadata"], "finalizers": kept}}
        self._client.update(key.resource, changed, namespace=namespace_of(obj))


def waits_for_dependents(owner: Object) -> bool:
    """Whether an owner is in foreground deletion."""
    return is_being_deleted(owner) and has_finalizer(owner, FOREGROUND)


def policy_of(item: Object) -> str:
    """How to delete an item that lost its owners: as finalizers that it bears already say, else in the background."""
    if has_finalizer(item, ORPHAN):
        return "Orphan"
    return "Foreground" if has_finalizer(item, FOREGROUND) else "Background"



