"""Run the controllers while a command waits for something that they bring about, and say how far they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubepy.controlplane import CHECKPOINT, MANAGER_LOCK, build_manager, manager_lock
from kubepy.controlplane.checkpoint import latest
from kubepy.controlplane.manager import POLL_SECONDS, Manager

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.cluster import Cluster
    from kubepy.cli.runtime.progress import Progress
    from kubepy.controlplane.summary import Summary

NOTE_SECONDS = 2  # after which a user at a terminal is told that there are no nodes to run on
TAKE_OVER_SECONDS = 1.0  # how soon a waiting command notices that the process that ran the controllers has ended
REMEDY = 'make some with "kubepy apply -f manifests/nodes.yaml", or begin with "kubepy init --nodes=3"'


def note_missing_nodes(client: Client, say: Callable[[str], None]) -> None:
    """Tell the user that pods wait for a node where there is none, which kubectl's own messages do not say."""
    if client.list("nodes").items:
        return
    unbound = sum(1 for pod in client.list("pods").items if not pod["spec"].get("nodeName"))
    if unbound:
        pods = "1 pod is" if unbound == 1 else f"{unbound} pods are"
        say(f"note: {pods} Pending, since there are no nodes: {REMEDY}")


def settle(progress: Progress, manager: Manager, quiet_for: float = 0.0, stop: Callable[[], bool] = lambda: False, *,
           skip_waits: bool = False) -> Summary:
    """Run :meth:`Manager.run_until_settled`, showing the progress on a terminal."""
    def is_over() -> bool:
        changed, waiting = manager.workload()
        progress.show(f"{changed} objects changed, {waiting} to do")
        return stop()

    return manager.run_until_settled(quiet_for, is_over, skip_waits=skip_waits)


class Driver:
    """Lets a command wait for something that the controllers bring about.

    It runs them itself, a burst of work at a time, and releases the manager's lock between bursts: other commands may
    wait as well, and ``kubepy controller`` may start.
    """

    def __init__(self, cluster: Cluster, progress: Progress, say: Callable[[str], None], *, reconciles: bool) -> None:
        """Without ``reconciles`` it only waits for another process to run the controllers."""
        self._cluster = cluster
        self._progress = progress
        self._say = say
        self._reconciles = reconciles
        self._manager: Manager | None = None
        self._warned = False
        self._noted = False
        self._has_settled = False
        self._others_run_until = 0.0  # when to look again whether another process runs the controllers

    def wait_until(self, done: Callable[[], bool], timeout: float | None = None, about: str = "") -> bool:
        """Wait until ``done()`` holds, at most ``timeout`` seconds of real time (None: for ever), and return it.

        ``done`` is asked after every batch of the controllers, and whenever something changed. ``about`` names what is
        waited for, to be shown on a terminal.
        """
        clock, progress = self._cluster.clock, self._progress
        deadline = None if timeout is None else clock.monotonic() + timeout

        def is_over() -> bool:
            progress.show(f"waiting {progress.seconds()}s", about=about)
            return deadline is not None and clock.monotonic() >= deadline

        pause = POLL_SECONDS
        while not done():
            if is_over():
                self._note_missing_nodes()
                return False
            if self._reconciles and self._run(lambda: done() or is_over()):
                continue
            self._note_missing_nodes()
            if not self._reconciles and not self._warned:
                if self._cluster.store.holder(MANAGER_LOCK) is None:
                    self._say("no controller is running (--reconcile=never): waiting for another process to run one")
                self._warned = True
            seconds = pause if deadline is None else max(min(pause, deadline - clock.monotonic()), 0.0)
            if self._manager is not None:
                pause = self._manager.wait_for_work(seconds)
            else:
                clock.sleep(seconds)
                pause = POLL_SECONDS
        return True

    def has_observed(self, obj: Object) -> bool:
        """Return whether controllers have seen this version of an object, in this process or before it."""
        if self._has_settled:
            return True
        checkpoint = latest(self._cluster.store.meta(CHECKPOINT))
        return checkpoint is not None and int(obj["metadata"]["resourceVersion"]) <= checkpoint.revision

    def _run(self, stop: Callable[[], bool]) -> bool:
        """Do a burst of work, if there is any and no other process does it; return whether something was done."""
        manager, clock = self._manager, self._cluster.clock
        if clock.monotonic() < self._others_run_until or (manager is not None and not manager.has_work()):
            return False
        with manager_lock(self._cluster) as is_lost:
            if is_lost is None:
                self._others_run_until = clock.monotonic() + TAKE_OVER_SECONDS
                return False
            if manager is None:
                manager = self._manager = build_manager(self._cluster)
            manager.run_until_settled(done=stop, skip_waits=True)
            self._has_settled = True
            return True

    def _note_missing_nodes(self) -> None:
        """Warn of missing nodes once, and not before the controllers have come to rest: they may create pods yet."""
        if self._noted or not self._progress.is_watched or self._progress.seconds() < NOTE_SECONDS:
            return
        note_missing_nodes(self._cluster.client, self._say)
        self._noted = True
