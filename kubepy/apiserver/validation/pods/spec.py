"""The spec of a pod or of a pod template, in upstream's order of checks (``ValidatePodSpec``)."""

from __future__ import annotations

from functools import lru_cache

from kubepy.api.errors import forbidden_field, invalid_value, required, too_long
from kubepy.api.meta import Object
from kubepy.api.objects.pods import containers_with_paths
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.apiserver.validation.fields import Errors, validate_choice, validate_format, validate_range
from kubepy.apiserver.validation.formats import validate_ip
from kubepy.apiserver.validation.labels import label_key, validate_labels
from kubepy.apiserver.validation.pods import scheduling, security
from kubepy.apiserver.validation.pods.containers import (
    PodContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from kubepy.apiserver.validation.pods.env import validate_file_key_volumes
from kubepy.apiserver.validation.pods.options import PodOptions
from kubepy.apiserver.validation.pods.volumes import validate_volumes
from kubepy.apiserver.validation.resources import validate_resource_requirements

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
# Names in a spec that many pods share are checked once.
_subdomain = lru_cache(maxsize=1024)(dns1123_subdomain)


def validate_pod_spec(spec: Object, pod_name: str, options: PodOptions, path: str, errors: Errors) -> None:
    """``pod_name`` is "" for a template."""
    context = _validate_volumes_and_claims(spec, pod_name, options, path, errors)
    validate_containers(context, f"{path}.containers", errors)
    if spec.get("initContainers"):
        validate_init_containers(context, f"{path}.initContainers", errors)
    if spec.get("ephemeralContainers"):
        validate_ephemeral_containers(context, f"{path}.ephemeralContainers", errors)
    if spec.get("resources") is not None:
        _validate_pod_resources(context, path, errors)
    _validate_policies(spec, options, path, errors)
    _validate_placement(spec, options, path, errors)
    _validate_names(spec, path, errors)
    _validate_last(spec, path, errors)


def _validate_volumes_and_claims(spec: Object, pod_name: str, options: PodOptions, path: str,
                                 errors: Errors) -> PodContext:
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = spec.get("volumes")
    good = validate_volumes(volumes, pod_name, options, f"{path}.volumes", errors) if volumes else {}
    claims = spec.get("resourceClaims") or []
    if claims:
        _validate_resource_claims(claims, f"{path}.resourceClaims", errors)
    return PodContext(spec, good, [one["name"] for one in claims if one.get("name")], options)


def _validate_resource_claims(claims: list[Object], path: str, errors: Errors) -> None:
    from kubepy.api.errors import duplicate
    from kubepy.apiserver.validation.goview import go_view

    seen: set[str] = set()
    for index, claim in enumerate(claims):
        name, at = claim.get("name", ""), f"{path}[{index}]"
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in seen:
            errors.append(duplicate(f"{at}.name", name))
        else:
            validate_format(name, dns1123_label(name), f"{at}.name", errors)
            seen.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(given) != 1:
            why = ("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified" if given
                   else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
            errors.append(invalid_value(at, go_view("core.PodResourceClaim", claim), why))
        for field in given:
            validate_format(claim[field], dns1123_subdomain(claim[field]), f"{at}.{field}", errors)


def _validate_policies(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    if spec.get("hostNetwork"):
        _validate_host_network_ports(spec, options, path, errors)
    validate_choice(spec.get("restartPolicy", ""), RESTART_POLICIES, f"{path}.restartPolicy", errors)
    validate_choice(spec.get("dnsPolicy", ""), DNS_POLICIES, f"{path}.dnsPolicy", errors)
    if selector := spec.get("nodeSelector"):
        validate_labels(selector, f"{path}.nodeSelector", errors)
    security.validate_pod_security_context(spec, f"{path}.securityContext", errors,
                                           allow_namespaced_sysctls=options.allow_namespaced_sysctls)


def _validate_host_network_ports(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host, inside = port.get("hostPort", 0), port.get("containerPort", 0)
            if (options.resource_is_pod or host) and host != inside:
                at = f"{path}.containers[{index}].ports[{position}].hostPort"
                errors.append(invalid_value(at, host, "must match `containerPort` when `hostNetwork` is true"))


def _validate_placement(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    if affinity := spec.get("affinity"):
        scheduling.validate_affinity(affinity, options, f"{path}.affinity", errors)
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        _validate_dns_config(spec, f"{path}.dnsConfig", errors)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        condition = gate.get("conditionType", "")
        validate_format(condition, label_key(condition), f"{path}.readinessGates[{index}].conditionType", errors)
    _validate_scheduling_gates(spec.get("schedulingGates") or (), f"{path}.schedulingGates", errors)
    if constraints := spec.get("topologySpreadConstraints"):
        scheduling.validate_topology_spread(constraints, options, f"{path}.topologySpreadConstraints", errors)
    security.validate_host_process(spec, path, errors)
    if spec.get("hostUsers") is False:
        _validate_user_namespace(spec, options, path, errors)
    if (hostname := spec.get("hostnameOverride")) is not None:
        _validate_hostname_override(hostname, spec, path, errors)


def _validate_scheduling_gates(gates: list[Object] | tuple[()], path: str, errors: Errors) -> None:
    from kubepy.api.errors import duplicate

    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        validate_format(name, label_key(name), f"{path}[{index}]", errors)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)


def _validate_user_namespace(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    why = "when `hostUsers` is false"
    for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            errors.append(forbidden_field(f"{path}.{shown}", why))
    if options.allow_volume_devices_in_user_namespace:
        return
    for container, at in containers_with_paths(spec, path):
        if container.get("volumeDevices"):
            errors.append(forbidden_field(f"{at}.volumeDevices", why))


def _validate_hostname_override(hostname: str, spec: Object, path: str, errors: Errors) -> None:
    at = f"{path}.hostnameOverride"
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            errors.append(forbidden_field(at, f"may not be specified when {field} is true"))
    if len(hostname.encode()) > 64:
        errors.append(too_long(at, 64))
    validate_format(hostname, dns1123_subdomain(hostname), at, errors)


def _validate_dns_config(spec: Object, path: str, errors: Errors) -> None:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and not (config or {}).get("nameservers"):
        if config is None:
            errors.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
        else:
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.nameservers", why))
        return
    config = config or {}
    _validate_nameservers(config.get("nameservers") or [], f"{path}.nameservers", errors)
    _validate_searches(config.get("searches") or [], f"{path}.searches", errors)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))


def _validate_nameservers(servers: list[str], path: str, errors: Errors) -> None:
    if len(servers) > 3:
        errors.append(invalid_value(path, servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        validate_ip(server, f"{path}[{index}]", errors)


def _validate_searches(searches: list[str], path: str, errors: Errors) -> None:
    from kubepy.apiserver.validation.formats import dns1123_subdomain_with_underscore

    if len(searches) > 32:
        errors.append(invalid_value(path, searches, "must not have more than 32 search paths"))
    if len(" ".join(searches).encode()) > 2048:
        why = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid_value(path, searches, why))
    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            validate_format(name, dns1123_subdomain_with_underscore(name), f"{path}[{index}]", errors)


def _validate_names(spec: Object, path: str, errors: Errors) -> None:
    for field in ("serviceAccountName", "nodeName"):
        if name := spec.get(field):
            validate_format(name, _subdomain(name), f"{path}.{field}", errors)
    validate_range(spec.get("activeDeadlineSeconds"), 1, 2**31 - 1, f"{path}.activeDeadlineSeconds", errors)
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            validate_format(name, dns1123_label(name), f"{path}.{field}", errors)
    if tolerations := spec.get("tolerations"):
        scheduling.validate_tolerations(tolerations, f"{path}.tolerations", errors)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        validate_ip(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip", errors)
        for position, name in enumerate(alias.get("hostnames") or ()):
            validate_format(name, dns1123_subdomain(name), f"{path}.hostAliases[{index}].hostnames[{position}]", errors)
    if name := spec.get("priorityClassName"):
        validate_format(name, _subdomain(name), f"{path}.priorityClassName", errors)
    if (name := spec.get("runtimeClassName")) is not None:
        validate_format(name, _subdomain(name), f"{path}.runtimeClassName", errors)


def _validate_last(spec: Object, path: str, errors: Errors) -> None:
    if (policy := spec.get("preemptionPolicy")) is not None:
        validate_choice(policy, PREEMPTION_POLICIES, f"{path}.preemptionPolicy", errors)
    if (overhead := spec.get("overhead")) is not None:
        validate_resource_requirements({"limits": overhead}, [], f"{path}.overhead", errors)
    if spec.get("os") is not None:
        security.validate_os(spec, path, errors)
    for container, at in containers_with_paths(spec, path):
        if container.get("env"):
            volumes = {one.get("name", ""): one for one in spec.get("volumes") or ()}
            validate_file_key_volumes(container, volumes, at, errors)


def _validate_pod_resources(context: PodContext, path: str, errors: Errors) -> None:
    from kubepy.apiserver.validation.pods.resources import validate_pod_resources

    validate_pod_resources(context.spec, context.claim_names, f"{path}.resources", errors)
