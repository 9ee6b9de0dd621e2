"""Faults of a cluster that its settings ask for (docs/faults.md): conflicts, restarts, late watch
events, lost nodes.

An afflicted controller is a :class:`FaultyReconciler`. It writes through a :class:`FaultyClient`,
which answers with a conflict, or ends the controller after a write. It reads from informers of its
own, so that a watch event that comes late is missing from all that the controller sees, as it would
be from the cache of a real one. The :class:`NodeFaultController` takes nodes down. Pods' bad
outcomes are the kubelet's (``kubelet.lifetimes``). Without faults nothing here is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from kubepy.api import errors
from kubepy.api.clock import format_micro_time, format_time, later, parse_time
from kubepy.api.meta import Object, annotations_of, clone, labels_of, name_of, namespace_of, uid_of
from kubepy.api.objects.nodes import DOWN_UNTIL, down_until
from kubepy.apiserver.client import Client, Objects
from kubepy.apiserver.fault_settings import FaultSettings, NodeFault
from kubepy.apiserver.request import Request, RequestContext
from kubepy.runtime.informers import NODES, Informers, ResourceClient
from kubepy.runtime.reconcile import (
    EVERY_RESOURCE,
    Context,
    Handler,
    Key,
    Reconciler,
    Remembering,
    WatchEvent,
)
from kubepy.runtime.workqueue import WorkQueue

if TYPE_CHECKING:
    from kubepy.api.typed import Node
    from kubepy.apiserver.client import ObjectList

T = TypeVar("T")
NewReconciler = Callable[[Context], Reconciler]
# Controllers that do nothing for an object before they have seen their own writes for it (v1.36:
# ``StaleControllerConsistencyDaemonSet`` and the like, ``pkg/controller/util/consistency``).
CONSISTENT = (
    "daemonset-controller",
    "job-controller",
    "replicaset-controller",
    "replication-controller",
    "statefulset-controller",
)
SCHEDULER = "default-scheduler"
# in a queue, the resource of a key that stands for late events; its name is the resource they are
# of
WATCH = "watch"
OUTAGES_AHEAD = 1000  # so many outages that a rate leaves out are looked at to find the next one


# --- writes ---------------------------------------------------------------------------------------


class Restarted(BaseException):
    """The end of a controller's process. Not an Exception: no controller is to handle it."""


class AfflictedProcess:
    """The process of a controller, as far as it is modelled: it ends once."""

    def __init__(self) -> None:
        self.is_dead = False


class FaultyClient(Client):
    """The Client of one afflicted controller; it shares all state with the Client that it stands
    for.

    After :class:`Restarted` it does nothing any more but raise it again: the process that had it is
    gone.

    :param conflicts: how many conflicts in a row a write has met, and at which version of its
        object.
    :param wrote: is called with the object's key after each write that has changed something.
    """

    def __init__(
        self,
        inner: Client,
        faults: FaultSettings,
        controller: str,
        conflicts: dict[str, tuple[str, int]],
        wrote: Callable[[Key, Object | None], None],
    ) -> None:
        self.__dict__.update(inner.__dict__)
        self._inner = inner
        self._faults = faults
        self._controller = controller
        self._conflicts = conflicts
        self._wrote = wrote
        self._process = AfflictedProcess()

    def with_context(self, context: RequestContext) -> Self:
        client = super().with_context(context)
        client._inner = self._inner.with_context(context)
        return client

    def _get(self, request: Request) -> Object:
        return self._inner._get(request)

    def _list(self, request: Request) -> ObjectList:
        return self._inner._list(request)

    def _create(self, request: Request, body: Any) -> Object:
        return self._written(
            self._of_object(request, body) if body and not request.subresource else request,
            lambda: self._inner._create(request, body),
            None,
        )

    def _update(self, request: Request, obj: Object) -> Object:
        return self._written(
            self._of_object(request, obj), lambda: self._inner._update(request, obj), obj
        )

    def _patch(self, request: Request, patch: Any) -> Object:
        return self._written(request, lambda: self._inner._patch(request, patch), patch.data)

    def _delete(self, request: Request) -> Object:
        return self._written(request, lambda: self._inner._delete(request), None)

    def _delete_collection(self, request: Request) -> Objects:
        return self._written(request, lambda: self._inner._delete_collection(request), None)

    def _written(self, request: Request, write: Callable[[], T], content: Any) -> T:
        """Carry out a write, unless it meets a conflict; after it the controller may end.

        :param content: of an update or a patch.
        """
        if self._process.is_dead:
            raise Restarted
        resource = request.resource.group_resource
        subject = (
            self._controller,
            request.verb,
            resource,
            request.subresource,
            request.namespace,
            request.name,
        )
        before = _version_text(self._stored_object(request, request.name))
        # A server meets a conflict only where the request is for a version.
        if request.verb in ("update", "patch") or getattr(
            request.options, "resource_version", None
        ):
            self._meet_conflict(subject, before, resource, request.name, content)

        result = write()
        name = request.name or (name_of(cast(Object, result)) if isinstance(result, dict) else "")
        stored = self._stored_object(request, name)
        after = _version_text(stored)
        if after != before:
            self._wrote(Key(resource, request.namespace, name), stored)
            if self._ends_after(subject, name, before, after):
                self._process.is_dead = True
                raise Restarted

        return result

    def _ends_after(self, subject: Sequence[str], name: str, before: str, after: str) -> bool:
        """Return whether the controller ends after a write from one version of an object to
        another."""
        restarts = self._faults.restarts
        if restarts is None or not restarts.concerns(self._controller, subject[2]):
            return False
        return self._faults.draw("restart", *subject, name, before, after) < restarts.rate

    def _meet_conflict(
        self, subject: Sequence[str], version: str, resource: str, name: str, content: Any
    ) -> None:
        """Raise Conflict if this write is to meet one; the next attempt draws anew."""
        conflicts = self._faults.conflicts
        if conflicts is None or not conflicts.concerns(self._controller, resource):
            return
        key = "/".join(subject)
        last, count = self._conflicts.pop(key, ("", 0))
        count = count if last == version else 0
        if self._faults.draw("conflict", *subject, version, count) < conflicts.rate:
            self._conflicts[key] = version, count + 1
            raise errors.conflict(resource, name, errors.MODIFIED)

    def _stored_object(self, request: Request, name: str) -> Object | None:
        """Return an object as it is stored now, None if there is none."""
        resource, request = self._resolve(request)
        return self._find(Key(resource.key, request.namespace, name)) if name else None


def _version_text(obj: Object | None) -> str:
    """Return the version of an object, "" if there is none."""
    if obj is None:
        return ""
    return str(obj["metadata"].get("resourceVersion", ""))


# --- controllers ----------------------------------------------------------------------------------


class LateEvent(NamedTuple):
    """A watch event that the controller has not got yet."""

    due: datetime
    event: WatchEvent


class FaultyReconciler:
    """A controller with informers of its own, which can lag behind, and that can be ended and begin
    anew.

    Events of one resource stay in their order, as in a watch: behind a late one all others of its
    resource wait. At a restart all that the controller knows is gone, its queue included; it lists
    everything, as a new process does.
    """

    def __init__(
        self, name: str, new_reconciler: NewReconciler, context: Context, faults: FaultSettings
    ) -> None:
        self.name = name
        self._new_reconciler = new_reconciler
        self._context = context
        self._faults = faults
        self._late: dict[str, list[LateEvent]] = {}  # by resource
        self._conflicts: dict[str, tuple[str, int]] = {}
        # By the key of the sync: resource → the object that was written last, which has its version
        # when it is committed; the version alone of what was recalled or is gone
        self._writes: dict[Key, dict[str, Object | int]] = {}
        self._written: set[str] = set()  # resources
        self._syncing: Key | None = None
        self._assumed: set[Key] = (
            set()
        )  # pods that the scheduler has just bound: it knows that without a watch event
        self._listings = context.informers.listings  # when this controller listed everything last
        self._recalled = (
            False  # the late events are from the process before, which had them missing
        )
        # At a restart everything was listed at this revision: older events are not news
        self._listed_at: Callable[[], int] = _never_listed
        self._begin()
        self.queue: WorkQueue[Key] = self._inner.queue

    def _begin_anew(self) -> None:
        """End the controller and start it again; whoever holds the queue has that of the new one
        then."""
        self._late.clear()
        self._begin()
        self.queue.__dict__ = self._inner.queue.__dict__

    def _begin(self) -> None:
        """Start the controller as a new process does."""
        self._informers = self._new_informers()
        self._writes.clear()
        self._assumed.clear()
        self._inner = self._new_reconciler(
            self._context._replace(client=self._new_client(), informers=self._informers)
        )
        self._remembering = self._inner if isinstance(self._inner, Remembering) else None
        self._handlers = self._inner.handlers()

    def _new_informers(self) -> Informers:
        """Return the informers of a process that begins, with nothing in them."""
        return Informers()

    def _has_informer(self, resource: str) -> bool:
        """Return whether the informers here hold the objects of a resource."""
        return True

    def _new_client(self) -> FaultyClient:
        """Return the client of a process that begins."""
        return FaultyClient(
            self._context.client, self._faults, self.name, self._conflicts, self._note_write
        )

    def _list(self, list_objects: Callable[[str], Iterable[Object]]) -> None:
        """Fill the informers anew; the manager's do not know yet of resources that this sync was
        the first to write."""
        self._informers.clear()
        watched = {resource for resource in self._handlers if resource != EVERY_RESOURCE}
        resources = {*self._context.informers.resources(), *watched, *self._written}
        for resource in sorted(filter(self._has_informer, resources)):
            for obj in list_objects(resource):
                self._informers.observe(
                    WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj)
                )

    def handlers(self) -> Mapping[str, Handler]:
        """Watch every resource: the informers here are to have all that the manager's have."""
        return {EVERY_RESOURCE: self._receive}

    def sync(self, key: Key) -> None:
        """Sync one key; where the controller ends in the midst of it, begin anew."""
        self._follow_listing()
        if key.resource == WATCH:
            self._deliver_due(key.name)
            return
        self._ensure_ready(key)
        self._syncing = key
        try:
            self._inner.sync(key)
        except Restarted:
            self._restart()
        finally:
            self._syncing = None

    def _note_write(self, key: Key, stored: Object | None) -> None:
        self._written.add(key.resource)
        if self._syncing is not None and self.name in CONSISTENT:
            writes = self._writes.setdefault(self._syncing, {})
            writes[key.resource] = self._context.client.revision() if stored is None else stored
        if self.name == SCHEDULER:
            self._assumed.add(key)

    def _ensure_ready(self, key: Key) -> None:
        """Raise Status while the controller has not seen what it has written for this key
        (``EnsureReady``)."""
        for resource, written in self._writes.get(key, {}).items():
            revision = _version_of(written)
            seen = min(
                (version_of(late.event) for late in self._late.get(resource, ())),
                default=revision + 1,
            )
            if seen <= revision:
                raise errors.Status(
                    f"read version: {seen - 1} is not as new as written version: {revision} for "
                    f"group "
                    f"resource {resource}"
                )
        self._writes.pop(key, None)

    def _restart(self) -> None:
        """Begin anew with what is stored by now, the writes of the sync that was cut short
        included."""
        self._begin_anew()
        self._list(self._context.client.list_stored)
        self._listed_at = self._context.client.revision_now()
        for resource in self._informers.resources():
            for obj in self._informers.list(resource):
                self._handle(WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj))

    # --- watch events

    @property
    def is_behind(self) -> bool:
        """Whether it has not heard yet of something that is stored."""
        return any(self._late.values())

    def _receive(self, event: WatchEvent) -> None:
        """Take an event from the manager: hand it on, or keep it until it is due."""
        self._follow_listing()
        if self._is_old(event):
            return
        if event.key in self._assumed:
            self._assumed.discard(event.key)
            self._deliver(event)
            return

        waiting = self._late.get(event.key.resource, [])
        delay = self._delay(event)
        if not waiting and not delay:
            self._deliver(event)
            return
        due = later(self._context.clock.now(), delay)
        due = max(due, waiting[-1].due) if waiting else due
        self._late.setdefault(event.key.resource, []).append(LateEvent(due, event))
        self._wake(event.key.resource, due)

    def _is_old(self, event: WatchEvent) -> bool:
        """Tell whether the controller knew of a change when it began anew."""
        listed_at = self._listed_at()
        if not listed_at:
            return False
        if event.new is not None:
            return version_of(event) <= listed_at
        known = self._informers.get(*event.key)
        if known is None:  # made and deleted by others since, or deleted before
            if event.old is None:
                return True
            return version_of(event) <= listed_at
        if event.old is None:
            return True
        return uid_of(known) != uid_of(event.old)

    def _delay(self, event: WatchEvent) -> float:
        """Draw how late an event comes, in seconds; one that the controller has no handler for is
        not late."""
        fault = self._faults.late_events
        resource = event.key.resource
        is_watched = resource in self._handlers or EVERY_RESOURCE in self._handlers
        if fault is None or not is_watched or not fault.concerns(self.name, resource):
            return 0.0
        obj = cast(Object, event.new or event.old)
        subject = (
            self.name,
            *event.key,
            obj["metadata"].get("resourceVersion", ""),
            event.new is None,
        )
        if self._faults.draw("late", *subject) >= fault.rate:
            return 0.0
        return self._faults.draw_from(fault.delay, "delay", *subject)

    def _wake(self, resource: str, due: datetime) -> None:
        self.queue.add_after(
            Key(WATCH, "", resource), (due - self._context.clock.now()).total_seconds()
        )

    def _deliver(self, event: WatchEvent) -> None:
        """Hand an event on, unless the controller knows a newer version already."""
        known = self._informers.get(*event.key)
        if (
            known
            and event.new
            and version_of(WatchEvent(event.key, None, known)) > version_of(event)
        ):
            return
        self._informers.observe(event)
        self._handle(event)

    def _handle(self, event: WatchEvent) -> None:
        for pattern in (event.key.resource, EVERY_RESOURCE):
            handler = self._handlers.get(pattern)
            if handler is not None:
                handler(event)

    def _deliver_due(self, resource: str) -> None:
        waiting = self._late.pop(resource, [])
        now = self._context.clock.now()
        for number, late in enumerate(waiting):
            if late.due > now:
                self._late[resource] = waiting[number:]
                self._wake(resource, late.due)
                return
            self._deliver(late.event)

    def _follow_listing(self) -> None:
        """Take over the manager's objects if it has listed everything anew; it hands over all of
        them afterwards.

        After the first time the controller begins anew as well: a batch has failed, perhaps, and
        the writes of that batch whose events are late will never be seen.
        """
        listings = self._context.informers.listings
        if self._listings == listings:
            return
        if self._listings:
            self._begin_anew()
        self._listings = listings
        self._listed_at = _never_listed
        self._list(self._context.informers.list)
        if self._recalled:
            for resource in sorted(self._late):
                for late in reversed(self._late[resource]):
                    self._informers.observe(
                        WatchEvent(late.event.key, late.event.new, late.event.old)
                    )

        self._recalled = False

    # --- memory

    def remember(self) -> Any:
        """Return the controller's memory, the late events and the conflicts, as JSON."""
        late = [
            [
                format_micro_time(late.due),
                [*late.event.key],
                late.event.old,
                late.event.new,
                late.event.is_update,
            ]
            for resource in sorted(self._late)
            for late in self._late[resource]
        ]
        memory = {
            "controller": self._remembering.remember() if self._remembering else None,
            "late": late,
            "conflicts": dict(sorted(self._conflicts.items())),
            "writes": self._remembered_writes() if late else [],
        }
        if any(memory.values()):
            return memory
        return None

    def _remembered_writes(self) -> list[Any]:
        return [
            [[*key], {resource: _version_of(written) for resource, written in writes.items()}]
            for key, writes in sorted(self._writes.items())
        ]

    def recall(self, memory: Any) -> None:
        """Take over the JSON of :meth:`remember`."""
        if self._remembering and memory["controller"]:
            self._remembering.recall(memory["controller"])
        self._conflicts.update(
            (key, (version, count)) for key, (version, count) in memory["conflicts"].items()
        )
        if self._context.informers.listings:
            return  # this process has these events, too
        self._recalled = True
        self._writes.update((Key(*key), writes) for key, writes in memory["writes"])
        for due, key, old, new, is_update in memory["late"]:
            event = WatchEvent(Key(*key), old, new, is_update)
            self._late.setdefault(event.key.resource, []).append(LateEvent(parse_time(due), event))


def _never_listed() -> int:
    return 0


def _version_of(written: Object | int) -> int:
    """Return the version of an object that was written, or one that is known as such."""
    if isinstance(written, int):
        return written
    return int(written["metadata"]["resourceVersion"])


def version_of(event: WatchEvent) -> int:
    """Return the version that an event leads to; of a deletion the last one."""
    return known_version(cast(Object, event.new or event.old))


def known_version(obj: Object) -> int:
    """Return the version of an object, 0 where it has none."""
    return int(obj["metadata"].get("resourceVersion") or 0)


# --- nodes ----------------------------------------------------------------------------------------


class Outage(NamedTuple):
    """A time from which to which a node is down."""

    begin: datetime
    end: datetime


class NodeFaultController:
    """Takes nodes down: at the beginning of an outage it annotates the node with the end, and its
    kubelet is silent."""

    name = "node-faults"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._nodes = context.informers.lister(NODES)
        self._node_client = ResourceClient(context.client, NODES)
        self._clock = context.clock
        self._faults = context.client.settings.faults or FaultSettings("")
        self._since: dict[
            str, datetime
        ] = {}  # uid → when the node was first seen with these faults

    def remember(self) -> Any:
        """Return when each node was first seen, as JSON."""
        return {uid: format_micro_time(since) for uid, since in sorted(self._since.items())}

    def recall(self, memory: Any) -> None:
        """Take over the JSON of :meth:`remember`."""
        self._since.update((uid, parse_time(since)) for uid, since in memory.items())

    def handlers(self) -> Mapping[str, Handler]:
        return {NODES: self._node_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self._since.pop(uid_of(event.old) if event.old is not None else "", None)
            self.queue.cancel(event.key)
        elif event.old is None or labels_of(event.old) != labels_of(event.new):
            self._since.setdefault(uid_of(event.new), self._clock.now())
            self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        """Take the node down if an outage of it has begun, and come again when the next one
        begins."""
        node = self._nodes.get("", key.name)
        now = self._clock.now()
        if node is None:
            return
        since = self._since.setdefault(uid_of(node), now)
        for index, fault in enumerate(self._faults.nodes):
            if (fault.names and key.name not in fault.names) or not fault.selector.matches(
                labels_of(node)
            ):
                continue
            for outage in self._outages(index, fault, key.name, since, now):
                if outage.begin <= now:
                    node = self._take_down(node, outage.end)
                else:
                    self.queue.add_after(
                        key, (outage.begin - now).total_seconds(), repeating=fault.every is not None
                    )

    def _outages(
        self, index: int, fault: NodeFault, name: str, since: datetime, now: datetime
    ) -> list[Outage]:
        """Return the outages that a node is in, and the next one."""
        found: list[Outage] = []
        passed = (now - since).total_seconds() - fault.after.high - fault.down_for.high
        first = max(int(passed // fault.every), 0) if fault.every else 0
        for number in range(first, first + (OUTAGES_AHEAD if fault.every else 1)):
            subject = "node", index, name, number
            begin = later(
                since,
                self._faults.draw_from(fault.after, *subject, "after")
                + number * (fault.every or 0),
            )
            outage = Outage(
                begin, later(begin, self._faults.draw_from(fault.down_for, *subject, "downFor"))
            )
            if outage.end > now and self._faults.draw(*subject, "rate") < fault.rate:
                found.append(outage)
                if begin > now:
                    break

        return found

    def _take_down(self, node: Node, end: datetime) -> Node:
        """Annotate a node with the end of its outage, unless it is down for longer already."""
        present = down_until(node)
        if present is not None and present >= end.replace(microsecond=0):
            return node
        changed = clone(node)
        changed["metadata"]["annotations"] = {**annotations_of(node), DOWN_UNTIL: format_time(end)}
        return self._node_client.update(changed)
