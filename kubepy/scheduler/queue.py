"""Which pod comes next, and which pods wait for what (upstream: ``backend/queue``).

There is no back-off between attempts: a pod is tried again only when something happened that could help it.
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
    """A work queue that hands out the lowest rank first. A key keeps the rank that it had when it was added."""

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
                del self._ready[key]
                self._processing.add(key)
                return key
        return None

    def done(self, key: Key) -> None:
        again = key in self._again
        super().done(key)
        if again:
            heapq.heappush(self._heap, (self._rank(key), key))


class Waiting(NamedTuple):
    """A pod that fits nowhere: the plugins that rejected it, and the only nodes that could take it (None: any)."""

    plugins: frozenset[str]
    nodes: frozenset[str] | None


class WaitingPods:
    """The pods that wait, found by what could help them."""

    def __init__(self, wakes_on: Mapping[str, frozenset[str]]) -> None:
        self._wakes_on = wakes_on  # plugin → actions
        self._pods: dict[Key, Waiting] = {}
        self._by_action: dict[str, dict[Key, None]] = {}
        self._by_any: dict[Key, None] = {}  # those that no plugin rejected: there was no node to look at

    def add(self, key: Key, waiting: Waiting) -> None:
        self.discard(key)
        self._pods[key] = waiting
        if not waiting.plugins:
            self._by_any[key] = None
        for action in self._actions(waiting):
            self._by_action.setdefault(action, {})[key] = None

    def discard(self, key: Key) -> None:
        waiting = self._pods.pop(key, None)
        if waiting is None:
            return
        self._by_any.pop(key, None)
        for action in self._actions(waiting):
            self._by_action[action].pop(key, None)

    def get(self, key: Key) -> Waiting | None:
        return self._pods.get(key)

    def interested(self, actions: Iterable[str]) -> list[Key]:
        """The pods that one of these actions could help."""
        found = dict(self._by_any)
        for action in actions:
            found |= self._by_action.get(action, {})
        return list(found)

    def _actions(self, waiting: Waiting) -> Iterator[str]:
        yield from dict.fromkeys(action for name in sorted(waiting.plugins) for action in self._wakes_on[name])

    def remember(self) -> list[list[Any]]:
        return [
            [*key, sorted(waiting.plugins), sorted(waiting.nodes) if waiting.nodes is not None else None]
            for key, waiting in sorted(self._pods.items())
        ]

    def recall(self, memory: list[list[Any]]) -> None:
        for key in list(self._pods):
            self.discard(key)
        for resource, namespace, name, plugins, nodes in memory:
            waiting = Waiting(frozenset(plugins), None if nodes is None else frozenset(nodes))
            self.add(Key(resource, namespace, name), waiting)
