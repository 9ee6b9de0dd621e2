"""Open rooms one after the other, a minute after the last one, by looking every ten seconds.

Most looks write nothing: that is no sign that nothing is left to do.
"""

from datetime import datetime

MINUTE = 60.0


def operator(cluster):
    @cluster.controller("openings", watches=["configmaps"])
    def reconcile(client, key):
        rooms = client.list("configmaps", namespace=key.namespace, labels="room")
        closed = [room for room in rooms if "openedAt" not in room["data"]]
        if not closed:
            return None
        now = cluster.now
        opened = [room["data"]["openedAt"] for room in rooms if "openedAt" in room["data"]]
        if opened and (now - datetime.fromisoformat(max(opened))).total_seconds() < MINUTE:
            return "10s"
        closed[0]["data"]["openedAt"] = now.isoformat()
        client.update(closed[0])
        return "10s"


def workload(cluster):
    for name in ("hall", "library", "tower"):
        cluster.client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"room": "true"}},
                "data": {"floor": "1"},
            }
        )
