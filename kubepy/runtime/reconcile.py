"""The parts of a controller, of the scheduler and of the kubelets, and the context that the manager
gives them.

A :class:`Reconciler` has a queue of keys. Its handlers turn changes into keys; ``sync`` gets one
key, rereads, and converges. It reads from the :class:`Informers` (or the Client) and writes through
the Client. The manager (``kubepy.controlplane.manager``) calls all of it, in a fixed order, many
syncs in one transaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from kubepy.api.clock import Clock
from kubepy.api.errors import Status
from kubepy.api.meta import AnyObject, namespace_of
from kubepy.api.scheme import Scheme
from kubepy.api.watch import WatchEvent
from kubepy.runtime.informers import Informers
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.workqueue import BASE_DELAY, BURST, MAX_DELAY, WorkQueue
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.client import Client

__all__ = [
    "EVERY_RESOURCE",
    "Aggregate",
    "Context",
    "Handler",
    "Informers",
    "Key",
    "Reconciler",
    "Remembering",
    "WatchEvent",
    "enqueue_all",
    "enqueue_object",
    "raise_all",
]


Handler = Callable[[WatchEvent], object]  # the result is not looked at

EVERY_RESOURCE = "*"


class Reconciler(Protocol):
    """One controller. ``name`` is its component name in events (``daemonset-controller``)."""

    name: str

    @property
    def queue(self) -> WorkQueue[Key]: ...

    def handlers(self) -> Mapping[str, Handler]:
        """Return a handler for each resource that is watched (``daemonsets.apps``, ``pods``).

        The key ``"*"`` watches every resource but events; for one object the handler of its own
        resource comes first.
        """
        ...

    def sync(self, key: Key) -> None:
        """Converge one object. Raises to be called again after the key's back-off."""
        ...


@runtime_checkable
class Refreshing(Protocol):
    """A reconciler that goes by more than objects, such as a file of rules."""

    def refresh(self) -> None:
        """Look whether that has changed, and queue what is to be looked at again then. It is called
        whenever changes of objects are looked for, and costs next to nothing."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A reconciler with a memory that outlives the process, beside its queue: timers, back-offs,
    what waits for what.

    The manager keeps it between runs. Only what cannot be read off the objects belongs there.
    """

    def remember(self) -> Any:
        """The memory as JSON; something false for none."""
        ...

    def recall(self, memory: Any) -> None:
        """Take over what ``remember`` gave in another process. The informers are still empty."""
        ...


class Context(NamedTuple):
    """The things that every reconciler of one manager is built with.

    :ivar pacing: how many pods controllers may make in the manager's present run.
    :ivar scheme: the cluster's resources, custom ones included.
    """

    client: Client
    informers: Informers
    clock: Clock
    pacing: Pacing
    scheme: Scheme = Scheme()

    def new_queue(self, delays: tuple[float, float] = (BASE_DELAY, MAX_DELAY)) -> WorkQueue[Key]:
        """``delays``: the first back-off and the longest, in seconds."""
        return WorkQueue(self.clock.now, delays, BURST if self.clock.own else math.inf)


def enqueue_object(
    queue: WorkQueue[Key], predicate: Callable[[Any], bool] = lambda obj: True
) -> Handler:
    """Return a handler that enqueues a changed object for which the predicate holds; not a deleted
    one."""

    def handler(event: WatchEvent) -> None:
        if event.new is not None and predicate(event.new):
            queue.add(event.key)

    return handler


def enqueue_all(queue: WorkQueue[Key], resource: str, objects: Iterable[AnyObject]) -> None:
    for obj in objects:
        queue.add(Key(resource, namespace_of(obj), obj["metadata"]["name"]))


class UnfinishedSync(Exception):
    """A sync that could not do its work, for a reason that its controller foresees: it is tried
    again."""


class Aggregate(Status):
    """Several errors of one sync (``utilerrors.NewAggregate``); messages that repeat are shown
    once."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        messages = list(dict.fromkeys(map(str, errors)))
        super().__init__(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
        self.errors = errors


def raise_all(errors: Sequence[Exception]) -> None:
    """Raise the error if there is one, several as an Aggregate."""
    if errors:
        raise errors[0] if len(errors) == 1 else Aggregate(errors)
