"""Which EndpointSlices a Service should have: pure decisions (``k8s.io/endpointslice/{reconciler,utils}.go``).

Endpoints with the same ports share slices, a hundred in each. What is there is changed as little as possible; where no
pod is left a slice without endpoints stays as a placeholder.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kubepy.api.meta import (
    Object,
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
from kubepy.controllers.endpoints.membership import SERVICE_NAME, addresses_of, hostname_within, is_endpoint, target_ref
from kubepy.controllers.endpoints.ports import endpoint_ports

CONTROLLER = "endpointslice-controller.k8s.io"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
RESERVED = frozenset((SERVICE_NAME, MANAGED_BY, HEADLESS))
ZONE = "topology.kubernetes.io/zone"
MAX_ENDPOINTS = 100  # --max-endpoints-per-slice
MAX_NAME = 253

NodeOf = Callable[[str], Object | None]


class Plan(NamedTuple):
    """What to write: new slices (without a name), changed ones, and those to delete."""

    create: list[Object]
    update: list[Object]
    delete: list[Object]


class Group(NamedTuple):
    """Endpoints that share their ports."""

    ports: list[Object]
    endpoints: list[Object]


def plan(service: Object, pods: Iterable[Object], slices: Iterable[Object], node_of: NodeOf) -> Plan:
    """What makes the slices those of the pods. ``slices`` are the controller's own of the Service."""
    families = _families(service)
    total = Plan([], [], [one for one in slices if one["addressType"] not in families])
    pods = [pod for pod in pods if is_endpoint(pod, terminating=True)]
    for family in families:
        existing = [one for one in slices if one["addressType"] == family]
        for some, more in zip(total, _plan_family(service, pods, existing, family, node_of), strict=True):
            some.extend(more)
    return _with_slices_used_again(service, total)


def _families(service: Object) -> list[str]:
    found: list[str] = service["spec"].get("ipFamilies") or []
    if found:
        return found
    address = service["spec"].get("clusterIP")
    if address and address != NONE:
        return ["IPv6" if ":" in address else "IPv4"]
    return ["IPv4", "IPv6"]


def _plan_family(service: Object, pods: list[Object], existing: list[Object], family: str, node_of: NodeOf) -> Plan:
    groups = _groups(service, pods, family, node_of)
    owned: dict[str, list[Object]] = {}
    found = Plan([], [], [])
    for one in existing:
        if _is_owned(one, service):
            owned.setdefault(ports_key(one.get("ports") or []), []).append(one)
        else:
            found.delete.append(one)
    for key, group in groups.items():
        template = new_slice(service, group.ports, family)
        for some, more in zip(found, _plan_group(service, owned.get(key, []), group, template), strict=True):
            some.extend(more)
    for key, slices in owned.items():
        if key not in groups:
            found.delete.extend(slices)
    return _with_placeholder(service, existing, found, family)


def _with_placeholder(service: Object, existing: list[Object], found: Plan, family: str) -> Plan:
    if len(existing) > len(found.delete) or found.create:
        return found
    placeholder = new_slice(service, [], family)
    if len(found.delete) == 1 and _is_same_placeholder(found.delete[0], placeholder):
        return found._replace(delete=[])
    return found._replace(create=[placeholder])


def _is_same_placeholder(one: Object, placeholder: Object) -> bool:
    return (not one.get("endpoints") and not one.get("ports") and labels_of(one) == labels_of(placeholder)
            and one["metadata"].get("ownerReferences") == placeholder["metadata"]["ownerReferences"])


def _with_slices_used_again(service: Object, found: Plan) -> Plan:
    """A slice that would go takes the content of one that would come (``finalize``)."""
    create, update, delete = list(found.create), list(found.update), []
    for one in found.delete:
        fits = bool(create) and one["addressType"] == create[-1]["addressType"] and _is_owned(one, service)
        if not fits:
            delete.append(one)
            continue
        wanted = create.pop()
        metadata = {**one["metadata"], "labels": labels_of(wanted)}
        update.append({**wanted, "metadata": metadata})
    return Plan(create if not is_being_deleted(service) else [], update, delete)


# --- one group ----------------------------------------------------------------------------------------------------


def _plan_group(service: Object, existing: list[Object], group: Group, template: Object) -> Plan:
    """What makes these slices hold the endpoints of a group (``reconcileByPortMapping``)."""
    left = {_identity(one): one for one in group.endpoints}
    changed: dict[str, Object] = {}
    unchanged: dict[str, Object] = {}
    delete: list[Object] = []
    for one in existing:
        kept = [left.pop(_identity(endpoint)) for endpoint in one.get("endpoints") or ()
                if _identity(endpoint) in left]
        labels = slice_labels(service)
        if kept == (one.get("endpoints") or []) and _own_labels(one) == _own_labels(service):
            unchanged[name_of(one)] = one
        elif not kept and one.get("endpoints"):
            delete.append(one)
        else:
            changed[name_of(one)] = {**one, "endpoints": kept, "metadata": {**one["metadata"], "labels": labels}}
    waiting = list(left.values())
    _fill_changed(changed, waiting)
    create = _place(waiting, unchanged, changed, template)
    return Plan(create, list(changed.values()), delete)


def _fill_changed(changed: dict[str, Object], waiting: list[Object]) -> None:
    """What is written anyway is filled up first, the fullest before the others."""
    for one in sorted(changed.values(), key=lambda one: -len(one["endpoints"])):
        room = MAX_ENDPOINTS - len(one["endpoints"])
        one["endpoints"] = one["endpoints"] + waiting[:room]
        del waiting[:room]


def _place(waiting: list[Object], unchanged: dict[str, Object], changed: dict[str, Object],
           template: Object) -> list[Object]:
    """Endpoints that have no slice yet go into the fullest one that takes them all, or into new ones."""
    create = []
    while waiting:
        chosen = _fullest_with_room(unchanged.values(), len(waiting))
        if chosen is not None:
            del unchanged[name_of(chosen)]
            changed[name_of(chosen)] = {**chosen, "endpoints": [*(chosen.get("endpoints") or []), *waiting]}
            waiting.clear()
        else:
            create.append({**template, "endpoints": waiting[:MAX_ENDPOINTS]})
            del waiting[:MAX_ENDPOINTS]
    return create


def _fullest_with_room(slices: Iterable[Object], count: int) -> Object | None:
    """``getSliceToFill``: a slice that stays empty of others' room only if it would be full is not looked for."""
    fitting = [one for one in slices if len(one.get("endpoints") or ()) + count <= MAX_ENDPOINTS]
    return max(fitting, key=lambda one: len(one.get("endpoints") or ()), default=None)


def _identity(endpoint: Object) -> tuple[Any, ...]:
    """Endpoints of one identity are one, whatever their conditions (``hashEndpoint``)."""
    target = endpoint.get("targetRef") or {}
    return (tuple(sorted(endpoint.get("addresses") or ())), endpoint.get("hostname", ""), target.get("namespace", ""),
            target.get("name", ""))


# --- objects ------------------------------------------------------------------------------------------------------


def _groups(service: Object, pods: list[Object], family: str, node_of: NodeOf) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for pod in pods:
        ports = in_order(endpoint_ports(service, pod))
        group = found.setdefault(ports_key(ports), Group(ports, []))
        node = node_of(pod["spec"].get("nodeName", ""))
        if node is None and not service["spec"].get("publishNotReadyAddresses"):
            continue  # its pods go with it, or it comes back
        endpoint = pod_to_endpoint(pod, node, service, family)
        if endpoint["addresses"]:
            group.endpoints.append(endpoint)
    return found


def in_order(ports: Iterable[Object]) -> list[Object]:
    """Ports as a slice lists them: in the order of their hashes (``portsInOrder``)."""
    return sorted(ports, key=_port_hash)


def ports_key(ports: list[Object]) -> str:
    return ",".join(sorted(map(_port_hash, ports)))


def _port_hash(port: Object) -> str:
    return deep_hash("discovery/v1.EndpointPort", port)


def pod_to_endpoint(pod: Object, node: Object | None, service: Object, family: str) -> Object:
    serving, terminating = is_pod_ready(pod), is_being_deleted(pod)
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    wanted = 6 if family == "IPv6" else 4
    addresses = [str(one) for one in map(ipaddress.ip_address, addresses_of(pod)) if one.version == wanted]
    endpoint: Object = {"addresses": addresses, "targetRef": target_ref(pod),
                        "conditions": {"ready": ready, "serving": serving, "terminating": terminating}}
    zone = labels_of(node).get(ZONE) if node else None
    for field, value in (("hostname", hostname_within(pod, service)), ("nodeName", pod["spec"].get("nodeName")),
                         ("zone", zone)):
        if value:
            endpoint[field] = value
    return endpoint


def new_slice(service: Object, ports: list[Object], family: str) -> Object:
    """A slice without endpoints and without a name."""
    name = name_of(service)
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family, "endpoints": [],
        "ports": ports,
        "metadata": {
            "generateName": f"{name}-" if len(name) < MAX_NAME else name, "labels": slice_labels(service),
            "namespace": namespace_of(service), "ownerReferences": [new_controller_ref(service)],
        },
    }


def slice_labels(service: Object) -> dict[str, str]:
    """The Service's labels, and those that say whose slice it is (``setEndpointSliceLabels``)."""
    labels = _own_labels(service)
    if service["spec"].get("clusterIP", NONE) in (NONE, ""):
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: name_of(service), MANAGED_BY: CONTROLLER}


def _own_labels(obj: Object) -> dict[str, str]:
    return {key: value for key, value in labels_of(obj).items() if key not in RESERVED}


def _is_owned(one: Object, service: Object) -> bool:
    references = one["metadata"].get("ownerReferences") or ()
    return any((ref["apiVersion"], ref["kind"], ref["uid"]) == ("v1", "Service", uid_of(service))
               for ref in references)
