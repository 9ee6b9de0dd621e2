"""Predictions: do something on a fork of a cluster, and let the controllers work there until
nothing is left to do.

Nothing is computed by a formula: the controllers, the scheduler and the kubelets of a fork are
those of the cluster. With the cluster's own clock and a seed they do on the fork exactly what they
would do in the cluster.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from kubepy.api.clock import ClockLimit, format_exact_time, later
from kubepy.api.meta import Object, controller_of, uid_of
from kubepy.api.objects.pods import is_pod_active, is_pod_ready
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import OnWrite
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.manager import WAIT_WRITES
from kubepy.insight import Timeline
from kubepy.insight.timeline import read_timeline
from kubepy.runtime.checkpoint import (
    CHECKPOINT,
    CONTENTION,
    MEMORIES,
    PACING,
    UNWATCHED,
    Pending,
    latest,
)
from kubepy.runtime.contention import Contest, cycles_of, waits_of
from kubepy.runtime.pacing import Excess, excesses_of
from kubepy.storage import Key

DAY = 24 * 3600.0  # seconds
# seconds after which a prediction is looked at for repetition, then after twice as many …
FIRST_LOOK = 300.0
LONG_LOOK = 1200.0  # seconds after which half of the time is long enough to tell what goes on
MOST_REPETITIONS = 10
CRON_JOBS = "cronjobs.batch"
Done = Callable[[LocalCluster], bool]
Observe = Callable[[LocalCluster], OnWrite]
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


class Prediction:
    """What happens in a cluster after something has been done in it.

    :ivar cluster: the fork as it is in the end.
    :ivar started: the moment of the fork.
    :ivar limit: how many seconds of the cluster's time it goes on at most.
    :ivar settled: nothing is due any more but what repeats for ever. False: the end was the limit,
        or the wish of ``done``.
    :ivar only_cron_jobs_go_on: the end was that nothing happened any more but the runs of CronJobs
        that the change left alone, of which there is always another one.
    :ivar is_at_limit: the end was the limit; otherwise what is so in the end stays so.
    :ivar origin: the fork with which it began; ``cluster`` may be a fork of that.
    :ivar settled_after: seconds of the cluster's time from the beginning to the end.
    :ivar control: makes the prediction of the same cluster without what was done, with the same
        settings and as far ahead; it takes what observes each fork.
    :ivar is_cut: the end is the bound of the controllers' writes: they were not done with the work
        of a moment.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        started: datetime,
        revision: int,
        limit: float,
        *,
        settled: bool,
    ) -> None:
        self.cluster = cluster
        self.limit = limit
        self.started = started
        self.settled = settled
        self.settled_after = (cluster.clock.now() - started).total_seconds()
        self.is_at_limit = not settled and self.settled_after >= limit
        self.origin = cluster
        self.is_cut = False
        self.only_cron_jobs_go_on = False
        self.control: Callable[[Observe], Prediction]
        self._revision = revision

    def close(self) -> None:
        """Let go of the folder that the fork lies over, after which nothing can be read from the
        fork. A fork of a fork shares the folder with its origin, and does not let go of it."""
        release(self.origin)

    @cached_property
    def contests(self) -> tuple[Contest, ...]:
        """The controllers that undo each other's work at the end, without end."""
        return contests_of(self.cluster)

    @cached_property
    def excesses(self) -> tuple[Excess, ...]:
        """The workloads that ask for far more pods than they get."""
        return tuple(excesses_of(memory_of(self.cluster, PACING) or ()))

    @cached_property
    def timeline(self) -> Timeline:
        """What happens, with its first step after the fork."""
        return read_timeline(self.cluster, self.started, after_revision=self._revision)


def predict(
    cluster: LocalCluster,
    act: Callable[[LocalCluster], object],
    limit: float = DAY,
    settings: Mapping[str, Any] = NO_SETTINGS,
    *,
    done: Done | None = None,
    observe: Observe | None = None,
) -> Prediction:
    """Predict what happens in a cluster after ``act`` has changed it; the cluster itself is not
    changed.

    A fork of a cluster with the system's time gets a clock of its own, which begins at now.
    Admission webhooks are called as for a dry run. A prediction ends where the controllers make
    more than WAIT_WRITES writes without an end of their work.

    :param act: changes the fork; it may let its time go on (a command that waits). When it would go
        on beyond the limit, ``act`` is left with ClockLimit.
    :param limit: seconds of the cluster's time after which the prediction ends.
    :param settings: replace those of the cluster's ``kubepy.yaml``.
    :param done: ends the prediction; it is asked about the fork when the work of a moment is done.
    :param observe: makes, for each fork that the prediction uses, a function that is told of each
        request that has written, of ``act`` and of the controllers.

    Raises what ``act`` raises, FolderError.
    """
    started = cluster.clock.now()
    fork = cluster.fork({"clock": format_exact_time(started), **settings}, is_prediction=True)
    fork = fork.with_faults(cluster.settings.faults)
    if observe is not None:
        fork = fork.observed(observe(fork))
    revision = fork.client.revision()
    end = fork.clock.limit = later(started, limit)
    is_over_limit = False
    repetition = Repetition()
    try:
        act(fork)
    except ClockLimit:
        is_over_limit = True
    except BaseException:
        release(fork)
        raise

    fork.clock.limit = None
    repetition.leave_alone(cron_jobs_of(cluster) & cron_jobs_of(fork))
    observed = fork.observed(repetition.note)
    is_cut = work(observed, end, done, repetition, most_writes=WAIT_WRITES)
    last = fork
    if not is_over_limit and is_settled(fork):
        last = tried_again(fork, end, done, observe) or fork
    prediction = Prediction(
        last, started, revision, limit, settled=is_settled(last) and not is_over_limit
    )
    prediction.origin = fork
    prediction.is_cut = is_cut
    prediction.only_cron_jobs_go_on = repetition.only_cron_jobs_go_on
    prediction.is_at_limit |= is_over_limit
    prediction.control = lambda observe: predict(
        cluster, lambda fork: None, limit, settings, observe=observe
    )
    return prediction


def cron_jobs_of(cluster: LocalCluster) -> set[tuple[str, int]]:
    """Return the UID and the generation of each CronJob: those of a spec."""
    cron_jobs = cluster.store.list(CRON_JOBS).objects
    return {(uid_of(obj), int(obj["metadata"].get("generation") or 0)) for obj in cron_jobs}


def release(fork: LocalCluster) -> None:
    """Let go of the folder that a fork lies over. Otherwise that stays open until the garbage
    collector has run."""
    fork.release()


class Repetition:
    """Controllers that make the same pods again and again, of which none becomes ready: a node
    refuses them, or is missing. That has no end; a Job's failures have, at its backoffLimit."""

    def __init__(self) -> None:
        self._active: dict[str, set[str]] = {}  # the UIDs of pods, by the UID of their controller
        self._most: Counter[str] = Counter()  # how many of them there were at a time
        self._made: Counter[str] = Counter()
        self._sound: set[str] = set()  # controllers of which a pod has become ready
        self._periodic: set[str] = set()  # the UIDs of CronJobs left alone, and of what they make
        self._has_other_writes = False  # since the last look
        self.only_cron_jobs_go_on = False

    def leave_alone(self, cron_jobs: Iterable[tuple[str, int]]) -> None:
        """Take in the CronJobs that are not changed."""
        self._periodic.update(uid for uid, _ in cron_jobs)

    def note(self, key: Key, obj: Object | None, user: Object) -> None:
        """Note what a request has written."""
        self._note_periodic(key, obj)
        controller = controller_of(obj) if obj is not None and key.resource == "pods" else None
        if obj is None or controller is None or controller["kind"] == "Job":
            return
        owner = controller["uid"]
        active = self._active.setdefault(controller["uid"], set())
        if not is_pod_active(obj):
            active.discard(uid_of(obj))
        elif uid_of(obj) not in active:
            active.add(uid_of(obj))
            self._made[owner] += 1
            self._most[owner] = max(self._most[owner], len(active))

        if is_pod_ready(obj):
            self._sound.add(owner)

    def _note_periodic(self, key: Key, obj: Object | None) -> None:
        if key.resource in UNWATCHED:
            return
        owner = controller_of(obj) if obj is not None else None
        if obj is not None and owner is not None and owner["uid"] in self._periodic:
            self._periodic.add(uid_of(obj))
        self._has_other_writes |= obj is None or uid_of(obj) not in self._periodic

    def look(self, fork: LocalCluster, seconds: float) -> bool:
        """Return whether only CronJobs that were left alone have done anything since the last look,
        and nothing is due but for them and what is tried again and again.

        :param seconds: since the beginning; the last look was after half of them.
        """
        is_quiet = not self._has_other_writes and seconds >= LONG_LOOK
        self._has_other_writes = False
        self.only_cron_jobs_go_on = is_quiet and all(
            entry.repeating or entry.failures or self._is_periodic(fork, entry.key)
            for entry in pending(fork)
        )
        return self.only_cron_jobs_go_on

    def _is_periodic(self, fork: LocalCluster, key: Key) -> bool:
        obj = fork.store.get(key)
        return obj is None or uid_of(obj) in self._periodic

    def is_endless(self, fork: LocalCluster) -> bool:
        """Return whether a controller has made all its pods so often that it will always do so, or
        another one ends them again and again; a node for which something is due may yet change the
        first."""
        if cycles_in(memory_of_contention(fork), fork.clock.now()):
            return True
        return any(
            made >= MOST_REPETITIONS * self._most[owner] and owner not in self._sound
            for owner, made in self._made.items()
        ) and not any(
            entry.key.resource == "nodes"
            and not entry.repeating
            and fork.store.get(entry.key) is not None
            for entry in pending(fork)
        )


def work(
    fork: LocalCluster,
    end: datetime,
    done: Done | None,
    repetition: Repetition | None = None,
    *,
    settled: bool = True,
    most_writes: float = WAIT_WRITES,
) -> bool:
    """Let the controllers work on a fork until a moment, or until it is settled before, or repeats
    itself without end.

    Returns whether they have reached the bound of their writes before that.
    """
    started = fork.clock.now()
    seconds = FIRST_LOOK if repetition else math.inf

    def is_over() -> bool:
        return (done is not None and done(fork)) or (
            repetition is not None and repetition.is_endless(fork)
        )

    with manager_lock(fork):
        manager = build_manager(fork)
        while True:
            until = min(end, later(started, seconds))
            summary = manager.advance(
                until, settled=settled, done=is_over if done else None, most_writes=most_writes
            )
            if summary.is_cut or fork.clock.now() < until or until == end or is_over():
                return summary.is_cut
            if repetition is not None and repetition.look(fork, seconds):
                return False
            seconds *= 2


def pending(fork: LocalCluster) -> Sequence[Pending]:
    """Return what the controllers of a fork have to do, now or later."""
    checkpoint = latest(fork.store.meta(CHECKPOINT))
    if checkpoint is not None:
        return checkpoint.pending
    return ()


def contests_of(cluster: LocalCluster) -> tuple[Contest, ...]:
    """Return the controllers of a cluster that undo each other's work, without end: one contest for
    each object."""
    memory = memory_of_contention(cluster)
    now = cluster.clock.now()
    waits = [wait for wait in waits_of(memory) if not wait.is_over(now) and not wait.is_released]
    contests = [
        *cycles_in(memory, now),
        *(wait.contest for wait in reversed(waits)),
    ]
    return tuple({contest.subject: contest for contest in contests}.values())


def memory_of_contention(cluster: LocalCluster) -> Mapping[str, Any]:
    """Return what the controllers of a cluster remember of contests."""
    return memory_of(cluster, CONTENTION) or {}


def memory_of(cluster: LocalCluster, name: str) -> Any:
    """Return one of the memories of a cluster's controllers, None if there is none."""
    text = cluster.store.meta(MEMORIES)
    if not text:
        return None
    return json.loads(text).get(name)


def cycles_in(memory: Mapping[str, Any], now: datetime) -> list[Contest]:
    """Return the contests at intervals that go on."""
    return [cycle.contest for cycle in cycles_of(memory) if not cycle.is_over(now)]


def is_settled(fork: LocalCluster) -> bool:
    """Return whether nothing is due any more in a fork but what repeats for ever."""
    checkpoint = latest(fork.store.meta(CHECKPOINT))
    return (
        checkpoint is not None
        and checkpoint.is_settled(fork.clock.now())
        and (checkpoint.next_due(single=True) is None)
    )


def tried_again(
    fork: LocalCluster,
    end: datetime,
    done: Done | None,
    observe: Observe | None,
) -> LocalCluster | None:
    """Return a settled fork after one more try of what has failed so often that its back-off does
    not grow any more; None where nothing comes of it.

    Such tries count as repeating for ever, but after a change they may succeed: a quota was raised.

    :param observe: makes the function that is told of the writes of the try.
    """
    tries = [entry.due for entry in pending(fork) if entry.failures and entry.due]
    if not tries or max(tries) > end or (done is not None and done(fork)):
        return None
    attempt = fork.fork(is_prediction=True).with_faults(fork.settings.faults)
    if observe is not None:
        attempt = attempt.observed(observe(attempt))
    work(attempt, max(tries), done, settled=False)
    work(attempt, end, done)
    if attempt.timeline(after=fork.client.revision()):
        return attempt
    return None
