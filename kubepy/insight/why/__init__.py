"""Why an object is not where it should be: the answer of ``kubepy why``.

    scene       one cluster at one moment, as diagnoses read it; the form of a diagnosis
    causes      the closed list of causes
    goals       the state in which an object of a kind is done
    verdict     done, progressing or stuck; the finding; remedies, tried on forks; what happens next
    deletions   what holds objects that are being deleted: containers, dead nodes, finalizers, dependents
    jobs        Jobs that fail or wait, CronJobs that start none
    disruption  nodes that are not ready, and drains against budgets
    intent      changes that do nothing, or that an autoscaler undoes
    services    Services behind which no pod is ready
    workloads   causes of workloads: the way down to the pod that holds them up

A diagnosis returns a :class:`~kubepy.insight.Finding`: its cause, the chain from the object to the leaf, the commands
that might help. Each module of causes ends in its tables, ``DIAGNOSES`` and for objects that are done ``NOTES``, which
``verdict`` puts together. To add a cause: its line in ``causes``, its diagnosis in a table, its page in docs/why/,
which is its test.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_duration
from kubepy.insight import Link
from kubepy.storage import Key

DONE, PROGRESSING, STUCK = "done", "progressing", "stuck"


class Remedy(NamedTuple):
    """A command line that might bring the object to done.

    :ivar proven: it did so on a fork, so many seconds later.
    """

    command: tuple[str, ...]
    proven: bool = False
    finishes_after: float | None = None


class Next(NamedTuple):
    """The next thing that a controller does by itself about the object, or one that it waits for."""

    at: datetime
    controller: str
    key: Key


class Why(NamedTuple):
    """The answer of ``why`` about one object.

    :ivar state: ``done``, ``progressing`` or ``stuck``.
    :ivar now: the moment of the question.
    """

    key: Key
    state: str
    cause: str
    chain: tuple[Link, ...]
    remedies: tuple[Remedy, ...]
    next: Next | None
    now: datetime


def why_document(why: Why, program: str = "kubepy") -> Object:
    """Return the answer as JSON data; the commands of its remedies begin with the program's name."""
    upcoming = why.next and {
        "at": format_exact_time(why.next.at), "after": format_duration((why.next.at - why.now).total_seconds()),
        "controller": why.next.controller, "object": why.next.key._asdict()}
    return {
        "kind": "Why", "object": why.key._asdict(), "state": why.state, "cause": why.cause,
        "chain": [{"object": link.key._asdict(), "field": link.field, "value": link.value, "text": link.text}
                  for link in why.chain],
        "remedies": [{"command": [*program.split(), *command], "proven": proven,
                      "finishesAfter": None if after is None else format_duration(after)}
                     for command, proven, after in why.remedies],
        "next": upcoming or None,
    }
