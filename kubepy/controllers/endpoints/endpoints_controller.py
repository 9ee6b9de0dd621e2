"""Keeps the Endpoints of Services, for those who do not read EndpointSlices (``pkg/controller/endpoint``)."""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.errors import Status
from kubepy.api.meta import Object, annotations_of, labels_of, name_of, namespace_of
from kubepy.api.objects.services import NONE
from kubepy.controllers.endpoints.membership import SERVICES, Membership, is_watched, pods_of
from kubepy.controllers.endpoints.slices import HEADLESS
from kubepy.controllers.endpoints.subsets import repacked, subsets_of, truncated
from kubepy.controllers.endpoints.trigger import TRIGGER_TIME, seen_in_subsets, trigger_time
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

ENDPOINTS = "endpoints"
MANAGED_BY, CONTROLLER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


class EndpointsController:
    name = "endpoint-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self.queue = context.new_queue()
        self._membership = Membership(context.informers, self.queue)

    def handlers(self) -> Mapping[str, Handler]:
        return {**self._membership.handlers(), ENDPOINTS: self._endpoints_changed}

    def _endpoints_changed(self, event: WatchEvent) -> None:
        """Endpoints that are gone come back; those that this controller made go with their Service."""
        if event.new is None or labels_of(event.new).get(MANAGED_BY) == CONTROLLER:
            self.queue.add(Key(SERVICES, event.key.namespace, event.key.name))

    def sync(self, key: Key) -> None:
        service = self._informers.get(*key)
        now = self._informers.get(ENDPOINTS, key.namespace, key.name)
        if service is None:
            self._delete(now)
        elif is_watched(service):
            pods = pods_of(self._informers, service)
            wanted = endpoints_of(service, pods, now)
            if not is_same(wanted, now):
                self._write(_with_time(wanted, trigger_time(service, pods, seen_in_subsets(now))), now)

    def _delete(self, endpoints: Object | None) -> None:
        """Without a Service only what this controller made is taken away."""
        if endpoints is not None and labels_of(endpoints).get(MANAGED_BY) == CONTROLLER:
            self._client.delete(ENDPOINTS, name_of(endpoints), namespace=namespace_of(endpoints))

    def _write(self, wanted: Object, now: Object | None) -> None:
        namespace = namespace_of(wanted)
        if now is not None:
            self._client.update(ENDPOINTS, wanted, namespace=namespace)
            return
        try:
            self._client.create(ENDPOINTS, wanted, namespace=namespace)
        except Status as error:
            if not is_namespace_terminating(error):
                raise


def endpoints_of(service: Object, pods: list[Object], now: Object | None) -> Object:
    """The Endpoints that a Service with these pods should have, in the place of those that are there."""
    subsets = subsets_of(service, pods)
    cut = truncated(subsets)
    annotations = {key: value for key, value in annotations_of(now or {"metadata": {}}).items() if key != OVER_CAPACITY}
    if cut is not None:
        annotations[OVER_CAPACITY] = "truncated"
    metadata = (now or {}).get("metadata") or {"name": name_of(service), "namespace": namespace_of(service)}
    return {"apiVersion": "v1", "kind": "Endpoints", "subsets": subsets if cut is None else cut,
            "metadata": {**metadata, "labels": _labels(service), "annotations": annotations}}


def _labels(service: Object) -> dict[str, str]:
    labels = {key: value for key, value in labels_of(service).items() if key != HEADLESS}
    if service["spec"].get("clusterIP", NONE) in (NONE, ""):
        labels[HEADLESS] = ""
    return {**labels, MANAGED_BY: CONTROLLER}


def is_same(wanted: Object, now: Object | None) -> bool:
    """Whether what is there says the same; the time of the change does not count, nor the order of ports and subsets,
    which another version of the controller may have hashed otherwise."""
    if now is None or _marks(wanted) != _marks(now):
        return False
    subsets = now.get("subsets") or []
    return bool(wanted["subsets"] == subsets or wanted["subsets"] == repacked(subsets))


def _marks(endpoints: Object) -> tuple[object, ...]:
    return labels_of(endpoints), annotations_of(endpoints).get(OVER_CAPACITY)


def _with_time(endpoints: Object, time: str) -> Object:
    annotations = {key: value for key, value in annotations_of(endpoints).items() if key != TRIGGER_TIME}
    if time:
        annotations[TRIGGER_TIME] = time
    return {**endpoints, "metadata": {**endpoints["metadata"], "annotations": annotations}}
