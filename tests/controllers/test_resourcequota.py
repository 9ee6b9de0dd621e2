"""Status of quotas after objects are created and deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubepy.apiserver.cluster import LocalCluster
from kubepy.controllers.resourcequota import ResourceQuotaController
from kubepy.controlplane.manager import ListWatch, Manager
from kubepy.runtime.reconcile import Context, Informers

Object = dict[str, Any]


def pod(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "250m"}}}]}}


def test_quota_counts_what_is_there_and_forgets_what_has_gone(tmp_path: Path) -> None:
    cluster = LocalCluster.open(tmp_path / "state", create=True)
    client, informers = cluster.client, Informers()
    own = [ResourceQuotaController(Context(client, informers, cluster.clock, cluster.scheme))]
    manager = Manager(client, informers, cluster.clock, own, source=ListWatch(cluster.store.view()))

    def used() -> Object:
        assert manager.run_until_settled().failures == []
        status: Object = client.get("resourcequotas", "q", namespace="default")["status"]
        return status["used"]

    for name in ("a", "b", "c"):
        client.create("pods", pod(name), namespace="default")
    hard = {"pods": "5", "requests.cpu": "2", "count/deployments.apps": "1", "count/unheard.of": "1"}
    client.create("resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
                                     "spec": {"hard": hard}}, namespace="default")
    assert used() == {"count/deployments.apps": "0", "pods": "3", "requests.cpu": "750m"}
    client.delete("pods", "a", namespace="default")
    ended = client.get("pods", "b", namespace="default")
    client.update("pods", {**ended, "status": {**ended["status"], "phase": "Succeeded"}}, namespace="default",
                  subresource="status")
    assert used() == {"count/deployments.apps": "0", "pods": "1", "requests.cpu": "250m"}
    assert cluster.store.check() == []
    cluster.close()
