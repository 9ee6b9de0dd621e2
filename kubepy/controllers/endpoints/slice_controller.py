"""Keeps the EndpointSlices of Services (``pkg/controller/endpointslice``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.errors import Status
from kubepy.api.meta import Object, annotations_of, is_being_deleted, labels_of, name_of, namespace_of
from kubepy.controllers.endpoints.membership import (
    NODES,
    SERVICE_NAME,
    SERVICES,
    SLICES,
    Membership,
    is_watched,
    pods_of,
)
from kubepy.controllers.endpoints.slices import CONTROLLER, MANAGED_BY, Plan, plan
from kubepy.controllers.endpoints.trigger import TRIGGER_TIME, seen_in_slices, trigger_time
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent


class EndpointSliceController:
    name = "endpoint-slice-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self.queue = context.new_queue()
        self._membership = Membership(context.informers, self.queue)

    def handlers(self) -> Mapping[str, Handler]:
        return {**self._membership.handlers(), SLICES: self._slice_changed}

    def _slice_changed(self, event: WatchEvent) -> None:
        """A slice that is or was this controller's wakes its Service."""
        self._membership.slice_changed(event)
        for one in (event.old, event.new):
            if one is not None and labels_of(one).get(MANAGED_BY) == CONTROLLER:
                self.queue.add(Key(SERVICES, event.key.namespace, labels_of(one).get(SERVICE_NAME, "")))

    def sync(self, key: Key) -> None:
        service = self._informers.get(*key)
        if service is None or not is_watched(service):
            return
        pods = pods_of(self._informers, service)
        slices = self._slices_of(service)
        wanted = plan(service, pods, slices, lambda name: self._informers.get(NODES, "", name))
        self._write(service, wanted, trigger_time(service, pods, seen_in_slices(slices)))

    def _slices_of(self, service: Object) -> list[Object]:
        wanted = {SERVICE_NAME: name_of(service), MANAGED_BY: CONTROLLER}
        return [one for one in self._informers.list(SLICES, namespace_of(service))
                if labels_of(one).items() >= wanted.items() and not is_being_deleted(one)]

    def _write(self, service: Object, wanted: Plan, trigger: str) -> None:
        namespace = namespace_of(service)
        try:
            for one in wanted.create:
                self._client.create(SLICES, _stamped(one, trigger), namespace=namespace)
        except Status as error:
            if is_namespace_terminating(error):
                return
            raise
        for one in wanted.update:
            self._client.update(SLICES, _stamped(one, trigger), namespace=namespace)
        for one in wanted.delete:
            self._client.delete(SLICES, name_of(one), namespace=namespace)


def _stamped(one: Object, trigger: str) -> Object:
    """A slice with the time of the change that it follows, or without any (``addTriggerTimeAnnotation``)."""
    annotations = {key: value for key, value in annotations_of(one).items() if key != TRIGGER_TIME}
    if trigger:
        annotations[TRIGGER_TIME] = trigger
    return {**one, "metadata": {**one["metadata"], "annotations": annotations}}
