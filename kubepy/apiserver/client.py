"""The one Client that everything above the API machinery uses.

Resources are named by key (``pods``, ``daemonsets.apps``). Everything takes and gives dicts; what comes out is shared
and read-only. Errors are :class:`kubepy.api.errors.Status`. Warnings that the server would send go to
``client.warn`` (a callable; the CLI prints them, controllers drop them).

A request is its own transaction, or one of many in a :meth:`Client.batch`. What it does is in ``creation``,
``updating``, ``patching``, ``deletion``, ``scaling``, ``eviction`` and ``binding``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api import errors
from kubepy.api.clock import Clock, Ids
from kubepy.api.meta import Object
from kubepy.api.watch import WatchEvent, split_replacement
from kubepy.apiserver.requests.options import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    DeleteOptions,
)
from kubepy.apiserver.requests.server import Server, Target
from kubepy.apiserver.requests.sessions import Session
from kubepy.storage import Change, CompactedError, ConflictError, Key, Problem, Snapshot

if TYPE_CHECKING:
    from kubepy.storage import Store, Transaction

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "Batch",
    "Client",
    "DeleteOptions",
    "ObjectList",
]

# Aliases, because the method ``Client.list`` hides the builtin inside its class.
Objects = list[Object]
Changes = list[Change]
Events = list[WatchEvent]
Observed = Callable[[Key], Object | None]

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
IDS_POSITION = "ids.position"
REBUILT = 10**9  # revisions of an index that began with its cluster do not come so far
NO_OPTIONS = DeleteOptions()


class ObjectList(NamedTuple):
    """A snapshot: objects in (namespace, name) order at one resource version.

    ``problems`` are the files among those listed that cannot be objects.
    """

    items: list[Object]
    resource_version: str
    problems: tuple[Problem, ...] = ()


class Batch:
    """Many requests in one transaction (see :meth:`Client.batch`)."""

    def __init__(self, transaction: Transaction, events: Events) -> None:
        self.transaction = transaction
        self.events = events

    def drain(self) -> Events:
        """What changed since the last call, in order: edits from outside and other processes' writes when the batch
        began, and the batch's own writes."""
        drained = [one for event in self.events for one in split_replacement(event)]
        self.events.clear()
        return drained


class Client:
    """The API of one cluster."""

    def __init__(self, store: Store, server: Server) -> None:
        self._store = store
        self._server = server
        self._batch: Batch | None = None
        self._since: int | None = None

    @property
    def clock(self) -> Clock:
        return self._server.clock

    @property
    def ids(self) -> Ids:
        return self._server.ids

    @property
    def requester(self) -> Object:
        """Who asks, as a UserInfo (``authentication.k8s.io``)."""
        return self._server.requester

    @requester.setter
    def requester(self, user: Object) -> None:
        self._server.requester = user

    @property
    def warn(self) -> Callable[[str], None]:
        return self._server.warn

    @warn.setter
    def warn(self, warn: Callable[[str], None]) -> None:
        self._server.warn = warn

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self, resource: str, name: str, *, namespace: str = "") -> Object:
        """Raises NotFound."""
        resource, _, version = resource.partition("/")
        target = self._server.target(resource, namespace, name, version)
        if self._batch:
            found = self._batch.transaction.get(target.key)
        else:
            found, problem = self._store.find(target.key)
            if problem:
                self.warn(self._store.describe(problem))
        if found is None:
            raise errors.not_found(resource, name)
        return self._seen_in(target, version, found) if version else found

    def _seen_in(self, target: Target, version: str, obj: Object) -> Object:
        """An object as a request for another version sees it."""
        api_version = target.resource.at(version).api_version
        return self._server.strategy(target.resource).in_version(obj, api_version)

    def list(self, resource: str, *, namespace: str | None = None, label_selector: str = "",
             field_selector: str = "") -> ObjectList:
        """``namespace`` None: all. Raises BadRequest for a selector that cannot be read or a field not selectable."""
        resource, _, version = resource.partition("/")
        target = self._server.target(resource, namespace or "", version=version)
        within = target.namespace if namespace is not None and target.resource.namespaced else None
        revision, objects, problems = self._snapshot(resource, within)
        for problem in problems:
            self.warn(self._store.describe(problem))
        if label_selector or field_selector:
            from kubepy.apiserver.requests.selection import select

            objects = select(self._server.strategy(target.resource), objects, label_selector, field_selector)
        if version:
            objects = [self._seen_in(target, version, obj) for obj in objects]
        return ObjectList(objects, str(revision), problems)

    def _snapshot(self, resource: str, namespace: str | None) -> Snapshot:
        if self._batch is None:
            return self._store.list(resource, namespace)
        transaction = self._batch.transaction
        return Snapshot(transaction.revision, transaction.list(resource, namespace))

    def changes(self, since: int) -> tuple[int, Events]:
        """What changed after a revision, and the revision reached. ``old`` is always None here. Raises Gone (410)."""
        found = self._read_changes(self._batch.transaction if self._batch else self._store, since)
        reached = max((change.revision for change in found), default=since)
        return reached, [_event(change, None) for change in found]

    def revision(self) -> int:
        """The newest revision."""
        return self._batch.transaction.revision if self._batch else self._store.revision()

    def _read_changes(self, reader: Store | Transaction, since: int) -> Changes:
        """The changes after a revision; if a CustomResourceDefinition is among them, custom kinds are read anew."""
        try:
            changes = reader.changes(since)
        except CompactedError:
            raise errors.Expired(f"too old resource version: {since} ({self.revision()})") from None
        if any(change.key.resource == CRDS for change in changes):
            self._forget_custom_kinds()
        return changes

    # --- writing ----------------------------------------------------------------------------------------------------

    def create(self, resource: str, obj: Object, *, namespace: str = "", dry_run: bool = False,
               field_manager: str = "", field_validation: str = "Ignore") -> Object:
        """Create an object; returns it as stored. ``field_validation``: Strict, Warn or Ignore (unknown fields).

        ``field_manager``: the client that does it, here and in other requests; controllers name none, and so their
        writes cost nothing to track.

        Raises AlreadyExists, Invalid, BadRequest, Forbidden (namespace terminating), NotFound (no such namespace).
        """
        from kubepy.apiserver.requests.creation import create

        resource, _, version = resource.partition("/")
        target = self._target_of(resource, namespace, obj)
        with self.session(dry_run) as session:
            made = create(self._server, session, target._replace(name=""), obj, field_validation, field_manager)
        return self._seen_in(target, version, made) if version else made

    def update(self, resource: str, obj: Object, *, namespace: str = "", subresource: str = "", dry_run: bool = False,
               field_manager: str = "", field_validation: str = "Ignore") -> Object:
        """Replace an object, its ``status`` or its ``scale``. With metadata.resourceVersion: only that version.

        Raises NotFound, Conflict, Invalid, BadRequest.
        """
        from kubepy.apiserver.requests.updating import update

        resource, _, version = resource.partition("/")
        if subresource == "scale":
            return self.update_scale(resource, obj, namespace=namespace, dry_run=dry_run, field_manager=field_manager,
                                     field_validation=field_validation)
        target = self._target_of(resource, namespace, obj)
        with self.session(dry_run) as session:
            stored = update(self._server, session, target, obj, subresource, field_validation, field_manager)
        return self._seen_in(target, version, stored) if version else stored

    def _target_of(self, resource: str, namespace: str, obj: Object) -> Target:
        """The object that a request carries; without a namespace of its own it is in that of the object."""
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            metadata = {}
        return self._server.target(resource, namespace or metadata.get("namespace", ""), metadata.get("name", ""))

    def patch(self, resource: str, name: str, patch: Any, patch_type: str, *, namespace: str = "",
              subresource: str = "", dry_run: bool = False, field_manager: str = "",
              field_validation: str = "Ignore", force: bool = False) -> Object:
        """Apply a patch (parsed JSON). ``force`` is server-side apply's."""
        from kubepy.apiserver.requests.patching import patch_object

        resource, _, version = resource.partition("/")
        target = self._server.target(resource, namespace, name, version)
        with self.session(dry_run) as session:
            patched = patch_object(self._server, session, target, patch, patch_type, subresource, field_validation,
                                   field_manager, force, version)
        return self._seen_in(target, version, patched) if version else patched

    def delete(self, resource: str, name: str, *, namespace: str = "",
               options: DeleteOptions = NO_OPTIONS) -> Object:
        """Delete an object: at once, or by setting deletionTimestamp where a grace period or finalizers hold it.

        Returns the last state, or the state with its deletionTimestamp.
        """
        from kubepy.apiserver.requests.deletion import delete

        with self.session(options.dry_run) as session:
            return delete(self._server, session, self._server.target(resource, namespace, name), options)

    def delete_collection(self, resource: str, *, namespace: str = "", label_selector: str = "",
                          field_selector: str = "", options: DeleteOptions = NO_OPTIONS) -> Objects:
        """Delete all that the selectors choose; returns them as ``delete`` does."""
        from kubepy.apiserver.requests.deletion import delete

        with self.joined():
            chosen = self.list(resource, namespace=namespace, label_selector=label_selector,
                               field_selector=field_selector).items
            with self.session(options.dry_run) as session:
                server = self._server
                return [delete(server, session, server.target(resource, namespace, one["metadata"]["name"]), options)
                        for one in chosen]

    # --- managers ---------------------------------------------------------------------------------------------------

    def with_managed_fields(self, obj: Object) -> Object:
        """An object with its managedFields as the API shows them; storage keeps less of them."""
        from kubepy.apiserver.managedfields.tracking import shown
        from kubepy.apiserver.requests.field_schemas import field_schema

        resource = self._server.scheme.for_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
        return shown(resource, field_schema(self._server, resource), obj) if resource else obj

    # --- subresources -----------------------------------------------------------------------------------------------

    def get_scale(self, resource: str, name: str, *, namespace: str = "") -> Object:
        """The ``autoscaling/v1 Scale`` of an object. Raises the "could not find the requested resource" NotFound."""
        from kubepy.apiserver.requests.scaling import read_scale, scale_paths

        served = self._server.resource(resource)
        scale_paths(served)
        return read_scale(served, self.get(resource, name, namespace=namespace))

    def update_scale(self, resource: str, scale: Object, *, namespace: str = "", dry_run: bool = False,
                     field_manager: str = "", field_validation: str = "Ignore") -> Object:
        """Set the replicas of an object through its scale. Raises as get_scale, Conflict, Invalid."""
        from kubepy.apiserver.requests.scaling import replace_scale

        with self.session(dry_run) as session:
            return replace_scale(self._server, session, self._target_of(resource, namespace, scale), scale,
                                 field_validation, field_manager)

    def evict(self, name: str, *, namespace: str, options: DeleteOptions = NO_OPTIONS) -> None:
        """Delete a pod unless a PodDisruptionBudget forbids it. Raises TooManyRequests."""
        from kubepy.apiserver.requests.eviction import evict

        with self.session(options.dry_run) as session:
            evict(self._server, session, self._server.target("pods", namespace, name), options)

    def bind(self, name: str, node: str, *, namespace: str) -> None:
        """Assign a pod to a node (the ``binding`` subresource); sets PodScheduled."""
        from kubepy.apiserver.requests.binding import bind

        with self.session(dry_run=False) as session:
            bind(self._server, session, self._server.target("pods", namespace, name), node)

    # --- transactions -----------------------------------------------------------------------------------------------

    def observe_from(self, revision: int) -> None:
        """The next batch's ``drain`` begins after this revision, at which the caller has listed what it knows."""
        self._since = revision

    @contextmanager
    def batch(self, observed: Observed | None = None) -> Iterator[Batch]:
        """One transaction for all requests of this Client inside the block; an exception undoes them all.

        ``observed`` tells how the caller last saw an object; what came from outside gets its ``old`` from it, and is
        left out if the caller has seen that very version.
        """
        with self._transaction() as transaction:
            since = transaction.revision if self._since is None else self._since
            batch = self._batch = Batch(transaction, self._outside_changes(transaction, since, observed))
            try:
                yield batch
            finally:
                self._batch = None
        self._since = transaction.revision

    def _outside_changes(self, transaction: Transaction, since: int, observed: Observed | None) -> Events:
        if since >= transaction.revision:
            return []
        events = [_event(change, observed) for change in self._read_changes(transaction, since)]
        return [event for event in events if event.old is not event.new and not _seen(event)]

    @contextmanager
    def joined(self) -> Iterator[None]:
        """All requests inside the block in one transaction: the batch that is open, or one of their own."""
        if self._batch:
            yield
            return
        with self._transaction() as transaction:
            self._batch = Batch(transaction, [])
            try:
                yield
            finally:
                self._batch = None

    @contextmanager
    def session(self, dry_run: bool = False) -> Iterator[Session]:
        """The transaction of one request. For the request pipeline and for events, which go around it."""
        if self._batch:
            events, before = self._batch.events, len(self._batch.events)
            yield Session(self._batch.transaction, events, dry_run=dry_run)
        else:
            events, before = [], 0
            with self._transaction() as transaction:
                yield Session(transaction, events, dry_run=dry_run)
        if any(events[index].key.resource == CRDS for index in range(before, len(events))):
            self._forget_custom_kinds()

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        """A transaction of storage, and in it the ids go on from where the last one left them."""
        ids = self._server.ids
        try:
            with self._store.transaction() as transaction:
                began = ids.position = self._ids_position(transaction) if ids.seed is not None else 0
                yield transaction
                if ids.position != began:
                    self._store.set_meta(IDS_POSITION, str(ids.position))
        except ConflictError as error:  # somebody edited one of the files in the meantime
            raise errors.Conflict(f"Operation cannot be fulfilled: {error}") from None

    def _ids_position(self, transaction: Transaction) -> int:
        """The position of the sequence of ids. It was lost with an index that was made anew, whose revisions count from
        milliseconds on: then it goes on from there, so that no id comes a second time."""
        if position := self._store.meta(IDS_POSITION):
            return int(position)
        return transaction.revision if transaction.revision > REBUILT else 0

    def _forget_custom_kinds(self) -> None:
        self._server.scheme.forget_custom()
        self._server.forget_strategies()


def _event(change: Change, observed: Observed | None) -> WatchEvent:
    """``old`` as the caller knows it; a deletion has its last state there."""
    old = observed(change.key) if observed else None
    if change.type == "DELETED":
        return WatchEvent(change.key, old or change.object, None)
    return WatchEvent(change.key, old, change.object, is_update=change.type == "MODIFIED")


def _seen(event: WatchEvent) -> bool:
    if event.old is None or event.new is None:
        return False
    return bool(event.old["metadata"]["resourceVersion"] == event.new["metadata"]["resourceVersion"])
