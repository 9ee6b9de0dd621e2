"""The verdict about an object: done, on its way or stuck, by running a fork of the cluster forward.

An object whose goal is not reached is *progressing* if the controllers of a fork bring it there, else *stuck*. What is
to blame is read off the cluster as it is now, if that shows the same cause as the end of the run; else off the end.
Each remedy is tried on a fork of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Set
from typing import NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.api.errors import not_found
from kubepy.api.meta import Object, annotations_of, controller_of, is_being_deleted, uid_of
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal, node_name
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import MANAGER_LOCK, OF_SERVER
from kubepy.insight import Finding, Link
from kubepy.insight.prediction import predict, release
from kubepy.insight.why import (
    DONE,
    PROGRESSING,
    STUCK,
    Next,
    Remedy,
    Why,
    containers,
    deletions,
    disruption,
    generic,
    goals,
    intent,
    jobs,
    references,
    refusals,
    scheduling,
    services,
    volumes,
    workloads,
)
from kubepy.insight.why.remedies import pods_of
from kubepy.insight.why.scene import Diagnoses, Scene, Words, condition_status, merged, value_at
from kubepy.runtime.checkpoint import CHECKPOINT, latest
from kubepy.storage import Key

MANY_PODS = 200  # in a cluster with more of them not all remedies are tried, or not to their end
MOST_WRITES = 2000  # of the controllers: for a run forward, for all remedies together
MOST_MOMENTS = 20  # in a run forward
MOST_IDLE = 5  # moments at its end in which the object has not come on
MOST_WAITING = 600  # pods that are not where they should be: with more of them remedies may write only a tenth
MOST_WRITES_OF_FEW = 300  # the same while most pods lie still
OF_EACH_LOOK = 10  # of many pods that look alike, so many go on while a fork runs forward
KUBELET = "kubelet"
# For each kind first what keeps an object from going, then what refuses its pods, what keeps them from a node, what
# breaks their containers, and last what only says how far it is.
TABLES = (deletions, jobs, disruption, intent, services, references, refusals, scheduling, volumes, containers, generic,
          workloads)
DIAGNOSES = merged([*(module.DIAGNOSES for module in TABLES), jobs.LAST_DIAGNOSES])
# Of objects that are done.
NOTES = merged([*(getattr(module, "NOTES", {}) for module in TABLES), intent.LAST_NOTES])
Run = Callable[[LocalCluster, Words], int]
"""Runs a command line on a cluster; returns its exit status."""


class Question(NamedTuple):
    """An object that is asked about.

    :ivar run: tries command lines on forks; None: remedies are not tried.
    :ivar reconciles: whether commands may run the controllers.
    :ivar namespace: the one that a command line without ``-n`` works in.
    :ivar is_held: another process holds the lock of the controllers.
    """

    cluster: LocalCluster
    key: Key
    run: Run | None = None
    reconciles: bool = True
    namespace: str = "default"
    is_held: bool = False

    def of_fork(self) -> Question:
        """Return the same question about a fork: what is read there once is read for all forks of it."""
        is_held = self.cluster.store.holder(MANAGER_LOCK) is not None
        return self._replace(cluster=self.cluster.fork(), is_held=is_held,
                             reconciles=is_run(self.cluster) if is_held else self.reconciles)

    def scene(self, cluster: LocalCluster | None = None, diagnoses: Diagnoses = DIAGNOSES) -> Scene:
        """Return the scene of the cluster, or of a fork of it."""
        return Scene(cluster or self.cluster, diagnoses, reconciles=self.reconciles, namespace=self.namespace,
                     asked_at=self.cluster.clock.now())

    def is_done(self, cluster: LocalCluster, asked: Object, *, or_goes_on: bool = False) -> bool:
        """Return whether the object is done in a fork, or is on its way there though nothing is due."""
        scene = Scene(cluster, DIAGNOSES)
        obj = scene.get(*self.key)
        return goals.is_done(scene, obj, asked) or (or_goes_on and goals.goes_on(scene, obj))


def explain(question: Question) -> Why:
    """Find out how an object stands, and why. Raises NotFound."""
    question = question.of_fork()
    try:
        return answer(question)
    finally:
        release(question.cluster)


def answer(question: Question) -> Why:
    """Find out how an object stands, and why, on forks of the cluster of the question. Raises NotFound."""
    scene = question.scene()
    asked = scene.get(*question.key)
    if asked is None:
        raise not_found(question.key.resource, question.key.name)
    remedies: tuple[Remedy, ...] = ()
    if goals.is_done(scene, asked, asked):
        state, finding = DONE, question.scene(diagnoses=NOTES).diagnose(asked) or generic.up_to_date(scene, asked)
        remedies = try_remedies(question, asked, finding, is_note=True)
    else:
        end, reaches = run_forward(question, scene, asked)
        scene.is_stuck = not reaches
        at_first = scene.diagnose(asked)
        reaches = reaches or _is_replaced(question, end, asked, at_first)
        if reaches and scene.reconciles:
            state, finding = PROGRESSING, at_first or generic.rolling_out(scene, asked)
        else:
            blamed, is_acted_on = _at_end(question.scene(end), question.key, at_first)
            state, finding = STUCK, _as_of_now(scene, blamed or generic.not_there(scene, asked))
            if scene.reconciles or (is_acted_on and not reaches):
                remedies = try_remedies(question, asked, finding)
            else:
                finding, remedies = no_controllers(question, scene, asked)
    return Why(question.key, state, finding.cause, finding.chain, remedies, next_for(scene, asked, finding), scene.now)


def _is_replaced(question: Question, end: LocalCluster, asked: Object, finding: Finding | None) -> bool:
    """Return whether a pod that only takes its time, or whose node is dead, makes room for another in the end."""
    obj = question.scene(end).get(*question.key)
    is_gone = (obj is None or uid_of(obj) != uid_of(asked)) and not is_being_deleted(asked)
    return is_gone and controller_of(asked) is not None and (
        finding is None or finding.cause in (*workloads.WEAK, "dead-node"))


def _at_end(scene: Scene, key: Key, at_first: Finding | None) -> tuple[Finding | None, bool]:
    """Return the finding about an object that is stuck, and whether the cluster shows it now, not only in the end."""
    scene.is_stuck = True
    obj = scene.get(*key)
    at_end = scene.diagnose(obj) if obj is not None else None
    if at_end is None or at_first is None:
        return at_first or at_end, at_first is not None
    is_same = at_first.cause == at_end.cause
    # A Job that misses its deadline may do so because its pods do not run.
    is_root = at_end.cause == "job-deadline" and at_first.cause not in (*workloads.WEAK, "job-running")
    # The way may have ended too early at first, at an object that had yet to be made or to fail.
    is_whole = len({link.key for link in at_first.chain}) >= len({link.key for link in at_end.chain}) and (
        len(at_first.remedies) >= len(at_end.remedies))
    return (at_first if is_root or (is_same and is_whole) else at_end), is_same or is_root


def _as_of_now(scene: Scene, finding: Finding) -> Finding:
    """Mark the links that show what will be, and not what is, unless they say when that is."""
    def is_shown(link: Link) -> bool:
        obj = scene.get(*link.key)
        return value_at(obj, link.field) == link.value if link.field else obj is not None or not link.value

    return finding._replace(chain=tuple(
        link if is_shown(link) or link.says_when else link._replace(text=f"{link.text} (later)")
        for link in finding.chain))


# --- running forward ----------------------------------------------------------------------------------------------


class RunForward:
    """What happens to the object while the controllers of a fork work.

    :param most_writes: of the controllers; from then on it is enough if the object has come on.
    :ivar has_moved: a pod has become ready, has ended or has gone.
    :ivar is_enough: the object has come on after so many moments or writes, still does, and no pod has broken again.
    """

    def __init__(self, question: Question, asked: Object, most_writes: float) -> None:
        self._question, self._asked, self._budget = question, asked, Budget(most_writes)
        self._begun = self._best = goals.progress(asked)
        self._moments = self._best_moment = 0
        self._ready: dict[Key, bool] = {}  # pods that have become ready, and whether they still are
        self.has_moved = self.is_enough = False

    def watch(self, fork: LocalCluster, still: Set[Key] = frozenset()) -> None:
        """Note what is written on a fork from now on.

        :param still: pods that lie still: the kubelets do nothing about them.
        """
        if still:
            _lay_still(fork, still)
        fork.client.on_write = self._note

    def _note(self, key: Key, obj: Object | None) -> None:
        self._budget.count(key, obj)
        if key.resource == "pods" and obj is not None and not is_being_deleted(obj):
            is_ready = is_pod_terminal(obj) or is_pod_ready(obj)
            self.has_moved |= is_ready
            if is_ready or key in self._ready:
                self._ready[key] = is_ready
        elif key.resource == "pods":
            self.has_moved = True
            self._ready.pop(key, None)

    def is_over(self, fork: LocalCluster) -> bool:
        """Return whether the run need not go on; it is asked when the work of a moment is done."""
        self._moments += 1
        obj = self._question.scene(fork).get(*self._question.key)
        progress = goals.progress(obj) if obj is not None else None
        if progress is not None and self._best is not None and progress > self._best:
            self._best, self._best_moment = progress, self._moments
        self.is_enough = (self._moments > MOST_MOMENTS or self._budget.left < 0) and self._comes_on() and (
            self._moments - self._best_moment < MOST_IDLE)
        return self.is_enough or self._question.is_done(fork, self._asked) or goals.has_failed(obj)

    def is_over_early(self, fork: LocalCluster) -> bool:
        """Return whether the run of a few pods shows all that it can show."""
        return self.is_over(fork) or (self.has_moved and (self._begun is None or self._budget.left < 0))

    def _comes_on(self) -> bool:
        """Return whether the object is further than at the beginning, and no pod that became ready has broken."""
        return self._best != self._begun and all(self._ready.values())

    def reaches(self, end: LocalCluster, still: Set[Key]) -> bool | None:
        """Return whether a run in which only a few pods went on shows that the object gets there, or that it does not;
        None: all of them have to go on.

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
    """Let the controllers work on a fork; return it as it is in the end, and whether the object is done there.

    Where there are many pods, those that look alike first lie still but for a few of them: if none of these becomes
    ready or goes, neither would the others, and the object is stuck. If the object comes on with them, it gets there.
    Otherwise all of them go on, and a workload that has come on after so many moments, or writes, counts as one that
    gets there.
    """
    has_many = len(scene.list("pods")) > MANY_PODS
    if has_many and scene.settings.faults is None and (still := alike(scene) - {question.key}):
        run = RunForward(question, asked, MOST_WRITES_OF_FEW)
        end = predict(question.cluster, lambda fork: run.watch(fork, still), done=run.is_over_early).cluster
        if (reaches := run.reaches(end, still)) is not None:
            return end, reaches
    run = RunForward(question, asked, MOST_WRITES if has_many else math.inf)
    end = predict(question.cluster, run.watch, done=run.is_over).cluster
    return end, run.is_enough or question.is_done(end, asked, or_goes_on=True)


def alike(scene: Scene) -> set[Key]:
    """Return the pods that wait for the kubelet, but for a few of each look."""
    checkpoint = latest(scene.cluster.store.meta(CHECKPOINT))
    looks: dict[tuple[object, ...], int] = {}
    still = set()
    for entry in checkpoint.pending if checkpoint else ():
        is_pod = entry.reconciler == KUBELET and entry.due and entry.key.resource == "pods"
        if is_pod and (pod := scene.get(*entry.key)) is not None:
            node = scene.get("nodes", "", node_name(pod))
            look = (*workloads.appearance(scene, pod), entry.failures, _own_annotations(pod),
                    _own_annotations(node) if node else None, condition_status(node, "Ready") if node else "")
            looks[look] = looks.get(look, 0) + 1
            if looks[look] > OF_EACH_LOOK:
                still.add(entry.key)
    return still


def _own_annotations(obj: Object) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in annotations_of(obj).items() if item[0].startswith("kubepy.dev/")))


def _lay_still(fork: LocalCluster, still: Set[Key]) -> None:
    """Drop pods from what the kubelets of a fork have to do; one that somebody changes is taken up again."""
    text = fork.store.meta(CHECKPOINT)
    record = json.loads(text) if text else {"pending": []}
    record["pending"] = [entry for entry in record["pending"] if entry[0] != KUBELET or Key(*entry[1:4]) not in still]
    if text:
        fork.store.set_meta(CHECKPOINT, json.dumps(record))


def _settled_pods(scene: Scene) -> tuple[int, int]:
    """Return how many pods there are, and how many of them are where they should be."""
    pods = scene.list("pods")
    return len(pods), sum(goals.pod(scene, pod) for pod in pods)


def is_run(cluster: LocalCluster) -> bool:
    """Return whether the process that holds the lock of the controllers runs all of them, not only the kubelets."""
    text = cluster.store.meta(CHECKPOINT)
    return not text or not set(json.loads(text)["reconcilers"][:-1]) <= set(OF_SERVER)


def no_controllers(question: Question, scene: Scene, obj: Object) -> tuple[Finding, tuple[Remedy, ...]]:
    """Say that nobody runs the controllers, and which command runs them until the object is done."""
    field = "status.observedGeneration" if (obj.get("status") or {}).get("observedGeneration") else "status"
    if question.is_held:
        text = "the process that holds the lock of the controllers runs only kubelets (serve --controllers=off)"
    else:
        text = "no process runs the controllers, and no command does (reconcile: never)"
    finding = scene.finding("no-controllers", scene.link(obj, field, text))
    if question.is_held or question.run is None:
        return finding, ()
    remedies = [try_alone(question, obj, ("controller", flag)) for flag in ("--once", "--until-settled")]
    return finding, tuple(remedy for remedy in remedies if remedy.proven)[:1]


# --- remedies -----------------------------------------------------------------------------------------------------


def try_remedies(question: Question, asked: Object, finding: Finding, *, is_note: bool = False) -> tuple[Remedy, ...]:
    """Try the remedies of a finding; those that help come first.

    :param is_note: the object is done, so that a remedy has to change what there is to say about it.

    With many pods they are tried until one helps, or has written too much: what would make hundreds of pods anew is
    soon given up.
    """
    noted = finding.cause if is_note else ""
    pods, settled = _settled_pods(question.scene())
    has_many, costs_much = pods > MANY_PODS, is_note or pods - settled > MOST_WAITING
    budget = Budget((MOST_WRITES // 10 if costs_much else MOST_WRITES) if has_many else math.inf)
    remedies: list[Remedy] = []
    for words in finding.remedies:
        is_enough = question.run is None or (has_many and any(remedy.proven for remedy in remedies))
        remedy = None if is_enough else try_remedy(question, asked, words, noted=noted, budget=budget)
        remedies.append(remedy or Remedy(words))
    return tuple(sorted(remedies, key=lambda remedy: not remedy.proven))


class BudgetSpent(BaseException):
    """A remedy makes the controllers write more than is worth trying; no controller may take it for an error."""


class Budget:
    """The number of writes that are left for trying remedies. It depends on no clock: same cluster, same answer."""

    def __init__(self, writes: float) -> None:
        self.left = writes
        self.is_limited = writes < math.inf

    def count(self, key: Key, obj: Object | None) -> None:
        self.left -= 1

    def spend(self, key: Key, obj: Object | None) -> None:
        """Count a write. Raises BudgetSpent."""
        self.count(key, obj)
        if self.left < 0:
            raise BudgetSpent


def try_remedy(question: Question, asked: Object, words: Words, *, noted: str, budget: Budget) -> Remedy:
    """Run a command line on a fork, and see whether the object gets there. What is noted of a done object must be gone
    then, and nothing else be left to do.

    Unless there are many pods, the object must still be there when all has come to rest: it might get there for a
    moment only, between two crashes.
    """
    status, since = 1, None

    def helps(fork: LocalCluster) -> bool:
        note = question.scene(fork, NOTES).diagnose(asked_there) if noted and (
            asked_there := question.scene(fork).get(*question.key)) else None
        return question.is_done(fork, asked) and (note is None or (note.cause != noted and not note.remedies))

    def act(fork: LocalCluster) -> None:
        nonlocal status
        assert question.run is not None
        fork.client.on_write = budget.spend
        status = question.run(fork, words)

    def done(fork: LocalCluster) -> bool:
        nonlocal since
        since = (since or fork.clock.now()) if status == 0 and helps(fork) else None
        return status != 0 or (since is not None and (budget.is_limited or is_being_deleted(asked)))

    try:
        prediction = predict(question.cluster, act, done=done)
    except BudgetSpent:
        return Remedy(words)
    if status != 0 or not helps(prediction.cluster):
        return Remedy(words)
    return Remedy(words, True, ((since or prediction.cluster.clock.now()) - prediction.started).total_seconds())


def try_alone(question: Question, asked: Object, words: Words) -> Remedy:
    """Run a command line on a fork, and see whether the object is there as soon as it ends."""
    fork = question.cluster.fork({"clock": format_exact_time(question.cluster.clock.now())}, is_prediction=True)
    started, run = fork.clock.now(), question.run
    if run is None or run(fork, words) != 0 or not question.is_done(fork, asked):
        return Remedy(words)
    return Remedy(words, True, (fork.clock.now() - started).total_seconds())


# --- what happens next --------------------------------------------------------------------------------------------


def next_for(scene: Scene, obj: Object, finding: Finding) -> Next | None:
    """Return the next work of a controller on the object, on what it owns, or on an object of the chain."""
    checkpoint = latest(scene.cluster.store.meta(CHECKPOINT)) if scene.reconciles else None
    concerned = {scene.key(obj), *(link.key for link in finding.chain)}
    pending = [entry for entry in checkpoint.pending if entry.due and entry.due > scene.now] if checkpoint else []
    for entry in sorted(pending, key=lambda entry: (entry.due or scene.now, entry.key)):
        if entry.due and _concerns(scene, entry.key, concerned):
            return Next(entry.due, entry.reconciler, entry.key)
    return None


def _concerns(scene: Scene, key: Key, concerned: set[Key]) -> bool:
    """Return whether a key is one of these objects, or of an object that one of them owns."""
    if key in concerned:
        return True
    obj = scene.get(*key)
    owner = scene.owner(obj) if obj is not None else None
    return owner is not None and _concerns(scene, scene.key(owner), concerned)
