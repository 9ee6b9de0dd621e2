"""Give each Database a Secret and a Service. Its status says the name of the Secret before that is
made.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound


def operator(cluster):
    cluster.client.apply(definition())

    @cluster.controller("database", watches=["databases.example.org"])
    def reconcile(client, key):
        try:
            database = client.get("databases.example.org", key.name, namespace=key.namespace)
        except NotFound:
            return None
        status = database.setdefault("status", {})
        if status.get("phase") == "Ready":
            return None
        if "secret" not in status:  # say first which name it will have
            status["secret"] = f"{key.name}-{database['metadata']['resourceVersion']}"
            client.update(database, subresource="status")
            return "1s"
        with suppress(AlreadyExists):
            client.create(secret_for(database, {"name": status["secret"]}))
        client.apply(service_for(database))
        status["phase"] = "Ready"
        client.update(database, subresource="status")
        return None


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
