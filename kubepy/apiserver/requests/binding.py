"""Assigning a pod to a node: the ``binding`` subresource (``pkg/registry/core/pod/storage``: ``BindingREST``)."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.meta import Object, labels_of
from kubepy.api.objects.pods import set_condition
from kubepy.apiserver.requests.server import Server, Target
from kubepy.apiserver.requests.sessions import Session
from kubepy.quoting import quote
from kubepy.storage import Key

# Labels that a pod takes over from its node (the PodTopologyLabels admission plugin).
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(server: Server, session: Session, target: Target, node: str) -> Object:
    """Set the pod's nodeName and its PodScheduled condition. Raises NotFound, Conflict (bound already, going away)."""
    pod = session.require(target.key)
    if (why := _obstacle(pod)) is not None:
        raise errors.conflict("pods/binding", target.name, why)
    status = {key: value for key, value in pod.get("status", {}).items() if key != "nominatedNodeName"}
    status["conditions"] = list(status.get("conditions") or ())
    condition = {"lastProbeTime": None, "status": "True", "type": "PodScheduled"}
    set_condition(status["conditions"], condition, server.clock.now())
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}
    if topology := _topology(session, node):
        bound["metadata"] = {**pod["metadata"], "labels": {**labels_of(pod), **topology}}
    return session.update(target.key, bound, pod)


def _obstacle(pod: Object) -> str | None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node {quote(spec["nodeName"])}'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return None


def _topology(session: Session, name: str) -> dict[str, str]:
    node = session.get(Key("nodes", "", name))
    labels = labels_of(node) if node else {}
    return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels}
