"""Mirrors Endpoints of Services without a selector, written by hand, to EndpointSlices, which are
what clients read.

Upstream: ``pkg/controller/endpointslicemirroring``. Addresses of one family with the same ports are
one slice, of at most a thousand endpoints; further addresses are left out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.errors import Status
from kubepy.api.meta import (
    annotations_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    new_controller_ref,
)
from kubepy.controllers.endpoint import ADDRESS_LISTS, repacked
from kubepy.controllers.endpointslice import MAX_NAME, SlicePlan, in_order, ports_key
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.service_endpoints import (
    MANAGED_BY,
    SERVICE_NAME,
    TRIGGER_TIME,
    enqueue_owner_of_slice,
    slices_of,
)
from kubepy.controllers.slice_tracker import EndpointSliceTracker
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import ENDPOINT_SLICES, ENDPOINTS, SERVICES, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import (
        DiscoveryEndpointPort,
        Endpoint,
        EndpointAddress,
        Endpoints,
        EndpointSlice,
        ObjectMeta,
        Service,
    )

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ENDPOINTS = 1000  # --mirroring-max-endpoints-per-subset
FAMILIES = ("IPv4", "IPv6")


class EndpointSliceMirroringController:
    """Reconciles Endpoints."""

    name = "endpoint-slice-mirroring-controller"

    def __init__(self, context: Context) -> None:
        self._informers = context.informers
        self._services = context.informers.lister(SERVICES)
        self._endpoints = context.informers.lister(ENDPOINTS)
        self._slice_client = ResourceClient(context.client, ENDPOINT_SLICES)
        self._recorder = Recorder(context.client, self.name)
        self._tracker = EndpointSliceTracker(context.informers, ENDPOINTS)
        self.queue = context.new_queue()
        self._enqueue_owner = enqueue_owner_of_slice(self.queue, ENDPOINTS, CONTROLLER)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            ENDPOINTS: self._endpoints_changed,
            SERVICES: self._service_changed,
            ENDPOINT_SLICES: self._slice_changed,
        }

    def _slice_changed(self, event: WatchEvent) -> None:
        self._tracker.observe(event)
        self._enqueue_owner(event)

    def _endpoints_changed(self, event: WatchEvent) -> None:
        """Reconcile Endpoints unless their Service has a selector; without a Service they may have
        been mirrored."""
        service = self._services.get(event.key.namespace, event.key.name)
        if service is None or not _has_selector(service):
            self.queue.add(event.key)

    def _service_changed(self, event: WatchEvent) -> None:
        """Reconcile the Endpoints of a Service that was created, deleted, or has got or lost its
        selector."""
        old = cast("Service | None", event.old)
        new = cast("Service | None", event.new)
        if old is None or new is None or _has_selector(old) != _has_selector(new):
            self.queue.add(Key(ENDPOINTS, event.key.namespace, event.key.name))

    def sync(self, key: Key) -> None:
        """Write the slices that mirror Endpoints. Raises Status, StaleInformerCacheError."""
        endpoints = self._endpoints.get(key.namespace, key.name)
        slices = slices_of(self._informers, key, {MANAGED_BY: CONTROLLER})
        if endpoints is None or not is_mirrored(
            endpoints, self._services.get(key.namespace, key.name)
        ):
            self._delete(key, slices)
            self._tracker.forget(key)
            return

        self._tracker.check(key, slices)
        mirror = plan_mirror(endpoints, slices)
        if mirror.skipped:
            self._recorder.event(
                endpoints,
                "Warning",
                "TooManyAddressesToMirror",
                f"A max of {MAX_ENDPOINTS} addresses can be mirrored to EndpointSlices per "
                f"Endpoints "
                f"subset. {mirror.skipped} addresses were skipped",
            )

        try:
            for slice_ in mirror.plan.create if not is_being_deleted(endpoints) else ():
                self._tracker.note(key, self._slice_client.create(slice_, key.namespace))
        except Status as error:
            if is_namespace_terminating(error):
                return
            raise

        for slice_ in mirror.plan.update:
            self._tracker.note(key, self._slice_client.update(slice_))
        self._delete(key, mirror.plan.delete)

    def _delete(self, key: Key, slices: list[EndpointSlice]) -> None:
        for slice_ in slices:
            self._slice_client.delete(slice_)
            self._tracker.note_deletion(key, slice_)


def _has_selector(service: Service | None) -> bool:
    if service is None:
        return False
    return service["spec"].get("selector") is not None


# --- decisions ------------------------------------------------------------------------------------


class Mirror(NamedTuple):
    """The writes to make, and the number of addresses that they leave out."""

    plan: SlicePlan
    skipped: int


def is_mirrored(endpoints: Endpoints | None, service: Service | None) -> bool:
    """Tell whether to mirror the Endpoints: those of a Service without a selector, unless a label
    says no.

    The Endpoints of a leader election hold a record, no addresses.
    """
    if endpoints is None or service is None or _has_selector(service):
        return False
    if labels_of(endpoints).get(SKIP_MIRROR) == "true":
        return False
    return LEADER not in annotations_of(endpoints)


def plan_mirror(endpoints: Endpoints, slices: list[EndpointSlice]) -> Mirror:
    """Plan the writes that make ``slices``, the present mirror, show the Endpoints."""
    desired, skipped = _desired_slices(endpoints)
    existing: dict[str, list[EndpointSlice]] = {}
    for slice_ in slices:
        existing.setdefault(_key(slice_), []).append(slice_)
    plan = SlicePlan(
        [],
        [],
        [slice_ for key, found in existing.items() if key not in desired for slice_ in found],
    )
    for key, slice_ in desired.items():
        present = existing.get(key, [])
        plan.delete.extend(present[1:])
        if not present:
            plan.create.append(slice_)
        elif not _is_same(present[0], slice_):
            plan.update.append(_with_name_of(present[0], slice_))

    return Mirror(_with_slices_recycled(plan), skipped)


def _desired_slices(endpoints: Endpoints) -> tuple[dict[str, EndpointSlice], int]:
    """Return the slices by family and ports, and the number of addresses left out."""
    slices: dict[str, EndpointSlice] = {}
    skipped = 0
    for subset in repacked(endpoints.get("subsets") or ()):
        converted = [
            _endpoint_of(address, ready)
            for field, ready in ADDRESS_LISTS
            for address in subset.get(field) or ()
        ]
        skipped += len(converted[MAX_ENDPOINTS:])
        named: list[DiscoveryEndpointPort] = [
            {"name": "", **port} for port in subset.get("ports") or ()
        ]
        ports = in_order(named)
        for family in FAMILIES:
            of_family = [
                endpoint
                for endpoint in converted[:MAX_ENDPOINTS]
                if (":" in endpoint["addresses"][0]) == (family == "IPv6")
            ]
            if of_family:
                slice_ = _new_slice(endpoints, ports, family)
                slices.setdefault(_key(slice_), slice_)["endpoints"].extend(of_family)

    return slices, skipped


def _endpoint_of(address: EndpointAddress, ready: bool) -> Endpoint:
    endpoint: Endpoint = {
        "addresses": [str(ipaddress.ip_address(address["ip"]))],
        "conditions": {"ready": ready},
    }
    hostname = address.get("hostname")
    if hostname:
        endpoint["hostname"] = hostname
    node_name = address.get("nodeName")
    if node_name:
        endpoint["nodeName"] = node_name
    target = address.get("targetRef")
    if target:
        endpoint["targetRef"] = target
    return endpoint


def _key(slice_: EndpointSlice) -> str:
    ports = slice_.get("ports") or []
    return f"{slice_['addressType']}-{ports_key(ports)}"


def _new_slice(
    endpoints: Endpoints, ports: list[DiscoveryEndpointPort], family: str
) -> EndpointSlice:
    name = name_of(endpoints)
    annotations = {
        key: value
        for key, value in annotations_of(endpoints).items()
        if key not in (TRIGGER_TIME, LAST_APPLIED)
    }
    metadata: ObjectMeta = {
        "generateName": f"{name}-" if len(name) < MAX_NAME else name,
        "labels": {**labels_of(endpoints), SERVICE_NAME: name, MANAGED_BY: CONTROLLER},
    }
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": family,
        "endpoints": [],
        "ports": ports,
        "metadata": {
            **metadata,
            "namespace": namespace_of(endpoints),
            "ownerReferences": [new_controller_ref(endpoints)],
        },
    }


def _is_same(present: EndpointSlice, desired: EndpointSlice) -> bool:
    """Tell whether endpoints, in any order, labels and annotations are the same."""

    def sorted_endpoints(slice_: EndpointSlice) -> list[str]:
        endpoints = slice_.get("endpoints") or ()
        return sorted(repr(sorted(endpoint.items())) for endpoint in endpoints)

    if sorted_endpoints(present) != sorted_endpoints(desired):
        return False
    if labels_of(present) != labels_of(desired):
        return False
    return annotations_of(present) == annotations_of(desired)


def _with_name_of(old: EndpointSlice, new: EndpointSlice) -> EndpointSlice:
    """Return a new slice under the name of an old one; as upstream with no other metadata of it."""
    metadata: ObjectMeta = {**new["metadata"], "name": name_of(old)}
    metadata.pop("generateName", None)
    return {**new, "metadata": metadata}


def _with_slices_recycled(plan: SlicePlan) -> SlicePlan:
    """Update slices to delete with the content of slices to create of the same family
    (``recycleSlices``)."""
    create = list(plan.create)
    delete = list(plan.delete)
    update = list(plan.update)
    for new in plan.create:
        old = next(
            (slice_ for slice_ in delete if slice_["addressType"] == new["addressType"]), None
        )
        if old is not None:
            create.remove(new)
            delete.remove(old)
            update.append(_with_name_of(old, new))
    return SlicePlan(create, update, delete)
