"""Make a bucket at a provider for each Bucket, and remove it with it: first the bucket, then the
finalizer.
"""

from contextlib import suppress

from kubepy import AlreadyExists, NotFound

FINALIZER = "example.org/bucket"
CLOUD = "cloud"  # the namespace whose ConfigMaps stand for what the provider has


def operator(cluster):
    @cluster.controller("bucket", watches=["buckets.example.org"])
    def reconcile(client, key):
        try:
            bucket = client.get("buckets.example.org", key.name, namespace=key.namespace)
        except NotFound:
            return
        if "deletionTimestamp" in bucket["metadata"]:
            remove(client, bucket)
        else:
            provide(client, bucket)


def provide(client, bucket):
    if bucket.get("status", {}).get("phase") == "Ready":
        return
    # An update is refused unless the Bucket is still as the cache has it.
    bucket["metadata"]["finalizers"] = [FINALIZER]
    bucket = client.update(bucket)
    with suppress(AlreadyExists):
        client.create(external(bucket))
    bucket["status"] = {"phase": "Ready"}
    client.update(bucket, subresource="status")


def remove(client, bucket):
    if FINALIZER not in bucket["metadata"].get("finalizers", []):
        return
    with suppress(NotFound):
        client.delete("configmaps", external_name(bucket), namespace=CLOUD)
    bucket["metadata"]["finalizers"].remove(FINALIZER)
    client.update(bucket)


def external_name(bucket):
    return f"bucket-{bucket['metadata']['uid']}"


def external(bucket):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": external_name(bucket), "namespace": CLOUD},
        "data": {"region": bucket["spec"]["region"]},
    }


def definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "buckets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "buckets", "singular": "bucket", "kind": "Bucket"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def workload(cluster):
    client = cluster.client
    client.create(definition())
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLOUD}})
    for name in ("photos", "videos"):
        client.create(
            {
                "apiVersion": "example.org/v1",
                "kind": "Bucket",
                "metadata": {"name": name},
                "spec": {"region": "eu"},
            }
        )
    cluster.advance("1m")
    client.delete("buckets.example.org", "photos")
