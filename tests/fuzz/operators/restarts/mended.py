"""Restart the Deployments that a ConfigMap names, one after the other. The request keeps those
that are still to come.
"""

from kubepy import NotFound


def operator(cluster):
    @cluster.controller("restarts", watches=["configmaps"])
    def reconcile(client, key):
        try:
            request = client.get("configmaps", key.name, namespace=key.namespace)
        except NotFound:
            return None
        if "restart" not in request["metadata"].get("labels", {}):
            return None
        pending = request["data"]["deployments"].split()
        if not pending:
            client.delete("configmaps", key.name, namespace=key.namespace)
            return None
        restart(client, pending[0], request["metadata"]["uid"], key.namespace)
        request["data"]["deployments"] = " ".join(pending[1:])
        client.update(request)
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
