"""The parts of an object that the system writes by itself: server, controllers, scheduler and kubelets.

The rest is what somebody wanted, its intent. Two branches of a repository never conflict in what is written here, and
a repository that keeps intent only leaves it out.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object, annotations_of, clone, controller_of, labels_of
from kubepy.api.objects.volumes import BOUND_BY_CONTROLLER, STORAGE_PROVISIONER
from kubepy.apiserver.strategies.apps import TEMPLATE_GENERATION

METADATA = frozenset({
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
})
_ANNOTATIONS = (
    TEMPLATE_GENERATION,
    "control-plane.alpha.kubernetes.io/",
    "deployment.kubernetes.io/",
    "endpoints.kubernetes.io/",
    "node.alpha.kubernetes.io/ttl",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/",
)
_FINALIZERS = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection")
_TAINTS = "node.kubernetes.io/"
_TAINTS_OF_USERS = ("node.kubernetes.io/out-of-service",)
# Fields below spec that controllers and the scheduler set, by kind.
_SPEC: dict[str, frozenset[str]] = {
    "PersistentVolume": frozenset({"claimRef"}),
    "PersistentVolumeClaim": frozenset({"volumeName"}),
    "Pod": frozenset({"nodeName"}),
}
_MADE_BY_CONTROLLERS = {
    "Endpoints": "endpoints.kubernetes.io/managed-by",
    "EndpointSlice": "endpointslice.kubernetes.io/managed-by",
}


def is_made_by_controller(obj: Object) -> bool:
    """True for what a controller made and would make again: owned by one, or written by one alone."""
    if obj.get("kind") == "Lease" or controller_of(obj) is not None:
        return True
    label = _MADE_BY_CONTROLLERS.get(obj.get("kind", ""))
    return label is not None and label in labels_of(obj)


def is_written_annotation(name: str) -> bool:
    return name.startswith(_ANNOTATIONS)


def is_written_field(kind: str, name: str) -> bool:
    """True if the field of that name below spec is the system's."""
    return name in _SPEC.get(kind, ())


def is_written_taint(key: str) -> bool:
    return key.startswith(_TAINTS) and key not in _TAINTS_OF_USERS


def without_written_annotations(obj: Object) -> Object:
    """The object without the annotations that are the system's."""
    kept = {name: value for name, value in annotations_of(obj).items() if not is_written_annotation(name)}
    metadata = {name: value for name, value in obj["metadata"].items() if name != "annotations"}
    return {**obj, "metadata": {**metadata, "annotations": kept} if kept else metadata}


def intent_of(obj: Object, *, has_status: bool = True) -> Object:
    """The object without what the system writes and would write again in a cluster made from it.

    ``has_status``: status is the system's, as in every kind with a status subresource. A volume that somebody chose
    for a claim stays, and so does the node of a pod.
    """
    intent = without_written_annotations(clone(obj))
    if has_status:
        intent.pop("status", None)
    metadata = {name: value for name, value in intent["metadata"].items() if name not in METADATA}
    _keep(metadata, "finalizers", lambda finalizer: finalizer not in _FINALIZERS)
    intent["metadata"] = metadata
    if isinstance(spec := intent.get("spec"), dict):
        _strip_spec(obj, spec)
    return intent


def _strip_spec(obj: Object, spec: dict[str, Any]) -> None:
    annotations = annotations_of(obj)
    if obj.get("kind") == "Node":
        _keep(spec, "taints", lambda taint: not is_written_taint(str(taint.get("key", ""))))
    elif obj.get("kind") == "PersistentVolumeClaim" and annotations.keys() & {BOUND_BY_CONTROLLER, STORAGE_PROVISIONER}:
        spec.pop("volumeName", None)
    elif obj.get("kind") == "PersistentVolume" and isinstance(claim := spec.get("claimRef"), dict):
        if BOUND_BY_CONTROLLER in annotations:
            del spec["claimRef"]
        else:
            spec["claimRef"] = {name: value for name, value in claim.items() if name not in METADATA}


def _keep(parent: dict[str, Any], name: str, is_kept: Any) -> None:
    """Filter a list; one that becomes empty goes."""
    values = parent.get(name)
    if not isinstance(values, list):
        return
    if kept := [value for value in values if is_kept(value)]:
        parent[name] = kept
    else:
        del parent[name]
