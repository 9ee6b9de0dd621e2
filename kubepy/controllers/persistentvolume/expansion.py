"""Volume expansion: a controller records that a claim waits, and the simulated storage makes its
volumes larger.

Upstream: ``pkg/controller/volume/expand`` and the CSI ``external-resizer``, with a driver whose
volumes need no expansion on the node, so that a claim has its new size at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import name_of, uid_of
from kubepy.api.objects.volumes import capacity, requested_size
from kubepy.api.values.quantity import Quantity
from kubepy.controllers.persistentvolume.provisioner import DRIVER
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    Informers,
    ResourceClient,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent
from kubepy.runtime.workqueue import WorkQueue

if TYPE_CHECKING:
    from kubepy.api.typed import (
        PersistentVolume,
        PersistentVolumeClaim,
        PersistentVolumeClaimStatus,
    )

EXPANDER = "volume_expand"  # components in events
RESIZER = f"external-resizer {DRIVER}"


class Expansion(NamedTuple):
    """A bound claim that requests more than its capacity, and its volume."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


def expansion_of(key: Key, informers: Informers) -> Expansion | None:
    """Return the claim of this key and its volume when the volume must grow, or None."""
    claim = informers.lister(PERSISTENT_VOLUME_CLAIMS).get(key.namespace, key.name)
    if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
        return None
    volume = informers.lister(PERSISTENT_VOLUMES).get("", claim["spec"].get("volumeName") or "")
    if volume is None or (volume["spec"].get("claimRef") or {}).get("uid") != uid_of(claim):
        return None
    current = Quantity.parse((claim["status"].get("capacity") or {}).get("storage", "0"))
    if current < requested_size(claim):
        return Expansion(claim, volume)
    return None


class _ExpandedClaims:
    """The queue and handlers of both controllers: claims whose request grows."""

    def __init__(self, context: Context) -> None:
        self.queue: WorkQueue[Key] = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {
            PERSISTENT_VOLUME_CLAIMS: self._claim_changed,
            PERSISTENT_VOLUMES: lambda event: None,
        }  # so that informers hold them

    def _claim_changed(self, event: WatchEvent) -> None:
        old = event.old
        new = event.new
        if new is not None and (old is None or requested_size(new) > requested_size(old)):
            self.queue.add(event.key)


class ExpandController(_ExpandedClaims):
    """Records which claims wait for an external resizer."""

    name = "persistentvolume-expander-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._informers = context.informers
        self._recorder = Recorder(context.client, EXPANDER)

    def sync(self, key: Key) -> None:
        """Record an event: no in-tree volume plugin is left that could expand the volume."""
        expansion = expansion_of(key, self._informers)
        if expansion is not None:
            level = "Normal" if "csi" in expansion.volume["spec"] else "Warning"
            self._recorder.event(
                expansion.claim,
                level,
                "ExternalExpanding",
                "waiting for an external controller to expand this PVC",
            )


class SimulatedResizer(_ExpandedClaims):
    """Expands the volumes of the simulated provisioner."""

    name = RESIZER

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._claim_client = ResourceClient(context.client, PERSISTENT_VOLUME_CLAIMS)
        self._volume_client = ResourceClient(context.client, PERSISTENT_VOLUMES)
        self._informers = context.informers
        self._recorder = Recorder(context.client, RESIZER)

    def sync(self, key: Key) -> None:
        expansion = expansion_of(key, self._informers)
        if expansion is None or (expansion.volume["spec"].get("csi") or {}).get("driver") != DRIVER:
            return
        claim, volume = expansion
        self._recorder.event(
            claim, "Normal", "Resizing", f"External resizer is resizing volume {name_of(volume)}"
        )
        requested = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        if capacity(volume) < requested_size(claim):
            self._volume_client.update(
                {**volume, "spec": {**volume["spec"], "capacity": requested}}
            )

        status: PersistentVolumeClaimStatus = {
            **claim["status"],
            "allocatedResources": requested,
            "capacity": requested,
        }
        self._claim_client.update_status(claim, status)
        self._recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")
