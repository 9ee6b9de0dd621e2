"""Scale the worker groups of a RayCluster, whose pods are numbered (ray-project/kuberay issue
715).
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

KIND = "rayclusters.example.org"


def operator(cluster):
    @cluster.controller("raycluster", watches=[KIND, "pods"])
    def reconcile(client, key):
        for ray in client.list(KIND, namespace=key.namespace):
            for group, replicas in ray["spec"]["workers"].items():
                scale(client, group, replicas)


def scale(client, group, replicas):
    pods = client.list("pods", labels={"group": group})
    names = {pod["metadata"]["name"] for pod in pods}
    wanted = {f"worker-{group}-{index}" for index in range(replicas)}
    for name in sorted(wanted - names):
        with suppress(AlreadyExists):
            client.create(worker(group, {"name": name}))
    for name in sorted(names - wanted):
        with suppress(NotFound):
            client.delete("pods", name)


def worker(group, metadata):
    container = {"name": "ray", "image": "ray:2"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"labels": {"group": group}},
        "spec": {"containers": [container]},
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rayclusters.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "rayclusters", "singular": "raycluster", "kind": "RayCluster"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(definition())
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "RayCluster",
            "metadata": {"name": "ray"},
            "spec": {"workers": {"small": 1, "large": 1}},
        }
    )
    cluster.advance("1m")
    client.patch(f"{KIND}/ray", {"spec": {"workers": {"small": 3}}}, type="merge")
