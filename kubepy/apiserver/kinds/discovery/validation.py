"""EndpointSlices (``pkg/apis/discovery/validation``)."""

from __future__ import annotations

from kubepy.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_many,
)
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import dns1123_label, dns1123_subdomain, qualified_name
from kubepy.apiserver.kinds.core.endpoints.validation import PROTOCOLS, is_of_controller
from kubepy.apiserver.kinds.core.services.validation import validate_endpoint_ip
from kubepy.apiserver.validation.fields import (
    Errors,
    label_value,
    semantically_equal,
    validate_as,
    validate_choice,
    validate_format,
    validate_immutable,
    validate_labels,
)
from kubepy.apiserver.validation.formats import ip_address, ip_warnings, is_ipv6

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MAX_ENDPOINTS = 1000
MAX_ADDRESSES = 100
MAX_PORTS = 20000
MAX_TOPOLOGY = 16
MAX_HINTS = 8


def validate_slice(slice_: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    kind = slice_.get("addressType", "")
    validate_choice(kind, ADDRESS_TYPES, "addressType", errors)
    _validate_ports(nested_list(slice_, "ports"), errors)
    endpoints = nested_list(slice_, "endpoints")
    if old is None or not semantically_equal(old.get("endpoints"), endpoints):
        _validate_endpoints(endpoints, kind, errors)
    if old is not None:
        validate_immutable(kind, old.get("addressType", ""), "addressType", errors)
    return errors


def _validate_ports(ports: list[Object], errors: Errors) -> None:
    if len(ports) > MAX_PORTS:
        errors.append(too_many("ports", len(ports), MAX_PORTS))
        return

    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"ports[{index}]"
        name = port.get("name") or ""
        if name:
            validate_as(dns1123_label, name, f"{path}.name", errors)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        protocol = port.get("protocol")
        if protocol is None:
            errors.append(required(f"{path}.protocol"))
        elif protocol not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
        app_protocol = port.get("appProtocol")
        if app_protocol is not None:
            validate_as(qualified_name, app_protocol, f"{path}.appProtocol", errors)


def _validate_endpoints(endpoints: list[Object], kind: str, errors: Errors) -> None:
    if len(endpoints) > MAX_ENDPOINTS:
        errors.append(too_many("endpoints", len(endpoints), MAX_ENDPOINTS))
        return
    for index, endpoint in enumerate(endpoints):
        _validate_slice_endpoint(endpoint, kind, f"endpoints[{index}]", errors)


def _validate_slice_address(
    address: str, kind: str, path: str, position: int, errors: Errors
) -> None:
    at = f"{path}[{position}]"
    if kind == "FQDN":
        name = address.removesuffix(".")  # upstream: IsFullyQualifiedDomainName
        if not address:
            errors.append(required(at))
        elif complaints := dns1123_subdomain(name):
            validate_format(name, complaints, at, errors)
        elif "." not in name:
            errors.append(
                invalid_value(
                    at, name, "should be a domain with at least two segments separated by dots"
                )
            )
    elif kind in ("IPv4", "IPv6"):
        complaints = ip_address(address)
        validate_format(address, complaints, at, errors)
        if not complaints:
            if is_ipv6(address) != (kind == "IPv6"):
                errors.append(invalid_value(path, address, f"must be an {kind} address"))
            validate_endpoint_ip(address, at, errors)


def _validate_slice_endpoint(endpoint: Object, kind: str, path: str, errors: Errors) -> None:
    addresses = nested_list(endpoint, "addresses")
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), MAX_ADDRESSES))

    for position, address in enumerate(addresses):
        _validate_slice_address(address, kind, f"{path}.addresses", position, errors)
    node = endpoint.get("nodeName")
    hostname = endpoint.get("hostname")
    topology = endpoint.get("deprecatedTopology")
    if node is not None:
        validate_as(dns1123_subdomain, node, f"{path}.nodeName", errors)
    if topology and len(topology) > MAX_TOPOLOGY:
        errors.append(too_many(f"{path}.deprecatedTopology", len(topology), MAX_TOPOLOGY))
    validate_labels(topology, f"{path}.deprecatedTopology", errors)
    if hostname is not None:
        validate_as(dns1123_label, hostname, f"{path}.hostname", errors)
    _validate_hints(endpoint.get("hints") or {}, f"{path}.hints", errors)


def _validate_hints(hints: Object, path: str, errors: Errors) -> None:
    for field, check in (("forZones", label_value), ("forNodes", dns1123_subdomain)):
        names = [hint.get("name", "") for hint in nested_list(hints, field)]
        if len(names) > MAX_HINTS:
            errors.append(too_many(f"{path}.{field}", len(names), MAX_HINTS))
            return
        for index, name in enumerate(names):
            at = f"{path}.{field}[{index}].name"
            if name in names[:index]:
                errors.append(duplicate(at, name))
            validate_as(check, name, at, errors)


def slice_warnings(slice_: Object) -> list[str]:
    if is_of_controller(slice_, "endpointslice.kubernetes.io/managed-by"):
        return []
    warnings: list[str] = []
    for index, endpoint in enumerate(nested_list(slice_, "endpoints")):
        for position, address in enumerate(nested_list(endpoint, "addresses")):
            warnings += ip_warnings(address, f"endpoints[{index}].addresses[{position}]")
    return warnings
