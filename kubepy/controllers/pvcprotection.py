"""Keeps a claim that is being deleted until no scheduled pod uses it (``pkg/controller/volume/pvcprotection``).

Admission gives every claim the finalizer, and here it is given back to one that lost it; from a claim that is being
deleted it is taken off. A pod without a node does not count: no kubelet starts a pod whose claim is being deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.meta import (
    Object,
    has_finalizer,
    is_being_deleted,
    name_of,
    with_finalizer,
    without_finalizer,
)
from kubepy.api.objects.pods import node_name
from kubepy.api.objects.volumes import CLAIMS, not_made_for, uses_of
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

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
        """A pod that is gone lets go of its claims, and one that was shut down of those made for it."""
        pod = event.new or event.old
        if pod is None or (event.new is not None and not is_shut_down(pod)):
            return
        for use in uses_of(pod):
            claim = self._informers.get(CLAIMS, event.key.namespace, use.claim)
            if claim is not None and is_candidate(claim):
                self.queue.add(Key(CLAIMS, event.key.namespace, use.claim))

    def sync(self, key: Key) -> None:
        claim = self._informers.get(*key)
        if claim is None or not is_candidate(claim):
            return
        if not is_being_deleted(claim):
            changed = with_finalizer(claim, FINALIZER)
        elif any(is_in_use(claim, pod) for pod in self._informers.list("pods", key.namespace)):
            return
        else:
            changed = without_finalizer(claim, FINALIZER)
        self._client.update(CLAIMS, changed, namespace=key.namespace)


def is_candidate(claim: Object) -> bool:
    """Whether the finalizer may have to go, or has to come back."""
    return is_being_deleted(claim) == has_finalizer(claim, FINALIZER)


def is_in_use(claim: Object, pod: Mapping[str, Any]) -> bool:
    """Whether a scheduled pod of the claim's namespace still needs it (``podUsesPVC``)."""
    if not node_name(pod):
        return False
    return any(use.claim == name_of(claim) and (not use.ephemeral or _needs_its_own(pod, claim))
               for use in uses_of(pod))


def _needs_its_own(pod: Mapping[str, Any], claim: Object) -> bool:
    return not is_shut_down(pod) and not not_made_for(claim, pod)


def is_shut_down(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet is done with a pod, which only finalizers hold any more (``podIsShutDown``)."""
    metadata = pod["metadata"]
    return bool(metadata.get("deletionTimestamp")) and metadata.get("deletionGracePeriodSeconds") == 0
