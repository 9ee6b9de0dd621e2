"""Allocation for a Service: addresses, IP families and node ports
(``registry/core/service/storage``).

Upstream allocates at random. Here the search for a free address or port begins at a hash of the
Service's name, so that the same Services get the same addresses in whatever order they are made.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator

from kubepy.api.errors import FieldError, Status, internal_error, invalid, invalid_value
from kubepy.api.meta import Object, name_of, namespace_of, nested_list
from kubepy.api.objects.services import NONE, is_headless, needs_health_check, needs_node_ports
from kubepy.apiserver.kinds.core.services.validation import validate_cluster_ips
from kubepy.quoting import quote

MIN_RESERVED, MAX_RESERVED = 16, 256  # how many addresses are kept for Services that ask for one
NODE_PORTS = range(30000, 32768)
SINGLE = "SingleStack"
REQUIRE = "RequireDualStack"


def allocate_on_create(service: Object, others: Iterable[Object], subnet: str) -> None:
    """Allocate for a new Service. ``others``: all Services there are; ``subnet``: the range of
    addresses.

    Raises Invalid.
    """
    spec = service["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    others = list(others)
    _init_ip_families(service, None)
    if spec.get("type") != "ExternalName" and not is_headless(service):
        _allocate_cluster_ip(service, others, subnet)
    _allocate_node_ports(service, None, others)


def allocate_on_update(service: Object, old: Object, others: Iterable[Object], subnet: str) -> None:
    """Allocate for an update; allocated values that are left out now are kept. Raises Invalid."""
    keep_allocated(service, old)
    others = [
        other for other in others if other["metadata"].get("uid") != old["metadata"].get("uid")
    ]
    gets_address = (
        old["spec"].get("type") == "ExternalName" and service["spec"].get("type") != "ExternalName"
    )
    if gets_address and not is_headless(service):
        _allocate_cluster_ip(service, others, subnet)
    _allocate_node_ports(service, old, others)


def keep_allocated(service: Object, old: Object) -> None:
    """Keep allocated values that are left out now. Raises Invalid."""
    _patch_allocated(service, old)
    _normalize_cluster_ips(service, old)
    _init_ip_families(service, old)


def _refuse(service: Object, errors: list[FieldError]) -> Status:
    return invalid("Service", name_of(service), errors)


def _start(service: Object, purpose: str, size: int) -> int:
    """Return the place among ``size`` at which the search begins."""
    seed = f"{namespace_of(service)}/{name_of(service)}/{purpose}"
    digest = hashlib.sha256(seed.encode()).digest()
    return int.from_bytes(digest[:8], "big") % size


# --- what is kept ---------------------------------------------------------------------------------


def _patch_allocated(service: Object, old: Object) -> None:
    """Keep allocated values: a client that replaces a Service need not know them
    (``patchAllocatedValues``)."""
    spec = service["spec"]
    old_spec = old["spec"]
    if "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old_spec.get(field):
                spec[field] = old_spec[field]
    if needs_node_ports(service) and needs_node_ports(old):
        _keep_node_ports(spec, old_spec)
    need_health_check = needs_health_check(service) and needs_health_check(old)
    if need_health_check and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old_spec.get("healthCheckNodePort", 0)


def _keep_node_ports(spec: Object, old_spec: Object) -> None:
    """Give ports without a node port that of the old port of the same name, unless it is in use."""
    used = set(_own_node_ports(spec)) & set(_own_node_ports(old_spec))
    by_name = {
        port.get("name", ""): port.get("nodePort", 0) for port in nested_list(old_spec, "ports")
    }
    for port in nested_list(spec, "ports"):
        node_port = by_name.get(port.get("name", ""), 0)
        if not port.get("nodePort") and node_port and node_port not in used:
            port["nodePort"] = node_port


def _normalize_cluster_ips(service: Object, old: Object) -> None:
    """Make ``clusterIP`` the first of ``clusterIPs``; a client that changes only one of them means
    both."""
    spec = service["spec"]
    old_spec = old["spec"]
    new_ip = spec.get("clusterIP", "")
    old_ip = old_spec.get("clusterIP", "")
    ips = nested_list(spec, "clusterIPs")
    old_ips = nested_list(old_spec, "clusterIPs")
    if new_ip == old_ip:
        if old_ips and not ips:
            spec["clusterIPs"] = old_ips
    elif ips == old_ips and new_ip:
        spec["clusterIPs"] = [new_ip]
    elif ips == old_ips:
        spec.pop("clusterIPs", None)


# --- IP families ----------------------------------------------------------------------------------


def _init_ip_families(service: Object, old: Object | None) -> None:
    """Set the IP families of a cluster that is IPv4 only (``initIPFamilyFields``). Raises
    Invalid."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return

    is_plain_headless = spec.get("clusterIP") == NONE and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = REQUIRE if is_plain_headless else SINGLE
        old_policy = old["spec"].get("ipFamilyPolicy") if old is not None else None
        if old_policy:
            spec["ipFamilyPolicy"] = str(old_policy)

    if problems := validate_cluster_ips(service, old):
        raise _refuse(service, problems)
    errors = _family_errors(service, old)
    if errors:
        raise _refuse(service, errors)

    if is_plain_headless:
        families = spec.get("ipFamilies") or ["IPv4"]  # any: somebody else makes the endpoints
        if len(families) < 2 and spec["ipFamilyPolicy"] != SINGLE:
            other_family = "IPv6" if families[0] == "IPv4" else "IPv4"
            families = [*families, other_family]
        spec["ipFamilies"] = families
        return

    if spec["ipFamilyPolicy"] == REQUIRE:
        detail = "this cluster is not configured for dual-stack services"
        errors.append(invalid_value("spec.ipFamilyPolicy", REQUIRE, detail))
    errors.extend(
        invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(nested_list(spec, "ipFamilies"))
        if family != "IPv4"
    )
    if errors:
        raise _refuse(service, errors)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]


def _family_errors(service: Object, old: Object | None) -> list[FieldError]:
    spec = service["spec"]
    errors: list[FieldError] = []
    for field, label in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        errors.extend(_second_value_errors(spec, old, field, label))
    ips = nested_list(spec, "clusterIPs")
    for index, ip in enumerate(ips):
        if ip == NONE or index < len(nested_list(spec, "ipFamilies")):
            continue
        if ":" in ip:
            errors.append(
                invalid_value(
                    f"spec.clusterIPs[{index}]", ips, "IPv6 is not configured on this cluster"
                )
            )
        else:
            spec["ipFamilies"] = [*nested_list(spec, "ipFamilies"), "IPv4"]

    return errors


def _second_value_errors(
    spec: Object, old: Object | None, field: str, label: str
) -> list[FieldError]:
    """Check that a second address or family goes with its policy."""
    values = nested_list(spec, field)
    policy = spec["ipFamilyPolicy"]
    before = nested_list(old or {}, "spec", field)
    if policy != SINGLE:
        releases_second = len(before) == 2 and values == before[:1]
        if old is None or not releases_second:
            return []
        return [
            invalid_value(
                "spec.ipFamilyPolicy",
                policy,
                f"must be 'SingleStack' to release the secondary {label}",
            )
        ]

    if len(values) != 2:
        return []
    if values == before:
        spec[field] = values[:1]
        return []
    plural = "cluster IPs" if field == "clusterIPs" else "IP families"
    detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {plural} are specified"
    return [invalid_value("spec.ipFamilyPolicy", policy, detail)]


# --- addresses ------------------------------------------------------------------------------------


def _allocate_cluster_ip(service: Object, others: list[Object], subnet: str) -> None:
    spec = service["spec"]
    network = ipaddress.IPv4Network(subnet)
    used: set[str] = set()
    for other in others:
        used.update(nested_list(other["spec"], "clusterIPs"))

    requested = (spec.get("clusterIPs") or [""])[0]
    if requested:
        problem = ""
        if not _is_in_range(requested, network):
            problem = "the provided network does not match the current range"
        elif requested in used:
            problem = "provided IP is already allocated"
        if problem:
            detail = f"failed to allocate IP {requested}: {problem}"
            raise _refuse(service, [invalid_value("spec.clusterIPs", spec["clusterIPs"], detail)])
        return

    address = next((ip for ip in addresses_to_try(service, network) if ip not in used), None)
    if address is None:
        problem = (
            f"failed to allocate a serviceIP for Service {quote(name_of(service))}: range is full"
        )
        raise internal_error(problem)

    spec["clusterIP"] = address
    spec["clusterIPs"] = [address]


def _is_in_range(address: str, network: ipaddress.IPv4Network) -> bool:
    parsed = ipaddress.ip_address(address)
    is_reserved = parsed in (network.network_address, network.broadcast_address)
    return parsed in network and not is_reserved


def addresses_to_try(service: Object, network: ipaddress.IPv4Network) -> Iterator[str]:
    """Yield the addresses of a network in the order in which they are tried
    (``allocateNextService``).

    The first ones are for Services that ask for them: they come last. The network's own address and
    the last one are nobody's.
    """
    size = network.num_addresses
    reserved = 0
    if size > MIN_RESERVED:
        reserved = min(max(MIN_RESERVED, size // 16), MAX_RESERVED)
    for first, count in ((1 + reserved, size - 2 - reserved), (1, reserved)):
        start = _start(service, "address", max(count, 1))
        for step in range(count):
            yield str(network[first + (start + step) % count])


# --- node ports -----------------------------------------------------------------------------------


def _own_node_ports(spec: Object) -> list[int]:
    return [port["nodePort"] for port in nested_list(spec, "ports") if port.get("nodePort")]


def _allocate_node_ports(service: Object, old: Object | None, others: list[Object]) -> None:
    spec = service["spec"]
    used: set[int] = set()
    for other in others:
        used.update(_own_node_ports(other["spec"]))
        used.add(other["spec"].get("healthCheckNodePort"))
    kept = set()
    if old is not None:
        kept = set(_own_node_ports(old["spec"]))
    if needs_node_ports(service):
        _check_given_ports(service, used, kept)
        allocates_for_balancer = spec.get("allocateLoadBalancerNodePorts") is not False
        if spec.get("type") == "NodePort" or allocates_for_balancer:
            _fill_in_ports(service, used)

    if needs_health_check(service) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _free_port(
            service, "health-check", used | set(_own_node_ports(spec))
        )


def _check_given_ports(service: Object, used: set[int], kept: set[int]) -> None:
    for index, port in enumerate(nested_list(service["spec"], "ports")):
        number = port.get("nodePort", 0)
        if not number or number in kept:
            continue
        if number not in NODE_PORTS:
            valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            detail = f"provided port is not in the valid range. The range of valid ports is {valid}"
        elif number in used:
            detail = "provided port is already allocated"
        else:
            continue
        raise _refuse(service, [invalid_value(f"spec.ports[{index}].nodePort", number, detail)])


def _fill_in_ports(service: Object, used: set[int]) -> None:
    """Allocate node ports; ports of one number (TCP and UDP) share one."""
    ports = nested_list(service["spec"], "ports")
    taken = used | set(_own_node_ports(service["spec"]))
    by_port = {port["port"]: port["nodePort"] for port in ports if port.get("nodePort")}
    for port in ports:
        if port.get("nodePort"):
            continue
        number = port.get("port")
        node_port = by_port.get(number) or _free_port(service, str(number), taken)
        port["nodePort"] = node_port
        by_port[number] = node_port
        taken.add(node_port)


def _free_port(service: Object, purpose: str, taken: set[int]) -> int:
    start = _start(service, purpose, len(NODE_PORTS))
    for step in range(len(NODE_PORTS)):
        number = NODE_PORTS[(start + step) % len(NODE_PORTS)]
        if number not in taken:
            return number
    raise internal_error("failed to allocate a nodePort: range is full")
