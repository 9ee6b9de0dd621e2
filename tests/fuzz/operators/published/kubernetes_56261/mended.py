"""Assign tasks to nodes, those that the informer has (kubernetes/kubernetes issue 56261)."""


def operator(cluster):
    @cluster.controller("scheduler", watches=["nodes", "configmaps"])
    def reconcile(client, key):
        nodes = {node["metadata"]["name"] for node in client.list("nodes")}
        if key.resource == "nodes":
            take_stock(client, key.name, key.name in nodes)
        for task in client.list("configmaps", labels="task"):
            if task["data"]["node"] not in nodes:
                assign(client, task, nodes)


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
