"""What an API server's admission plugins do to a request: those that are on by default (``plugin/pkg/admission``).

Some complete an object before the kind's own rules see it (default classes, LimitRanges, tolerations), others refuse
what those rules let through (limits, quotas). Each plugin is a function of a :class:`Request`. There are no users here,
and so no plugins about service accounts and certificates.
"""

from __future__ import annotations

from collections.abc import Callable

from kubepy.cluster import errors
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.requests.admission import networking, podsecurity, quota, scheduling, volumes
from kubepy.cluster.requests.admission.limits import apply_limit_defaults, check_limits
from kubepy.cluster.requests.admission.namespaces import IMMORTAL_NAMESPACES, admit_into_namespace
from kubepy.cluster.requests.admission.request import Request
from kubepy.cluster.requests.server import Server, Target
from kubepy.cluster.requests.sessions import Session

__all__ = ["Request", "admit_creation", "admit_deletion", "admit_into_namespace", "admit_update", "charge_quotas",
           "validate_creation", "validate_update"]

Plugin = Callable[[Request], None]

# In upstream's order (``pkg/kubeapiserver/options/plugins.go``).
_COMPLETING_NEW: dict[str, tuple[Plugin, ...]] = {
    "nodes": (scheduling.taint_node,),
    "pods": (apply_limit_defaults, scheduling.set_priority, scheduling.add_default_tolerations,
             scheduling.apply_runtime_class),
    "persistentvolumeclaims": (volumes.set_default_class, volumes.protect_claim),
    "persistentvolumes": (volumes.protect_volume,),
    "ingresses.networking.k8s.io": (networking.set_default_ingress_class,),
}
_CHECKING_NEW: dict[str, tuple[Plugin, ...]] = {
    **dict.fromkeys(podsecurity.WORKLOADS, (podsecurity.warn_of_template,)),
    "namespaces": (podsecurity.check_namespace,),
    "pods": (check_limits, podsecurity.check_pod, scheduling.check_overhead),
    "persistentvolumeclaims": (check_limits,),
    "priorityclasses.scheduling.k8s.io": (scheduling.check_one_default,),
}
_CHECKING_UPDATES: dict[tuple[str, str], tuple[Plugin, ...]] = {
    **dict.fromkeys([(workload, "") for workload in podsecurity.WORKLOADS], (podsecurity.warn_of_template,)),
    ("namespaces", ""): (podsecurity.check_namespace,),
    ("pods", ""): (podsecurity.check_pod,),
    ("pods", "ephemeralcontainers"): (podsecurity.check_pod,),
    ("pods", "resize"): (check_limits, podsecurity.check_pod),
    ("persistentvolumeclaims", ""): (check_limits, volumes.check_resize),
    ("priorityclasses.scheduling.k8s.io", ""): (scheduling.check_one_default,),
}


def admit_creation(server: Server, session: Session, target: Target, obj: Object) -> None:
    """Refuse or complete a new object, before its kind's rules. Raises NotFound (no such namespace), Forbidden."""
    if target.resource.namespaced:
        admit_into_namespace(session, target, obj)
    for plugin in _COMPLETING_NEW.get(target.resource.key, ()):
        plugin(Request(server, session, target, obj))


def validate_creation(server: Server, session: Session, target: Target, obj: Object) -> None:
    """Refuse a new object that its kind's rules let through. Raises Forbidden."""
    for plugin in _CHECKING_NEW.get(target.resource.key, ()):
        plugin(Request(server, session, target, obj))


def charge_quotas(request: Request) -> list[quota.Charge]:
    """What the request uses of the namespace's ResourceQuotas, to be written with it. Raises Forbidden."""
    return quota.charge(request) if request.target.namespace else []


def admit_update(target: Target, new: Object, old: Object, subresource: str) -> None:
    """An update that leaves out what admission had filled in keeps it."""
    if target.resource.key == "pods" and not subresource:
        scheduling.keep_priority(new, old)


def validate_update(request: Request) -> None:
    """Refuse an update that the kind's rules let through. Raises Forbidden."""
    for plugin in _CHECKING_UPDATES.get((request.target.resource.key, request.subresource), ()):
        plugin(request)


def admit_deletion(target: Target) -> None:
    """Raises Forbidden."""
    if target.resource.key == "namespaces" and target.name in IMMORTAL_NAMESPACES:
        raise errors.forbidden("namespaces", target.name, "this namespace may not be deleted")
