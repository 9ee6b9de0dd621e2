"""Claims and volumes: the default class, protection of what is in use, growth.

Upstream: ``plugin/pkg/admission/storage``.
"""

from __future__ import annotations

from kubepy.api.objects.volumes import CLASSES, class_of, default_class, has_class, requested_size
from kubepy.apiserver.admission.request import Request
from kubepy.storage import Key


def set_default_class(request: Request) -> None:
    """A claim that names no class gets the default one."""
    spec = request.obj.setdefault("spec", {})
    if not has_class(request.obj) and (default := default_class(request.session.list(CLASSES))) is not None:
        spec["storageClassName"] = default["metadata"]["name"]


def protect_claim(request: Request) -> None:
    _add_finalizer(request, "kubernetes.io/pvc-protection")


def protect_volume(request: Request) -> None:
    _add_finalizer(request, "kubernetes.io/pv-protection")


def _add_finalizer(request: Request, finalizer: str) -> None:
    """What is in use is not removed."""
    finalizers = request.obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        request.obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def check_resize(request: Request) -> None:
    """A claim grows when it is bound and its class allows it."""
    claim, old = request.obj, request.old
    if old is None or requested_size(claim) <= requested_size(old):
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise request.refuse("Only bound persistent volume claims can be expanded")
    if not _may_grow(request, class_of(claim), class_of(old)):
        raise request.refuse("only dynamically provisioned pvc can be resized and the storageclass that provisions "
                             "the pvc must support resize")


def _may_grow(request: Request, name: str, old_name: str) -> bool:
    storage_class = request.session.get(Key(CLASSES, "", name)) if name and name == old_name else None
    return storage_class is not None and bool(storage_class.get("allowVolumeExpansion"))
