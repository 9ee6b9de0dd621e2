"""Keeps in the status of each ResourceQuota the usage of the resources it limits (``pkg/controller/resourcequota``).

The API server charges a quota for objects that are created. This controller calculates the usage again when a quota
changes, and when usage was freed: an object was deleted, or a pod has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, name_of
from kubepy.api.objects import quotas
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.runtime.informers import PODS, RESOURCE_QUOTAS, ResourceClient
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import ResourceQuota


class ResourceQuotaController:
    """Reconciles ResourceQuotas."""

    name = "resourcequota-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._quota_client = ResourceClient(context.client, RESOURCE_QUOTAS)
        self._quotas = context.informers.lister(RESOURCE_QUOTAS)
        self._informers = context.informers
        self._clock = context.clock
        self._scheme = context.scheme
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE_QUOTAS: self._quota_changed, EVERY_RESOURCE: self._object_changed}

    def _quota_changed(self, event: WatchEvent) -> None:
        old, new = cast("ResourceQuota | None", event.old), cast("ResourceQuota | None", event.new)
        if new is not None and (old is None or new["spec"] != old["spec"] or not new.get("status")):
            self.queue.add(event.key)

    def _object_changed(self, event: WatchEvent) -> None:
        """Reconcile the quotas of which usage was freed (``replenishQuota``)."""
        if not event.key.namespace or not frees_usage(event):
            return
        evaluator = quotas.evaluator_for(event.key.resource)
        for quota in self._quotas.list(event.key.namespace):
            if any(evaluator.measures(name) for name in quota["spec"].get("hard") or ()):
                self.queue.add(Key(RESOURCE_QUOTAS, event.key.namespace, name_of(quota)))

    def sync(self, key: Key) -> None:
        quota = self._quotas.get(key.namespace, key.name)
        if quota is None:
            return
        served = [resource.key for resource in self._scheme if resource.namespaced]
        status = quotas.observed_status(quota, served, lambda resource: self._objects(resource, key.namespace),
                                        self._clock.now())
        if status == quota.get("status"):
            return
        with suppress(NotFound):
            self._quota_client.update_status(quota, status)

    def _objects(self, resource: str, namespace: str) -> list[Object]:
        return [*self._informers.list(resource, namespace), *self._client.list_implied(resource, namespace)]


def frees_usage(event: WatchEvent) -> bool:
    """Tell whether an object was deleted, or a pod has ended."""
    if event.new is None:
        return True
    return (event.key.resource == PODS and event.old is not None
            and is_pod_terminal(event.new) and not is_pod_terminal(event.old))
