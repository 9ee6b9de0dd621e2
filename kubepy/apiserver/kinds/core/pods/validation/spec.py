"""PodSpecs and pod templates (``ValidatePodSpec``, ``ValidatePodTemplateSpec``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kubepy.api.meta import Object, spec_of
from kubepy.api.objects.pods import containers_with_paths
from kubepy.api.selectors import LabelSelector
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.apiserver.kinds.core.pods.validation import scheduling, security
from kubepy.apiserver.kinds.core.pods.validation.containers import (
    PodContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_pod_resources,
)
from kubepy.apiserver.kinds.core.pods.validation.env import validate_file_key_volumes
from kubepy.apiserver.kinds.core.pods.validation.options import (
    DELETION_COST,
    PodOptions,
    is_deletion_cost,
)
from kubepy.apiserver.kinds.core.pods.validation.volumes import validate_volumes
from kubepy.apiserver.validation.fields import (
    Errors,
    go_view,
    label_key,
    validate_as,
    validate_choice,
    validate_labels,
    validate_local_descending_path,
    validate_range,
)
from kubepy.apiserver.validation.formats import dns1123_subdomain_with_underscore, validate_ip
from kubepy.apiserver.validation.metadata import validate_annotations
from kubepy.apiserver.validation.resources import validate_resource_requirements
from kubepy.quoting import quote

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
# Names in a spec that many pods share are checked once.
_subdomain = lru_cache(maxsize=1024)(dns1123_subdomain)


def validate_pod_spec(
    spec: Object, pod_name: str, options: PodOptions, path: str, errors: Errors
) -> None:
    """Validate the spec of a pod, or of a template, for which ``pod_name`` is ""."""
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = spec.get("volumes")
    valid_volumes: dict[str, Object] = {}
    if volumes:
        valid_volumes = validate_volumes(volumes, pod_name, options, f"{path}.volumes", errors)
    claims = spec.get("resourceClaims") or []
    if claims:
        _validate_resource_claims(claims, f"{path}.resourceClaims", errors)
    claim_names = [claim["name"] for claim in claims if claim.get("name")]
    context = PodContext(spec, valid_volumes, claim_names, options)
    validate_containers(context, f"{path}.containers", errors)
    if spec.get("initContainers"):
        validate_init_containers(context, f"{path}.initContainers", errors)
    if spec.get("ephemeralContainers"):
        validate_ephemeral_containers(context, f"{path}.ephemeralContainers", errors)
    if spec.get("resources") is not None:
        validate_pod_resources(context.spec, context.claim_names, f"{path}.resources", errors)
    _validate_policies(spec, options, path, errors)
    _validate_placement(spec, options, path, errors)
    _validate_names(spec, path, errors)
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        validate_choice(policy, PREEMPTION_POLICIES, f"{path}.preemptionPolicy", errors)
    overhead = spec.get("overhead")
    if overhead is not None:
        validate_resource_requirements({"limits": overhead}, [], f"{path}.overhead", errors)
    if spec.get("os") is not None:
        security.validate_os(spec, path, errors)

    for container, at in containers_with_paths(spec, path):
        if container.get("env"):
            volumes_by_name = {volume.get("name", ""): volume for volume in volumes or ()}
            validate_file_key_volumes(container, volumes_by_name, at, errors)


def _validate_resource_claims(claims: list[Object], path: str, errors: Errors) -> None:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        name = claim.get("name", "")
        at = f"{path}[{index}]"
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in names:
            errors.append(duplicate(f"{at}.name", name))
        else:
            validate_as(dns1123_label, name, f"{at}.name", errors)
            names.add(name)
        fields = [
            field
            for field in ("resourceClaimName", "resourceClaimTemplateName")
            if claim.get(field) is not None
        ]
        if len(fields) != 1:
            if fields:
                detail = (
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` "
                    "may be specified"
                )
            else:
                detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid_value(at, go_view("core.PodResourceClaim", claim), detail))
        for field in fields:
            validate_as(dns1123_subdomain, claim[field], f"{at}.{field}", errors)


def _validate_policies(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    if spec.get("hostNetwork"):
        _validate_ports_of_host(spec, options, path, errors)
    validate_choice(
        spec.get("restartPolicy", ""), RESTART_POLICIES, f"{path}.restartPolicy", errors
    )
    validate_choice(spec.get("dnsPolicy", ""), DNS_POLICIES, f"{path}.dnsPolicy", errors)
    if selector := spec.get("nodeSelector"):
        validate_labels(selector, f"{path}.nodeSelector", errors)
    security.validate_pod_security_context(
        spec,
        f"{path}.securityContext",
        errors,
        allow_namespaced_sysctls=options.allow_namespaced_sysctls,
    )


def _validate_ports_of_host(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    """Require that the ports of a pod in the host's network are those of the host."""
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            is_defaulted = options.resource_is_pod or host_port
            if is_defaulted and host_port != port.get("containerPort", 0):
                at = f"{path}.containers[{index}].ports[{position}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid_value(at, host_port, detail))


def _validate_placement(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    if affinity := spec.get("affinity"):
        scheduling.validate_affinity(affinity, options, f"{path}.affinity", errors)
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        _validate_dns_config(spec, f"{path}.dnsConfig", errors)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        condition = gate.get("conditionType", "")
        validate_as(label_key, condition, f"{path}.readinessGates[{index}].conditionType", errors)

    gate_names = [gate.get("name", "") for gate in spec.get("schedulingGates") or ()]
    for index, name in enumerate(gate_names):
        validate_as(label_key, name, f"{path}.schedulingGates[{index}]", errors)
        if name in gate_names[:index]:
            errors.append(duplicate(f"{path}.schedulingGates[{index}]", name))

    if constraints := spec.get("topologySpreadConstraints"):
        scheduling.validate_topology_spread(
            constraints, options, f"{path}.topologySpreadConstraints", errors
        )

    security.validate_host_process(spec, path, errors)
    if spec.get("hostUsers") is False:
        _validate_user_namespace(spec, options, path, errors)
    if spec.get("hostnameOverride") is not None:
        _validate_hostname_override(spec, f"{path}.hostnameOverride", errors)


def _validate_user_namespace(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    """Forbid what a pod in a user namespace of its own cannot share with the host."""
    detail = "when `hostUsers` is false"
    for field, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(field):
            errors.append(forbidden_field(f"{path}.{shown}", detail))
    if options.allow_volume_devices_in_user_namespace:
        return
    for container, at in containers_with_paths(spec, path):
        if container.get("volumeDevices"):
            errors.append(forbidden_field(f"{at}.volumeDevices", detail))


def _validate_hostname_override(spec: Object, path: str, errors: Errors) -> None:
    hostname = spec["hostnameOverride"]
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            errors.append(forbidden_field(path, f"may not be specified when {field} is true"))
    if len(hostname.encode()) > 64:
        errors.append(too_long(path, 64))
    validate_as(dns1123_subdomain, hostname, path, errors)


def _validate_dns_config(spec: Object, path: str, errors: Errors) -> None:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and not (config or {}).get("nameservers"):
        if config is None:
            errors.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
        else:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.nameservers", detail))
        return

    config = config or {}

    servers = config.get("nameservers") or []
    if len(servers) > 3:
        errors.append(
            invalid_value(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
        )

    for position, server in enumerate(servers):
        validate_ip(server, f"{path}.nameservers[{position}]", errors)

    searches = config.get("searches") or []
    if len(searches) > 32:
        errors.append(
            invalid_value(f"{path}.searches", searches, "must not have more than 32 search paths")
        )

    if len(" ".join(searches).encode()) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid_value(f"{path}.searches", searches, detail))

    for index, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            validate_as(
                dns1123_subdomain_with_underscore, name, f"{path}.searches[{index}]", errors
            )

    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))


def _validate_names(spec: Object, path: str, errors: Errors) -> None:
    for field in ("serviceAccountName", "nodeName"):
        if name := spec.get(field):
            validate_as(_subdomain, name, f"{path}.{field}", errors)
    validate_range(
        spec.get("activeDeadlineSeconds"), 1, 2**31 - 1, f"{path}.activeDeadlineSeconds", errors
    )
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            validate_as(dns1123_label, name, f"{path}.{field}", errors)
    if tolerations := spec.get("tolerations"):
        scheduling.validate_tolerations(tolerations, f"{path}.tolerations", errors)

    for index, alias in enumerate(spec.get("hostAliases") or ()):
        validate_ip(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip", errors)
        for position, name in enumerate(alias.get("hostnames") or ()):
            validate_as(
                dns1123_subdomain,
                name,
                f"{path}.hostAliases[{index}].hostnames[{position}]",
                errors,
            )

    if name := spec.get("priorityClassName"):
        validate_as(_subdomain, name, f"{path}.priorityClassName", errors)
    name = spec.get("runtimeClassName")
    if name is not None:
        validate_as(_subdomain, name, f"{path}.runtimeClassName", errors)


# --- pod templates, the same for all workload kinds -----------------------------------------------


def validate_pod_template(template: Object, options: PodOptions, path: str, errors: Errors) -> None:
    metadata = template.get("metadata") or {}
    spec = spec_of(template)
    annotations = metadata.get("annotations")
    validate_labels(metadata.get("labels"), f"{path}.labels", errors)
    if annotations:
        errors.extend(validate_annotations(annotations, f"{path}.annotations"))
        validate_pod_annotations(annotations, spec, options, f"{path}.annotations", errors)
    validate_pod_spec(spec, "", options, f"{path}.spec", errors)
    validate_profiles_match(annotations, spec, f"{path}.spec", errors)
    if spec.get("ephemeralContainers"):
        errors.append(
            forbidden_field(
                f"{path}.spec.ephemeralContainers",
                "ephemeral containers not allowed in pod template",
            )
        )


def template_labels(template: Object) -> Any:
    """Return the labels as Go holds them: None for none."""
    return (template.get("metadata") or {}).get("labels")


def validate_selected(template: Object, selector: LabelSelector, path: str, errors: Errors) -> None:
    """Require that a workload selects its own pods."""
    labels = template_labels(template)
    if not selector.matches(labels or {}):
        errors.append(
            invalid_value(
                f"{path}.metadata.labels", labels, "`selector` does not match template `labels`"
            )
        )


def validate_restart_policy(
    template: Object, allowed: tuple[str, ...], path: str, errors: Errors
) -> None:
    policy = spec_of(template).get("restartPolicy", "")
    if policy not in allowed:
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, allowed))


def forbid_active_deadline(template: Object, kind: str, path: str, errors: Errors) -> None:
    if spec_of(template).get("activeDeadlineSeconds") is not None:
        errors.append(
            forbidden_field(
                f"{path}.spec.activeDeadlineSeconds",
                f"activeDeadlineSeconds in {kind} is not Supported",
            )
        )


# --- annotations (ValidatePodSpecificAnnotations) -------------------------------------------------


MIRROR = "kubernetes.io/config.mirror"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
RUNTIME_DEFAULTS = ("runtime/default", "docker/default")
MUST_MATCH = "type in annotation and field must match"


def validate_pod_annotations(
    annotations: Mapping[str, str] | None,
    spec: Object,
    options: PodOptions,
    path: str,
    errors: Errors,
) -> None:
    if not annotations:
        return
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid_value(f"{path}[{MIRROR}]", annotations[MIRROR], detail))

    if not options.allow_invalid_deletion_cost and not is_deletion_cost(dict(annotations)):
        errors.append(
            invalid_value(
                f"{path}[{DELETION_COST}]", annotations[DELETION_COST], "must be a 32bit integer"
            )
        )

    for key, profile in sorted(annotations.items()):
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _validate_seccomp_annotation(profile, f"{path}.{key}", errors)

    for key, profile in sorted(annotations.items()):
        if key.startswith(APP_ARMOR):
            container_name = key.removeprefix(APP_ARMOR)
            _validate_app_armor_annotation(container_name, profile, spec, f"{path}[{key}]", errors)


def _validate_seccomp_annotation(profile: str, path: str, errors: Errors) -> None:
    if profile.startswith("localhost/"):
        validate_local_descending_path(profile.removeprefix("localhost/"), path, errors)
    elif profile not in (*RUNTIME_DEFAULTS, "unconfined"):
        errors.append(invalid_value(path, profile, "must be a valid seccomp profile"))


def _validate_app_armor_annotation(
    container_name: str, profile: str, spec: Object, path: str, errors: Errors
) -> None:
    names = [container.get("name") for container, _ in containers_with_paths(spec, "")]
    if container_name not in names:
        errors.append(invalid_value(path, container_name, "container not found"))
    is_known = profile in ("", "runtime/default", "unconfined")
    if not is_known and not profile.startswith("localhost/"):
        detail = f"invalid AppArmor profile name: {quote(profile)}"
        errors.append(invalid_value(path, profile, detail))


def validate_profiles_match(
    annotations: Mapping[str, str] | None, spec: Object, path: str, errors: Errors
) -> None:
    """Require that annotations and fields for the same profile do not contradict each other."""
    if not annotations or not any("security." in key for key in annotations):
        return
    pod_context = spec.get("securityContext") or {}
    errors.extend(
        _contradiction(
            annotations.get(SECCOMP_POD),
            pod_context.get("seccompProfile"),
            "seccomp",
            f"{path}.securityContext.seccompProfile",
        )
    )

    containers = [
        (container, at, container.get("securityContext") or {})
        for container, at in containers_with_paths(spec, path)
    ]
    for container, at, context in containers:
        annotation = annotations.get(SECCOMP_CONTAINER + container.get("name", ""))
        errors.extend(
            _contradiction(
                annotation,
                context.get("seccompProfile"),
                "seccomp",
                f"{at}.securityContext.seccompProfile",
            )
        )

    if (spec.get("os") or {}).get("name") == "windows":
        return

    for container, at, context in containers:
        annotation = annotations.get(APP_ARMOR + container.get("name", ""))
        profile = context.get("appArmorProfile") or pod_context.get("appArmorProfile")
        errors.extend(
            _contradiction(annotation, profile, "apparmor", f"{at}.securityContext.appArmorProfile")
        )


def _contradiction(
    annotation: str | None, profile: Object | None, name: str, path: str
) -> list[FieldError]:
    if annotation is None or profile is None:
        return []

    match profile.get("type"):
        case "Unconfined":
            same = annotation == "unconfined"
        case "RuntimeDefault":
            same = annotation == "runtime/default"
            if name == "seccomp":
                same = annotation in RUNTIME_DEFAULTS
        case "Localhost":
            same = annotation.startswith("localhost/")
            if same and annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
                return [
                    forbidden_field(
                        f"{path}.localhostProfile",
                        f"{name} profile in annotation and field must match",
                    )
                ]
        case _:
            same = True

    if same:
        return []
    return [forbidden_field(f"{path}.type", f"{name} {MUST_MATCH}")]


def validate_annotation_changes(
    new: Mapping[str, str], old: Mapping[str, str], path: str, errors: Errors
) -> None:
    """Refuse changes of annotations that are for creation only."""
    for key in sorted(old):
        if new.get(key) != old[key]:
            _forbid(key, "remove or update", path, errors)
    for key in sorted(new):
        if key not in old:
            _forbid(key, "add", path, errors)


def _forbid(key: str, verb: str, path: str, errors: Errors) -> None:
    if key.startswith(APP_ARMOR):
        errors.append(forbidden_field(f"{path}[{key}]", f"may not {verb} AppArmor annotations"))
    if key == MIRROR:
        errors.append(forbidden_field(f"{path}[{key}]", f"may not {verb} mirror pod annotation"))
