"""Cordon nodes for the time of their maintenance, and leave alone those that an administrator has
cordoned.

Bug: only the process knows which nodes it has cordoned. After a restart they stay so.
"""

from kubepy import NotFound

WANTED = "example.org/maintenance"  # annotation of a node: somebody works on it


def operator(cluster):
    cordoned = set()

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
            client.update(node)
            cordoned.add(key.name)
        elif not is_wanted and key.name in cordoned:  # not what an administrator has cordoned
            node["spec"]["unschedulable"] = False
            client.update(node)
            cordoned.discard(key.name)


def workload(cluster):
    client = cluster.client
    client.patch("nodes/node-3", {"spec": {"unschedulable": True}})
    for name in ("node-1", "node-2"):
        client.patch(f"nodes/{name}", {"metadata": {"annotations": {WANTED: "true"}}})
        cluster.advance("1m")
        client.patch(f"nodes/{name}", {"metadata": {"annotations": {WANTED: None}}})
