"""Running a cluster forward: the controllers of a fork work until an object is done, or it is clear
that it never is.

A run has a budget. One that is cut off shows that the object does not get there, unless it has come
on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Set
from typing import TYPE_CHECKING

from kubepy.api.meta import Object, annotations_of, is_being_deleted
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal, node_name
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight.prediction import predict
from kubepy.insight.why import contention, goals, workloads
from kubepy.insight.why.budget import Budget, BudgetSpent, most_of_run
from kubepy.insight.why.remedies import pods_of
from kubepy.insight.why.scene import Scene, condition_status
from kubepy.runtime.checkpoint import CHECKPOINT, latest
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.insight.why.question import Question

# in a cluster with more of them not all of them go on at first, and not all remedies are tried
MANY_PODS = 200
# of the controllers, where there are many pods: an object that has come on by then is on its way
MOST_WRITES = 2000
MOST_WRITES_OF_FEW = 300  # the same while most pods lie still
MOST_MOMENTS = 20  # after which an object that has come on is on its way
MOST_IDLE = 5  # moments at the end of a run in which the object has not come on
MOST_OF_ROUNDS = 6_000  # writes in which it must show that an object never comes to rest
OF_EACH_LOOK = 10  # of many pods that look alike, so many go on while a fork runs forward
KUBELET = "kubelet"


class RunForward:
    """What happens to the object while the controllers of a fork work.

    :param enough: writes of the controllers; from then on it is enough if the object has come on.
    :ivar has_moved: a pod has become ready, has ended or has gone.
    :ivar is_enough: the object has come on after so many moments or writes, still does, and no pod
        has broken again.
    """

    def __init__(self, question: Question, asked: Object, enough: float) -> None:
        self._question = question
        self._asked = asked
        self._budget = Budget(most_of_run(asked), question.budget)
        self._enough = enough
        self._begun = self._best = goals.progress(asked)
        self._writes = self._moments = self._best_moment = 0
        self._ready: dict[Key, bool] = {}  # pods that have become ready, and whether they still are
        self.has_moved = self.is_enough = False
        self.fork: LocalCluster | None = None

    def predict(self, still: Set[Key] = frozenset()) -> LocalCluster:
        """Let the controllers of a fork work until the run is over; return the fork as it is then.

        :param still: pods that lie still: the kubelets do nothing about them, and the run may end
            early.
        """
        try:
            return predict(
                self._question.cluster,
                lambda fork: self._begin(fork, still),
                observe=lambda fork: self._note,
                done=self._is_over_early if still else self._is_over,
            ).cluster
        except BudgetSpent:
            assert self.fork is not None
            return self.fork

    def _begin(self, fork: LocalCluster, still: Set[Key]) -> None:
        if still:
            _lay_still(fork, still)
        self.fork = fork

    def _note(self, key: Key, obj: Object | None, user: Object) -> None:
        self._writes += 1
        self._budget.count_write(key, obj, user)
        if key.resource == "pods" and obj is not None and not is_being_deleted(obj):
            is_ready = is_pod_terminal(obj) or is_pod_ready(obj)
            self.has_moved |= is_ready
            if is_ready or key in self._ready:
                self._ready[key] = is_ready
        elif key.resource == "pods":
            self.has_moved = True
            self._ready.pop(key, None)

    def _is_over(self, fork: LocalCluster) -> bool:
        """Return whether the run need not go on; it is asked when the work of a moment is done."""
        self._moments += 1
        self._budget.count_moment()
        obj = self._question.scene(fork).get(*self._question.key)
        progress = goals.progress(obj) if obj is not None else None
        if progress is not None and self._best is not None and progress > self._best:
            self._best = progress
            self._best_moment = self._moments
        is_long = self._moments > MOST_MOMENTS or self._writes > self._enough
        self.is_enough = (
            is_long and self._comes_on() and self._moments - self._best_moment < MOST_IDLE
        )
        return (
            self.is_enough
            or self._question.is_done(fork, self._asked)
            or goals.has_failed(obj)
            or self._budget.is_spent
        )

    def _is_over_early(self, fork: LocalCluster) -> bool:
        """Return whether the run of a few pods shows all that it can show."""
        return self._is_over(fork) or (
            self.has_moved and (self._begun is None or self._writes > self._enough)
        )

    def _comes_on(self) -> bool:
        """Return whether the object is further than at the beginning, and no pod that became ready
        has broken."""
        return self._best != self._begun and all(self._ready.values())

    def reaches(self, end: LocalCluster, still: Set[Key]) -> bool | None:
        """Return whether a run in which only a few pods went on shows that the object gets there,
        or that it does not; None: all of them have to go on.

        :param still: pods that lay still in it; each looks like some that did not.
        """
        scene = self._question.scene(end)
        obj = scene.get(*self._question.key)
        if self.is_enough or goals.is_done(scene, obj, self._asked):
            return True
        if goals.has_failed(obj) or not self.has_moved:
            return False
        if obj is None or not self._comes_on():
            return None
        own = sum(scene.key(pod) in still for pod in pods_of(scene, obj))
        return goals.is_done_with(scene, obj, own) or None


def run_forward(question: Question, scene: Scene, asked: Object) -> tuple[LocalCluster, bool]:
    """Let the controllers work on a fork; return it as it is in the end, and whether the object is
    done there.

    Where there are many pods, those that look alike first lie still but for a few of them: if none
    of these becomes ready or goes, neither would the others, and the object is stuck. If the object
    comes on with them, it gets there. Otherwise all of them go on, and a workload that has come on
    after so many moments, or writes, counts as one that gets there.
    """
    has_many = len(scene.list("pods")) > MANY_PODS
    if has_many and scene.settings.faults is None and (still := alike(scene) - {question.key}):
        run = RunForward(question, asked, MOST_WRITES_OF_FEW)
        end = run.predict(still)
        if (reaches := run.reaches(end, still)) is not None:
            return end, reaches
    run = RunForward(question, asked, MOST_WRITES if has_many else math.inf)
    end = run.predict()
    return end, run.is_enough or question.is_done(end, asked, or_goes_on=True)


def run_to_contest(question: Question, scene: Scene, asked: Object) -> LocalCluster | None:
    """Return a fork in which it is clear that controllers undo each other's work on an object that
    is done now, again and again; None where they do not.

    They are let work only where there is a sign of it: autoscalers of one workload, pods that are
    to be evicted.
    """
    if not scene.reconciles or not contention.may_be_contested(scene, asked):
        return None
    if contention.is_contested(scene, asked):
        return question.cluster
    budget = Budget(MOST_OF_ROUNDS, question.budget)

    def is_over(fork: LocalCluster) -> bool:
        budget.count_moment()
        return budget.is_spent

    try:
        end = predict(
            question.cluster,
            lambda fork: None,
            observe=lambda fork: budget.count_write,
            done=is_over,
        ).cluster
    except BudgetSpent:
        return None

    end_scene = question.scene(end)
    obj = end_scene.get(*question.key)
    return end if obj is not None and contention.is_contested(end_scene, obj) else None


def alike(scene: Scene) -> set[Key]:
    """Return the pods that wait for the kubelet, but for a few of each look."""
    checkpoint = latest(scene.cluster.store.meta(CHECKPOINT))
    looks: dict[tuple[object, ...], int] = {}
    still = set()
    for entry in checkpoint.pending if checkpoint else ():
        is_pod = entry.reconciler == KUBELET and entry.due and entry.key.resource == "pods"
        if is_pod and (pod := scene.get(*entry.key)) is not None:
            node = scene.get("nodes", "", node_name(pod))
            look = (
                *workloads.appearance(scene, pod),
                entry.failures,
                _own_annotations(pod),
                _own_annotations(node) if node else None,
                condition_status(node, "Ready") if node else "",
            )
            looks[look] = looks.get(look, 0) + 1
            if looks[look] > OF_EACH_LOOK:
                still.add(entry.key)

    return still


def _own_annotations(obj: Object) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted(item for item in annotations_of(obj).items() if item[0].startswith("kubepy.dev/"))
    )


def _lay_still(fork: LocalCluster, still: Set[Key]) -> None:
    """Drop pods from what the kubelets of a fork have to do; one that somebody changes is taken up
    again."""
    text = fork.store.meta(CHECKPOINT)
    record = json.loads(text) if text else {"pending": []}
    record["pending"] = [
        entry for entry in record["pending"] if entry[0] != KUBELET or Key(*entry[1:4]) not in still
    ]
    if text:
        fork.store.set_values({CHECKPOINT: json.dumps(record)})
