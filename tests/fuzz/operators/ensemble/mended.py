"""Remove surplus members of an ensemble as long as a quorum stays. Who is ready is read from
the API, not from the cache.
"""

from contextlib import suppress

from kubepy import AlreadyExists

QUORUM = 3


def operator(cluster):
    @cluster.controller("ensemble", watches=["ensembles.example.org", "pods"])
    def reconcile(client, key):
        for ensemble in client.list("ensembles.example.org", namespace=key.namespace):
            wanted = [f"store-{index}" for index in range(ensemble["spec"]["members"])]
            pods = {pod["metadata"]["name"]: pod for pod in client.list("pods", labels="member")}
            for name in wanted:
                if name not in pods:
                    add(client, name)
            if all(is_ready(pods.get(name)) for name in wanted):
                patch = {"status": {"formed": True}}
                ensemble_path = f"ensembles.example.org/{ensemble['metadata']['name']}"
                client.patch(ensemble_path, patch, type="merge", subresource="status")
            surplus = sorted(pods.keys() - set(wanted))
            if surplus:
                remove(client, cluster.client.list("pods", labels="member"), surplus[-1])
                return "3s"
        return None


def add(client, name):
    with suppress(AlreadyExists):
        client.create(member(name))


def remove(client, pods, name):
    """Remove a member unless too few of these pods would be left."""
    others = [pod for pod in pods if is_ready(pod) and pod["metadata"]["name"] != name]
    if len(others) >= QUORUM and any(pod["metadata"]["name"] == name for pod in pods):
        client.delete("pods", name)


def member(name):
    container = {
        "name": "store",
        "image": "store:1",
        "readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 5},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"member": "store"}},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": [container]},
    }


def is_ready(pod):
    if pod is None:
        return False
    conditions = pod.get("status", {}).get("conditions", [])
    is_up = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return is_up and "deletionTimestamp" not in pod["metadata"]


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ensembles.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "ensembles", "singular": "ensemble", "kind": "Ensemble"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(definition())
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "Ensemble",
            "metadata": {"name": "main"},
            "spec": {"members": 5},
        }
    )
    cluster.advance("1m")
    for pod in client.list("pods", labels="member")[:2]:
        client.delete("pods", pod["metadata"]["name"])  # two members fail
    client.patch("ensembles.example.org/main", {"spec": {"members": 3}}, type="merge")
