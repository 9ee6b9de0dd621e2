"""The furniture of a new cluster: Ready nodes, and simulated storage.

On the command line they come together: where the user brings the nodes, the storage is the user's
too, and the cluster is as empty as that of a control plane alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kubepy.api.errors import AlreadyExists
from kubepy.api.meta import Object
from kubepy.controlplane import build_manager, manager_lock
from kubepy.kubelet.nodes import DEFAULT_CAPACITY

if TYPE_CHECKING:
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.cluster import LocalCluster

FIRST_NODE = "node-1"
STORAGE_CLASSES = "storageclasses.storage.k8s.io"


def furnish(
    cluster: LocalCluster,
    nodes: int,
    show: Callable[[int], None] = lambda number: None,
    *,
    with_storage: bool = True,
) -> list[str]:
    """Give a new cluster Ready nodes and a StorageClass, but for those that it has; return the
    nodes' names.

    :param show: is called with the number of each node.
    """
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    with cluster.client.joined():
        if with_storage:
            add_storage_class(cluster.client)
        for number, name in enumerate(names, 1):
            show(number)
            add_node(cluster.client, name)
    with manager_lock(cluster) as is_lost:
        if (
            is_lost is not None
        ):  # kubelets register and taints of new nodes go, so that the cluster begins ready
            build_manager(cluster).run_until_settled()
    return names


def add_first_node(client: Client) -> str:
    """Give a cluster that has no nodes what :func:`furnish` would for one; return its name, ""
    where there are nodes.

    It becomes Ready when the controllers run.
    """
    if client.list("nodes").items:
        return ""
    with client.joined():
        add_storage_class(client)
        add_node(client, FIRST_NODE)
    return FIRST_NODE


def add_node(client: Client, name: str) -> None:
    """Make a node with the labels that a kubelet on Linux gives its own, unless it is there."""
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {**DEFAULT_CAPACITY, "ephemeral-storage": "100Gi"}},
    }
    with suppress(AlreadyExists):
        client.create("nodes", node)


def add_storage_class(client: Client) -> None:
    """Make the default StorageClass, by which every claim that a pod uses gets a simulated volume.

    One that the cluster has already is to be the only one: of two defaults the newer counts.
    """
    if client.list(STORAGE_CLASSES).items:
        return
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    client.create(
        STORAGE_CLASSES,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": annotations},
            "provisioner": "kubepy.dev/simulated",
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
