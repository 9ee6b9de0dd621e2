"""What becomes of a volume (``syncVolume`` in ``pv_controller.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import Object, annotations_of, is_being_deleted, name_of, uid_of
from kubepy.api.objects.volumes import CLAIMS, PROVISIONED_BY, VOLUMES, is_bound_to, modes_match
from kubepy.controllers.persistentvolume import reclaim
from kubepy.controllers.persistentvolume.binder import COMPONENT, Binder, Said
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent


class VolumeController:
    """Its turn comes before that of the claims, which look for volumes that are known to be available."""

    name = "persistentvolume-binder-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, COMPONENT)
        self._binder = Binder(context.client, self._recorder)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {VOLUMES: self._volume_changed, CLAIMS: self._claim_changed}

    def _volume_changed(self, event: WatchEvent) -> None:
        if event.new is not None:
            self.queue.add(event.key)

    def _claim_changed(self, event: WatchEvent) -> None:
        """The volume that a claim names, or named, may be its own no longer."""
        names = {claim["spec"].get("volumeName") for claim in (event.old, event.new) if claim is not None}
        if event.new is None and event.old is not None:
            names |= {name_of(one) for one in self._informers.list(VOLUMES) if is_bound_to(one, event.old)}
        for name in sorted(name for name in names if name):
            self.queue.add(Key(VOLUMES, "", name))

    # --- sync

    def sync(self, key: Key) -> None:
        volume = self._informers.get(*key)
        if volume is None:
            return
        wanted = volume["spec"].get("claimRef")
        if not wanted or not wanted.get("uid"):
            self._binder.set_volume_phase(volume, "Available")
            return
        claim = self._informers.get(CLAIMS, wanted.get("namespace", ""), wanted["name"])
        if claim is None or uid_of(claim) != wanted["uid"]:
            self._release(volume)
        elif not claim["spec"].get("volumeName"):
            self._refuse_other_mode(volume, claim)
        elif claim["spec"]["volumeName"] == name_of(volume):
            self._binder.set_volume_phase(volume, "Bound")
        elif _is_provisioned(volume) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._release(volume)  # it was made for a claim that found another
        else:
            self._binder.unbind(volume)

    def _refuse_other_mode(self, volume: Object, claim: Object) -> None:
        """The claim's own sync completes a binding, but not that of a volume of the other mode."""
        if modes_match(claim, volume):
            return
        self._recorder.event(volume, "Warning", "VolumeMismatch", "Cannot bind PersistentVolume to requested "
                             f'PersistentVolumeClaim "{name_of(claim)}" due to incompatible volumeMode.')
        self._recorder.event(claim, "Warning", "VolumeMismatch", f'Cannot bind PersistentVolume "{name_of(volume)}" to '
                             "requested PersistentVolumeClaim due to incompatible volumeMode.")

    def _release(self, volume: Object) -> None:
        """A volume that has Failed stays so for everybody to see, but is tried again."""
        if (volume.get("status") or {}).get("phase") != "Failed":
            volume = self._binder.set_volume_phase(volume, "Released")
        todo = reclaim.decide(volume)
        if todo.action == "fail":
            self._binder.set_volume_phase(volume, "Failed", Said("Warning", todo.reason, todo.message))
        elif todo.action == "recycle":
            self._recorder.event(volume, "Normal", "VolumeRecycled", "Volume recycled")
            self._binder.unbind(volume)
        elif todo.action == "delete" and not is_being_deleted(volume):
            self._client.delete(VOLUMES, name_of(volume))


def _is_provisioned(volume: Object) -> bool:
    return PROVISIONED_BY in annotations_of(volume)
