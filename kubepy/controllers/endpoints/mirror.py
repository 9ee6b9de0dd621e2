"""Which EndpointSlices mirror Endpoints that somebody wrote by hand: pure decisions
(``pkg/controller/endpointslicemirroring/{reconciler,utils}.go``).

Addresses of one family with the same ports are one slice, of at most a thousand endpoints; what is more is left out.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from kubepy.api.meta import Object, annotations_of, labels_of, name_of, namespace_of, new_controller_ref
from kubepy.controllers.endpoints.membership import SERVICE_NAME
from kubepy.controllers.endpoints.slices import MANAGED_BY, MAX_NAME, Plan, in_order, ports_key
from kubepy.controllers.endpoints.subsets import repacked
from kubepy.controllers.endpoints.trigger import TRIGGER_TIME

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ENDPOINTS = 1000  # --mirroring-max-endpoints-per-subset
FAMILIES = ("IPv4", "IPv6")


class Mirror(NamedTuple):
    """What to write, and how many addresses it leaves out."""

    plan: Plan
    skipped: int


def is_mirrored(endpoints: Object | None, service: Object | None) -> bool:
    """Whether slices are to mirror the Endpoints: those of a Service without a selector, unless a label says no.

    A leader's record is no address of anybody.
    """
    if endpoints is None or service is None or service["spec"].get("selector") is not None:
        return False
    return labels_of(endpoints).get(SKIP_MIRROR) != "true" and LEADER not in annotations_of(endpoints)


def plan_mirror(endpoints: Object, slices: list[Object]) -> Mirror:
    """What makes ``slices``, those that mirror the Endpoints by now, what they should be."""
    wanted, skipped = _wanted(endpoints)
    existing: dict[str, list[Object]] = {}
    for one in slices:
        existing.setdefault(_key(one), []).append(one)
    plan = Plan([], [], [one for key, found in existing.items() if key not in wanted for one in found])
    for key, one in wanted.items():
        there = existing.get(key, [])
        plan.delete.extend(there[1:])
        if not there:
            plan.create.append(one)
        elif not _is_same(there[0], one):
            plan.update.append(_in_place_of(there[0], one))
    return Mirror(_with_slices_used_again(plan), skipped)


def _wanted(endpoints: Object) -> tuple[dict[str, Object], int]:
    found: dict[str, Object] = {}
    skipped = 0
    for subset in repacked(endpoints.get("subsets") or ()):
        all_of_it = [_endpoint(address, ready) for field, ready in (("addresses", True), ("notReadyAddresses", False))
                     for address in subset.get(field) or ()]
        skipped += len(all_of_it[MAX_ENDPOINTS:])
        for family in FAMILIES:
            of_family = [one for one in all_of_it[:MAX_ENDPOINTS] if (":" in one["addresses"][0]) == (family == "IPv6")]
            if of_family:
                slice_ = _new_slice(endpoints, in_order(_port(port) for port in subset.get("ports") or ()), family)
                found.setdefault(_key(slice_), slice_)["endpoints"].extend(of_family)
    return found, skipped


def _key(slice_: Object) -> str:
    return f"{slice_['addressType']}-{ports_key(slice_.get('ports') or [])}"


def _endpoint(address: Object, ready: bool) -> Object:
    kept = {field: address[field] for field in ("hostname", "nodeName", "targetRef") if address.get(field)}
    return {"addresses": [str(ipaddress.ip_address(address["ip"]))], "conditions": {"ready": ready}, **kept}


def _port(port: Object) -> Object:
    return {"name": "", **port}


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


def _is_same(first: Object, wanted: Object) -> bool:
    """Whether endpoints, labels and annotations are as they should be, in whatever order."""
    def shown(one: Object) -> list[str]:
        return sorted(repr(sorted(endpoint.items())) for endpoint in one.get("endpoints") or ())

    return (shown(first) == shown(wanted) and labels_of(first) == labels_of(wanted)
            and annotations_of(first) == annotations_of(wanted))


def _in_place_of(old: Object, new: Object) -> Object:
    """A slice under the name of one that is there; upstream sends no more than what it wants."""
    metadata = {key: value for key, value in new["metadata"].items() if key != "generateName"}
    return {**new, "metadata": {**metadata, "name": name_of(old)}}


def _with_slices_used_again(plan: Plan) -> Plan:
    """Slices to delete become slices to create of the same family (``recycleSlices``)."""
    create, delete = list(plan.create), list(plan.delete)
    update = list(plan.update)
    for new in plan.create:
        old = next((one for one in delete if one["addressType"] == new["addressType"]), None)
        if old is not None:
            create.remove(new)
            delete.remove(old)
            update.append(_in_place_of(old, new))
    return Plan(create, update, delete)
