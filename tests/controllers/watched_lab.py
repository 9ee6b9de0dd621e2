"""A lab in which an invariant is checked after each sync of a reconciler, and the manager can be made to crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from kubepy.api.errors import NotFound
from kubepy.apiserver.client import Client
from kubepy.controlplane import reconciler_names
from kubepy.controlplane.manager import CheckpointStore, Manager
from kubepy.runtime.checkpoint import CHECKPOINT, identity
from kubepy.runtime.reconcile import Context, Handler, Informers, Key, Reconciler
from kubepy.runtime.workqueue import WorkQueue
from tests.controllers.conftest import Lab


class Broken(AssertionError):
    """An invariant that does not hold."""


class Crash(BaseException):
    """The death of the manager's process."""


# A check of a step: takes the reconciler's name, and the snapshots before and after.
Check = Callable[[str, Any, Any], None]


class Witness:
    """A reconciler with every sync checked; all of them share ``countdown``, and the sync at which it reaches 0
    crashes."""

    def __init__(self, inner: Reconciler, client: Client, check: Check, broken: list[Broken],
                 countdown: list[int], look: Callable[[Client], Any]) -> None:
        self.name = inner.name
        self._inner, self._client, self._check, self._look = inner, client, check, look
        self._broken, self._countdown = broken, countdown

    def __getattr__(self, name: str) -> Any:  # remember and recall, for reconcilers that have them
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
                except Broken as error:  # kept, since the manager would treat an exception as a failed sync
                    self._broken.append(error)
        self._countdown[0] -= 1
        if self._countdown[0] == 0:
            raise Crash


class WatchedLab(Lab):
    """A lab whose subclasses wrap reconcilers in ``witnesses``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.broken: list[Broken] = []

    def witnesses(self, context: Context, crash_at: int) -> list[Reconciler]:
        raise NotImplementedError

    def run(self, crash_at: int = 0) -> None:
        """Run the controllers until they are settled; with ``crash_at`` the manager dies at that sync and loses what
        is not committed."""
        cluster, informers, store = self.cluster, Informers(), self.cluster.store
        made = self.witnesses(Context(cluster.client, informers, cluster.clock, cluster.scheme), crash_at)
        checkpoints = CheckpointStore(lambda: store.meta(CHECKPOINT), lambda text: store.set_meta(CHECKPOINT, text),
                                      identity(reconciler_names(cluster.settings), cluster.settings))
        manager = Manager(cluster.client, informers, cluster.clock, made, resources=store.resources,
                          checkpoints=checkpoints)
        with suppress(Crash):
            manager.run_until_settled()
        if self.broken:
            raise self.broken[0]

    def wait(self, seconds: float) -> None:
        self.cluster.clock.own = self.now + timedelta(seconds=seconds)


def if_there(act: Callable[[], object]) -> None:
    """Do something to an object that may be gone already."""
    with suppress(NotFound):
        act()
