"""A cluster in a folder whose containers are modelled, with a clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubepy.controlplane import build_manager
from kubepy.controlplane.open import open_cluster
from tests.stores import disagreements

Object = dict[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)


class ModelledCluster:
    """A cluster and the controllers that run in it when a test asks for them."""

    def __init__(self, folder: Path, containers: str = "modelled") -> None:
        self.folder = folder
        folder.mkdir()
        settings = f"formatVersion: 1\nkubelet: {{containers: {containers}}}\n"
        (folder / "kubepy.yaml").write_text(settings)
        self.cluster = open_cluster(folder, create=True)
        self.cluster.clock.own = START
        self.manager = build_manager(self.cluster)

    @property
    def client(self) -> Any:
        return self.cluster.client

    def restart(self) -> None:
        """Go on in another process."""
        now = self.cluster.clock.own
        self.cluster.close()
        self.cluster = open_cluster(self.folder)
        self.cluster.clock.own = now
        self.manager = build_manager(self.cluster)

    def settle(self) -> None:
        assert self.manager.run_until_settled().failures == []

    def settle_until(self, moment: datetime) -> None:
        """Move the clock on, and let the controllers do what is due by then."""
        self.settle()
        self.cluster.clock.move_to(moment)
        self.settle()

    def node(
        self,
        name: str,
        status: Object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Object:
        metadata = {"name": name, "annotations": dict(annotations or {})}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status or {}}
        created: Object = self.client.create("nodes", node)
        return created

    def pod(self, name: str, node: str = "", **spec: Any) -> Object:
        """Create a pod of one container, bound to a node if one is named."""
        containers = [{"name": "c", "image": "c:1"}]
        full = {"containers": containers, **spec}
        if node:
            full["nodeName"] = node
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full}
        created: Object = self.client.create("pods", pod, namespace="default")
        return created

    def status(self, name: str) -> Object:
        """Return the status of a pod."""
        status: Object = self.client.get("pods", name, namespace="default")["status"]
        return status

    def events(self, name: str) -> list[tuple[str, str, str]]:
        """Return type, reason and message of the events about a pod."""
        return [
            (event["type"], event["reason"], event["message"])
            for event in self.client.list("events", namespace="default").items
            if event["involvedObject"]["name"] == name
        ]

    def close(self) -> None:
        assert disagreements(self.cluster.store) == []
        self.cluster.close()
