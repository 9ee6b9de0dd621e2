"""Containers, their probes, environment and resources (``pkg/apis/core/validation/validation.go``)."""

from __future__ import annotations

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
from kubepy.api.meta import Object
from kubepy.api.objects.pods import aggregate
from kubepy.api.values.names import dns1123_label
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import (
    NEGATIVE,
    Errors,
    validate_choice,
    validate_format,
    validate_local_descending_path,
    validate_optional_choice,
)
from kubepy.apiserver.validation.formats import http_header_name, port_name, port_number, port_number_or_name
from kubepy.apiserver.validation.pods import env
from kubepy.apiserver.validation.pods.options import PodOptions
from kubepy.apiserver.validation.pods.security import validate_security_context
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
EPHEMERAL_FORBIDDEN = ("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
                       "readinessProbe", "startupProbe", "lifecycle")
ONLY_FOR_SIDECARS = "may not be set for init containers without restartPolicy=Always"


class PodContext(NamedTuple):
    """What the checks of a container need to know of its pod. ``volumes`` maps the good volumes' names to them."""

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
        item_path = f"{path}[{index}]"
        _validate_common(container, context, item_path, errors)
        name = container.get("name", "")
        if name in names:
            errors.append(duplicate(f"{item_path}.name", name))
        names.add(name)
        validate_lifecycle_and_probes(container, context.grace_period, item_path, errors)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _validate_restart_policy(container, item_path, errors)
    _validate_host_ports(containers, path, errors)


def _validate_common(container: Object, context: PodContext, path: str, errors: Errors) -> None:
    """What every kind of container must satisfy (``validateContainerCommon``)."""
    name = container.get("name")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        validate_format(name, dns1123_label(name), f"{path}.name", errors)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    validate_choice(container.get("terminationMessagePolicy", ""), MESSAGE_POLICIES,
                    f"{path}.terminationMessagePolicy", errors)
    if ports := container.get("ports"):
        validate_ports(ports, f"{path}.ports", errors)
    if variables := container.get("env"):
        env.validate_env(variables, f"{path}.env", errors)
    if sources := container.get("envFrom"):
        env.validate_env_from(sources, f"{path}.envFrom", errors)
    validate_mounts_and_devices(container, context.volumes, path, errors)
    validate_choice(container.get("imagePullPolicy", ""), PULL_POLICIES, f"{path}.imagePullPolicy", errors)
    if resources := container.get("resources"):
        validate_resource_requirements(resources, context.claim_names, f"{path}.resources", errors,
                                       allow_indivisible=context.options.allow_indivisible_huge_pages)
    if policies := container.get("resizePolicy"):
        pod_restart_policy = context.spec.get("restartPolicy", "")
        resize_policy_path = f"{path}.resizePolicy"
        seen: set[str] = set()
        for index, policy in enumerate(policies):
            resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
            if resource in seen:
                errors.append(duplicate(f"{resize_policy_path}[{index}]", resource))
            seen.add(resource)
            validate_choice(resource, ("cpu", "memory"), resize_policy_path, errors)
            validate_choice(restart, ("NotRequired", "RestartContainer"), resize_policy_path, errors)
            if pod_restart_policy == "Never" and restart != "NotRequired":
                detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
                errors.append(invalid_value(resize_policy_path, restart, detail))
    if security_context := container.get("securityContext"):
        host_users = context.spec.get("hostUsers") is not False
        validate_security_context(security_context, f"{path}.securityContext", errors, host_users=host_users)


# --- ports --------------------------------------------------------------------------------------------------------


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
        container_port, host_port = port.get("containerPort", 0), port.get("hostPort", 0)
        if container_port == 0:
            errors.append(required(f"{at}.containerPort"))
        else:
            validate_format(container_port, port_number(container_port), f"{at}.containerPort", errors)
        if host_port:
            validate_format(host_port, port_number(host_port), f"{at}.hostPort", errors)
        validate_choice(port.get("protocol", ""), PROTOCOLS, f"{at}.protocol", errors)


def _validate_host_ports(containers: list[Object], path: str, errors: Errors) -> None:
    """No two containers may take the same port of the node (``checkHostPortConflicts``)."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            address = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if address in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", address))
            taken.add(address)


# --- restart and resize -------------------------------------------------------------------------------------------


def _validate_restart_policy(container: Object, path: str, errors: Errors) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None and rules:
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    validate_optional_choice(policy, RESTART_POLICIES, f"{path}.restartPolicy", errors)
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        restart_policy_rule_path = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action", "") not in RESTART_ACTIONS:
            errors.append(not_supported(f"{restart_policy_rule_path}.action", rule.get("action", ""), RESTART_ACTIONS))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(required(f"{restart_policy_rule_path}.exitCodes", "must be specified"))
            continue
        if codes.get("operator", "") not in ("In", "NotIn"):
            errors.append(not_supported(f"{restart_policy_rule_path}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
        if len(codes.get("values") or ()) > 255:
            errors.append(too_many(f"{restart_policy_rule_path}.exitCodes.values", len(codes["values"]), 255))


# --- init containers ----------------------------------------------------------------------------------------------


def validate_init_containers(context: PodContext, path: str, errors: Errors) -> None:
    names = {container.get("name", "") for container in context.spec.get("containers") or ()}
    for index, container in enumerate(context.spec.get("initContainers") or ()):
        at = f"{path}[{index}]"
        _validate_common(container, context, at, errors)
        if container.get("restartPolicy") is not None:
            _validate_restart_policy(container, at, errors)
        elif container.get("restartPolicyRules"):
            errors.append(required(f"{at}.restartPolicy", "must specify restartPolicy when restart rules are used"))
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
                errors.append(invalid_value(f"{at}.resizePolicy[{position}].restartPolicy", "RestartContainer", detail))


# --- ephemeral containers -----------------------------------------------------------------------------------------


def validate_ephemeral_containers(context: PodContext, path: str, errors: Errors) -> None:
    spec = context.spec
    others = {one.get("name", "") for field in ("containers", "initContainers") for one in spec.get(field) or ()}
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}[{index}]"
        _validate_common(container, context, at, errors)
        validate_image_padding(container, at, errors)
        name, target = container.get("name", ""), container.get("targetContainerName", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        if target and target not in others:
            errors.append(field_not_found(f"{at}.targetContainerName", target))
        detail = "cannot be set for an Ephemeral Container"
        found = [forbidden_field(f"{at}.{field}", detail) for field in EPHEMERAL_FORBIDDEN if container.get(field)]
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            found += [forbidden_field(f"{at}.volumeMounts[{index}].{field}", detail)
                      for field in ("subPath", "subPathExpr") if mount.get(field)]
        errors.extend(found)


def validate_image_padding(container: Object, path: str, errors: Errors) -> None:
    image = container.get("image", "")
    if image != image.strip():
        errors.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))


# --- probes and lifecycle handlers ----------------------------------------------------------------------------------


PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
LIFECYCLE_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def validate_lifecycle_and_probes(container: Object, grace_period: int | None, path: str, errors: Errors) -> None:
    """``stopSignal`` is behind a gate that is off in v1.36 and dropped before."""
    for event in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(event)
        if handler is not None:
            _validate_handler(handler, LIFECYCLE_HANDLERS, grace_period, f"{path}.lifecycle.{event}", errors)
    for kind in PROBES:
        if container.get(kind) is not None:
            probe = container[kind]
            item_path = f"{path}.{kind}"
            _validate_handler(probe, PROBE_HANDLERS, None, item_path, errors)
            for count in COUNTS:
                value = probe.get(count, 0)
                if value < 0:
                    errors.append(invalid_value(f"{item_path}.{count}", value, NEGATIVE))
            period = probe.get("terminationGracePeriodSeconds")
            if period is not None and period <= 0:
                errors.append(invalid_value(f"{item_path}.terminationGracePeriodSeconds", period, "must be greater than 0"))
            if kind == "readinessProbe":
                if period is not None:
                    detail = "must not be set for readinessProbes"
                    errors.append(invalid_value(f"{item_path}.terminationGracePeriodSeconds", period, detail))
            elif probe.get("successThreshold", 0) != 1:
                errors.append(invalid_value(f"{item_path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))


def _validate_handler(handler: Object, kinds: tuple[str, ...], grace_period: int | None, path: str,
                      errors: Errors) -> None:
    found = [kind for kind in kinds if handler.get(kind) is not None]
    if not found:
        errors.append(required(path, "must specify a handler type"))
        return
    action = handler[found[0]]
    item_path = f"{path}.{found[0]}"
    match found[0]:
        case "exec":
            if not action.get("command"):
                errors.append(required(f"{item_path}.command"))
        case "httpGet":
            if not action.get("path"):
                errors.append(required(f"{item_path}.path"))
            _validate_port(action.get("port", 0), f"{item_path}.port", errors)
            if action.get("scheme", "") not in ("HTTP", "HTTPS"):
                errors.append(not_supported(f"{item_path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
            for header in action.get("httpHeaders") or ():
                name = header.get("name", "")
                validate_format(name, http_header_name(name), f"{item_path}.httpHeaders", errors)
        case "tcpSocket":
            _validate_port(action.get("port", 0), f"{item_path}.port", errors)
        case "grpc":
            validate_format(action.get("port", 0), port_number(action.get("port", 0)), f"{item_path}.port", errors)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace_period is not None and not 0 <= seconds <= grace_period:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
                errors.append(invalid_value(item_path, seconds, detail))
    for kind in found[1:]:
        errors.append(forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type"))


def _validate_port(port: int | str, path: str, errors: Errors) -> None:
    validate_format(port, port_number_or_name(port), path, errors)


# --- resources of a pod (validatePodResources) ----------------------------------------------------------------------


def validate_pod_resources(spec: Object, claim_names: list[str], path: str, errors: Errors) -> None:
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        errors.append(forbidden_field(path, "may not be set for a windows pod"))
        return
    if resources.get("claims") is not None:
        errors.append(forbidden_field(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    validate_resource_requirements(resources, claim_names, path, errors, validate_name=validate_pod_resource_name)
    own = spec["resources"].get("requests") or {}
    for name, total in aggregate(spec, "requests").items():
        if name in own and total > Quantity.parse(own[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid_value(f"{path}.requests[{name}]", own[name], detail))
    own = spec["resources"].get("limits") or {}
    for name, total in aggregate(spec, "limits").items():
        if is_huge_page(name) and name in own and total > Quantity.parse(own[name]):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid_value(f"{path}.limits[{name}]", own[name], detail))
    for index, container in enumerate(spec.get("containers") or ()):
        limits = (container.get("resources") or {}).get("limits") or {}
        for name in sorted(limits):
            if name in own and Quantity.parse(limits[name]) > Quantity.parse(own[name]):
                detail = f"must be less than or equal to pod limits of {own[name]}"
                errors.append(invalid_value(f"{path}.containers[{index}][{name}].limits", limits[name], detail))


# --- volume mounts and devices (ValidateVolumeMounts, ValidateVolumeDevices) ----------------------------------------


PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_mounts_and_devices(container: Object, volumes: dict[str, Object], path: str, errors: Errors) -> None:
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    if not mounts and not devices:
        return
    device_paths = {entry.get("name", ""): entry.get("devicePath", "") for entry in devices}
    mount_paths = {entry.get("name", ""): entry.get("mountPath", "") for entry in mounts}
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        _validate_target(mount, volumes, seen, f"{path}.volumeMounts[{index}]", errors)
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if name in device_paths:
            errors.append(invalid_value(f"{path}.volumeMounts[{index}].name", name, "must not already exist in volumeDevices"))
        if target in device_paths.values():
            errors.append(invalid_value(f"{path}.volumeMounts[{index}].mountPath", target, "must not already exist as a path in volumeDevices"))
        _validate_mount_options(mount, container, index, f"{path}.volumeMounts", errors)
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        at = f"{path}.volumeDevices[{index}]"
        _validate_device_name(device.get("name", ""), names, volumes, at, errors)
        target = device.get("devicePath", "")
        if not target:
            errors.append(required(f"{at}.devicePath"))
        if target in paths:
            errors.append(invalid_value(f"{at}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            errors.append(invalid_value(f"{at}.devicePath", target, "can not contain backsteps ('..')"))
        else:
            paths.add(target)
        if device.get("name", "") in mount_paths:
            errors.append(invalid_value(f"{at}.name", device["name"], "must not already exist in volumeMounts"))
        if device.get("devicePath", "") in mount_paths.values():
            detail = "must not already exist as a path in volumeMounts"
            errors.append(invalid_value(f"{at}.devicePath", device["devicePath"], detail))


def _validate_target(mount: Object, volumes: dict[str, Object], seen: set[str], path: str, errors: Errors) -> None:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if name not in volumes:
        errors.append(field_not_found(f"{path}.name", name))
    if not target:
        errors.append(required(f"{path}.mountPath"))
    if target in seen:
        errors.append(invalid_value(f"{path}.mountPath", target, "must be unique"))
    seen.add(target)


def _validate_mount_options(mount: Object, container: Object, index: int, path: str, errors: Errors) -> None:
    """Upstream names these fields without the mount's index: ``volumeMounts.subPath``."""
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
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
                errors.append(forbidden_field(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true"))
            if mount.get("mountPropagation") not in (None, "None"):
                detail = "may only be specified when mountPropagation is None or not specified"
                errors.append(forbidden_field(f"{path}.recursiveReadOnly", detail))


def _validate_device_name(name: str, names: set[str], volumes: dict[str, Object], path: str, errors: Errors) -> None:
    volume = volumes.get(name)
    if not name:
        errors.append(required(f"{path}.name"))
    if name in names:
        errors.append(invalid_value(f"{path}.name", name, "must be unique"))
    if volume is None:
        errors.append(field_not_found(f"{path}.name", name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(invalid_value(f"{path}.name", name, detail))
    if name:
        names.add(name)
