"""Creates the claims of pods' ephemeral volumes (``pkg/controller/volume/ephemeral``).

A claim is owned by the pod, so that the garbage collector deletes it with the pod; one that was deleted is created
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.errors import Status
from kubepy.api.meta import Object, is_being_deleted, new_controller_ref
from kubepy.api.objects.volumes import CLAIMS, ephemeral_claim_name, not_made_for, uses_of
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

COMPONENT = "ephemeral_volume"  # in events


class VolumeError(Exception):
    """The claim of a pod's ephemeral volume could not be created, or is another pod's."""


class EphemeralVolumeController:
    """Reconciles pods with ephemeral volumes."""

    name = "ephemeral-volume-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, COMPONENT)

    def handlers(self) -> Mapping[str, Handler]:
        return {"pods": self._pod_changed, CLAIMS: self._claim_changed}

    def _pod_changed(self, event: WatchEvent) -> None:
        """Reconcile a new pod with ephemeral volumes; the volumes of a pod never change."""
        if event.old is None and event.new is not None and any(ephemeral_volumes(event.new)):
            self.queue.add(event.key)

    def _claim_changed(self, event: WatchEvent) -> None:
        """Reconcile the pod of a deleted claim, with whose name the claim's name begins."""
        _, namespace, name = event.key
        for end in (index for index, letter in enumerate(name) if letter == "-" and event.new is None):
            pod = self._informers.get("pods", namespace, name[:end])
            if pod is not None and any(use.ephemeral and use.claim == name for use in uses_of(pod)):
                self.queue.add(Key("pods", namespace, name[:end]))

    def sync(self, key: Key) -> None:
        """Create the missing claims of a pod's ephemeral volumes. Raises VolumeError."""
        pod = self._informers.get(*key)
        if pod is None or is_being_deleted(pod):
            return
        for volume in ephemeral_volumes(pod):
            name = ephemeral_claim_name(pod, volume)
            claim = self._informers.get(CLAIMS, key.namespace, name)
            error = not_made_for(claim, pod) if claim is not None else ""
            if claim is None:
                try:
                    self._client.create(CLAIMS, new_claim(pod, volume), namespace=key.namespace)
                except Status as status:
                    error = f"create PVC {name}: {status}"
            if error:
                self._recorder.event(pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {error}")
                raise VolumeError(error)


def ephemeral_volumes(pod: Mapping[str, Any]) -> list[Object]:
    return [volume for volume in pod["spec"].get("volumes") or () if "ephemeral" in volume]


def new_claim(pod: Object, volume: Object) -> Object:
    """Return the claim of an ephemeral volume, owned by the pod."""
    template = volume["ephemeral"]["volumeClaimTemplate"]
    template_metadata = template.get("metadata") or {}
    metadata = {"name": ephemeral_claim_name(pod, volume), "ownerReferences": [new_controller_ref(pod)],
                **{key: template_metadata[key] for key in ("annotations", "labels") if template_metadata.get(key)}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
