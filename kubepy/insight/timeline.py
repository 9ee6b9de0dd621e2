"""The timeline of a cluster: the steps that its objects made, and the numbers of its workloads
beside them.

It is derived from what storage keeps of each write (``kubepy.storage.timeline``) when it is read.
At its beginning an object was as it is now, or as it was before the first write since then. The
writes are then done again, one after the other. Pods become available where nothing is written, so
that is computed, with the ``minReadySeconds`` of their owners. Of one moment, pods whose time has
come are first, then the writes follow in their order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from itertools import zip_longest
from typing import Any, NamedTuple

from kubepy.api.clock import CLOCK_YEARS, EPOCH, format_exact_time, later, parse_time
from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_duration, parse_span
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.settings import FINEST, is_too_exact
from kubepy.apiserver.views import (
    BUDGETS,
    VIEWS,
    WORKLOADS,
    PodView,
    WorkloadView,
    from_stored,
    view,
)
from kubepy.insight import ENOUGH, Bounds, Course, Numbers, Step, Timeline
from kubepy.insight.availability import (
    Availability,
    extremes,
    judge,
    lacks_at_first,
    reached_at_end,
)
from kubepy.insight.bounds import Budgets, bounds_of, desired_of
from kubepy.insight.steps import (
    AVAILABLE,
    CREATED,
    ENDED,
    OUTSIDE,
    READY,
    TERMINATING,
    UNAVAILABLE,
    Action,
    actions,
)
from kubepy.quoting import printable
from kubepy.storage import Key
from kubepy.storage.timeline import NEVER, SECOND, TimelineEntry, microseconds

WITH_COURSES = frozenset((*WORKLOADS, "jobs.batch", "cronjobs.batch"))
LONGEST_CHAIN = 10  # of owners, where files by hand make a circle of them
SKEW = 1.0  # seconds by which the system's time may go back without the timeline beginning anew
SYNC_SECONDS = (
    2.0  # in which, in the system's time, a DaemonSet's controller writes its status after the pods
)
EDIT_SECONDS = 0.5  # in which one file is read after the other that git has written at once

EVICTION = "EvictionByEvictionAPI"  # who deletes pods for other reasons asks no budget

Views = dict[Key, Any]
Entries = list[TimelineEntry]


def read_timeline(
    cluster: LocalCluster,
    since: datetime | None = None,
    *,
    after_revision: int | None = None,
    subject: Key | Collection[Key] | None = None,
) -> Timeline:
    """Return what happened in a cluster, as far as it is kept. Nothing is written.

    :param since: from this moment on; None: from the first step. Where the clock was set back
        meanwhile, the timeline begins with that.
    :param after_revision: leave out the writes up to this revision; ``since`` is then only the time
        from which steps count their ``after``.
    :param subject: only the steps of this object (or these) and of what it owns, or of what is on
        this node or in this namespace.
    """
    fork = cluster.fork()  # entries, objects and time are those of one revision
    until = fork.clock.now()
    if since is not None and after_revision is None:
        first = microseconds((since - EPOCH).total_seconds())
    else:
        first = None

    entries = entries_of(fork, first, after_revision or 0)
    subjects: Collection[Key] = ()
    if isinstance(subject, Key):
        subjects = (subject,)
    elif subject is not None:
        subjects = subject

    replay = Replay(views_before(fork, entries), entries, subjects, sync_seconds(fork))
    start = since or (moment(entries[0]) if entries else until)
    replay.begin(start, is_over=after_revision is not None)
    replay.run(entries, until)
    if since is None and replay.steps:
        start = replay.steps[0].at
    courses = list(replay.courses())
    if since is not None and any(map(lacks_at_first, courses)):
        courses = list(with_what_was_before(fork, courses, entries, start))
    return Timeline(
        start,
        max(until, start),
        tuple(replay.steps),
        tuple(courses),
        tuple(replay.present),
    )


def entries_of(fork: LocalCluster, since: int | None = None, after: int = 0) -> Entries:
    """Return the entries from a moment on, or after a revision, with times that never go back."""
    entries = fork.timeline(since=since, after=after)
    skew, at_once = (0.0, 0.0) if fork.clock.own is not None else (SKEW, EDIT_SECONDS)
    return list(edits_at_once(without_earlier_times(entries, fork.clock.now(), skew), at_once))


def sync_seconds(cluster: LocalCluster) -> float:
    """Return how long what belongs together takes at most in a cluster's time."""
    if cluster.clock.own is not None:
        return 0.0
    return SYNC_SECONDS


def with_what_was_before(
    fork: LocalCluster, courses: Iterable[Course], entries: Entries, start: datetime
) -> Iterator[Course]:
    """Yield courses; those that begin with too few pods with how far they had come up before
    that."""
    whole = entries_of(fork)
    earlier = [entry for entry in whole if not entries or entry.revision < entries[0].revision]
    lacking = {course.key for course in courses if lacks_at_first(course)}
    replay = Replay(views_before(fork, whole), earlier, lacking, sync_seconds(fork))
    replay.begin(moment(earlier[0]) if earlier else start, is_over=False)
    replay.run(earlier, start)
    reached = {course.key: reached_at_end(course) for course in replay.courses()}
    for course in courses:
        yield (
            course._replace(reached=reached.get(course.key, ENOUGH))
            if course.key in lacking
            else course
        )


def start_of(since: str, now: datetime, name: str = "since") -> datetime:
    """Return the moment that a text means: a time, or how long ago. Raises ValueError, which begins
    with the name."""
    if is_too_exact(since):
        raise ValueError(f"{name}={printable(since)}: {FINEST}")
    try:
        if re.match(r"\d{4}-", since):
            start = parse_time(since)
            if start.year not in CLOCK_YEARS:
                raise ValueError(since)
            return start
        seconds = parse_span(since)
    except ValueError:
        raise ValueError(
            f"{name}={printable(since)} is neither a time such as 2026-01-01T12:00:00Z nor a "
            f"duration "
            "such as 30m or 2d"
        ) from None

    if seconds < 0:
        raise ValueError(f"{name} must not be negative: {printable(since)}")
    return now - min(timedelta(seconds=seconds), now - EPOCH)


def moment(entry: TimelineEntry) -> datetime:
    """Return the time of an entry."""
    return EPOCH + timedelta(microseconds=entry.at)


def without_earlier_times(
    entries: Entries, until: datetime, skew: float
) -> Iterator[TimelineEntry]:
    """Yield the entries since time last went back, with times that never do.

    :param skew: seconds by which time may go back without a new beginning; such an entry gets the
        time before it.
    """
    limit = (until - EPOCH) // timedelta(microseconds=1)
    start = 0
    last = limit + round(skew * SECOND)
    for number in range(len(entries) - 1, -1, -1):
        if entries[number].at > last:
            start = number + 1
            break
        last = entries[number].at + round(skew * SECOND)
    newest = entries[start].at if start < len(entries) else 0
    for entry in entries[start:]:
        newest = min(max(newest, entry.at), limit)
        yield entry if entry.at == newest else entry._replace(at=newest)


def edits_at_once(entries: Iterable[TimelineEntry], seconds: float) -> Iterator[TimelineEntry]:
    """Yield entries; those from outside get the time of the one before if that is so few seconds
    earlier."""
    began = 0
    last = NEVER
    for entry in entries:
        if not entry.is_outside or entry.at > last + seconds * SECOND:
            began = entry.at
        last = entry.at if entry.is_outside else NEVER
        yield entry if entry.at == began else entry._replace(at=began)


def views_before(cluster: LocalCluster, entries: Iterable[TimelineEntry]) -> Views:
    """Return the views of all objects before the first of some entries, which lead to the objects
    of now."""
    first: Views = {}
    for entry in entries:
        if entry.key not in first:
            first[entry.key] = (
                from_stored(entry.key.resource, entry.before) if entry.before is not None else None
            )
    state = cluster.recorded_state()
    present = {
        record.key: view(resource, record.object)
        for resource in VIEWS
        for record in state.records(resource, None)
        if record.key not in first
    }
    return {key: seen for key, seen in {**present, **first}.items() if seen is not None}


class PodCount(NamedTuple):
    """The part of one pod in the numbers of its workload."""

    pods: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    terminating: int = 0


NO_POD = PodCount()


class Replay:
    """Does the writes of a timeline again, and notes the steps and the numbers after each.

    :param views: those of all objects at the beginning.
    :param subjects: only their steps and those of what they own are noted; none: all.
    :param sync_seconds: how long a sync of a controller takes at most.
    """

    def __init__(
        self, views: Views, entries: Entries, subjects: Collection[Key], sync_seconds: float
    ) -> None:
        self.steps: list[Step] = []
        self.present: list[Step] = []
        self._views = views
        below = keys_below(subjects, views, entries) if subjects else set()
        self._subjects = {*subjects, *below} if subjects else None
        self._asked = set(subjects) - below
        self._owned: dict[
            Key, dict[Key, None]
        ] = {}  # by the owner; None: of a resource that has no views here
        self._available: set[Key] = set()
        self._due: list[
            tuple[datetime, int, Key]
        ] = []  # pods that become available, in the order of their writes
        self._order = 0
        self._counts: dict[
            Key, tuple[Key, PodCount]
        ] = {}  # by pod: its workload, and its part in the numbers
        self._totals: dict[Key, list[int]] = {}  # by workload
        self._newest: dict[Key, str | None] = {}  # the newest revision, by workload
        self._unobserved: set[Key] = (
            set()
        )  # workloads whose controller has not seen their present template
        self._numbers: dict[Key, list[tuple[int, Numbers]]] = {}
        self._bounds: dict[Key, list[tuple[int, Bounds]]] = {}
        self._budgets = Budgets()
        self._touched: dict[Key, None] = {}
        self._last: Views = {}  # workloads as they were last
        self._rolling: set[Key] = (
            set()
        )  # workloads whose pods of older templates are being replaced
        self._evicted: dict[
            Key, dict[Key, str]
        ] = {}  # evicted pods (their uids) of workloads, until replaced
        self._scheduled: dict[Key, int] = {}  # of DaemonSets: what their status is about to say
        self._raises = scheduled_raises(entries, sync_seconds)

    # --- going on ---

    def begin(self, start: datetime, *, is_over: bool) -> None:
        """Count the pods that there are. ``is_over``: those that become available at that moment
        are so already."""
        for key, seen in self._views.items():
            if owner := owner_key(key, seen):
                self._owned.setdefault(owner, {})[key] = None
            self._budgets.replace(key, seen)

        for key, seen in self._views.items():
            if isinstance(seen, PodView):
                due = self._available_at(key, seen)
                if due is not None and (due < start or (is_over and due == start)):
                    self._available.add(key)
                elif due is not None:
                    self._wait(due, key)
                self._count(key)
                self._note_eviction(key, seen)
                if self._is_asked(key):
                    if key in self._available and not seen.is_terminating:
                        name = AVAILABLE
                    else:
                        name = action_before(seen)
                    self.present.append(
                        Step(
                            start,
                            name,
                            key,
                            seen.owner,
                            seen.node,
                            seen.revision,
                            seen.reason,
                            seen.uid,
                        )
                    )

        for key in self._views:
            if key.resource in WITH_COURSES and self._top(key) == key:
                numbers = self._numbers_of(key)
                self._numbers[key], self._bounds[key] = (
                    [(0, numbers)],
                    [(0, self._bounds_of(key, numbers))],
                )

    def run(self, entries: Entries, until: datetime) -> None:
        """Do all writes again, and let time go on to a moment. What comes from outside at one
        moment is one change: the numbers between its writes never were."""
        tops: dict[Key, None] = {}
        for number, (entry, following) in enumerate(zip_longest(entries, entries[1:])):
            at = moment(entry)
            self._let_time_pass(at)
            self._scheduled.update(self._raises.get(number, ()))
            tops.update(dict.fromkeys(self._write(entry, at)))
            if not (
                entry.is_outside
                and following is not None
                and following.is_outside
                and following.at == entry.at
            ):
                self._note_numbers(tops)
                tops.clear()

        self._let_time_pass(until)

    def _let_time_pass(self, until: datetime) -> None:
        while self._due and self._due[0][0] <= until:
            at, _, key = heappop(self._due)
            seen = self._views.get(key)
            if (
                seen is not None
                and key not in self._available
                and self._available_at(key, seen) == at
            ):
                self._available.add(key)
                self._count(key)
                self._step(at, key, seen, Action(AVAILABLE))
                self._note_numbers([self._top(key)])

    def _write(self, entry: TimelineEntry, at: datetime) -> list[Key]:
        """Do a write again; returns the workloads that it is about, or the budget."""
        key = entry.key
        before = self._views.get(key)
        after = from_stored(key.resource, entry.after) if entry.after is not None else None
        tops = [self._top(key)] if before is not None else []
        made = list(actions(key.resource, before, after, entry.note))
        self._replace(key, before, after)
        tops.append(self._top(key) if after is not None else tops[-1])
        reason = OUTSIDE if entry.is_outside else ""
        for action in made:
            self._step(
                at,
                key,
                after or before,
                action._replace(reason=", ".join(filter(None, (action.reason, reason)))),
            )

        for pod in [key] if key.resource == "pods" else self._pods_to_judge(key, before, after):
            self._judge(pod, at)
        if key.resource != "pods":
            self._follow_workload(key, before, after, tops[-1])
        elif isinstance(after, PodView):
            self._note_eviction(key, after)

        return tops

    def _replace(self, key: Key, before: Any, after: Any) -> None:
        """Put one view in place of another."""
        self._budgets.replace(key, after)
        if (old := owner_key(key, before)) and old in self._owned:
            self._owned[old].pop(key, None)
        if owner := owner_key(key, after):
            self._owned.setdefault(owner, {})[key] = None
        if after is None:
            self._views.pop(key, None)
            self._available.discard(key)
        else:
            self._views[key] = after
        if before is not None and key.resource in WITH_COURSES:
            self._last[key] = before

    # --- availability ---

    def _pods_to_judge(self, key: Key, before: Any, after: Any) -> list[Key]:
        """Return the pods of a workload whose ``minReadySeconds`` have changed."""
        seconds = [
            seen.min_ready_seconds if isinstance(seen, WorkloadView) else 0
            for seen in (before, after)
        ]
        if seconds[0] != seconds[1]:
            return [pod for pod in self._owned.get(key, ()) if pod.resource == "pods"]
        return []

    def _judge(self, key: Key, at: datetime) -> None:
        """Decide whether a pod is available, after something has changed."""
        seen = self._views.get(key)
        due = self._available_at(key, seen) if seen is not None else None
        is_available = due is not None and due <= at
        if is_available and key not in self._available:
            self._available.add(key)
            self._step(at, key, seen, Action(AVAILABLE))
        elif not is_available and key in self._available:
            self._available.discard(key)
            if seen is not None and not seen.is_terminating and seen.phase not in ENDED:
                self._step(at, key, seen, Action(UNAVAILABLE, seen.reason))
        if due is not None and not is_available:
            self._wait(due, key)
        self._count(key)

    def _available_at(self, key: Key, pod: PodView) -> datetime | None:
        """Return when a pod is or becomes available if nothing changes."""
        if not pod.is_ready or pod.is_terminating or pod.phase in ENDED:
            return None
        owner = self._views.get(owner_key(key, pod) or key)
        seconds = owner.min_ready_seconds if isinstance(owner, WorkloadView) else 0
        if not seconds:
            return EPOCH.replace(year=1)
        with suppress(ValueError):  # a file by hand may hold another text, or none
            return later(parse_time(pod.ready_since), seconds)
        return None

    def _wait(self, due: datetime, key: Key) -> None:
        self._order += 1
        heappush(self._due, (due, self._order, key))

    # --- workloads ---

    def _top(self, key: Key) -> Key:
        """Return the workload that an object belongs to in the end: that which no other
        controls."""
        for _ in range(LONGEST_CHAIN):
            if key not in self._asked:
                owner = owner_key(key, self._views.get(key) or self._last.get(key))
            else:
                owner = None
            if (
                owner is None
                or owner.resource not in WITH_COURSES
                or not (owner in self._views or owner in self._last)
            ):
                break
            key = owner
        return key

    def _follow_workload(self, key: Key, before: Any, after: Any, top: Key) -> None:
        """Take in what a change of a workload, or of a revision of it, means for the pods of its
        top."""
        if isinstance(after, WorkloadView) and isinstance(before, WorkloadView):
            if after.template != before.template:
                self._unobserved.add(key)
            if after.scheduled != before.scheduled:
                self._scheduled.pop(key, None)
        if after is not None and getattr(after, "is_observed", True):
            self._unobserved.discard(key)
        newest = newest_revision(top, self._views, self._owned, self._unobserved)
        has_moved = key != top and owner_key(key, before) != owner_key(key, after)
        if has_moved or newest != self._newest.get(top):
            self._newest[top] = newest
            for pod in self._pods_below(top, key):
                self._count(pod)

    def _pods_below(self, *keys: Key) -> list[Key]:
        """Return the pods that objects control, directly or not."""
        pods: dict[Key, None] = {}  # and all between
        todo = list(keys)
        while todo:
            for key in self._owned.get(todo.pop(), ()):
                if key.resource in WITH_COURSES and key not in pods:
                    todo.append(key)
                pods[key] = None
        return [key for key in pods if key.resource == "pods"]

    def _count(self, key: Key) -> None:
        """Put a pod's part into the numbers of its workload, in place of the one before."""
        top, count = self._counts.pop(key, (key, NO_POD))
        if count != NO_POD:
            self._totals[top] = [
                total - part for total, part in zip(self._totals[top], count, strict=True)
            ]

        pod = self._views.get(key)
        if pod is None or pod.phase in ENDED:
            return
        top = self._top(key)
        if top not in self._newest:
            self._newest[top] = newest_revision(top, self._views, self._owned, self._unobserved)
        stays = not pod.is_terminating
        count = PodCount(
            1,
            int(stays and pod.is_ready),
            int(stays and key in self._available),
            int(stays and self._newest[top] in ("", pod.revision)),
            int(pod.is_terminating),
        )
        self._counts[key] = top, count
        self._totals[top] = [
            total + part for total, part in zip(self._totals.get(top, NO_POD), count, strict=True)
        ]

    def _numbers_of(self, key: Key) -> Numbers:
        seen = self._views.get(key)
        if seen is None:
            desired = 0
        elif key in self._scheduled:
            desired = max(self._scheduled[key], desired_of(seen))
        elif key.resource == "cronjobs.batch":
            desired = sum(
                desired_of(self._views[job])
                for job in self._owned.get(key, ())
                if job in self._views
            )
        else:
            desired = desired_of(seen)
        return Numbers(desired, *self._totals.get(key, NO_POD))

    def _note_eviction(self, key: Key, pod: PodView) -> None:
        if pod.disruption == EVICTION:
            self._evicted.setdefault(self._top(key), {})[key] = pod.uid

    def _bounds_of(self, key: Key, numbers: Numbers) -> Bounds:
        """Return the bounds of a workload that has these numbers."""
        is_whole = numbers.available >= numbers.desired
        if numbers.updated < numbers.staying:
            self._rolling.add(key)
        elif is_whole:
            self._rolling.discard(key)

        if is_whole and not any(
            pod in self._views and self._views[pod].uid == uid
            for pod, uid in self._evicted.get(key, {}).items()
        ):
            self._evicted.pop(key, None)

        return bounds_of(
            key,
            self._views.get(key),
            numbers.desired,
            self._budgets,
            is_rolling=key in self._rolling,
            is_evicted=key in self._evicted,
        )

    # --- notes ---

    def _note_numbers(self, keys: Iterable[Key]) -> None:
        """Note what has become of workloads; of a budget, the bounds of all workloads in its
        namespace."""
        for key in keys:
            if key.resource == BUDGETS:
                for top in [top for top in self._numbers if top.namespace == key.namespace]:
                    self._note(self._bounds[top], self._bounds_of(top, self._numbers_of(top)))
            elif key.resource in WITH_COURSES and self._is_asked(key):
                self._touched[key] = None
                present = self._numbers_of(key)
                self._note(self._numbers.setdefault(key, [(0, Numbers())]), present)
                self._note(
                    self._bounds.setdefault(key, [(0, Bounds())]), self._bounds_of(key, present)
                )

    def _note(self, values: list[tuple[int, Any]], present: Any) -> None:
        """Append a value to those before if it differs; of one step, the last one holds."""
        if present != values[-1][1]:
            if values[-1][0] == len(self.steps) and len(values) > 1:
                values.pop()
            values.append((len(self.steps), present))

    def _step(self, at: datetime, key: Key, seen: Any, action: Action) -> None:
        if self._is_asked(key):
            self.steps.append(
                Step(
                    at,
                    action.name,
                    key,
                    getattr(seen, "owner", ""),
                    getattr(seen, "node", ""),
                    getattr(seen, "revision", "") if key.resource != "statefulsets.apps" else "",
                    action.reason,
                    getattr(seen, "uid", ""),
                )
            )

    def _is_asked(self, key: Key) -> bool:
        return self._subjects is None or key in self._subjects

    def courses(self) -> Iterator[Course]:
        """Yield the courses of the workloads that something happened to, and of the subjects, by
        key."""
        for key in sorted({*self._touched, *(self._asked & self._numbers.keys())}):
            if (key in self._asked or self._top(key) == key) and key in self._numbers:
                yield Course(key, tuple(self._numbers[key]), tuple(self._bounds[key]))


def action_before(pod: PodView) -> str:
    """Return the action that led to the state of a pod, as far as its view shows it."""
    if pod.is_terminating or pod.phase in ENDED:
        if pod.is_terminating:
            return TERMINATING
        return pod.phase.lower()
    if pod.is_ready or pod.reason:
        if pod.is_ready:
            return READY
        return "waiting"
    if pod.node:
        return "scheduled"
    return CREATED


def owner_key(key: Key, seen: Any) -> Key | None:
    """Return the key of an object's controller, None where it has none."""
    owner = getattr(seen, "owner", "")
    if owner:
        return parse_owner(owner, key.namespace)
    return None


@lru_cache(10_000)
def parse_owner(owner: str, namespace: str) -> Key:
    """Return the key of an owner as views name it: ``replicasets.apps/web-5d4c4ff75b``."""
    resource, _, name = owner.partition("/")
    return Key(resource, namespace if resource != "nodes" else "", name)


def keys_below(subjects: Iterable[Key], views: Views, entries: Entries) -> set[Key]:
    """Return all that objects owned at any time; of a node also its pods, of a namespace what was
    in it."""
    children: dict[Key, set[Key]] = {}
    seen_views = [
        *views.items(),
        *(
            (entry.key, from_stored(entry.key.resource, stored))
            for entry in entries
            for stored in (entry.before, entry.after)
            if stored is not None
        ),
    ]
    for key, seen in seen_views:
        parents = [
            owner_key(key, seen),
            Key("namespaces", "", key.namespace) if key.namespace else None,
            Key("nodes", "", seen.node) if getattr(seen, "node", "") else None,
        ]
        for parent in parents:
            if parent is not None:
                children.setdefault(parent, set()).add(key)

    below = set[Key]()
    todo = list(subjects)
    while todo:
        new = children.get(todo.pop(), set()) - below
        below |= new
        todo += new

    return below


def newest_revision(
    top: Key, views: Views, owned: Mapping[Key, Iterable[Key]], unobserved: set[Key]
) -> str | None:
    """Return the revision that all pods of a workload should have: "" where any will do, None where
    none has it yet."""
    workload = views.get(top)
    if not isinstance(workload, WorkloadView) or top.resource in (
        "replicasets.apps",
        "replicationcontrollers",
    ):
        return ""

    if top.resource == "deployments.apps":
        replica_sets = (
            views[key] for key in owned.get(top, ()) if key.resource == "replicasets.apps"
        )
        return next(
            (
                replica_set.revision
                for replica_set in replica_sets
                if replica_set.template == workload.template
            ),
            None,
        )

    if top in unobserved:
        return None
    if top.resource == "statefulsets.apps":
        return workload.revision or None
    revisions = [
        views[key] for key in owned.get(top, ()) if key.resource == "controllerrevisions.apps"
    ]
    if revisions:
        newest: str = max(revisions, key=lambda revision: revision.number).revision
        return newest
    return None


def scheduled_raises(entries: Entries, sync_seconds: float) -> dict[int, list[tuple[Key, int]]]:
    """Return for which DaemonSets, from which entry on, more pods should be there than their status
    says yet.

    The controller makes the pods first and writes the status at the end of its sync.
    """
    raises: dict[int, list[tuple[Key, int]]] = {}
    born: dict[Key, int] = {}
    for number, entry in enumerate(entries):
        if entry.key.resource != "daemonsets.apps" or entry.after is None:
            continue
        after = from_stored(entry.key.resource, entry.after)
        if entry.before is None:
            born[entry.key] = number
        elif after.scheduled > from_stored(entry.key.resource, entry.before).scheduled:
            begin = number
            while (
                begin > born.get(entry.key, -1) + 1
                and entries[begin - 1].at >= entry.at - sync_seconds * SECOND
            ):
                begin -= 1
            raises.setdefault(begin, []).append((entry.key, after.scheduled))

    return raises


# --- documents ------------------------------------------------------------------------------------


def timeline_document(timeline: Timeline) -> Object:
    """Return a timeline as ``timeline -o json`` writes it."""
    return {
        "kind": "Timeline",
        "since": format_exact_time(timeline.since),
        "until": format_exact_time(timeline.until),
        "workloads": [workload_document(course, timeline) for course in timeline.courses],
        "steps": [step_document(step, timeline.since) for step in timeline.steps],
    }


def step_document(step: Step, start: datetime) -> Object:
    """Return a step; ``after`` is the time since ``start``."""
    return {
        "at": format_exact_time(step.at),
        "after": format_duration((step.at - start).total_seconds()),
        "action": step.action,
        "resource": step.key.resource,
        "namespace": step.key.namespace,
        "name": step.key.name,
        "owner": step.owner,
        "node": step.node,
        "revision": step.revision,
        "reason": step.reason,
    }


def workload_document(course: Course, timeline: Timeline) -> Object:
    """Return the course of a workload: its worst moments, and all of them."""
    judged = judge(course)

    def at(step: int) -> str:
        return format_exact_time(timeline.steps[step - 1].at if step else timeline.since)

    document = worst_document(course.key, judged)
    step = document["bounds"]["step"]
    return {
        **document,
        "bounds": {"step": step, "at": at(step), **document["bounds"]},
        "numbers": [
            {
                "step": step,
                "at": at(step),
                "desired": numbers.desired,
                "pods": numbers.pods,
                "ready": numbers.ready,
                "available": numbers.available,
                "unavailable": numbers.unavailable,
                "surge": numbers.surge,
                "updated": numbers.updated,
                "required": required,
            }
            for step, numbers, _, required, *_ in judged
        ],
    }


def worst_document(key: Key, judged: Sequence[Availability]) -> Object:
    """Return what a workload was at its worst, and the bounds of that moment."""
    lowest, most_unavailable, most_surge, allowed_surge, _ = extremes(judged)
    last = judged[-1].numbers
    bounds = lowest.bounds
    return {
        "resource": key.resource,
        "namespace": key.namespace,
        "name": key.name,
        "desired": last.desired,
        "minAvailable": lowest.numbers.available,
        "maxUnavailable": most_unavailable,
        "maxSurge": most_surge,
        "updated": last.updated,
        "bounds": {
            "step": lowest.step,
            "desired": lowest.numbers.desired,
            "minAvailable": lowest.required,
            "maxUnavailable": bounds.max_unavailable,
            "maxSurge": allowed_surge,
            "budget": bounds.budget if lowest.required is not None else "",
        },
    }
