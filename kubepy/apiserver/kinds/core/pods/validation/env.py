"""Environment variables and where they come from (``ValidateEnv``, ``ValidateEnvFrom``
upstream)."""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.api.errors import field_not_found, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.apiserver.validation.fields import (
    Errors,
    label_key,
    validate_as,
    validate_format,
    validate_no_backsteps,
    validate_required,
    validate_required_as,
)
from kubepy.apiserver.validation.formats import config_map_key, env_var_name
from kubepy.quoting import printable

SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
KNOWN_FIELDS = frozenset(
    (
        *ENV_FIELDS,
        *VOLUME_FIELDS,
        "spec.host",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    )
)
CONTAINER_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
BINARY_DIVISORS = (
    "1",
    "1k",
    "1M",
    "1G",
    "1T",
    "1P",
    "1E",
    "1Ki",
    "1Mi",
    "1Gi",
    "1Ti",
    "1Pi",
    "1Ei",
)


def validate_env(variables: list[Object], path: str, errors: Errors) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        validate_required_as(env_var_name, name, f"{path}[{index}].name", errors)
        if variable.get("valueFrom") is not None:
            _validate_value_from(variable, f"{path}[{index}].valueFrom", errors)


def _validate_value_from(variable: Object, path: str, errors: Errors) -> None:
    """Require exactly one source of a variable, and no value beside it."""
    source = variable["valueFrom"]
    kinds = [kind for kind in SOURCES if source.get(kind) is not None]
    for kind in kinds:
        _validate_source(kind, source[kind], f"{path}.{kind}", errors)
    if not kinds:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid_value(path, "", detail))
    elif variable.get("value"):
        errors.append(invalid_value(path, "", "may not be specified when `value` is not empty"))
    elif len(kinds) > 1:
        detail = "may not have more than one field specified at a time"
        errors.append(invalid_value(path, "", detail))


def _validate_source(kind: str, selector: Object, path: str, errors: Errors) -> None:
    match kind:
        case "fieldRef":
            validate_field_selector(selector, ENV_FIELDS, path, errors)
        case "resourceFieldRef":
            validate_resource_selector(selector, path, errors, volume=False)
        case "configMapKeyRef" | "secretKeyRef":
            name = selector.get("name", "")
            key = selector.get("key", "")
            validate_as(dns1123_subdomain, name, f"{path}.name", errors)
            validate_required_as(config_map_key, key, f"{path}.key", errors)
        case "fileKeyRef":
            for field, check in (("key", env_var_name), ("volumeName", dns1123_label)):
                value = selector.get(field, "")
                validate_required_as(check, value, f"{path}.{field}", errors)
            validate_required(selector, ("path",), path, errors)
            validate_no_backsteps(selector.get("path", ""), f"{path}.path", errors)


def validate_field_selector(
    selector: Object, allowed: Iterable[str], path: str, errors: Errors
) -> None:
    """Validate a field reference of the downward API; ``allowed`` are the fields without
    subscript."""
    for name in ("apiVersion", "fieldPath"):
        if not selector.get(name):
            errors.append(required(f"{path}.{name}"))
            return

    label = selector["fieldPath"]
    base, bracket, rest = label.partition("['")  # ``metadata.labels['a']``
    subscript = None
    if bracket and base and label.endswith("']"):
        subscript = rest[:-2]

    base = label if subscript is None else base
    detail = ""
    if selector["apiVersion"] != "v1":
        detail = f"unsupported pod version: {selector['apiVersion']}"
    elif subscript is not None and base not in ("metadata.annotations", "metadata.labels"):
        detail = f"field label does not support subscript: {label}"
    elif subscript is None and label not in KNOWN_FIELDS:
        detail = printable(f"field label not supported: {label}")

    if detail:
        errors.append(
            invalid_value(f"{path}.fieldPath", label, f"error converting fieldPath: {detail}")
        )
    elif subscript is not None:
        key = subscript.lower() if base == "metadata.annotations" else subscript
        validate_as(label_key, key, path, errors)
    else:
        base = "spec.nodeName" if base == "spec.host" else base
        if base not in allowed:
            errors.append(not_supported(f"{path}.fieldPath", base, sorted(allowed)))


def validate_resource_selector(
    selector: Object, path: str, errors: Errors, *, volume: bool
) -> None:
    resource = selector.get("resource", "")
    if volume and not selector.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in CONTAINER_RESOURCES and not resource.startswith(HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, CONTAINER_RESOURCES))
    divisor = str(selector.get("divisor") or "0")
    kind, allowed = _divisors_of(resource)
    if divisor == "0" or not kind or divisor in allowed:
        return
    listed = "1m and 1" if kind == "cpu" else ", ".join(allowed)
    detail = f"only divisor's values {listed} are supported with the {kind} resource"
    errors.append(invalid_value(f"{path}.divisor", resource, detail))


def _divisors_of(resource: str) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a resource as errors name it, and its divisors; ("", ()) for an unknown
    resource."""
    kind = resource.partition(".")[2]
    if resource in CONTAINER_RESOURCES:
        if kind == "cpu":
            return kind, ("1m", "1")
        return ("local ephemeral storage" if kind == "ephemeral-storage" else kind), BINARY_DIVISORS
    if resource.startswith(HUGE_PAGES):
        return ("hugepages", BINARY_DIVISORS)
    return ("", ())


def validate_env_from(sources: list[Object], path: str, errors: Errors) -> None:
    for index, source in enumerate(sources):
        if prefix := source.get("prefix"):
            validate_as(env_var_name, prefix, f"{path}[{index}].prefix", errors)
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in kinds:
            name = source[kind].get("name")
            if not name:
                errors.append(required(f"{path}[{index}].{kind}.name"))
            else:
                prefix = name
                if name.endswith("-"):  # upstream checks it as a prefix
                    prefix = name[:-1] + "a"
                validate_format(
                    name, dns1123_subdomain(prefix), f"{path}[{index}].{kind}.name", errors
                )
        if not kinds:
            errors.append(
                invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
            )
        elif len(kinds) > 1:
            errors.append(
                invalid_value(path, "", "may not have more than one field specified at a time")
            )


def validate_file_key_volumes(
    container: Object, volumes: dict[str, Object], path: str, errors: Errors
) -> None:
    """Require that a ``fileKeyRef`` names an emptyDir of the pod
    (``validateFileKeyRefVolumes``)."""
    for index, variable in enumerate(container.get("env") or ()):
        reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if reference is None:
            continue
        name = reference.get("volumeName", "")
        at = f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName"
        if name not in volumes:
            errors.append(field_not_found(at, name))
        elif volumes[name].get("emptyDir") is None:
            errors.append(invalid_value(at, name, "referenced volume must be of type emptyDir"))
