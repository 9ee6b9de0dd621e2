"""Predictions: do something on a fork of a cluster, and let the controllers work there until nothing is left to do.

Nothing is computed by a formula: the controllers, the scheduler and the kubelets of a fork are those of the cluster.
With the cluster's own clock and a seed they do on the fork exactly what they would do in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from kubepy.api.clock import ClockLimit, format_exact_time, later
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import build_manager, manager_lock
from kubepy.insight import Timeline
from kubepy.insight.timeline import read_timeline

DAY = 24 * 3600.0  # seconds
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


class Prediction:
    """What happens in a cluster after something has been done in it.

    :ivar cluster: the fork as it is in the end.
    :ivar started: the moment of the fork.
    :ivar limit: how many seconds of the cluster's time it goes on at most.
    :ivar settled: nothing is due any more but what repeats for ever. False: the end was the limit, or the wish of
        ``done``.
    :ivar settled_after: seconds of the cluster's time from the beginning to the end.
    """

    def __init__(self, cluster: LocalCluster, started: datetime, revision: int, limit: float, *, settled: bool) -> None:
        self.cluster = cluster
        self.limit = limit
        self.started = started
        self.settled = settled
        self.settled_after = (cluster.clock.now() - started).total_seconds()
        self._revision = revision

    @cached_property
    def timeline(self) -> Timeline:
        """What happens, with its first step after the fork."""
        return read_timeline(self.cluster, self.started, after_revision=self._revision)


def predict(cluster: LocalCluster, act: Callable[[LocalCluster], object], limit: float = DAY,
            settings: Mapping[str, Any] = NO_SETTINGS, *,
            done: Callable[[LocalCluster], bool] | None = None) -> Prediction:
    """Predict what happens in a cluster after ``act`` has changed it; the cluster itself is not changed.

    A fork of a cluster with the system's time gets a clock of its own, which begins at now. Admission webhooks are
    called as for a dry run.

    :param act: changes the fork; it may let its time go on (a command that waits). When it would go on beyond the
        limit, ``act`` is left with ClockLimit.
    :param limit: seconds of the cluster's time after which the prediction ends.
    :param settings: replace those of the cluster's ``kubepy.yaml``.
    :param done: ends the prediction; it is asked about the fork when the work of a moment is done.

    Raises what ``act`` raises, FolderError.
    """
    started = cluster.clock.now()
    fork = cluster.fork({"clock": format_exact_time(started), **settings}, is_prediction=True)
    fork.use_faults(cluster.settings.faults)
    revision = fork.client.revision()
    end = fork.clock.limit = later(started, limit)
    is_cut = False
    try:
        act(fork)
    except ClockLimit:
        is_cut = True
    fork.clock.limit = None
    with manager_lock(fork):
        manager = build_manager(fork)
        manager.advance(end, settled=True, done=None if done is None else lambda: done(fork))
        settled = manager.is_settled() and not is_cut
    return Prediction(fork, started, revision, limit, settled=settled)
