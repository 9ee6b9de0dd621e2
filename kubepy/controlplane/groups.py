"""The groups in which a server's reconcilers are chosen: ``api,gc,namespace``.

Upstream: ``--controllers`` of kube-controller-manager, which names each controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kubepy.controlplane import NAMES
from kubepy.quoting import printable

API, KUBELET = "api", "kubelet"
ALL, ON, OFF = "all", "on", "off"
# Runs in the server itself, which has the CA (``kubepy.server.signing``).
SIGNING = "certificatesigningrequest-signing-controller"
# What an API server does itself is in the group ``api``, which always runs. What stands for
# machines is in ``kubelet``.
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        API: ("crd-finalizer", "kubernetes-service-controller"),
        "autoscaling": ("horizontal-pod-autoscaler-controller",),
        "certificates": (SIGNING,),
        "disruption": ("disruption-controller",),
        "endpoints": (
            "endpoint-slice-controller",
            "endpoint-controller",
            "endpoint-slice-mirroring-controller",
        ),
        "gc": ("garbage-collector-controller",),
        KUBELET: ("kubelet", "node-faults"),
        "loadbalancer": ("service-lb-controller",),
        "namespace": ("namespace-controller",),
        "node": (
            "node-lifecycle-controller",
            "ttl-controller",
            "taint-eviction-controller",
            "pod-garbage-collector-controller",
        ),
        "quota": ("resourcequota-controller",),
        "rbac": ("clusterrole-aggregation-controller",),
        "scheduler": ("default-scheduler",),
        "serviceaccount": (
            "serviceaccount-controller",
            "serviceaccount-token-controller",
            "root-ca-certificate-publisher-controller",
        ),
        "storage": (
            "ephemeral-volume-controller",
            "persistentvolume-binder-controller",
            "persistentvolumeclaim-binder-controller",
            "kubepy.dev/simulated",
            "persistentvolume-expander-controller",
            "external-resizer simulated.kubepy.dev",
            "pv-protection-controller",
            "pvc-protection-controller",
        ),
        "workloads": (
            "daemonset-controller",
            "replicaset-controller",
            "replication-controller",
            "deployment-controller",
            "statefulset-controller",
            "job-controller",
            "cronjob-controller",
            "ttl-after-finished-controller",
        ),
    }
)
EVERY = frozenset((*NAMES, SIGNING))
OF_SERVER = frozenset((*GROUPS[API], *GROUPS[KUBELET]))
_WORDS = {ALL: EVERY, ON: EVERY, OFF: OF_SERVER}


class UnknownGroupError(ValueError):
    """A word that names no group and no reconciler."""

    def __init__(self, word: str) -> None:
        super().__init__(
            f"{printable(word)} is no group of controllers: must be on, off, all, or names of "
            f"{', '.join(GROUPS)}, separated by commas"
        )


def reconcilers_of(text: str) -> frozenset[str]:
    """Return the names of the reconcilers that a choice lets run.

    :param text: ``on`` or ``all``, ``off`` for ``api,kubelet``, or the names of groups and
        reconcilers, separated by commas. ``api`` is always among them.

    Raises UnknownGroupError.
    """
    if text in _WORDS:
        return _WORDS[text]
    names = {*GROUPS[API]}
    for word in filter(None, map(str.strip, text.split(","))):
        if word in GROUPS:
            names.update(GROUPS[word])
        elif word in EVERY:
            names.add(word)
        else:
            raise UnknownGroupError(word)
    return frozenset(names)
