"""Roll a Deployment out when its ConfigMap changes.

Bug: a conflict is taken for somebody else's turn. Nothing calls again: Deployments are not watched.
"""

from contextlib import suppress

from kubepy import Conflict, NotFound

VERSION = "example.org/config-version"


def operator(cluster):
    @cluster.controller("config", watches=["configmaps"])
    def reconcile(client, key):
        try:
            config = client.get("configmaps", key.name, namespace=key.namespace)
        except NotFound:
            return None
        if "reloads" not in config["metadata"].get("labels", {}):
            return None
        name = config["metadata"]["labels"]["reloads"]
        try:
            deployment = client.get("deployments", name, namespace=key.namespace)
        except NotFound:
            return "5s"
        template = deployment["spec"]["template"]
        annotations = template["metadata"].setdefault("annotations", {})
        annotations[VERSION] = config["data"]["version"]
        with suppress(Conflict):  # somebody else was quicker
            client.update(deployment)
        return None


def workload(cluster):
    client = cluster.client
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web-config", "labels": {"reloads": "web"}},
        "data": {"version": "1"},
    }
    client.create(config)
    client.create(deployment("web"))
    cluster.advance("30s")
    client.patch("deploy/web", {"spec": {"replicas": 3}})
    client.patch("configmap/web-config", {"data": {"version": "2"}})
    cluster.advance("30s")
    client.patch("configmap/web-config", {"data": {"version": "3"}})


def deployment(name):
    container = {"name": "web", "image": "nginx:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }
