"""What a controller, the scheduler and the kubelets are made of, and what the manager gives them.

A :class:`Reconciler` has a queue of keys. Its handlers turn what changed into keys; ``sync`` gets one key, rereads, and
converges. It reads from the :class:`Informers` (or the Client) and writes through the Client. The manager
(``kubepy.controlplane.manager``) calls all of it, in a fixed order, many syncs in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from kubepy.api.clock import Clock
from kubepy.api.meta import Object, namespace_of, owner_references
from kubepy.api.scheme import Scheme
from kubepy.api.watch import WatchEvent
from kubepy.runtime.workqueue import BASE_DELAY, MAX_DELAY, WorkQueue
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.client import Client

__all__ = [
    "EVERY_RESOURCE",
    "Context",
    "Handler",
    "Informers",
    "Key",
    "Reconciler",
    "Remembering",
    "WatchEvent",
    "enqueue_all",
]


Handler = Callable[[WatchEvent], None]
Entry = TypeVar("Entry")
# Aliases, because the method ``Informers.list`` hides the builtin inside its class.
Objects = list[Object]
Keys = list[Key]
Names = list[str]

EVERY_RESOURCE = "*"


class Reconciler(Protocol):
    """One controller. ``name`` is its component name in events (``daemonset-controller``)."""

    name: str

    @property
    def queue(self) -> WorkQueue[Key]: ...

    def handlers(self) -> Mapping[str, Handler]:
        """For each resource that is watched (``daemonsets.apps``, ``pods``), what its changes enqueue.

        The key ``"*"`` watches every resource but events; for one object the handler of its own resource comes first.
        """
        ...

    def sync(self, key: Key) -> None:
        """Converge one object. Raises to be called again after the key's back-off."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A reconciler with a memory that outlives the process, beside its queue: timers, back-offs, what waits for what.

    The manager keeps it between runs. Only what cannot be read off the objects belongs there.
    """

    def remember(self) -> Any:
        """The memory as JSON; something false for none."""
        ...

    def recall(self, memory: Any) -> None:
        """Take over what ``remember`` gave in another process. The informers are still empty."""
        ...


class Informers:
    """The objects as the controllers have observed them: read-only, indexed, fed by the manager from the change log.

    Reading costs no storage access. After a sync the manager feeds in what that sync wrote, before the next one runs.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, dict[str, Object]]] = {}  # resource → namespace → name → object
        self._dependents: dict[str, dict[str, dict[Key, None]]] = {}  # owner uid → resource → keys that name it
        self._orphans: dict[tuple[str, str], dict[Key, None]] = {}  # resource, namespace → those without controller
        self._on_node: dict[str, dict[Key, None]] = {}  # node → keys of the pods bound to it
        self._keys: dict[str, Key] = {}  # uid → key

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        """In key order (namespace, name)."""
        spaces = self._objects.get(resource, {})
        if namespace is not None:
            found = spaces.get(namespace, {})
            return [found[name] for name in sorted(found)]
        return [spaces[space][name] for space in sorted(spaces) for name in sorted(spaces[space])]

    def dependents(self, uid: str, resource: str | None = None) -> Keys:
        """The keys of the objects (of one resource) whose ownerReferences name this uid, in key order."""
        found = self._dependents.get(uid, {})
        if resource is not None:
            return sorted(found.get(resource, ()))
        return sorted(key for keys in found.values() for key in keys)

    def orphans(self, resource: str, namespace: str) -> Keys:
        """The keys of the objects in a namespace that no controller owns, in key order."""
        return sorted(self._orphans.get((resource, namespace), ()))

    def pods_on(self, node: str) -> Keys:
        """The keys of the pods bound to a node, in key order."""
        return sorted(self._on_node.get(node, ()))

    def key_of(self, uid: str) -> Key | None:
        """The key of the object with this uid, if one has been observed."""
        return self._keys.get(uid)

    def resources(self) -> Names:
        return sorted(self._objects)

    def observe(self, event: WatchEvent) -> None:
        """Take in one change."""
        key, new = event.key, event.new
        space = self._objects.setdefault(key.resource, {}).setdefault(key.namespace, {})
        old = space.get(key.name)
        if new is None:
            space.pop(key.name, None)
        else:
            space[key.name] = new
        links_before = _links(key, old) if old is not None else None
        links = _links(key, new) if new is not None else None
        if links != links_before:
            self._unlink(key, links_before)
            self._link(key, links)

    def clear(self) -> None:
        """Forget everything, before it is all listed again."""
        for index in (self._objects, self._dependents, self._orphans, self._on_node, self._keys):
            index.clear()

    def _link(self, key: Key, links: _Links | None) -> None:
        if links is None:
            return
        self._keys[links.uid] = key
        for owner in links.owners:
            self._dependents.setdefault(owner, {}).setdefault(key.resource, {})[key] = None
        if links.orphan:
            self._orphans.setdefault((key.resource, key.namespace), {})[key] = None
        if links.node:
            self._on_node.setdefault(links.node, {})[key] = None

    def _unlink(self, key: Key, links: _Links | None) -> None:
        if links is None:
            return
        if self._keys.get(links.uid) == key:
            del self._keys[links.uid]
        for owner in links.owners:
            _discard(self._dependents.get(owner, {}), key.resource, key)
            if not self._dependents.get(owner):
                self._dependents.pop(owner, None)
        if links.orphan:
            _discard(self._orphans, (key.resource, key.namespace), key)
        if links.node:
            _discard(self._on_node, links.node, key)


class _Links(NamedTuple):
    """What the indexes say about one object."""

    uid: str
    owners: tuple[str, ...]
    orphan: bool
    node: str


def _links(key: Key, obj: Object) -> _Links:
    references = owner_references(obj)
    orphan = not any(reference.get("controller") for reference in references)
    node = obj["spec"].get("nodeName", "") if key.resource == "pods" else ""
    return _Links(obj["metadata"].get("uid", ""), tuple(one["uid"] for one in references), orphan, node)


def _discard(index: dict[Entry, dict[Key, None]], entry: Entry, key: Key) -> None:
    keys = index.get(entry, {})
    keys.pop(key, None)
    if not keys:
        index.pop(entry, None)


class Context(NamedTuple):
    """What every reconciler is built with. ``scheme``: the cluster's resources, custom ones included."""

    client: Client
    informers: Informers
    clock: Clock
    scheme: Scheme = Scheme()

    def new_queue(self, delays: tuple[float, float] = (BASE_DELAY, MAX_DELAY)) -> WorkQueue[Key]:
        """``delays``: the first back-off and the longest, in seconds."""
        return WorkQueue(self.clock.now, delays)


def enqueue_all(queue: WorkQueue[Key], resource: str, objects: Iterable[Object]) -> None:
    for obj in objects:
        queue.add(Key(resource, namespace_of(obj), obj["metadata"]["name"]))
