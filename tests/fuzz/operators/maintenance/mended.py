"""Cordon nodes for the time of their maintenance, and leave alone those that an administrator has
cordoned. The node says who has cordoned it.
"""

from kubepy import NotFound

WANTED = "example.org/maintenance"  # annotation of a node: somebody works on it
CORDONED = "example.org/cordoned"  # annotation of a node: this operator has cordoned it


def operator(cluster):
    @cluster.controller("maintenance", watches=["nodes"])
    def reconcile(client, key):
        try:
            node = client.get("nodes", key.name)
        except NotFound:
            return
        annotations = node["metadata"].setdefault("annotations", {})
        is_wanted = annotations.get(WANTED) == "true"
        is_cordoned = node["spec"].get("unschedulable", False)
        if is_wanted and not is_cordoned:
            node["spec"]["unschedulable"] = True
            annotations[CORDONED] = "true"
            client.update(node)
        elif not is_wanted and CORDONED in annotations:  # not what an administrator has cordoned
            del node["spec"]["unschedulable"], annotations[CORDONED]
            client.update(node)


def workload(cluster):
    client = cluster.client
    client.patch("nodes/node-3", {"spec": {"unschedulable": True}})
    for name in ("node-1", "node-2"):
        client.patch(f"nodes/{name}", {"metadata": {"annotations": {WANTED: "true"}}})
        cluster.advance("1m")
        client.patch(f"nodes/{name}", {"metadata": {"annotations": {WANTED: None}}})
