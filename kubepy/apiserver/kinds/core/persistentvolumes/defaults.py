"""Defaults of PersistentVolumes (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.defaults import fill, round_up_all
from kubepy.apiserver.kinds.core.volumesources.defaults import SOURCES, default_source


def default_volume_object(volume: Object) -> None:
    """Set the defaults of a PersistentVolume."""
    spec = volume.setdefault("spec", {})
    status = volume.setdefault("status", {})
    fill(status, {"phase": "Pending"})
    fill(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    spec.setdefault("volumeMode", "Filesystem")
    round_up_all(spec.get("capacity"))
    for kind in SOURCES:
        if spec.get(kind) is not None:
            default_source(kind, spec[kind])
