"""Mirrors Endpoints that somebody wrote for a Service without a selector to EndpointSlices, which are what is read
(``pkg/controller/endpointslicemirroring``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.errors import Status
from kubepy.api.meta import Object, is_being_deleted, labels_of, name_of
from kubepy.controllers.endpoints.membership import SERVICE_NAME, SERVICES, SLICES
from kubepy.controllers.endpoints.mirror import CONTROLLER, MAX_ENDPOINTS, is_mirrored, plan_mirror
from kubepy.controllers.endpoints.slices import MANAGED_BY, Plan
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

ENDPOINTS = "endpoints"


class EndpointSliceMirroringController:
    name = "endpoint-slice-mirroring-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {ENDPOINTS: self._endpoints_changed, SERVICES: self._service_changed, SLICES: self._slice_changed}

    def _endpoints_changed(self, event: WatchEvent) -> None:
        """Endpoints of a Service with a selector are nobody's to mirror; without a Service they may have been."""
        service = self._informers.get(SERVICES, event.key.namespace, event.key.name)
        if service is None or not _selects(service):
            self.queue.add(event.key)

    def _service_changed(self, event: WatchEvent) -> None:
        """Only whether there is one, and whether it has a selector, matters of a Service."""
        if None in (event.old, event.new) or _selects(event.old) != _selects(event.new):
            self.queue.add(Key(ENDPOINTS, event.key.namespace, event.key.name))

    def _slice_changed(self, event: WatchEvent) -> None:
        for one in (event.old, event.new):
            if one is not None and labels_of(one).get(MANAGED_BY) == CONTROLLER:
                self.queue.add(Key(ENDPOINTS, event.key.namespace, labels_of(one).get(SERVICE_NAME, "")))

    def sync(self, key: Key) -> None:
        endpoints = self._informers.get(*key)
        slices = self._slices_of(key)
        if endpoints is None or not is_mirrored(endpoints, self._informers.get(SERVICES, key.namespace, key.name)):
            self._delete(slices, key.namespace)
            return
        found = plan_mirror(endpoints, slices)
        if found.skipped:
            self._recorder.event(endpoints, "Warning", "TooManyAddressesToMirror",
                                 f"A max of {MAX_ENDPOINTS} addresses can be mirrored to EndpointSlices per Endpoints "
                                 f"subset. {found.skipped} addresses were skipped")
        self._write(endpoints, found.plan, key.namespace)

    def _slices_of(self, key: Key) -> list[Object]:
        wanted = {SERVICE_NAME: key.name, MANAGED_BY: CONTROLLER}
        return [one for one in self._informers.list(SLICES, key.namespace)
                if labels_of(one).items() >= wanted.items() and not is_being_deleted(one)]

    def _write(self, endpoints: Object, wanted: Plan, namespace: str) -> None:
        try:
            for one in wanted.create if not is_being_deleted(endpoints) else ():
                self._client.create(SLICES, one, namespace=namespace)
        except Status as error:
            if is_namespace_terminating(error):
                return
            raise
        for one in wanted.update:
            self._client.update(SLICES, one, namespace=namespace)
        self._delete(wanted.delete, namespace)

    def _delete(self, slices: list[Object], namespace: str) -> None:
        for one in slices:
            self._client.delete(SLICES, name_of(one), namespace=namespace)


def _selects(service: Object | None) -> bool:
    return service is not None and service["spec"].get("selector") is not None
