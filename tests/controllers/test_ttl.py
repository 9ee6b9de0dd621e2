"""Time for which kubelets may use cached Secrets and ConfigMaps: the annotation of the ttl
controller."""

from __future__ import annotations

from pathlib import Path

from kubepy.controllers.ttl import ANNOTATION, TTLController, ttl_seconds
from kubepy.controlplane.manager import ListWatch, Manager
from kubepy.controlplane.open import open_cluster
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Informers
from kubepy.storage.view import RecordedView
from tests.stores import disagreements


def test_larger_cluster_longer() -> None:
    assert [ttl_seconds(nodes) for nodes in (1, 100, 101, 500, 501, 1000, 2000, 2001)] == [
        0, 0, 15, 15, 30, 30, 60, 300]  # fmt: skip


def test_ttl_annotation_is_set_on_every_node(tmp_path: Path) -> None:
    cluster = open_cluster(tmp_path / "state", create=True)
    informers = Informers()
    context = Context(cluster.client, informers, cluster.clock, Pacing())
    own = [TTLController(context)]
    manager = Manager(
        context,
        own,
        source=ListWatch(RecordedView(cluster.store)),
    )
    for name in ("a", "b"):
        meta = {"name": name, "annotations": {"note": name}}
        cluster.client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    assert manager.run_until_settled().failures == []
    found = cluster.client.list("nodes").items
    assert {node["metadata"]["name"]: node["metadata"]["annotations"] for node in found} == {
        "a": {"note": "a", ANNOTATION: "0"}, "b": {"note": "b", ANNOTATION: "0"},
    }  # fmt: skip
    assert disagreements(cluster.store) == []
    cluster.close()
