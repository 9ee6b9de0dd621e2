"""Several `kubepy controller --watch` on one etcd: while a DaemonSet is rolled out the one that
works is killed, stopped or cut off, again and again."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import Patch
from kubepy.controlplane import MANAGER_LOCK, build_manager, manager_lock
from kubepy.controlplane.furnishing import furnish
from kubepy.controlplane.manager import Manager
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage.etcd import keyspace
from tests.etcd import EtcdServer, require_long_tests

from .backward import BackwardClient
from .managers import DAEMON_SET, Managers, Observer, Proxy, observed

Object = dict[str, Any]
LEASE = 2  # seconds
PREFIX = "/managers"
RESOURCE = "daemonsets.apps"
MERGE = "application/merge-patch+json"
ROLLOUT_SECONDS = 90.0


class Size(NamedTuple):
    """How much a test does: how many nodes there are, and how often a manager is disturbed."""

    nodes: int
    times: int


SHORT, KILLS, CUTS = Size(20, 1), Size(200, 20), Size(200, 5)


def image(number: int) -> str:
    return f"agent:{number}"


def daemon_set(number: int) -> Object:
    labels = {"app": DAEMON_SET}
    return {
        "metadata": {"name": DAEMON_SET},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": image(number)}]},
            },
        },
    }


def roll_out(cluster: LocalCluster, number: int) -> None:
    """Give the DaemonSet another image."""
    patch = Patch(MERGE, {"spec": {"template": daemon_set(number)["spec"]["template"]}})
    cluster.client.patch(RESOURCE, DAEMON_SET, patch, namespace="default")


class Rollouts:
    """A cluster whose DaemonSet is rolled out under observation."""

    def __init__(self, address: str, size: Size, observer: Observer) -> None:
        self._cluster = open_cluster(address)
        self._size = size
        self._chance = random.Random(size.nodes)
        self._number = 1
        self.observer = observer

    def begin(self) -> None:
        """Begin the next rollout, and wait until it has come to some place, which is another one
        each time."""
        self._number += 1
        roll_out(self._cluster, self._number)
        number, nodes = self._number, self._size.nodes
        place = self._chance.randrange(nodes)
        self.observer.wait_for(
            lambda: self.observer.images().get(image(number), 0) >= place,
            ROLLOUT_SECONDS,
            f"{place} of {nodes} updated",
        )

    def finish(self) -> None:
        """Wait until the rollout has come to its end."""
        number = self._number
        self.observer.wait_for(
            lambda: self.observer.is_rolled_out(image(number)), ROLLOUT_SECONDS, "rolled out"
        )

    def wait_for_takeover(self, former: int) -> int:
        """Wait until another process is elected than a former one, and return it."""
        observer = self.observer
        observer.wait_for(
            lambda: observer.holder not in (0, former), ROLLOUT_SECONDS, "another one is elected"
        )
        return observer.holder

    def close(self) -> None:
        self._cluster.close()


def prepare(server: EtcdServer, size: Size) -> str:
    """Make a cluster with nodes and the DaemonSet; return the address for managers."""
    address = f"{server.address(PREFIX)}?lease={LEASE}"
    with closing(make_cluster(address, {"bootstrap": "minimal"})) as cluster:
        furnish(cluster, size.nodes, with_storage=False)
        cluster.client.create(RESOURCE, daemon_set(1), namespace="default")
    return address


class Scene(NamedTuple):
    """Managers of a cluster, who observes them, and the rollouts that they carry out."""

    managers: Managers
    observer: Observer
    rollouts: Rollouts


@contextmanager
def observed_rollouts(address: str, tmp_path: Path, size: Size) -> Iterator[Scene]:
    """Observe the rollouts of a cluster without any managers yet."""
    with (
        Managers(tmp_path / "log") as managers,
        observed(address, size.nodes, size.nodes // 10) as observer,
        closing(Rollouts(address, size, observer)) as rollouts,
    ):
        yield Scene(managers, observer, rollouts)


@contextmanager
def rolled_out_by_two(address: str, tmp_path: Path, size: Size) -> Iterator[Scene]:
    """Let two managers carry out the first rollout; check after the block that all was right."""
    with observed_rollouts(address, tmp_path, size) as scene:
        scene.managers.start(address)
        scene.managers.start(address)
        scene.rollouts.finish()
        yield scene
        check(scene.observer, scene.managers)


def check(observer: Observer, managers: Managers) -> None:
    assert observer.wrong == []
    assert managers.ended() == []
    assert observer.worst > 0
    print(  # for whoever runs it with -s
        f"{observer.revision} revisions, {len(observer.takeovers)} elections, writes by process "
        f"{dict(observer.writes)}, at most {observer.worst} nodes without a pod"
    )


def sizes(long: Size) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize("size", [SHORT, long], ids=["short", "long"])


def test_rollout_keeps_its_bounds_where_writes_under_way_are_done_backwards(
    own_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyspace, "EtcdClient", BackwardClient)
    chance = random.Random(1)
    monkeypatch.setattr(  # batches end anywhere, as on a slow machine
        Manager, "_is_time_to_commit", lambda *_: chance.random() < 0.1
    )
    address = own_etcd.address(PREFIX)
    nodes, most = 40, 4
    with closing(make_cluster(address, {"bootstrap": "minimal", "seed": 1})) as cluster:
        furnish(cluster, nodes, with_storage=False)
        cluster.client.create(RESOURCE, daemon_set(1), namespace="default")
        with manager_lock(cluster):
            manager = build_manager(cluster)
            manager.run_until_settled()
            for number in (2, 3):
                roll_out(cluster, number)
                manager.run_until_settled()
    with observed(address, nodes, most) as observer:
        observer.wait_for(lambda: observer.is_rolled_out(image(3)), 20.0, "rolled out")
        assert observer.wrong == []
        assert observer.worst > 0


@sizes(KILLS)
def test_rollout_whose_managers_are_killed_ends_right(
    own_etcd: EtcdServer, tmp_path: Path, size: Size
) -> None:
    if size != SHORT:
        require_long_tests()
    address = prepare(own_etcd, size)
    with rolled_out_by_two(address, tmp_path, size) as (managers, observer, rollouts):
        for _ in range(size.times):
            rollouts.begin()
            victim = observer.holder
            managers.kill(victim)
            managers.start(address)
            rollouts.finish()
    assert len(observer.takeovers) > size.times


@sizes(CUTS)
def test_manager_that_is_stopped_for_longer_than_its_lease_writes_nothing_more(
    own_etcd: EtcdServer, tmp_path: Path, size: Size
) -> None:
    if size != SHORT:
        require_long_tests()
    address = prepare(own_etcd, size)
    with rolled_out_by_two(address, tmp_path, size) as (_, observer, rollouts):
        for _ in range(size.times):
            rollouts.begin()
            former = observer.holder
            os.kill(former, signal.SIGSTOP)
            rollouts.wait_for_takeover(former)
            os.kill(former, signal.SIGCONT)
            rollouts.finish()
    assert len(observer.takeovers) > size.times


@sizes(CUTS)
def test_manager_that_is_cut_off_for_longer_than_its_lease_writes_nothing_more(
    own_etcd: EtcdServer, tmp_path: Path, size: Size
) -> None:
    if size != SHORT:
        require_long_tests()
    address = prepare(own_etcd, size)
    proxies: dict[int, Proxy] = {}
    with observed_rollouts(address, tmp_path, size) as (managers, observer, rollouts):
        for _ in range(2):
            proxy = Proxy(own_etcd.port)
            proxy.start()
            own_address = address.replace(own_etcd.endpoint, f"127.0.0.1:{proxy.port}")
            proxies[managers.start(own_address)] = proxy
        rollouts.finish()
        for _ in range(size.times):
            rollouts.begin()
            former = observer.holder
            proxies[former].hold()
            rollouts.wait_for_takeover(former)
            proxies[former].release()
            rollouts.finish()
        check(observer, managers)
        assert len(observer.takeovers) > size.times
    for proxy in proxies.values():
        proxy.stop()


def test_managers_whose_etcd_goes_away_go_on_when_it_is_back(
    own_etcd: EtcdServer, tmp_path: Path
) -> None:
    patient = prepare(own_etcd, SHORT)
    address = f"{patient}&timeout=500ms"
    with observed_rollouts(patient, tmp_path, SHORT) as (managers, observer, rollouts):
        managers.start(address)
        managers.start(address)
        rollouts.finish()
        rollouts.begin()
        own_etcd.kill()
        time.sleep(LEASE + 1.0)
        own_etcd.start()
        rollouts.finish()
        check(observer, managers)
    assert "cannot be reached: " in (tmp_path / "log").read_text()


def test_manager_says_once_that_etcd_is_away_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    def wait_until(condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + ROLLOUT_SECONDS
        while not condition():
            assert time.monotonic() < end, f"{what}; the log:\n{log.read_text()}"
            time.sleep(0.02)

    def has_pods() -> bool:
        with closing(open_cluster(server.address(PREFIX))) as cluster:
            return bool(cluster.client.list("pods").items)

    def complaints() -> int:
        return log.read_text().count("cannot be reached")

    log = tmp_path / "log"
    (tmp_path / "etcd").mkdir()
    with EtcdServer(tmp_path / "etcd") as server, Managers(log) as managers:
        address = f"{server.address(PREFIX)}?lease={LEASE}"
        with closing(make_cluster(address, {"bootstrap": "minimal"})) as cluster:
            furnish(cluster, 1, with_storage=False)
        managers.start(address)
        wait_until(lambda: holder_of(address) != "", "no manager is elected")
        server.kill()
        wait_until(lambda: complaints() > 0, "the manager does not miss etcd")
        time.sleep(2.5)  # it tries again every second
        assert complaints() == 1
        server.start()
        with closing(open_cluster(address)) as cluster:
            cluster.client.create(RESOURCE, daemon_set(1), namespace="default")
        wait_until(has_pods, "the manager does not go on")
        assert complaints() == 1
        assert managers.ended() == []


def holder_of(address: str) -> str:
    """Return who runs the controllers, "" where nobody does."""
    with closing(open_cluster(address)) as cluster:
        return cluster.store.holder(MANAGER_LOCK) or ""
