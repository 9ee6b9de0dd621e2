"""Writes both sides of a binding, their phases and statuses (``bind``, ``unbindVolume``, ``update…Phase``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, name_of, namespace_of
from kubepy.api.objects.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, CLAIMS, VOLUMES, capacity, with_claim
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.client import Client
from kubepy.runtime.events import Recorder

COMPONENT = "persistentvolume-controller"  # in events
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"


class PhaseEvent(NamedTuple):
    """The event of a change of phase."""

    type: str
    reason: str
    message: str


class Binder:
    """Writes claims and volumes for the controllers, but not what they are already; every method raises Status."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    # --- binding

    def bind(self, volume: Object, claim: Object) -> None:
        """Bind the volume first: when the second write fails, the claim is bound later by what the volume says."""
        bound = with_claim(volume, claim)
        if bound is not volume:
            bound = self._client.update(VOLUMES, bound)
        self.set_volume_phase(bound, "Bound")
        spec, annotations = claim["spec"], dict(annotations_of(claim))
        if spec.get("volumeName") != name_of(bound):
            spec = {**spec, "volumeName": name_of(bound)}
            annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
        annotations.setdefault(BIND_COMPLETED, "yes")
        if spec is not claim["spec"] or annotations != annotations_of(claim):
            claim = self.update_claim({**claim, "spec": spec}, annotations)
        self.set_claim_phase(claim, "Bound", bound)

    def unbind(self, volume: Object) -> None:
        """Undo a binding; a volume whose manifest reserves it for a claim stays reserved."""
        spec, annotations = volume["spec"], dict(annotations_of(volume))
        if annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
            spec = {key: value for key, value in spec.items() if key != "claimRef"}
        else:
            spec = {**spec, "claimRef": {key: value for key, value in spec["claimRef"].items() if key != "uid"}}
        changed = {**volume, "spec": spec, "metadata": with_annotations(volume, annotations)}
        self.set_volume_phase(self._client.update(VOLUMES, changed), "Available")

    def update_claim(self, claim: Object, annotations: dict[str, str]) -> Object:
        """Update a claim with these annotations."""
        changed = {**claim, "metadata": with_annotations(claim, annotations)}
        return self._client.update(CLAIMS, changed, namespace=namespace_of(claim))

    # --- phases

    def set_volume_phase(self, volume: Object, phase: str, event: PhaseEvent | None = None) -> Object:
        """Set the phase; ``event`` is recorded, and its message is written into the status."""
        status = volume.get("status") or {}
        if status.get("phase") == phase:
            return volume
        status = {key: value for key, value in status.items() if key != "message"}
        status |= {"phase": phase, "lastPhaseTransitionTime": self._client.clock.timestamp()}
        if event is not None:
            status["message"] = event.message
        updated = self._client.update(VOLUMES, {**volume, "status": status}, subresource="status")
        if event is not None:
            self._recorder.event(updated, *event)
        return updated

    def set_claim_phase(self, claim: Object, phase: str, volume: Object | None = None,
                        event: PhaseEvent | None = None) -> Object:
        """Set the phase of a claim, and what it reports of its volume; ``event`` is recorded."""
        before = claim.get("status") or {}
        if event is not None and before.get("phase") == phase:
            return claim
        status = claim_status(before, phase, volume)
        if status == before:
            return claim
        updated = self._client.update(CLAIMS, {**claim, "status": status}, namespace=namespace_of(claim),
                                      subresource="status")
        if event is not None:
            self._recorder.event(updated, *event)
        return updated

def claim_status(before: Object, phase: str, volume: Object | None) -> Object:
    """Return the status of a claim in a phase, bound to a volume or to none (``updateClaimStatus``)."""
    status: dict[str, Any] = {**before, "phase": phase}
    if volume is None:
        for field in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
            status.pop(field, None)
        return status
    spec = volume["spec"]
    status["accessModes"] = spec.get("accessModes") or []
    if before.get("phase") == phase:  # a bound claim may rightly report another capacity than its volume has
        return status
    reported = (before.get("capacity") or {}).get("storage")
    if PRE_RESIZE_CAPACITY in annotations_of(volume):
        status["capacity"] = {"storage": annotations_of(volume)[PRE_RESIZE_CAPACITY]}
    elif reported is None or Quantity.parse(reported) != capacity(volume):
        status["capacity"] = spec["capacity"]
    if before.get("phase") == "Pending" and spec.get("volumeAttributesClassName") is not None:
        status["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"]
    return status


def with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    """Return the object's metadata with these annotations, without the field when there are none."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**metadata, "annotations": annotations} if annotations else metadata
