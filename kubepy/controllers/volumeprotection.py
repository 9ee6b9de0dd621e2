"""Keeps claims that a pod uses, and volumes that a claim is bound to, while they are being deleted.

Upstream: ``pkg/controller/volume/{pvcprotection,pvprotection}``. Admission adds the finalizers to
every claim and volume; these controllers add them again to an object that lost its finalizer, and
remove them when the object may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import (
    has_finalizer,
    is_being_deleted,
    name_of,
    namespace_of,
    with_finalizer,
    without_finalizer,
)
from kubepy.api.objects.pods import node_name
from kubepy.api.objects.volumes import not_made_for, uses_of
from kubepy.runtime.informers import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ResourceClient,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, enqueue_object

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolume, PersistentVolumeClaim, Pod

PVC_FINALIZER = "kubernetes.io/pvc-protection"
PV_FINALIZER = "kubernetes.io/pv-protection"


class PVCProtectionController:
    """Keeps a claim that is being deleted until no scheduled pod uses it.

    A pod without a node does not count: no kubelet starts a pod whose claim is being deleted.
    """

    name = "pvc-protection-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._claim_client = ResourceClient(context.client, PERSISTENT_VOLUME_CLAIMS)
        self._pod_client = ResourceClient(context.client, PODS)
        self._claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._pods = context.informers.lister(PODS)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            PERSISTENT_VOLUME_CLAIMS: enqueue_object(self.queue, may_change_finalizer),
            PODS: self._pod_changed,
        }

    def _pod_changed(self, event: WatchEvent) -> None:
        """Reconcile the claims of a pod that was deleted or shut down."""
        pod = cast("Pod | None", event.new or event.old)
        if pod is None:
            return
        if event.new is not None and not is_shut_down(pod):
            return
        for use in uses_of(pod):
            claim = self._claims.get(event.key.namespace, use.claim)
            if claim is not None and may_change_finalizer(claim):
                self.queue.add(Key(PERSISTENT_VOLUME_CLAIMS, event.key.namespace, use.claim))

    def sync(self, key: Key) -> None:
        claim = self._claims.get(key.namespace, key.name)
        if claim is None or not may_change_finalizer(claim):
            return
        if not is_being_deleted(claim):
            changed = with_finalizer(claim, PVC_FINALIZER)
        elif self._has_user(claim):
            return
        else:
            changed = without_finalizer(claim, PVC_FINALIZER)
        self._claim_client.update(changed)

    def _has_user(self, claim: PersistentVolumeClaim) -> bool:
        """Tell whether a pod uses the claim. Raises Status.

        No claim goes before the API has been asked: the informers may not know of a new pod yet.
        """
        namespace = namespace_of(claim)
        if any(is_in_use(claim, pod) for pod in self._pods.list(namespace)):
            return True
        return any(is_in_use(claim, pod) for pod in self._pod_client.list(namespace))


def may_change_finalizer(claim: PersistentVolumeClaim) -> bool:
    """Tell whether the finalizer may be removed, or must be added."""
    return is_being_deleted(claim) == has_finalizer(claim, PVC_FINALIZER)


def is_in_use(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Tell whether a scheduled pod of the claim's namespace still needs it (``podUsesPVC``)."""

    def needs_own_claim() -> bool:
        if is_shut_down(pod):
            return False
        return not not_made_for(claim, pod)

    uses = (use for use in uses_of(pod) if use.claim == name_of(claim))
    if not node_name(pod):
        return False
    return any(not use.ephemeral or needs_own_claim() for use in uses)


def is_shut_down(pod: Pod) -> bool:
    """Tell whether the kubelet is done with a pod, which only finalizers keep
    (``podIsShutDown``)."""
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return False
    return metadata.get("deletionGracePeriodSeconds") == 0


class PVProtectionController:
    """Keeps a volume that is being deleted as long as a claim is bound to it."""

    name = "pv-protection-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._volume_client = ResourceClient(context.client, PERSISTENT_VOLUMES)
        self._volumes = context.informers.lister(PERSISTENT_VOLUMES)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            PERSISTENT_VOLUMES: enqueue_object(
                self.queue, lambda volume: may_be_deleted(volume) or is_unprotected(volume)
            )
        }

    def sync(self, key: Key) -> None:
        volume = self._volumes.get("", key.name)
        if volume is not None and may_be_deleted(volume):
            self._volume_client.update(without_finalizer(volume, PV_FINALIZER))
        elif volume is not None and is_unprotected(volume):
            self._volume_client.update(with_finalizer(volume, PV_FINALIZER))


def may_be_deleted(volume: PersistentVolume) -> bool:
    """Tell whether a volume that is being deleted is kept by the protection alone, and is not
    bound."""
    phase = (volume.get("status") or {}).get("phase")
    if not is_being_deleted(volume):
        return False
    if not has_finalizer(volume, PV_FINALIZER):
        return False
    return phase != "Bound"


def is_unprotected(volume: PersistentVolume) -> bool:
    if is_being_deleted(volume):
        return False
    return not has_finalizer(volume, PV_FINALIZER)
