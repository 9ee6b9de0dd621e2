"""Why an object is not where it should be: the answer of ``kubepy why``.

    behaviour   what makes the containers of a pod do what they do: another question
    scene       one cluster at one moment, as diagnoses read it; the form of a diagnosis
    causes      the closed list of causes
    goals       the state in which an object of a kind is done
    verdict     done, progressing or stuck; the finding; what happens next
    question    an object that is asked about; the tables of all diagnoses
    forward     running a fork forward, to see whether the object gets there
    endings     the finding about a stuck object, of now or of the end
    trials      remedies, tried on forks
    sequences   several remedies, where one does not suffice
    marks       remedies that are real, only change the simulation, or destroy something
    budget      how much forks may do for one answer
    deletions   what holds objects that are being deleted: containers, dead nodes, finalizers, dependents
    jobs        Jobs that fail or wait, CronJobs that start none
    contention  controllers that undo each other's work
    disruption  nodes that are not ready, and drains against budgets
    intent      changes that do nothing, or that an autoscaler undoes
    services    Services behind which no pod is ready
    workloads   causes of workloads: the way down to the pod that holds them up

A diagnosis returns a :class:`~kubepy.insight.Finding`: its cause, the chain from the object to the
leaf, the commands that might help. Each module of causes ends in its tables, ``DIAGNOSES`` and for
objects that are done ``NOTES``, which ``verdict`` puts together. To add a cause: its line in
``causes``, its diagnosis in a table, its page in docs/why/, which is its test.
"""  # noqa: E501

from __future__ import annotations

import shlex
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_duration
from kubepy.insight import Link, stdin_of
from kubepy.storage import Key

DONE = "done"
PROGRESSING = "progressing"
STUCK = "stuck"
REAL, SIMULATED, DESTRUCTIVE = (
    "real",
    "simulated",
    "destructive",
)  # kinds of remedies, see ``marks``


class Remedy(NamedTuple):
    """A command line that might bring the object to done.

    :ivar proven: it did so on a fork, so many seconds later.
    :ivar kind: ``real``, ``simulated`` or ``destructive``, see :mod:`kubepy.insight.why.marks`.
    """

    command: tuple[str, ...]
    proven: bool = False
    finishes_after: float | None = None
    kind: str = REAL


class RemedyStep(NamedTuple):
    """A command line of a sequence.

    :ivar cause: what it is against.
    :ivar kind: as of a :class:`Remedy`.
    :ivar after: seconds after the beginning of the sequence before which it can not be run.
    """

    command: tuple[str, ...]
    cause: str
    kind: str
    after: float = 0.0


class RemedySequence(NamedTuple):
    """Command lines that together brought the object to done on a fork, ``finishes_after`` seconds
    later."""

    steps: tuple[RemedyStep, ...]
    finishes_after: float


class Next(NamedTuple):
    """The next thing that a controller does by itself about the object, or one that it waits
    for."""

    at: datetime
    controller: str
    key: Key


class Why(NamedTuple):
    """The answer of ``why`` about one object.

    :ivar state: ``done``, ``progressing`` or ``stuck``.
    :ivar remedies: command lines that were tried alone.
    :ivar now: the moment of the question.
    :ivar sequence: what brings a stuck object to done; None where nothing was found that does.
    """

    key: Key
    state: str
    cause: str
    chain: tuple[Link, ...]
    remedies: tuple[Remedy, ...]
    next: Next | None
    now: datetime
    sequence: RemedySequence | None = None


def why_document(why: Why, program: str = "kubepy") -> Object:
    """Return the answer as JSON data; the commands of its remedies begin with the program's
    name."""
    return {
        "kind": "Why",
        "object": why.key._asdict(),
        "state": why.state,
        "cause": why.cause,
        "chain": [link_document(link) for link in why.chain],
        "remedies": [_remedy_document(remedy, program) for remedy in why.remedies],
        "sequence": why.sequence and _sequence_document(why.sequence, program),
        "next": why.next and _next_document(why.next, why.now),
    }


def link_document(link: Link) -> Object:
    """Return a link of a chain as JSON data."""
    return {
        "object": link.key._asdict(),
        "field": link.field,
        "value": link.value,
        "text": link.text,
    }


def _remedy_document(remedy: Remedy, program: str) -> Object:
    after = remedy.finishes_after
    return {
        **_command_document(remedy.command, program),
        "kind": remedy.kind,
        "proven": remedy.proven,
        "finishesAfter": None if after is None else format_duration(after),
    }


def _sequence_document(sequence: RemedySequence, program: str) -> Object:
    steps = [
        {
            **_command_document(step.command, program),
            "cause": step.cause,
            "kind": step.kind,
            "after": format_duration(step.after),
        }
        for step in sequence.steps
    ]
    return {"steps": steps, "finishesAfter": format_duration(sequence.finishes_after)}


def _command_document(words: tuple[str, ...], program: str) -> Object:
    """Return a command line, and what it reads from standard input, where it does."""
    stdin = stdin_of(words)
    return {"command": [*shlex.split(program), *words], **({"stdin": stdin} if stdin else {})}


def _next_document(upcoming: Next, now: datetime) -> Object:
    return {
        "at": format_exact_time(upcoming.at),
        "after": format_duration((upcoming.at - now).total_seconds()),
        "controller": upcoming.controller,
        "object": upcoming.key._asdict(),
    }
