"""The objects as controllers have observed them, with indexes, and typed access to one resource of
them.

Upstream: informers, listers, indexers and typed clients of ``k8s.io/client-go``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

from kubepy.api.meta import (
    AnyObject,
    Object,
    ObjectT,
    controller_of,
    is_controlled_by,
    namespace_of,
    owner_references,
    uid_of,
)
from kubepy.apiserver.cluster import object_indexes
from kubepy.storage import Key
from kubepy.storage.indexes import FieldIndex
from kubepy.storage.state import ObjectRecord, ObjectTable, State

if TYPE_CHECKING:
    from kubepy.api import typed
    from kubepy.api.watch import WatchEvent
    from kubepy.apiserver.client import Client
    from kubepy.storage.view import RecordedView

COUNTED_INDEXES = frozenset({"node", "owner"})  # those of few values, each of many objects
# the indexes of the objects that are known, as ``kubepy.apiserver.cluster.object_indexes`` has them
UID, OWNER, ORPHAN, NODE = "uid", "owner", "orphan", "node"
LOOKUPS_TO_COUNT_AT = 16  # counting costs as much as some lookups
# notes of what is not there, and of what was asked for, beside twice as many as there are objects
OVERGROWN = 10_000
# objects whose former state is held as well, until the changes are taken in
MOST_WAITING = 2_000

NO_TABLES: Mapping[str, ObjectTable] = {}
RecordChange = tuple[ObjectRecord, ObjectRecord | None]  # a record, and the one before it

Value = TypeVar("Value")
SomeValue = TypeVar("SomeValue", contravariant=True)
AccumulatorT = TypeVar("AccumulatorT", bound="Accumulator[Any]")
Group = TypeVar("Group")
# Aliases, because methods named ``list`` hide the builtin inside their classes.
Objects = list[Object]
Keys = list[Key]
Names = list[str]
KeyedObjects = list[tuple[Key, Object]]


class TypedResource(str, Generic[ObjectT]):
    """A resource key (``daemonsets.apps``) that knows the type of its objects."""

    __slots__ = ()


CONFIG_MAPS: TypedResource[typed.ConfigMap] = TypedResource("configmaps")
CONTROLLER_REVISIONS: TypedResource[typed.ControllerRevision] = TypedResource(
    "controllerrevisions.apps"
)
CRON_JOBS: TypedResource[typed.CronJob] = TypedResource("cronjobs.batch")
DAEMON_SETS: TypedResource[typed.DaemonSet] = TypedResource("daemonsets.apps")
DEPLOYMENTS: TypedResource[typed.Deployment] = TypedResource("deployments.apps")
ENDPOINTS: TypedResource[typed.Endpoints] = TypedResource("endpoints")
ENDPOINT_SLICES: TypedResource[typed.EndpointSlice] = TypedResource(
    "endpointslices.discovery.k8s.io"
)
JOBS: TypedResource[typed.Job] = TypedResource("jobs.batch")
NAMESPACES: TypedResource[typed.Namespace] = TypedResource("namespaces")
NODES: TypedResource[typed.Node] = TypedResource("nodes")
PERSISTENT_VOLUME_CLAIMS: TypedResource[typed.PersistentVolumeClaim] = TypedResource(
    "persistentvolumeclaims"
)
PERSISTENT_VOLUMES: TypedResource[typed.PersistentVolume] = TypedResource("persistentvolumes")
PODS: TypedResource[typed.Pod] = TypedResource("pods")
REPLICA_SETS: TypedResource[typed.ReplicaSet] = TypedResource("replicasets.apps")
# The selector is read as a map; all else that the controller reads is as in a ReplicaSet.
REPLICATION_CONTROLLERS: TypedResource[typed.ReplicaSet] = TypedResource("replicationcontrollers")
RESOURCE_QUOTAS: TypedResource[typed.ResourceQuota] = TypedResource("resourcequotas")
SECRETS: TypedResource[typed.Secret] = TypedResource("secrets")
SERVICE_ACCOUNTS: TypedResource[typed.ServiceAccount] = TypedResource("serviceaccounts")
SERVICES: TypedResource[typed.Service] = TypedResource("services")
STATEFUL_SETS: TypedResource[typed.StatefulSet] = TypedResource("statefulsets.apps")
STORAGE_CLASSES: TypedResource[typed.StorageClass] = TypedResource("storageclasses.storage.k8s.io")


class Accumulator(Protocol[SomeValue]):
    """A value that follows from those of a group of an index, kept up to date one by one."""

    def replace(self, old: SomeValue | None, new: SomeValue | None) -> None:
        """Take in that an object of the group has another value, that its value came to the group
        (``old`` is None), or left it (``new`` is None)."""


class Index(Generic[ObjectT, Value]):
    """Values computed from the objects of one resource, when they are asked for, and once for every
    object as it then is: most states of an object that changes often are never looked at.

    :param compute: gives an object's value and the name of its group, or None to leave the object
        out.
    :param begin: lets the index observe everything from now on, what was observed before included.
    :param load: loads the object of a key; ``load_group`` those that may be in a group.
    """

    def __init__(
        self,
        compute: Callable[[ObjectT], tuple[str, Value] | None],
        begin: Callable[[], object],
        load: Callable[[Key], object],
        load_group: Callable[[str], object],
    ) -> None:
        self._compute = compute
        self._begin = begin
        self._load = load
        self._load_group = load_group
        self.answered: set[Query] = set()  # by which parts of objects were read
        # An object is in at most one group: of its key, _groups[_group_of[key]] has the value, and
        # no other group has one. _observed has the objects for which that is of an earlier state,
        # in the order of their last changes. The accumulators follow _groups, not _observed.
        self._observed: dict[Key, ObjectT | None] = {}
        self._group_of: dict[Key, str] = {}
        self._groups: dict[str, dict[Key, Value]] = {}
        self._accumulators: list[Accumulators[Value, Any]] = []

    def get(self, key: Key) -> Value | None:
        self._begin()
        self._load(key)
        self.update()
        group = self._group_of.get(key)
        if group is None:
            return None
        return self._groups[group][key]

    def group(self, name: str) -> Mapping[Key, Value]:
        """Return the values of a group by their objects' keys, in no particular order."""
        self._begin()
        self._load_group(name)
        self.update()
        return self._groups.get(name, {})

    def groups(self) -> Collection[str]:
        """Return the names of the groups of all objects that were read or observed."""
        self._begin()
        self.update()
        return self._groups.keys()

    def accumulate(self, new: Callable[[str], AccumulatorT]) -> Accumulators[Value, AccumulatorT]:
        """Keep something up to date with the values of each group from now on.

        :param new: makes it for a group, by its name, of no values yet.
        """
        accumulators = Accumulators(self, new)
        self._accumulators.append(accumulators)
        return accumulators

    def observe(self, key: Key, obj: ObjectT | None) -> None:
        self._observed.pop(key, None)
        if obj is not None or key in self._group_of:
            self._observed[key] = obj

    def holds(self, key: Key) -> bool:
        """Return whether an object was in a group when the index was last asked for something."""
        return key in self._group_of

    def clear(self) -> None:
        self.answered.clear()
        self._observed.clear()
        self._group_of.clear()
        self._groups.clear()
        for accumulators in self._accumulators:
            accumulators.clear()

    def update(self) -> None:
        """Compute the values of the objects that have changed; accumulators have them then."""
        if not self._observed:
            return
        compute = self._compute
        computed = [
            (key, None if obj is None else compute(obj)) for key, obj in self._observed.items()
        ]
        # not before: where one cannot be computed, all are tried again next time
        self._observed.clear()
        for key, entry in computed:
            old_group = self._group_of.pop(key, None)
            old_value = None
            if old_group is not None:
                old_value = self._groups[old_group][key]
                _discard(self._groups, old_group, key)
            new_group, new_value = (None, None) if entry is None else entry
            if new_group is not None:
                self._group_of[key] = new_group
                self._groups.setdefault(new_group, {})[key] = cast(Value, new_value)

            for accumulators in self._accumulators:
                if old_group == new_group:
                    accumulators.replace(old_group, old_value, new_value)
                else:
                    accumulators.replace(old_group, old_value, None)
                    accumulators.replace(new_group, None, new_value)


class Accumulators(Generic[Value, AccumulatorT]):
    """The accumulators of an index: one for each of its groups that was asked for, until it is
    forgotten."""

    def __init__(self, index: Index[Any, Value], new: Callable[[str], AccumulatorT]) -> None:
        self._index = index
        self._new = new
        self._by_group: dict[str, AccumulatorT] = {}

    def of(self, group: str) -> AccumulatorT:
        """Return what follows from the values that are in a group now."""
        values = self._index.group(group).values()
        accumulator = self._by_group.get(group)
        if accumulator is None:
            accumulator = self._by_group[group] = self._new(group)
            for value in values:
                accumulator.replace(None, value)
        return accumulator

    def replace(self, group: str | None, old: Value | None, new: Value | None) -> None:
        """Let the accumulator of a group, if there is one, take in a change."""
        accumulator = self._by_group.get(group) if group is not None else None
        if accumulator is not None:
            accumulator.replace(old, new)

    def forget(self, group: str) -> None:
        """Drop the accumulator of a group that nobody will ask for again."""
        self._by_group.pop(group, None)

    def clear(self) -> None:
        self._by_group.clear()


class Query(NamedTuple):
    """One way to ask the store for objects: the resource's (in a namespace), or those that an index
    finds by a value.

    The indexes are those of ``kubepy.apiserver.cluster.object_indexes``.
    """

    resource: str | None
    namespace: str | None = None
    by: str = ""
    value: str = ""


def owned_by(uid: str, resource: str | None = None) -> tuple[Query, ...]:
    """Return the queries for the objects whose ownerReferences name a uid: first or later."""
    return Query(resource, by=OWNER, value=uid), Query(None, by="owned_twice")


class Informers:
    """The objects as the controllers have observed them: read-only, indexed, fed by the manager
    from the change log.

    What is asked for is read from a view of the store when it was neither read nor observed before
    (:meth:`follow`). An object that was is *known*, also one that is not there. What is known is a
    :class:`State`, which each event moves by one record. What is not known is in the view as the
    controllers would have observed it, so that nothing can tell when it was read. After a sync the
    manager feeds in what that sync wrote, before the next one runs. Controllers whose watch events
    come late have informers of their own (``kubepy.controlplane.faults``), in which everything is
    known.
    """

    def __init__(self) -> None:
        self.listings = 0  # how often everything was forgotten, to be read anew
        # What is known: objects in _state, the keys of those that are not there in _absent; never
        # both. An index that was asked for something is told of every object that comes to _state,
        # changes there or leaves.
        # _state is _taken with the changes that are _waiting: each record with the one in _taken.
        # _asked are records of _taken that were asked for.
        self._taken = State({}, indexes=_known_by())
        self._asked: dict[tuple[str, str, str], ObjectRecord] = {}
        self._waiting: dict[tuple[str, str, str], RecordChange] = {}
        self._absent: set[Key] = set()
        self._indexes: defaultdict[str, list[Index[Any, Any]]] = defaultdict(list)
        self._changes: Counter[str] = Counter()  # by resource: how often an object has changed
        self._counts: dict[str, int] = {}  # of objects, also those that are not known
        # by resource, until one of its objects changes: the lists by namespace (None: of all)
        self._lists: defaultdict[str, dict[str | None, Objects]] = defaultdict(dict)
        self._view: RecordedView | None = None  # None: everything is known
        self._is_watched: Callable[[str], bool] = lambda resource: True
        # A query that is answered finds nothing in the view that is not known: it is in _answered,
        # or the one for its whole resource is, or the view holds nothing that it could find.
        self._answered: set[Query] = set()
        self._stored: set[str] = set()  # the resources of which the view is known to have objects
        # The view is asked how many objects an index finds by each value once it has been asked
        # often for single ones: by index, how often it was asked, then the most that it finds.
        self._lookups: Counter[str] = Counter()
        self._recorded: dict[str, Mapping[str, int]] = {}

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        record = self._record((resource, namespace, name))
        if record is not None:
            return record.object
        if self._view is None:
            return None
        return self._load(Key(resource, namespace, name))

    @property
    def _state(self) -> State:
        """All objects that are known. Changes are taken in together, where something else than a
        single object is asked for: an object mostly changes several times meanwhile."""
        if self._waiting:
            self._take_in()
        return self._taken

    def _take_in(self) -> None:
        changes = list(self._waiting.values())
        self._waiting.clear()
        newest = max(record.revision for record, _ in changes)
        revision = max(newest, self._taken.revision)
        self._rest_on(self._taken.with_records(changes, revision))

    def _rest_on(self, state: State) -> None:
        self._taken = state
        self._asked.clear()

    def _record(self, key: tuple[str, str, str]) -> ObjectRecord | None:
        """Return a known object, None where it is not there or not known."""
        change = self._waiting.get(key)
        if change is not None:
            record, _ = change
            return record if record.is_there else None
        known = self._asked.get(key)
        if known is not None:
            return known
        resource, namespace, name = key
        table = self._taken.tables.get(resource, NO_TABLES).get(namespace)
        if table is None:
            return None
        known = table.get(name)
        if known is not None:
            self._asked[key] = known
        return known

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        """Return objects in key order (namespace, name)."""
        lists = self._lists[resource]
        objects = lists.get(namespace)
        if objects is None:
            self.load(Query(resource, namespace))
            objects = [record.object for record in self._state.records(resource, namespace)]
            # else objects may show that were there before
            if self._view is None or self._is_watched(resource):
                lists[namespace] = objects
        return objects[:]

    def changes(self, resource: str) -> int:
        """Return a number that is another one after the objects of a resource have changed, or all
        were forgotten.

        Reading what was there before changes nothing.
        """
        return self.listings + self._changes[resource]

    def count(self, resource: str) -> int:
        """Return the number of objects of a resource."""
        if self._view is None:
            return self._state.count(resource)
        if resource not in self._counts:
            count = self._state.count(resource)
            if self._is_watched(resource):
                keys = self._view.read(lambda state: state.keys(resource))
                count += sum(1 for key in keys if not self.is_known(key))
            self._counts[resource] = count
        return self._counts[resource]

    def lister(self, resource: TypedResource[ObjectT]) -> Lister[ObjectT]:
        return Lister(self, resource)

    def dependents(self, uid: str, resource: str | None = None) -> Keys:
        """Return the keys of the objects (of one resource) whose ownerReferences name this uid, in
        key order."""
        self.load(*owned_by(uid, resource))
        return self._state.index_entries.keys(OWNER, uid, resource)

    def has_dependents(self, uid: str) -> bool:
        """Return whether the ownerReferences of any object name this uid."""
        self.load(*owned_by(uid, None))
        return self._state.index_entries.has(OWNER, uid)

    def orphans(self, resource: str, namespace: str) -> Keys:
        """Return the keys of the objects in a namespace that no controller owns, in key order."""
        self.load(Query(resource, namespace, ORPHAN))
        keys = self._state.index_entries.keys(ORPHAN, "", resource, namespace)
        return [key for key in keys if not self._has_controller(key)]

    def _has_controller(self, key: Key) -> bool:
        obj = self.get(*key)
        return obj is not None and controller_of(obj) is not None

    def pods_on(self, node: str) -> Keys:
        """Return the keys of the pods bound to a node, in key order."""
        self.load(Query(PODS, None, NODE, node))
        return self._state.index_entries.keys(NODE, node)

    def has_fewer_on(self, node: str, most: int) -> bool:
        """Return whether fewer pods than so many are bound to a node; False also where they would
        have to be read for that."""
        query = Query(PODS, None, NODE, node)
        unknown = None
        if not self._is_answered(query):
            unknown = self._recorded_at_most(query.by, node)
        if unknown is None:
            self.load(query)
            unknown = 0
        taken = len(self._taken.index_entries.keys(NODE, node))
        if taken + len(self._waiting) + unknown < most:  # were all that wait bound to it
            return True
        return len(self._state.index_entries.keys(NODE, node)) + unknown < most

    def key_of(self, uid: str) -> Key | None:
        """Return the key of the object with this uid, if there is one."""
        if not self._state.index_entries.has(UID, uid):
            self.load(Query(None, None, UID, uid))
        keys = self._state.index_entries.keys(UID, uid)
        return keys[-1] if keys else None

    def resources(self) -> Names:
        """Return the resources of which there are objects, or have been."""
        resources = set(self._state.tables)
        if self._view is not None:
            recorded = {resource for resource, _ in self._view.read(lambda state: state.places())}
            resources.update(filter(self._is_watched, recorded))
        return sorted(resources)

    def add_index(
        self,
        resource: TypedResource[ObjectT],
        compute: Callable[[ObjectT], tuple[str, Value] | None],
        queries: Callable[[str], Iterable[Query]] | None = None,
        parts: Sequence[str] = (),
    ) -> Index[ObjectT, Value]:
        """Return an :class:`Index` of a resource. It begins when it is first asked for something;
        then what was observed before is in it.

        :param queries: find the objects of a group, by its name, and perhaps others; None: all of
            the resource may be in any group.
        :param parts: all that is computed from (``metadata.labels``): of objects that nothing else
            has asked for only this is read, and ``compute`` gets objects of these fields.
        """

        def begin() -> None:
            if index not in self._indexes[resource]:
                for key, obj in self.known(resource):
                    index.observe(key, cast(ObjectT, obj))
                self._indexes[resource].append(index)

        def load(key: Key) -> None:
            self.get(*key)

        def load_group(group: str) -> None:
            asked = (Query(resource),) if queries is None else queries(group)
            if parts:
                self._load_parts(index, parts, asked)
            else:
                self.load(*asked)

        index = Index(compute, begin, load, load_group)
        return index

    # --- observing

    def observe(self, event: WatchEvent) -> None:
        """Store one change."""
        key = event.key
        new = event.new
        before = self._record(key)
        _, taken = self._waiting.get(key, (None, before))
        self._waiting[key] = _new_record(key, new), taken
        self._changes[key.resource] += 1
        self._lists.pop(key.resource, None)
        if new is not None:
            self._absent.discard(key)
        elif self._view is not None:
            self._absent.add(key)
        if key.resource in self._counts:
            self._counts[key.resource] += (new is not None) - (before is not None)
        for index in self._indexes[key.resource]:
            index.observe(key, new)
        if len(self._waiting) >= MOST_WAITING:
            self._take_in()

    def is_overgrown(self) -> bool:
        """Return whether so many objects have come and gone that what is still known of them
        outweighs the rest."""
        present = sum(map(self._state.count, self._state.tables))
        return len(self._absent) + len(self._answered) > OVERGROWN + 2 * present

    def clear(self) -> None:
        """Forget everything, before it is all read again."""
        self.listings += 1
        self._rest_on(State({}, indexes=_known_by()))
        self._waiting.clear()
        self._absent.clear()
        self._counts.clear()
        self._lists.clear()
        for indexes in self._indexes.values():
            for index in indexes:
                index.clear()
        self._indexes.clear()
        self._answered.clear()
        self._stored.clear()
        self._lookups.clear()
        self._recorded.clear()
        self._view = None

    # --- reading from a view

    def follow(self, view: RecordedView, is_watched: Callable[[str], bool]) -> None:
        """Read from a view from now on what is not known. The caller has it go on to a newer
        revision only when all that changes by that is known.

        :param is_watched: tells of which resources there are objects here at all.
        """
        self._view = view
        self._is_watched = is_watched

    def known(self, resource: str | None = None) -> Iterator[tuple[Key, Object]]:
        """Yield the objects (of one resource) that were read or observed, in key order."""
        resources = sorted(self._state.tables) if resource is None else [resource]
        for listed in resources:
            for record in self._state.records(listed, None):
                yield record.key, record.object

    def read_everything(self) -> None:
        """Read all that is not known, so that the view is not needed any more."""
        for resource in self.resources():
            self.load(Query(resource))
        self._view = None

    def is_known(self, key: Key) -> bool:
        """Return whether an object, or that it is not there, was read or observed."""
        return key in self._absent or self._record(key) is not None

    def assume(self, key: Key, obj: Object | None) -> None:
        """Take an object that is not known as it was before the change that is to be observed
        next."""
        if obj is not None:
            self._take([(key, obj)])
        elif self._view is not None and not self.is_known(key):
            self._absent.add(key)

    def load(self, *queries: Query) -> None:
        """Read what some queries find, unless it was read before; those of one index are answered
        together."""
        by_index: dict[tuple[str, str | None, str | None], list[str]] = {}
        for query in queries:
            if not self._is_answered(query):
                self._answered.add(query)
                by_index.setdefault((query.by, query.resource, query.namespace), []).append(
                    query.value
                )

        for (index, resource, namespace), values in by_index.items():
            self._take(self._found(Query(resource, namespace, index), values))

    def _found(self, query: Query, values: Collection[str]) -> KeyedObjects:
        """Return the objects in the view that a query finds by any of some values."""
        assert self._view is not None
        resource, namespace, index, _ = query
        if index:
            return self._view.read(lambda state: state.found(index, values, resource, namespace))
        return self._view.read(lambda state: state.objects(str(resource), namespace))

    def read_ahead(self, keys: Collection[Key]) -> None:
        """Read objects together that will be asked for by their keys."""
        if self._view is None:
            return
        resources = {key.resource for key in keys}
        unread = {resource for resource in resources if not self._is_answered(Query(resource))}
        unknown = [key for key in keys if key.resource in unread and not self.is_known(key)]
        if not unknown:
            return
        present = self._view.read(lambda state: state.objects_at(unknown))
        self._take(present)
        self._absent.update({*unknown}.difference(key for key, _ in present))

    def _is_answered(self, query: Query) -> bool:
        """Return whether all that a query finds is known."""
        if self._view is None or query in self._answered:
            return True
        resource = query.resource
        if resource is not None:
            if Query(resource) in self._answered or not self._is_watched(resource):
                return True
            if resource not in self._stored:
                # else all that follow will be observed
                if not self._view.read(lambda state: state.count(resource)):
                    self._answered.add(Query(resource))
                    return True
                self._stored.add(resource)
        return self._recorded_at_most(query.by, query.value) == 0

    def _recorded_at_most(self, index: str, value: str) -> int | None:
        """Return how many objects that are not known an index may find by a value; None as long as
        few were looked up."""
        if index not in self._recorded:
            self._lookups[index] += 1
            if (
                self._view is None
                or index not in COUNTED_INDEXES
                or self._lookups[index] < LOOKUPS_TO_COUNT_AT
            ):
                return None
            self._recorded[index] = self._view.read(lambda state: state.counts(index))
        return self._recorded[index].get(value, 0)

    def _load_parts(
        self, index: Index[Any, Any], parts: Sequence[str], queries: Iterable[Query]
    ) -> None:
        """Let an index take the parts of objects that some queries find, where the objects are not
        known."""
        for query in queries:
            resource = query.resource
            if resource is None:
                self.load(query)
                continue
            if self._view is None or not self._is_watched(resource):
                continue
            if {query, Query(resource)} & self._answered or query in index.answered:
                continue
            index.answered.add(query)
            for key, obj in self._parts(parts, query):
                if not self.is_known(key):
                    index.observe(key, obj)

    def _parts(self, paths: Sequence[str], query: Query) -> KeyedObjects:
        """Return some fields of the objects in the view that a query finds."""
        assert self._view is not None
        resource, namespace, index, value = query
        return self._view.read(
            lambda state: state.parts(paths, str(resource), namespace, index, value)
        )

    def is_known_in_part(self, key: Key) -> bool:
        """Return whether an index has read parts of an object that is not known."""
        if self.is_known(key):
            return False
        return any(index.holds(key) for index in self._indexes[key.resource])

    def _load(self, key: Key) -> Object | None:
        """Read one object that is not observed."""
        assert self._view is not None
        if key in self._absent or Query(key.resource) in self._answered:
            return None
        if not self._is_watched(key.resource):
            return None
        present = self._view.read(lambda state: state.objects_at((key,)))
        obj = present[0][1] if present else None
        self.assume(key, obj)
        return obj

    def _take(self, objects: KeyedObjects) -> None:
        """Take objects as they were read, but for those that are known."""
        unknown = [
            (key, obj)
            for key, obj in objects
            if not self.is_known(key) and self._is_watched(key.resource)
        ]
        if not unknown:
            return
        records = [(_new_record(key, obj), None) for key, obj in unknown]
        self._rest_on(self._state.with_records(records, self._taken.revision))
        for key, obj in unknown:
            for index in self._indexes[key.resource]:
                if not index.holds(key):  # what was computed from parts of it stays, at its place
                    index.observe(key, obj)


def _new_record(key: Key, obj: Object | None) -> ObjectRecord:
    """Return the record of an object without its JSON; None: it was deleted."""
    version = obj["metadata"].get("resourceVersion") if obj is not None else None
    return ObjectRecord(key, int(version or 0), None, obj=obj)


@cache
def _known_by() -> tuple[FieldIndex, ...]:
    """Return what known objects are found by: by each of their owners. A store finds them by the
    first one, and apart from that all with more of them."""
    same = [index for index in object_indexes() if index.name in (UID, ORPHAN, NODE)]
    return FieldIndex(OWNER, _owner_uids), *same


def _owner_uids(obj: Object) -> list[str]:
    references = owner_references(obj)
    if len(references) == 1:
        return [references[0]["uid"]]
    return list({owner["uid"]: None for owner in references})


def _discard(groups: dict[Group, dict[Key, Value]], group: Group, key: Key) -> None:
    """Remove a key from its group, and the group when it is empty."""
    members = groups.get(group, {})
    members.pop(key, None)
    if not members:
        groups.pop(group, None)


class Lister(Generic[ObjectT]):
    """The observed objects of one resource, typed."""

    def __init__(self, informers: Informers, resource: TypedResource[ObjectT]) -> None:
        self._informers = informers
        self._resource = resource
        self._get: Callable[[str, str, str], Any] = informers.get
        self._list: Callable[[str, str | None], Any] = informers.list

    def get(self, namespace: str, name: str) -> ObjectT | None:
        obj: ObjectT | None = self._get(self._resource, namespace, name)
        return obj

    def list(self, namespace: str | None = None) -> list[ObjectT]:
        """Return objects in key order (namespace, name)."""
        objects: list[ObjectT] = self._list(self._resource, namespace)
        return objects

    def at(self, keys: Iterable[Key]) -> Iterable[ObjectT]:
        """Yield the objects that are there at these keys."""
        return (obj for key in keys if (obj := self.get(key.namespace, key.name)) is not None)

    def controlled_by(self, owner: AnyObject) -> Iterable[ObjectT]:
        """Yield the objects whose controller is ``owner``, in key order."""
        dependents = self._informers.dependents(uid_of(owner), self._resource)
        return (obj for obj in self.at(dependents) if is_controlled_by(obj, owner))

    def claimable_by(self, owner: AnyObject) -> Iterable[ObjectT]:
        """Yield the dependents of ``owner`` in its namespace and the orphans there, in key order
        (``FilterPodsByOwner``)."""
        namespace = namespace_of(owner)
        dependents = self._informers.dependents(uid_of(owner), self._resource)
        keys = [key for key in dependents if key.namespace == namespace]
        orphans = self._informers.orphans(self._resource, namespace)
        if orphans:
            keys = sorted({*keys, *orphans})
        return self.at(keys)


class ResourceClient(Generic[ObjectT]):
    """The Client's requests about one resource, typed. All of them raise Status."""

    def __init__(self, client: Client, resource: TypedResource[ObjectT]) -> None:
        self._client = client
        self._resource = resource

    def get(self, namespace: str, name: str) -> ObjectT:
        """Read an object as it is stored now."""
        return cast(ObjectT, self._client.get(self._resource, name, namespace=namespace))

    def list(self, namespace: str) -> list[ObjectT]:
        """Read the objects of a namespace as they are stored now."""
        return cast("list[ObjectT]", self._client.list(self._resource, namespace=namespace).items)

    def create(self, obj: ObjectT, namespace: str = "") -> ObjectT:
        return cast(
            ObjectT, self._client.create(self._resource, cast(Object, obj), namespace=namespace)
        )

    def update(self, obj: ObjectT) -> ObjectT:
        return cast(
            ObjectT,
            self._client.update(self._resource, cast(Object, obj), namespace=namespace_of(obj)),
        )

    def update_status(self, obj: ObjectT, status: AnyObject) -> ObjectT:
        """Write the object with this status; of its metadata only what ``status`` requests may
        change."""
        changed: Object = {**obj, "status": status}
        return cast(
            ObjectT,
            self._client.update(
                self._resource, changed, namespace=namespace_of(obj), subresource="status"
            ),
        )

    def delete(self, obj: ObjectT) -> None:
        self._client.delete(self._resource, obj["metadata"]["name"], namespace=namespace_of(obj))
