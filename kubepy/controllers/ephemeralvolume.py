"""Creates the claims of pods' ephemeral volumes (``pkg/controller/volume/ephemeral``).

A claim is owned by the pod, so that the garbage collector deletes it with the pod; one that was
deleted is created again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from kubepy.api.errors import Status
from kubepy.api.meta import is_being_deleted, new_controller_ref
from kubepy.api.objects.volumes import ephemeral_claim_name, not_made_for, uses_of
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PERSISTENT_VOLUME_CLAIMS, PODS, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, UnfinishedSync, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import ObjectMeta, PersistentVolumeClaim, Pod, Volume

COMPONENT = "ephemeral_volume"  # in events


class VolumeError(UnfinishedSync):
    """The claim of a pod's ephemeral volume could not be created, or is another pod's."""


class EphemeralVolumeController:
    """Reconciles pods with ephemeral volumes."""

    name = "ephemeral-volume-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._claim_client = ResourceClient(context.client, PERSISTENT_VOLUME_CLAIMS)
        self._claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._pods = context.informers.lister(PODS)
        self._recorder = Recorder(context.client, COMPONENT)

    def handlers(self) -> Mapping[str, Handler]:
        return {PODS: self._pod_changed, PERSISTENT_VOLUME_CLAIMS: self._claim_changed}

    def _pod_changed(self, event: WatchEvent) -> None:
        """Reconcile a new pod with ephemeral volumes; the volumes of a pod never change."""
        pod = cast("Pod | None", event.new)
        if event.old is None and pod is not None and ephemeral_volumes(pod):
            self.queue.add(event.key)

    def _claim_changed(self, event: WatchEvent) -> None:
        """Reconcile the pod of a deleted claim, with whose name the claim's name begins."""
        if event.new is not None:
            return
        _, namespace, name = event.key
        for end, letter in enumerate(name):
            if letter != "-":
                continue
            pod = self._pods.get(namespace, name[:end])
            if pod is None:
                continue
            if any(use.ephemeral and use.claim == name for use in uses_of(pod)):
                self.queue.add(Key(PODS, namespace, name[:end]))

    def sync(self, key: Key) -> None:
        """Create the missing claims of a pod's ephemeral volumes. Raises VolumeError."""
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or is_being_deleted(pod):
            return
        for volume in ephemeral_volumes(pod):
            name = ephemeral_claim_name(pod, volume)
            claim = self._claims.get(key.namespace, name)
            error = not_made_for(claim, pod) if claim is not None else ""
            if claim is None:
                try:
                    self._claim_client.create(new_claim(pod, volume), key.namespace)
                except Status as status:
                    error = f"create PVC {name}: {status}"
            if error:
                self._recorder.event(
                    pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {error}"
                )
                raise VolumeError(error)


def ephemeral_volumes(pod: Pod) -> list[Volume]:
    volumes = pod["spec"].get("volumes") or ()
    return [volume for volume in volumes if "ephemeral" in volume]


def new_claim(pod: Pod, volume: Volume) -> PersistentVolumeClaim:
    """Return the claim of an ephemeral volume, owned by the pod."""
    template = volume["ephemeral"]["volumeClaimTemplate"]
    template_metadata = template.get("metadata") or {}
    metadata: ObjectMeta = {
        "name": ephemeral_claim_name(pod, volume),
        "ownerReferences": [new_controller_ref(pod)],
    }
    annotations = template_metadata.get("annotations")
    if annotations:
        metadata["annotations"] = annotations
    labels = template_metadata.get("labels")
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template["spec"],
    }
