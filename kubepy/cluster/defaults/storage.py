"""Volumes, claims and storage classes (``core/v1/defaults.go``, ``storage/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.cluster.defaults.filling import fill
from kubepy.cluster.defaults.quantities import round_up_all
from kubepy.cluster.meta import Object


def default_claim(claim: Object) -> None:
    default_claim_spec(claim.setdefault("spec", {}))
    status = claim.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    round_up_all(status.get("capacity"))


def default_claim_spec(spec: Object) -> None:
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.setdefault("resources", {})
    round_up_all(resources.get("limits"))
    round_up_all(resources.get("requests"))


def default_volume_object(volume: Object) -> None:
    """A PersistentVolume."""
    spec, status = volume.setdefault("spec", {}), volume.setdefault("status", {})
    fill(status, {"phase": "Pending"})
    fill(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    spec.setdefault("volumeMode", "Filesystem")
    round_up_all(spec.get("capacity"))
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")
    if spec.get("azureDisk") is not None:
        default_azure_disk(spec["azureDisk"])
    for kind, defaults in _SOURCES.items():
        if spec.get(kind) is not None:
            fill(spec[kind], defaults)


_SOURCES = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_azure_disk(source: Object) -> None:
    """An empty fsType is one that was given: only an absent one is filled in."""
    for key, value in (("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)):
        if source.get(key) is None:
            source[key] = value


def default_storage_class(storage_class: Object) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")
