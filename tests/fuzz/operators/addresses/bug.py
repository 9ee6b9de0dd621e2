"""Give Services addresses out of a pool.

Bug: when the pool has changed meanwhile, the address is given away without being noted.
"""

from kubepy import Conflict, NotFound

ADDRESS = "example.org/address"  # annotation of a Service


def operator(cluster):
    @cluster.controller("addresses", watches=["services"])
    def reconcile(client, key):
        try:
            service = client.get("services", key.name, namespace=key.namespace)
        except NotFound:
            return
        metadata = service["metadata"]
        is_external = "external" in metadata.get("labels", {})
        if not is_external or ADDRESS in metadata.get("annotations", {}):
            return
        address = take(client, metadata["uid"])
        record = {"metadata": {"annotations": {ADDRESS: address}}}
        client.patch(f"services/{key.name}", record, namespace=key.namespace)


def take(client, uid):
    pool = client.get("configmaps", "addresses", namespace="kube-public")
    owners = pool["data"]  # the uid of a Service by address, "" for a free one
    for address, owner in sorted(owners.items()):
        if owner == uid:
            return address
    address = min(address for address, owner in owners.items() if not owner)
    owners[address] = uid
    try:
        client.update(pool)
    except Conflict:
        print(f"could not note {address}")
    return address


def workload(cluster):
    pool = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "addresses", "namespace": "kube-public"},
        "data": {f"192.0.2.{number}": "" for number in range(1, 6)},
    }
    cluster.client.create(pool)
    for name in ("shop", "blog", "mail"):
        cluster.client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "labels": {"external": "true"}},
                "spec": {"ports": [{"port": 80}]},
            }
        )
