"""What an API server's admission plugins do to a request before the kind's own rules: those that are on by default.

NamespaceLifecycle, TaintNodesByCondition, Priority, DefaultTolerationSeconds, DefaultStorageClass and
StorageObjectInUseProtection (upstream: ``plugin/pkg/admission``, ``apiserver/pkg/admission/plugin/namespace``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.cluster import errors
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.requests.server import Server, Target
from kubepy.cluster.requests.sessions import Session
from kubepy.storage import Key

IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
TOLERATION_SECONDS = 300
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"

Plugin = Callable[[Session, Target, Object], None]


def admit_creation(server: Server, session: Session, target: Target, obj: Object) -> None:
    """Refuse or complete a new object. Raises NotFound (no such namespace), Forbidden."""
    if target.resource.namespaced:
        admit_into_namespace(session, target, obj)
    for plugin in _ON_CREATION.get(target.resource.key, ()):
        plugin(session, target, obj)


def admit_update(target: Target, new: Object, old: Object, subresource: str) -> None:
    """An update that leaves out what admission had filled in keeps it."""
    if target.resource.key == "pods" and not subresource:
        for field in ("priority", "preemptionPolicy"):
            if field in old["spec"]:
                new["spec"].setdefault(field, old["spec"][field])


def admit_deletion(target: Target) -> None:
    """Raises Forbidden."""
    if target.resource.key == "namespaces" and target.name in IMMORTAL_NAMESPACES:
        raise errors.forbidden("namespaces", target.name, "this namespace may not be deleted")


def admit_into_namespace(session: Session, target: Target, obj: Object) -> None:
    """Nothing is created in a namespace that is absent or going. Raises NotFound, Forbidden."""
    namespace = session.get(Key("namespaces", "", target.namespace))
    if namespace is None:
        raise errors.not_found("namespaces", target.namespace)
    if namespace.get("status", {}).get("phase") != "Terminating":
        return
    why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
    cause = errors.Cause("NamespaceTerminating", f"namespace {target.namespace} is being terminated",
                         "metadata.namespace")
    raise _forbidden(target, obj, why, [cause])


def _forbidden(target: Target, obj: Object, why: str, causes: list[errors.Cause] | None = None) -> errors.Status:
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or "Unknown"
    return errors.forbidden(target.resource.key, name, why, causes or ())


# --- nodes ----------------------------------------------------------------------------------------------------------


def _taint_node(session: Session, target: Target, node: Object) -> None:
    """A new node is not ready until its kubelet says so (``plugin/pkg/admission/nodetaint``)."""
    spec = node.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        spec["taints"] = [*taints, {"effect": "NoSchedule", "key": NOT_READY}]


# --- pods -----------------------------------------------------------------------------------------------------------


def _set_priority(session: Session, target: Target, pod: Object) -> None:
    """``priority`` and ``preemptionPolicy`` from the pod's PriorityClass (``plugin/pkg/admission/priority``)."""
    spec = pod.setdefault("spec", {})
    priority_class = _priority_class(session, target, pod)
    priority = int(priority_class.get("value", 0))
    policy = priority_class.get("preemptionPolicy", "PreemptLowerPriority")
    _refuse_other(target, pod, "the integer value of priority", "priority", priority)
    _refuse_other(target, pod, "the string value of PreemptionPolicy", "preemptionPolicy", policy)
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy
    if name := priority_class.get("metadata", {}).get("name"):
        spec["priorityClassName"] = name


def _priority_class(session: Session, target: Target, pod: Object) -> Object:
    """The class that the pod names or the default one; an empty one if there is none."""
    if name := pod["spec"].get("priorityClassName"):
        found = session.get(Key(PRIORITY_CLASSES, "", name))
        if found is None:
            raise _forbidden(target, pod, f"no PriorityClass with name {name} was found")
        return found
    defaults = [one for one in session.list(PRIORITY_CLASSES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one.get("value", 0)), default={})


def _refuse_other(target: Target, pod: Object, what: str, field: str, computed: Any) -> None:
    given = pod["spec"].get(field)
    if given is not None and given != computed:
        why = (f"{what} ({given}) must not be provided in pod spec; priority admission controller computed "
               f"{computed} from the given PriorityClass name")
        raise _forbidden(target, pod, why)


def _add_default_tolerations(session: Session, target: Target, pod: Object) -> None:
    """A pod stays five minutes on a node that fails, unless it says otherwise (``defaulttolerationseconds``)."""
    spec = pod.setdefault("spec", {})
    tolerations = spec.get("tolerations") or []
    missing = [key for key in (NOT_READY, UNREACHABLE) if not _tolerates(tolerations, key)]
    added = [{"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": TOLERATION_SECONDS}
             for key in missing]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _tolerates(tolerations: list[Object], key: str) -> bool:
    return any(one.get("key", "") in ("", key) and one.get("effect", "") in ("", "NoExecute") for one in tolerations)


# --- volumes --------------------------------------------------------------------------------------------------------


def _protect(finalizer: str) -> Plugin:
    """A volume or claim in use is not removed (``storageobjectinuseprotection``)."""

    def add_finalizer(session: Session, target: Target, obj: Object) -> None:
        finalizers = obj["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, finalizer]

    return add_finalizer


def _set_default_class(session: Session, target: Target, claim: Object) -> None:
    """A claim that names no class gets the default one (``storageclass/setdefault``)."""
    from kubepy.cluster.objects.volumes import CLASSES, default_class, has_class

    spec = claim.setdefault("spec", {})
    if not has_class(claim) and (default := default_class(session.list(CLASSES))) is not None:
        spec["storageClassName"] = default["metadata"]["name"]


_ON_CREATION: dict[str, tuple[Plugin, ...]] = {
    "nodes": (_taint_node,),
    "pods": (_set_priority, _add_default_tolerations),
    "persistentvolumeclaims": (_set_default_class, _protect("kubernetes.io/pvc-protection")),
    "persistentvolumes": (_protect("kubernetes.io/pv-protection"),),
}
