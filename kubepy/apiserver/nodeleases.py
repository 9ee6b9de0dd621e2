"""The leases of nodes as their kubelets renew them, for a cluster that nobody serves.

A kubelet renews the Lease of its node every ten seconds. In a cluster whose containers are modelled
a request that reads leases computes what the kubelets would have written by now, so that a cluster
at rest costs nothing. A Lease that is stored keeps its metadata. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.meta import Object, name_of, uid_of
from kubepy.api.objects.nodes import get_condition, is_down
from kubepy.lazy import blake2b

LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40  # ``nodeLeaseDurationSeconds``
RENEW_SECONDS = 10.0  # a quarter of it: ``nodeLeaseRenewIntervalFraction``


def new_lease(node: Object, now: datetime) -> Object:
    """Return the Lease that a kubelet creates. The garbage collector deletes it with its node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": uid_of(node)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name_of(node),
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner],
        },
        "spec": {
            "holderIdentity": name_of(node),
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(now),
        },
    }


def holder_of(lease: Object) -> str:
    """Return who holds a Lease, "" for nobody."""
    return str((lease.get("spec") or {}).get("holderIdentity", ""))


def with_node_leases(
    leases: Iterable[Object], nodes: Iterable[Object], now: datetime
) -> list[Object]:
    """Return the stored leases of the namespace of node leases, renewed, with those of the nodes
    that have none, in the order of their names. What somebody else holds stays as it is."""
    by_name = {name_of(lease): lease for lease in leases}
    for node in nodes:
        stored = by_name.get(name_of(node))
        lease = node_lease(stored, node, now)
        if lease is not None:
            by_name[name_of(node)] = lease
    return [by_name[name] for name in sorted(by_name)]


def node_lease(stored: Object | None, node: Object, now: datetime) -> Object | None:
    """Return the Lease of a node as its kubelet has last renewed it; None: it never has.

    :param stored: the Lease that the cluster holds, None for none.
    """
    ready = get_condition(node, "Ready")
    is_held = stored is None or holder_of(stored) == name_of(node)
    if ready is None or not is_held or is_down(node, now):
        return stored
    renewed = _renew_time(parse_time(node["metadata"]["creationTimestamp"]), now)
    computed = new_lease(node, renewed)
    if stored is None:
        return {**computed, "metadata": {**computed["metadata"], **_identity(node)}}
    spec = stored["spec"]
    if spec.get("renewTime") and parse_time(spec["renewTime"]) >= renewed:
        return stored
    return {**stored, "spec": {**spec, **computed["spec"]}}


def _renew_time(first: datetime, now: datetime) -> datetime:
    """Return when a kubelet that renews from a moment on has last done so."""
    count = max(0.0, (now - first).total_seconds()) // RENEW_SECONDS
    return first + timedelta(seconds=count * RENEW_SECONDS)


def _identity(node: Object) -> Object:
    """Return the metadata that a server would have added to the Lease of a node."""
    uid = uid_of(node)
    digest = blake2b(f"{uid}/{LEASE_NAMESPACE}".encode(), 9).hex()
    return {
        "creationTimestamp": node["metadata"]["creationTimestamp"],
        "resourceVersion": "1",
        "uid": f"{uid[:13]:0<13}-7{digest[:3]}-8{digest[3:6]}-{digest[6:]}",
    }
