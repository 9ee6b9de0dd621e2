"""Remedies that make an object that no command makes by itself: a node, a claim, a StorageClass.
They read its manifest from standard input.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from kubepy.api.meta import Object, labels_of, name_of, nested_map
from kubepy.api.objects.pods import pod_requests
from kubepy.api.values.quantity import Quantity
from kubepy.controllers.persistentvolume.provisioner import PROVISIONER
from kubepy.insight import RemedyCommand
from kubepy.insight.why.remedies import compact_json
from kubepy.kubelet.nodes import DEFAULT_CAPACITY
from kubepy.scheduler.scores import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubepy.insight.why.scene import Scene

CREATE = ("create", "-f", "-")
REPLACE = ("replace", "--force", "-f", "-")
FACTS = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}  # of a simulated machine


def create(obj: Object) -> RemedyCommand:
    """Return the command that creates an object, in the namespace that its metadata names."""
    return RemedyCommand(CREATE, compact_json(obj))


def new_node(
    scene: Scene,
    pod: Object | None = None,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
) -> RemedyCommand:
    """Return the command that makes a node, which its kubelet makes ready.

    :param pod: a pod that it has to be large enough for, with the labels that its nodeSelector
        wants.
    :param name: "": a free one.
    :param labels: further ones.
    """
    names = {name_of(node) for node in scene.list("nodes")}
    name = name or next(
        free for free in (f"node-{number}" for number in count(1)) if free not in names
    )
    selector = nested_map(pod or {}, "spec", "nodeSelector")
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**FACTS, HOSTNAME: name, **selector, **(labels or {})},
        },
    }
    larger = larger_requests(pod) if pod is not None else {}
    if larger:
        node["status"] = {"capacity": {**DEFAULT_CAPACITY, **larger}}
    return create(node)


def larger_requests(pod: Any) -> dict[str, str]:
    """Return what a pod requests beyond the capacity that a node has by default."""
    return {
        resource: str(quantity)
        for resource, quantity in pod_requests(pod).items()
        if resource not in DEFAULT_CAPACITY or Quantity.parse(DEFAULT_CAPACITY[resource]) < quantity
    }


def known_hosts(scene: Scene) -> set[str]:
    """Return the names and the hostnames of all nodes."""
    nodes = scene.list("nodes")
    return {name_of(node) for node in nodes} | {labels_of(node).get(HOSTNAME, "") for node in nodes}


# --- claims ---------------------------------------------------------------------------------------


def new_claim(namespace: str, name: str) -> RemedyCommand:
    """Return the command that makes a small claim of the default class."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
    )


def replaced_claim(claim: Object, **changes: Any) -> RemedyCommand:
    """Return the command that makes a claim anew, without its volume; its spec cannot be changed
    otherwise.

    :param changes: fields of its spec.
    """
    metadata = {
        field: claim["metadata"][field]
        for field in ("name", "namespace", "labels")
        if claim["metadata"].get(field)
    }
    spec = {field: value for field, value in claim["spec"].items() if field != "volumeName"}
    obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {**spec, **changes},
    }
    return RemedyCommand(REPLACE, compact_json(obj))


def new_class(name: str) -> RemedyCommand:
    """Return the command that makes a StorageClass whose volumes are simulated."""
    return create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
