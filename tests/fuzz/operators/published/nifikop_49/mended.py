"""Restart a NiFi node when its configuration changes: what it runs with is compared with what is
wanted (konpyutaika/nifikop issue 49).
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

KIND = "nificlusters.example.org"


def operator(cluster):
    @cluster.controller("nifi", watches=[KIND, "pods"])
    def reconcile(client, key):
        for nifi in client.list(KIND, namespace=key.namespace):
            sync(client, nifi)


def sync(client, nifi):
    name, banner = nifi["metadata"]["name"], nifi["spec"]["banner"]
    if banner_of(client, "configmaps", name) != banner:
        client.apply(config(name, banner))
    running = banner_of(client, "pods", name)
    if running not in (None, banner):
        with suppress(NotFound):
            client.delete("pods", name, grace_period=0)
    if running != banner:
        with suppress(AlreadyExists):
            client.create(node(name, banner))


def banner_of(client, kind, name):
    try:
        return client.get(kind, name)["metadata"]["labels"]["banner"]
    except NotFound:
        return None


def config(name, banner):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"banner": banner}},
        "data": {"nifi.ui.banner.text": banner},
    }


def node(name, banner):
    """Return the pod that runs with a configuration: it reads it once, when it starts."""
    container = {"name": "nifi", "image": "nifi:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"banner": banner}},
        "spec": {"containers": [container]},
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nificlusters.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "nificlusters", "singular": "nificluster", "kind": "NifiCluster"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(definition())
    client.create(
        {
            "apiVersion": "example.org/v1",
            "kind": "NifiCluster",
            "metadata": {"name": "nifi"},
            "spec": {"banner": "hello"},
        }
    )
    cluster.advance("1m")
    client.patch(f"{KIND}/nifi", {"spec": {"banner": "welcome"}}, type="merge")
