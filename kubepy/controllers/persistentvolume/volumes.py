"""The volume side of the binder: what happens to a volume (``syncVolume`` in ``pv_controller.go``),
and reclaiming.

Released volumes that a provisioner made, and CSI volumes, are deleted by their provisioner. Of the
others only host paths below ``/tmp`` can be deleted, and only host paths and NFS shares recycled;
everything else fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from kubepy.api.errors import NotFound
from kubepy.api.meta import annotations_of, is_being_deleted, name_of, uid_of
from kubepy.api.objects.volumes import PROVISIONED_BY, is_bound_to, modes_match
from kubepy.controllers.persistentvolume.binder import COMPONENT, Binder, PhaseEvent
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

CONTENT = "volume/"  # and a volume's name: the small value that has what pods wrote into it

if TYPE_CHECKING:
    from kubepy.api.typed import ObjectReference, PersistentVolume, PersistentVolumeClaim


class VolumeController:
    """Reconciles volumes. Its turn comes before that of the claims, which look for volumes in phase
    Available."""

    name = "persistentvolume-binder-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._volume_client = ResourceClient(context.client, PERSISTENT_VOLUMES)
        self._claim_client = ResourceClient(context.client, PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informers.lister(PERSISTENT_VOLUMES)
        self._claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._recorder = Recorder(context.client, COMPONENT)
        self._binder = Binder(context.client, self._recorder)
        self._client = context.client
        self._deleted: set[str] = set()  # volumes whose storage goes with them

    def handlers(self) -> Mapping[str, Handler]:
        return {
            PERSISTENT_VOLUMES: self._volume_changed,
            PERSISTENT_VOLUME_CLAIMS: self._claim_changed,
        }

    def _volume_changed(self, event: WatchEvent) -> None:
        old, new = (cast("PersistentVolume | None", volume) for volume in (event.old, event.new))
        if new is not None:
            self._deleted.discard(event.key.name)
            self.queue.add(event.key)
        elif old is not None and old["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._deleted.add(event.key.name)
            self.queue.add(event.key)

    def _claim_changed(self, event: WatchEvent) -> None:
        """Reconcile the volumes that the claim names, or named, and those bound to a deleted
        claim."""
        old, new = (cast("PersistentVolumeClaim | None", claim) for claim in (event.old, event.new))
        names = {claim["spec"].get("volumeName") for claim in (old, new) if claim is not None}
        if new is None and old is not None:
            names |= {
                name_of(volume) for volume in self._volumes.list() if is_bound_to(volume, old)
            }
        for name in sorted(name for name in names if name):
            self.queue.add(Key(PERSISTENT_VOLUMES, "", name))

    def sync(self, key: Key) -> None:
        volume = self._volumes.get("", key.name)
        if volume is None:
            if key.name in self._deleted:
                self._deleted.remove(key.name)
                self._remove_content(key.name)
            return
        claim_ref = volume["spec"].get("claimRef")
        if not claim_ref or not claim_ref.get("uid"):
            self._binder.set_volume_phase(volume, "Available")
            return
        claim = self._find_claim(volume, claim_ref)
        if claim is None:
            self._release(volume)
        elif not claim["spec"].get("volumeName"):
            # The claim's own sync completes a binding, but not with a volume of the other mode.
            if not modes_match(claim, volume):
                self._recorder.event(
                    volume,
                    "Warning",
                    "VolumeMismatch",
                    "Cannot bind PersistentVolume to requested "
                    f'PersistentVolumeClaim "{name_of(claim)}" due to incompatible volumeMode.',
                )
                self._recorder.event(
                    claim,
                    "Warning",
                    "VolumeMismatch",
                    "Cannot bind PersistentVolume "
                    f'"{name_of(volume)}" to requested PersistentVolumeClaim due to incompatible '
                    "volumeMode.",
                )
        elif claim["spec"]["volumeName"] == name_of(volume):
            self._binder.set_volume_phase(volume, "Bound")
        elif (
            PROVISIONED_BY in annotations_of(volume)
            and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        ):
            self._release(volume)  # it was provisioned for a claim that was bound to another volume
        else:
            self._binder.unbind(volume)

    def _find_claim(
        self, volume: PersistentVolume, claim_ref: ObjectReference
    ) -> PersistentVolumeClaim | None:
        """Return the claim that a volume is bound to, None if it was deleted. Raises Status.

        No volume is released before the API has been asked: the informers may not know of a new
        claim yet.
        """
        namespace = claim_ref.get("namespace", "")
        name = claim_ref["name"]
        uid = claim_ref["uid"]
        claim = self._claims.get(namespace, name)
        if claim is None and (volume.get("status") or {}).get("phase") in ("Released", "Failed"):
            return None
        if claim is None or uid_of(claim) != uid:
            try:
                claim = self._claim_client.get(namespace, name)
            except NotFound:
                return None
        if uid_of(claim) == uid:
            return claim
        return None

    def _release(self, volume: PersistentVolume) -> None:
        """Reclaim a volume whose claim was deleted. A volume that has Failed keeps that phase, but
        is tried again."""
        if (volume.get("status") or {}).get("phase") != "Failed":
            volume = self._binder.set_volume_phase(volume, "Released")
        reclaim = decide_reclaim(volume)
        if reclaim.action == "fail":
            self._binder.set_volume_phase(
                volume, "Failed", PhaseEvent("Warning", reclaim.reason, reclaim.message)
            )
        elif reclaim.action == "recycle":
            self._recorder.event(volume, "Normal", "VolumeRecycled", "Volume recycled")
            self._remove_content(name_of(volume))
            self._binder.unbind(volume)
        elif reclaim.action == "delete" and not is_being_deleted(volume):
            self._volume_client.delete(volume)

    def _remove_content(self, name: str) -> None:
        """Remove what pods have written into a volume."""
        value = f"{CONTENT}{name}"
        if self._client.value(value) is not None:
            self._client.set_values({value: None})


class Reclaim(NamedTuple):
    """The action that a volume's reclaim policy leads to; for ``fail`` with the event's reason and
    message."""

    action: Literal["keep", "delete", "recycle", "fail"]
    reason: str = ""
    message: str = ""


def decide_reclaim(volume: PersistentVolume) -> Reclaim:
    """Decide what the reclaim policy of a released volume leads to (``reclaimVolume``)."""
    spec = volume["spec"]
    match spec.get("persistentVolumeReclaimPolicy"):
        case "Retain":
            return Reclaim("keep")
        case "Recycle" if "hostPath" in spec or "nfs" in spec:
            return Reclaim("recycle")
        case "Recycle":
            return Reclaim(
                "fail", "VolumeFailedRecycle", "No recycler plugin found for the volume!"
            )
        case "Delete":
            return _decide_deletion(volume)

    return Reclaim(
        "fail",
        "VolumeUnknownReclaimPolicy",
        "Volume has unrecognized PersistentVolumeReclaimPolicy",
    )


def _decide_deletion(volume: PersistentVolume) -> Reclaim:
    spec = volume["spec"]
    provisioner = annotations_of(volume).get(PROVISIONED_BY, "")
    is_host_path_provisioner = provisioner == "kubernetes.io/host-path"
    is_in_tree = provisioner.startswith("kubernetes.io/") and not is_host_path_provisioner
    if not is_in_tree and ("csi" in spec or (provisioner and not is_host_path_provisioner)):
        return Reclaim("keep")
    if is_in_tree or "hostPath" not in spec:
        message = (
            f'error getting deleter volume plugin for volume "{name_of(volume)}": '
            "no deletable volume plugin matched"
        )
        return Reclaim("fail", "VolumeFailedDelete", message)

    path = spec["hostPath"].get("path", "")
    if path.startswith("/tmp/") and len(path) > len("/tmp/"):
        return Reclaim("delete")
    message = f"host_path deleter only supports /tmp/.+ but received provided {path}"
    return Reclaim("fail", "VolumeFailedDelete", message)
