"""Claims that grow: one controller says who is waited for, and the simulated storage makes its volumes larger.

Upstream: ``pkg/controller/volume/expand`` and the CSI ``external-resizer``, with a driver whose volumes need nothing of
the node, so that a claim has its new size at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.meta import Object, name_of, namespace_of, uid_of
from kubepy.api.objects.volumes import CLAIMS, VOLUMES, capacity, requested_size
from kubepy.api.values.quantity import Quantity
from kubepy.controllers.persistentvolume.provisioner import DRIVER
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Informers, Key, WatchEvent
from kubepy.runtime.workqueue import WorkQueue

EXPANDER = "volume_expand"  # components in events
RESIZER = f"external-resizer {DRIVER}"


class Growth(NamedTuple):
    """A bound claim that wants more than it has, and its volume."""

    claim: Object
    volume: Object


def growth_of(claim: Object | None, informers: Informers) -> Growth | None:
    if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
        return None
    volume = informers.get(VOLUMES, "", claim["spec"].get("volumeName") or "")
    if volume is None or (volume["spec"].get("claimRef") or {}).get("uid") != uid_of(claim):
        return None
    has = Quantity.parse((claim["status"].get("capacity") or {}).get("storage", "0"))
    return Growth(claim, volume) if has < requested_size(claim) else None


class _GrowingClaims:
    """A queue of the claims that were made larger."""

    def __init__(self, context: Context) -> None:
        self.queue: WorkQueue[Key] = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {CLAIMS: self._claim_changed, VOLUMES: _only_looked_at}

    def _claim_changed(self, event: WatchEvent) -> None:
        old, new = event.old, event.new
        if new is not None and (old is None or requested_size(new) > requested_size(old)):
            self.queue.add(event.key)


def _only_looked_at(event: WatchEvent) -> None:
    """The informers keep what somebody watches."""


class ExpandController(_GrowingClaims):
    name = "persistentvolume-expander-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._informers = context.informers
        self._recorder = Recorder(context.client, EXPANDER)

    def sync(self, key: Key) -> None:
        """No volume plugin of the controller manager's own is left to do it."""
        growth = growth_of(self._informers.get(*key), self._informers)
        if growth is not None:
            level = "Normal" if "csi" in growth.volume["spec"] else "Warning"
            self._recorder.event(growth.claim, level, "ExternalExpanding",
                                 "waiting for an external controller to expand this PVC")


class SimulatedResizer(_GrowingClaims):
    name = RESIZER

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, RESIZER)

    def sync(self, key: Key) -> None:
        growth = growth_of(self._informers.get(*key), self._informers)
        if growth is None or (growth.volume["spec"].get("csi") or {}).get("driver") != DRIVER:
            return
        claim, volume = growth
        self._recorder.event(claim, "Normal", "Resizing", f"External resizer is resizing volume {name_of(volume)}")
        if capacity(volume) < requested_size(claim):
            self._client.update(VOLUMES, {**volume, "spec": {**volume["spec"], "capacity": wanted(claim)}})
        status = {**claim["status"], "allocatedResources": wanted(claim), "capacity": wanted(claim)}
        self._client.update(CLAIMS, {**claim, "status": status}, namespace=namespace_of(claim), subresource="status")
        self._recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")


def wanted(claim: Object) -> Object:
    return {"storage": claim["spec"]["resources"]["requests"]["storage"]}
