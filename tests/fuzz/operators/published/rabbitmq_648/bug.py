"""Keep a StatefulSet for each RabbitmqCluster.

Bug: rabbitmq/cluster-operator issue 648. A RabbitmqCluster is deleted and made again. An operator
that restarts, and first sees the older state, takes the deletion of the first one for that of the
second, and deletes its StatefulSet. Found by an older cache after a restart.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

KIND = "rabbitmqclusters.example.org"
FINALIZER = "example.org/deletion"


def operator(cluster):
    @cluster.controller("rabbitmq", watches=[KIND])
    def reconcile(client, key):
        try:
            rabbit = client.get(KIND, key.name, namespace=key.namespace)
        except NotFound:
            return
        if "deletionTimestamp" in rabbit["metadata"]:
            prepare_for_deletion(client, rabbit)
            return
        if FINALIZER not in rabbit["metadata"].get("finalizers", []):
            rabbit["metadata"]["finalizers"] = [FINALIZER]
            rabbit = client.update(rabbit)
        with suppress(AlreadyExists):
            client.create(stateful_set(key.name))
        rabbit["status"] = {"phase": "Ready"}
        client.update(rabbit, subresource="status")


def prepare_for_deletion(client, rabbit):
    name = rabbit["metadata"]["name"]
    with suppress(NotFound):
        client.delete("statefulsets", f"{name}-server")
    if FINALIZER in rabbit["metadata"].get("finalizers", []):
        rabbit["metadata"]["finalizers"] = []
        client.update(rabbit)


def stateful_set(name):
    labels = {"rabbitmq": name}
    container = {"name": "rabbitmq", "image": "rabbitmq:3"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": f"{name}-server"},
        "spec": {
            "replicas": 1,
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
        "metadata": {"name": "rabbitmqclusters.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {
                "plural": "rabbitmqclusters",
                "singular": "rabbitmqcluster",
                "kind": "RabbitmqCluster",
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
    rabbit = {"apiVersion": "example.org/v1", "kind": "RabbitmqCluster", "metadata": {"name": "mq"}}
    client.create(rabbit)
    cluster.advance("30s")
    client.delete(KIND, "mq")
    wait(cluster, lambda: not client.list(KIND))
    client.create(rabbit)
