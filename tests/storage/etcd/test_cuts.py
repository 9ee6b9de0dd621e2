"""Batches of controllers that end before any of their objects is written: the next manager brings
the workload to where an uncut one does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from kubepy.api.clock import later
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.furnishing import furnish
from kubepy.controlplane.open import make_cluster
from kubepy.storage.etcd import commit
from tests.etcd import EtcdServer, fresh_prefix

Object = dict[str, Any]
Step = Callable[[LocalCluster], None]
SETTINGS = {"clock": "2026-01-01T00:00:00Z", "seed": 1, "bootstrap": "minimal"}
IS_LONG = bool(os.environ.get("LONG_ETCD_TESTS"))
EVERY = 1 if IS_LONG else 23  # place at which a batch is cut
SECONDS = 300.0  # for which each step is given time


class Cut(BaseException):
    """The manager was killed."""


def template(image: str, **spec: Any) -> Object:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}], **spec},
    }


def workload(resource: str, **spec: Any) -> Step:
    def create(cluster: LocalCluster) -> None:
        selected = {} if resource.startswith("jobs") else {"selector": {"matchLabels": APP}}
        body = {"metadata": {"name": "web"}, "spec": {**selected, **spec}}
        cluster.client.create(resource, body, namespace="default")

    return create


def changed(resource: str, **spec: Any) -> Step:
    def change(cluster: LocalCluster) -> None:
        present = cluster.client.get(resource, "web", namespace="default")
        body = {**present, "spec": {**present["spec"], **spec}}
        cluster.client.update(resource, body, namespace="default")

    return change


def deleted(resource: str) -> Step:
    return lambda cluster: cluster.client.delete(resource, "web", namespace="default") and None


APP = {"app": "web"}
OLD, NEW = template("nginx:1"), template("nginx:2")
DEPLOYMENTS, DAEMON_SETS = "deployments.apps", "daemonsets.apps"
STATEFUL_SETS, JOBS = "statefulsets.apps", "jobs.batch"
JOB = template("busybox", restartPolicy="Never")
SCENARIOS: dict[str, tuple[Step, ...]] = {
    "deployment": (
        workload(DEPLOYMENTS, replicas=3, template=OLD),
        changed(DEPLOYMENTS, template=NEW),
        deleted(DEPLOYMENTS),
    ),
    "daemonset": (
        workload(DAEMON_SETS, template=OLD),
        changed(DAEMON_SETS, template=NEW),
        deleted(DAEMON_SETS),
    ),
    "statefulset": (
        workload(STATEFUL_SETS, serviceName="web", replicas=3, template=OLD),
        changed(STATEFUL_SETS, template=NEW),
        changed(STATEFUL_SETS, replicas=1),
    ),
    "job": (workload(JOBS, completions=4, parallelism=2, template=JOB), deleted(JOBS)),
}


def work(cluster: LocalCluster) -> None:
    """Let a new manager work for a while."""
    with manager_lock(cluster):
        build_manager(cluster).advance(later(cluster.clock.now(), SECONDS))


def content(cluster: LocalCluster) -> list[tuple[Any, ...]]:
    """Return what there is, without names that are drawn, times and versions."""
    pods = cluster.client.list("pods").items
    images = Counter(
        (pod["status"]["phase"], pod["spec"]["containers"][0]["image"]) for pod in pods
    )
    counts: list[tuple[Any, ...]] = [("pods", sorted(images.items()))]
    for resource in (DEPLOYMENTS, DAEMON_SETS, STATEFUL_SETS, JOBS):
        for obj in cluster.client.list(resource).items:
            status = obj["status"]
            numbers = {name: value for name, value in status.items() if isinstance(value, int)}
            counts.append((resource, sorted(numbers.items())))
    return counts


@pytest.fixture
def new_cluster(etcd_server: EtcdServer) -> Iterator[Callable[[], LocalCluster]]:
    """A function that makes a cluster with three nodes that have settled."""
    opened: list[LocalCluster] = []

    def make() -> LocalCluster:
        cluster = make_cluster(etcd_server.address(fresh_prefix()), SETTINGS)
        opened.append(cluster)
        furnish(cluster, 3, lambda number: None, with_storage=False)
        work(cluster)
        return cluster

    yield make
    for cluster in opened:
        cluster.close()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_workload_whose_batches_are_cut_at_any_place_comes_to_the_same(
    scenario: str, new_cluster: Callable[[], LocalCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = SCENARIOS[scenario]
    send = commit.EtcdCommit._write_object
    left = [-1]  # writes before the cut; below 0: there is none

    def write(self: commit.EtcdCommit, change: commit.KeyWrite) -> None:
        if left[0] == 0:
            left[0] = -1
            raise Cut
        left[0] -= 1
        send(self, change)

    monkeypatch.setattr(commit.EtcdCommit, "_write_object", write)
    uncut = new_cluster()
    expected = []
    for step in steps:
        step(uncut)
        work(uncut)
        expected.append(content(uncut))

    for number in count(0, EVERY):
        cluster = new_cluster()
        was_cut = False
        for step, wanted in zip(steps, expected, strict=True):
            step(cluster)
            left[0] = number
            with suppress(Cut):
                work(cluster)
            was_cut = was_cut or left[0] == -1
            left[0] = -1
            work(cluster)
            assert content(cluster) == wanted, f"cut before object {number}"
        if not was_cut:
            return
