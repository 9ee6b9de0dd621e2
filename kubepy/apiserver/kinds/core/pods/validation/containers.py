"""Containers, their probes, environment and resources
(``pkg/apis/core/validation/validation.go``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubepy.api.errors import (
    duplicate,
    field_not_found,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_many,
)
from kubepy.api.meta import Object, nested_map
from kubepy.api.objects.pods import aggregate
from kubepy.api.values.names import dns1123_label
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.kinds.core.pods.validation import env
from kubepy.apiserver.kinds.core.pods.validation.options import PodOptions
from kubepy.apiserver.kinds.core.pods.validation.security import validate_security_context
from kubepy.apiserver.validation.fields import (
    Errors,
    validate_as,
    validate_choice,
    validate_format,
    validate_local_descending_path,
    validate_nonnegative,
    validate_optional_choice,
    validate_required_as,
)
from kubepy.apiserver.validation.formats import (
    http_header_name,
    port_name,
    port_number,
    port_number_or_name,
)
from kubepy.apiserver.validation.resources import (
    is_huge_page,
    validate_pod_resource_name,
    validate_resource_requirements,
)

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
RESTART_ACTIONS = ("Restart", "RestartAllContainers")
EPHEMERAL_FORBIDDEN = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
ONLY_FOR_SIDECARS = "may not be set for init containers without restartPolicy=Always"


class PodContext(NamedTuple):
    """The pod of a container. ``volumes`` are the volumes without errors, by name."""

    spec: Object
    volumes: dict[str, Object]
    claim_names: list[str]
    options: PodOptions

    @property
    def grace_period(self) -> int | None:
        period = self.spec.get("terminationGracePeriodSeconds")
        return None if period is None else int(period)


def validate_containers(context: PodContext, path: str, errors: Errors) -> None:
    containers = context.spec.get("containers")
    if not containers:
        errors.append(required(path))
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        name = container.get("name", "")
        _validate_common(container, context, at, errors)
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        validate_lifecycle_and_probes(container, context.grace_period, at, errors)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _validate_restart_policy(container, at, errors)

    _validate_host_ports(containers, path, errors)


def _validate_common(container: Object, context: PodContext, path: str, errors: Errors) -> None:
    """Validate the fields that containers of all kinds have (``validateContainerCommon``)."""
    name = container.get("name")
    validate_required_as(dns1123_label, name, f"{path}.name", errors)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    validate_choice(
        container.get("terminationMessagePolicy", ""),
        MESSAGE_POLICIES,
        f"{path}.terminationMessagePolicy",
        errors,
    )
    if ports := container.get("ports"):
        validate_ports(ports, f"{path}.ports", errors)
    if variables := container.get("env"):
        env.validate_env(variables, f"{path}.env", errors)
    if sources := container.get("envFrom"):
        env.validate_env_from(sources, f"{path}.envFrom", errors)
    validate_mounts_and_devices(container, context.volumes, path, errors)
    validate_choice(
        container.get("imagePullPolicy", ""), PULL_POLICIES, f"{path}.imagePullPolicy", errors
    )

    if resources := container.get("resources"):
        validate_resource_requirements(
            resources,
            context.claim_names,
            f"{path}.resources",
            errors,
            allow_indivisible=context.options.allow_indivisible_huge_pages,
        )

    if policies := container.get("resizePolicy"):
        _validate_resize_policies(
            policies, context.spec.get("restartPolicy", ""), f"{path}.resizePolicy", errors
        )

    if security_context := container.get("securityContext"):
        host_users = context.spec.get("hostUsers") is not False
        validate_security_context(
            security_context, f"{path}.securityContext", errors, host_users=host_users
        )


def _validate_resize_policies(
    policies: list[Object], pod_restart_policy: str, path: str, errors: Errors
) -> None:
    resources = [policy.get("resourceName", "") for policy in policies]
    for index, (resource, policy) in enumerate(zip(resources, policies, strict=True)):
        restart = policy.get("restartPolicy", "")
        if resource in resources[:index]:
            errors.append(duplicate(f"{path}[{index}]", resource))
        validate_choice(resource, ("cpu", "memory"), path, errors)
        validate_choice(restart, ("NotRequired", "RestartContainer"), path, errors)
        if pod_restart_policy == "Never" and restart != "NotRequired":
            errors.append(
                invalid_value(
                    path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
                )
            )


# --- ports ----------------------------------------------------------------------------------------


def validate_ports(ports: list[Object], path: str, errors: Errors) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if port.get("name"):
            name = port["name"]
            complaints = port_name(name)
            validate_format(name, complaints, f"{at}.name", errors)
            if not complaints and name in names:
                errors.append(duplicate(f"{at}.name", name))
            elif not complaints:
                names.add(name)
        container_port = port.get("containerPort", 0)
        host_port = port.get("hostPort", 0)
        if container_port == 0:
            errors.append(required(f"{at}.containerPort"))
        else:
            validate_as(port_number, container_port, f"{at}.containerPort", errors)
        if host_port:
            validate_as(port_number, host_port, f"{at}.hostPort", errors)
        validate_choice(port.get("protocol", ""), PROTOCOLS, f"{at}.protocol", errors)


def _validate_host_ports(containers: list[Object], path: str, errors: Errors) -> None:
    """Refuse two containers with the same port of the node (``checkHostPortConflicts``)."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            address = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if address in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", address))
            taken.add(address)


# --- restart and resize ---------------------------------------------------------------------------


def _validate_restart_policy(container: Object, path: str, errors: Errors) -> None:
    policy = container.get("restartPolicy")
    rules = container.get("restartPolicyRules") or []
    if policy is None and rules:
        errors.append(
            required(
                f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"
            )
        )

    validate_optional_choice(policy, RESTART_POLICIES, f"{path}.restartPolicy", errors)
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))

    for index, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action", "") not in RESTART_ACTIONS:
            errors.append(not_supported(f"{at}.action", rule.get("action", ""), RESTART_ACTIONS))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(required(f"{at}.exitCodes", "must be specified"))
            continue
        operator = codes.get("operator", "")
        if operator not in ("In", "NotIn"):
            errors.append(not_supported(f"{at}.exitCodes.operator", operator, ("In", "NotIn")))
        if len(codes.get("values") or ()) > 255:
            errors.append(too_many(f"{at}.exitCodes.values", len(codes["values"]), 255))


# --- init containers ------------------------------------------------------------------------------


def validate_init_containers(context: PodContext, path: str, errors: Errors) -> None:
    names = {container.get("name", "") for container in context.spec.get("containers") or ()}
    for index, container in enumerate(context.spec.get("initContainers") or ()):
        at = f"{path}[{index}]"
        _validate_common(container, context, at, errors)
        if container.get("restartPolicy") is not None:
            _validate_restart_policy(container, at, errors)
        elif container.get("restartPolicyRules"):
            errors.append(
                required(
                    f"{at}.restartPolicy", "must specify restartPolicy when restart rules are used"
                )
            )
        name = container.get("name", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        _validate_host_ports([container], path, errors)
        if container.get("restartPolicy") == "Always":  # a sidecar
            validate_lifecycle_and_probes(container, context.grace_period, at, errors)
            continue
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(field) is not None:
                errors.append(forbidden_field(f"{at}.{field}", ONLY_FOR_SIDECARS))
        if context.options.allow_restart_container_in_init:
            continue
        for position, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(
                    invalid_value(
                        f"{at}.resizePolicy[{position}].restartPolicy", "RestartContainer", detail
                    )
                )


# --- ephemeral containers -------------------------------------------------------------------------


def validate_ephemeral_containers(context: PodContext, path: str, errors: Errors) -> None:
    spec = context.spec
    others = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]

    targets = {container.get("name", "") for container in others}
    names = set(targets)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}[{index}]"
        _validate_common(container, context, at, errors)
        validate_image_padding(container, at, errors)
        name = container.get("name", "")
        target = container.get("targetContainerName", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        if target and target not in targets:
            errors.append(field_not_found(f"{at}.targetContainerName", target))
        detail = "cannot be set for an Ephemeral Container"
        errors += [
            forbidden_field(f"{at}.{field}", detail)
            for field in EPHEMERAL_FORBIDDEN
            if container.get(field)
        ]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            errors += [
                forbidden_field(f"{at}.volumeMounts[{position}].{field}", detail)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]


def validate_image_padding(container: Object, path: str, errors: Errors) -> None:
    image = container.get("image", "")
    if image != image.strip():
        errors.append(
            invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")
        )


# --- probes and lifecycle handlers ----------------------------------------------------------------


PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
LIFECYCLE_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def validate_lifecycle_and_probes(
    container: Object, grace_period: int | None, path: str, errors: Errors
) -> None:
    """Validate handlers and probes. ``stopSignal`` is dropped earlier: its feature gate is off in
    v1.36."""
    for event in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(event)
        if handler is not None:
            _validate_handler(
                handler, LIFECYCLE_HANDLERS, grace_period, f"{path}.lifecycle.{event}", errors
            )
    for kind in PROBES:
        if container.get(kind) is not None:
            _validate_probe(container[kind], kind, f"{path}.{kind}", errors)


def _validate_probe(probe: Object, kind: str, path: str, errors: Errors) -> None:
    _validate_handler(probe, PROBE_HANDLERS, None, path, errors)
    for count in COUNTS:
        validate_nonnegative(probe.get(count, 0), f"{path}.{count}", errors)
    period = probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        errors.append(
            invalid_value(f"{path}.terminationGracePeriodSeconds", period, "must be greater than 0")
        )

    if kind == "readinessProbe":
        if period is not None:
            detail = "must not be set for readinessProbes"
            errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", period, detail))
    elif probe.get("successThreshold", 0) != 1:
        errors.append(
            invalid_value(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1")
        )


def _validate_handler(
    handler: Object, kinds: tuple[str, ...], grace_period: int | None, path: str, errors: Errors
) -> None:
    present = [kind for kind in kinds if handler.get(kind) is not None]
    if not present:
        errors.append(required(path, "must specify a handler type"))
        return

    action = handler[present[0]]
    at = f"{path}.{present[0]}"
    match present[0]:
        case "exec":
            if not action.get("command"):
                errors.append(required(f"{at}.command"))
        case "httpGet":
            if not action.get("path"):
                errors.append(required(f"{at}.path"))
            _validate_port(action.get("port", 0), f"{at}.port", errors)
            if action.get("scheme", "") not in ("HTTP", "HTTPS"):
                errors.append(
                    not_supported(f"{at}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
                )
            for header in action.get("httpHeaders") or ():
                name = header.get("name", "")
                validate_as(http_header_name, name, f"{at}.httpHeaders", errors)
        case "tcpSocket":
            _validate_port(action.get("port", 0), f"{at}.port", errors)
        case "grpc":
            validate_as(port_number, action.get("port", 0), f"{at}.port", errors)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace_period is not None and not 0 <= seconds <= grace_period:
                detail = (
                    f"must be non-negative and less than terminationGracePeriodSeconds "
                    f"({grace_period})"
                )
                errors.append(invalid_value(at, seconds, detail))

    for kind in present[1:]:
        errors.append(forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type"))


def _validate_port(port: int | str, path: str, errors: Errors) -> None:
    validate_as(port_number_or_name, port, path, errors)


# --- resources of a pod (validatePodResources) ----------------------------------------------------


def validate_pod_resources(spec: Object, claim_names: list[str], path: str, errors: Errors) -> None:
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        errors.append(forbidden_field(path, "may not be set for a windows pod"))
        return

    if resources.get("claims") is not None:
        errors.append(
            forbidden_field(f"{path}.claims", "claims may not be set for Resources at pod-level")
        )

    validate_resource_requirements(
        resources, claim_names, path, errors, validate_name=validate_pod_resource_name
    )
    pod_requests = resources.get("requests") or {}
    pod_limits = resources.get("limits") or {}

    for name, total in aggregate(spec, "requests").items():
        pod_request = pod_requests.get(name)
        if pod_request is not None and total > Quantity.parse(pod_request):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid_value(f"{path}.requests[{name}]", pod_request, detail))

    for name, total in aggregate(spec, "limits").items():
        pod_limit = pod_limits.get(name)
        if not is_huge_page(name) or pod_limit is None:
            continue
        if total > Quantity.parse(pod_limit):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid_value(f"{path}.limits[{name}]", pod_limit, detail))

    for index, container in enumerate(spec.get("containers") or ()):
        limits = nested_map(container, "resources", "limits")
        for name, limit in sorted(limits.items()):
            pod_limit = pod_limits.get(name)
            if pod_limit is not None and Quantity.parse(limit) > Quantity.parse(pod_limit):
                detail = f"must be less than or equal to pod limits of {pod_limit}"
                at = f"{path}.containers[{index}][{name}].limits"
                errors.append(invalid_value(at, limit, detail))


# --- volume mounts and devices (ValidateVolumeMounts, ValidateVolumeDevices) ----------------------


PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_mounts_and_devices(
    container: Object, volumes: dict[str, Object], path: str, errors: Errors
) -> None:
    mounts = container.get("volumeMounts") or ()
    devices = container.get("volumeDevices") or ()
    if not mounts and not devices:
        return
    device_paths = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    mount_paths = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}

    targets: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}.volumeMounts[{index}]"
        name = mount.get("name", "")
        target = mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(field_not_found(f"{at}.name", name))
        if not target:
            errors.append(required(f"{at}.mountPath"))
        if target in targets:
            errors.append(invalid_value(f"{at}.mountPath", target, "must be unique"))
        targets.add(target)
        if name in device_paths:
            errors.append(
                invalid_value(f"{at}.name", name, "must not already exist in volumeDevices")
            )
        if target in device_paths.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(invalid_value(f"{at}.mountPath", target, detail))
        _validate_mount_options(mount, container, index, f"{path}.volumeMounts", errors)

    _validate_devices(devices, mount_paths, volumes, f"{path}.volumeDevices", errors)


def _validate_devices(
    devices: Iterable[Object],
    mount_paths: dict[str, str],
    volumes: dict[str, Object],
    path: str,
    errors: Errors,
) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        at = f"{path}[{index}]"
        target = device.get("devicePath", "")
        _validate_device_name(device.get("name", ""), names, volumes, at, errors)
        if not target:
            errors.append(required(f"{at}.devicePath"))
        if target in paths:
            errors.append(invalid_value(f"{at}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            errors.append(
                invalid_value(f"{at}.devicePath", target, "can not contain backsteps ('..')")
            )
        else:
            paths.add(target)
        if device.get("name", "") in mount_paths:
            errors.append(
                invalid_value(
                    f"{at}.name", device["name"], "must not already exist in volumeMounts"
                )
            )
        if target in mount_paths.values():
            errors.append(
                invalid_value(
                    f"{at}.devicePath", target, "must not already exist as a path in volumeMounts"
                )
            )


def _validate_mount_options(
    mount: Object, container: Object, index: int, path: str, errors: Errors
) -> None:
    """Validate the options of a mount; upstream's errors have no index here:
    ``volumeMounts.subPath``."""
    sub_path = mount.get("subPath")
    expression = mount.get("subPathExpr")
    if sub_path:
        validate_local_descending_path(sub_path, f"{path}.subPath", errors)

    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid_value(f"{path}[{index}].subPathExpr", expression, detail))
        validate_local_descending_path(expression, f"{path}.subPathExpr", errors)

    if mount.get("mountPropagation") is not None:
        propagation = mount["mountPropagation"]
        if propagation not in PROPAGATIONS:
            errors.append(not_supported(f"{path}.mountPropagation", propagation, PROPAGATIONS))
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden_field(f"{path}.mountPropagation", detail))

    if mount.get("recursiveReadOnly") is not None:
        mode = mount["recursiveReadOnly"]
        if mode not in RECURSIVE_READ_ONLY:
            errors.append(not_supported(f"{path}.recursiveReadOnly", mode, RECURSIVE_READ_ONLY))
        elif mode != "Disabled":
            if not mount.get("readOnly"):
                detail = "may only be specified when readOnly is true"
                errors.append(forbidden_field(f"{path}.recursiveReadOnly", detail))
            if mount.get("mountPropagation") not in (None, "None"):
                detail = "may only be specified when mountPropagation is None or not specified"
                errors.append(forbidden_field(f"{path}.recursiveReadOnly", detail))


def _validate_device_name(
    name: str, names: set[str], volumes: dict[str, Object], path: str, errors: Errors
) -> None:
    volume = volumes.get(name)
    if not name:
        errors.append(required(f"{path}.name"))
    if name in names:
        errors.append(invalid_value(f"{path}.name", name, "must be unique"))
    if volume is None:
        errors.append(field_not_found(f"{path}.name", name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        errors.append(invalid_value(f"{path}.name", name, detail))
    if name:
        names.add(name)
