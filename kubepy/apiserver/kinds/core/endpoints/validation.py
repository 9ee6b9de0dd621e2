"""Endpoints (``ValidateEndpoints`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, required
from kubepy.api.meta import Object, labels_of, nested_list
from kubepy.api.values.names import dns1123_label, dns1123_subdomain, qualified_name
from kubepy.apiserver.kinds.core.services.validation import validate_endpoint_ip
from kubepy.apiserver.validation.fields import (
    Errors,
    semantically_equal,
    validate_as,
    validate_choice,
)
from kubepy.apiserver.validation.formats import ip_address, ip_warnings, port_number

PROTOCOLS = ("SCTP", "TCP", "UDP")
# Objects with these labels are written by controllers, whose addresses need no warnings.
_CONTROLLERS = {
    "endpoints.kubernetes.io/managed-by": ("endpoint-controller",),
    "endpointslice.kubernetes.io/managed-by": (
        "endpointslice-controller.k8s.io",
        "endpointslicemirroring-controller.k8s.io",
    ),
}


def is_of_controller(obj: Object, label: str) -> bool:
    return labels_of(obj).get(label) in _CONTROLLERS[label]


def validate_endpoints(endpoints: Object, old: Object | None = None) -> list[FieldError]:
    """Validate Endpoints; an update that leaves the subsets as they were has no errors."""
    if old is not None and semantically_equal(old.get("subsets"), endpoints.get("subsets")):
        return []
    errors: Errors = []
    for index, subset in enumerate(nested_list(endpoints, "subsets")):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(nested_list(subset, field)):
                _validate_address(address, f"{path}.{field}[{position}]", errors)
        _validate_ports(nested_list(subset, "ports"), f"{path}.ports", errors)
    return errors


def _validate_address(address: Object, path: str, errors: Errors) -> None:
    ip = address.get("ip", "")
    hostname = address.get("hostname")
    node = address.get("nodeName")
    validate_as(ip_address, ip, f"{path}.ip", errors)
    if hostname:
        validate_as(dns1123_label, hostname, f"{path}.hostname", errors)
    if node is not None:
        validate_as(dns1123_subdomain, node, f"{path}.nodeName", errors)
    validate_endpoint_ip(ip, f"{path}.ip", errors)


def _validate_ports(ports: list[Object], path: str, errors: Errors) -> None:
    for position, port in enumerate(ports):
        at = f"{path}[{position}]"
        name = port.get("name", "")
        if name:
            validate_as(dns1123_label, name, f"{at}.name", errors)
        elif len(ports) > 1:
            errors.append(required(f"{at}.name"))
        validate_as(port_number, port.get("port", 0), f"{at}.port", errors)
        validate_choice(port.get("protocol", ""), PROTOCOLS, f"{at}.protocol", errors)
        app_protocol = port.get("appProtocol")
        if app_protocol is not None:
            validate_as(qualified_name, app_protocol, f"{at}.appProtocol", errors)


def endpoints_warnings(endpoints: Object) -> list[str]:
    if is_of_controller(endpoints, "endpoints.kubernetes.io/managed-by"):
        return []
    warnings: list[str] = []
    for index, subset in enumerate(nested_list(endpoints, "subsets")):
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(nested_list(subset, field)):
                path = f"subsets[{index}].{field}[{position}].ip"
                warnings += ip_warnings(address.get("ip", ""), path)
    return warnings
