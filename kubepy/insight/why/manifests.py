"""Remedies that make an object that no command makes by itself: a node, a claim, a StorageClass.
They read its manifest from standard input.
"""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, Any

from kubepy.api.meta import Object, labels_of, name_of, namespace_of, nested_map
from kubepy.api.objects.pods import pod_requests
from kubepy.api.objects.volumes import DEFAULT_CLASS
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
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
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
    number: int = 1,
) -> RemedyCommand:
    """Return the command that makes a node, or several, which their kubelets make ready.

    :param pod: a pod that it has to be large enough for, with the labels that its nodeSelector
        wants.
    :param name: "": a free one.
    :param labels: further ones.
    """
    if name:
        names = [name]
    else:
        taken = {name_of(node) for node in scene.list("nodes")}
        free = (node for place in count(1) if (node := f"node-{place}") not in taken)
        names = list(islice(free, number))
    nodes = [node_manifest(node, pod, labels or {}) for node in names]
    if len(nodes) == 1:
        return create(nodes[0])
    return create({"apiVersion": "v1", "kind": "List", "items": nodes})


def node_manifest(name: str, pod: Object | None, labels: Mapping[str, str]) -> Object:
    """Return the manifest of a node that a pod fits on."""
    selector = nested_map(pod or {}, "spec", "nodeSelector")
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**FACTS, HOSTNAME: name, **selector, **labels},
        },
    }
    larger = larger_requests(pod) if pod is not None else {}
    if larger:
        node["status"] = {"capacity": {**DEFAULT_CAPACITY, **larger}}
    return node


def pods_on_new_node(pod: Any) -> int:
    """Return how many pods like one fit on a node that is made for it."""
    capacity = {**DEFAULT_CAPACITY, **larger_requests(pod)}
    shares = [
        Quantity.parse(capacity[resource]).nanos // quantity.nanos
        for resource, quantity in pod_requests(pod).items()
        if quantity.nanos > 0
    ]
    return max(min([int(capacity["pods"]), *shares]), 1)


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

    :param changes: fields of its spec; None leaves one out.
    """
    metadata = {
        field: claim["metadata"][field]
        for field in ("name", "namespace", "labels")
        if claim["metadata"].get(field)
    }
    spec = {field: value for field, value in claim["spec"].items() if field != "volumeName"}
    spec.update(changes)
    obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {field: value for field, value in spec.items() if value is not None},
    }
    return RemedyCommand(REPLACE, compact_json(obj))


def consumer_of(claim: Object) -> RemedyCommand:
    """Return the command that makes a pod that mounts a claim, and does nothing else."""
    name = name_of(claim)
    container = {
        "name": "pause",
        "image": PAUSE_IMAGE,
        "volumeMounts": [{"name": "claim", "mountPath": "/claim"}],
    }
    return create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-user", "namespace": namespace_of(claim)},
            "spec": {
                "containers": [container],
                "volumes": [{"name": "claim", "persistentVolumeClaim": {"claimName": name}}],
            },
        }
    )


def new_class(name: str, *, is_default: bool = False) -> RemedyCommand:
    """Return the command that makes a StorageClass whose volumes are simulated."""
    metadata: Object = {"name": name}
    if is_default:
        metadata["annotations"] = {DEFAULT_CLASS: "true"}
    return create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": metadata,
            "provisioner": PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
