"""Slices of devices: pools, nodes, attributes, capacities, counters, taints
(``pkg/apis/resource/validation``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from kubepy.api.errors import forbidden_field, invalid_value, required, too_long, too_many
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import dns1123_subdomain
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.kinds.core.pods.validation.scheduling import validate_node_selector
from kubepy.apiserver.kinds.core.volumesources.validation import validate_csi_driver_name
from kubepy.apiserver.kinds.resource.validation.claims import (
    EFFECTS,
    NEGATIVE_GENERATION,
    Validator,
    name_of,
    validate_binding_conditions,
    validate_items,
    validate_label,
    validate_pool_name,
    validate_qualified_name,
)
from kubepy.apiserver.validation.fields import (
    NOT_POSITIVE,
    Errors,
    go_view,
    label_value,
    semantically_equal,
    validate_as,
    validate_choice,
    validate_immutable,
    validate_label_name,
)

MOST_COUNTER_SETS = 8
MOST_COUNTERS = MOST_PROPERTIES = 32
NODES_OF_SLICE = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
NODES_OF_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` "
    "is set to true in the ResourceSlice spec"
)
OTHER_NODES = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true "
    "in the ResourceSlice spec"
)
_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
VALUES = ("int", "bool", "string", "version")


def validate_slice(spec: Object, old: Object | None, errors: Errors) -> None:
    pool = spec.get("pool") or {}
    validate_csi_driver_name(spec.get("driver", ""), "spec.driver", errors)
    validate_pool_name(pool.get("name", ""), "spec.pool.name", errors)
    count = pool.get("resourceSliceCount", 0)
    if count <= 0:
        errors.append(invalid_value("spec.pool.resourceSliceCount", count, NOT_POSITIVE))
    generation = pool.get("generation", 0)
    if generation < 0:
        errors.append(invalid_value("spec.pool.generation", generation, NEGATIVE_GENERATION))

    if old is not None:
        validate_immutable(
            pool.get("name", ""), (old.get("pool") or {}).get("name", ""), "spec.pool.name", errors
        )
        for field in ("driver", "nodeName"):
            validate_immutable(spec.get(field), old.get(field), f"spec.{field}", errors)

    validate_nodes(
        spec, "spec", NODES_OF_SLICE, f"{NODES_OF_SLICE}, but multiple fields are set", errors
    )

    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        errors.append(
            invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
        )

    devices = nested_list(spec, "devices")
    most = 128
    if any(device.get("taints") or device.get("consumesCounters") for device in devices):
        most = 64
    old_devices = {name_of(device): device for device in (old or {}).get("devices") or ()}

    def validate(device: Object, path: str, errors: Errors) -> None:
        _validate_device(device, old_devices.get(name_of(device)), path, errors)
        if spec.get("perDeviceNodeSelection"):
            validate_nodes(device, path, NODES_OF_DEVICE, NODES_OF_DEVICE, errors)
        elif any(
            device.get(field) is not None for field in ("nodeName", "nodeSelector", "allNodes")
        ):
            errors.append(invalid_value(path, None, OTHER_NODES))
        validate_binding_conditions(device, path, errors)

    validate_items(devices, most, validate, "spec.devices", errors, name_of)
    validate_items(
        spec.get("sharedCounters"),
        MOST_COUNTER_SETS,
        partial(validate_counters, "name"),
        "spec.sharedCounters",
        errors,
        name_of,
    )


def validate_nodes(holder: Object, path: str, none: str, many: str, errors: Errors) -> None:
    """Validate that a slice, or a device of one, says in exactly one way which nodes it is for."""
    chosen = []
    name = holder.get("nodeName")
    if name is not None:
        if name:
            chosen.append("`nodeName`")
            validate_as(dns1123_subdomain, name, f"{path}.nodeName", errors)
        else:
            if path == "spec":
                detail = "must be either unset or set to a non-empty string"
            else:
                detail = "must not be empty"
            errors.append(invalid_value(f"{path}.nodeName", name, detail))

    selector = holder.get("nodeSelector")
    if selector is not None:
        chosen.append("`nodeSelector`")
        validate_node_selector(selector, f"{path}.nodeSelector", errors)
        terms = selector.get("nodeSelectorTerms")
        if path == "spec" and len(terms or ()) != 1:
            shown = go_view("[]core.NodeSelectorTerm", terms) if terms else terms
            errors.append(
                invalid_value(
                    "spec.nodeSelector.nodeSelectorTerms",
                    shown,
                    "must have exactly one node selector term",
                )
            )

    for field in ("allNodes", "perDeviceNodeSelection"):
        flag = holder.get(field)
        if flag is True:
            chosen.append(f"`{field}`")
        elif flag is not None:
            errors.append(
                invalid_value(f"{path}.{field}", flag, "must be either unset or set to true")
            )

    if not chosen:
        errors.append(required(path, none))
    elif len(chosen) > 1:
        errors.append(invalid_value(path, f"{{{', '.join(chosen)}}}", many))


def _validate_device(device: Object, old: Object | None, path: str, errors: Errors) -> None:
    attributes = device.get("attributes") or {}
    capacity = device.get("capacity") or {}
    validate_label(name_of(device), f"{path}.name", errors)
    count = len(attributes) + len(capacity)
    if count > MOST_PROPERTIES:
        detail = f"the total number of attributes and capacities must not exceed {MOST_PROPERTIES}"
        errors.append(invalid_value(path, count, detail))
    validate_properties(attributes, validate_attribute, f"{path}.attributes", errors)
    shared = bool(device.get("allowMultipleAllocations"))
    validate_properties(capacity, partial(validate_capacity, shared), f"{path}.capacity", errors)
    if old is None or not semantically_equal(old.get("taints"), device.get("taints")):
        validate_items(device.get("taints"), 16, _validate_taint, f"{path}.taints", errors)
    validate_items(
        device.get("consumesCounters"),
        2,
        partial(validate_counters, "counterSet"),
        f"{path}.consumesCounters",
        errors,
        lambda consumed: consumed.get("counterSet", ""),
    )


def validate_properties(
    properties: Mapping[str, Any], validate: Validator, path: str, errors: Errors
) -> None:
    for name in sorted(properties):
        validate_qualified_name(name, path, errors)
        shown = name
        if len(name) > 96:
            shown = f"{name[:47]}...{name[-46:]}"
        validate(properties[name], f"{path}[{shown}]", errors)


def validate_attribute(attribute: Object, path: str, errors: Errors) -> None:
    version = attribute.get("version")
    for field in ("string", "version"):
        if field == "version" and version is not None and not _SEMVER.fullmatch(version):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(invalid_value(f"{path}.version", version, detail))
        if len((attribute.get(field) or "").encode()) > 64:
            errors.append(too_long(f"{path}.{field}", 64))
    if sum(attribute.get(field) is not None for field in VALUES) != 1:
        shown = go_view("resource.DeviceAttribute", attribute) if attribute else ""
        errors.append(invalid_value(path, shown, "exactly one value must be specified"))


def validate_capacity(shared: bool, capacity: Object, path: str, errors: Errors) -> None:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return

    path = f"{path}.requestPolicy"
    values = policy.get("validValues")
    limits = policy.get("validRange")
    if not shared:
        errors.append(forbidden_field(path, "allowMultipleAllocations must be true"))
    elif values and limits is not None:
        detail = (
            'exactly one policy can be specified, cannot specify "validValues" and '
            '"validRange" at the same time'
        )
        errors.append(forbidden_field(path, detail))
    elif values or limits is not None:
        field = "validValues" if values else "validRange"
        if policy.get("default") is None:
            errors.append(required(f"{path}.default", f"required when {field} is defined"))
            return
        most = Quantity.parse(capacity.get("value", "0"))
        default = Quantity.parse(policy["default"])
        if values:
            _validate_values(
                [Quantity.parse(value) for value in values],
                default,
                most,
                f"{path}.{field}",
                errors,
            )
        else:
            _validate_range(
                {
                    name: Quantity.parse(value)
                    for name, value in limits.items()
                    if value is not None
                },
                default,
                most,
                f"{path}.{field}",
                errors,
            )


def _validate_values(
    values: list[Quantity], default: Quantity, most: Quantity, path: str, errors: Errors
) -> None:
    def validate(value: Quantity, at: str, errors: Errors) -> None:
        if most < value:
            errors.append(
                invalid_value(at, str(value), f"option is larger than capacity value: {most}")
            )

    for index in range(1, len(values)):
        if values[index] < values[index - 1]:
            detail = "values must be sorted in ascending order"
            errors.append(invalid_value(f"{path}[{index}]", str(values[index]), detail))

    validate_items(values, 10, validate, path, errors, lambda value: str(value.value()))
    if len(values) > 10 or default not in values:
        errors.append(
            invalid_value(
                path, str(default), "default value is not valid according to the requestPolicy"
            )
        )


def _validate_range(
    limits: dict[str, Quantity], default: Quantity, most: Quantity, path: str, errors: Errors
) -> None:
    low = limits.get("min")
    high = limits.get("max")
    step = limits.get("step")
    if low is None:
        errors.append(required(f"{path}.min", "required when validRange is defined"))
        return

    checks = [
        ("min", most < low, low, f"min is larger than capacity value: {most}"),
        ("min", default < low, default, f"default is less than min: {low}"),
    ]
    if high is not None:
        checks += [
            ("max", high < low, low, f"min is larger than max: {high}"),
            ("max", most < high, high, f"max is larger than capacity value: {most}"),
            ("max", high < default, default, f"default is more than max: {high}"),
        ]

    if step is not None:
        checks.append(
            (
                "step",
                most < low + step,
                step,
                f"one step {low + step} is larger than capacity value: {most}",
            )
        )
        detail = f"value is not a multiple of a given step ({step}) from ({low})"
        checks += [
            (
                "step",
                not step.value() or (value.value() - low.value()) % step.value() != 0,
                value,
                detail,
            )
            for value in (default, high)
            if value is not None
        ]

    errors.extend(
        invalid_value(f"{path}.{field}", str(shown), detail)
        for field, wrong, shown, detail in checks
        if wrong
    )


def _validate_taint(taint: Object, path: str, errors: Errors) -> None:
    validate_label_name(taint.get("key", ""), f"{path}.key", errors)
    if value := taint.get("value"):
        validate_as(label_value, value, f"{path}.value", errors)
    validate_choice(taint.get("effect", ""), EFFECTS, f"{path}.effect", errors)


def validate_counters(field: str, counters: Object, path: str, errors: Errors) -> None:
    """Validate a set of counters, or a consumption of one; ``field`` names the set."""
    if name := counters.get(field):
        validate_label(name, f"{path}.{field}", errors)
    else:
        errors.append(required(f"{path}.{field}"))
    names = counters.get("counters") or {}
    path = f"{path}.counters"
    if not names:
        errors.append(required(path))
    elif len(names) > MOST_COUNTERS:
        errors.append(too_many(path, len(names), MOST_COUNTERS))
    else:
        for name in sorted(names):
            validate_label(name, path, errors)
