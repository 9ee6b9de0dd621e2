"""A transaction of storage as requests use it: the API's errors, dry runs, and a record of the
writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.apiserver.settings import IMPLIED
from kubepy.lazy import lazy_imports
from kubepy.storage import ConflictError, ExistsError, Key, MissingError
from kubepy.storage.model import REBUILT, Objects

if TYPE_CHECKING:
    from kubepy.api.clock import Ids
    from kubepy.api.types import Decoded
    from kubepy.apiserver.implied import ImpliedObjects
    from kubepy.storage.store import Store, Transaction

with lazy_imports():
    from kubepy.api import errors, watch
    from kubepy.storage import view

PODS, EVENTS = "pods", "events"
ALL_EVENTS = Key(EVENTS, "", "")


class BatchMemory:
    """Facts that requests of one batch have found out and later ones need not find out again
    (``kubepy.apiserver.requests.podbatches``).

    :ivar version: the number of writes in the batch of anything but pods and events.
    :ivar accepted: the pods that the batch has stored last, as requests made and checked them.
    :ivar made: by what a creation depends on, the version at that time and the pod that was made.
    :ivar parts: parts of the status of pods, decoded, by their bytes.
    :ivar is_simple: the namespaces in which nothing but the usual plugins has a say about pods, at
        a version.
    """

    def __init__(self) -> None:
        self.version = 0
        self.accepted: dict[Key, Object] = {}
        self.made: dict[bytes, tuple[int, Object]] = {}
        self.is_simple: dict[str, int] = {}
        self.parts: dict[bytes, Decoded] = {}


class RequestTransaction:
    """The reads and writes of requests inside one transaction of storage.

    :param store: the store of the transaction.
    :param events: each write is appended to it with the state before, so that controllers hear of
        their own batch without reading the change log.
    :param implied: objects that are there without being stored, or None where there are none.
    :param dry_run: nothing is written; answers are as if it were.
    :ivar memory: the facts of the batch; None outside of one, and for a dry run.
    :ivar counts: names and uids are counted, because they are drawn from a seed
        (docs/decisions/uids.md).
    """

    def __init__(
        self,
        store: Store,
        transaction: Transaction,
        events: list[watch.WatchEvent],
        implied: ImpliedObjects | None = None,
        memory: BatchMemory | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        self._store = store
        self._transaction = transaction
        self._events = events
        self._implied = implied
        self.memory = None if dry_run else memory
        self.dry_run = dry_run
        self.counts = False
        self._recorded_pods: int | None = None  # when the transaction began
        self._deleted_events: int | None = None  # None: not yet asked for
        self._lost: int | None = None  # counts, at most; None: not yet asked for
        self._pods_made = 0  # in the transaction, less those that it has deleted

    def get(self, key: Key) -> Object | None:
        obj = self._transaction.get(key)
        if obj is None and self._implied and key.resource in IMPLIED:
            return self._implied.get(key, self._stored)
        return obj

    def count_pods(self) -> int:
        """Return the number of pods in all namespaces, with those that this transaction has
        made."""
        if self._recorded_pods is None:
            self._recorded_pods = count_recorded(self._store, PODS)
        return self._recorded_pods + self._pods_made

    def names_given(self, prefix: Key) -> int:
        """Return how many names a prefix of generated names has been given."""
        return self._count("names", prefix)

    def new_uid(self, ids: Ids, key: Key) -> str:
        """Draw a uid for an object whose name was given to it."""
        return ids.uid(*key, number=self._first_number() + self._count("made", key))

    def generated_uid(self, ids: Ids, key: Key, prefix: str, names_given: int) -> str:
        """Draw a uid for an object whose name was generated, as one of so many from a prefix."""
        return ids.uid(*key, prefix, number=self._first_number() + names_given)

    def count_object(self, key: Key, prefix: str = "", names_given: int = 0) -> None:
        """Count an object that is made next with a new uid, unless there is one under its key.

        :param prefix: that its name was generated from, as one of so many.
        """
        if not self.counts or self.get(key) is not None:
            return
        if prefix:
            self._set_count("names", key._replace(name=prefix), names_given)
        else:
            self._set_count("made", key, self._count("made", key) + 1)

    def recorded_uid(self, ids: Ids, key: Key, purpose: str) -> str:
        """Draw the uid, or a name, of an event that a component records.

        Its key has the time in it, so it comes again only where one was deleted: of events the
        deletions are counted, and all together.
        """
        number = self._first_number() + self._count_deleted_events()
        return ids.uid(*key, "recorded", purpose, number=number)

    def _count_deleted_events(self) -> int:
        if self._deleted_events is None:
            self._deleted_events = self._count("deleted", ALL_EVENTS)
        return self._deleted_events

    def _first_number(self) -> int:
        """Return the number from which counts go on: another than 0 if the store has lost
        them."""
        if self._lost is None:
            self._lost = int(self._store.meta(REBUILT) or 0) if self.counts else 0
        return self._lost

    def _count(self, name: str, key: Key) -> int:
        return int(self._store.meta(f"{name}/{'/'.join(key)}") or 0) if self.counts else 0

    def _set_count(self, name: str, key: Key, count: int) -> None:
        if self.counts and not self.dry_run:
            self._store.set_values({f"{name}/{'/'.join(key)}": str(count)})

    def require(self, key: Key) -> Object:
        """Return an object. Raises NotFound."""
        obj = self.get(key)
        if obj is None:
            raise errors.not_found(key.resource, key.name)
        return obj

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        """Return the objects of a resource key, of all namespaces or of one."""
        stored = self._stored(resource, namespace)
        if self._implied is None or resource not in IMPLIED:
            return stored
        return with_implied(
            stored, self._implied.missing(resource, namespace, stored, self._stored)
        )

    def _stored(self, resource: str, namespace: str | None = None) -> Objects:
        return self._transaction.list(resource, namespace).objects

    def create(self, key: Key, obj: Object, *, is_plain: bool = False) -> Object:
        """Store a new object and return it. Raises AlreadyExists, in other words if that one is
        being deleted.

        :param is_plain: as for a transaction of storage.
        """
        if self.dry_run or key.resource in IMPLIED:
            if (existing := self.get(key)) is not None:
                raise _already_exists(key, existing)
            if self.dry_run:
                return obj
        try:
            stored = self._transaction.create(key, obj, is_plain=is_plain)
        except ExistsError:
            raise _already_exists(key, self.require(key)) from None
        self._note(watch.WatchEvent(key, None, stored))
        return stored

    def update(self, key: Key, obj: Object, old: Object, *, is_plain: bool = False) -> Object:
        """Replace ``old``, the object as this transaction read it; an implied one is stored now.

        Raises NotFound, Conflict.
        """
        if obj == old or self.dry_run:
            return obj
        if (
            obj["metadata"] is old["metadata"]
        ):  # storage writes the new version into it, and the old one is shared
            obj = {**obj, "metadata": dict(obj["metadata"])}

        try:
            is_implied = (
                key.resource in IMPLIED
                and self._transaction.get(key) is None
                and self.get(key) is not None
            )
            stored = (
                self._transaction.create(key, obj)
                if is_implied
                else self._transaction.update(key, obj, is_plain=is_plain)
            )
        except MissingError:
            raise errors.not_found(key.resource, key.name) from None
        except ConflictError:
            raise errors.conflict(key.resource, key.name, errors.MODIFIED) from None

        if stored is not old:
            self._note(watch.WatchEvent(key, old, stored))
        return stored

    def accept(self, key: Key, pod: Object) -> None:
        """Note that a stored pod is as a request has made and checked it."""
        if self.memory is not None:
            self.memory.accepted[key] = pod

    def _note(self, event: watch.WatchEvent) -> None:
        self._events.append(event)
        if event.key.resource == PODS:
            self._pods_made += (event.old is None) - (event.new is None)
        if self.memory is None:
            return
        if event.key.resource not in (PODS, EVENTS):
            self.memory.version += 1

    def charge(self, charges: Iterable[tuple[Object, Object]]) -> None:
        """Write ResourceQuotas, given as they were and as they are after the request; a dry run
        uses nothing."""
        for old, new in charges:
            metadata = new["metadata"]
            self.update(Key("resourcequotas", metadata["namespace"], metadata["name"]), new, old)

    def delete(self, key: Key) -> Object:
        """Remove an object and return its last state. Raises NotFound."""
        if self.dry_run:
            return self.require(key)
        implied = self._implied if key.resource in IMPLIED else None
        if key.resource == EVENTS:
            self._deleted_events = self._count_deleted_events() + 1
            self._set_count("deleted", ALL_EVENTS, self._deleted_events)
        try:
            deleted = self._transaction.delete(key)
        except MissingError:
            deleted = self.require(key)
        if implied:
            implied.note_deletion(key, self._stored)
        self._note(watch.WatchEvent(key, deleted, None))
        return deleted


def count_recorded(store: Store, resource: str) -> int:
    """Return the number of objects of a resource that are recorded; those of a transaction that is
    open are not."""
    return view.read_recorded(store, lambda state: state.count(resource))


def with_implied(stored: list[Object], implied: list[Object]) -> list[Object]:
    """Return stored and implied objects in key order."""
    if not implied:
        return stored
    return sorted([*stored, *implied], key=lambda obj: (namespace_of(obj), name_of(obj)))


def _already_exists(key: Key, existing: Object) -> errors.AlreadyExists:
    error = errors.already_exists(key.resource, key.name)
    if existing["metadata"].get("deletionTimestamp"):
        return error.with_message(f"object is being deleted: {error.message}")
    return error
