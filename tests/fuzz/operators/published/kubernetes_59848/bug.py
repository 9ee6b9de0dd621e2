"""Run units on nodes as kubelets do, at most one with the same name.

Bug: kubernetes/kubernetes issue 59848. A unit is deleted, and made again on another node. An agent
that restarts, and first sees the older state, starts the deleted one again. Found by an older cache
after a restart.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

KIND = "units.example.org"  # what pods are to a kubelet
FINALIZER = "example.org/running"


def operator(cluster):
    for node in ("node-1", "node-2"):
        agent(cluster, node)


def agent(cluster, node):
    """Run the units of a node. A Lease stands for a container that runs there."""

    @cluster.controller(f"agent-{node}", watches=[KIND])
    def reconcile(client, key):
        container = f"{key.name}.{node}"
        try:
            unit = client.get(KIND, key.name, namespace=key.namespace)
        except NotFound:
            return
        if unit["spec"]["node"] != node:
            return
        if "deletionTimestamp" not in unit["metadata"]:
            if FINALIZER not in unit["metadata"].get("finalizers", []):
                unit["metadata"]["finalizers"] = [FINALIZER]
                client.update(unit)
            start(client, key.name, container)
            return
        stop(client, container)
        if FINALIZER in unit["metadata"].get("finalizers", []):
            unit["metadata"]["finalizers"] = []
            client.update(unit)


def start(client, unit_name, container):
    with suppress(AlreadyExists):
        client.create(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": container, "labels": {"unit": unit_name}},
            }
        )


def stop(client, container):
    with suppress(NotFound):
        client.delete("leases", container)


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "units.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "units", "singular": "unit", "kind": "Unit"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def wait(cluster, is_so):
    for _ in range(40):
        if is_so():
            return
        cluster.advance("15s")


def workload(cluster):
    client = cluster.client
    client.create(definition())
    for node in ("node-1", "node-2"):
        client.create(
            {
                "apiVersion": "example.org/v1",
                "kind": "Unit",
                "metadata": {"name": "web-0"},
                "spec": {"node": node},
            }
        )
        cluster.advance("1m")
        if node == "node-1":
            client.delete(KIND, "web-0")
            wait(cluster, lambda: not client.list(KIND))
