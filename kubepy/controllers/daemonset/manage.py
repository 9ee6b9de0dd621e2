"""Which pods a DaemonSet needs and which it has too many (``podsShouldBeOnNode``). Pure functions, and a back-off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.meta import Object, is_being_deleted, labels_of, name_of
from kubepy.api.objects.pods import is_pod_available, is_pod_ready, phase_of
from kubepy.controllers.daemonset.placement import Placement
from kubepy.controllers.daemonset.pods import HASH_LABEL, allows_surge, oldest_first


@dataclass
class Changes:
    """What to do: nodes that get a pod, pods to delete by name, and pods that ended and are to be made again."""

    create: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    failed: list[Object] = field(default_factory=list)
    succeeded: list[Object] = field(default_factory=list)

    def add(self, more: Changes) -> None:
        self.create += more.create
        self.delete += more.delete
        self.failed += more.failed
        self.succeeded += more.succeeded


def changes_on_node(changes: Changes, daemon_set: Object, node: str, placement: Placement, pods: list[Object],
                    hash_: str, now: datetime) -> None:
    """Add what one node needs. ``pods`` are the daemon pods there, those being deleted included."""
    if placement.should_run and not pods:
        changes.create.append(node)
    elif placement.should_continue:
        running = _sort_out_ended(changes, pods)
        if len(running) > 1:
            changes.delete += _surplus(daemon_set, running, hash_, now)
        elif not running and placement.should_run and allows_surge(daemon_set):
            changes.create.append(node)  # with surge, a pod that is going does not keep its successor away
    else:
        changes.delete += [name_of(pod) for pod in pods if not is_being_deleted(pod)]


def _sort_out_ended(changes: Changes, pods: list[Object]) -> list[Object]:
    running = []
    for pod in pods:
        if is_being_deleted(pod):
            continue
        match phase_of(pod):
            case "Failed":
                changes.failed.append(pod)
            case "Succeeded":
                changes.succeeded.append(pod)
            case _:
                running.append(pod)
    return running


def _surplus(daemon_set: Object, running: list[Object], hash_: str, now: datetime) -> list[str]:
    """One pod a node; with surge two, an old one that is ready beside a new one that is not yet available."""
    ordered = oldest_first(running)
    if not allows_surge(daemon_set):
        return [name_of(pod) for pod in ordered[1:]]
    new = [pod for pod in ordered if labels_of(pod).get(HASH_LABEL) == hash_]
    old = [pod for pod in ordered if labels_of(pod).get(HASH_LABEL) != hash_]
    surplus = [*new[1:], *old[1:]]
    min_ready_seconds = daemon_set["spec"].get("minReadySeconds") or 0
    if new and old and (not is_pod_ready(old[0]) or is_pod_available(new[0], min_ready_seconds, now)):
        surplus.append(old[0])
    return [name_of(pod) for pod in surplus]


def unscheduled_without_node(nodes: Iterable[str], node_pods: Mapping[str, list[Object]]) -> list[str]:
    """Pods that wait for a node that is gone: no scheduler will ever bind them, and nothing else removes them
    (``getUnscheduledPodsWithoutNode``)."""
    existing = set(nodes)
    return [name_of(pod) for node in sorted(node_pods) if node not in existing
            for pod in node_pods[node] if not pod["spec"].get("nodeName")]


# --- failed pods --------------------------------------------------------------------------------------------------

INITIAL_DELAY = timedelta(seconds=1)
MAX_DELAY = timedelta(minutes=15)
MAX_AGE = 2 * MAX_DELAY  # an entry that was not used for so long starts again


class _Delay(NamedTuple):
    length: timedelta
    since: datetime


class FailedPodBackoff:
    """How long a node's failed pod must stay before it is replaced: 1 s, doubling to 15 min, so that a pod which its
    node rejects is not made again in a hot loop (client-go ``util/flowcontrol/backoff.go``)."""

    def __init__(self) -> None:
        self._delays: dict[str, _Delay] = {}

    @staticmethod
    def key(daemon_set: Object, node: str) -> str:
        observed = (daemon_set.get("status") or {}).get("observedGeneration", 0)
        return f"{daemon_set['metadata']['uid']}/{observed}/{node}"

    def remaining(self, key: str, now: datetime) -> float:
        """Seconds to wait; 0 when the pod may be deleted. Upstream waits the whole delay anew, which comes to the same
        state later."""
        delay = self._current(key, now)
        return max((delay.since + delay.length - now).total_seconds(), 0.0) if delay else 0.0

    def step(self, key: str, now: datetime) -> None:
        """A failed pod is being deleted: the next one waits twice as long."""
        delay = self._current(key, now)
        self._delays[key] = _Delay(min(2 * delay.length, MAX_DELAY) if delay else INITIAL_DELAY, now)
        self._collect(now)

    def _current(self, key: str, now: datetime) -> _Delay | None:
        delay = self._delays.get(key)
        return delay if delay and now - delay.since <= MAX_AGE else None

    def _collect(self, now: datetime) -> None:
        self._delays = {key: delay for key, delay in self._delays.items() if now - delay.since <= MAX_AGE}

    def memory(self) -> dict[str, Any]:
        return {key: [delay.length.total_seconds(), format_micro_time(delay.since)]
                for key, delay in self._delays.items()}

    def recall(self, memory: dict[str, Any]) -> None:
        self._delays.update({key: _Delay(timedelta(seconds=length), parse_time(since))
                             for key, (length, since) in memory.items()})
