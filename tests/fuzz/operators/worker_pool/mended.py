"""Keep as many worker pods as a ConfigMap says. Their names are numbered: one that the cache does
not have yet cannot be made twice.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound


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
    wanted = [f"{name}-{index}" for index in range(replicas)]
    present = {pod["metadata"]["name"] for pod in pods}
    for pod_name in wanted:
        if pod_name not in present:
            with suppress(AlreadyExists):
                client.create(worker(name, {"name": pod_name}))
    for pod_name in sorted(present.difference(wanted)):
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
