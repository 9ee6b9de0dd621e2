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
    errors: Errors = []
    for index, subset in enumerate(nested_list(endpoints, "subsets")):
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(
                required(f"subsets[{index}]", "must specify `addresses` or `notReadyAddresses`")
            )
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(nested_list(subset, field)):
                address_path = f"subsets[{index}].{field}[{position}]"
                ip = address.get("ip", "")
                hostname = address.get("hostname")
                node = address.get("nodeName")
                validate_as(ip_address, ip, f"{address_path}.ip", errors)
                if hostname:
                    validate_as(dns1123_label, hostname, f"{address_path}.hostname", errors)
                if node is not None:
                    validate_as(dns1123_subdomain, node, f"{address_path}.nodeName", errors)
                validate_endpoint_ip(ip, f"{address_path}.ip", errors)
        ports = nested_list(subset, "ports")
        for position, port in enumerate(ports):
            port_path = f"subsets[{index}].ports[{position}]"
            name = port.get("name", "")
            if name:
                validate_as(dns1123_label, name, f"{port_path}.name", errors)
            elif len(ports) > 1:
                errors.append(required(f"{port_path}.name"))
            validate_as(port_number, port.get("port", 0), f"{port_path}.port", errors)
            validate_choice(port.get("protocol", ""), PROTOCOLS, f"{port_path}.protocol", errors)
            if (protocol := port.get("appProtocol")) is not None:
                validate_as(qualified_name, protocol, f"{port_path}.appProtocol", errors)
    is_unchanged = old is not None and semantically_equal(
        old.get("subsets"), endpoints.get("subsets")
    )
    return [] if is_unchanged else errors


def endpoints_warnings(endpoints: Object) -> list[str]:
    if is_of_controller(endpoints, "endpoints.kubernetes.io/managed-by"):
        return []
    return [
        warning
        for index, subset in enumerate(nested_list(endpoints, "subsets"))
        for field in ("addresses", "notReadyAddresses")
        for position, address in enumerate(nested_list(subset, field))
        for warning in ip_warnings(
            address.get("ip", ""), f"subsets[{index}].{field}[{position}].ip"
        )
    ]
