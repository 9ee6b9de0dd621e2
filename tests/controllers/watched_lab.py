"""A lab in which an invariant is checked after each sync of a reconciler, and the manager can be
made to crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kubepy.api.clock import Clock
from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.apiserver.client import Client, ObjectList
from kubepy.controlplane import reconciler_names
from kubepy.controlplane.faults import WATCH, FaultyReconciler
from kubepy.controlplane.manager import CheckpointStore, ListWatch, Manager
from kubepy.runtime.checkpoint import identity, load, save
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Handler, Informers, Key, Reconciler
from kubepy.runtime.workqueue import WorkQueue
from kubepy.storage.view import RecordedView
from tests.controllers.conftest import Lab

SEEN = (
    "nodes",
    "pods",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "controllerrevisions.apps",
)
# Faults for hypothesis to draw from; none at first, to which a failing example shrinks. The tests
# try the same examples each time, so that none fails by chance; without ``derandomize`` in their
# settings they try others. A failing example is printed with its faults and their seed: as an
# ``@example`` of the test it repeats.
RATES = st.sampled_from([0.02, 0.1, 0.3])
FAULTS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"seed": st.integers(0, 999)},
        optional={
            "conflicts": st.fixed_dictionaries({"rate": RATES}),
            "restarts": st.fixed_dictionaries({"rate": RATES}),
            "lateEvents": st.fixed_dictionaries(
                {"rate": RATES, "delay": st.sampled_from(["0s..1s", "1s", "0s..20s"])}
            ),
            "nodes": st.lists(
                st.fixed_dictionaries(
                    {
                        "rate": st.sampled_from([0.5, 1]),
                        "after": st.sampled_from(["0s", "5s", "0s..900s"]),
                        "downFor": st.sampled_from(["20s", "30s..600s"]),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
        },
    ),
)


class Broken(AssertionError):
    """An invariant that does not hold."""


class Crash(BaseException):
    """The death of the manager's process."""


# A check of a step: takes the reconciler's name, and the snapshots before and after.
Check = Callable[[str, Any, Any], None]


class Snapshot:
    """The objects of some resources; it lists them as a Client does."""

    def __init__(self, clock: Clock, objects: Mapping[str, Mapping[Key, Object]]) -> None:
        self.clock = clock
        self.objects = objects

    def list(self, resource: str) -> ObjectList:
        objects = self.objects.get(resource, {})
        return ObjectList([objects[key] for key in sorted(objects)], "")

    def with_changes(self, before: Snapshot, after: Snapshot) -> Snapshot:
        """Return this snapshot with what has changed between two others."""
        changed: dict[str, dict[Key, Object]] = {}
        for resource, objects in after.objects.items():
            old, known = before.objects[resource], dict(self.objects[resource])
            for key in old.keys() | objects.keys():
                if key not in objects:
                    known.pop(key, None)
                elif key not in old or old[key] != objects[key]:
                    known[key] = objects[key]
            changed[resource] = known
        return Snapshot(self.clock, changed)


def snapshot(clock: Clock, list_objects: Callable[[str], Iterable[Object]]) -> Snapshot:
    return Snapshot(
        clock,
        {
            resource: {
                Key(resource, namespace_of(obj), name_of(obj)): obj
                for obj in list_objects(resource)
            }
            for resource in SEEN
        },
    )


class Sight:
    """The cluster before and after a sync: as it is, and as the controller knew it, whose watch
    events may be late."""

    def __init__(self, reconciler: Reconciler, client: Client) -> None:
        self._client = client
        self.is_late = (
            isinstance(reconciler, FaultyReconciler)
            and client.settings.faults.late_events is not None
        )
        self.before = self.now()
        self.known = self.before
        if self.is_late:
            self.known = snapshot(client.clock, reconciler._informers.list)

    def now(self) -> Snapshot:
        return snapshot(self._client.clock, lambda resource: self._client.list(resource).items)

    def known_after(self, after: Snapshot) -> Snapshot:
        """Return what the controller knew, with its own writes: ``after`` is the cluster as it is
        then."""
        return self.known.with_changes(self.before, after)


class Witness:
    """A reconciler with every sync checked; all of them share ``countdown``, and the sync at which
    it reaches 0 crashes.

    ``check`` gets the cluster as the controller knew it, ``check_as_it_is`` as it is, whatever has
    not been seen yet.
    """

    def __init__(
        self,
        inner: Reconciler,
        client: Client,
        check: Check,
        broken: list[Exception],
        countdown: list[int],
        look: Callable[[Any], Any],
        check_as_it_is: Callable[[str, Any, Any], None] = lambda name, before, after: None,
    ) -> None:
        self.name = inner.name
        self._inner, self._client, self._check, self._look = inner, client, check, look
        self._broken, self._countdown, self._check_as_it_is = broken, countdown, check_as_it_is

    def __getattr__(self, name: str) -> Any:  # remember and recall, for reconcilers that have them
        return getattr(self._inner, name)

    @property
    def queue(self) -> WorkQueue[Key]:
        return self._inner.queue

    def handlers(self) -> Mapping[str, Handler]:
        return self._inner.handlers()

    def sync(self, key: Key) -> None:
        sight = Sight(self._inner, self._client)
        try:
            self._inner.sync(key)
        except Status:
            raise
        except Exception as error:  # the manager would only report it and try again
            self._broken.append(Broken(f"a sync of {self.name} raises {error!r}"))
            raise
        finally:
            if key.resource != WATCH:
                before, after = self._look(sight.known), self._look(sight.known_after(sight.now()))
                if before is not None and after is not None:
                    try:
                        self._check(self.name, before, after)
                        self._check_as_it_is(
                            self.name, self._look(sight.before), self._look(sight.now())
                        )
                    except (
                        Exception
                    ) as error:  # kept, since the manager would treat an exception as a failed sync
                        self._broken.append(error)
        self._countdown[0] -= 1
        if self._countdown[0] == 0:
            raise Crash


class WatchedLab(Lab):
    """A lab whose subclasses wrap reconcilers in ``witnesses``."""

    def __init__(self, folder: Path, faults: Object | None = None) -> None:
        super().__init__(folder, faults)
        self.broken: list[Exception] = []

    def witnesses(self, context: Context, crash_at: int) -> list[Reconciler]:
        raise NotImplementedError

    def run(self, crash_at: int = 0) -> None:
        """Run the controllers until they are settled; with ``crash_at`` the manager dies at that
        sync and loses what is not committed."""
        cluster, informers, store = self.cluster, Informers(), self.cluster.store
        context = Context(cluster.client, informers, cluster.clock, Pacing(), cluster.scheme)
        made = self.witnesses(context, crash_at)
        checkpoints = CheckpointStore(
            lambda: load(store),
            lambda text: save(store, text),
            identity(reconciler_names(cluster.settings), cluster.settings),
        )
        manager = Manager(
            context,
            made,
            source=ListWatch(RecordedView(store)),
            checkpoints=checkpoints,
        )
        with suppress(Crash):
            manager.run_until_settled()
            while (
                self.cluster.settings.faults is not None
                and (due := _next_recovery(made)) is not None
            ):
                self.cluster.clock.own = max(due, self.now)
                manager.run_until_settled()
        if self.broken:
            raise self.broken[0]

    def wait(self, seconds: float) -> None:
        self.cluster.clock.own = self.now + timedelta(seconds=seconds)


def _next_recovery(reconcilers: list[Reconciler]) -> datetime | None:
    """Return when the next late event comes, or a sync that has failed is tried again; None if all
    have."""
    return min(
        (
            due
            for reconciler in reconcilers
            for key, due in reconciler.queue.pending()
            if due is not None
            and (key.resource == WATCH or 0 < reconciler.queue.failures(key) < 15)
        ),
        default=None,
    )


def if_there(act: Callable[[], object]) -> None:
    """Do something to an object that may be gone already."""
    with suppress(NotFound):
        act()
