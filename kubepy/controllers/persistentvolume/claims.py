"""The claim side of the binder: what happens to a claim (``syncClaim`` in ``pv_controller.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import (
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import get_condition, is_pod_terminal, node_name
from kubepy.api.objects.volumes import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of,
    default_class,
    find_volume,
    has_class,
    is_bound_to,
    mismatch,
    mounts,
    uses_of,
    waits_for_consumer,
)
from kubepy.controllers.persistentvolume.binder import COMPONENT, Binder, PhaseEvent
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, enqueue_all, enqueue_object

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

NOTHING_TO_BIND = "no persistent volumes available for this claim and no storage class is set"
FIRST_CONSUMER = "waiting for first consumer to be created before binding"
LOST_NAME = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
LOST_VOLUME = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
IN_TREE = "kubernetes.io/"
NO_PLUGIN = "no volume plugin matched name: {}"


class ClaimController:
    """Reconciles claims.

    Upstream looks at all claims every 15 seconds; here a volume that becomes available, or a class
    that changes, wakes the unbound claims.
    """

    name = "persistentvolumeclaim-binder-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informers.lister(PERSISTENT_VOLUMES)
        self._classes = context.informers.lister(STORAGE_CLASSES)
        self._pods = context.informers.lister(PODS)
        self._recorder = Recorder(context.client, COMPONENT)
        self._binder = Binder(context.client, self._recorder)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {
            PERSISTENT_VOLUME_CLAIMS: enqueue_object(self.queue),
            PERSISTENT_VOLUMES: self._volume_changed,
            STORAGE_CLASSES: self._class_changed,
            PODS: self._pod_changed,
        }

    def _volume_changed(self, event: WatchEvent) -> None:
        old = cast("PersistentVolume | None", event.old)
        new = cast("PersistentVolume | None", event.new)
        volume = new or old
        if volume is not None and (claim_ref := volume["spec"].get("claimRef")):
            self.queue.add(
                Key(
                    PERSISTENT_VOLUME_CLAIMS,
                    claim_ref.get("namespace", ""),
                    claim_ref.get("name", ""),
                )
            )
        elif new is not None and _became_available(old, new):
            enqueue_all(self.queue, PERSISTENT_VOLUME_CLAIMS, self._unbound_claims())

    def _class_changed(self, event: WatchEvent) -> None:
        if event.new is not None:
            claims = (
                claim for claim in self._unbound_claims() if class_of(claim) in ("", event.key.name)
            )
            enqueue_all(self.queue, PERSISTENT_VOLUME_CLAIMS, claims)

    def _pod_changed(self, event: WatchEvent) -> None:
        """Reconcile the claims of a pod that could not be scheduled: their events name the pods
        that they wait for."""
        old = cast("Pod | None", event.old)
        pod = cast("Pod | None", event.new)
        if (
            pod is None
            or node_name(pod)
            or not _is_unschedulable(pod)
            or (old and _is_unschedulable(old))
        ):
            return
        for use in uses_of(pod):
            claim = self._claims.get(event.key.namespace, use.claim)
            if claim is not None and _is_unbound(claim):
                self.queue.add(Key(PERSISTENT_VOLUME_CLAIMS, event.key.namespace, use.claim))

    def _unbound_claims(self) -> list[PersistentVolumeClaim]:
        return [claim for claim in self._claims.list() if _is_unbound(claim)]

    # --- sync

    def sync(self, key: Key) -> None:
        claim = self._claims.get(key.namespace, key.name)
        if claim is None:
            return
        if not _is_unbound(claim):
            self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            self._sync_naming_volume(claim)
        else:
            self._sync_unbound(claim)

    def _sync_bound(self, claim: PersistentVolumeClaim) -> None:
        """Keep a completed binding, or mark the claim Lost for good (``syncBoundClaim``)."""
        name = claim["spec"].get("volumeName")
        volume = self._volumes.get("", name) if name else None
        claim_ref = volume["spec"].get("claimRef") if volume is not None else None
        if volume is not None and (not claim_ref or claim_ref.get("uid") == uid_of(claim)):
            self._binder.bind(volume, claim)
            return
        reason = "ClaimLost" if volume is None else "ClaimMisbound"
        if volume is not None:
            message = MISBOUND
        elif name:
            message = LOST_VOLUME
        else:
            message = LOST_NAME
        self._binder.set_claim_phase(claim, "Lost", None, PhaseEvent("Warning", reason, message))

    def _sync_naming_volume(self, claim: PersistentVolumeClaim) -> None:
        """Bind a claim that names its volume to that or to none (``syncUnboundClaim``)."""
        name = claim["spec"]["volumeName"]
        volume = self._volumes.get("", name)
        if volume is None:
            self._binder.set_claim_phase(claim, "Pending")
        elif is_bound_to(volume, claim):
            self._binder.bind(volume, claim)
        elif volume["spec"].get("claimRef"):
            self._refuse(
                claim, "FailedBinding", f'volume "{name}" already bound to a different claim.'
            )
        elif reason := mismatch(volume, claim):
            self._refuse(
                claim, "VolumeMismatch", f'Cannot bind to requested volume "{name}": {reason}'
            )
        else:
            self._binder.bind(volume, claim)

    def _refuse(self, claim: PersistentVolumeClaim, reason: str, message: str) -> None:
        self._recorder.event(claim, "Warning", reason, message)
        self._binder.set_claim_phase(claim, "Pending")

    def _sync_unbound(self, claim: PersistentVolumeClaim) -> None:
        """Bind a claim to a matching volume, give it the default class, or ask for a volume
        (``syncUnboundClaim``)."""
        waits = waits_for_consumer(self._class_of(claim))
        volume = find_volume(claim, self._volumes.list(), only_reserved=waits)
        if volume is not None:
            self._binder.bind(volume, claim)
        elif not has_class(claim) and (default := default_class(self._classes.list())) is not None:
            changed: PersistentVolumeClaim = {
                **claim,
                "spec": {**claim["spec"], "storageClassName": name_of(default)},
            }
            self._binder.update_claim(changed, annotations_of(claim))
        elif waits and SELECTED_NODE not in annotations_of(claim):
            self._report_waiting(claim)
        elif class_of(claim):
            self._provision_external(claim)
        else:
            self._recorder.event(claim, "Normal", "FailedBinding", NOTHING_TO_BIND)
            self._binder.set_claim_phase(claim, "Pending")

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self._classes.get("", class_of(claim))

    def _report_waiting(self, claim: PersistentVolumeClaim) -> None:
        """Record that the claim waits for its first consumer, or for the pods that are not
        scheduled yet."""
        pods = [
            name_of(pod)
            for pod in self._pods.list(namespace_of(claim))
            if _is_unschedulable(pod)
            and not node_name(pod)
            and not is_pod_terminal(pod)
            and mounts(pod, claim)
        ]
        if pods:
            message = (
                f"waiting for pod{'s' if len(pods) > 1 else ''} {','.join(pods)} to be scheduled"
            )
            self._recorder.event(claim, "Normal", "WaitForPodScheduled", message)
        else:
            self._recorder.event(claim, "Normal", "WaitForFirstConsumer", FIRST_CONSUMER)

        self._binder.set_claim_phase(claim, "Pending")

    def _provision_external(self, claim: PersistentVolumeClaim) -> None:
        """Annotate the claim with the provisioner of its class
        (``provisionClaimOperationExternal``)."""
        storage_class = self._class_of(claim)
        provisioner = storage_class.get("provisioner", "") if storage_class is not None else ""
        if storage_class is None or provisioner.startswith(IN_TREE):
            if storage_class:
                error = NO_PLUGIN.format(provisioner)
            else:
                error = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._recorder.event(claim, "Warning", "ProvisioningFailed", error)
        elif annotations_of(claim).get(STORAGE_PROVISIONER) != provisioner:
            annotations = {
                **annotations_of(claim),
                BETA_STORAGE_PROVISIONER: provisioner,
                STORAGE_PROVISIONER: provisioner,
            }
            updated = self._binder.update_claim(claim, annotations)
            self._recorder.event(
                updated, "Normal", "ExternalProvisioning", waiting_for(provisioner)
            )


def _became_available(old: PersistentVolume | None, new: PersistentVolume) -> bool:
    """Tell whether a volume can be bound now, or to other claims than before."""
    status = new.get("status") or {}
    if status.get("phase") != "Available":
        return False
    if old is None or old["spec"] != new["spec"] or labels_of(old) != labels_of(new):
        return True
    old_status = old.get("status") or {}
    return bool(old_status.get("phase") != "Available")


def _is_unbound(claim: PersistentVolumeClaim) -> bool:
    return BIND_COMPLETED not in annotations_of(claim)


def _is_unschedulable(pod: Pod) -> bool:
    scheduled = get_condition(pod, "PodScheduled")
    if scheduled is None:
        return False
    return scheduled.get("status") == "False"


def waiting_for(provisioner: str) -> str:
    """Return the message of a claim that waits for an external provisioner."""
    return (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' "
        f"or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner "
        "is running and "
        "correctly registered."
    )
