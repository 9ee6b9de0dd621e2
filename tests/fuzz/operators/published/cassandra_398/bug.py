"""Run the nodes of a CassandraDataCenter with a claim each.

Bug: instaclustr/cassandra-operator issue 398. A claim is deleted while its pod is seen terminating.
If the cache gets the pod's end together with its deletion, the claim stays. Found by late events.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

KIND = "cassandradatacenters.example.org"


def operator(cluster):
    @cluster.controller("cassandra", watches=[KIND, "pods", "persistentvolumeclaims"])
    def reconcile(client, key):
        for datacenter in client.list(KIND, namespace=key.namespace):
            sync(client, datacenter)


def sync(client, datacenter):
    nodes = datacenter["spec"]["nodes"]
    pods = {pod["metadata"]["name"]: pod for pod in client.list("pods", labels="cassandra")}
    for index in range(nodes):
        if f"ca-{index}" not in pods:
            create(client, claim(f"ca-{index}"))
            create(client, node(f"ca-{index}"))
    for name, pod in pods.items():
        if int(name.removeprefix("ca-")) >= nodes and "deletionTimestamp" not in pod["metadata"]:
            remove(client, "pods", name)
    for name, pod in pods.items():
        if int(name.removeprefix("ca-")) >= nodes and "deletionTimestamp" in pod["metadata"]:
            remove(client, "persistentvolumeclaims", f"data-{name}")


def create(client, obj):
    with suppress(AlreadyExists):
        client.create(obj)


def remove(client, kind, name):
    with suppress(NotFound):
        client.delete(kind, name)


def node(name):
    container = {
        "name": "cassandra",
        "image": "cassandra:4",
        "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"cassandra": "true"}},
        "spec": {"containers": [container]},
    }


def claim(pod_name):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{pod_name}", "labels": {"cassandra": "true"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cassandradatacenters.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {
                "plural": "cassandradatacenters",
                "singular": "cassandradatacenter",
                "kind": "CassandraDataCenter",
            },
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(definition())
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "CassandraDataCenter",
            "metadata": {"name": "dc1"},
            "spec": {"nodes": 2},
        }
    )
    cluster.advance("1m")
    client.patch(f"{KIND}/dc1", {"spec": {"nodes": 1}}, type="merge")
