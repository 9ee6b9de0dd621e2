"""Restart the three members of a store, one after the other.

Bug: whether the others are ready is read from the cache, which may not have the deletion of the
last one yet.
"""

from contextlib import suppress

from kubepy import AlreadyExists

MEMBERS = ["store-0", "store-1", "store-2"]


def operator(cluster):
    @cluster.controller("store", watches=["configmaps", "pods"])
    def reconcile(client, key):
        for store in client.list("configmaps", namespace=key.namespace, labels="store"):
            return sync(client, store)
        return None


def sync(client, store):
    pods = {pod["metadata"]["name"]: pod for pod in client.list("pods", labels="member=store")}
    for name in MEMBERS:
        if name not in pods:
            with suppress(AlreadyExists):
                client.create(member(name))
    if len(pods) < len(MEMBERS) or not all(map(is_ready, pods.values())):
        return "2s"
    if store["data"].get("phase") != "Running":
        client.patch("configmaps/store", {"data": {"phase": "Running"}})
        return "2s"
    restarted = store["data"].get("restarted", "").split()
    for name in MEMBERS if store["data"]["restart"] == "true" else []:
        if name not in restarted:
            if not are_all_ready(client):
                return "2s"
            client.delete("pods", name)
            store["data"]["restarted"] = " ".join([*restarted, name])
            client.update(store)
            return "2s"
    return None


def are_all_ready(client):
    pods = client.list("pods", labels="member=store")
    return len(pods) == len(MEMBERS) and all(map(is_ready, pods))


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
    conditions = pod.get("status", {}).get("conditions", [])
    is_up = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return is_up and "deletionTimestamp" not in pod["metadata"]


def workload(cluster):
    store = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "store", "labels": {"store": "true"}},
        "data": {"restart": "false"},
    }
    cluster.client.create(store)
    cluster.advance("1m")
    cluster.client.patch("configmap/store", {"data": {"restart": "true"}})
