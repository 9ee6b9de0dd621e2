"""Scale the StatefulSet of each ZookeeperCluster, if the API agrees that the cluster is as the
cache has it (pravega/zookeeper-operator issue 314).
"""

from kubepy import NotFound

KIND = "zookeeperclusters.example.org"


def operator(cluster):
    @cluster.controller("zookeeper", watches=[KIND, "statefulsets"])
    def reconcile(client, key):
        for zookeeper in client.list(KIND, namespace=key.namespace):
            sync(client, zookeeper)


def sync(client, zookeeper):
    name, replicas = zookeeper["metadata"]["name"], zookeeper["spec"]["replicas"]
    try:
        current = client.get("statefulsets", name)
    except NotFound:
        client.create(stateful_set(name, replicas))
        return
    scaled = zookeeper.get("status", {}).get("replicas")
    if (replicas, replicas) != (scaled, current["spec"]["replicas"]):
        # An update is refused unless the cluster is still as the cache has it.
        zookeeper = client.update(zookeeper)
        client.patch(f"statefulsets/{name}", {"spec": {"replicas": replicas}})
        zookeeper["status"] = {"replicas": replicas}
        client.update(zookeeper, subresource="status")


def stateful_set(name, replicas):
    labels = {"zookeeper": name}
    container = {"name": "zookeeper", "image": "zookeeper:3"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "zookeeperclusters.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {
                "plural": "zookeeperclusters",
                "singular": "zookeepercluster",
                "kind": "ZookeeperCluster",
            },
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
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "ZookeeperCluster",
            "metadata": {"name": "zk"},
            "spec": {"replicas": 2},
        }
    )
    for replicas in (2, 1, 2):
        client.patch(f"{KIND}/zk", {"spec": {"replicas": replicas}}, type="merge")
        wait(cluster, lambda replicas=replicas: has_replicas(client, replicas))


def has_replicas(client, replicas):
    return client.get(KIND, "zk").get("status", {}).get("replicas") == replicas
