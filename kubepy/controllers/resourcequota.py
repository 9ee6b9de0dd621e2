"""Keeps in the status of each ResourceQuota what there is of what it limits (``pkg/controller/resourcequota``).

The API server charges a quota for what is created; here is added up anew what is used when a quota changes, or when
something it is about has gone: an object, or what a pod that has ended asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from kubepy.api.errors import NotFound
from kubepy.api.objects import quotas
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

QUOTAS = "resourcequotas"


class ResourceQuotaController:
    name = "resourcequota-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._scheme = context.scheme
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {QUOTAS: self._quota_changed, EVERY_RESOURCE: self._object_changed}

    def _quota_changed(self, event: WatchEvent) -> None:
        new, old = event.new, event.old
        if new is not None and (old is None or new["spec"] != old["spec"] or not new.get("status")):
            self.queue.add(event.key)

    def _object_changed(self, event: WatchEvent) -> None:
        """What has gone frees what it used (``replenishQuota``)."""
        if not event.key.namespace or not frees_usage(event):
            return
        evaluator = quotas.evaluator_for(event.key.resource)
        for quota in self._informers.list(QUOTAS, event.key.namespace):
            if any(evaluator.measures(name) for name in quota["spec"].get("hard") or ()):
                self.queue.add(Key(QUOTAS, event.key.namespace, quota["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        quota = self._informers.get(*key)
        if quota is None:
            return
        served = [one.key for one in self._scheme if one.namespaced]
        status = quotas.observed_status(quota, served, lambda one: self._informers.list(one, key.namespace),
                                        self._clock.now())
        if status == quota.get("status"):
            return
        with suppress(NotFound):
            self._client.update(QUOTAS, {**quota, "status": status}, namespace=key.namespace, subresource="status")


def frees_usage(event: WatchEvent) -> bool:
    if event.new is None:
        return True
    return (event.key.resource == "pods" and event.old is not None
            and is_pod_terminal(event.new) and not is_pod_terminal(event.old))
