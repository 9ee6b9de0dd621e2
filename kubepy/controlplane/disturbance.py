"""Controllers under disturbance, as ``kubepy fuzz`` lets them run.

The oracle of the run decides which key is synced next, when a watch event reaches a controller,
which write meets a conflict, and where a controller ends. Each is a choice of which 0 disturbs
nothing (:mod:`kubepy.runtime.oracle`). What a controller knows lags as a prefix of the history of
each resource. After an end it begins anew, at once or later, perhaps with the cache of an API
server that lags behind what it has seen before.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.clock import later
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.apiserver.client import Client
from kubepy.apiserver.fault_settings import FaultSettings
from kubepy.apiserver.request import MERGE_PATCH, Patch
from kubepy.controlplane.faults import (
    WATCH,
    FaultyClient,
    FaultyReconciler,
    LateEvent,
    NewReconciler,
    version_of,
)
from kubepy.controlplane.functions import (
    ControllerFunction,
    FunctionControllers,
    FunctionReconciler,
    check_function,
)
from kubepy.controlplane.queues import Entry
from kubepy.runtime.informers import Informers, Query
from kubepy.runtime.oracle import Oracle
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Key, Reconciler, WatchEvent

ORDER, LATE, CONFLICT = "order", "late", "conflict"
CRASH, OLDER = "crash", "older"
BEGIN = "begin"  # in a queue, the name of a key that stands for the start of a controller
# seconds by which a watch event is late, by the value of the choice
DELAYS = (0.0, 0.01, 0.5, 5.0, 30.0, 120.0)
MOST_ORDERS = 6
MOST_RECENT = 256  # events that a cache may lag behind
# Somebody who writes an object before a controller does, which meets a conflict then.
SOMEBODY: Object = {"username": "somebody", "groups": ["system:authenticated"]}
TOUCHED = "kubepy.dev/touched"
# Of the seeds below, of three the first ends a controller at one point, the second lets one write
# meet a conflict, each another one, and neither disturbs anything else.
SWEEP = 192
SWEPT = (CRASH, CONFLICT)
RATES = (0.01, 0.05, 0.2, 0.5)
AFFLICTED_SHARE = 0.5  # of the real controllers, in a run that disturbs them


# Two that are one controller upstream, with one cache: pv_controller_base.go.
ONE_CONTROLLER = {"persistentvolumeclaim-binder-controller": "persistentvolume-binder-controller"}

# seconds after which a controller that has ended begins anew, by the value of the choice
DOWN_FOR = (0.0, 0.0, 15.0)
OLDER_SHARE = 0.5  # of the beginnings, after an end: those with an older cache


class Lag(NamedTuple):
    """A way in which the cache of an API server lags behind what a controller has seen before.

    :ivar resource: the number of the resource that lags, of those that concern the controller;
        None: all of them do.
    :ivar events: so many events are lacking.
    :ivar caught_up_after: seconds until they come.
    """

    resource: int | None
    events: int
    caught_up_after: float


LAGS = tuple(
    Lag(resource, events, seconds)
    for seconds in (5.0, 60.0)
    for resource in (None, 0, 1, 2, 3)
    for events in (1, 2, 3, 5, 8, 16, 32)
)
# how many values other than 0 a choice of a purpose has
ALTERNATIVES = {
    ORDER: MOST_ORDERS,
    LATE: len(DELAYS) - 1,
    CONFLICT: 1,
    CRASH: len(DOWN_FOR) - 1,
    OLDER: len(LAGS),
}


def lag_of(value: int) -> Lag:
    """Return the lag that a choice other than 0 stands for."""
    return LAGS[value - 1]


class Disturbances(NamedTuple):
    """The rates of a seed: it disturbs in some of the possible ways, and each more or less often.

    :ivar only: nothing is disturbed but at one point of this purpose, the ``point``-th from 0.
    """

    order: float = 0.0
    late: float = 0.0
    conflict: float = 0.0
    crash: float = 0.0
    only: str = ""
    point: int = 0


def disturbances_of(oracle: Oracle) -> Disturbances:
    """Return the rates of the oracle's seed."""
    seed = oracle.run.seed
    if seed == 0:
        return Disturbances()
    point, way = divmod(seed - 1, 3)
    if seed < SWEEP and way < len(SWEPT):
        return Disturbances(only=SWEPT[way], point=point)
    rates = [_rate(oracle, purpose) for purpose in (ORDER, LATE, CONFLICT, CRASH)]
    if not any(rates):
        rates[1] = RATES[2]
    order, late, conflict, crash = rates
    return Disturbances(order, late, conflict, crash / 4)


def _rate(oracle: Oracle, purpose: str) -> float:
    if oracle.fraction("is on", purpose) >= 0.6:
        return 0.0
    return RATES[int(oracle.fraction("rate", purpose) * len(RATES))]


class RunProcess:
    """A process in which controllers run: they end together, and begin together.

    :ivar members: its controllers.
    """

    def __init__(self) -> None:
        self.members: list[DisturbedReconciler] = []

    def end(self, down_for: float) -> None:
        """End the process; its controllers begin anew after so many seconds."""
        for member in self.members:
            member.go_down(down_for)


class OperatorProcess(RunProcess):
    """The process of an operator, whose memory is gone with it.

    :param start: starts the operator, which adds its controllers.
    """

    def __init__(self, start: Callable[[], object]) -> None:
        super().__init__()
        self._start = start
        self._functions: dict[str, ControllerFunction] = {}
        self._is_starting = False

    def add(self, function: ControllerFunction) -> None:
        """Take in a controller of the process that starts. Raises ValueError at another time."""
        if not self._is_starting:
            raise ValueError(
                f"controller {function.name!r}: controllers are added in operator(cluster)"
            )
        check_function(function, self._functions)
        self._functions[function.name] = function

    def function(self, name: str) -> ControllerFunction:
        """Return a function of the process that runs; where none does, it is started. Raises
        ValueError where it has no such function this time."""
        if not self._functions:
            self._is_starting = True
            try:
                self._start()
            finally:
                self._is_starting = False
        if name not in self._functions:
            raise ValueError(f"the operator added no controller {name!r} when it began anew")
        return self._functions[name]

    def end(self, down_for: float) -> None:
        self._functions = {}
        super().end(down_for)


class DisturbedControllers(FunctionControllers):
    """The controllers of one run.

    :param oracle: decides all that is left open.
    :param process: of the operator; None where there is none.
    :param disturbs_all: the real controllers are disturbed like the operator's.
    :ivar disturbs_until: the moment from which on nothing is disturbed; None: there is none.
    """

    def __init__(
        self,
        oracle: Oracle,
        names: Sequence[str],
        process: OperatorProcess | None,
        *,
        disturbs_all: bool,
    ) -> None:
        super().__init__()
        self.oracle = oracle
        self.rates = disturbances_of(oracle)
        self._names = list(names)
        self._process = process
        self._disturbs_all = disturbs_all
        self.disturbs_until: datetime | None = None
        self._points: Counter[str] = Counter()  # met so far, by purpose
        self.last_conflict: Exception | None = None  # that a choice has made
        self._disturbed: dict[str, DisturbedReconciler] = {}  # by their names
        self._delays: dict[Any, float] = {}  # of events that several hear of at the same time

    def for_fork(self) -> FunctionControllers:
        """Return the operator's controllers for a fork, on which nothing is disturbed."""
        process = self._process
        if process is None:
            return FunctionControllers()
        return FunctionControllers({name: process.function(name) for name in self._names})

    def add(self, function: ControllerFunction) -> None:
        """Take in a controller that the operator adds when it starts."""
        if self._process is None:
            raise ValueError(f"controller {function.name!r}: there is no operator(cluster)")
        self._process.add(function)

    def names(self) -> list[str]:
        return self._names

    def is_afflicted(self, name: str) -> bool:
        """Return whether a real controller is disturbed in this run."""
        if not self._disturbs_all:
            return False
        if self.rates.only:
            return True  # each write of any of them has its turn
        name = ONE_CONTROLLER.get(name, name)
        return self.oracle.fraction("afflicts", name) < AFFLICTED_SHARE

    def built_in(self, name: str, new_reconciler: NewReconciler, context: Context) -> Reconciler:
        if name == "kubelet" or not self.is_afflicted(name):
            return new_reconciler(context)
        build = PromptReconciler if self._hears_at_once() else DisturbedReconciler
        reconciler = build(name, new_reconciler, context, self, RunProcess())
        self._disturbed[name] = reconciler
        return reconciler

    def has_caused(self, conflict: Exception, name: str) -> bool:
        """Return whether a controller has met a conflict because it is disturbed: a choice has
        made it, or the controller has not heard yet of something."""
        reconciler = self._disturbed.get(name)
        is_behind = reconciler is not None and reconciler.is_behind
        return is_behind or conflict is self.last_conflict

    def _hears_at_once(self) -> bool:
        """Return whether no watch event is late in this run."""
        return self.oracle.run.choices is None and not self.rates.late

    def reconcilers(self, context: Context) -> list[Reconciler]:
        process = self._process
        if process is None:
            return []
        built: list[Reconciler] = []
        for name in self._names:

            def new(own: Context, name: str = name) -> Reconciler:
                return FunctionReconciler(process.function(name), own, logs=False)

            reconciler = DisturbedReconciler(name, new, context, self, process)
            reconciler.begin_later(0.0)
            self._disturbed[name] = reconciler
            built.append(reconciler)
        return built

    # --- choices

    def _choose(self, now: datetime, purpose: str, rate: float, *subject: str) -> int:
        if self.disturbs_until is not None and now >= self.disturbs_until:
            return 0
        return self.oracle.choose(purpose, ALTERNATIVES[purpose], rate, *subject)

    def choose_entry(
        self, now: datetime, entry: Entry, others: Callable[[], list[Entry]]
    ) -> Entry | None:
        """Choose another key in place of the one whose turn it is, or None."""
        reconciler, key = entry
        value = self._choose(now, ORDER, self.rates.order, reconciler.name, *key)
        if not value:
            return None
        ready = others()
        if not ready:
            return None
        return ready[(value - 1) % len(ready)]

    def delay(self, now: datetime, controller: str, event: WatchEvent) -> float:
        """Return by how many seconds a watch event is late."""
        name = ONE_CONTROLLER.get(controller, controller)
        if name not in ONE_CONTROLLER.values():
            return self._new_delay(now, name, event)
        place = (name, event.key, event.new is None, version_of(event))
        if place not in self._delays:
            self._delays[place] = self._new_delay(now, name, event)
        return self._delays[place]

    def _new_delay(self, now: datetime, controller: str, event: WatchEvent) -> float:
        return DELAYS[self._choose(now, LATE, self.rates.late, controller, *event.key)]

    def _rate_here(self, purpose: str, rate: float) -> float:
        """Return the rate at the next point of a purpose that a seed may be about alone."""
        point = self._points[purpose]
        self._points[purpose] += 1
        if self.rates.only:
            return float(self.rates.only == purpose and self.rates.point == point)
        return rate

    def meets_conflict(self, now: datetime, subject: Sequence[str]) -> bool:
        """Return whether a write for a version meets a conflict."""
        rate = self._rate_here(CONFLICT, self.rates.conflict)
        return bool(self._choose(now, CONFLICT, rate, *subject))

    def crash(self, now: datetime, *subject: str) -> float | None:
        """Return after how many seconds a controller begins anew that ends at this point; None
        where it does not end."""
        rate = self._rate_here(CRASH, self.rates.crash)
        value = self._choose(now, CRASH, rate, *subject)
        return DOWN_FOR[value] if value else None

    def lag(self, now: datetime, controller: str) -> Lag | None:
        """Return how the cache lags with which a controller begins anew; None: it does not."""
        value = self._choose(now, OLDER, OLDER_SHARE, controller)
        return lag_of(value) if value else None


class DisturbedClient(FaultyClient):
    """The client of a controller that the oracle disturbs."""

    def __init__(
        self,
        inner: Client,
        controller: str,
        run: DisturbedControllers,
        wrote: Callable[[Key, Object | None], None],
        ended: Callable[[float], None],
    ) -> None:
        super().__init__(inner, FaultSettings(""), controller, {}, wrote)
        self._run = run
        self._ended = ended
        self._touches = 0

    def _ends_after(self, subject: Sequence[str], name: str, before: str, after: str) -> bool:
        *words, _ = subject
        down_for = self._run.crash(self._now(), *words, name)
        if down_for is None:
            return False
        self._ended(down_for)
        return True

    def _now(self) -> datetime:
        return self.context.clock.now()

    def _meet_conflict(
        self, subject: Sequence[str], version: str, resource: str, name: str, content: Any
    ) -> None:
        """Raise Conflict if this write is to meet one. Only one that is for a version can."""
        metadata = content.get("metadata") if isinstance(content, dict) else None
        if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
            return
        if self._run.meets_conflict(self._now(), subject) and self._touch(subject):
            self._run.last_conflict = errors.conflict(resource, name, errors.MODIFIED)
            raise self._run.last_conflict

    def _touch(self, subject: Sequence[str]) -> bool:
        """Let somebody else write the object, as whoever meets a conflict was late; return whether
        that was possible."""
        _, _, resource, _, namespace, name = subject
        self._touches += 1
        others = self._inner.with_context(self._inner.context._replace(user=SOMEBODY))
        annotations = {TOUCHED: str(self._touches)}
        patch = Patch(MERGE_PATCH, {"metadata": {"annotations": annotations}})
        try:
            others.patch(resource, name, patch, namespace=namespace)
        except errors.Status:  # it is gone, or nobody may write it: there is no conflict to meet
            return False
        return True


class ReadInformers(Informers):
    """The informers of a controller: of the resources that it watches, and of others from the time
    at which it first reads one.

    :param list_objects: lists the objects of a resource.
    :param resources: names all resources.
    """

    def __init__(
        self,
        list_objects: Callable[[str], Iterable[Object]],
        resources: Callable[[], Iterable[str]],
    ) -> None:
        super().__init__()
        self._list_objects = list_objects
        self._all_resources = resources
        self._held: set[str] = set()
        self._holds_all = False

    def hold(self, resources: Collection[str]) -> None:
        """Hold what is observed of these resources from now on."""
        self._held.update(resources)
        self._holds_all |= EVERY_RESOURCE in resources

    def holds(self, resource: str) -> bool:
        """Return whether the objects of a resource are held."""
        return self._holds_all or resource in self._held

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        if not self.holds(resource):
            self._begin(resource)
        return super().get(resource, namespace, name)

    def count(self, resource: str) -> int:
        if not self.holds(resource):
            self._begin(resource)
        return super().count(resource)

    def load(self, *queries: Query) -> None:
        """List the resources that the queries are about, unless they are held."""
        for query in queries:
            if query.resource is None:
                self._begin_all()
            elif not self.holds(query.resource):
                self._begin(query.resource)

    def _begin_all(self) -> None:
        if self._holds_all:
            return
        for resource in sorted(self._all_resources()):
            if not self.holds(resource):
                self._begin(resource)
        self._holds_all = True

    def _begin(self, resource: str) -> None:
        self._held.add(resource)
        for obj in self._list_objects(resource):
            self.observe(WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj))


class DisturbedReconciler(FaultyReconciler):
    """A controller that the oracle of a run disturbs.

    :param run: the controllers of the run.
    :param process: in which it runs.
    """

    def __init__(
        self,
        name: str,
        new_reconciler: NewReconciler,
        context: Context,
        run: DisturbedControllers,
        process: RunProcess,
    ) -> None:
        self._run = run
        self._process = process
        self._down_for = 0.0
        self._has_ended = False
        self._is_down = False
        self._recent: deque[WatchEvent] = deque(maxlen=MOST_RECENT)
        super().__init__(name, new_reconciler, context, FaultSettings(""))
        process.members.append(self)

    def _new_client(self) -> FaultyClient:
        return DisturbedClient(
            self._context.client, self.name, self._run, self._note_write, self._note_end
        )

    def _note_end(self, down_for: float) -> None:
        self._down_for = down_for

    def _now(self) -> datetime:
        return self._context.clock.now()

    def begin_later(self, seconds: float) -> None:
        """Begin in so many seconds; until then nothing reaches the controller."""
        self._is_down = True
        self.queue.add_after(Key(WATCH, "", BEGIN), seconds)

    def go_down(self, down_for: float) -> None:
        """End the controller, and let it begin anew after so many seconds."""
        self._has_ended = True
        self._late.clear()
        self.queue.clear()
        self.begin_later(down_for)

    def sync(self, key: Key) -> None:
        if key.resource == WATCH and key.name == BEGIN:
            self._come_up()
            return
        if key.resource != WATCH:
            down_for = self._run.crash(self._now(), self.name, "sync", *key)
            if down_for is not None:
                self._process.end(down_for)
                return
        super().sync(key)

    def _restart(self) -> None:
        self._process.end(self._down_for)

    def _come_up(self) -> None:
        """Begin anew, with what is stored by now, or with the older cache of another API server."""
        self._is_down = False
        self._begin_anew()
        self._listings = self._context.informers.listings
        self._list(self._context.informers.list)
        lag = self._run.lag(self._now(), self.name) if self._may_lag() else None
        missing = self._missing_events(lag) if lag is not None else []
        for event in reversed(missing):
            self._informers.observe(WatchEvent(event.key, event.new, event.old))
        for resource in filter(self._is_handled, self._informers.resources()):
            for obj in self._informers.list(resource):
                self._handle(WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj))
        if lag is None:
            return
        due = later(self._now(), lag.caught_up_after)
        for event in missing:
            self._late.setdefault(event.key.resource, []).append(LateEvent(due, event))
            self._wake(event.key.resource, due)

    def _may_lag(self) -> bool:
        """Return whether the controller may begin with an older cache: after an end, unless it is a
        real one. The informers of v1.36 begin with a consistent read (``WatchListClient``)."""
        return self._has_ended and isinstance(self._inner, FunctionReconciler)

    def _missing_events(self, lag: Lag) -> list[WatchEvent]:
        """Return the events that the cache lacks, of those that concern the controller."""
        relevant = [event for event in self._recent if self._is_relevant(event.key.resource)]
        if lag.resource is not None:
            resources = sorted({event.key.resource for event in relevant})
            if not resources:
                return []
            lagging = resources[lag.resource % len(resources)]
            relevant = [event for event in relevant if event.key.resource == lagging]
        return relevant[-lag.events :]

    def _is_relevant(self, resource: str) -> bool:
        if isinstance(self._inner, FunctionReconciler):
            return self._inner.is_relevant(resource)
        return self._is_handled(resource)

    def _is_handled(self, resource: str) -> bool:
        return resource in self._handlers or EVERY_RESOURCE in self._handlers

    def _receive(self, event: WatchEvent) -> None:
        if not self._has_informer(event.key.resource):
            return
        self._recent.append(event)
        if not self._is_down:
            super()._receive(event)

    def _is_old(self, event: WatchEvent) -> bool:
        """Return False: a controller begins with what the manager's informers have, and each event
        that comes after that is news."""
        return False

    def _delay(self, event: WatchEvent) -> float:
        if not self._is_relevant(event.key.resource):
            return 0.0
        return self._run.delay(self._now(), self.name, event)

    def remember(self) -> Any:
        """Return nothing: what a controller of a run remembers is not kept beyond it."""
        return None

    def recall(self, memory: Any) -> None:
        """Take over what the controller remembered when nothing disturbed it."""
        if isinstance(memory, dict) and "late" in memory:  # it had faults
            memory = memory["controller"]
        if self._remembering is not None and memory:
            self._remembering.recall(memory)


class PromptReconciler(DisturbedReconciler):
    """A disturbed controller that hears of each change at once, and so needs no informers of its
    own: it shares those of the manager."""

    def _begin(self) -> None:
        FaultyReconciler._begin(self)

    def _new_informers(self) -> Informers:
        return self._context.informers

    def _list(self, list_objects: Callable[[str], Iterable[Object]]) -> None:
        """List nothing: what is stored is there."""

    def _follow_listing(self) -> None:
        """Follow nothing: a listing of the manager is one of these informers."""

    def _receive(self, event: WatchEvent) -> None:
        if not self._is_down:
            self._handle(event)
