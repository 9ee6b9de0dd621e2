"""Copy the number of a Service's ports into an annotation.

A conflict may be passed over here: it means that the Service has changed, and as Services are
watched, that change calls again.
"""

from contextlib import suppress

from kubepy import Conflict, NotFound

COUNT = "example.org/ports"


def operator(cluster):
    @cluster.controller("ports", watches=["services"])
    def reconcile(client, key):
        try:
            service = client.get("services", key.name, namespace=key.namespace)
        except NotFound:
            return
        count = str(len(service["spec"]["ports"]))
        annotations = service["metadata"].setdefault("annotations", {})
        if annotations.get(COUNT) != count:
            annotations[COUNT] = count
            with suppress(Conflict, NotFound):
                client.update(service)


def workload(cluster):
    cluster.client.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "shop"},
            "spec": {"ports": [{"name": "web", "port": 80}]},
        }
    )
    cluster.advance("30s")
    ports = [{"name": "web", "port": 80}, {"name": "admin", "port": 8080}]
    cluster.client.patch("services/shop", {"spec": {"ports": ports}})
