"""What an API server's admission plugins do to a request: those that are on by default (``plugin/pkg/admission``).

Some complete an object before the kind's own rules see it (default classes, LimitRanges, tolerations), others refuse
what those rules let through (limits, quotas, Pod Security). Each plugin is a function of a :class:`Request`, imported
when a kind that it is about is first written. There are no users here, and so no plugins about service accounts and
certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.admission.namespaces import IMMORTAL_NAMESPACES, admit_into_namespace
from kubepy.apiserver.admission.request import Request
from kubepy.apiserver.requests.server import Server, Target
from kubepy.apiserver.requests.sessions import Session

if TYPE_CHECKING:
    from kubepy.apiserver.admission.quota import Charge

__all__ = ["Request", "admit_creation", "admit_deletion", "admit_into_namespace", "admit_update", "charge_quotas",
           "validate_creation", "validate_deletion", "validate_update"]

QUOTAS = "resourcequotas"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_PRIORITY_CLASSES = ("system-node-critical", "system-cluster-critical")
POLICY_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
_WORKLOADS = ("podtemplates", "replicationcontrollers", "replicasets.apps", "deployments.apps", "statefulsets.apps",
              "daemonsets.apps", "jobs.batch", "cronjobs.batch")

# Plugins as ``module:function``, in upstream's order (``pkg/kubeapiserver/options/plugins.go``).
_COMPLETING_NEW: dict[str, tuple[str, ...]] = {
    "nodes": ("scheduling:taint_node",),
    "pods": ("limits:apply_limit_defaults", "scheduling:set_priority", "scheduling:add_default_tolerations",
             "scheduling:apply_runtime_class"),
    "persistentvolumeclaims": ("volumes:set_default_class", "volumes:protect_claim"),
    "persistentvolumes": ("volumes:protect_volume",),
    "ingresses.networking.k8s.io": ("networking:set_default_ingress_class",),
}
_COMPLETING_UPDATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("pods", ""): ("scheduling:keep_priority", "scheduling:add_default_tolerations"),
}
_CHECKING_NEW: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_WORKLOADS, ("podsecurity:warn_of_template",)),
    "namespaces": ("podsecurity:check_namespace",),
    "pods": ("limits:check_limits", "podsecurity:check_pod", "scheduling:check_overhead"),
    "persistentvolumeclaims": ("limits:check_limits",),
    PRIORITY_CLASSES: ("scheduling:check_one_default",),
}
_CHECKING_UPDATES: dict[tuple[str, str], tuple[str, ...]] = {
    **dict.fromkeys([(workload, "") for workload in _WORKLOADS], ("podsecurity:warn_of_template",)),
    ("namespaces", ""): ("podsecurity:check_namespace",),
    ("pods", ""): ("podsecurity:check_pod",),
    ("pods", "ephemeralcontainers"): ("podsecurity:check_pod",),
    ("pods", "resize"): ("limits:check_limits", "podsecurity:check_pod"),
    ("persistentvolumeclaims", ""): ("limits:check_limits", "volumes:check_resize"),
    (PRIORITY_CLASSES, ""): ("scheduling:check_one_default",),
}


@cache
def _plugin(place: str) -> Callable[[Request], None]:
    from importlib import import_module

    module, _, name = place.partition(":")
    found: Callable[[Request], None] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def _run(places: Iterable[str], request: Request) -> None:
    for place in places:
        _plugin(place)(request)


def admit_creation(server: Server, session: Session, target: Target, obj: Object) -> None:
    """Refuse or complete a new object, before its kind's rules. Raises NotFound (no such namespace), Forbidden."""
    if target.resource.namespaced:
        admit_into_namespace(session, target, obj)
    _run(_COMPLETING_NEW.get(target.resource.key, ()), Request(server, session, target, obj))


def validate_creation(server: Server, session: Session, target: Target, obj: Object) -> None:
    """Refuse a new object that its kind's rules let through. Raises Forbidden, Invalid."""
    request = Request(server, session, target, obj)
    _run(_CHECKING_NEW.get(target.resource.key, ()), request)
    _check_policies(request, "CREATE")


def _check_policies(request: Request, operation: str) -> None:
    """Hardly any cluster has policies, and the language of their rules is only loaded for those that do."""
    if request.session.list(POLICY_BINDINGS):
        from kubepy.apiserver.admission.policies import check_policies

        check_policies(request, operation)


def charge_quotas(request: Request) -> list[Charge]:
    """What the request uses of the namespace's ResourceQuotas, to be written with it. Raises Forbidden."""
    if not request.target.namespace or not request.session.list(QUOTAS, request.target.namespace):
        return []
    from kubepy.apiserver.admission.quota import charge

    return charge(request)


def admit_update(request: Request) -> None:
    """An update that leaves out what admission had filled in keeps it, or is completed anew."""
    _run(_COMPLETING_UPDATES.get((request.target.resource.key, request.subresource), ()), request)


def validate_update(request: Request) -> None:
    """Refuse an update that the kind's rules let through. Raises Forbidden, Invalid."""
    _run(_CHECKING_UPDATES.get((request.target.resource.key, request.subresource), ()), request)
    _check_policies(request, "UPDATE")


def validate_deletion(server: Server, session: Session, target: Target, obj: Object) -> None:
    """Refuse the deletion of an object that is there. Raises what the policies deny."""
    _check_policies(Request(server, session, target, obj), "DELETE")


def admit_deletion(target: Target) -> None:
    """Refuse to delete what every cluster needs, whether or not it is there. Raises Forbidden.

    Upstream refuses system classes in ``registry/scheduling/priorityclass/storage``.
    """
    if target.resource.key == "namespaces" and target.name in IMMORTAL_NAMESPACES:
        raise errors.forbidden("namespaces", target.name, "this namespace may not be deleted")
    if target.resource.key == PRIORITY_CLASSES and target.name in SYSTEM_PRIORITY_CLASSES:
        why = "this is a system priority class and cannot be deleted"
        raise errors.forbidden(PRIORITY_CLASSES, target.name, why)
