"""Keep a StatefulSet for each RabbitmqCluster. Before one is deleted, the API says whether the
RabbitmqCluster is still the one that the cache has (rabbitmq/cluster-operator issue 648).
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
            prepare_for_deletion(client, rabbit, cluster)
            return
        if FINALIZER not in rabbit["metadata"].get("finalizers", []):
            rabbit["metadata"]["finalizers"] = [FINALIZER]
            rabbit = client.update(rabbit)
        with suppress(AlreadyExists):
            client.create(stateful_set(key.name))
        rabbit["status"] = {"phase": "Ready"}
        client.update(rabbit, subresource="status")


def prepare_for_deletion(client, rabbit, cluster):
    name, uid = rabbit["metadata"]["name"], rabbit["metadata"]["uid"]
    if cluster.client.get(KIND, name)["metadata"]["uid"] != uid:
        return  # this one is gone already
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
