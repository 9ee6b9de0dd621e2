"""Give each Database a Secret and a Service.

Bug: the Secret gets a generated name, which comes into the status only when all else is there. An
operator that ends before makes a second Secret.
"""

from kubepy import NotFound


def operator(cluster):
    cluster.client.apply(definition())

    @cluster.controller("database", watches=["databases.example.org"])
    def reconcile(client, key):
        try:
            database = client.get("databases.example.org", key.name, namespace=key.namespace)
        except NotFound:
            return
        status = database.setdefault("status", {})
        if status.get("phase") == "Ready":
            return
        secret = client.create(secret_for(database, {"generateName": f"{key.name}-"}))
        status["secret"] = secret["metadata"]["name"]
        client.apply(service_for(database))
        status["phase"] = "Ready"
        client.update(database, subresource="status")


def secret_for(database, metadata):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata | {"labels": {"database": database["metadata"]["name"]}},
        "stringData": {"user": "admin", "password": database["metadata"]["uid"]},
    }


def service_for(database):
    name = database["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"database": name}, "ports": [{"port": 5432}]},
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "databases.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "databases", "singular": "database", "kind": "Database"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    for name in ("orders", "users"):
        cluster.client.create(
            {
                "apiVersion": "example.org/v1",
                "kind": "Database",
                "metadata": {"name": name},
                "spec": {"engine": "postgres"},
            }
        )
