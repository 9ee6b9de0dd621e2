"""Harm: what a change does to objects that were well, or less bad, before it.

Three sources tell of it. The timeline of a prediction has the pods of each workload after each step
(``of_course``). :class:`Writes` notes when the prediction has written objects, and keeps those that
lead to endpoints, so that the ready endpoints of Services and Ingresses can be counted at each
moment (:class:`Reachability`). All else is judged by the objects before and after.

docs/plan.md defines the kinds. What a command deletes is not hurt by that; what it deletes with an
object (what the object owns, or has in it) is deleted by the command, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kubepy.api.clock import format_exact_time
from kubepy.api.meta import (
    Object,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    owner_references,
    status_of,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_ready, phase_of
from kubepy.api.selectors import from_label_selector
from kubepy.api.values.goformat import format_duration
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import OnWrite
from kubepy.apiserver.views import BUDGETS
from kubepy.insight import Course, Timeline
from kubepy.insight.availability import JOBS, Availability, judge
from kubepy.insight.bounds import DAEMON_SETS
from kubepy.insight.prediction import CRON_JOBS, Prediction, pending
from kubepy.insight.steps import (
    AVAILABLE,
    DELETED,
    NOT_READY,
    READY,
    TERMINATING,
    UNAVAILABLE,
)
from kubepy.insight.why.goals import (
    GOALS,
    SERVICE_NAME,
    backends_of,
    is_done,
    port_of_backend,
    ready_endpoints,
)
from kubepy.insight.why.scene import Scene
from kubepy.runtime.checkpoint import Pending
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.storage.store import Store

NEVER_FINISHES = "never-finishes"
BELOW_BOUND = "below-bound"
WORSE = "worse"
OUTAGE = "outage"
UNREACHABLE = "unreachable"
BLOCKED = "blocked"
DATA = "data"
STUCK = "stuck"
# In the order in which the harm to one object is told.
KINDS = (NEVER_FINISHES, OUTAGE, WORSE, BELOW_BOUND, UNREACHABLE, BLOCKED, DATA, STUCK)

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
NODES = "nodes"
PODS = "pods"
SERVICES = "services"
INGRESSES = "ingresses.networking.k8s.io"
SLICES = "endpointslices.discovery.k8s.io"
AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
NAMESPACES = "namespaces"
# Their objects are kept as each write has left them.
LOGGED = frozenset((SLICES, SERVICES, INGRESSES, CLAIMS, VOLUMES, BUDGETS))
# Kinds whose objects are pods, or are judged by their pods. What no other one controls counts as a
# workload.
WORKLOADS = (
    CRON_JOBS,
    "daemonsets.apps",
    "deployments.apps",
    "jobs.batch",
    PODS,
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)
# Kinds that may be stuck because of another object, without a write of their own.
DEPENDENT = (NODES, INGRESSES, AUTOSCALERS, BUDGETS)
# What is written all the time and never stuck.
NEVER_STUCK = frozenset(
    (SLICES, "endpoints", "events", "events.events.k8s.io", "leases.coordination.k8s.io")
)
UP = (READY, AVAILABLE)
DOWN = (NOT_READY, UNAVAILABLE, TERMINATING, "failed", DELETED)


class Harm(NamedTuple):
    """A harm that one object comes to.

    :ivar key: the object.
    :ivar before: the numbers or the state that count for the kind, at the beginning.
    :ivar after: the same at the moment of the harm.
    :ivar at: when it begins.
    :ivar seconds: how long it lasts; None: it is so in the end.
    """

    kind: str
    key: Key
    before: Object
    after: Object
    at: datetime
    seconds: float | None = None


def harm_document(harm: Harm) -> Object:
    """Return a harm as JSON data."""
    return {
        "kind": harm.kind,
        "object": harm.key._asdict(),
        "before": harm.before,
        "after": harm.after,
        "at": format_exact_time(harm.at),
        "for": None if harm.seconds is None else format_duration(harm.seconds),
    }


# --- what a prediction writes ---------------------------------------------------------------------


class LoggedWrite(NamedTuple):
    """The object of a write, as it was after it; of a deletion, as it was last."""

    at: datetime
    key: Key
    obj: Object | None


class Writes:
    """What the forks of a prediction have written: the time of the last write of each object, and
    the objects of some kinds (``LOGGED``)."""

    def __init__(self) -> None:
        self._parts: list[tuple[Store, dict[Key, datetime], list[LoggedWrite]]] = []

    def observe(self, cluster: LocalCluster) -> OnWrite:
        """Return a function that notes the writes in a fork."""
        times: dict[Key, datetime] = {}
        log: list[LoggedWrite] = []
        clock = cluster.clock
        self._parts.append((cluster.store, times, log))

        def note(key: Key, obj: Object | None, user: Object) -> None:
            if not key.name and obj is not None:
                key = key._replace(name=name_of(obj))
            times[key] = now = clock.now()
            if key.resource in LOGGED:
                log.append(LoggedWrite(now, key, obj))

        return note

    def of(self, prediction: Prediction) -> tuple[dict[Key, datetime], list[LoggedWrite]]:
        """Return the times of the last writes and the log of a prediction, without those of a try
        that came to nothing."""
        stores = (prediction.origin.store, prediction.cluster.store)
        times: dict[Key, datetime] = {}
        log: list[LoggedWrite] = []
        for store, times_of_part, log_of_part in self._parts:
            if store in stores:
                times.update(times_of_part)
                log += log_of_part
        return times, log


# --- all of it ------------------------------------------------------------------------------------


class HarmSearch:
    """Finds harm: compares the objects of a cluster before a change with those after it.

    :param touched: what the command itself has written.
    """

    def __init__(
        self,
        before: Scene,
        after: Scene,
        prediction: Prediction,
        writes: Writes,
        touched: Collection[Key],
    ) -> None:
        self._before = before
        self._after = after
        self._prediction = prediction
        self._timeline = prediction.timeline
        self._touched = touched
        self._times, self._log = writes.of(prediction)
        self._deletions: dict[Key, bool] = {}

    def harms(self) -> list[Harm]:
        """Return all harm but that of workloads that do not finish, by object."""
        found = [
            *self._of_workloads(),
            *self._of_single_pods(),
            *self._of_endpoints(),
            *self._of_budgets(),
            *self._of_data(),
        ]
        hurt = {harm.key for harm in found}
        return [*found, *(harm for harm in self._of_stuck_objects() if harm.key not in hurt)]

    # --- pods

    def _of_workloads(self) -> Iterator[Harm]:
        for course in self._timeline.courses:
            before = self._before.get(*course.key)
            after = self._after.get(*course.key)
            if after is None:
                continue
            is_anew = before is not None and uid_of(before) != uid_of(after)
            for harm in of_course(course, self._timeline):
                if harm.kind != BELOW_BOUND or not is_anew:  # nothing is required until it is up
                    yield harm

    def _of_single_pods(self) -> Iterator[Harm]:
        """Yield the harm to pods that nothing controls: nobody makes them again."""
        lonely = {
            step.key
            for step in self._timeline.present
            if step.key.resource == PODS and not step.owner and step.action in UP
        }
        leaving = set[Key]()  # their containers may well end with success
        stretches: dict[Key, list[tuple[datetime, bool]]] = {}
        for step in self._timeline.steps:
            if step.key not in lonely:
                continue
            if step.action == TERMINATING:
                leaving.add(step.key)
            if step.action == "succeeded" and step.key not in leaving:
                lonely.discard(step.key)
                stretches.pop(step.key, None)
            elif step.action in (*UP, *DOWN):
                states = stretches.setdefault(step.key, [(self._timeline.since, True)])
                states.append((step.at, step.action in UP))

        for key, states in stretches.items():
            if not self.is_deleted_by_command(key):
                yield from self._of_single_pod(key, states)

    def _of_single_pod(self, key: Key, states: Sequence[tuple[datetime, bool]]) -> Iterator[Harm]:
        away = stretches_of(states, lambda is_up: not is_up)
        if not away:
            return
        longest = longest_of(away)
        before, after = {"desired": 1, "available": 1}, {"desired": 1, "available": 0}
        yield Harm(OUTAGE, key, before, after, longest.begin, longest.seconds)
        if away[-1].end is None:
            yield Harm(WORSE, key, before, after, away[-1].begin)

    # --- endpoints

    def _of_endpoints(self) -> Iterator[Harm]:
        if not any(write.key.resource in (SLICES, SERVICES, INGRESSES) for write in self._log):
            return
        for key, ports in Reachability(self._before, self._after, self._log).states():
            if self._after.get(*key) is None:
                continue
            unreachable = unreachable_of(ports)
            if unreachable is not None:
                before, stretch = unreachable
                yield Harm(
                    UNREACHABLE,
                    key,
                    {"endpoints": before},
                    {"endpoints": 0},
                    stretch.begin,
                    stretch.seconds,
                )

    # --- budgets

    def _of_budgets(self) -> Iterator[Harm]:
        for key in self._written(BUDGETS):
            before = self._before.get(*key)
            after = self._after.get(*key)
            if after is None or is_being_deleted(after) or not blocks(after):
                continue
            if self._prediction.is_at_limit and self._is_under_way(after):
                continue
            if before is None:  # nothing forbade these evictions
                allowed = None
            elif (allowed := allowed_of(before)) == 0:
                continue
            yield Harm(
                BLOCKED,
                key,
                {"disruptionsAllowed": allowed},
                {"disruptionsAllowed": 0},
                self._since(key, blocks),
            )

    def _is_under_way(self, budget: Object) -> bool:
        """Return whether something is still due for a pod of a budget that is not ready."""
        namespace = namespace_of(budget)
        selector = from_label_selector(budget["spec"].get("selector"))
        return any(
            Key(PODS, namespace, name_of(pod)) in self._due_pods
            and selector.matches(labels_of(pod))
            and not is_pod_ready(pod)
            for pod in self._after.list(PODS, namespace)
        )

    @cached_property
    def _due_pods(self) -> set[Key]:
        """The pods for which something is still due."""
        return {entry.key for entry in pending(self._prediction.cluster) if is_pod_due(entry)}

    # --- data

    def _of_data(self) -> Iterator[Harm]:
        for resource in (CLAIMS, VOLUMES):
            for key in self._written(resource):
                before = self._before.get(*key)
                if before is None or phase_of(before) != "Bound" or is_being_deleted(before):
                    continue
                after = self._after.get(*key)
                is_gone = after is None or uid_of(after) != uid_of(before)
                is_leaving = after is not None and is_being_deleted(after)
                if not (is_gone or is_leaving) or self._is_ephemeral(before):
                    continue
                yield Harm(
                    DATA,
                    key,
                    {"phase": "Bound"},
                    {"phase": "" if is_gone else "Terminating"},
                    self._deleted_at(key, uid_of(before)),
                )

    def _is_ephemeral(self, obj: Object) -> bool:
        """Return whether a claim, or the claim of a volume, is a pod's own, which goes with it."""
        if obj["kind"] == "PersistentVolume":
            reference = nested_map(obj["spec"], "claimRef")
            claim = self._before.get(
                CLAIMS, reference.get("namespace", ""), reference.get("name", "")
            )
            return claim is not None and self._is_ephemeral(claim)
        return any(owner["kind"] == "Pod" for owner in owner_references(obj))

    def _deleted_at(self, key: Key, uid: str) -> datetime:
        """Return when an object was deleted: when it was first seen being deleted, or last at
        all."""
        own = [write for write in self._log if write.key == key]
        of_object = [write for write in own if write.obj is None or uid_of(write.obj) == uid]
        for write in of_object:
            if write.obj is not None and is_being_deleted(write.obj):
                return write.at
        return of_object[-1].at if of_object else self._times[key]

    # --- all others

    def _of_stuck_objects(self) -> Iterator[Harm]:
        for key in self._may_be_stuck():
            after = self._after.get(*key)
            before = self._before.get(*key)
            if (
                after is None
                or before is None
                or uid_of(after) != uid_of(before)
                or is_done(self._after, after, before)
                or not is_done(self._before, before, before)
                or self.is_deleted_by_command(key)
                or (key in self._touched and is_suspended(key, after))
            ):
                continue
            finding = self._after.diagnose(after)
            yield Harm(
                STUCK,
                key,
                {"state": "done"},
                {"state": "stuck", "cause": finding.cause if finding is not None else ""},
                self._times.get(key, self._last_step()),
            )

    def _last_step(self) -> datetime:
        steps = self._timeline.steps
        return steps[-1].at if steps else self._timeline.since

    def _may_be_stuck(self) -> list[Key]:
        """Return the objects that are no workloads and may have become stuck."""
        if not self._times:
            return []
        written = [
            key
            for key in self._times
            if key.resource not in WORKLOADS and key.resource not in NEVER_STUCK
        ]
        behind = [service for write in self._log if (service := service_of(write.key, write.obj))]
        dependent = [
            self._after.key(obj) for resource in DEPENDENT for obj in self._after.list(resource)
        ]
        keys = dict.fromkeys([*written, *behind, *dependent])
        return [key for key in keys if key.resource in GOALS or self._has_conditions(key)]

    def _has_conditions(self, key: Key) -> bool:
        """Return whether an object of another kind says itself whether it is well."""
        obj = self._after.get(*key)
        return obj is not None and bool(status_of(obj))

    # --- helpers

    def _written(self, resource: str) -> list[Key]:
        return [key for key in self._times if key.resource == resource]

    def _since(self, key: Key, holds: Callable[[Object], bool]) -> datetime:
        """Return since when something holds for an object, by its writes."""
        since = self._times[key]
        for write in reversed([write for write in self._log if write.key == key]):
            if write.obj is None or not holds(write.obj):
                break
            since = write.at
        return since

    def is_deleted_by_command(self, key: Key) -> bool:
        """Return whether the command has deleted an object, its namespace, or one of its owners."""
        if key not in self._deletions:
            self._deletions[key] = False  # for a circle of owners
            self._deletions[key] = self._is_deleted_by_command(key)
        return self._deletions[key]

    def _is_deleted_by_command(self, key: Key) -> bool:
        before = self._before.get(*key)
        after = self._after.get(*key)
        if before is None:
            return False
        if after is not None and uid_of(after) == uid_of(before) and not is_being_deleted(after):
            return False
        if after is not None and uid_of(after) != uid_of(before) and controller_of(after) is None:
            return False  # it was made anew
        if key in self._touched:
            return True
        if key.namespace and self.is_deleted_by_command(Key(NAMESPACES, "", key.namespace)):
            return True
        return any(
            self.is_deleted_by_command(owner) for owner in self._owners(before, key.namespace)
        )

    def _owners(self, obj: Object, namespace: str) -> Iterator[Key]:
        for reference in owner_references(obj):
            resource = self._before.cluster.scheme.for_kind(
                reference["apiVersion"], reference["kind"]
            )
            if resource is not None:
                yield Key(resource.key, namespace if resource.namespaced else "", reference["name"])


def is_suspended(key: Key, obj: Object) -> bool:
    """Return whether an object is a CronJob or Job that is suspended, and not being deleted."""
    return key.resource in JOBS and bool(obj["spec"].get("suspend")) and not is_being_deleted(obj)


def is_pod_due(entry: Pending) -> bool:
    """Return whether something is due for a pod, and not again and again."""
    return entry.key.resource == PODS and not entry.repeating


def allowed_of(budget: Object) -> int:
    """Return how many evictions a budget allows."""
    return int(status_of(budget).get("disruptionsAllowed") or 0)


def blocks(budget: Object) -> bool:
    """Return whether a budget has pods and allows no eviction of them."""
    return bool(status_of(budget).get("expectedPods")) and allowed_of(budget) == 0


# --- pods of workloads ----------------------------------------------------------------------------

State = TypeVar("State")


class HarmTime(NamedTuple):
    """A time, without its end; None: until the end of all."""

    begin: datetime
    end: datetime | None

    @property
    def seconds(self) -> float | None:
        if self.end is None:
            return None
        return (self.end - self.begin).total_seconds()


def longest_of(stretches: Iterable[HarmTime]) -> HarmTime:
    """Return the longest of some stretches, the first of several."""
    return max(stretches, key=length_of)


def length_of(stretch: HarmTime) -> float:
    """Return the seconds of a stretch; one that does not end is infinite."""
    return float("inf") if stretch.seconds is None else stretch.seconds


def stretches_of(
    states: Sequence[tuple[datetime, State]], holds: Callable[[State], bool]
) -> list[HarmTime]:
    """Return the times in which something holds.

    :param states: each with the moment from which on it lasts.
    """
    stretches: list[HarmTime] = []
    begin: datetime | None = None
    for at, state in states:
        if holds(state):
            begin = begin or at
        elif begin is not None:
            stretches.append(HarmTime(begin, at))
            begin = None
    if begin is not None:
        stretches.append(HarmTime(begin, None))
    return stretches


class WorkloadMoment(NamedTuple):
    """How a workload stands from a moment on.

    :ivar was_up: it had available pods before, since it last asked for none.
    """

    state: Availability
    was_up: bool


def of_course(course: Course, timeline: Timeline) -> Iterator[Harm]:
    """Yield the harm to a workload that is there in the end."""
    judged = judge(course)
    if course.key.resource == DAEMON_SETS:
        judged = list(as_controller_counts(judged, timeline))
    first = judged[0]
    if judged[-1].bounds.is_leaving:
        return
    moments = [(time_of(moment.state, timeline), moment) for moment in moments_of(judged)]
    if is_driven_out(course.key, judged):
        out = stretches_of(moments, has_none)[-1]
        yield Harm(OUTAGE, course.key, numbers_of(first), numbers_of(judged[-1]), out.begin)
    elif course.key.resource not in JOBS:
        yield from _worst(OUTAGE, course.key, moments, is_out)
    if course.key.resource not in JOBS:
        yield from _worst(
            BELOW_BOUND, course.key, moments, lambda moment: moment.state.lacking > first.lacking
        )
    share = share_of(first)
    last_share = share_of(judged[-1])
    if course.key.resource == "cronjobs.batch" or share is None or last_share is None:
        return
    if last_share < share:
        falling = stretches_of(moments, lambda moment: (share_of(moment.state) or 0.0) < share)
        yield Harm(WORSE, course.key, numbers_of(first), numbers_of(judged[-1]), falling[-1].begin)


def _worst(
    kind: str,
    key: Key,
    moments: Sequence[tuple[datetime, WorkloadMoment]],
    holds: Callable[[WorkloadMoment], bool],
) -> Iterator[Harm]:
    """Yield the harm of the longest stretch of a workload in which something holds."""
    stretches = stretches_of(moments, holds)
    if not stretches:
        return
    longest = longest_of(stretches)
    states = [
        moment.state
        for at, moment in moments
        if holds(moment) and at >= longest.begin and (longest.end is None or at <= longest.end)
    ]
    lowest = max(states, key=lambda state: (state.lacking, -state.numbers.available))
    after = numbers_of(lowest)
    if kind == BELOW_BOUND:
        after["required"] = lowest.required
        if lowest.bounds.budget:
            after["budget"] = lowest.bounds.budget
    yield Harm(kind, key, numbers_of(moments[0][1].state), after, longest.begin, longest.seconds)


def moments_of(judged: Iterable[Availability]) -> Iterator[WorkloadMoment]:
    """Yield the moments of a workload with whether it was up before each.

    A workload that asks for no pods begins anew; one that is deleted and made again does not.
    """
    was_up = False
    is_between = False  # it has been deleted, and asks for nothing yet
    for state in judged:
        is_asking = state.numbers.desired > 0
        if state.bounds.is_leaving:
            is_between = True
        elif is_asking:
            is_between = False
        elif not is_between:
            was_up = False
        yield WorkloadMoment(state, was_up)
        was_up |= is_asking and state.numbers.available > 0


def is_out(moment: WorkloadMoment) -> bool:
    """Return whether a workload has lost all of the pods that it should have."""
    state = moment.state
    if state.bounds.is_leaving or not moment.was_up:
        return False
    return state.numbers.desired > 0 and state.numbers.available == 0


def has_none(moment: WorkloadMoment) -> bool:
    """Return whether no pod of a workload is available."""
    return moment.state.numbers.available == 0


def is_driven_out(key: Key, judged: Sequence[Availability]) -> bool:
    """Return whether a DaemonSet had available pods, and no node fits it in the end. It has no
    size that a command could set to 0, so that is an outage though it asks for no pods."""
    last = judged[-1].numbers
    is_left = last.desired == 0 and last.available == 0
    return key.resource == DAEMON_SETS and judged[0].numbers.available > 0 and is_left


def as_controller_counts(
    judged: Sequence[Availability], timeline: Timeline
) -> Iterator[Availability]:
    """Yield the moments of a DaemonSet, which asks for no pod on a node from the moment on at which
    its controller finds that the node does not fit. Its status says so a few writes later."""
    last = {time_of(state, timeline): state for state in judged}
    for state in judged:
        end = last[time_of(state, timeline)]
        if state.numbers.desired > end.numbers.desired and state.step:
            numbers = state.numbers._replace(desired=end.numbers.desired)
            required = min(state.required or 0, end.required or 0)
            yield state._replace(numbers=numbers, required=required)
        else:
            yield state


def share_of(state: Availability) -> float | None:
    """Return which share of the pods that a workload asks for is available, at most 1; None where
    it asks for none."""
    if state.bounds.is_leaving or state.numbers.desired <= 0:
        return None
    return min(state.numbers.available / state.numbers.desired, 1.0)


def numbers_of(state: Availability) -> Object:
    """Return the numbers of a moment as JSON data."""
    return {"desired": state.numbers.desired, "available": state.numbers.available}


def time_of(state: Availability, timeline: Timeline) -> datetime:
    """Return from when on a workload stands like this."""
    return timeline.steps[state.step - 1].at if state.step else timeline.since


# --- endpoints ------------------------------------------------------------------------------------


def service_of(key: Key, endpoint_slice: Object | None) -> Key | None:
    """Return the Service of an EndpointSlice; None for other kinds, and for one that names none."""
    if key.resource != SLICES or endpoint_slice is None:
        return None
    name = labels_of(endpoint_slice).get(SERVICE_NAME)
    return Key(SERVICES, key.namespace, name) if name else None


def port_names(obj: Object) -> tuple[str, ...]:
    """Return the names of the ports of an EndpointSlice or of a Service's spec; "" is the name of
    a single one."""
    return tuple(port.get("name") or "" for port in nested_list(obj, "ports"))


class SliceCount(NamedTuple):
    """What counts of an EndpointSlice: its family of addresses, how many endpoints are ready, and
    the names of the ports at which they are. A slice of pods without a Service's targetPort has
    none of that name."""

    family: str
    ready: int
    ports: tuple[str, ...]


NO_PORT = None  # of an Ingress, and of a headless Service without ports
States = list[tuple[datetime, int | None]]


class Reachability:
    """The number of ready endpoints of Services, for each of their ports, and of Ingresses, after
    each write; None for one that is not there or leads elsewhere by itself.

    :param log: the writes of the prediction, in order.
    """

    def __init__(self, before: Scene, after: Scene, log: Sequence[LoggedWrite]) -> None:
        self._before = before
        self._log = [write for write in log if write.key.resource in (SLICES, SERVICES, INGRESSES)]
        self._last = last_writes(self._log, after)
        self._objects: dict[Key, Object] = {}  # the Services and Ingresses of the moment
        self._counts: dict[Key, dict[Key, SliceCount]] = {}  # by Service, then by slice
        self._services: dict[Key, Key] = {}  # of slices
        self._ingresses: dict[Key, set[Key]] = {}  # by Service: the Ingresses that lead to it
        self._states: dict[Key, dict[str | None, States]] = {}  # then by port

    def states(self) -> Iterator[tuple[Key, list[States]]]:
        """Yield the Services and Ingresses whose endpoints change, with their numbers from each
        moment on, for each port."""
        self._begin()
        for number, write in enumerate(self._log):
            is_gone = number in self._last
            changed = self._take(write, is_gone=is_gone)
            for key in changed:
                self._note(key, write.at)

        for key, by_port in self._states.items():
            yield key, list(by_port.values())

    def _note(self, key: Key, at: datetime) -> None:
        """Note the numbers of a Service or an Ingress from a moment on."""
        counts = self._numbers(key)
        by_port = self._states.setdefault(key, {})
        for port in dict.fromkeys([*by_port, *counts]):
            states = by_port.setdefault(port, [(at, None)])
            states.append((at, counts.get(port)))

    def _begin(self) -> None:
        """Take in the objects that are concerned, as they were before."""
        concerned = {write.key for write in self._log}
        slices = self._before.list(SLICES)
        for endpoint_slice in slices:
            key = Key(SLICES, namespace_of(endpoint_slice), name_of(endpoint_slice))
            self._put_slice(key, endpoint_slice)
        for ingress in self._before.list(INGRESSES):
            self._put(Key(INGRESSES, namespace_of(ingress), name_of(ingress)), ingress)
        services = {
            *self._counts,
            *self._ingresses,
            *(key for key in concerned if key.resource == SERVICES),
        }
        for key in services:
            if (service := self._before.get(*key)) is not None:
                self._put(key, service)
        for key in self._objects:
            counts = self._numbers(key)
            self._states[key] = {
                port: [(self._before.now, count)] for port, count in counts.items()
            }

    def _take(self, write: LoggedWrite, *, is_gone: bool) -> Iterable[Key]:
        """Do a write; returns the Services and Ingresses whose number it may change."""
        obj = None if is_gone else write.obj
        if write.key.resource == SLICES:
            service = self._services.get(write.key)
            self._put_slice(write.key, obj)
            service = self._services.get(write.key, service)
        else:
            self._put(write.key, obj)
            service = write.key if write.key.resource == SERVICES else None
        if service is None:
            return [write.key] if write.key.resource == INGRESSES else []
        return [service, *sorted(self._ingresses.get(service, ()))]

    def _put_slice(self, key: Key, endpoint_slice: Object | None) -> None:
        if (old := self._services.pop(key, None)) is not None:
            self._counts[old].pop(key, None)
        service = service_of(key, endpoint_slice)
        if service is not None and endpoint_slice is not None:
            self._services[key] = service
            counts = self._counts.setdefault(service, {})
            family = endpoint_slice.get("addressType", "")
            ready = ready_endpoints(endpoint_slice)
            counts[key] = SliceCount(family, ready, port_names(endpoint_slice))

    def _put(self, key: Key, obj: Object | None) -> None:
        if obj is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = obj
        if key.resource == INGRESSES:
            for ingresses in self._ingresses.values():
                ingresses.discard(key)
            for service, _ in self._backends(key):
                self._ingresses.setdefault(service, set()).add(key)

    def _backends(self, ingress: Key) -> list[tuple[Key, Object]]:
        """Return the backends of an Ingress, each with its Service."""
        obj = self._objects.get(ingress)
        if obj is None:
            return []
        return [
            (Key(SERVICES, ingress.namespace, backend["name"]), backend)
            for _, backend in backends_of(obj)
        ]

    def _numbers(self, key: Key) -> dict[str | None, int]:
        """Return how many endpoints are ready now, by the name of a Service's port."""
        obj = self._objects.get(key)
        if obj is None:
            return {}
        if key.resource == INGRESSES:
            backends = self._backends(key)
            if not backends:
                return {}
            reached: dict[Key, int] = {}  # an endpoint with two of the ports counts once
            for service, backend in backends:
                count = self._count_behind(service, backend)
                reached[service] = max(reached.get(service, 0), count)
            return {NO_PORT: sum(reached.values())}
        if obj["spec"].get("type") == "ExternalName":
            return {}
        ports = port_names(obj["spec"]) or (NO_PORT,)
        return {port: self._ready(key, port) for port in ports}

    def _count_behind(self, service: Key, backend: Object) -> int:
        """Return how many endpoints an Ingress reaches by one backend."""
        obj = self._objects.get(service)
        port = port_of_backend(obj, backend) if obj is not None else None
        if obj is None or port is None:
            return 0
        if obj["spec"].get("type") == "ExternalName":
            return 1
        return self._ready(service, port.get("name") or "")

    def _ready(self, service: Key, port: str | None) -> int:
        """Return the number of ready endpoints at a port, each once though it has addresses of two
        families."""
        families: dict[str, int] = {}
        for family, count, ports in self._counts.get(service, {}).values():
            if port is NO_PORT or port in ports:
                families[family] = families.get(family, 0) + count
        return max(families.values(), default=0)


def last_writes(log: Sequence[LoggedWrite], after: Scene) -> set[int]:
    """Return the positions of the writes that were deletions: the last ones of objects that are not
    there in the end."""
    last: dict[tuple[Key, str], int] = {}
    for number, write in enumerate(log):
        last[write.key, uid_of(write.obj) if write.obj is not None else ""] = number
    return {
        number
        for (key, uid), number in last.items()
        if (obj := after.get(*key)) is None or (uid and uid_of(obj) != uid)
    }


def unreachable_of(ports: Iterable[States]) -> tuple[int, HarmTime] | None:
    """Return how many endpoints a port had, and the longest time in which it had none any more;
    None where each port always had some, or never."""
    found = [harm for states in ports if (harm := unreachable_port(states)) is not None]
    return max(found, key=lambda harm: length_of(harm[1]), default=None)


def unreachable_port(states: States) -> tuple[int, HarmTime] | None:
    """Return how many endpoints there were at the beginning, or later where there was none, and the
    longest time in which there were none any more; None where there always were some, or never."""
    had = 0
    moments: list[tuple[datetime, tuple[int, bool]]] = []
    at_first = states[0][1]
    for at, count in states:
        moments.append((at, (at_first or had, count == 0 and had > 0)))
        had = count or had
    stretches = stretches_of(moments, lambda state: state[1])
    if not stretches:
        return None
    longest = longest_of(stretches)
    return next(state[0] for at, state in moments if at == longest.begin and state[1]), longest
