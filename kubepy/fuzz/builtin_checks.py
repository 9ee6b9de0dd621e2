"""The checks that have a name and need no file.

- ``bounds``: no workload has fewer available pods than its own strategy and its budgets allow, from
  the timeline of the run. What was lacking at the beginning may go on to lack; a workload that only
  comes up is not accused, nor one of which a pod has failed by itself and is not made up for yet,
  nor one in a namespace that is being deleted.
- ``settles``: at the end nothing is due but what repeats for ever.
- ``owners``: at the end no object names an owner that does not exist and that the garbage collector
  would have found missing.
- ``no-conflict-storm``: no controller fails with Conflict more than 20 times in a row for one
  object, besides the conflicts that its disturbances cause.
- ``no-internal-error``: no sync and no request fails with anything but an API error or what a
  controller foresees, nor with InternalError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import (
    Object,
    is_being_deleted,
    nested_map,
    owner_references,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_ready, phase_of
from kubepy.apiserver.views import from_stored
from kubepy.fuzz.words import said
from kubepy.insight import Step, Timeline
from kubepy.insight.availability import JOBS, Availability, judge
from kubepy.insight.bounds import DAEMON_SETS
from kubepy.insight.harm import as_controller_counts
from kubepy.insight.prediction import pending
from kubepy.insight.steps import NOT_READY, TERMINATING, actions
from kubepy.insight.timeline import entries_of, moment, read_timeline
from kubepy.runtime.reconcile import UnfinishedSync
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.api.typed import OwnerReference
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.fuzz.objectlists import ObjectLists
    from kubepy.storage.state import State
    from kubepy.storage.timeline import TimelineEntry

BOUNDS, SETTLES, OWNERS = "bounds", "settles", "owners"
CONFLICT_STORM, INTERNAL_ERROR = "no-conflict-storm", "no-internal-error"
BUILTINS = (BOUNDS, SETTLES, OWNERS, CONFLICT_STORM, INTERNAL_ERROR)
MOST_CONFLICTS = 20  # in a row
MOST_NAMES = 3  # of things that a message names
PODS = "pods"
SCALED = (
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
)
GARBAGE_COLLECTOR = "garbage-collector-controller"


class Breach(NamedTuple):
    """A built-in check that does not hold.

    :ivar moment: when that began; None: now.
    :ivar key: the object whose write began it; None: it is so at the end.
    :ivar revision: that of the write; 0 for none.
    """

    check: str
    moment: datetime | None
    key: Key | None
    revision: int
    message: str


class BuiltinChecks:
    """The built-in checks of one run.

    :param names: those of the checks.
    :param cluster: the fork of the run, before anything is done on it.
    :param lists: are told what to keep of the objects that the checks are about, for their digest.
    """

    def __init__(self, names: Collection[str], cluster: LocalCluster, lists: ObjectLists) -> None:
        self._names = names
        self._cluster = cluster
        self._start = cluster.clock.now()
        self._first_revision = cluster.client.revision()
        self._before = cluster.store.state()
        self._conflicts: dict[tuple[str, Key], int] = {}  # in a row
        if BOUNDS in names:
            lists.add_resource(PODS).abstracts.append(pod_tokens)
            for resource in SCALED:
                lists.add_resource(resource).abstracts.append(workload_tokens)

    def note_failure(self, controller: str, key: Key, error: Exception) -> Breach | None:
        """Return the breach that a failed sync or request (controller "") makes, if any."""
        if INTERNAL_ERROR in self._names and is_internal(error):
            who = f"The controller {controller}" if controller else "A request"
            message = f"{who} failed at {said(key)} with {type(error).__name__}: {error}"
            return Breach(INTERNAL_ERROR, None, key, 0, message)
        if CONFLICT_STORM not in self._names:
            return None
        if not isinstance(error, errors.Conflict):
            self.note_success(controller, key)
            return None
        count = self._conflicts[controller, key] = self._conflicts.get((controller, key), 0) + 1
        if count <= MOST_CONFLICTS:
            return None
        failures = f"{count} times in a row at {said(key)} with Conflict"
        message = f"The controller {controller} failed {failures}: {error}"
        return Breach(CONFLICT_STORM, None, key, 0, message)

    def note_success(self, controller: str, key: Key) -> None:
        """Take in that a sync has succeeded."""
        self._conflicts.pop((controller, key), None)

    def finish(self, *, settled: bool) -> Breach | None:
        """Return the first breach that shows at the end: that of ``bounds`` came before."""
        if BOUNDS in self._names:
            breach = bounds_breach(self._cluster, self._start, self._first_revision)
            if breach is not None:
                return breach
        if SETTLES in self._names and not settled:
            return Breach(SETTLES, None, None, 0, unsettled(self._cluster))
        if OWNERS in self._names:
            return owners_breach(self._cluster, self._before)
        return None


def is_internal(error: Exception) -> bool:
    """Return whether an error is none that an API server answers with on purpose, and none that a
    controller foresees."""
    if isinstance(error, UnfinishedSync):
        return False
    return not isinstance(error, errors.Status) or isinstance(error, errors.InternalError)


def pod_tokens(pod: Object) -> tuple[Any, ...]:
    """Return what counts of a pod for a workload."""
    return phase_of(pod), is_pod_ready(pod)


def workload_tokens(workload: Object) -> tuple[Any, ...]:
    """Return the numbers of a workload's spec and status."""
    spec = nested_map(workload, "spec")
    status = nested_map(workload, "status")
    numbers = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
    return (spec.get("replicas"), *(status.get(name) for name in numbers))


# --- bounds ---------------------------------------------------------------------------------------


def bounds_breach(cluster: LocalCluster, start: datetime, revision: int) -> Breach | None:
    """Return the first moment, after a revision, at which a workload had too few available pods."""
    timeline = read_timeline(cluster, start, after_revision=revision)
    found = list(_first_lacks(timeline))
    breaches = [
        breach
        for _, key in sorted(found)
        if not _is_going(cluster, key.namespace)
        and (breach := _confirmed(cluster, key, start, revision)) is not None
    ]
    return min(breaches, key=lambda breach: (breach.moment, breach.revision), default=None)


def _is_going(cluster: LocalCluster, name: str) -> bool:
    """Return whether a namespace is being deleted or gone: its pods are deleted first, whatever
    their workloads want."""
    namespace = cluster.client.stored(Key("namespaces", "", name))
    return namespace is None or is_being_deleted(namespace)


def _first_lacks(timeline: Timeline) -> Iterator[tuple[int, Key]]:
    """Yield the workloads that lacked pods, each with the number of steps up to that."""
    for course in timeline.courses:
        if course.key.resource in JOBS:
            continue
        judged = judge(course)
        if course.key.resource == DAEMON_SETS:
            judged = list(as_controller_counts(judged, timeline))
        lack = first_lack(judged)
        if lack is not None:
            yield lack.step, course.key


def first_lack(
    judged: Iterable[Availability], failing: Collection[int] = ()
) -> Availability | None:
    """Return the first moment at which a workload lacks more pods than at any moment before.

    :param failing: numbers of steps at which a pod failed by itself: from there on it is not
        accused, until it has all its pods again.
    """
    least: int | None = None
    last = 0
    is_failing = False
    for state in judged:
        is_whole = state.numbers.available >= state.numbers.desired
        is_failing |= any(last < step <= state.step for step in failing)
        last = state.step
        if is_whole:
            is_failing = False
        if least is not None and state.lacking > least and not is_failing:
            return state
        least = state.lacking if least is None else min(state.lacking, least)
    return None


def _confirmed(cluster: LocalCluster, key: Key, start: datetime, revision: int) -> Breach | None:
    """Return the breach of a workload that lacked pods; None where its pods failed by
    themselves."""
    timeline = read_timeline(cluster, start, after_revision=revision, subject=key)
    failing = failures_of(timeline)
    for course in timeline.courses:
        if course.key != key:
            continue
        judged = judge(course)
        if key.resource == DAEMON_SETS:
            judged = list(as_controller_counts(judged, timeline))
        lack = first_lack(judged, failing)
        if lack is not None:
            return _breach_at(cluster, key, lack, timeline, revision)
    return None


def failures_of(timeline: Timeline) -> list[int]:
    """Return the numbers of the steps by which pods went down though nobody was deleting them."""
    leaving = {step.key for step in timeline.present if step.action == TERMINATING}
    failures = []
    for number, step in enumerate(timeline.steps, start=1):
        if step.key.resource != PODS:
            continue
        if step.action == "created":
            leaving.discard(step.key)
        elif step.action == TERMINATING:
            leaving.add(step.key)
        elif step.action in (NOT_READY, "failed", "evicted") and step.key not in leaving:
            failures.append(number)
    return failures


def _breach_at(
    cluster: LocalCluster, key: Key, lack: Availability, timeline: Timeline, after: int
) -> Breach:
    at = timeline.since
    written = key
    revision = 0
    if lack.step:
        step = timeline.steps[lack.step - 1]
        at = step.at
        written, revision = write_of(cluster, step, after)
    limit = f"its budget {lack.bounds.budget}" if lack.bounds.budget else "its strategy"
    message = (
        f"{said(key)} had {lack.numbers.available} available pods of {lack.numbers.desired}, "
        f"where {limit} allows no fewer than {lack.required}"
    )
    return Breach(BOUNDS, at, written, revision, message)


def write_of(cluster: LocalCluster, step: Step, after: int) -> tuple[Key, int]:
    """Return the object and the revision of the write that made a step; revision 0 where only time
    did.

    Of several writes of the object at that moment it is the first that makes the step by itself, or
    else the last. A pod may also become unavailable by a write of its owner.
    """
    at_once = [entry for entry in entries_of(cluster, None, after) if moment(entry) == step.at]
    of_object = [entry for entry in at_once if entry.key == step.key]
    for entry in of_object:
        if step.action in _actions_of(entry):
            return entry.key, entry.revision
    for entry in reversed(of_object or at_once):
        return entry.key, entry.revision
    return step.key, 0


def _actions_of(entry: TimelineEntry) -> list[str]:
    """Return the names of the steps that a write makes by itself."""
    resource = entry.key.resource
    before, after = (
        None if stored is None else from_stored(resource, stored)
        for stored in (entry.before, entry.after)
    )
    return [action.name for action in actions(resource, before, after, entry.note)]


# --- settles --------------------------------------------------------------------------------------


def unsettled(cluster: LocalCluster) -> str:
    """Return the sentence about a run that does not come to rest."""
    due = [entry for entry in pending(cluster) if not entry.repeating]
    names = list(dict.fromkeys(f"{entry.reconciler} at {said(entry.key)}" for entry in due))
    more = ", …" if len(names) > MOST_NAMES else ""
    shown = f": {', '.join(names[:MOST_NAMES])}{more}" if names else ""
    return f"At the end something was still due{shown}"


# --- owners ---------------------------------------------------------------------------------------


def owners_breach(cluster: LocalCluster, before: State) -> Breach | None:
    """Return the breach of the first object that names an owner which does not exist.

    Nothing is said of an object that is being deleted, or that the garbage collector has yet to
    look at, nor of an owner of a kind that is not served: nobody can tell whether that exists.

    :param before: the state at the beginning: an object that named a missing owner then is not
        accused of it.
    """
    state = cluster.recorded_state()
    due = {entry.key for entry in pending(cluster) if entry.reconciler == GARBAGE_COLLECTOR}
    for key, obj in _owned_objects(state):
        if key in due or is_being_deleted(obj):
            continue
        for reference in owner_references(obj):
            if not _is_missing(cluster, state, key, reference):
                continue
            first = before.get(key)
            was_so = first is not None and reference in owner_references(first.object)
            if not was_so or not _is_missing(cluster, before, key, reference):
                owner = f"{reference['kind']} {reference['name']} ({reference['uid']})"
                message = f"At the end {said(key)} names an owner that does not exist: {owner}"
                return Breach(OWNERS, None, None, 0, message)
    return None


def _owned_objects(state: State) -> list[tuple[Key, Object]]:
    """Return the objects that name owners."""
    return state.found("owner", sorted(state.counts("owner")))


def _is_missing(cluster: LocalCluster, state: State, key: Key, reference: OwnerReference) -> bool:
    """Return whether the garbage collector would find that an owner does not exist
    (``classifyReferences``)."""
    absent = cluster.client.settings.absent
    if absent is not None and absent.owner(reference) is not None:
        return False  # an imported source only names it
    resource = cluster.scheme.for_kind(reference["apiVersion"], reference["kind"])
    if resource is None or (resource.namespaced and not key.namespace):
        return False
    namespace = key.namespace if resource.namespaced else ""
    owner = state.get(Key(resource.storage_key, namespace, reference["name"]))
    return owner is None or uid_of(owner.object) != reference["uid"]
