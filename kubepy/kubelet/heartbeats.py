"""The heartbeats of kubelets: a Lease for each node in ``kube-node-lease``, which its kubelet
renews every ten seconds.

kube-controller-manager takes a node whose Lease is not renewed for one whose kubelet is gone. The
controllers of this package go by the node alone, so leases are kept up only while a server runs,
where others may watch them; who reads them without a server sees what
:mod:`kubepy.apiserver.nodeleases` computes. Upstream: ``pkg/kubelet/kubelet.go``,
``component-helpers/apimachinery/lease``.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.meta import Object, name_of
from kubepy.api.objects.nodes import is_down
from kubepy.apiserver.nodeleases import LEASE_NAMESPACE, LEASES, holder_of, new_lease
from kubepy.kubelet.users import kubelet_of

if TYPE_CHECKING:
    from kubepy.apiserver.client import Client


def renew_leases(client: Client, now: datetime) -> None:
    """Let the kubelets of all nodes that are not down renew their leases, in one transaction.

    A Lease that somebody else holds is left to that one. Raises FolderError, LockTimeoutError.
    """
    stored = client.list_stored(LEASES, LEASE_NAMESPACE)
    leases = {name_of(lease): lease for lease in stored}
    with client.joined():
        for node in client.list("nodes").items:
            lease = leases.get(name_of(node))
            is_others = lease is not None and holder_of(lease) != name_of(node)
            if is_others or is_down(node, client.clock.now()):
                continue
            kubelet = client.as_user(kubelet_of(name_of(node)))
            # Where the namespace is going, or a policy is against it, there is a next time.
            with suppress(errors.Status):
                if lease is None:
                    kubelet.create(LEASES, new_lease(node, now), namespace=LEASE_NAMESPACE)
                else:
                    kubelet.update(LEASES, renewed(lease, node, now), namespace=LEASE_NAMESPACE)


def renewed(lease: Object, node: Object, now: datetime) -> Object:
    """Return a Lease with a new time; its owner is the node as it is now."""
    fresh = new_lease(node, now)
    owners = fresh["metadata"]["ownerReferences"]
    metadata = {**lease["metadata"], "ownerReferences": owners}
    return {**lease, "metadata": metadata, "spec": {**lease["spec"], **fresh["spec"]}}
