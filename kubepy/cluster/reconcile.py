"""What a controller, the scheduler and the kubelets are made of, and what the manager gives them.

A :class:`Reconciler` has a queue of keys. Its handlers turn what changed into keys; ``sync`` gets one key, rereads, and
converges. It reads from the :class:`Informers` (or the Client) and writes through the Client. The manager
(``kubepy.controllers.manager``) calls all of it, in a fixed order, many syncs in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kubepy.cluster.clock import Clock
from kubepy.cluster.meta import Object, namespace_of, owner_references
from kubepy.cluster.workqueue import WorkQueue
from kubepy.storage.keys import Key

if TYPE_CHECKING:
    from kubepy.cluster.client import Client

__all__ = ["Context", "Handler", "Informers", "Key", "Reconciler", "WatchEvent"]


class WatchEvent(NamedTuple):
    """One object before and after a change; ``old`` is None for an addition, ``new`` None for a deletion.

    An object that was replaced by another with the same name (another uid) arrives as a deletion and an addition.
    """

    key: Key
    old: Object | None
    new: Object | None


Handler = Callable[[WatchEvent], None]


class Reconciler(Protocol):
    """One controller. ``name`` is its component name in events (``daemonset-controller``)."""

    name: str
    queue: WorkQueue[Key]

    def handlers(self) -> Mapping[str, Handler]:
        """For each resource that is watched (``daemonsets.apps``, ``pods``), what its changes enqueue."""
        ...

    def sync(self, key: Key) -> None:
        """Converge one object. Raises to be called again after the key's back-off."""
        ...


class Informers:
    """The objects as the controllers have observed them: read-only, indexed, fed by the manager from the change log.

    Reading costs no storage access. After a sync the manager feeds in what that sync wrote, before the next one runs.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, dict[str, Object]]] = {}  # resource → namespace → name → object
        self._dependents: dict[str, dict[Key, None]] = {}  # owner uid → keys of the objects that name it

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        """In key order (namespace, name)."""
        spaces = self._objects.get(resource, {})
        if namespace is not None:
            found = spaces.get(namespace, {})
            return [found[name] for name in sorted(found)]
        return [spaces[space][name] for space in sorted(spaces) for name in sorted(spaces[space])]

    def dependents(self, uid: str) -> list[Key]:
        """The keys of the objects whose ownerReferences name this uid, in key order."""
        return sorted(self._dependents.get(uid, {}))

    def resources(self) -> list[str]:
        return sorted(self._objects)

    def observe(self, event: WatchEvent) -> None:
        """Take in one change."""
        key = event.key
        space = self._objects.setdefault(key.resource, {}).setdefault(key.namespace, {})
        if (before := space.get(key.name)) is not None:
            self._drop_owners(key, before)
        if event.new is None:
            space.pop(key.name, None)
            return
        space[key.name] = event.new
        for reference in owner_references(event.new):
            self._dependents.setdefault(reference["uid"], {})[key] = None

    def _drop_owners(self, key: Key, obj: Object) -> None:
        for reference in owner_references(obj):
            keys = self._dependents.get(reference["uid"], {})
            keys.pop(key, None)
            if not keys:
                self._dependents.pop(reference["uid"], None)


@dataclass(frozen=True)
class Context:
    """What every reconciler is built with."""

    client: Client
    informers: Informers
    clock: Clock

    def new_queue(self) -> WorkQueue[Key]:
        return WorkQueue(self.clock.now)


def enqueue_all(queue: WorkQueue[Key], resource: str, objects: Iterable[Object]) -> None:
    for obj in objects:
        queue.add(Key(resource, namespace_of(obj), obj["metadata"]["name"]))
