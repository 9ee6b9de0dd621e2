"""Default classes of Ingresses and claims; protection of claims and volumes in use; growth of
claims.

Upstream: ``plugin/pkg/admission/network/defaultingressclass``, ``plugin/pkg/admission/storage``.
"""

from __future__ import annotations

from kubepy.api.meta import annotations_of
from kubepy.api.objects.volumes import CLASSES, class_of, default_class, has_class, requested_size
from kubepy.apiserver.server import Attributes
from kubepy.storage import Key

INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"


def set_default_ingress_class(attributes: Attributes) -> None:
    """Give an Ingress that names no class the newest default one."""
    spec = attributes.obj.setdefault("spec", {})
    if spec.get("ingressClassName") is not None or CLASS_ANNOTATION in annotations_of(
        attributes.obj
    ):
        return

    defaults = [
        ingress_class
        for ingress_class in attributes.transaction.list(INGRESS_CLASSES)
        if annotations_of(ingress_class).get(DEFAULT_CLASS) == "true"
    ]
    if defaults:
        newest = max(default["metadata"]["creationTimestamp"] for default in defaults)
        spec["ingressClassName"] = next(
            default["metadata"]["name"]
            for default in defaults
            if default["metadata"]["creationTimestamp"] == newest
        )


def set_default_storage_class(attributes: Attributes) -> None:
    """Give a claim that names no class the default one."""
    spec = attributes.obj.setdefault("spec", {})
    if (
        not has_class(attributes.obj)
        and (default := default_class(attributes.transaction.list(CLASSES))) is not None
    ):
        spec["storageClassName"] = default["metadata"]["name"]


def protect_claim(attributes: Attributes) -> None:
    _add_finalizer(attributes, "kubernetes.io/pvc-protection")


def protect_volume(attributes: Attributes) -> None:
    _add_finalizer(attributes, "kubernetes.io/pv-protection")


def _add_finalizer(attributes: Attributes, finalizer: str) -> None:
    """Add a finalizer, so that an object in use is not removed."""
    finalizers = attributes.obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        attributes.obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def check_resize(attributes: Attributes) -> None:
    """Refuse the growth of a claim that is not bound, or whose class does not allow it. Raises
    Forbidden."""
    claim = attributes.obj
    old = attributes.old
    if old is None or requested_size(claim) <= requested_size(old):
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise attributes.forbidden("Only bound persistent volume claims can be expanded")
    name = class_of(claim)
    if name and name == class_of(old):
        storage_class = attributes.transaction.get(Key(CLASSES, "", name))
    else:
        storage_class = None

    if storage_class is None or not storage_class.get("allowVolumeExpansion"):
        raise attributes.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that "
            "provisions the pvc must support resize"
        )
