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
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.admission.quota import Charge

IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
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
def _plugin(place: str) -> Callable[[Attributes], None]:
    from importlib import import_module

    module, _, name = place.partition(":")
    found: Callable[[Attributes], None] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def _run(places: Iterable[str], attributes: Attributes) -> None:
    for place in places:
        _plugin(place)(attributes)


def admit_creation(attributes: Attributes) -> None:
    """Refuse or complete a new object, before its kind's rules. Raises NotFound (no such namespace), Forbidden."""
    if attributes.resource.namespaced:
        check_namespace(attributes)
    _run(_COMPLETING_NEW.get(attributes.resource.key, ()), attributes)


def check_namespace(attributes: Attributes) -> None:
    """Refuse a new object in a namespace that is absent or terminating. Raises NotFound, Forbidden."""
    name = attributes.namespace
    namespace = attributes.transaction.get(Key("namespaces", "", name))
    if namespace is None:
        raise errors.not_found("namespaces", name)
    if namespace.get("status", {}).get("phase") != "Terminating":
        return
    cause = errors.Cause("NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace")
    raise attributes.forbidden(f"unable to create new content in namespace {name} because it is being terminated",
                               [cause])


def validate_creation(attributes: Attributes) -> None:
    """Refuse a new object that its kind's rules let through. Raises Forbidden, Invalid."""
    _run(_CHECKING_NEW.get(attributes.resource.key, ()), attributes)
    _check_policies(attributes, "CREATE")


def _check_policies(attributes: Attributes, operation: str) -> None:
    """Hardly any cluster has policies, and the language of their rules is only loaded for those that do."""
    if attributes.transaction.list(POLICY_BINDINGS):
        from kubepy.apiserver.admission.policies import check_policies

        check_policies(attributes, operation)


def charge_quotas(attributes: Attributes) -> list[Charge]:
    """What the request uses of the namespace's ResourceQuotas, to be written with it. Raises Forbidden."""
    if not attributes.namespace or not attributes.transaction.list(QUOTAS, attributes.namespace):
        return []
    from kubepy.apiserver.admission.quota import charge

    return charge(attributes)


def admit_update(attributes: Attributes) -> None:
    """An update that leaves out what admission had filled in keeps it, or is completed anew."""
    _run(_COMPLETING_UPDATES.get((attributes.resource.key, attributes.subresource), ()), attributes)


def validate_update(attributes: Attributes) -> None:
    """Refuse an update that the kind's rules let through. Raises Forbidden, Invalid."""
    _run(_CHECKING_UPDATES.get((attributes.resource.key, attributes.subresource), ()), attributes)
    _check_policies(attributes, "UPDATE")


def validate_deletion(attributes: Attributes) -> None:
    """Refuse the deletion of an object that is there. Raises what the policies deny."""
    _check_policies(attributes, "DELETE")


def admit_deletion(scope: RequestScope) -> None:
    """Refuse to delete what every cluster needs, whether or not it is there. Raises Forbidden.

    Upstream refuses system classes in ``registry/scheduling/priorityclass/storage``.
    """
    if scope.resource.key == "namespaces" and scope.name in IMMORTAL_NAMESPACES:
        raise errors.forbidden("namespaces", scope.name, "this namespace may not be deleted")
    if scope.resource.key == PRIORITY_CLASSES and scope.name in SYSTEM_PRIORITY_CLASSES:
        raise errors.forbidden(PRIORITY_CLASSES, scope.name,
                               "this is a system priority class and cannot be deleted")
