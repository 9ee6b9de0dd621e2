"""Scale the worker groups of a RayCluster.

Bug: ray-project/kuberay issue 715. The number of pods to make is the difference between the spec
and the pods of the cache. Found by late events.
"""

from contextlib import suppress

from kubepy import NotFound

KIND = "rayclusters.example.org"


def operator(cluster):
    @cluster.controller("raycluster", watches=[KIND, "pods"])
    def reconcile(client, key):
        for ray in client.list(KIND, namespace=key.namespace):
            for group, replicas in ray["spec"]["workers"].items():
                scale(client, group, replicas)


def scale(client, group, replicas):
    pods = client.list("pods", labels={"group": group})
    for _ in range(replicas - len(pods)):
        client.create(worker(group, {"generateName": f"worker-{group}-"}))
    for name in [pod["metadata"]["name"] for pod in pods[replicas:]]:
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
