"""Tables of PersistentVolumes."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, spec_of, status_of
from kubepy.api.objects.volumes import access_modes, class_of
from kubepy.apiserver.kinds.core.persistentvolumeclaims.printers import phase_of
from kubepy.apiserver.printers import Cell, age, printer


@printer(
    "Name",
    "Capacity",
    "Access Modes",
    "Reclaim Policy",
    "Status",
    "Claim",
    "StorageClass",
    "VolumeAttributesClass",
    "Reason",
    "Age",
    "+VolumeMode",
)
def print_volume(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    claim = spec.get("claimRef")
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", "0"),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase_of(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        class_of(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        status_of(obj).get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]
