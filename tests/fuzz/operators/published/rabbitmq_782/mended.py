"""Keep a StatefulSet for each RabbitmqCluster, and expand its volumes. The claims are compared
with what is wanted, whatever the StatefulSet says (rabbitmq/cluster-operator issue 782).
"""

from kubepy import NotFound

KIND = "rabbitmqclusters.example.org"


def operator(cluster):
    @cluster.controller("rabbitmq", watches=[KIND, "statefulsets", "persistentvolumeclaims"])
    def reconcile(client, key):
        for rabbit in client.list(KIND, namespace=key.namespace):
            sync(client, rabbit)


def sync(client, rabbit):
    name, capacity = rabbit["metadata"]["name"], rabbit["spec"]["capacity"]
    expand_claims(client, name, capacity)
    try:
        current = client.get("statefulsets", name)
    except NotFound:
        client.create(stateful_set(name, capacity))
        return
    if capacity_of(current) < capacity and "deletionTimestamp" not in current["metadata"]:
        client.delete("statefulsets", name, propagation="Orphan")


def expand_claims(client, name, capacity):
    for claim in client.list("persistentvolumeclaims", labels={"rabbitmq": name}):
        requests = claim["spec"]["resources"]["requests"]
        if gibibytes(requests["storage"]) < capacity:
            requests["storage"] = f"{capacity}Gi"
            client.update(claim)


def capacity_of(stateful_set):
    [template] = stateful_set["spec"]["volumeClaimTemplates"]
    return gibibytes(template["spec"]["resources"]["requests"]["storage"])


def gibibytes(quantity):
    return int(quantity.removesuffix("Gi"))


def stateful_set(name, capacity):
    labels = {"rabbitmq": name}
    container = {"name": "rabbitmq", "image": "rabbitmq:3"}
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {
        "metadata": {"name": "data", "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{capacity}Gi"}},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [claim],
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


def workload(cluster):
    client = cluster.client
    client.patch("storageclass/standard", {"allowVolumeExpansion": True})
    client.create(definition())
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "RabbitmqCluster",
            "metadata": {"name": "mq"},
            "spec": {"capacity": 10},
        }
    )
    cluster.advance("1m")
    client.patch(f"{KIND}/mq", {"spec": {"capacity": 15}}, type="merge")
