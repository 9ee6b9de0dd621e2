"""Assign tasks to nodes.

Bug: kubernetes/kubernetes issue 56261. The scheduler keeps its own memory of nodes. If the cleaning
up after a node goes wrong, the node stays in it for ever, and gets tasks. Found by conflicts and
late events.
"""

from kubepy import Conflict, NotFound


def operator(cluster):
    nodes = set()

    @cluster.controller("scheduler", watches=["nodes", "configmaps"])
    def reconcile(client, key):
        if key.resource == "nodes":
            update_cache(client, key.name)
        for task in client.list("configmaps", labels="task"):
            if task["data"]["node"] not in nodes:
                assign(client, task, nodes)

    def update_cache(client, name):
        try:
            client.get("nodes", name)
        except NotFound:
            try:
                take_stock(client, name, False)
            except Conflict:
                print(f"cannot clean up after node {name}")
                return
            nodes.discard(name)
        else:
            nodes.add(name)


def take_stock(client, name, is_there):
    """Note in the inventory whether there is a node."""
    inventory = client.get("configmaps", "inventory", namespace="kube-public")
    inventory.setdefault("data", {})[name] = "there" if is_there else "gone"
    client.update(inventory)


def assign(client, task, nodes):
    tasks = client.list("configmaps", labels="task")
    loads = {node: sum(other["data"]["node"] == node for other in tasks) for node in nodes}
    task["data"]["node"] = min(sorted(nodes), key=loads.get)
    client.update(task)


def workload(cluster):
    client = cluster.client
    inventory = {"name": "inventory", "namespace": "kube-public"}
    client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": inventory})
    cluster.advance("20s")
    client.delete("nodes", "node-1")
    cluster.advance("20s")
    for number in range(3):
        client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"task-{number}", "labels": {"task": "true"}},
                "data": {"node": ""},
            }
        )
