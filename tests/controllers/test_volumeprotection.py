"""Protection of claims and volumes in use: they stay until their last use ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.apiserver.request import DeleteOptions
from kubepy.controllers.volumeprotection import PVCProtectionController
from kubepy.controlplane.manager import ListWatch, Manager
from kubepy.controlplane.open import open_cluster
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Informers
from kubepy.storage.view import RecordedView
from tests.stores import disagreements


class Run:
    def __init__(self, folder: Path) -> None:
        self.cluster = open_cluster(folder, create=True)
        self.client = self.cluster.client
        informers = Informers()
        context = Context(self.client, informers, self.cluster.clock, Pacing())
        own = [PVCProtectionController(context)]
        source = ListWatch(RecordedView(self.cluster.store))
        self.manager = Manager(context, own, source=source)

    def settle(self) -> None:
        assert self.manager.run_until_settled().failures == []

    def claim(self) -> None:
        resources = {"requests": {"storage": "1Gi"}}
        self.client.create(
            "persistentvolumeclaims",
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "namespace": "default"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources},
            },
            namespace="default",
        )

    def pod(self, node: str | None) -> None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        spec = {"containers": [{"name": "c", "image": "c:1"}], "volumes": volumes, "nodeName": node}
        meta = {"name": "p", "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        self.client.create("pods", pod, namespace="default")

    def delete_claim(self) -> None:
        self.client.delete("persistentvolumeclaims", "data", namespace="default")
        self.settle()

    def claims(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.client.list("persistentvolumeclaims").items]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path / "state")
    made.claim()
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()


def test_claim_that_no_pod_uses_goes_at_once(run: Run) -> None:
    run.delete_claim()
    assert run.claims() == []


def test_claim_of_pod_without_node_goes_at_once(run: Run) -> None:
    run.pod(None)
    run.delete_claim()
    assert run.claims() == []


def test_claim_of_pod_with_node_goes_when_pod_does(run: Run) -> None:
    run.pod("a")
    run.delete_claim()
    assert run.claims() == ["data"]
    run.client.delete(
        "pods", "p", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    run.settle()
    assert run.claims() == []


def test_claim_that_lost_its_protection_gets_it_back(run: Run) -> None:
    metadata = {"name": "data", "namespace": "default", "finalizers": []}
    claim = run.client.get("persistentvolumeclaims", "data", namespace="default")
    run.client.update(
        "persistentvolumeclaims",
        {**claim, "metadata": {**claim["metadata"], **metadata}},
        namespace="default",
    )
    run.settle()
    claim = run.client.get("persistentvolumeclaims", "data", namespace="default")
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
