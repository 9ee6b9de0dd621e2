"""A lab whose reconcilers are watched while they work: after each sync an invariant is checked, or the manager dies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from kubepy.api.errors import NotFound
from kubepy.apiserver.client import Client
from kubepy.controlplane import CHECKPOINT
from kubepy.controlplane.checkpoint import CheckpointStore
from kubepy.controlplane.manager import Manager
from kubepy.runtime.reconcile import Context, Handler, Informers, Key, Reconciler
from kubepy.runtime.workqueue import WorkQueue
from tests.controllers.conftest import Lab


class Broken(AssertionError):
    """An invariant that does not hold."""


class Crash(BaseException):
    """The manager's process dies."""


# What is checked of a step: the reconciler's name, and the pictures before and after.
Check = Callable[[str, Any, Any], None]


class Witness:
    """One reconciler, with every sync looked at; all of them together die at the step that ``countdown`` reaches."""

    def __init__(self, inner: Reconciler, client: Client, check: Check, broken: list[Broken],
                 countdown: list[int], look: Callable[[Client], Any]) -> None:
        self.name = inner.name
        self._inner, self._client, self._check, self._look = inner, client, check, look
        self._broken, self._countdown = broken, countdown

    def __getattr__(self, name: str) -> Any:  # remember and recall, where the reconciler has them
        return getattr(self._inner, name)

    @property
    def queue(self) -> WorkQueue[Key]:
        return self._inner.queue

    def handlers(self) -> Mapping[str, Handler]:
        return self._inner.handlers()

    def sync(self, key: Key) -> None:
        before = self._look(self._client)
        try:
            self._inner.sync(key)
        finally:
            after = self._look(self._client)
            if before is not None and after is not None:
                try:
                    self._check(self.name, before, after)
                except Broken as error:  # kept: the manager takes what a sync raises for the reconciler's own trouble
                    self._broken.append(error)
        self._countdown[0] -= 1
        if self._countdown[0] == 0:
            raise Crash


class WatchedLab(Lab):
    """``witnesses`` says who watches which reconciler."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.broken: list[Broken] = []

    def witnesses(self, context: Context, crash_at: int) -> list[Reconciler]:
        raise NotImplementedError

    def run(self, crash_at: int = 0) -> None:
        """Settle; with ``crash_at`` the manager dies at its so many-th watched sync: what is not committed is lost."""
        cluster, informers, store = self.cluster, Informers(), self.cluster.store
        made = self.witnesses(Context(cluster.client, informers, cluster.clock, cluster.scheme), crash_at)
        checkpoints = CheckpointStore(lambda: store.meta(CHECKPOINT), lambda text: store.set_meta(CHECKPOINT, text))
        manager = Manager(cluster.client, informers, cluster.clock, made, resources=store.resources,
                          checkpoints=checkpoints)
        with suppress(Crash):
            manager.run_until_settled()
        if self.broken:
            raise self.broken[0]

    def wait(self, seconds: float) -> None:
        self.cluster.clock.fixed = self.now + timedelta(seconds=seconds)


def if_there(act: Callable[[], object]) -> None:
    """Do what may come too late: its object may be gone."""
    with suppress(NotFound):
        act()
