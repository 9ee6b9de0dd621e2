"""Keeps a claim that is being deleted until no scheduled pod uses it (``pkg/controller/volume/pvcprotection``).

Every claim is created with the finalizer; here it is taken off. A pod without a node does not count: no kubelet starts
a pod whose claim is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubepy.cluster.objects.meta import Object, has_finalizer, is_being_deleted, is_controlled_by, name_of, namespace_of
from kubepy.cluster.objects.pods import node_name
from kubepy.cluster.reconcile import Context, Handler, Key, WatchEvent

CLAIMS = "persistentvolumeclaims"
FINALIZER = "kubernetes.io/pvc-protection"


class PVCProtectionController:
    name = "pvc-protection-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers

    def handlers(self) -> Mapping[str, Handler]:
        return {CLAIMS: self._claim_changed, "pods": self._pod_changed}

    def _claim_changed(self, event: WatchEvent) -> None:
        if event.new is not None and is_candidate(event.new):
            self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        """A pod that is gone lets go of its claims."""
        if event.new is not None or event.old is None:
            return
        for name in claim_names(event.old):
            claim = self._informers.get(CLAIMS, event.key.namespace, name)
            if claim is not None and is_candidate(claim):
                self.queue.add(Key(CLAIMS, event.key.namespace, name))

    def sync(self, key: Key) -> None:
        claim = self._informers.get(*key)
        if claim is None or not is_candidate(claim):
            return
        if any(uses(pod, claim) for pod in self._informers.list("pods", key.namespace)):
            return
        finalizers = [one for one in claim["metadata"]["finalizers"] if one != FINALIZER]
        metadata = {**claim["metadata"], "finalizers": finalizers}
        self._client.update(CLAIMS, {**claim, "metadata": metadata}, namespace=key.namespace)


def is_candidate(claim: Object) -> bool:
    return is_being_deleted(claim) and has_finalizer(claim, FINALIZER)


def uses(pod: Mapping[str, Any], claim: Object) -> bool:
    """Whether a scheduled pod mounts the claim; one made for another pod under the same name is not its own."""
    if not node_name(pod) or namespace_of(pod) != namespace_of(claim):
        return False
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name_of(claim):
            return True
        if "ephemeral" in volume and _ephemeral_name(pod, volume) == name_of(claim) and is_controlled_by(claim, pod):
            return True
    return False


def claim_names(pod: Mapping[str, Any]) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield source["claimName"]
        elif "ephemeral" in volume:
            yield _ephemeral_name(pod, volume)


def _ephemeral_name(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> str:
    return f"{name_of(pod)}-{volume['name']}"
