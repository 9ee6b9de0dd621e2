"""Keeps in the status of each ResourceQuota the usage of the resources it limits
(``pkg/controller/resourcequota``).

The API server charges a quota for objects that are created. This controller calculates the usage
again when a quota changes, and when usage may have been freed: an object was deleted, a pod has
ended, or an update changed what the API server does not charge for. What somebody writes into the
status lasts for five minutes, after which upstream calculates all quotas again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from kubepy.api.clock import later
from kubepy.api.errors import NotFound
from kubepy.api.meta import AnyObject, Object, name_of, namespace_of
from kubepy.api.objects import quotas
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.requests import handwritten
from kubepy.apiserver.requests.deletion import CRDS
from kubepy.runtime.informers import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    ResourceClient,
)
from kubepy.runtime.ownwrites import OwnWrites
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import ResourceQuota


RESYNC_SECONDS = 300.0  # the default of --resource-quota-sync-period


class ResourceQuotaController:
    """Reconciles ResourceQuotas.

    Where its watch events are late (docs/faults.md) it may write a usage without an object that was
    charged already, as upstream's may. It calculates all quotas again after RESYNC_SECONDS then, as
    upstream's always does.
    """

    name = "resourcequota-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._quota_client = ResourceClient(context.client, RESOURCE_QUOTAS)
        self._quotas = context.informers.lister(RESOURCE_QUOTAS)
        self._informers = context.informers
        self._clock = context.clock
        self._scheme = context.scheme
        faults = context.client.settings.faults
        self._needs_resync = faults is not None and faults.late_events is not None
        self._own_writes = OwnWrites(context.informers)
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {
            RESOURCE_QUOTAS: self._quota_changed,
            CRDS: self._definition_changed,
            EVERY_RESOURCE: self._object_changed,
        }

    def _definition_changed(self, event: WatchEvent) -> None:
        """Reconcile the quotas that limit the objects of a definition, which may be served from now
        on: usage that is not known refuses every creation. Upstream calculates all quotas every
        five minutes for that."""
        if event.new is not None:
            self._enqueue_measuring(event.key.name, self._quotas.list(None))

    def _quota_changed(self, event: WatchEvent) -> None:
        old = cast("ResourceQuota | None", event.old)
        new = cast("ResourceQuota | None", event.new)
        if new is None:
            return
        if old is None or new["spec"] != old["spec"] or not new.get("status"):
            self.queue.add(event.key)
        elif not self._own_writes.observe(event) and is_overwritten(old, new):
            self.queue.add_after(event.key, RESYNC_SECONDS, repeating=True)

    def _object_changed(self, event: WatchEvent) -> None:
        """Reconcile the quotas of which usage was freed (``replenishQuota``)."""
        if not event.key.namespace:
            return
        in_namespace = self._quotas.list(event.key.namespace)
        if not in_namespace:
            return
        if event.key.resource == PODS:
            self.queue.cancel(event.key)
            self._await_deletion(event.key, event.new)
        if frees_usage(event) or is_uncharged(event):
            self._enqueue_measuring(event.key.resource, in_namespace)

    def _await_deletion(self, key: Key, pod: AnyObject | None) -> None:
        """Look again when a pod does not count any more though it is still being deleted. Upstream
        calculates all quotas every five minutes for that."""
        if pod is None:
            return
        end = quotas.end_of_deletion(pod)
        if end is not None and end >= self._clock.now():
            self.queue.add_at(key, later(end, 1.0))

    def _enqueue_measuring(self, resource: str, in_namespace: Iterable[ResourceQuota]) -> None:
        """Reconcile the quotas that measure objects of a resource."""
        evaluator = quotas.evaluator_for(resource)
        for quota in in_namespace:
            hard = quota["spec"].get("hard") or ()
            if any(evaluator.measures(name) for name in hard):
                self.queue.add(Key(RESOURCE_QUOTAS, namespace_of(quota), name_of(quota)))

    def sync(self, key: Key) -> None:
        if key.resource == PODS:
            self._enqueue_measuring(PODS, self._quotas.list(key.namespace))
            return
        quota = self._quotas.get(key.namespace, key.name)
        if quota is None:
            return
        if self._needs_resync:
            self.queue.add_after(key, RESYNC_SECONDS, repeating=True)
        served = [resource.key for resource in self._scheme if resource.namespaced]
        status = quotas.observed_status(
            quota,
            served,
            lambda resource: self._measured(resource, key.namespace),
            self._clock.now(),
        )
        if status == quota.get("status"):
            return
        with suppress(NotFound):
            stored = self._quota_client.update_status(quota, status)
            self._own_writes.note(key, stored)

    def _measured(self, resource: str, namespace: str) -> list[Object]:
        """Return the objects of a resource that count; pods that will not for long are looked at
        again."""
        objects = [
            *self._informers.list(resource, namespace),
            *self._client.list_implied(resource, namespace),
        ]
        for pod in objects if resource == PODS else ():
            self._await_deletion(Key(PODS, namespace, name_of(pod)), pod)
        return objects


def is_overwritten(old: ResourceQuota, new: ResourceQuota) -> bool:
    """Tell whether somebody has written a status that this controller will write again when it next
    calculates all quotas: with other limits than those of the spec, or less usage than there was.

    More usage is what the API server charges for an object.
    """
    status = new["status"]
    if status.get("hard") != new["spec"].get("hard"):
        return True
    used = status.get("used") or {}
    used_before = (old.get("status") or {}).get("used") or {}
    for name, value in used_before.items():
        if name not in used or Quantity.parse(used[name]) < Quantity.parse(value):
            return True
    return False


def is_uncharged(event: WatchEvent) -> bool:
    """Tell whether an object is new that no request has made, and so no quota was charged for: that
    of a file."""
    if event.old is not None:
        return False
    if event.new is None:
        return False
    return handwritten.is_handwritten(event.key, event.new)


def frees_usage(event: WatchEvent) -> bool:
    """Tell whether a change may free usage (``DefaultUpdateFilter``): an object was deleted, a pod
    has ended, or what quotas measure has changed.

    A pod that was charged and has ended before this controller heard of it has ended as well, and
    of an update whose object is not known any more nothing can be ruled out.
    """
    key = event.key
    old = event.old
    new = event.new
    if new is None:
        return True
    measure = _MEASURED.get(key.resource)
    if measure is None:
        return False
    if old is None:
        if event.is_update:
            return True
        return key.resource == PODS and is_pod_terminal(new)
    return measure(old) != measure(new)


def _measured_of_pod(pod: AnyObject) -> tuple[object, ...]:
    """Return what makes a pod count otherwise: whether it has ended, its scope, and the resources
    that its containers ask for and have been given, which a resize changes."""
    spec = pod["spec"]
    status = pod.get("status") or {}
    sections = (
        spec.get("containers"),
        spec.get("initContainers"),
        status.get("containerStatuses"),
        status.get("initContainerStatuses"),
    )
    resources = [
        [container.get("resources") for container in section or ()] for section in sections
    ]
    return is_pod_terminal(pod), spec.get("activeDeadlineSeconds") is None, resources


def _measured_of_service(service: AnyObject) -> object:
    """Return the type of a service if quotas count services of that type
    (``GetQuotaServiceType``)."""
    service_type = service["spec"].get("type")
    if service_type in ("NodePort", "LoadBalancer"):
        return service_type
    return None


def _measured_of_claim(claim: AnyObject) -> tuple[object, ...]:
    """Return the allocated storage of a claim, and the names of its attributes classes
    (``RequiresQuotaReplenish``)."""
    status = claim.get("status") or {}
    allocated = (status.get("allocatedResources") or {}).get("storage")
    return allocated, quotas.attributes_classes(claim)


_MEASURED: Mapping[str, Callable[[AnyObject], object]] = {
    PODS: _measured_of_pod,
    SERVICES: _measured_of_service,
    PERSISTENT_VOLUME_CLAIMS: _measured_of_claim,
}
