"""What a cluster without nodes has to say: no pod will ever run, which kubectl's own words do not tell."""

from __future__ import annotations

from kubepy.cli.runtime.session import Session

REMEDY = 'make some with "kubepy apply -f manifests/nodes.yaml", or begin with "kubepy init --nodes=3"'


def note_missing_nodes(session: Session) -> bool:
    """Say on stderr that pods wait for a node where there is none; whether that was so."""
    if session.client.list("nodes").items:
        return False
    waiting = sum(1 for pod in session.client.list("pods").items if not pod["spec"].get("nodeName"))
    if waiting:
        pods = "1 pod is" if waiting == 1 else f"{waiting} pods are"
        session.say(f"note: {pods} Pending, since there are no nodes: {REMEDY}")
    return bool(waiting)
