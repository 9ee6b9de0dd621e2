"""The verdict about an object: done, on its way or stuck, by running a fork of the cluster forward.

An object whose goal is not reached is *progressing* if the controllers of a fork bring it there,
else *stuck*. What is to blame is read off the cluster as it is now, if that shows the same cause as
the end of the run; else off the end. Each remedy is tried on a fork of its own; where none
suffices, a sequence of them is looked for.
"""

from __future__ import annotations

from kubepy.api.errors import not_found
from kubepy.api.meta import Object, controller_of, is_being_deleted, status_of, uid_of
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight import Finding
from kubepy.insight.prediction import release
from kubepy.insight.why import (
    DONE,
    PROGRESSING,
    STUCK,
    Next,
    RemedySequence,
    RemedyStep,
    Why,
    generic,
    goals,
    workloads,
)
from kubepy.insight.why.endings import as_of_now, at_end
from kubepy.insight.why.forward import run_forward, run_to_contest
from kubepy.insight.why.question import DIAGNOSES, NOTES, Question, Run
from kubepy.insight.why.scene import Scene
from kubepy.insight.why.sequences import SequenceSearch, sequence_of_one
from kubepy.insight.why.trials import remedies_of, try_alone, try_remedies
from kubepy.runtime.checkpoint import CHECKPOINT, latest
from kubepy.storage import Key

__all__ = ["DIAGNOSES", "Question", "Run", "answer", "explain"]


def explain(question: Question) -> Why:
    """Find out how an object stands, and why. Raises NotFound."""
    question = question.of_fork()
    try:
        return answer(question)
    finally:
        release(question.cluster)


def answer(question: Question) -> Why:
    """Find out how an object stands, and why, on forks of the cluster of the question. Raises
    NotFound."""
    scene = question.scene()
    asked = scene.get(*question.key)
    if asked is None:
        raise not_found(question.key.resource, question.key.name)
    if goals.is_done(scene, asked, asked):
        end = run_to_contest(question, scene, asked)
        if end is None:
            return note(question, scene, asked)
        question = question._replace(is_contested=True)
        blamed, _ = at_end(question.scene(end), question.key, None)
        finding = as_of_now(scene, blamed or generic.not_there(scene, asked))
        return stuck(question, scene, asked, finding, end)

    end, reaches = run_forward(question, scene, asked)
    scene.is_stuck = not reaches
    at_first = scene.diagnose(asked)
    reaches = reaches or _is_replaced(question, end, asked, at_first)
    if reaches and scene.reconciles:
        return why_of(
            question, scene, asked, PROGRESSING, at_first or generic.rolling_out(scene, asked)
        )

    blamed, is_acted_on = at_end(question.scene(end), question.key, at_first)
    finding = as_of_now(scene, blamed or generic.not_there(scene, asked))
    if not scene.reconciles and (reaches or not is_acted_on):
        return no_controllers(question, scene, asked)
    return stuck(question, scene, asked, finding, end)


def stuck(
    question: Question, scene: Scene, asked: Object, finding: Finding, end: LocalCluster
) -> Why:
    """Say what holds up an object that is stuck, and try what may help.

    :param end: the cluster as it is in the end.
    """
    trials = try_remedies(question, asked, finding)
    sequence = sequence_of_one(finding, trials, question)
    if sequence is None and question.run is not None:
        sequence = SequenceSearch(question, asked, finding, end).run(trials)
    why = why_of(question, scene, asked, STUCK, finding)
    return why._replace(remedies=remedies_of(scene, finding, trials), sequence=sequence)


def note(question: Question, scene: Scene, asked: Object) -> Why:
    """Say of an object that is done what there is to say."""
    finding = question.scene(diagnoses=NOTES).diagnose(asked) or generic.up_to_date(scene, asked)
    trials = try_remedies(question, asked, finding, is_note=True)
    return why_of(question, scene, asked, DONE, finding)._replace(
        remedies=remedies_of(scene, finding, trials)
    )


def why_of(question: Question, scene: Scene, asked: Object, state: str, finding: Finding) -> Why:
    """Return the answer of a finding, without remedies."""
    return Why(
        question.key,
        state,
        finding.cause,
        finding.chain,
        (),
        next_for(scene, asked, finding),
        scene.now,
    )


def _is_replaced(
    question: Question, end: LocalCluster, asked: Object, finding: Finding | None
) -> bool:
    """Return whether a pod that only takes its time, or whose node is dead, makes room for another
    in the end."""
    obj = question.scene(end).get(*question.key)
    is_gone = (obj is None or uid_of(obj) != uid_of(asked)) and not is_being_deleted(asked)
    return (
        is_gone
        and controller_of(asked) is not None
        and (finding is None or finding.cause in (*workloads.WEAK, "dead-node"))
    )


def no_controllers(question: Question, scene: Scene, obj: Object) -> Why:
    """Say that nobody runs the controllers, and which command runs them until the object is
    done."""
    field = "status.observedGeneration" if status_of(obj).get("observedGeneration") else "status"
    if question.is_held:
        text = (
            "the process that holds the lock of the controllers runs only kubelets (serve "
            "--controllers=off)"
        )
    else:
        text = "no process runs the controllers, and no command does (reconcile: never)"

    finding = scene.finding("no-controllers", scene.link(obj, field, text))
    why = why_of(question, scene, obj, STUCK, finding)
    if question.is_held or question.run is None:
        return why
    tried = [
        try_alone(question, obj, ("controller", flag)) for flag in ("--once", "--until-settled")
    ]
    remedies = tuple(remedy for remedy in tried if remedy.proven)[:1]
    sequence = None
    if remedies:
        [remedy] = remedies
        step = RemedyStep(remedy.command, finding.cause, remedy.kind)
        sequence = RemedySequence((step,), remedy.finishes_after or 0.0)

    return why._replace(remedies=remedies, sequence=sequence)


# --- what happens next ----------------------------------------------------------------------------


def next_for(scene: Scene, obj: Object, finding: Finding) -> Next | None:
    """Return the next work of a controller on the object, on what it owns, or on an object of the
    chain."""
    checkpoint = latest(scene.cluster.store.meta(CHECKPOINT)) if scene.reconciles else None
    concerned = {scene.key(obj), *(link.key for link in finding.chain)}
    if checkpoint:
        pending = [entry for entry in checkpoint.pending if entry.due and entry.due > scene.now]
    else:
        pending = []
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
