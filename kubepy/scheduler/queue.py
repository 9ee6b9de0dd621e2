"""The scheduling queue, and the unschedulable pods with the events for which they wait (upstream:
``backend/queue``).

There is no back-off between attempts: a pod is tried again only when something happened that could
help it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.runtime.reconcile import Key
from kubepy.runtime.workqueue import WorkQueue

Rank = tuple[Any, ...]


class SchedulingQueue(WorkQueue[Key]):
    """A work queue that returns the key of the lowest rank first. A key keeps the rank it had when
    it was added."""

    def __init__(self, now: Callable[[], datetime], rank: Callable[[Key], Rank]) -> None:
        super().__init__(now)
        self._rank = rank
        self._heap: list[tuple[Rank, Key]] = []

    def add(self, key: Key) -> None:
        is_new = key not in self._ready
        super().add(key)
        if is_new and key in self._ready:
            heapq.heappush(self._heap, (self._rank(key), key))

    def get(self) -> Key | None:
        self._promote()
        while self._heap:
            _, key = heapq.heappop(self._heap)
            if key in self._ready:
                return self._take(key)
        return None

    def clear(self) -> None:
        super().clear()
        self._heap.clear()

    def take_back(self, taken: Key) -> None:
        super().take_back(taken)
        heapq.heappush(self._heap, (self._rank(taken), taken))

    def done(self, key: Key) -> None:
        again = key in self._again
        super().done(key)
        if again:
            heapq.heappush(self._heap, (self._rank(key), key))


class QueuedPodInfo(NamedTuple):
    """An unschedulable pod: the plugins that rejected it, and the only nodes on which it could fit
    (None: any)."""

    unschedulable_plugins: frozenset[str]
    node_names: frozenset[str] | None


class UnschedulablePods:
    """The pods that fit nowhere, indexed by the actions that could help them.

    :param events_to_register: plugin → actions that could make a pod schedulable that it rejected.
    """

    def __init__(self, events_to_register: Mapping[str, frozenset[str]]) -> None:
        self._events_to_register = events_to_register
        self._pods: dict[Key, QueuedPodInfo] = {}
        self._by_action: dict[str, dict[Key, None]] = {}
        self._by_any: dict[
            Key, None
        ] = {}  # pods that no plugin rejected: there was no node to look at

    def add(self, key: Key, pod_info: QueuedPodInfo) -> None:
        self.discard(key)
        self._pods[key] = pod_info
        if not pod_info.unschedulable_plugins:
            self._by_any[key] = None
        for action in self._actions(pod_info):
            self._by_action.setdefault(action, {})[key] = None

    def discard(self, key: Key) -> None:
        pod_info = self._pods.pop(key, None)
        if pod_info is None:
            return
        self._by_any.pop(key, None)
        for action in self._actions(pod_info):
            self._by_action[action].pop(key, None)

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, key: Key) -> QueuedPodInfo | None:
        return self._pods.get(key)

    def registered_for(self, actions: Iterable[str]) -> list[Key]:
        """Return the pods that one of these actions could help."""
        keys = dict(self._by_any)
        for action in actions:
            keys |= self._by_action.get(action, {})
        return list(keys)

    def _actions(self, pod_info: QueuedPodInfo) -> Iterator[str]:
        plugins = sorted(pod_info.unschedulable_plugins)
        yield from dict.fromkeys(
            action for name in plugins for action in self._events_to_register[name]
        )

    def remember(self) -> list[list[Any]]:
        """Return the pods as JSON, for the next process."""
        return [
            [
                *key,
                sorted(pod_info.unschedulable_plugins),
                sorted(pod_info.node_names) if pod_info.node_names is not None else None,
            ]
            for key, pod_info in sorted(self._pods.items())
        ]

    def recall(self, memory: list[list[Any]]) -> None:
        """Take over the pods from the JSON of :meth:`remember`."""
        for key in list(self._pods):
            self.discard(key)
        for resource, namespace, name, plugins, node_names in memory:
            pod_info = QueuedPodInfo(
                frozenset(plugins), None if node_names is None else frozenset(node_names)
            )
            self.add(Key(resource, namespace, name), pod_info)
