"""Mirrors Endpoints of Services without a selector, written by hand, to EndpointSlices, which are what clients read.

Upstream: ``pkg/controller/endpointslicemirroring``. Addresses of one family with the same ports are one slice, of at
most a thousand endpoints; further addresses are left out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.errors import Status
from kubepy.api.meta import (
    Object,
    annotations_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    new_controller_ref,
)
from kubepy.controllers.endpoint import ENDPOINTS, repacked
from kubepy.controllers.endpointslice import MAX_NAME, SlicePlan, in_order, ports_key
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.service_endpoints import (
    MANAGED_BY,
    SERVICE_NAME,
    SERVICES,
    SLICES,
    TRIGGER_TIME,
    enqueue_owner_of_slice,
    slices_of,
)
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

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
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {ENDPOINTS: self._endpoints_changed, SERVICES: self._service_changed,
                SLICES: enqueue_owner_of_slice(self.queue, ENDPOINTS, CONTROLLER)}

    def _endpoints_changed(self, event: WatchEvent) -> None:
        """Reconcile Endpoints unless their Service has a selector; without a Service they may have been mirrored."""
        service = self._informers.get(SERVICES, event.key.namespace, event.key.name)
        if service is None or not _has_selector(service):
            self.queue.add(event.key)

    def _service_changed(self, event: WatchEvent) -> None:
        """Reconcile the Endpoints of a Service that was created, deleted, or has got or lost its selector."""
        if None in (event.old, event.new) or _has_selector(event.old) != _has_selector(event.new):
            self.queue.add(Key(ENDPOINTS, event.key.namespace, event.key.name))

    def sync(self, key: Key) -> None:
        endpoints = self._informers.get(*key)
        slices = slices_of(self._informers, key, {MANAGED_BY: CONTROLLER})
        if endpoints is None or not is_mirrored(endpoints, self._informers.get(SERVICES, key.namespace, key.name)):
            self._delete(slices, key.namespace)
            return
        mirror = plan_mirror(endpoints, slices)
        if mirror.skipped:
            self._recorder.event(endpoints, "Warning", "TooManyAddressesToMirror",
                                 f"A max of {MAX_ENDPOINTS} addresses can be mirrored to EndpointSlices per Endpoints "
                                 f"subset. {mirror.skipped} addresses were skipped")
        try:
            for slice_ in mirror.plan.create if not is_being_deleted(endpoints) else ():
                self._client.create(SLICES, slice_, namespace=key.namespace)
        except Status as error:
            if is_namespace_terminating(error):
                return
            raise
        for slice_ in mirror.plan.update:
            self._client.update(SLICES, slice_, namespace=key.namespace)
        self._delete(mirror.plan.delete, key.namespace)

    def _delete(self, slices: list[Object], namespace: str) -> None:
        for slice_ in slices:
            self._client.delete(SLICES, name_of(slice_), namespace=namespace)


def _has_selector(service: Object | None) -> bool:
    return service is not None and service["spec"].get("selector") is not None


# --- decisions ----------------------------------------------------------------------------------------------------


class Mirror(NamedTuple):
    """The writes to make, and the number of addresses that they leave out."""

    plan: SlicePlan
    skipped: int


def is_mirrored(endpoints: Object | None, service: Object | None) -> bool:
    """Tell whether to mirror the Endpoints: those of a Service without a selector, unless a label says no.

    The Endpoints of a leader election hold a record, no addresses.
    """
    if endpoints is None or service is None or _has_selector(service):
        return False
    return labels_of(endpoints).get(SKIP_MIRROR) != "true" and LEADER not in annotations_of(endpoints)


def plan_mirror(endpoints: Object, slices: list[Object]) -> Mirror:
    """Plan the writes that make ``slices``, the present mirror, show the Endpoints."""
    desired, skipped = _desired_slices(endpoints)
    existing: dict[str, list[Object]] = {}
    for slice_ in slices:
        existing.setdefault(_key(slice_), []).append(slice_)
    plan = SlicePlan([], [], [slice_ for key, found in existing.items() if key not in desired for slice_ in found])
    for key, slice_ in desired.items():
        present = existing.get(key, [])
        plan.delete.extend(present[1:])
        if not present:
            plan.create.append(slice_)
        elif not _is_same(present[0], slice_):
            plan.update.append(_with_name_of(present[0], slice_))
    return Mirror(_with_slices_recycled(plan), skipped)


def _desired_slices(endpoints: Object) -> tuple[dict[str, Object], int]:
    """Return the slices by family and ports, and the number of addresses left out."""
    slices: dict[str, Object] = {}
    skipped = 0
    for subset in repacked(endpoints.get("subsets") or ()):
        converted: list[Object] = [
            {"addresses": [str(ipaddress.ip_address(address["ip"]))], "conditions": {"ready": field == "addresses"},
             **{field: address[field] for field in ("hostname", "nodeName", "targetRef") if address.get(field)}}
            for field in ("addresses", "notReadyAddresses") for address in subset.get(field) or ()
        ]
        skipped += len(converted[MAX_ENDPOINTS:])
        ports = in_order({"name": "", **port} for port in subset.get("ports") or ())
        for family in FAMILIES:
            of_family = [endpoint for endpoint in converted[:MAX_ENDPOINTS]
                         if (":" in endpoint["addresses"][0]) == (family == "IPv6")]
            if of_family:
                slice_ = _new_slice(endpoints, ports, family)
                slices.setdefault(_key(slice_), slice_)["endpoints"].extend(of_family)
    return slices, skipped


def _key(slice_: Object) -> str:
    return f"{slice_['addressType']}-{ports_key(slice_.get('ports') or [])}"


def _new_slice(endpoints: Object, ports: list[Object], family: str) -> Object:
    name = name_of(endpoints)
    annotations = {key: value for key, value in annotations_of(endpoints).items()
                   if key not in (TRIGGER_TIME, LAST_APPLIED)}
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family, "endpoints": [],
        "ports": ports,
        "metadata": {
            "generateName": f"{name}-" if len(name) < MAX_NAME else name,
            "labels": {**labels_of(endpoints), SERVICE_NAME: name, MANAGED_BY: CONTROLLER},
            **({"annotations": annotations} if annotations else {}),
            "namespace": namespace_of(endpoints), "ownerReferences": [new_controller_ref(endpoints)],
        },
    }


def _is_same(present: Object, desired: Object) -> bool:
    """Tell whether endpoints, in any order, labels and annotations are the same."""
    def sorted_endpoints(slice_: Object) -> list[str]:
        return sorted(repr(sorted(endpoint.items())) for endpoint in slice_.get("endpoints") or ())

    return (sorted_endpoints(present) == sorted_endpoints(desired) and labels_of(present) == labels_of(desired)
            and annotations_of(present) == annotations_of(desired))


def _with_name_of(old: Object, new: Object) -> Object:
    """Return a new slice under the name of an old one; as upstream with no other metadata of it."""
    metadata = {key: value for key, value in new["metadata"].items() if key != "generateName"}
    return {**new, "metadata": {**metadata, "name": name_of(old)}}


def _with_slices_recycled(plan: SlicePlan) -> SlicePlan:
    """Update slices to delete with the content of slices to create of the same family (``recycleSlices``)."""
    create, delete = list(plan.create), list(plan.delete)
    update = list(plan.update)
    for new in plan.create:
        old = next((slice_ for slice_ in delete if slice_["addressType"] == new["addressType"]), None)
        if old is not None:
            create.remove(new)
            delete.remove(old)
            update.append(_with_name_of(old, new))
    return SlicePlan(create, update, delete)
