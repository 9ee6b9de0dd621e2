"""Publish the host names of Services as records in another namespace, and remove them by name
before the finalizer goes.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

FINALIZER = "example.org/dns"
PUBLISHED = "example.org/published"  # annotation of a Service: its records are there
ZONE = "kube-public"  # the namespace with the records, ConfigMaps that cannot have an owner


def operator(cluster):
    @cluster.controller("dns", watches=["services", "configmaps"])
    def reconcile(client, key):
        if key.resource != "services":
            return
        try:
            service = client.get("services", key.name, namespace=key.namespace)
        except NotFound:
            return
        metadata = service["metadata"]
        is_held = FINALIZER in metadata.get("finalizers", [])
        if "deletionTimestamp" in metadata:
            if is_held:
                remove_records(client, service)
                metadata["finalizers"].remove(FINALIZER)
                client.update(service)
        elif hostnames_of(service) and PUBLISHED not in metadata["annotations"]:
            if not is_held:
                metadata.setdefault("finalizers", []).append(FINALIZER)
            # An update is refused unless the Service is still as the cache has it.
            publish(client, client.update(service))


def publish(client, service):
    for hostname in hostnames_of(service):
        with suppress(AlreadyExists):
            client.create(record_of(service, hostname))
    service["metadata"]["annotations"][PUBLISHED] = "true"
    client.update(service)


def remove_records(client, service):
    for hostname in hostnames_of(service):
        with suppress(NotFound):
            client.delete("configmaps", record_name(service, hostname), namespace=ZONE)


def hostnames_of(service):
    annotations = service["metadata"].get("annotations", {})
    return annotations.get("example.org/hostnames", "").split()


def record_name(service, hostname):
    return f"{hostname}.{service['metadata']['uid']}"


def record_of(service, hostname):
    uid = service["metadata"]["uid"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": record_name(service, hostname),
            "namespace": ZONE,
            "labels": {"dns": "record", "service": uid},
        },
        "data": {"A": service["spec"]["clusterIP"]},
    }


def workload(cluster):
    for name in ("shop", "blog"):
        cluster.client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": name,
                    "annotations": {"example.org/hostnames": f"{name}.test www.{name}.test"},
                },
                "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
            }
        )
    cluster.advance("10s")
    cluster.client.delete("services", "shop")
