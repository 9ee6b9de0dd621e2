"""Controllers under disturbance, as ``kubepy fuzz`` lets them run.

The oracle of the run decides which key is synced next, when a watch event reaches a controller,
which write meets a conflict, and where a controller ends. Each is a choice of which 0 disturbs
nothing (:mod:`kubepy.runtime.oracle`). What a controller knows lags as a prefix of the history of
each resource. After an end it begins anew, at once or later, perhaps with the cache of an API
server that lags behind what it has seen before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.clock import later
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.apiserver.client import Client
from kubepy.apiserver.fault_settings import FaultSettings
from kubepy.controlplane.faults import (
    WATCH,
    FaultyClient,
    FaultyReconciler,
    LateEvent,
    NewReconciler,
)
from kubepy.controlplane.functions import (
    ControllerFunction,
    FunctionControllers,
    FunctionReconciler,
    check_function,
)
from kubepy.controlplane.queues import Entry
from kubepy.runtime.oracle import Oracle
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Key, Reconciler, WatchEvent

ORDER, LATE, CONFLICT, CRASH = "order", "late", "conflict", "crash"
BEGIN = "begin"  # in a queue, the name of a key that stands for the start of a controller
# seconds by which a watch event is late, by the value of the choice
DELAYS = (0.0, 0.01, 0.5, 5.0, 30.0, 120.0)
MOST_ORDERS = 6
OLDER_DELAY = 5.0  # seconds after which a cache that lagged at a start has caught up
MOST_RECENT = 64  # events that a cache may lag behind
SWEEP = 128  # the odd seeds below end a controller at one write each, one after the other
RATES = (0.01, 0.05, 0.2, 0.5)
AFFLICTED_SHARE = 0.25  # of the real controllers, in a run that disturbs them


class Crash(NamedTuple):
    """A way in which a controller ends and begins anew.

    :ivar down_for: seconds until it begins.
    :ivar older_by: so many events its cache lacks then.
    """

    down_for: float
    older_by: int


# by the value of the choice
CRASHES = (
    Crash(0.0, 0),  # disturbs nothing: there is no crash
    Crash(0.0, 0),
    Crash(15.0, 0),
    Crash(0.0, 1),
    Crash(0.0, 4),
    Crash(0.0, 16),
)


# how many values other than 0 a choice of a purpose has
ALTERNATIVES = {ORDER: MOST_ORDERS, LATE: len(DELAYS) - 1, CONFLICT: 1, CRASH: len(CRASHES) - 1}


class Disturbances(NamedTuple):
    """The rates of a seed: it disturbs in some of the possible ways, and each more or less often.

    :ivar sweep: it ends one controller at this write, counted from 0, and else disturbs nothing.
    """

    order: float = 0.0
    late: float = 0.0
    conflict: float = 0.0
    crash: float = 0.0
    sweep: int | None = None


def disturbances_of(oracle: Oracle) -> Disturbances:
    """Return the rates of the oracle's seed."""
    seed = oracle.run.seed
    if seed == 0:
        return Disturbances()
    if seed < SWEEP and seed % 2:
        return Disturbances(sweep=seed // 2)
    rates = [_rate(oracle, purpose) for purpose in (ORDER, LATE, CONFLICT, CRASH)]
    if not any(rates):
        rates[1] = RATES[2]
    order, late, conflict, crash = rates
    return Disturbances(order, late, conflict / 2, crash / 4)


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

    def end(self, crash: Crash) -> None:
        """End the process; its controllers begin anew when the time has come."""
        for member in self.members:
            member.go_down(crash)


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

    def end(self, crash: Crash) -> None:
        self._functions = {}
        super().end(crash)


class DisturbedControllers(FunctionControllers):
    """The controllers of one run.

    :param oracle: decides all that is left open.
    :param process: of the operator; None where there is none.
    :param disturbs_all: the real controllers are disturbed like the operator's.
    :ivar crashes: how often a controller has ended.
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
        self._points = 0  # at which a controller could have ended, so far

    def for_fork(self) -> FunctionControllers:
        """Return the operator's controllers for a fork, on which nothing is disturbed."""
        functions = {} if self._process is None else self._process_functions(self._process)
        return FunctionControllers(functions)

    def _process_functions(self, process: OperatorProcess) -> dict[str, ControllerFunction]:
        return {name: process.function(name) for name in self._names}

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
        return self.oracle.fraction("afflicts", name) < AFFLICTED_SHARE

    def built_in(self, name: str, new_reconciler: NewReconciler, context: Context) -> Reconciler:
        if name == "kubelet" or not self.is_afflicted(name):
            return new_reconciler(context)
        return DisturbedReconciler(name, new_reconciler, context, self, RunProcess())

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
            built.append(reconciler)
        return built

    # --- choices

    def _choose(self, purpose: str, rate: float, *subject: str) -> int:
        return self.oracle.choose(purpose, ALTERNATIVES[purpose], rate, *subject)

    def choose_entry(self, entry: Entry, others: Callable[[], list[Entry]]) -> Entry | None:
        """Choose another key in place of the one whose turn it is, or None."""
        reconciler, key = entry
        value = self._choose(ORDER, self.rates.order, reconciler.name, *key)
        if not value:
            return None
        ready = others()
        if not ready:
            return None
        return ready[(value - 1) % len(ready)]

    def delay(self, controller: str, event: WatchEvent) -> float:
        """Return by how many seconds a watch event is late."""
        value = self._choose(LATE, self.rates.late, controller, *event.key)
        return DELAYS[value]

    def meets_conflict(self, subject: Sequence[str]) -> bool:
        return bool(self._choose(CONFLICT, self.rates.conflict, *subject))

    def crash(self, *subject: str) -> Crash | None:
        """Return how a controller ends at this point, None where it does not."""
        point = self._points
        self._points += 1
        rate = self.rates.crash
        if self.rates.sweep is not None:
            rate = float(point == self.rates.sweep)
        value = self._choose(CRASH, rate, *subject)
        return CRASHES[value] if value else None


class DisturbedClient(FaultyClient):
    """The client of a controller that the oracle disturbs."""

    def __init__(
        self,
        inner: Client,
        controller: str,
        run: DisturbedControllers,
        wrote: Callable[[Key, Object | None], None],
        ended: Callable[[Crash], None],
    ) -> None:
        super().__init__(inner, FaultSettings(""), controller, {}, wrote)
        self._run = run
        self._ended = ended

    def _ends_after(self, subject: Sequence[str], name: str, before: str, after: str) -> bool:
        controller, verb, resource, subresource, namespace, _ = subject
        crash = self._run.crash(controller, verb, resource, subresource, namespace, name)
        if crash is None:
            return False
        self._ended(crash)
        return True

    def _meet_conflict(
        self, subject: Sequence[str], version: str, resource: str, name: str, content: Any
    ) -> None:
        """Raise Conflict if this write is to meet one. Only one that is for a version can."""
        metadata = content.get("metadata") if isinstance(content, dict) else None
        if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
            return
        if self._run.meets_conflict(subject):
            raise errors.conflict(resource, name, errors.MODIFIED)


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
        self._crash = Crash(0.0, 0)
        self._is_down = False
        self._recent: deque[WatchEvent] = deque(maxlen=MOST_RECENT)
        super().__init__(name, new_reconciler, context, FaultSettings(""))
        process.members.append(self)

    def _new_client(self) -> FaultyClient:
        return DisturbedClient(
            self._context.client, self.name, self._run, self._note_write, self._note_end
        )

    def _note_end(self, crash: Crash) -> None:
        self._crash = crash

    def begin_later(self, seconds: float) -> None:
        """Begin in so many seconds; until then nothing reaches the controller."""
        self._is_down = True
        self.queue.add_after(Key(WATCH, "", BEGIN), seconds)

    def go_down(self, crash: Crash) -> None:
        """End the controller, and let it begin anew when the time has come."""
        self._crash = crash
        self._late.clear()
        self.queue.clear()
        self.begin_later(crash.down_for)

    def sync(self, key: Key) -> None:
        if key.resource == WATCH and key.name == BEGIN:
            self._come_up()
            return
        if key.resource != WATCH:
            crash = self._run.crash(self.name, "sync", *key)
            if crash is not None:
                self._process.end(crash)
                return
        super().sync(key)

    def _restart(self) -> None:
        self._process.end(self._crash)

    def _come_up(self) -> None:
        """Begin anew, with what is stored by now, or with the older cache of another API server."""
        self._is_down = False
        self._begin_anew()
        self._listings = self._context.informers.listings
        self._list(self._context.informers.list)
        self._listed_at = self._context.client.revision_now()
        missing = self._missing_events(self._crash.older_by)
        for event in reversed(missing):
            self._informers.observe(WatchEvent(event.key, event.new, event.old))
        for resource in self._informers.resources():
            for obj in self._informers.list(resource):
                self._handle(WatchEvent(Key(resource, namespace_of(obj), name_of(obj)), None, obj))
        due = later(self._context.clock.now(), OLDER_DELAY)
        for event in missing:
            self._late.setdefault(event.key.resource, []).append(LateEvent(due, event))
            self._wake(event.key.resource, due)
        self._crash = Crash(0.0, 0)

    def _missing_events(self, count: int) -> list[WatchEvent]:
        """Return the last events that concern the controller, of those that it is to lack."""
        relevant = [event for event in self._recent if self._is_relevant(event.key.resource)]
        return relevant[-count:] if count else []

    def _is_relevant(self, resource: str) -> bool:
        if isinstance(self._inner, FunctionReconciler):
            return self._inner.is_relevant(resource)
        return resource in self._handlers or EVERY_RESOURCE in self._handlers

    def _receive(self, event: WatchEvent) -> None:
        self._recent.append(event)
        if not self._is_down:
            super()._receive(event)

    def _delay(self, event: WatchEvent) -> float:
        if not self._is_relevant(event.key.resource):
            return 0.0
        return self._run.delay(self.name, event)

    def remember(self) -> Any:
        """Return nothing: what a controller of a run remembers is not kept beyond it."""
        return None

    def recall(self, memory: Any) -> None:
        """Take over what the controller remembered when nothing disturbed it."""
        if isinstance(memory, dict) and "late" in memory:  # it had faults
            memory = memory["controller"]
        if self._remembering is not None and memory:
            self._remembering.recall(memory)
