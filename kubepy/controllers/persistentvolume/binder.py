"""Writing both sides of a binding, their phases and what they report (``bind``, ``unbindVolume``, ``update…Phase``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, name_of, namespace_of
from kubepy.api.objects.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, CLAIMS, VOLUMES, capacity, with_claim
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.client import Client
from kubepy.runtime.events import Recorder

COMPONENT = "persistentvolume-controller"  # in events
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"


class Said(NamedTuple):
    """An event that goes with a change of phase."""

    type: str
    reason: str
    message: str


class Binder:
    """All writes of the controller. Nothing is written that is so already; everything raises Status."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    # --- binding

    def bind(self, volume: Object, claim: Object) -> None:
        """The volume first: what comes between is mended from it."""
        bound = with_claim(volume, claim)
        if bound is not volume:
            bound = self._client.update(VOLUMES, bound)
        self.set_volume_phase(bound, "Bound")
        self.set_claim_phase(self._bind_claim(claim, bound), "Bound", bound)

    def _bind_claim(self, claim: Object, volume: Object) -> Object:
        spec, annotations = claim["spec"], dict(annotations_of(claim))
        if spec.get("volumeName") != name_of(volume):
            spec = {**spec, "volumeName": name_of(volume)}
            annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
        annotations.setdefault(BIND_COMPLETED, "yes")
        if spec is claim["spec"] and annotations == annotations_of(claim):
            return claim
        return self.update_claim({**claim, "spec": spec}, annotations)

    def unbind(self, volume: Object) -> None:
        """Take back a binding that came to nothing; a volume that its maker reserved stays reserved."""
        spec, annotations = volume["spec"], dict(annotations_of(volume))
        if annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
            spec = {key: value for key, value in spec.items() if key != "claimRef"}
        else:
            spec = {**spec, "claimRef": {key: value for key, value in spec["claimRef"].items() if key != "uid"}}
        changed = {**volume, "spec": spec, "metadata": with_annotations(volume, annotations)}
        self.set_volume_phase(self._client.update(VOLUMES, changed), "Available")

    def update_claim(self, claim: Object, annotations: dict[str, str]) -> Object:
        changed = {**claim, "metadata": with_annotations(claim, annotations)}
        return self._client.update(CLAIMS, changed, namespace=namespace_of(claim))

    # --- phases

    def set_volume_phase(self, volume: Object, phase: str, said: Said | None = None) -> Object:
        """With ``said`` the volume's status bears the message, and an event tells of the change."""
        status = volume.get("status") or {}
        if status.get("phase") == phase:
            return volume
        status = {key: value for key, value in status.items() if key != "message"}
        status |= {"phase": phase, "lastPhaseTransitionTime": self._client.clock.timestamp()}
        if said is not None:
            status["message"] = said.message
        updated = self._client.update(VOLUMES, {**volume, "status": status}, subresource="status")
        self._say(updated, said)
        return updated

    def set_claim_phase(self, claim: Object, phase: str, volume: Object | None = None,
                        said: Said | None = None) -> Object:
        before = claim.get("status") or {}
        if said is not None and before.get("phase") == phase:
            return claim
        status = claim_status(before, phase, volume)
        if status == before:
            return claim
        updated = self._client.update(CLAIMS, {**claim, "status": status}, namespace=namespace_of(claim),
                                      subresource="status")
        self._say(updated, said)
        return updated

    def _say(self, obj: Object, said: Said | None) -> None:
        if said is not None:
            self._recorder.event(obj, *said)


def claim_status(before: Object, phase: str, volume: Object | None) -> Object:
    """What a claim reports in a phase, bound to a volume or to none (``updateClaimStatus``)."""
    status: dict[str, Any] = {**before, "phase": phase}
    if volume is None:
        for field in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
            status.pop(field, None)
        return status
    spec = volume["spec"]
    status["accessModes"] = spec.get("accessModes") or []
    if before.get("phase") == phase:  # what a bound claim reports may differ from its volume for good reasons
        return status
    there = (before.get("capacity") or {}).get("storage")
    if PRE_RESIZE_CAPACITY in annotations_of(volume):
        status["capacity"] = {"storage": annotations_of(volume)[PRE_RESIZE_CAPACITY]}
    elif there is None or Quantity.parse(there) != capacity(volume):
        status["capacity"] = spec["capacity"]
    if before.get("phase") == "Pending" and spec.get("volumeAttributesClassName") is not None:
        status["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"]
    return status


def with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    """The object's metadata with these annotations (none at all: without the field)."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**metadata, "annotations": annotations} if annotations else metadata
