"""Plans: what a change would do, and whether it finishes.

A :class:`Plan` judges a :class:`~kubepy.insight.prediction.Prediction`: which workloads the change
concerns, when each has finished, and what blocks one that does not. Only those count that a command
touches; without a command, all that are under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.api.meta import Object, controller_of, is_being_deleted, name_of, status_of, uid_of
from kubepy.api.objects.pods import get_condition, phase_of
from kubepy.api.values.goformat import format_duration
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight import Course, Finding, Numbers
from kubepy.insight.availability import Availability, extremes, judge
from kubepy.insight.harm import (
    KINDS,
    NEVER_FINISHES,
    STUCK,
    WORKLOADS,
    Harm,
    HarmSearch,
    Writes,
    harm_document,
    is_suspended,
    numbers_of,
)
from kubepy.insight.prediction import CRON_JOBS, Prediction, is_settled
from kubepy.insight.steps import AVAILABLE, NOT_READY, READY, UNAVAILABLE
from kubepy.insight.timeline import timeline_document
from kubepy.insight.why import Why, link_document, why_document
from kubepy.insight.why.contention import may_be_contested
from kubepy.insight.why.goals import is_done
from kubepy.insight.why.scene import Scene, merged
from kubepy.insight.why.verdict import DIAGNOSES, Question, Run, explain
from kubepy.insight.why.workloads import PLAN_NOTES
from kubepy.runtime.contention import Contest, Party
from kubepy.storage import Key

NAMESPACES = "namespaces"
NODES = "nodes"
# What happens to pods that stay, though nobody does anything.
BY_ITSELF = (AVAILABLE, NOT_READY, READY, UNAVAILABLE, "restarted")
NOTES = merged([PLAN_NOTES])
# What a plan is about where the command writes it and it does not get where it should be.
OTHERS = ("horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io", "services")


class Touched:
    """The objects that a command itself writes, and the nodes that it drains; what controllers do
    afterwards is not among them.

    :ivar keys: in the order in which they were written first.
    :ivar writes: notes all that the prediction writes.
    """

    def __init__(self) -> None:
        self.keys: dict[Key, None] = {}
        self.writes = Writes()

    def watch(self, cluster: LocalCluster) -> None:
        """Let the cluster's client note all that its user writes. Controllers are others, also
        where they work through that client."""
        client = cluster.client

        def note(key: Key, obj: Object | None, user: Object) -> None:
            if user is client.user:
                self.keys[key._replace(name=name_of(obj) if obj is not None else key.name)] = None

        cluster.client = client.observed(note)


class PlannedWorkload(NamedTuple):
    """A workload of a plan.

    :ivar finished_after: seconds from the beginning until it has finished for good; None: it does
        not.
    :ivar why: what ``why`` says about one that does not finish.
    :ivar note: what there is to say about one that finishes: a DaemonSet has no pod on some nodes.
    :ivar goes_on: the command does not touch it, and it goes on as it would without: a CronJob's
        next run. It has no part in the time of the plan, nor in conditions.
    """

    course: Course
    finished_after: float | None
    why: Why | None = None
    note: Finding | None = None
    goes_on: bool = False

    @property
    def key(self) -> Key:
        return self.course.key

    @property
    def blocked_by(self) -> Key | None:
        """The object that is to blame."""
        return self.why and (self.why.chain[-1].key if self.why.chain else self.why.key)

    @property
    def lowest(self) -> Availability:
        """The moment at which it lacks most, or has the fewest available pods."""
        return extremes(judge(self.course)).lowest


class Plan(NamedTuple):
    """What a command would do.

    :ivar command: its words; none: just what is under way.
    :ivar finishes: all workloads finish, and the command comes to an end.
    :ivar others: workloads that do not finish and did not before; the command does not touch them.
    :ivar tops: for each step the workload that its object belongs to.
    :ivar harm: what it does to objects that were better before; those that do not finish first.
    """

    command: tuple[str, ...]
    prediction: Prediction
    workloads: tuple[PlannedWorkload, ...]
    finishes: bool
    others: tuple[Key, ...]
    tops: tuple[Key, ...]
    harm: tuple[Harm, ...] = ()

    @property
    def finished_after(self) -> float:
        """Seconds until the last workload has finished."""
        times = [
            workload.finished_after or 0.0 for workload in self.workloads if not workload.goes_on
        ]
        return max(times, default=0.0)


def make_plan(
    command: Sequence[str],
    cluster: LocalCluster,
    prediction: Prediction,
    touched: Touched,
    *,
    has_ended: bool = True,
    run: Run | None = None,
) -> Plan:
    """Judge a prediction.

    :param cluster: the cluster that it is about.
    :param touched: what the command itself has written, or drains.
    :param has_ended: the command has come to an end, and does not wait for something that never
        comes.
    :param run: runs command lines on forks, to try remedies of what blocks the first workload.
    """
    workloads = Judge(cluster, prediction, touched, counts_all=not command)
    planned: list[PlannedWorkload] = []
    others = []
    for key in workloads.concerned(has_ended=has_ended):
        if workloads.is_finished(key):
            planned.append(
                PlannedWorkload(
                    workloads.course(key),
                    workloads.finished_after(key),
                    note=workloads.note(key),
                    goes_on=workloads.goes_on(key),
                )
            )
        elif workloads.counts(key):
            is_first = not any(workload.why for workload in planned)
            question = Question(prediction.cluster, key, run if is_first else None)
            planned.append(PlannedWorkload(workloads.course(key), None, explain(question)))
        else:
            others.append(key)

    finishes = has_ended and all(workload.finished_after is not None for workload in planned)
    return Plan(
        tuple(command),
        prediction,
        tuple(planned),
        finishes,
        tuple(others),
        tuple(workloads.step_tops),
        tuple(workloads.harm(planned)),
    )


def with_remedies(plan: Plan, run: Run) -> Plan:
    """Return a plan with the remedies of what blocks the first workload that does not finish.

    :param run: runs command lines on forks.
    """
    workloads = list(plan.workloads)
    for place, workload in enumerate(workloads):
        if workload.why is not None:
            question = Question(plan.prediction.cluster, workload.key, run)
            workloads[place] = workload._replace(why=explain(question))
            break
    return plan._replace(workloads=tuple(workloads))


class Judge:
    """Judges the workloads of a prediction.

    :param counts_all: workloads that were stuck before count, too: there is no command.
    """

    def __init__(
        self, cluster: LocalCluster, prediction: Prediction, touched: Touched, *, counts_all: bool
    ) -> None:
        self._before, self._after = Scene(cluster, DIAGNOSES), Scene(prediction.cluster, DIAGNOSES)
        self._prediction = prediction
        self._timeline = prediction.timeline
        self._counts_all = counts_all
        self._tops: dict[tuple[Key, str], Key] = {}  # by key and UID
        self._written = touched.keys
        self._writes = touched.writes
        self._touched = {self.top(key) for key in touched.keys}
        self.step_tops = [self.top(step.key, step.owner, step.uid) for step in self._timeline.steps]
        self._courses = {course.key: course for course in self._timeline.courses}

    def top(self, key: Key, owner: str = "", uid: str = "") -> Key:
        """Return the workload that an object belongs to: that which no other workload controls,
        maybe itself.

        :param owner: its controller at the moment of a step.
        :param uid: that of the object: one of the same name may belong to another workload.
        """
        if owner:
            resource, _, name = owner.partition("/")
            return self.top(Key(resource, key.namespace, name))
        if (key, uid) not in self._tops:
            self._tops[key, uid] = key
            for scene in (self._after, self._before):
                obj = scene.get(*key)
                if obj is not None and uid in ("", uid_of(obj)):
                    above = scene.owner(obj)
                    self._tops[key, uid] = self.top(scene.key(above)) if above is not None else key
                    break
        return self._tops[key, uid]

    def concerned(self, *, has_ended: bool) -> list[Key]:
        """Return the workloads that something happens to or that must still go, in the order in
        which it does.

        :param has_ended: see :func:`make_plan`; otherwise nodes that the command has written, or
            drains, are among them.
        """
        steps = [key for key in self.step_tops if key.resource in (*WORKLOADS, NAMESPACES)]
        leaving = [
            key
            for key in self._written
            if (obj := self._after.get(*key)) is not None
            and (is_being_deleted(obj) or (key.resource == NODES and not has_ended))
        ]
        others = [
            key for key in self._written if key.resource in OTHERS and not self.is_finished(key)
        ]
        waiting = self._unfinished() if self._counts_all else ()
        return list(dict.fromkeys([*steps, *self._courses, *leaving, *others, *waiting]))

    def _unfinished(self) -> Iterator[Key]:
        """Yield the workloads that are not finished at the end, but for those that have come to an
        end of their own."""
        for resource in WORKLOADS:
            for obj in self._after.list(resource):
                if (
                    controller_of(obj) is None
                    and not has_ended(obj)
                    and not is_done(self._after, obj, obj)
                ):
                    yield self._after.key(obj)

    def is_finished(self, key: Key) -> bool:
        """Return whether a workload is where it should be at the end: rolled out, complete, or gone
        if it is to go; and no controllers are at odds about it, so that it stays there. A CronJob
        or Job that the command touches may be suspended: that is its wish."""
        obj = self._after.get(*key)
        if obj is not None and key in self._touched and is_suspended(key, obj):
            return True
        is_contested = any(self.top(contest.subject) == key for contest in self._after.contests)
        return obj is None or (is_done(self._after, obj, obj) and not is_contested)

    def goes_on(self, key: Key) -> bool:
        """Return whether a workload that has finished only goes on by itself: a CronJob starts its
        next Jobs, or containers start again in pods that stay. The command does not touch it."""
        before, after = self._before.get(*key), self._after.get(*key)
        if self._counts_all or key in self._touched or before is None or after is None:
            return False
        if uid_of(before) != uid_of(after):
            return False
        if key.resource == CRON_JOBS:
            return True
        return is_done(self._before, before, before) and not any(
            top == key and step.action not in BY_ITSELF
            for step, top in zip(self._timeline.steps, self.step_tops, strict=True)
        )

    def note(self, key: Key) -> Finding | None:
        """Return what there is to say about a workload that has finished; None for nothing."""
        scene = Scene(self._after.cluster, NOTES)
        obj = scene.get(*key)
        if obj is not None and is_suspended(key, obj):
            return self._after.diagnose(obj)
        return scene.diagnose(obj) if obj is not None else None

    def counts(self, key: Key) -> bool:
        """Return whether a workload that does not finish makes the plan fail: it is touched, or was
        finished before."""
        if self._counts_all or key in self._touched:
            return True
        obj = self._before.get(*key)
        if obj is None:
            return True
        return is_done(self._before, obj, obj) and not may_be_contested(self._before, obj)

    def course(self, key: Key) -> Course:
        """Return the numbers of a workload; those of an object without pods are all 0."""
        return self._courses.get(key) or Course(key, ((0, Numbers()),))

    def harm(self, planned: Sequence[PlannedWorkload]) -> list[Harm]:
        """Return the harm of the change: that of workloads that do not finish, then all other by
        object."""
        comparison = HarmSearch(
            self._before, self._after, self._prediction, self._writes, self._written.keys()
        )
        never = [self._never_finishes(workload) for workload in planned if workload.why is not None]
        places = {harm.key: place for place, harm in reversed(list(enumerate(never)))}
        found = [
            harm
            for harm in self._without_usual(comparison.harms())
            if harm.kind != STUCK or harm.key not in places
        ]
        found.sort(key=lambda harm: (harm.key, KINDS.index(harm.kind)))
        return [*never, *found]

    def _never_finishes(self, workload: PlannedWorkload) -> Harm:
        """Return the harm to a workload that does not finish."""
        judged = judge(workload.course)
        if judged[-1].numbers.desired:
            before, after = numbers_of(judged[0]), numbers_of(judged[-1])
        else:
            before, after = self._state_before(workload.key), {"state": "stuck"}
        cause = workload.why.cause if workload.why is not None else ""
        steps = zip(self._timeline.steps, self.step_tops, strict=True)
        own_steps = (step.at for step, top in steps if top == workload.key)
        begin = next(own_steps, self._timeline.since)
        return Harm(NEVER_FINISHES, workload.key, before, {**after, "cause": cause}, begin)

    def _state_before(self, key: Key) -> Object:
        obj = self._before.get(*key)
        if obj is None:
            return {"state": "missing"}
        return {"state": "done" if is_done(self._before, obj, obj) else "stuck"}

    def _without_usual(self, harms: list[Harm]) -> list[Harm]:
        """Return harm without that which would come without the command, too: of a container that
        crashes again and again. A cluster at rest needs no second prediction for that."""
        if not harms or self._counts_all or is_settled(self._before.cluster):
            return harms
        writes = Writes()
        control = self._prediction.control(writes.observe)
        try:
            comparison = HarmSearch(
                self._before, Scene(control.cluster, DIAGNOSES), control, writes, ()
            )
            usual = {(harm.kind, harm.key) for harm in comparison.harms()}
        finally:
            control.close()
        return [harm for harm in harms if (harm.kind, harm.key) not in usual]

    def finished_after(self, key: Key) -> float:
        """Return after how many seconds a workload has finished for good."""
        own = [number for number, top in enumerate(self.step_tops, 1) if top == key]
        numbers = self.course(key).numbers
        end = numbers[-1][1]
        if (
            own
            and end.desired
            and self._after.get(*key) is not None
            and key.resource != "jobs.batch"
        ):
            short = [
                position
                for position, (_, state) in enumerate(numbers)
                if state.desired != end.desired
                or state.available < end.available
                or state.updated < end.updated
                or state.surge > end.surge
            ]
            own = [numbers[short[-1] + 1][0] if short else own[0]]

        if own:
            return (self._timeline.steps[own[-1] - 1].at - self._timeline.since).total_seconds()
        return 0.0


def has_ended(obj: Object) -> bool:
    """Return whether a workload does nothing any more: a Job or pod that has failed, a CronJob
    between two starts."""
    if obj["kind"] == "CronJob":
        return not status_of(obj).get("active")
    return phase_of(obj) == "Failed" or (
        obj["kind"] == "Job" and (get_condition(obj, "Failed") or {}).get("status") == "True"
    )


# --- documents ------------------------------------------------------------------------------------


def plan_document(plan: Plan, program: str = "kubepy") -> Object:
    """Return a plan as JSON data."""
    prediction = plan.prediction
    timeline = prediction.timeline._replace(
        courses=tuple(workload.course for workload in plan.workloads)
    )
    document = timeline_document(timeline)
    workloads = []
    for planned, described in zip(plan.workloads, document["workloads"], strict=True):
        after = planned.finished_after
        workloads.append(
            {
                **described,
                "finished": after is not None,
                "finishedAfter": None if after is None else format_duration(after),
                "goesOn": planned.goes_on,
                "blockedBy": planned.blocked_by._asdict() if planned.blocked_by else None,
            }
        )

    return {
        "kind": "Plan",
        "command": list(plan.command),
        "startedAt": format_exact_time(prediction.started),
        "settledAfter": format_duration(prediction.settled_after) if prediction.settled else None,
        "finishes": plan.finishes,
        "harm": [harm_document(harm) for harm in plan.harm],
        "workloads": workloads,
        "steps": document["steps"],
        "notes": [
            note_document(planned.key, planned.note)
            for planned in plan.workloads
            if planned.note is not None
        ],
        "contests": [contest_document(contest) for contest in prediction.contests],
        "cut": prediction.is_cut or bool(prediction.excesses and not plan.finishes),
        "why": [
            why_document(planned.why, program)
            for planned in plan.workloads
            if planned.why is not None
        ],
    }


def note_document(key: Key, note: Finding) -> Object:
    """Return what there is to say about a workload that finishes as JSON data."""
    return {
        "object": key._asdict(),
        "cause": note.cause,
        "chain": [link_document(link) for link in note.chain],
    }


def contest_document(contest: Contest) -> Object:
    """Return two controllers that undo each other's work as JSON data."""

    def described(party: Party, does: str) -> Object:
        return {"controller": party.reconciler, "object": party.key._asdict(), "does": does}

    return {
        "object": contest.subject._asdict(),
        "maker": described(contest.maker, contest.work),
        "undoer": described(contest.undoer, contest.undoing),
        "rounds": contest.rounds,
    }
