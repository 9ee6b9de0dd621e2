"""Containers of a pod: names, images, ports, mounts, policies (``validateContainers`` and its like upstream).

Upstream: ``pkg/apis/core/validation/validation.go``. The order of the checks is the order of the messages.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.errors import (
    FieldError,
    duplicate,
    field_not_found,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_many,
)
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_label
from kubepy.apiserver.validation.fields import Errors, validate_choice, validate_format, validate_optional_choice
from kubepy.apiserver.validation.formats import port_name, port_number
from kubepy.apiserver.validation.pods import env, mounts, probes
from kubepy.apiserver.validation.pods.options import PodOptions
from kubepy.apiserver.validation.pods.security import validate_security_context
from kubepy.apiserver.validation.resources import validate_resource_requirements

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
        _validate_container(container, names, context, f"{path}[{index}]", errors)
    _validate_host_ports(containers, path, errors)


def _validate_container(container: Object, names: set[str], context: PodContext, path: str, errors: Errors) -> None:
    _validate_common(container, context, path, errors)
    name = container.get("name", "")
    if name in names:
        errors.append(duplicate(f"{path}.name", name))
    names.add(name)
    probes.validate_lifecycle_and_probes(container, context.grace_period, path, errors)
    if "restartPolicy" in container or "restartPolicyRules" in container:
        _validate_restart_policy(container, path, errors)


def _validate_common(container: Object, context: PodContext, path: str, errors: Errors) -> None:
    """What every kind of container must satisfy (``validateContainerCommon``)."""
    _validate_name_and_image(container, path, errors)
    validate_choice(container.get("terminationMessagePolicy", ""), MESSAGE_POLICIES,
                    f"{path}.terminationMessagePolicy", errors)
    if ports := container.get("ports"):
        validate_ports(ports, f"{path}.ports", errors)
    if variables := container.get("env"):
        env.validate_env(variables, f"{path}.env", errors)
    if sources := container.get("envFrom"):
        env.validate_env_from(sources, f"{path}.envFrom", errors)
    mounts.validate_mounts_and_devices(container, context.volumes, path, errors)
    validate_choice(container.get("imagePullPolicy", ""), PULL_POLICIES, f"{path}.imagePullPolicy", errors)
    if resources := container.get("resources"):
        validate_resource_requirements(resources, context.claim_names, f"{path}.resources", errors,
                                       allow_indivisible=context.options.allow_indivisible_huge_pages)
    if policies := container.get("resizePolicy"):
        _validate_resize_policy(policies, context.spec.get("restartPolicy", ""), f"{path}.resizePolicy", errors)
    if security_context := container.get("securityContext"):
        host_users = context.spec.get("hostUsers") is not False
        validate_security_context(security_context, f"{path}.securityContext", errors, host_users=host_users)


def _validate_name_and_image(container: Object, path: str, errors: Errors) -> None:
    name = container.get("name")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        validate_format(name, dns1123_label(name), f"{path}.name", errors)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))


# --- ports --------------------------------------------------------------------------------------------------------


def validate_ports(ports: list[Object], path: str, errors: Errors) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if port.get("name"):
            _validate_port_name(port["name"], names, at, errors)
        _validate_port_numbers(port, at, errors)
        validate_choice(port.get("protocol", ""), PROTOCOLS, f"{at}.protocol", errors)


def _validate_port_name(name: str, names: set[str], path: str, errors: Errors) -> None:
    complaints = port_name(name)
    validate_format(name, complaints, f"{path}.name", errors)
    if not complaints and name in names:
        errors.append(duplicate(f"{path}.name", name))
    elif not complaints:
        names.add(name)


def _validate_port_numbers(port: Object, path: str, errors: Errors) -> None:
    container_port, host_port = port.get("containerPort", 0), port.get("hostPort", 0)
    if container_port == 0:
        errors.append(required(f"{path}.containerPort"))
    else:
        validate_format(container_port, port_number(container_port), f"{path}.containerPort", errors)
    if host_port:
        validate_format(host_port, port_number(host_port), f"{path}.hostPort", errors)


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
        _validate_restart_rule(rule, f"{path}.restartPolicyRules[{index}]", errors)


def _validate_restart_rule(rule: Object, path: str, errors: Errors) -> None:
    if rule.get("action", "") not in RESTART_ACTIONS:
        errors.append(not_supported(f"{path}.action", rule.get("action", ""), RESTART_ACTIONS))
    codes = rule.get("exitCodes")
    if codes is None:
        errors.append(required(f"{path}.exitCodes", "must be specified"))
        return
    if codes.get("operator", "") not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
    if len(codes.get("values") or ()) > 255:
        errors.append(too_many(f"{path}.exitCodes.values", len(codes["values"]), 255))


def _validate_resize_policy(policies: list[Object], pod_restart_policy: str, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        validate_choice(resource, ("cpu", "memory"), path, errors)
        validate_choice(restart, ("NotRequired", "RestartContainer"), path, errors)
        if pod_restart_policy == "Never" and restart != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid_value(path, restart, why))


# --- init containers ----------------------------------------------------------------------------------------------


def validate_init_containers(context: PodContext, path: str, errors: Errors) -> None:
    names = {container.get("name", "") for container in context.spec.get("containers") or ()}
    for index, container in enumerate(context.spec.get("initContainers") or ()):
        at = f"{path}[{index}]"
        _validate_common(container, context, at, errors)
        _validate_init_restart_policy(container, at, errors)
        name = container.get("name", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        _validate_host_ports([container], path, errors)
        _validate_init_handlers(container, context, at, errors)


def _validate_init_restart_policy(container: Object, path: str, errors: Errors) -> None:
    if container.get("restartPolicy") is not None:
        _validate_restart_policy(container, path, errors)
    elif container.get("restartPolicyRules"):
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))


def _validate_init_handlers(container: Object, context: PodContext, path: str, errors: Errors) -> None:
    if container.get("restartPolicy") == "Always":  # a sidecar
        probes.validate_lifecycle_and_probes(container, context.grace_period, path, errors)
        return
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field) is not None:
            errors.append(forbidden_field(f"{path}.{field}", ONLY_FOR_SIDECARS))
    if context.options.allow_restart_container_in_init:
        return
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            errors.append(invalid_value(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", why))


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
        errors.extend(_ephemeral_complaints(container, at))


def _ephemeral_complaints(container: Object, path: str) -> list[FieldError]:
    why = "cannot be set for an Ephemeral Container"
    found = [forbidden_field(f"{path}.{field}", why) for field in EPHEMERAL_FORBIDDEN if container.get(field)]
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        found += [forbidden_field(f"{path}.volumeMounts[{index}].{field}", why)
                  for field in ("subPath", "subPathExpr") if mount.get(field)]
    return found


def validate_image_padding(container: Object, path: str, errors: Errors) -> None:
    image = container.get("image", "")
    if image != image.strip():
        errors.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))
