"""The network over a cluster that the controllers run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from kubepy.api.errors import NotFound
from kubepy.apiserver.client import Client
from kubepy.controlplane import build_manager
from kubepy.controlplane.open import open_cluster
from kubepy.kubelet.behaviours import Behaviour
from kubepy.kubelet.modelled.listening import Listeners
from kubepy.kubelet.network import Network
from kubepy.shell.surroundings import NetworkRequest

Object = dict[str, Any]


class ClientView:
    """What requests see, implied objects included."""

    def __init__(self, client: Client, now: datetime) -> None:
        self._client = client
        self.now = now

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        try:
            return self._client.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Object]:
        return self._client.list(resource, namespace=namespace).items


def deployment(name: str) -> Object:
    labels = {"app": name}
    container = {"name": "c", "image": "c", "ports": [{"containerPort": 8080, "name": "http"}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_pod_reaches_a_deployment_through_its_service(tmp_path: Path) -> None:
    cluster = open_cluster(tmp_path / "state", create=True)
    client = cluster.client
    client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    client.create("deployments.apps", deployment("web"), namespace="default")
    ports = [{"port": 80, "targetPort": "http"}]
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}
    client.create("services", service, namespace="default")
    assert build_manager(cluster).run_until_settled().failures == []

    now = cluster.clock.now()
    network = Network(ClientView(client, now), Listeners(lambda pod, container: Behaviour()))
    pods = client.list("pods", namespace="default").items
    connections = network.from_pod(pods[0])
    names = sorted(pod["metadata"]["name"] for pod in pods)
    answers = [
        connections.http(NetworkRequest("GET", "http://web.default"), now).body.decode().strip()
        for _ in names
    ]
    assert sorted(answers) == names
    health = connections.http(NetworkRequest("GET", "https://kubernetes.default.svc/healthz"), now)
    assert health.body == b"ok"
    assert connections.resolve("kubernetes.default.svc", now) == ("10.96.0.1",)
    cluster.close()
