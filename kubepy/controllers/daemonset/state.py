"""The state of a DaemonSet that one sync goes by, as it was observed when the sync began."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.meta import uid_of
from kubepy.controllers.daemonset.nodes import DaemonSetNodes
from kubepy.controllers.daemonset.pods import DaemonPod, PodCriteria

if TYPE_CHECKING:
    from kubepy.api.typed import ControllerRevision, DaemonSet
    from kubepy.runtime.reconcile import Key


class DaemonSetState(NamedTuple):
    """Everything that :func:`~kubepy.controllers.daemonset.decide.update_daemon_set` decides by.
    Nobody changes it."""

    key: Key
    daemon_set: DaemonSet
    criteria: PodCriteria
    nodes: DaemonSetNodes  # with the pods on each
    failed_pods_backoff: FailedPodsBackoff
    now: datetime
    pods: Collection[DaemonPod] = ()  # all of them
    old_revisions: Sequence[ControllerRevision] = ()


# --- failed pods ----------------------------------------------------------------------------------

INITIAL_DELAY = timedelta(seconds=1)
MAX_DELAY = timedelta(minutes=15)
MAX_AGE = 2 * MAX_DELAY  # an entry that was not used for so long starts again


class _Delay(NamedTuple):
    length: timedelta
    since: datetime


class FailedPodsBackoff:
    """The time that a node's failed pod must stay before it is replaced: 1 s, doubling to 15 min,
    so that a pod which its node rejects is not made again in a hot loop (client-go
    ``util/flowcontrol/backoff.go``)."""

    def __init__(self) -> None:
        self._delays: dict[str, _Delay] = {}

    def remaining(self, key: str, now: datetime) -> float:
        """Return the seconds to wait; 0 when the pod may be deleted. Upstream waits the whole delay
        again, which comes to the same state later."""
        delay = self._delays.get(key)
        if delay is None or now - delay.since > MAX_AGE:
            return 0.0
        return max((delay.since + delay.length - now).total_seconds(), 0.0)

    def next_delay(self, key: str, now: datetime) -> timedelta:
        """Return the delay that follows when a failed pod is deleted now: twice the one before."""
        delay = self._delays.get(key)
        if delay is None or now - delay.since > MAX_AGE:
            return INITIAL_DELAY
        return min(2 * delay.length, MAX_DELAY)

    def is_at_cap(self, key: str) -> bool:
        if key not in self._delays:
            return False
        return self._delays[key].length == MAX_DELAY

    def step(self, key: str, now: datetime) -> None:
        """Note that a failed pod is being deleted; drop the entries of others that were not used
        for long."""
        self._delays[key] = _Delay(self.next_delay(key, now), now)
        self._delays = {
            key: delay for key, delay in self._delays.items() if now - delay.since <= MAX_AGE
        }

    def memory(self) -> dict[str, Any]:
        return {
            key: [delay.length.total_seconds(), format_micro_time(delay.since)]
            for key, delay in self._delays.items()
        }

    def recall(self, memory: dict[str, Any]) -> None:
        self._delays.update(
            {
                key: _Delay(timedelta(seconds=length), parse_time(since))
                for key, (length, since) in memory.items()
            }
        )


def backoff_key(daemon_set: DaemonSet, node: str) -> str:
    """Return the key of a node's failed pods, another for each generation
    (``failedPodsBackoffKey``)."""
    observed = (daemon_set.get("status") or {}).get("observedGeneration", 0)
    return f"{uid_of(daemon_set)}/{observed}/{node}"
