"""Tables of PersistentVolumeClaims."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, spec_of, status_of
from kubepy.api.objects.volumes import access_modes, class_of
from kubepy.apiserver.printers import Cell, age, printer


def phase_of(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(status_of(obj).get("phase", ""))


@printer(
    "Name",
    "Status",
    "Volume",
    "Capacity",
    "Access Modes",
    "StorageClass",
    "VolumeAttributesClass",
    "Age",
    "+VolumeMode",
)
def print_claim(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    status = status_of(obj)
    bound = bool(spec.get("volumeName"))
    return [
        obj["metadata"]["name"],
        phase_of(obj),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        access_modes(status.get("accessModes")) if bound else "",
        class_of(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]
