"""Keeps a volume that is being deleted as long as a claim is bound to it (``pkg/controller/volume/pvprotection``).

Admission gives every volume the finalizer, and here it is given back to one that lost it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import Object, has_finalizer, is_being_deleted, with_finalizer, without_finalizer
from kubepy.api.objects.volumes import VOLUMES
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

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
        if event.new is not None and (may_go(event.new) or is_unprotected(event.new)):
            self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        volume = self._informers.get(*key)
        if volume is not None and may_go(volume):
            self._client.update(VOLUMES, without_finalizer(volume, FINALIZER))
        elif volume is not None and is_unprotected(volume):
            self._client.update(VOLUMES, with_finalizer(volume, FINALIZER))


def may_go(volume: Object) -> bool:
    """Whether only the protection still holds a volume, and need not."""
    phase = (volume.get("status") or {}).get("phase")
    return is_being_deleted(volume) and has_finalizer(volume, FINALIZER) and phase != "Bound"


def is_unprotected(volume: Object) -> bool:
    return not is_being_deleted(volume) and not has_finalizer(volume, FINALIZER)
