"""An Ingress that names no class gets the default one (``plugin/pkg/admission/network/defaultingressclass``)."""

from __future__ import annotations

from kubepy.api.meta import annotations_of
from kubepy.apiserver.server import Attributes

INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"


def set_default_ingress_class(attributes: Attributes) -> None:
    spec = attributes.obj.setdefault("spec", {})
    if spec.get("ingressClassName") is not None or CLASS_ANNOTATION in annotations_of(attributes.obj):
        return
    marked = [one for one in attributes.transaction.list(INGRESS_CLASSES)
              if annotations_of(one).get(DEFAULT_CLASS) == "true"]
    if marked:
        newest = max(one["metadata"]["creationTimestamp"] for one in marked)
        spec["ingressClassName"] = next(one["metadata"]["name"] for one in marked
                                        if one["metadata"]["creationTimestamp"] == newest)
