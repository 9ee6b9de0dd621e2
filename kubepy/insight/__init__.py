"""Insight: what will happen (``plan``), why something does not (``why``), and what did
(``timeline``).

All three speak of one model, which is defined here. A :class:`Step` is what one object did at one
moment; a :class:`Timeline` has the steps between two moments, and the :class:`Course` of each
workload: its numbers after each step, and the bounds that its spec and its budgets set at that
moment. The timeline of what happened is read from the journal that storage keeps (``timeline``);
that of a plan is the same, read from a fork on which the controllers have worked (``prediction``).
``why`` finds out why an object is not where it should be. Nothing here writes to the cluster that
is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kubepy.storage import Key


class Step(NamedTuple):
    """What one object did at one moment. Fields that do not apply are "".

    :ivar action: ``created``, ``scheduled``, ``ready``, ``terminating``, ``deleted`` …
        (docs/timeline.md lists them).
    :ivar key: the object: resource with its group (``pods``, ``daemonsets.apps``), namespace, name.
    :ivar owner: its controller, of the same namespace: ``replicasets.apps/web-5d4c4ff75b``.
    :ivar node: the node of a pod.
    :ivar revision: the hash of the pod template: of a pod, a ReplicaSet or a ControllerRevision.
    :ivar reason: why, in the API's words where it has some: ``CrashLoopBackOff``, ``3 to 5``.
    :ivar uid: that of the object: what has the same name later is another one.
    """

    at: datetime
    action: str
    key: Key
    owner: str = ""
    node: str = ""
    revision: str = ""
    reason: str = ""
    uid: str = ""


class Numbers(NamedTuple):
    """The pods of a workload at one moment. Pods that have ended (Failed, Succeeded) count nowhere.

    :ivar desired: how many there should be; for a DaemonSet, on how many nodes.
    :ivar pods: how many there are, those that are being deleted included.
    :ivar ready: how many are ready and not being deleted.
    :ivar available: of those, how many have been ready for ``minReadySeconds``.
    :ivar updated: how many have the newest revision and are not being deleted.
    :ivar terminating: how many are being deleted.
    :ivar staying: how many are not being deleted.
    """

    desired: int = 0
    pods: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    terminating: int = 0

    @property
    def unavailable(self) -> int:
        return max(self.desired - self.available, 0)

    @property
    def staying(self) -> int:
        return self.pods - self.terminating

    @property
    def surge(self) -> int:
        return max(self.staying - self.desired, 0)


class Bounds(NamedTuple):
    """What a workload's spec and the budgets of its pods allow at one moment; None: no bound.

    :ivar min_available: how many pods must stay available.
    :ivar max_unavailable: how many of the desired pods may be unavailable, by the strategy.
    :ivar max_surge: how many pods there may be beyond the desired ones.
    :ivar budget: the PodDisruptionBudget that says ``min_available``, "" where the strategy does.
    :ivar is_leaving: the workload is being deleted, so that nothing is required of it.
    """

    min_available: int | None = None
    max_unavailable: int | None = None
    max_surge: int | None = None
    budget: str = ""
    is_leaving: bool = False


ENOUGH = -1


class Course(NamedTuple):
    """How one workload fared. ``availability.judge`` compares its numbers with its bounds.

    :ivar key: the workload: that which no other workload controls (a Deployment, not its
        ReplicaSets).
    :ivar numbers: (number of steps so far, numbers): those at the beginning (0), then each time
        they change.
    :ivar bounds: likewise: those at the beginning, then each time the spec, a budget or the size
        changes them.
    :ivar reached: how many were required before the beginning, None if it had not come up by then;
        ``ENOUGH``: it had come up to what the bounds at the beginning say.
    """

    key: Key
    numbers: tuple[tuple[int, Numbers], ...]
    bounds: tuple[tuple[int, Bounds], ...] = ((0, Bounds()),)
    reached: int | None = ENOUGH


class Rollout(NamedTuple):
    """What a revision of a workload brought.

    :ivar workload: the key of the Deployment, DaemonSet or StatefulSet.
    :ivar revision: the hash of the pod template, as pods and steps have it.
    :ivar images: the images of its containers, without their registries: ``web:1.5.0``.
    :ivar change: what else differs from the revision before it, or from the last one with the same
        images: ``env``.
    """

    workload: Key
    revision: str
    images: str
    change: str = ""


class Timeline(NamedTuple):
    """What happened between two moments, both included. Steps stand in the order of their writes.

    :ivar present: the pods at the beginning, each as a step of that moment, with the action that
        led to its state.
    :ivar rollouts: what the revisions are that the workloads have at the end; only in a timeline
        that is to be a picture (``revisions.with_rollouts``).
    """

    since: datetime
    until: datetime
    steps: tuple[Step, ...]
    courses: tuple[Course, ...]
    present: tuple[Step, ...] = ()
    rollouts: tuple[Rollout, ...] = ()


class Link(NamedTuple):
    """A link of the chain from an object that is asked about to the one that is to blame.

    :ivar key: the object of this link.
    :ivar field: the path of the field that shows it
        (``status.containerStatuses[0].state.waiting``); "" for none.
    :ivar value: the field's value, as the API has it; None where the field is missing.
    :ivar text: one plain sentence about it, without a full stop.
    :ivar says_when: the sentence names the moment, later than now, at which the field has that
        value.
    """

    key: Key
    field: str
    value: object
    text: str
    says_when: bool = False


class Finding(NamedTuple):
    """The cause that a diagnosis has found.

    :ivar cause: its identifier in the closed list of docs/why/.
    :ivar chain: from the object that was asked about (or the one below it) to the leaf.
    :ivar remedies: command lines, without the program's name, each of which might alone bring the
        object to done.
    :ivar fallbacks: command lines that are tried where no remedy does, and are named only if they
        do.
    """

    cause: str
    chain: tuple[Link, ...]
    remedies: tuple[tuple[str, ...], ...] = ()
    fallbacks: tuple[tuple[str, ...], ...] = ()


class RemedyCommand(tuple[str, ...]):
    """The words of a command line, with what there is to know about it beside them.

    :ivar stdin: the manifest that it reads from standard input, "" for none.
    :ivar needs_more: it may not suffice alone: it changes a template whose old pods stay until
        somebody deletes them.
    """

    stdin: str
    needs_more: bool

    def __new__(
        cls, words: Iterable[str], stdin: str = "", *, needs_more: bool = False
    ) -> RemedyCommand:
        command = super().__new__(cls, words)
        command.stdin = stdin
        command.needs_more = needs_more
        return command

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.stdin == stdin_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.stdin))


def stdin_of(words: object) -> str:
    """Return what a command line reads from standard input, "" for nothing."""
    if isinstance(words, RemedyCommand):
        return words.stdin
    return ""


def needs_more(words: object) -> bool:
    """Return whether a command line may not suffice alone."""
    return isinstance(words, RemedyCommand) and words.needs_more
