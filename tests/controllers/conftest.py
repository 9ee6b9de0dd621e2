"""A cluster in a temporary folder, checked for damage at the end of every test, and the manager of
all controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, name_of
from kubepy.apiserver.client import Client
from kubepy.controlplane import build_manager
from kubepy.controlplane.open import make_cluster
from kubepy.controlplane.summary import Summary
from tests.stores import disagreements

NOW = "2026-11-20T10:00:00Z"


class Lab:
    """A cluster whose clock stands still until a test moves it, as between runs of
    ``controller --once``."""

    def __init__(self, folder: Path, faults: Object | None = None) -> None:
        self.folder = folder
        settings = {"clock": NOW, "seed": 1, **({"faults": faults} if faults else {})}
        self.cluster = make_cluster(folder, settings)
        self.client: Client = self.cluster.client

    @property
    def now(self) -> datetime:
        return self.cluster.clock.now()

    def pass_time(self, seconds: float) -> None:
        self.cluster.clock.own = parse_time(NOW) + timedelta(seconds=seconds)

    def settle(self) -> Summary:
        """Run the controllers as ``kubepy controller --once`` does, with a manager of its own."""
        return build_manager(self.cluster).run_until_settled(skip_waits=True)

    def recover(self) -> None:
        """Let an hour pass at most, in which controllers overcome their faults."""
        build_manager(self.cluster).advance(self.now + timedelta(hours=1), settled=True)

    def watch(self) -> Summary:
        """Run the controllers as ``kubepy controller --watch`` does, until nothing is left to do
        now."""
        return build_manager(self.cluster).run_until_settled()

    def create(self, resource: str, obj: Object, namespace: str = "") -> Object:
        return self.client.create(resource, obj, namespace=namespace)

    def names(self, resource: str, namespace: str | None = None) -> list[str]:
        """Return the names of the objects that are stored; implied ones do not count."""
        return [name_of(obj) for obj in self.client.list_stored(resource, namespace)]

    def node(self, name: str, **spec: Any) -> Object:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
        return self.create("nodes", node)

    def config_map(
        self,
        name: str,
        *,
        owners: list[Object] | None = None,
        namespace: str = "default",
        finalizers: list[str] | None = None,
    ) -> Object:
        metadata: Object = {
            "name": name,
            "ownerReferences": owners or [],
            "finalizers": finalizers or [],
        }
        return self.create(
            "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, namespace
        )

    def daemon_set(self, name: str, **spec: Any) -> Object:
        template_spec = {
            "containers": [{"name": "c", "image": "agent:1"}],
            **spec.pop("template_spec", {}),
        }
        annotations = spec.pop("template_annotations", {})
        template = {
            "metadata": {"labels": {"app": name}, "annotations": annotations},
            "spec": template_spec,
        }
        full = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
        obj = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name},
            "spec": full,
        }
        return self.create("daemonsets.apps", obj, "default")

    def change(
        self,
        resource: str,
        name: str,
        change: Callable[[Object], None],
        namespace: str = "",
        subresource: str = "",
    ) -> Object:
        """Read an object, change a copy, write it."""
        from copy import deepcopy

        obj = deepcopy(self.client.get(resource, name, namespace=namespace))
        change(obj)
        return self.client.update(resource, obj, namespace=namespace, subresource=subresource)

    def file(self, resource: str, name: str, namespace: str = "") -> Path:
        place = self.folder / "namespaces" / namespace if namespace else self.folder / "cluster"
        return place / resource / f"{name}.yaml"

    def forget_index(self) -> None:
        rmtree(self.folder / ".kubepy")

    def pods_by_node(self) -> dict[str, Object]:
        return {pod["spec"].get("nodeName", ""): pod for pod in self.client.list("pods").items}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "state")
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()
