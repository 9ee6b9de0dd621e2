"""Services (``ValidateService*`` in ``pkg/apis/core/validation/validation.go``,
``pkg/api/service/warnings.go``)."""

from __future__ import annotations

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubepy.api.meta import Object, annotations_of, nested_list
from kubepy.api.objects.services import is_headless, needs_health_check
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.apiserver.kinds.core.services.defaults import is_externally_accessible
from kubepy.apiserver.validation.fields import (
    Errors,
    go_view,
    label_key,
    validate_as,
    validate_choice,
    validate_labels,
    validate_optional_choice,
    validate_required_as,
)
from kubepy.apiserver.validation.formats import (
    cidr_warnings,
    have_families_of_their_own,
    ip_address,
    ip_warnings,
    is_ipv6,
    port_number,
    port_number_or_name,
    validate_cidr,
    validate_ip,
    without_leading_zeros,
)

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
ONE_DAY = 86400
SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
FOR_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
IMMUTABLE_ONCE_SET = "may not change once set"


def validate_service(service: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = service["spec"]
    annotations = annotations_of(service)
    hints = annotations.get(TOPOLOGY_HINTS)
    mode = annotations.get(TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
        errors.append(invalid_value(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, detail))
    _validate_type(service, errors)
    names: set[str] = set()
    ports = nested_list(spec, "ports")
    for index, port in enumerate(ports):
        _validate_port(port, names, len(ports) > 1, f"spec.ports[{index}]", errors)
    validate_labels(spec.get("selector"), "spec.selector", errors)
    _validate_affinity(spec, errors)
    errors.extend(validate_cluster_ips(service, old))

    old_ips = nested_list((old or {"spec": {}})["spec"], "externalIPs")
    for index, ip in enumerate(nested_list(spec, "externalIPs")):
        at = f"spec.externalIPs[{index}]"
        if ip not in old_ips and ip_address(ip):
            validate_ip(ip, at, errors)
        else:
            validate_endpoint_ip(ip, at, errors)

    validate_choice(spec.get("type", ""), TYPES, "spec.type", errors)
    _validate_port_numbers(spec, ports, errors)
    is_balancer = spec.get("type") == "LoadBalancer"
    _validate_source_ranges(service, old, errors)
    allocate = spec.get("allocateLoadBalancerNodePorts")
    if allocate is not None and not is_balancer:
        errors.append(forbidden_field("spec.allocateLoadBalancerNodePorts", FOR_BALANCERS))
    if allocate is None and is_balancer:
        errors.append(required("allocateLoadBalancerNodePorts"))
    _validate_balancer_class(spec, None, errors)
    _validate_traffic(service, errors)
    return errors


def _validate_type(service: Object, errors: Errors) -> None:
    spec = service["spec"]
    kind = spec.get("type")
    if not spec.get("ports") and not is_headless(service) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and is_headless(service):
        detail = f"may not be set to 'None' for {kind} services"
        errors.append(invalid_value("spec.clusterIPs[0]", spec["clusterIPs"][0], detail))
    if kind == "ExternalName":
        errors.extend(
            forbidden_field(f"spec.{field}", "may not be set for ExternalName services")
            for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
            if spec.get(field)
        )
        name = spec.get("externalName", "").removesuffix(".")
        validate_required_as(dns1123_subdomain, name, "spec.externalName", errors)


# --- ports ----------------------------------------------------------------------------------------


def _validate_port(
    port: Object, names: set[str], needs_name: bool, path: str, errors: Errors
) -> None:
    if name := port.get("name", ""):
        validate_as(dns1123_label, name, f"{path}.name", errors)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    elif needs_name:
        errors.append(required(f"{path}.name"))

    number = port.get("port", 0)
    target = port.get("targetPort", 0)
    validate_as(port_number, number, f"{path}.port", errors)
    validate_choice(port.get("protocol", ""), PROTOCOLS, f"{path}.protocol", errors)
    validate_as(port_number_or_name, target, f"{path}.targetPort", errors)
    protocol = port.get("appProtocol")
    if protocol is not None:
        validate_as(label_key, protocol, f"{path}.appProtocol", errors)


def _validate_port_numbers(spec: Object, ports: list[Object], errors: Errors) -> None:
    if spec.get("type") == "ClusterIP":
        errors.extend(
            forbidden_field(
                f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'"
            )
            for index, port in enumerate(ports)
            if port.get("nodePort")
        )

    node_ports = [(port.get("protocol", ""), port.get("nodePort", 0)) for port in ports]
    for index, (protocol, number) in enumerate(node_ports):
        if number and (protocol, number) in node_ports[:index]:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", number))
    own_ports = [(port.get("protocol", ""), port.get("port", 0)) for port in ports]
    for index, (protocol, number) in enumerate(own_ports):
        if (protocol, number) in own_ports[:index]:
            shown = go_view("core.ServicePort", {"protocol": protocol, "port": number})
            errors.append(duplicate(f"spec.ports[{index}]", shown))


def _validate_affinity(spec: Object, errors: Errors) -> None:
    affinity = spec.get("sessionAffinity", "")
    config = spec.get("sessionAffinityConfig")
    validate_choice(affinity, ("ClientIP", "None"), "spec.sessionAffinity", errors)
    path = "spec.sessionAffinityConfig"
    if affinity == "None" and config is not None:
        errors.append(forbidden_field(path, "must not be set when session affinity is None"))
    if affinity != "ClientIP":
        return
    seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is None:
        errors.append(required(path, "when session affinity type is ClientIP"))
    elif not 0 < seconds <= ONE_DAY:
        detail = f"must be greater than 0 and less than {ONE_DAY}"
        errors.append(invalid_value(f"{path}.clientIP.timeoutSeconds", seconds, detail))


# --- addresses ------------------------------------------------------------------------------------


def validate_cluster_ips(service: Object, old: Object | None) -> list[FieldError]:
    """Validate ``clusterIP``, ``clusterIPs`` and ``ipFamilies``
    (``ValidateServiceClusterIPsRelatedFields``)."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return []
    errors: Errors = []
    ips = nested_list(spec, "clusterIPs")
    families = nested_list(spec, "ipFamilies")
    _validate_first_ip(spec.get("clusterIP", ""), ips, errors)
    _validate_families(families, errors)
    validate_optional_choice(
        spec.get("ipFamilyPolicy"), FAMILY_POLICIES, "spec.ipFamilyPolicy", errors
    )
    old_ips = nested_list(old or {}, "spec", "clusterIPs")
    format_errors = _format_errors(ips, old_ips)
    errors += format_errors
    if len(ips) > 2:
        errors.append(invalid_value("spec.clusterIPs", ips, "may only hold up to 2 values"))
    if format_errors:
        return errors
    if not have_families_of_their_own(ips):
        detail = "may specify no more than one IP for each IP family"
        errors.append(invalid_value("spec.clusterIPs", ips, detail))

    if not is_headless(service):
        for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
            if family in ("IPv4", "IPv6") and (family == "IPv6") != is_ipv6(ip):
                article = "an IPv4" if family == "IPv4" else "an IPv6"
                detail = f"expected {article} value as indicated by `ipFamilies[{index}]`"
                errors.append(invalid_value(f"spec.clusterIPs[{index}]", ip, detail))

    return errors


def _validate_first_ip(first_ip: str, ips: list[str], errors: Errors) -> None:
    """Require that ``clusterIP`` is the first of ``clusterIPs``."""
    path = "spec.clusterIPs"
    if first_ip and not ips:
        errors.append(required(path))
    elif first_ip and ips[0] != first_ip:
        errors.append(invalid_value(path, ips, "first value must match `clusterIP`"))
    elif not first_ip and ips:
        errors.append(invalid_value(path, ips, "must be empty when `clusterIP` is not specified"))


def _validate_families(families: list[str], errors: Errors) -> None:
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in ("IPv4", "IPv6"):
            errors.append(not_supported(path, family, ("IPv4", "IPv6")))
        if family in families[:index]:
            errors.append(duplicate(path, family))


def _format_errors(ips: list[str], old_ips: list[str]) -> Errors:
    """Return the errors of addresses that are new; a headless Service has ``None`` alone."""
    errors: Errors = []
    for index, ip in enumerate(ips):
        if index == 0 and ip == "None":
            if len(ips) > 1:
                detail = "'None' must be the first and only value"
                errors.append(invalid_value("spec.clusterIPs", ips, detail))
        elif ip not in old_ips:
            validate_ip(ip, f"spec.clusterIPs[{index}]", errors)
    return errors


def validate_endpoint_ip(ip: str, path: str, errors: Errors) -> None:
    """Require an address that other hosts can reach."""
    import ipaddress

    try:
        parsed = ipaddress.ip_address(without_leading_zeros(ip) or ip)
    except ValueError:
        errors.append(invalid_value(path, ip, "must be a valid IP address"))
        return

    is_link_local_multicast = ip.startswith("224.0.0.") or ip.lower().startswith("ff02:")
    for holds, detail in (
        (parsed.is_unspecified, f"may not be unspecified ({ip})"),
        (parsed.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (parsed.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            is_link_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ):
        if holds:
            errors.append(invalid_value(path, ip, detail))


# --- load balancers and traffic -------------------------------------------------------------------


def _validate_source_ranges(service: Object, old: Object | None, errors: Errors) -> None:
    spec = service["spec"]
    annotations = annotations_of(service)

    ranges = nested_list(spec, "loadBalancerSourceRanges")
    annotation = annotations.get(SOURCE_RANGES)
    if ranges:
        path = "spec.LoadBalancerSourceRanges"  # upstream's spelling
    elif annotation is not None:
        path = f"metadata.annotations[{SOURCE_RANGES}]"
    else:
        return

    if spec.get("type") != "LoadBalancer":
        errors.append(forbidden_field(path, FOR_BALANCERS))

    if ranges:
        old_spec = (old or {"spec": {}})["spec"]
        old_ranges = [
            network.strip() for network in nested_list(old_spec, "loadBalancerSourceRanges")
        ]
        for index, value in enumerate(ranges):
            if value.strip() not in old_ranges:
                validate_cidr(value.strip(), f"{path}[{index}]", errors)
    elif annotation and annotation.strip():
        if old is not None and annotations_of(old).get(SOURCE_RANGES) == annotation:
            return
        for value in annotation.split(","):
            validate_cidr(value.strip(), path, errors)


def _validate_balancer_class(spec: Object, old_spec: Object | None, errors: Errors) -> None:
    path = "spec.loadBalancerClass"
    name = spec.get("loadBalancerClass")
    if spec.get("type") != "LoadBalancer":
        if name is not None:
            errors.append(forbidden_field(path, FOR_BALANCERS))
        return
    if (
        old_spec is not None
        and old_spec.get("type") == "LoadBalancer"
        and old_spec.get("loadBalancerClass") != name
    ):
        errors.append(invalid_value(path, name, IMMUTABLE_ONCE_SET))
    if name is not None:
        validate_as(label_key, name, path, errors)


def _validate_traffic(service: Object, errors: Errors) -> None:
    spec = service["spec"]
    external = spec.get("externalTrafficPolicy", "")
    at = "spec.externalTrafficPolicy"
    if is_externally_accessible(spec):
        validate_choice(external, ("Cluster", "Local"), at, errors)
    elif external:
        errors.append(
            invalid_value(at, external, "may only be set for externally-accessible services")
        )

    port = spec.get("healthCheckNodePort", 0)
    at = "spec.healthCheckNodePort"
    if not needs_health_check(service):
        if port:
            detail = (
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` "
                "is 'Local'"
            )
            errors.append(invalid_value(at, port, detail))
    elif not port:
        errors.append(required(at))
    else:
        errors.extend(invalid_value(at, port, detail) for detail in port_number(port))

    internal = spec.get("internalTrafficPolicy")
    if internal is None and spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
        errors.append(required("spec.internalTrafficPolicy"))
    validate_optional_choice(internal, ("Cluster", "Local"), "spec.internalTrafficPolicy", errors)
    validate_optional_choice(
        spec.get("trafficDistribution"), DISTRIBUTIONS, "spec.trafficDistribution", errors
    )


# --- update and status ----------------------------------------------------------------------------


def validate_service_update(service: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    spec = service["spec"]
    old_spec = old["spec"]
    if "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        if not (is_headless(service) and is_headless(old)):
            _validate_cluster_ips_kept(spec, old_spec, errors)
        if not is_headless(service) and not is_headless(old):
            _validate_families_kept(spec, old_spec, errors)
    _validate_balancer_class(spec, old_spec, errors)
    both_checked = needs_health_check(service) and needs_health_check(old)
    if both_checked and spec.get("healthCheckNodePort") != old_spec.get("healthCheckNodePort"):
        errors.append(forbidden_field("spec.healthCheckNodePort", "field is immutable"))
    return errors + validate_service(service, old)


def _validate_cluster_ips_kept(spec: Object, old_spec: Object, errors: Errors) -> None:
    ips = nested_list(spec, "clusterIPs")
    old_ips = nested_list(old_spec, "clusterIPs")
    shown = spec.get("clusterIPs")
    if len(ips) == len(old_ips):
        errors.extend(
            invalid_value(f"spec.clusterIPs[{index}]", shown, IMMUTABLE_ONCE_SET)
            for index, (ip, old_ip) in enumerate(zip(ips, old_ips, strict=True))
            if ip != old_ip
        )
    elif not ips:
        errors.append(
            invalid_value("spec.clusterIPs[0]", shown, "primary clusterIP can not be unset")
        )
    elif old_ips and ips[0] != old_ips[0]:
        errors.append(invalid_value("spec.clusterIPs[0]", shown, IMMUTABLE_ONCE_SET))

    if len(old_ips) > len(ips) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))


def _validate_families_kept(spec: Object, old_spec: Object, errors: Errors) -> None:
    families = nested_list(spec, "ipFamilies")
    old_families = nested_list(old_spec, "ipFamilies")
    at = "spec.ipFamilies[0]"
    if len(families) == len(old_families):
        errors.extend(
            invalid_value(at, families, IMMUTABLE_ONCE_SET)
            for family, old_family in zip(families, old_families, strict=True)
            if family != old_family
        )
        return

    if len(old_families) > len(families) and not spec.get("clusterIPs"):
        errors.append(invalid_value(at, families, "primary ipFamily can not be unset"))
    if old_families and families and families[0] != old_families[0]:
        errors.append(invalid_value(at, spec.get("clusterIPs"), IMMUTABLE_ONCE_SET))
    if len(old_families) > len(families) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))


def validate_service_status(service: Object) -> list[FieldError]:
    errors: Errors = []
    ingresses = nested_list(service, "status", "loadBalancer", "ingress")
    if ingresses and service["spec"].get("type") != "LoadBalancer":
        detail = "may only be used when `spec.type` is 'LoadBalancer'"
        return [forbidden_field("status.loadBalancer.ingress", detail)]

    for index, ingress in enumerate(ingresses):
        path = f"status.loadBalancer.ingress[{index}]"
        ip = ingress.get("ip", "")
        mode = ingress.get("ipMode")
        host = ingress.get("hostname", "")
        if ip:
            validate_ip(ip, f"{path}.ip", errors)
        if ip and mode is None:
            errors.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
        elif ip:
            validate_optional_choice(mode, ("Proxy", "VIP"), f"{path}.ipMode", errors)
        elif mode is not None:
            detail = "may not be specified when `ip` is not set"
            errors.append(forbidden_field(f"{path}.ipMode", detail))
        if host:
            validate_as(dns1123_subdomain, host, f"{path}.hostname", errors)
            if not ip_address(host) or without_leading_zeros(host):
                errors.append(
                    invalid_value(f"{path}.hostname", host, "must be a DNS name, not an IP address")
                )

    return errors


# --- warnings (pkg/api/service/warnings.go) -------------------------------------------------------


def service_warnings(service: Object) -> list[str]:
    spec = service["spec"]
    warnings = []
    external_ips = nested_list(spec, "externalIPs")
    kind = spec.get("type")
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"

    if TOPOLOGY_HINTS in annotations_of(service):
        warnings.append(
            f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
        )

    if not headless and kind != "ExternalName":
        for index, ip in enumerate(nested_list(spec, "clusterIPs")):
            warnings += ip_warnings(ip, f"spec.clusterIPs[{index}]")

    if headless:
        ignored = (
            ("spec.loadBalancerIP", spec.get("loadBalancerIP")),
            ("spec.externalIPs", external_ips),
            ("spec.SessionAffinity", spec.get("sessionAffinity") != "None"),
        )
        warnings += [
            f"{field} is ignored for headless services" for field, is_set in ignored if is_set
        ]

    for index, ip in enumerate(external_ips):
        warnings += ip_warnings(ip, f"spec.externalIPs[{index}]")
    if spec.get("loadBalancerIP"):
        warnings += ip_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, network in enumerate(nested_list(spec, "loadBalancerSourceRanges")):
        warnings += cidr_warnings(network, f"spec.loadBalancerSourceRanges[{index}]")

    if external_ips and not headless and kind != "ExternalName":
        warnings.append(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        )

    if kind == "ExternalName" and external_ips:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')

    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append(
            'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
        )

    return warnings
