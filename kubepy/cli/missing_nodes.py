"""What a cluster without nodes has to say: no pod will ever run, which kubectl's own words do not tell."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.apiserver.client import Client

REMEDY = 'make some with "kubepy apply -f manifests/nodes.yaml", or begin with "kubepy init --nodes=3"'


def note_missing_nodes(client: Client, say: Callable[[str], None]) -> bool:
    """Say on stderr that pods wait for a node where there is none; whether that was so."""
    if client.list("nodes").items:
        return False
    waiting = sum(1 for pod in client.list("pods").items if not pod["spec"].get("nodeName"))
    if waiting:
        pods = "1 pod is" if waiting == 1 else f"{waiting} pods are"
        say(f"note: {pods} Pending, since there are no nodes: {REMEDY}")
    return bool(waiting)
