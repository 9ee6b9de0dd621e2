"""Ingresses, their classes, and NetworkPolicies
(``pkg/apis/networking/validation/validation.go``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kubepy.api.meta import Object, annotations_of, nested_list, spec_of
from kubepy.api.values.names import dns1123_label, dns1123_subdomain, path_segment
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    Errors,
    go_view,
    has_invalid_label_value,
    validate_as,
    validate_format,
    validate_immutable,
    validate_label_selector,
    validate_required_as,
)
from kubepy.apiserver.validation.formats import (
    cidr,
    cidr_warnings,
    domain_prefixed_path,
    have_families_of_their_own,
    ip_address,
    port_name,
    port_number,
    validate_cidr,
    validate_ip,
    wildcard_subdomain,
)
from kubepy.quoting import quote

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
BAD_ENDS = ("/..", "/.")
NOT_AN_IP = "must be a DNS name, not an IP address"


# --- ingresses ------------------------------------------------------------------------------------


def validate_ingress(ingress: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(ingress)
    old_spec: Object = (old or {}).get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid_value("spec", spec.get("rules"), detail))
    backend = spec.get("defaultBackend")
    if backend is not None:
        _validate_backend(backend, "spec.defaultBackend", errors)
    _validate_ingress_rules(spec, old_spec, errors)

    any_secret = any(
        tls.get("secretName") and dns1123_subdomain(tls["secretName"])
        for tls in nested_list(old_spec, "tls")
    )
    for index, tls in enumerate(nested_list(spec, "tls")):
        for position, host in enumerate(nested_list(tls, "hosts")):
            _validate_host(host, f"spec.tls[{index}].hosts[{position}]", errors)
        key = tls.get("secretName")
        if key and not any_secret:
            validate_as(dns1123_subdomain, key, f"spec.tls[{index}].secretName", errors)

    name = spec.get("ingressClassName")
    if name is not None:
        validate_as(dns1123_subdomain, name, "spec.ingressClassName", errors)
        annotation = annotations_of(ingress).get(CLASS_ANNOTATION)
        if old is None and annotation is not None and annotation != name:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(invalid_value(f"annotations.{CLASS_ANNOTATION}", annotation, detail))

    return errors


def _validate_ingress_rules(spec: Object, old_spec: Object, errors: Errors) -> None:
    """Validate hosts and paths; invalid paths of wildcard hosts are tolerated if the old Ingress
    has some."""
    old_wildcard_errors: Errors = []
    for rule in nested_list(old_spec, "rules"):
        if "*" in rule.get("host", ""):
            _validate_paths(rule, "", old_wildcard_errors)
    for index, rule in enumerate(nested_list(spec, "rules")):
        path = f"spec.rules[{index}]"
        host = rule.get("host", "")
        if host:
            if not ip_address(host):
                errors.append(invalid_value(f"{path}.host", host, NOT_AN_IP))
            _validate_host(host, f"{path}.host", errors)
        if not (old_wildcard_errors and "*" in host):
            _validate_paths(rule, path, errors)


def _validate_host(host: str, path: str, errors: Errors) -> None:
    rule = wildcard_subdomain if "*" in host else dns1123_subdomain
    validate_as(rule, host, path, errors)


def _validate_paths(rule: Object, path: str, errors: Errors) -> None:
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        errors.append(required(f"{path}.http.paths"))

    for index, entry in enumerate(nested_list(http, "paths")):
        at = f"{path}.http.paths[{index}]"
        kind = entry.get("pathType")
        target = entry.get("path", "")
        if kind is None:
            errors.append(required(f"{at}.pathType", "pathType must be specified"))
            continue
        if kind not in PATH_TYPES:
            errors.append(not_supported(f"{at}.pathType", kind, PATH_TYPES))
        elif kind == "ImplementationSpecific":
            if target and not target.startswith("/"):
                errors.append(invalid_value(f"{at}.path", target, "must be an absolute path"))
        else:
            _validate_exact_path(target, f"{at}.path", errors)
        _validate_backend(entry.get("backend") or {}, f"{at}.backend", errors)


def _validate_exact_path(target: str, path: str, errors: Errors) -> None:
    if not target.startswith("/"):
        errors.append(invalid_value(path, target, "must be an absolute path"))
    errors.extend(
        invalid_value(path, target, f"must not contain '{bad}'")
        for bad in BAD_SEQUENCES
        if bad in target
    )
    errors.extend(
        invalid_value(path, target, f"cannot end with '{bad}'")
        for bad in BAD_ENDS
        if target.endswith(bad)
    )


def _validate_backend(backend: Object, path: str, errors: Errors) -> None:
    resource = backend.get("resource")
    service = backend.get("service")
    if resource is not None and service is not None:
        errors.append(invalid_value(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _validate_reference(resource, f"{path}.resource", errors)
    elif service is not None:
        name = service.get("name", "")
        port = service.get("port") or {}
        validate_required_as(dns1123_label, name, f"{path}.service.name", errors)
        if port.get("name") and port.get("number"):
            errors.append(invalid_value(path, "", "cannot set both port name & port number"))
        elif port.get("name"):
            validate_as(port_name, port["name"], f"{path}.service.port.name", errors)
        elif port.get("number"):
            errors.extend(
                invalid_value(f"{path}.service.port.number", port["number"], detail)
                for detail in port_number(port["number"])
            )
        else:
            errors.append(required(path, "port name or number is required"))
    else:
        errors.append(invalid_value(path, "", "resource or service backend is required"))


def _validate_reference(reference: Object, path: str, errors: Errors) -> None:
    group = reference.get("apiGroup")
    if group is not None:
        validate_as(dns1123_subdomain, group, f"{path}.apiGroup", errors)
    for field in ("kind", "name"):
        value = reference.get(field, "")
        validate_required_as(path_segment, value, f"{path}.{field}", errors)


def validate_ingress_status(ingress: Object) -> list[FieldError]:
    errors: Errors = []
    for index, entry in enumerate(nested_list(ingress, "status", "loadBalancer", "ingress")):
        at = f"status.loadBalancer.ingress[{index}]"
        host = entry.get("hostname", "")
        if entry.get("ip"):
            validate_ip(entry["ip"], f"{at}.ip", errors)
        if host:
            validate_as(dns1123_subdomain, host, f"{at}.hostname", errors)
            if not ip_address(host):
                errors.append(invalid_value(f"{at}.hostname", host, NOT_AN_IP))
    return errors


def ingress_warnings(ingress: Object) -> list[str]:
    annotation = CLASS_ANNOTATION in annotations_of(ingress)
    if not annotation or spec_of(ingress).get("ingressClassName") is not None:
        return []
    return [
        f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' "
        f"instead"
    ]


# --- ingress classes ------------------------------------------------------------------------------


def validate_ingress_class(ingress_class: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(ingress_class)
    controller = spec.get("controller", "")
    at = "spec.controller"
    if old is not None:
        validate_immutable(controller, spec_of(old).get("controller", ""), at, errors)
    if len(controller.encode()) > 250:
        errors.append(too_long(at, 250))
    errors.extend(domain_prefixed_path(controller, at))

    parameters = spec.get("parameters")
    if parameters is not None:
        _validate_reference(parameters, "spec.parameters", errors)
        scope = parameters.get("scope")
        namespace = parameters.get("namespace")
        if scope is None:
            errors.append(required("spec.parameters.scope"))
        elif scope not in ("Cluster", "Namespace"):
            errors.append(not_supported("spec.parameters.scope", scope, ("Cluster", "Namespace")))
        elif scope == "Cluster" and namespace is not None:
            errors.append(
                forbidden_field(
                    "spec.parameters.namespace", "`parameters.scope` is set to 'Cluster'"
                )
            )
        elif scope == "Namespace" and namespace is None:
            errors.append(
                required("spec.parameters.namespace", "`parameters.scope` is set to 'Namespace'")
            )
        elif scope == "Namespace":
            validate_as(dns1123_label, namespace or "", "spec.parameters.namespace", errors)

    return errors


# --- network policies -----------------------------------------------------------------------------


def validate_network_policy(policy: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(policy)
    old_spec = (old or {}).get("spec") or {}
    tolerated = old is not None and has_invalid_label_value(old_spec.get("podSelector"))

    old_networks: set[str] = set()
    for peer, _ in _peers(old_spec):
        block = peer.get("ipBlock") or {}
        old_networks.add(block.get("cidr", ""))
        old_networks.update(nested_list(block, "except"))

    validate_label_selector(
        spec.get("podSelector") or {}, "spec.podSelector", errors, allow_invalid_values=tolerated
    )

    for rule, path, field in _rules(spec):
        for position, port in enumerate(nested_list(rule, "ports")):
            _validate_policy_port(port, f"{path}.ports[{position}]", errors)
        for position, peer in enumerate(nested_list(rule, field)):
            _validate_peer(
                peer,
                old_networks,
                f"{path}.{field}[{position}]",
                errors,
                allow_invalid_values=tolerated,
            )

    kinds = nested_list(spec, "policyTypes")
    if len(kinds) > 2:
        errors.append(
            invalid_value("spec.policyTypes", kinds, "may not specify more than two policyTypes")
        )
        return errors

    errors.extend(
        not_supported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
        for index, kind in enumerate(kinds)
        if kind not in ("Ingress", "Egress")
    )
    return errors


def _rules(spec: Object) -> Iterator[tuple[Object, str, str]]:
    """Yield the rules of a policy, ingress first, each with its path and the field of its peers."""
    for direction, field in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(nested_list(spec, direction)):
            yield rule, f"spec.{direction}[{index}]", field


def _peers(spec: Object) -> Iterator[tuple[Object, str]]:
    """Yield the peers of all rules with their paths."""
    for rule, path, field in _rules(spec):
        for position, peer in enumerate(nested_list(rule, field)):
            yield peer, f"{path}.{field}[{position}]"


def network_policy_warnings(policy: Object) -> list[str]:
    warnings: list[str] = []
    for peer, path in _peers(spec_of(policy)):
        at = f"{path}.ipBlock"
        block = peer.get("ipBlock") or {}
        warnings += cidr_warnings(block.get("cidr", ""), f"{at}.cidr")
        for number, network in enumerate(nested_list(block, "except")):
            warnings += cidr_warnings(network, f"{at}.except[{number}]")
    return warnings


def _validate_policy_port(port: Object, path: str, errors: Errors) -> None:
    protocol = port.get("protocol")
    number = port.get("port")
    end = port.get("endPort")
    if protocol is not None and protocol not in ("TCP", "UDP", "SCTP"):
        errors.append(not_supported(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))

    if isinstance(number, int):
        errors.extend(
            invalid_value(f"{path}.port", number, detail) for detail in port_number(number)
        )
        if end is not None:
            if end < number:
                errors.append(
                    invalid_value(
                        f"{path}.endPort", number, "must be greater than or equal to `port`"
                    )
                )
            errors.extend(
                invalid_value(f"{path}.endPort", end, detail) for detail in port_number(end)
            )
        return

    if end is not None:
        detail = (
            f"may not be specified when `port` is "
            f"{'not specified' if number is None else 'non-numeric'}"
        )
        errors.append(invalid_value(f"{path}.endPort", end, detail))

    if number is not None:
        validate_as(port_name, number, f"{path}.port", errors)


def _validate_peer(
    peer: Object, old_networks: set[str], path: str, errors: Errors, *, allow_invalid_values: bool
) -> None:
    fields = [
        field
        for field in ("podSelector", "namespaceSelector", "ipBlock")
        if peer.get(field) is not None
    ]
    for field in fields:
        if field == "ipBlock":
            _validate_ip_block(peer["ipBlock"], old_networks, f"{path}.ipBlock", errors)
        else:
            validate_label_selector(
                peer[field], f"{path}.{field}", errors, allow_invalid_values=allow_invalid_values
            )

    if not fields:
        errors.append(required(path, "must specify a peer"))
    elif len(fields) > 1 and "ipBlock" in fields:
        errors.append(forbidden_field(path, "may not specify both ipBlock and another peer"))


def validate_ip_address(obj: Object) -> list[FieldError]:
    """Validate the reference of an IPAddress to what it is for."""
    parent = spec_of(obj).get("parentRef")
    path = "spec.parentRef"
    if parent is None:
        return [required(path)]
    errors = [
        invalid_value(f"{path}.group", parent["group"], detail)
        for detail in (dns1123_subdomain(parent["group"]) if parent.get("group") else ())
    ]
    for field in ("resource", "name", "namespace"):
        value = parent.get(field, "")
        if not value and field != "namespace":
            errors.append(required(f"{path}.{field}"))
        errors += [
            invalid_value(f"{path}.{field}", value, detail)
            for detail in (path_segment(value) if value else ())
        ]

    return errors


def _validate_ip_block(block: Object, old_networks: set[str], path: str, errors: Errors) -> None:
    network = block.get("cidr", "")
    if not network:
        errors.append(required(f"{path}.cidr"))
        return
    if network not in old_networks:
        validate_cidr(network, f"{path}.cidr", errors)
    whole = _parse(network)
    if whole is None:
        return
    for index, exception in enumerate(nested_list(block, "except")):
        at = f"{path}.except[{index}]"
        if exception not in old_networks:
            validate_cidr(exception, at, errors)
        part = _parse(exception)
        if part is not None and not _is_strict_subset(part, whole):
            errors.append(invalid_value(at, exception, "must be a strict subset of `cidr`"))


def _is_strict_subset(part: Any, whole: Any) -> bool:
    if part.version != whole.version:
        return False
    return bool(part.subnet_of(whole)) and bool(part.prefixlen > whole.prefixlen)


def _parse(network: str) -> Any:
    """Parse a network; None for a text that is none."""
    import ipaddress

    if cidr(network) == ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]:
        return None
    try:
        return ipaddress.ip_network(network, strict=False)
    except ValueError:
        return None


# --- ranges of service addresses ------------------------------------------------------------------


def validate_service_cidr(service_cidr: Object, old: Object | None = None) -> list[FieldError]:
    """Require a network, or one of each family; an update may only add a second."""
    networks = nested_list(service_cidr, "spec", "cidrs")
    path = "spec.cidrs"
    if old is None:
        return _validate_ranges(networks, path)
    old_networks = nested_list(old, "spec", "cidrs")
    if len(old_networks) == len(networks):
        return [
            invalid_value(f"{path}[{index}]", network, IMMUTABLE)
            for index, (network, old_network) in enumerate(zip(networks, old_networks, strict=True))
            if network != old_network
        ]

    if (len(old_networks), len(networks)) != (1, 2):
        return [invalid_value(path, networks or None, IMMUTABLE)]
    errors = _validate_ranges(networks, path)
    if networks[0] != old_networks[0]:
        return [invalid_value(f"{path}[0]", networks[0], IMMUTABLE), *errors]
    return errors


def _validate_ranges(networks: list[str], path: str) -> list[FieldError]:
    if not networks:
        return [required(path, "at least one CIDR required")]
    shown = go_view("networking.ServiceCIDRSpec", {"cidrs": networks})
    if len(networks) > 2:
        return [invalid_value(path, shown, "may only hold up to 2 values")]

    if not have_families_of_their_own(networks):
        detail = (
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
            "2001:db8::/96"
        )
        return [invalid_value(path, shown, detail)]

    errors: Errors = []
    for index, network in enumerate(networks):
        complaints = cidr(network)
        if not complaints and network != (canonical := str(_parse(network))):
            complaints = [f"must be in canonical form ({quote(canonical)})"]
        validate_format(network, complaints, f"{path}[{index}]", errors)

    return errors
