"""A lab in which an invariant is checked after each sync of a reconciler, and the manager can be made to crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import Object
from kubepy.apiserver.client import Client
from kubepy.controlplane import reconciler_names
from kubepy.controlplane.faults import WATCH
from kubepy.controlplane.manager import CheckpointStore, Manager
from kubepy.runtime.checkpoint import CHECKPOINT, identity
from kubepy.runtime.reconcile import Context, Handler, Informers, Key, Reconciler
from kubepy.runtime.workqueue import WorkQueue
from tests.controllers.conftest import Lab


# Faults of controllers, for hypothesis to draw from; none at first, to which a failing example shrinks.
RATES = st.sampled_from([0.02, 0.1, 0.3])
FAULTS = st.one_of(st.none(), st.fixed_dictionaries({"seed": st.integers(0, 999)}, optional={
    "conflicts": st.fixed_dictionaries({"rate": RATES}),
    "restarts": st.fixed_dictionaries({"rate": RATES}),
    "lateEvents": st.fixed_dictionaries({"rate": RATES, "delay": st.sampled_from(["0s..1s", "1s", "0s..20s"])}),
}))


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
        except Status:
            raise
        except Exception as error:  # the manager would only report it and try again
            self._broken.append(Broken(f"a sync of {self.name} raises {error!r}"))
            raise
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

    def __init__(self, folder: Path, faults: Object | None = None) -> None:
        super().__init__(folder, faults)
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
            while self.cluster.settings.faults is not None and (due := _next_recovery(made)) is not None:
                self.cluster.clock.own = max(due, self.now)
                manager.run_until_settled()
        if self.broken:
            raise self.broken[0]

    def wait(self, seconds: float) -> None:
        self.cluster.clock.own = self.now + timedelta(seconds=seconds)


def _next_recovery(reconcilers: list[Reconciler]) -> datetime | None:
    """Return when the next late event comes, or a sync that has failed is tried again; None if all have."""
    return min((due for reconciler in reconcilers for key, due in reconciler.queue.pending()
                if due is not None and (key.resource == WATCH or 0 < reconciler.queue.failures(key) < 8)), default=None)


def if_there(act: Callable[[], object]) -> None:
    """Do something to an object that may be gone already."""
    with suppress(NotFound):
        act()
