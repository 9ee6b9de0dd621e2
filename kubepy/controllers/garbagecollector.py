"""The garbage collector: deletes objects whose owners are all absent, and propagates the deletion
of owners.

- background: the owner is deleted at once, then its dependents, which have no owner left;
- foreground (finalizer ``foregroundDeletion``): the owner waits for its dependents with
  blockOwnerDeletion;
- orphan (finalizer ``orphan``): the owner is removed from its dependents' references, then deleted.

Owners are looked up in the dependent's own namespace. The graph of owners is the informers' index.
Upstream: ``pkg/controller/garbagecollector``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    FOREGROUND,
    ORPHAN,
    Object,
    has_finalizer,
    is_being_deleted,
    owner_references,
    uid_of,
    without_finalizer,
)
from kubepy.api.scheme import Resource
from kubepy.apiserver.request import DeleteOptions
from kubepy.controllers.ref_manager import with_owner_references
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import OwnerReference

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class Owners(NamedTuple):
    """The owner references of a dependent, by the state of the owners (``classifyReferences``).

    Owners that exist, that don't, and that wait for their dependents to be deleted.
    """

    solid: list[OwnerReference]
    dangling: list[OwnerReference]
    waiting: list[OwnerReference]


class OwnerIdentity(NamedTuple):
    """The fields by which references name an owner (``ownerReferenceCoordinates``), and its
    resource and namespace."""

    resource: str
    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str


class UnknownOwnerError(Exception):
    """The kind of an owner is not served: nobody can say whether that owner exists."""


class InvalidOwnerError(Exception):
    """A cluster-scoped object names a namespaced owner, which can't be looked up anywhere."""


class GarbageCollector:
    """Reconciles every object with owner references, and every object being deleted in foreground
    or orphan mode."""

    name = "garbage-collector-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, self.name)
        self._scheme = context.scheme
        self._kinds: dict[tuple[str, str], Resource | None] = {}
        self._unresolved: set[Key] = set()  # objects with an owner of an unknown kind
        self._blocked: set[Key] = set()  # owners in foreground deletion that wait for dependents
        self._absent: dict[
            str, OwnerIdentity
        ] = {}  # deleted owners that still have dependents, by uid
        self._unheld = context.client.settings.absent  # owners that an imported source only names
        self._retired: set[str] = set()  # resources whose CustomResourceDefinition was deleted
        self.queue = context.new_queue()

    def remember(self) -> Any:
        """Return the keys, as JSON, whose next step no change of their own object will trigger."""
        return [list(key) for key in sorted(self._unresolved | self._blocked)]

    def recall(self, memory: Any) -> None:
        """Enqueue the keys from the JSON of :meth:`remember`."""
        for key in memory:
            self.queue.add(Key(*key))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {EVERY_RESOURCE: self._object_changed}

    def _object_changed(self, event: WatchEvent) -> None:
        """Reconcile what a change may affect (``processTransitions``): dependents, owners, the
        object itself."""
        key = event.key
        old = event.old
        new = event.new
        if key.resource == CRDS:
            self._definition_changed(key, old, new)
        if new is None:
            self._object_deleted(key, old)
            return
        if is_being_deleted(new) and (has_finalizer(new, FOREGROUND) or has_finalizer(new, ORPHAN)):
            finalizers = new["metadata"].get("finalizers")
            was_being_deleted = old is not None and is_being_deleted(old)
            if (
                old is None
                or not was_being_deleted
                or old["metadata"].get("finalizers") != finalizers
            ):
                for dependent in (
                    self._informers.dependents(uid_of(new))
                    if not has_finalizer(new, ORPHAN)
                    else ()
                ):
                    self.queue.add(dependent)
                self.queue.add(key)

        self._references_changed(key, old, new)

    def _definition_changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        """Look up all kinds again.

        A definition that is missing without having been deleted may only be a file that can't be
        read at the moment.
        """
        self._kinds.clear()
        if new is None and old is not None and is_being_deleted(old):
            self._retired.add(key.name)
        else:
            self._retired.discard(key.name)
        for unresolved in sorted(self._unresolved):
            self.queue.add(unresolved)

    def _object_deleted(self, key: Key, obj: Object | None) -> None:
        """Reconcile the dependents of a deleted object, and owners that waited for it."""
        self._unresolved.discard(key)
        self._blocked.discard(key)
        if obj is None:
            return
        dependents = self._informers.dependents(uid_of(obj))
        if dependents:
            kind = obj.get("apiVersion", ""), obj.get("kind", "")
            self._absent[uid_of(obj)] = OwnerIdentity(
                key.resource, key.namespace, *kind, key.name, uid_of(obj)
            )

        for dependent in dependents:
            self.queue.add(dependent)
        for reference in owner_references(obj):
            self._wake_waiting_owner(reference)
            self._forget_absent(reference["uid"])

    def _references_changed(self, key: Key, old: Object | None, new: Object) -> None:
        """Reconcile an object of which an owner may be absent, and owners that it no longer
        blocks."""
        before = owner_references(old) if old else []
        references = owner_references(new)
        if before == references:
            return
        if not all(self._is_solid(key, reference) for reference in references):
            self.queue.add(key)
        blocking = {
            reference["uid"] for reference in references if reference.get("blockOwnerDeletion")
        }
        for reference in before:
            if reference.get("blockOwnerDeletion") and reference["uid"] not in blocking:
                self._wake_waiting_owner(reference)
            self._forget_absent(reference["uid"])

    def _forget_absent(self, uid: str) -> None:
        if uid in self._absent and not self._informers.has_dependents(uid):
            del self._absent[uid]

    def _is_solid(self, key: Key, reference: OwnerReference) -> bool:
        if self._is_unheld(key, reference):
            return True
        try:
            owner = self._find_owner(key, reference)
        except (UnknownOwnerError, InvalidOwnerError):
            return False
        if owner is None:
            return False
        return not waits_for_dependents(owner)

    def _wake_waiting_owner(self, reference: OwnerReference) -> None:
        key = self._informers.key_of(reference["uid"])
        owner = self._informers.get(*key) if key else None
        if key is not None and owner is not None and waits_for_dependents(owner):
            self.queue.add(key)

    # --- sync

    def sync(self, key: Key) -> None:
        self._unresolved.discard(key)
        self._blocked.discard(key)
        obj = self._informers.get(*key)
        if obj is None:
            return
        with suppress(NotFound):
            if not is_being_deleted(obj):
                self._attempt_to_delete(key, obj)
            elif has_finalizer(obj, ORPHAN):
                for dependent in self._informers.dependents(uid_of(obj)):
                    dependent_obj = self._informers.get(*dependent)
                    if dependent_obj is not None:
                        with suppress(NotFound):  # one that is gone needs no other owners
                            self._drop_owners(dependent, dependent_obj, {uid_of(obj)})
                self._client.update(
                    key.resource, without_finalizer(obj, ORPHAN), namespace=key.namespace
                )
            elif has_finalizer(obj, FOREGROUND):
                self._process_foreground_deletion(key, obj)

    def _attempt_to_delete(self, key: Key, obj: Object) -> None:
        """Delete an object without solid owners, or drop its absent owners
        (``attemptToDeleteItem``). Raises Status."""
        references = owner_references(obj)
        if not references:
            return
        try:
            owners = self._classify(key, references)
        except UnknownOwnerError:
            self._unresolved.add(key)
            return
        except InvalidOwnerError:
            self._report_other_namespaces(key, obj, references)
            return

        self._report_other_namespaces(key, obj, owners.dangling)
        if owners.solid:
            self._drop_owners(
                key, obj, {reference["uid"] for reference in (*owners.dangling, *owners.waiting)}
            )
            return

        policy = "Background"
        if owners.waiting and (dependents := self._informers.dependents(uid_of(obj))):
            policy = "Foreground"
            obj = self._unblocked_in_circle(key, obj, dependents)
        elif has_finalizer(obj, ORPHAN):  # a finalizer that it has already decides the policy
            policy = "Orphan"
        elif has_finalizer(obj, FOREGROUND):
            policy = "Foreground"

        options = DeleteOptions(
            propagation_policy=policy,
            uid=uid_of(obj),
            resource_version=obj["metadata"].get("resourceVersion"),
        )
        self._client.delete(key.resource, key.name, namespace=key.namespace, options=options)

    def _classify(self, key: Key, references: list[OwnerReference]) -> Owners:
        """Sort references by the state of their owners. Raises UnknownOwnerError,
        InvalidOwnerError, Status."""
        owners = Owners([], [], [])
        for reference in references:
            if self._is_unheld(key, reference):
                owners.solid.append(reference)
                continue
            if self._resource(reference) is None and self._is_retired(key, reference):
                # it can't be looked up any more: it was deleted together with its definition
                owner = None
            else:
                owner = self._find_owner(key, reference) or self._get_owner(key, reference)
            if owner is None:
                owners.dangling.append(reference)
            elif waits_for_dependents(owner):
                owners.waiting.append(reference)
            else:
                owners.solid.append(reference)
        return owners

    def _is_retired(self, key: Key, reference: OwnerReference) -> bool:
        """Tell whether the owner was deleted, and its kind with it (``absentOwnerCache``)."""
        identity = self._absent.get(reference["uid"])
        if identity is None:
            return False
        if identity.resource not in self._retired:
            return False
        if identity.namespace not in ("", key.namespace):
            return False
        if self._informers.key_of(reference["uid"]) is not None:
            return False
        return identity[2:] == (
            reference["apiVersion"],
            reference["kind"],
            reference["name"],
            reference["uid"],
        )

    def _is_unheld(self, key: Key, reference: OwnerReference) -> bool:
        """Tell whether an owner counts as there though the cluster does not hold it, since nobody
        has made another object of its name."""
        if self._unheld is None:
            return False
        owner = self._unheld.owner(reference)
        if owner is None or owner.namespace not in ("", key.namespace):
            return False
        resource = self._resource(reference)
        if resource is None:
            return True
        return self._informers.get(resource.key, owner.namespace, owner.name) is None

    def _find_owner(self, key: Key, reference: OwnerReference) -> Object | None:
        """Return the owner of that kind, name and uid in the dependent's namespace (or in none), or
        None.

        Raises UnknownOwnerError, InvalidOwnerError.
        """
        resource = self._resource(reference)
        if resource is None:
            raise UnknownOwnerError
        if resource.namespaced and not key.namespace:
            raise InvalidOwnerError
        owner = self._informers.get(
            resource.key, key.namespace if resource.namespaced else "", reference["name"]
        )
        if owner is not None and uid_of(owner) == reference["uid"]:
            return owner
        return None

    def _get_owner(self, key: Key, reference: OwnerReference) -> Object | None:
        """Ask the API for an owner that no informer knows, before anything is deleted for lack of
        it.

        An owner that can't be read at the moment may well exist: then this raises Status, and the
        dependent stays.
        """
        resource = self._resource(reference)
        assert resource is not None  # _find_owner has found it
        namespace = key.namespace if resource.namespaced else ""
        try:
            owner = self._client.get(resource.key, reference["name"], namespace=namespace)
        except NotFound:
            return None
        if uid_of(owner) == reference["uid"]:
            return owner
        return None

    def _resource(self, reference: OwnerReference) -> Resource | None:
        kind = (reference["apiVersion"], reference["kind"])
        if kind not in self._kinds:
            self._kinds[kind] = self._scheme.for_kind(*kind)
        return self._kinds[kind]

    def _report_other_namespaces(
        self, key: Key, obj: Object, references: list[OwnerReference]
    ) -> None:
        """Record an event for each owner that exists in another namespace, where it can't own the
        object."""
        for reference in references:
            owner = self._informers.key_of(reference["uid"])
            if owner is not None and owner.namespace and owner.namespace != key.namespace:
                where = (
                    f"[{reference['apiVersion']}/{reference['kind']}, namespace: {key.namespace}, "
                    f"name: {reference['name']}, uid: {reference['uid']}]"
                )
                message = f'ownerRef {where} does not exist in namespace "{key.namespace}"'
                self._recorder.event(obj, "Warning", "OwnerRefInvalidNamespace", message)

    def _drop_owners(self, key: Key, obj: Object, uids: set[str]) -> None:
        if uids:
            kept = [
                reference for reference in owner_references(obj) if reference["uid"] not in uids
            ]
            self._client.update(
                key.resource, with_owner_references(obj, kept), namespace=key.namespace
            )

    def _unblocked_in_circle(self, key: Key, obj: Object, dependents: list[Key]) -> Object:
        """Let an object stop blocking its owners when one of its dependents waits as well.

        There may be a circle of owners then, in which each waits for the next. Returns the object
        as stored.
        """
        found = [self._informers.get(*dependent) for dependent in dependents]
        if not any(
            dependent is not None and waits_for_dependents(dependent) for dependent in found
        ):
            return obj
        unblocked = [
            {**reference, "blockOwnerDeletion": False}
            if reference.get("blockOwnerDeletion")
            else reference
            for reference in owner_references(obj)
        ]
        return self._client.update(
            key.resource, with_owner_references(obj, unblocked), namespace=key.namespace
        )

    def _process_foreground_deletion(self, key: Key, owner: Object) -> None:
        """Remove the finalizer when no dependent blocks the owner any more
        (``processDeletingDependentsItem``)."""
        blocking: list[tuple[Key, Object]] = []
        for dependent in self._informers.dependents(uid_of(owner)):
            obj = self._informers.get(*dependent)
            if obj is not None and any(
                reference["uid"] == uid_of(owner) and reference.get("blockOwnerDeletion")
                for reference in owner_references(obj)
            ):
                blocking.append((dependent, obj))

        if not blocking:
            self._client.update(
                key.resource, without_finalizer(owner, FOREGROUND), namespace=key.namespace
            )
            return

        self._blocked.add(key)
        for dependent, obj in blocking:
            if not is_being_deleted(obj):
                self.queue.add(dependent)


def waits_for_dependents(owner: Object) -> bool:
    """Tell whether an owner is in foreground deletion."""
    if not is_being_deleted(owner):
        return False
    return has_finalizer(owner, FOREGROUND)
