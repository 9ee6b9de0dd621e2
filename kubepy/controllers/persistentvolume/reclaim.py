"""What becomes of a volume whose claim is gone (``reclaimVolume``).

Volumes that a provisioner made, and CSI volumes, are deleted by their provisioner. Of the others only host paths below
``/tmp`` can be deleted, and only host paths and NFS shares recycled; whatever asks for more has Failed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kubepy.api.meta import Object, annotations_of, name_of
from kubepy.api.objects.volumes import PROVISIONED_BY

Action = Literal["keep", "delete", "recycle", "fail"]
NO_DELETER = "no deletable volume plugin matched"


class Reclaim(NamedTuple):
    """What to do; for ``fail`` the event's reason and message."""

    action: Action
    reason: str = ""
    message: str = ""


KEEP, DELETE, RECYCLE = Reclaim("keep"), Reclaim("delete"), Reclaim("recycle")


def decide(volume: Object) -> Reclaim:
    match volume["spec"].get("persistentVolumeReclaimPolicy"):
        case "Retain":
            return KEEP
        case "Recycle":
            return _recycling(volume["spec"])
        case "Delete":
            return _deletion(volume)
    return Reclaim("fail", "VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")


def _recycling(spec: Object) -> Reclaim:
    if "hostPath" in spec or "nfs" in spec:
        return RECYCLE
    return Reclaim("fail", "VolumeFailedRecycle", "No recycler plugin found for the volume!")


def _deletion(volume: Object) -> Reclaim:
    spec, provisioner = volume["spec"], annotations_of(volume).get(PROVISIONED_BY, "")
    if provisioner.startswith("kubernetes.io/") and provisioner != "kubernetes.io/host-path":
        return _no_deleter(volume)
    if "csi" in spec or (provisioner and provisioner != "kubernetes.io/host-path"):
        return KEEP
    if "hostPath" not in spec:
        return _no_deleter(volume)
    path = spec["hostPath"].get("path", "")
    if path.startswith("/tmp/") and len(path) > len("/tmp/"):
        return DELETE
    why = f"host_path deleter only supports /tmp/.+ but received provided {path}"
    return Reclaim("fail", "VolumeFailedDelete", why)


def _no_deleter(volume: Object) -> Reclaim:
    message = f'error getting deleter volume plugin for volume "{name_of(volume)}": {NO_DELETER}'
    return Reclaim("fail", "VolumeFailedDelete", message)
