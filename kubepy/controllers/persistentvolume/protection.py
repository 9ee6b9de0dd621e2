"""Keeps a volume that is being deleted as long as a claim is bound to it (``pkg/controller/volume/pvprotection``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.cluster.objects.meta import Object, has_finalizer, is_being_deleted
from kubepy.cluster.objects.volumes import VOLUMES
from kubepy.cluster.reconcile import Context, Handler, Key, WatchEvent

FINALIZER = "kubernetes.io/pv-protection"


class PVProtectionController:
    name = "pv-protection-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers

    def handlers(self) -> Mapping[str, Handler]:
        return {VOLUMES: self._volume_changed}

    def _volume_changed(self, event: WatchEvent) -> None:
        if event.new is not None and may_go(event.new):
            self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        volume = self._informers.get(*key)
        if volume is not None and may_go(volume):
            self._client.update(VOLUMES, without_finalizer(volume, FINALIZER))


def may_go(volume: Object) -> bool:
    """Whether only the protection still holds a volume, and need not."""
    phase = (volume.get("status") or {}).get("phase")
    return is_being_deleted(volume) and has_finalizer(volume, FINALIZER) and phase != "Bound"


def without_finalizer(obj: Object, finalizer: str) -> Object:
    kept = [one for one in obj["metadata"]["finalizers"] if one != finalizer]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": kept}}
