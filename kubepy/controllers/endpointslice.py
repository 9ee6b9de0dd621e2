"""Keeps the EndpointSlices of Services (``pkg/controller/endpointslice``,
``k8s.io/endpointslice``).

:func:`plan_slices` decides: endpoints with the same ports share slices, a hundred in each. Present
slices are changed as little as possible; when no pod is left, a slice without endpoints stays as a
placeholder.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.errors import Status
from kubepy.api.meta import (
    AnyObject,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    new_controller_ref,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_ready
from kubepy.api.objects.services import NONE
from kubepy.api.types.hashing import deep_hash
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.service_endpoints import (
    HEADLESS,
    MANAGED_BY,
    SERVICE_NAME,
    ZONE,
    ServiceHandlers,
    addresses_of,
    endpoint_ports,
    enqueue_owner_of_slice,
    has_endpoints,
    hostname_within,
    is_endpoint,
    pods_of,
    ready_pods_in_slices,
    slices_of,
    target_ref,
    trigger_time,
    with_trigger_time,
)
from kubepy.controllers.slice_tracker import EndpointSliceTracker
from kubepy.runtime.informers import ENDPOINT_SLICES, NODES, SERVICES, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import DiscoveryEndpointPort, Endpoint, EndpointSlice, Node, Pod, Service

    NodeOf = Callable[[str], Node | None]

CONTROLLER = "endpointslice-controller.k8s.io"
RESERVED = frozenset((SERVICE_NAME, MANAGED_BY, HEADLESS))
MAX_ENDPOINTS = 100  # --max-endpoints-per-slice
MAX_NAME = 253


class EndpointSliceController:
    """Reconciles Services with a selector."""

    name = "endpoint-slice-controller"

    def __init__(self, context: Context) -> None:
        self._informers = context.informers
        self._service_lister = context.informers.lister(SERVICES)
        self._nodes = context.informers.lister(NODES)
        self._slice_client = ResourceClient(context.client, ENDPOINT_SLICES)
        self.queue = context.new_queue()
        self._services = ServiceHandlers(context.informers, self.queue)
        self._tracker = EndpointSliceTracker(context.informers, SERVICES)

    def handlers(self) -> Mapping[str, Handler]:
        enqueue_service = enqueue_owner_of_slice(self.queue, SERVICES, CONTROLLER)

        def slice_changed(event: WatchEvent) -> None:
            self._tracker.observe(event)
            self._services.slice_changed(event)
            enqueue_service(event)

        return {**self._services.handlers(), ENDPOINT_SLICES: slice_changed}

    def sync(self, key: Key) -> None:
        """Write the slices of a Service. Raises Status, StaleInformerCacheError."""
        service = self._service_lister.get(key.namespace, key.name)
        if service is None:
            self._tracker.forget(key)
            return
        if not has_endpoints(service):
            return
        pods = pods_of(self._informers, service)
        slices = slices_of(self._informers, key, {MANAGED_BY: CONTROLLER})
        self._tracker.check(key, slices)
        plan = plan_slices(service, pods, slices, lambda name: self._nodes.get("", name))
        time = trigger_time(service, pods, ready_pods_in_slices(slices))
        try:
            for slice_ in plan.create:
                created = self._slice_client.create(with_trigger_time(slice_, time), key.namespace)
                self._tracker.note(key, created)
        except Status as error:
            if is_namespace_terminating(error):
                return
            raise

        for slice_ in plan.update:
            self._tracker.note(key, self._slice_client.update(with_trigger_time(slice_, time)))
        for slice_ in plan.delete:
            self._slice_client.delete(slice_)
            self._tracker.note_deletion(key, slice_)


# --- decisions ------------------------------------------------------------------------------------


class SlicePlan(NamedTuple):
    """The writes to make: new slices (without a name), changed ones, and those to delete."""

    create: list[EndpointSlice]
    update: list[EndpointSlice]
    delete: list[EndpointSlice]

    def extend(self, other: SlicePlan) -> None:
        for slices, others in zip(self, other, strict=True):
            slices.extend(others)


class PortGroup(NamedTuple):
    """Endpoints that share their ports."""

    ports: list[DiscoveryEndpointPort]
    endpoints: list[Endpoint]


def plan_slices(
    service: Service, pods: Iterable[Pod], slices: Iterable[EndpointSlice], node_of: NodeOf
) -> SlicePlan:
    """Plan the writes that make ``slices``, the controller's own of the Service, show the pods."""
    families: list[str] = service["spec"].get("ipFamilies") or []
    if not families:
        address = service["spec"].get("clusterIP") or NONE
        families = ["IPv4", "IPv6"] if address == NONE else ["IPv6" if ":" in address else "IPv4"]
    plan = SlicePlan([], [], [slice_ for slice_ in slices if slice_["addressType"] not in families])
    pods = [pod for pod in pods if is_endpoint(pod, terminating=True)]
    for family in families:
        existing = [slice_ for slice_ in slices if slice_["addressType"] == family]
        groups = _group_by_ports(service, pods, family, node_of)
        plan.extend(_plan_family(service, groups, existing, family))
    return _with_slices_reused(service, plan)


def _plan_family(
    service: Service, groups: Mapping[str, PortGroup], existing: list[EndpointSlice], family: str
) -> SlicePlan:
    owned: dict[str, list[EndpointSlice]] = {}
    plan = SlicePlan([], [], [])
    for slice_ in existing:
        if _is_owned(slice_, service):
            owned.setdefault(ports_key(slice_.get("ports") or []), []).append(slice_)
        else:
            plan.delete.append(slice_)

    for key, group in groups.items():
        plan.extend(
            _plan_group(
                service,
                owned.get(key, []),
                group,
                new_slice(service, group.ports, family),
            )
        )

    for key, slices in owned.items():
        if key not in groups:
            plan.delete.extend(slices)
    if len(existing) > len(plan.delete) or plan.create:
        return plan
    # No slice would be left: create a placeholder without endpoints, or keep the one that is there.
    placeholder = new_slice(service, [], family)
    if len(plan.delete) == 1:
        present = plan.delete[0]
        if (
            not present.get("endpoints")
            and not present.get("ports")
            and labels_of(present) == labels_of(placeholder)
            and present["metadata"].get("ownerReferences")
            == placeholder["metadata"]["ownerReferences"]
        ):
            return plan._replace(delete=[])

    return plan._replace(create=[placeholder])


def _with_slices_reused(service: Service, plan: SlicePlan) -> SlicePlan:
    """Update a slice that would be deleted with the content of one that would be created
    (``finalize``)."""
    create = list(plan.create)
    update = list(plan.update)
    delete = []
    for slice_ in plan.delete:
        if (
            create
            and slice_["addressType"] == create[-1]["addressType"]
            and _is_owned(slice_, service)
        ):
            new = create.pop()
            update.append({**new, "metadata": {**slice_["metadata"], "labels": labels_of(new)}})
        else:
            delete.append(slice_)
    return SlicePlan(create if not is_being_deleted(service) else [], update, delete)


def _plan_group(
    service: Service, existing: list[EndpointSlice], group: PortGroup, template: EndpointSlice
) -> SlicePlan:
    """Plan the writes that make these slices hold the endpoints of a group
    (``reconcileByPortMapping``)."""
    left = {_identity(endpoint): endpoint for endpoint in group.endpoints}
    changed: dict[str, EndpointSlice] = {}
    unchanged: dict[str, EndpointSlice] = {}
    delete: list[EndpointSlice] = []
    for slice_ in existing:
        present = slice_.get("endpoints") or []
        kept = [
            left.pop(_identity(endpoint)) for endpoint in present if _identity(endpoint) in left
        ]
        if kept == present and _own_labels(slice_) == _own_labels(service):
            unchanged[name_of(slice_)] = slice_
        elif present and not kept:
            delete.append(slice_)
        else:
            changed[name_of(slice_)] = {
                **slice_,
                "endpoints": kept,
                "metadata": {**slice_["metadata"], "labels": slice_labels(service)},
            }

    remaining = list(left.values())
    for slice_ in sorted(
        changed.values(), key=lambda slice_: -len(slice_["endpoints"])
    ):  # the fullest first
        room = MAX_ENDPOINTS - len(slice_["endpoints"])
        slice_["endpoints"] = slice_["endpoints"] + remaining[:room]
        del remaining[:room]

    create = _place(remaining, unchanged, changed, template)
    return SlicePlan(create, list(changed.values()), delete)


def _place(
    endpoints: list[Endpoint],
    unchanged: dict[str, EndpointSlice],
    changed: dict[str, EndpointSlice],
    template: EndpointSlice,
) -> list[EndpointSlice]:
    """Put endpoints into the fullest unchanged slice with room for them all, or into new ones
    (``getSliceToFill``)."""
    create: list[EndpointSlice] = []
    while endpoints:
        with_room = [
            slice_
            for slice_ in unchanged.values()
            if len(slice_.get("endpoints") or ()) + len(endpoints) <= MAX_ENDPOINTS
        ]
        if with_room:
            slice_ = max(with_room, key=lambda slice_: len(slice_.get("endpoints") or ()))
            del unchanged[name_of(slice_)]
            changed[name_of(slice_)] = {
                **slice_,
                "endpoints": [*(slice_.get("endpoints") or []), *endpoints],
            }
            break
        create.append({**template, "endpoints": endpoints[:MAX_ENDPOINTS]})
        endpoints = endpoints[MAX_ENDPOINTS:]

    return create


def _identity(endpoint: Endpoint) -> tuple[Any, ...]:
    """Return the same for versions of one endpoint that differ in conditions only
    (``hashEndpoint``)."""
    target = endpoint.get("targetRef") or {}
    return (
        tuple(sorted(endpoint.get("addresses") or ())),
        endpoint.get("hostname", ""),
        target.get("namespace", ""),
        target.get("name", ""),
    )


def _group_by_ports(
    service: Service, pods: list[Pod], family: str, node_of: NodeOf
) -> dict[str, PortGroup]:
    groups: dict[str, PortGroup] = {}
    for pod in pods:
        ports = in_order(endpoint_ports(service, pod))
        group = groups.setdefault(ports_key(ports), PortGroup(ports, []))
        node = node_of(pod["spec"].get("nodeName", ""))
        if node is None and not service["spec"].get("publishNotReadyAddresses"):
            continue  # the node was deleted, and its pods will be unless it comes back
        endpoint = pod_to_endpoint(pod, node, service, family)
        if endpoint["addresses"]:
            group.endpoints.append(endpoint)
    return groups


# --- objects --------------------------------------------------------------------------------------


def in_order(ports: Iterable[DiscoveryEndpointPort]) -> list[DiscoveryEndpointPort]:
    """Return ports in the order of a slice, that of their hashes (``portsInOrder``)."""
    return sorted(ports, key=_port_hash)


def ports_key(ports: list[DiscoveryEndpointPort]) -> str:
    return ",".join(sorted(map(_port_hash, ports)))


def _port_hash(port: DiscoveryEndpointPort) -> str:
    return deep_hash("discovery/v1.EndpointPort", port)


def pod_to_endpoint(pod: Pod, node: Node | None, service: Service, family: str) -> Endpoint:
    """Return the endpoint of a pod; it may have no address of the family."""
    serving = is_pod_ready(pod)
    terminating = is_being_deleted(pod)
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    version = 6 if family == "IPv6" else 4
    addresses = [
        str(address)
        for address in map(ipaddress.ip_address, addresses_of(pod))
        if address.version == version
    ]
    endpoint: Endpoint = {
        "addresses": addresses,
        "targetRef": target_ref(pod),
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    }
    hostname = hostname_within(pod, service)
    if hostname:
        endpoint["hostname"] = hostname
    node_name = pod["spec"].get("nodeName")
    if node_name:
        endpoint["nodeName"] = node_name
    if node is not None and (zone := labels_of(node).get(ZONE)):
        endpoint["zone"] = zone
    return endpoint


def new_slice(service: Service, ports: list[DiscoveryEndpointPort], family: str) -> EndpointSlice:
    """Return a slice without endpoints and without a name."""
    name = name_of(service)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": family,
        "endpoints": [],
        "ports": ports,
        "metadata": {
            "generateName": f"{name}-" if len(name) < MAX_NAME else name,
            "labels": slice_labels(service),
            "namespace": namespace_of(service),
            "ownerReferences": [new_controller_ref(service)],
        },
    }


def slice_labels(service: Service) -> dict[str, str]:
    """Return the Service's labels, and those that name Service and controller
    (``setEndpointSliceLabels``)."""
    labels = _own_labels(service)
    if service["spec"].get("clusterIP", NONE) in (NONE, ""):
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: name_of(service), MANAGED_BY: CONTROLLER}


def _own_labels(obj: AnyObject) -> dict[str, str]:
    labels = labels_of(obj)
    return {key: labels[key] for key in labels if key not in RESERVED}


def _is_owned(slice_: EndpointSlice, service: Service) -> bool:
    references = slice_["metadata"].get("ownerReferences") or ()
    return any(
        (ref["apiVersion"], ref["kind"], ref["uid"]) == ("v1", "Service", uid_of(service))
        for ref in references
    )
