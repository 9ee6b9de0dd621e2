"""Keep as many worker pods as a ConfigMap says.

Bug: it compares the number with the pods of its cache, which may not have its last ones yet.
"""

from contextlib import suppress

from kubepy import NotFound


def operator(cluster):
    @cluster.controller("pool", watches=["configmaps", "pods"])
    def reconcile(client, key):
        pools = client.list("configmaps", namespace=key.namespace, labels="worker-pool")
        for pool in pools:
            name = pool["metadata"]["name"]
            pods = client.list("pods", namespace=key.namespace, labels={"pool": name})
            scale(client, pool, pods)


def scale(client, pool, pods):
    name, replicas = pool["metadata"]["name"], int(pool["data"]["replicas"])
    for _ in range(replicas - len(pods)):
        client.create(worker(name, {"generateName": f"{name}-"}))
    for pod_name in [pod["metadata"]["name"] for pod in pods[replicas:]]:
        with suppress(NotFound):
            client.delete("pods", pod_name)


def worker(pool, metadata):
    container = {"name": "worker", "image": "worker:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"labels": {"pool": pool}},
        "spec": {"containers": [container]},
    }


def workload(cluster):
    pool = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "encoders", "labels": {"worker-pool": "true"}},
        "data": {"replicas": "2"},
    }
    cluster.client.create(pool)
    cluster.advance("30s")
    cluster.client.patch("configmap/encoders", {"data": {"replicas": "4"}})
    cluster.advance("30s")
    cluster.client.patch("configmap/encoders", {"data": {"replicas": "3"}})
