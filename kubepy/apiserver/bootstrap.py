"""The objects that a new cluster has (``pkg/controlplane/controller/systemnamespaces``, ``registry/scheduling``)."""

from __future__ import annotations

from contextlib import suppress

from kubepy.api.errors import AlreadyExists
from kubepy.api.meta import Object
from kubepy.apiserver.client import Client

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2000000000, "Used for system critical pods that must run in the cluster, but can be "
                                            "moved to another node if necessary."),
    ("system-node-critical", 2000001000, "Used for system critical pods that must not be moved from their current "
                                         "node."),
)


def bootstrap(client: Client) -> None:
    """Create them, in one transaction. Those that lie in the folder already stay as they are."""
    with client.joined():
        for name in NAMESPACES:
            _ensure(client, "namespaces", {"metadata": {"name": name}})
        for name, value, description in PRIORITY_CLASSES:
            _ensure(client, "priorityclasses.scheduling.k8s.io", _priority_class(name, value, description))


def _ensure(client: Client, resource: str, obj: Object) -> None:
    with suppress(AlreadyExists):
        client.create(resource, obj)


def _priority_class(name: str, value: int, description: str) -> Object:
    return {"description": description, "metadata": {"name": name}, "value": value}
