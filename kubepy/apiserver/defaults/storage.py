"""Volumes, claims and storage classes (``core/v1/defaults.go``, ``storage/v1/defaults.go``)."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api.meta import Object
from kubepy.apiserver.defaults.filling import fill
from kubepy.apiserver.defaults.quantities import round_up_all


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
    for kind, fill_in in SOURCES.items():
        if spec.get(kind) is not None:
            fill_in(spec[kind])


def _default_host_path(source: Object) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _default_iscsi(source: Object) -> None:
    fill(source, {"iscsiInterface": "default"})


def _default_rbd(source: Object) -> None:
    fill(source, {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"})


def _default_scale_io(source: Object) -> None:
    fill(source, {"storageMode": "ThinProvisioned", "fsType": "xfs"})


def _default_azure_disk(source: Object) -> None:
    """An empty fsType is one that was given: only an absent one is filled in."""
    for key, value in (("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)):
        if source.get(key) is None:
            source[key] = value


# What a PersistentVolume and a volume of a pod may both be, and what is filled in.
SOURCES: dict[str, Callable[[Object], None]] = {
    "hostPath": _default_host_path, "iscsi": _default_iscsi, "rbd": _default_rbd, "scaleIO": _default_scale_io,
    "azureDisk": _default_azure_disk,
}


def default_storage_class(storage_class: Object) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")
