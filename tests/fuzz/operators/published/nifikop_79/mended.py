"""Scale a NiFi cluster, gracefully. The state of a node is noted whenever it is missing
(konpyutaika/nifikop issue 79).
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
    wanted = {f"nifi-{index}" for index in range(nifi["spec"]["nodes"])}
    present = {pod["metadata"]["name"] for pod in client.list("pods", labels="nifi")}
    states = nifi.get("status", {}).get("nodes", {})
    for name in sorted(wanted):
        if name not in present:
            with suppress(AlreadyExists):
                client.create(node(name))
        if name not in states:
            set_state(client, nifi, name, "UpscaleSucceeded")
    for name in sorted(present - wanted):
        if states.get(name) == "UpscaleSucceeded":  # others are not ready to be offloaded
            with suppress(NotFound):
                client.delete("pods", name)
        else:
            set_state(client, nifi, name, "UpscaleSucceeded")


def set_state(client, nifi, node_name, state):
    patch = {"status": {"nodes": {node_name: state}}}
    path = f"{KIND}/{nifi['metadata']['name']}"
    client.patch(path, patch, type="merge", subresource="status")


def node(name):
    container = {"name": "nifi", "image": "nifi:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"nifi": "true"}},
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
            "spec": {"nodes": 2},
        }
    )
    cluster.advance("1m")
    client.patch(f"{KIND}/nifi", {"spec": {"nodes": 1}}, type="merge")
