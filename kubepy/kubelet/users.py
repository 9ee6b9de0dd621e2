"""The users as whom kubelets make their requests (``pkg/auth/nodeidentifier``)."""

from __future__ import annotations

from kubepy.api.meta import Object

ALL_USERS = "system:authenticated"


def kubelet_of(node: str) -> Object:
    """Return the user that the kubelet of a node is."""
    return {"username": f"system:node:{node}", "groups": ["system:nodes", ALL_USERS]}
