"""Restart the Deployments that a ConfigMap names, one after the other.

Bug: the names wait in memory, and the request is deleted at once.
"""

from kubepy import NotFound


def operator(cluster):
    pending = []

    @cluster.controller("restarts", watches=["configmaps"])
    def reconcile(client, key):
        for request in client.list("configmaps", namespace=key.namespace, labels="restart"):
            try:
                client.delete("configmaps", request["metadata"]["name"], namespace=key.namespace)
            except NotFound:
                continue  # it is pending already
            for name in request["data"]["deployments"].split():
                pending.append((name, request["metadata"]["uid"]))
        if not pending:
            return None
        name, request_uid = pending[0]
        restart(client, name, request_uid, key.namespace)
        del pending[0]
        return "30s"


def restart(client, name, request_uid, namespace):
    annotations = {"example.org/restarted-for": request_uid}
    patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    client.patch(f"deploy/{name}", patch, namespace=namespace)


def workload(cluster):
    names = ["api", "shop", "web"]
    for name in names:
        cluster.run(f"create deployment {name} --image={name}:1 --replicas=2", check=True)
    cluster.advance("10s")
    request = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "restart-all", "labels": {"restart": "requested"}},
        "data": {"deployments": " ".join(names)},
    }
    cluster.client.create(request)
