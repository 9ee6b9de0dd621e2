"""Restart a NiFi node when its configuration changes.

Bug: konpyutaika/nifikop issue 49. First the ConfigMap gets the new configuration, then the status
says that the node is out of sync. An operator that ends in between finds the ConfigMap as it should
be, and never restarts the node. Found by a crash.
"""

from contextlib import suppress

from kubepy import NotFound

KIND = "nificlusters.example.org"


def operator(cluster):
    @cluster.controller("nifi", watches=[KIND, "pods"])
    def reconcile(client, key):
        for nifi in client.list(KIND, namespace=key.namespace):
            sync(client, nifi)


def sync(client, nifi):
    name, banner = nifi["metadata"]["name"], nifi["spec"]["banner"]
    is_synced = nifi.get("status", {}).get("configuration") == "InSync"
    if banner_of(client, "configmaps", name) != banner:
        client.apply(config(name, banner))
        set_configuration(client, name, "OutOfSync")
        is_synced = False
    if not is_synced:
        with suppress(NotFound):
            client.delete("pods", name, grace_period=0)
        client.create(node(name, banner))
        set_configuration(client, name, "InSync")


def set_configuration(client, name, state):
    patch = {"status": {"configuration": state}}
    client.patch(f"{KIND}/{name}", patch, type="merge", subresource="status")


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
