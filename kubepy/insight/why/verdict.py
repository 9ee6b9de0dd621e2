"""The verdict about an object: done, on its way or stuck, by running a fork of the cluster forward.

An object whose goal is not reached is *progressing* if the controllers of a fork bring it there, else *stuck*. What is
to blame is read off the cluster as it is now, if that shows the same cause as the end of the run; else off the end.
Each remedy is tried on a fork of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.errors import not_found
from kubepy.api.meta import Object
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import MANAGER_LOCK, OF_SERVER
from kubepy.insight import Finding
from kubepy.insight.prediction import predict
from kubepy.insight.why import DONE, PROGRESSING, STUCK, Next, Remedy, Why, goals, workloads
from kubepy.insight.why.scene import Diagnoses, Scene, Words, merged
from kubepy.runtime.checkpoint import CHECKPOINT, latest
from kubepy.storage import Key

MANY_PODS = 200  # in a cluster with more of them only the first remedy is tried
# For each kind first what keeps an object from going, then what refuses its pods, what keeps them from a node, what
# breaks their containers, and last what only says how far it is.
DIAGNOSES = merged((workloads.DIAGNOSES,))
NOTES = merged((workloads.NOTES,))  # of objects that are done
Run = Callable[[LocalCluster, Words], int]
"""Runs a command line on a cluster; returns its exit status."""


class Question(NamedTuple):
    """An object that is asked about.

    :ivar run: tries command lines on forks; None: remedies are not tried.
    :ivar reconciles: whether commands may run the controllers.
    :ivar namespace: the one that a command line without ``-n`` works in.
    """

    cluster: LocalCluster
    key: Key
    run: Run | None = None
    reconciles: bool = True
    namespace: str = "default"

    def scene(self, cluster: LocalCluster | None = None, diagnoses: Diagnoses = DIAGNOSES) -> Scene:
        """Return the scene of the cluster, or of a fork of it."""
        runs = is_run(self.cluster, self.reconciles)
        return Scene(cluster or self.cluster, diagnoses, reconciles=runs, namespace=self.namespace,
                     asked_at=self.cluster.clock.now())

    def is_done(self, cluster: LocalCluster, asked: Object) -> bool:
        """Return whether the object is done in a fork."""
        scene = Scene(cluster, DIAGNOSES)
        return goals.is_done(scene, scene.get(*self.key), asked)


def explain(question: Question) -> Why:
    """Find out how an object stands, and why. Raises NotFound."""
    scene = question.scene()
    asked = scene.get(*question.key)
    if asked is None:
        raise not_found(question.key.resource, question.key.name)
    remedies: tuple[Remedy, ...] = ()
    if goals.is_done(scene, asked, asked):
        state, finding = DONE, question.scene(diagnoses=NOTES).diagnose(asked) or up_to_date(scene, asked)
    else:
        prediction = predict(question.cluster, lambda fork: None, done=lambda fork: question.is_done(fork, asked))
        reaches = question.is_done(prediction.cluster, asked)
        at_first = scene.diagnose(asked)
        if reaches and scene.reconciles:
            state, finding = PROGRESSING, at_first or rolling_out(scene, asked)
        else:
            at_end = question.scene(prediction.cluster)
            state, finding = STUCK, _at_end(at_end, question.key, at_first) or not_there(scene, asked)
            remedies = try_remedies(question, asked, finding)
    return Why(question.key, state, finding.cause, finding.chain, remedies, next_for(scene, asked, finding), scene.now)


def _at_end(scene: Scene, key: Key, at_first: Finding | None) -> Finding | None:
    """Return the finding about an object that is stuck: that of now, if the end of the run shows the same cause."""
    obj = scene.get(*key)
    at_end = scene.diagnose(obj) if obj is not None else None
    return at_first if at_end is None or (at_first is not None and at_first.cause == at_end.cause) else at_end


def is_run(cluster: LocalCluster, reconciles: bool) -> bool:
    """Return whether anybody runs the controllers: commands, or the process that holds their lock."""
    if cluster.store.holder(MANAGER_LOCK) is None:
        return reconciles
    text = cluster.store.meta(CHECKPOINT)
    return not text or not set(json.loads(text)["reconcilers"][:-1]) <= set(OF_SERVER)


# --- what there is to say in any case -----------------------------------------------------------------------------


def up_to_date(scene: Scene, obj: Object) -> Finding:
    return scene.finding("up-to-date", scene.link(obj, "", "it is where it should be"))


def rolling_out(scene: Scene, obj: Object) -> Finding:
    return scene.finding("rolling-out", scene.link(obj, "", "the controllers bring it there by themselves"))


def not_there(scene: Scene, obj: Object) -> Finding:
    return scene.finding("not-ready", scene.link(obj, "status", "nothing brings it further"))


# --- remedies -----------------------------------------------------------------------------------------------------


def try_remedies(question: Question, asked: Object, finding: Finding) -> tuple[Remedy, ...]:
    """Try the remedies of a finding; those that help come first."""
    pods = len(question.scene().list("pods"))
    tried = len(finding.remedies) if pods <= MANY_PODS else 1
    remedies = [try_remedy(question, asked, words) if question.run and number < tried else Remedy(words)
                for number, words in enumerate(finding.remedies)]
    return tuple(sorted(remedies, key=lambda remedy: not remedy.proven))


def try_remedy(question: Question, asked: Object, words: Words) -> Remedy:
    """Run a command line on a fork, and see whether the object gets there."""
    status = 1

    def act(fork: LocalCluster) -> None:
        nonlocal status
        assert question.run is not None
        status = question.run(fork, words)

    prediction = predict(question.cluster, act, done=lambda fork: status != 0 or question.is_done(fork, asked))
    if status != 0 or not question.is_done(prediction.cluster, asked):
        return Remedy(words)
    return Remedy(words, True, (prediction.cluster.clock.now() - prediction.started).total_seconds())


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
