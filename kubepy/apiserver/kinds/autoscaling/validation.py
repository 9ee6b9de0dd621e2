"""HorizontalPodAutoscalers (``pkg/apis/autoscaling/validation/validation.go``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, nested_list, status_of
from kubepy.api.values.names import dns1123_label, path_segment
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import (
    NEGATIVE,
    NOT_POSITIVE,
    Errors,
    validate_as,
    validate_nonnegative,
    validate_optional_choice,
    validate_required_as,
)
from kubepy.apiserver.validation.resources import validate_container_resource_name

METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
# The field of each type, in the order in which upstream checks them.
METRIC_FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
TARGET_TYPES = ("Utilization", "Value", "AverageValue")
MAX_WINDOW, MAX_PERIOD = 3600, 1800


def validate_autoscaler(autoscaler: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = autoscaler["spec"]
    old_spec = (old or {}).get("spec") or {}
    lowest = 0 if old_spec.get("minReplicas") == 0 else 1
    low = spec.get("minReplicas")
    high = spec.get("maxReplicas", 0)
    if low is not None and low < lowest:
        errors.append(
            invalid_value("spec.minReplicas", low, f"must be greater than or equal to {lowest}")
        )
    if high == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif high < 0:
        errors.append(invalid_value("spec.maxReplicas", high, "must be greater than or equal to 1"))
    if low is not None and high < low:
        errors.append(
            invalid_value(
                "spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"
            )
        )
    target = spec.get("scaleTargetRef") or {}
    old_target = old_spec.get("scaleTargetRef") or {}
    same = old is not None and all(
        target.get(key) == old_target.get(key) for key in ("apiVersion", "kind")
    )
    _validate_reference(
        target,
        "spec.scaleTargetRef",
        errors,
        any_version=same,
        core=target.get("kind") == "ReplicationController",
    )
    metrics = nested_list(spec, "metrics")
    for index, metric in enumerate(metrics):
        metric_path = f"spec.metrics[{index}]"
        kind = metric.get("type", "")
        if not kind:
            errors.append(required(f"{metric_path}.type", "must specify a metric source type"))
        if kind not in METRIC_TYPES:
            errors.append(not_supported(f"{metric_path}.type", kind, METRIC_TYPES))
        present = [field for field in METRIC_FIELDS.values() if metric.get(field) is not None]
        if present:
            _validate_source(present[0], metric[present[0]], f"{metric_path}.{present[0]}", errors)
        expected = METRIC_FIELDS.get(kind)
        if expected is not None and expected not in present:
            detail = "must populate information for the given metric source"
            errors.append(required(f"{metric_path}.{expected}", detail))
        if expected is None:
            errors.append(
                not_supported(f"{metric_path}.type", kind, METRIC_TYPES)
            )  # a second time, as upstream
        if len(present) != 1:
            errors.extend(
                forbidden_field(
                    f"{metric_path}.{field}", "must populate the given metric source only"
                )
                for field in present
                if field != expected
            )
    if spec.get("minReplicas") == 0 and not any(
        metric.get("type") in ("Object", "External") for metric in metrics
    ):
        detail = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        errors.append(forbidden_field("spec.metrics", detail))
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            _validate_rules(rules, f"spec.behavior.{direction}", errors)
    return errors


def _validate_reference(
    reference: Object, path: str, errors: Errors, *, any_version: bool, core: bool
) -> None:
    for field in ("kind", "name"):
        value = reference.get(field, "")
        validate_required_as(path_segment, value, f"{path}.{field}", errors)
    version = reference.get("apiVersion", "")
    if any_version:
        return
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        errors.append(invalid_value(f"{path}.apiVersion", version, detail))
    elif not core and not version.rpartition("/")[0]:
        errors.append(
            invalid_value(f"{path}.apiVersion", version, "apiVersion must specify API group")
        )


# --- metrics --------------------------------------------------------------------------------------


def _validate_source(field: str, source: Object, path: str, errors: Errors) -> None:
    target = source.get("target") or {}
    match field:
        case "resource" | "containerResource":
            key = source.get("name", "")
            container = source.get("container", "")
            if not key:
                errors.append(required(f"{path}.name", "must specify a resource name"))
            elif field == "containerResource":
                validate_container_resource_name(key, f"{path}.name", errors)
            if field == "containerResource":
                if not container:
                    errors.append(required(f"{path}.container", "must specify a container"))
                else:
                    validate_as(dns1123_label, container, f"{path}.container", errors)
        case _:
            if field == "object":
                _validate_reference(
                    source.get("describedObject") or {},
                    f"{path}.describedObject",
                    errors,
                    any_version=False,
                    core=True,
                )
            name = (source.get("metric") or {}).get("name", "")
            if not name:
                errors.append(required(f"{path}.metric.name", "must specify a metric name"))
            else:
                validate_as(path_segment, name, f"{path}.metric.name", errors)
    target_path = f"{path}.target"
    kind = target.get("type", "")
    if not kind:
        errors.append(required(f"{target_path}.type", "must specify a metric target type"))
    if kind not in TARGET_TYPES:
        errors.append(
            invalid_value(
                f"{target_path}.type", kind, "must be either Utilization, Value, or AverageValue"
            )
        )
    for target_field in ("value", "averageValue"):
        amount = target.get(target_field)
        if amount is not None and Quantity.parse(amount).nanos <= 0:
            errors.append(
                invalid_value(f"{target_path}.{target_field}", amount, "must be positive")
            )
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(
            invalid_value(
                f"{target_path}.averageUtilization", utilization, "must be greater than 0"
            )
        )
    _validate_target_values(field, target, f"{path}.target", errors)


def _validate_target_values(field: str, target: Object, path: str, errors: Errors) -> None:
    """Require the values that a kind of source takes."""
    value, average, utilization = (
        target.get(name) for name in ("value", "averageValue", "averageUtilization")
    )
    if field in ("resource", "containerResource"):
        if utilization is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            errors.append(required(f"{path}.averageUtilization", detail))
        if utilization is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            errors.append(forbidden_field(f"{path}.averageValue", detail))
    elif field == "pods":
        if average is None:
            errors.append(
                required(f"{path}.averageValue", "must specify a positive target averageValue")
            )
    elif value is None and average is None:
        detail = (
            "must set either a target value or averageValue"
            if field == "object"
            else "must set either a target value for metric or a per-pod target"
        )
        errors.append(required(f"{path}.averageValue", detail))
    elif field == "external" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden_field(f"{path}.value", detail))


# --- behaviour ------------------------------------------------------------------------------------


def _validate_rules(rules: Object, path: str, errors: Errors) -> None:
    window = rules.get("stabilizationWindowSeconds")
    at = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        errors.append(invalid_value(at, window, "must be greater than or equal to zero"))
    if window is not None and window > MAX_WINDOW:
        errors.append(invalid_value(at, window, f"must be less than or equal to {MAX_WINDOW}"))
    validate_optional_choice(
        rules.get("selectPolicy"), ("Disabled", "Max", "Min"), f"{path}.selectPolicy", errors
    )
    policies = nested_list(rules, "policies")
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        if policy.get("type", "") not in ("Percent", "Pods"):
            errors.append(
                not_supported(
                    f"{path}.policies[{index}].type", policy.get("type", ""), ("Percent", "Pods")
                )
            )
        for field in ("value", "periodSeconds"):
            if policy.get(field, 0) <= 0:
                errors.append(
                    invalid_value(
                        f"{path}.policies[{index}].{field}", policy.get(field, 0), NOT_POSITIVE
                    )
                )
        if policy.get("periodSeconds", 0) > MAX_PERIOD:
            detail = f"must be less than or equal to {MAX_PERIOD}"
            errors.append(
                invalid_value(
                    f"{path}.policies[{index}].periodSeconds", policy["periodSeconds"], detail
                )
            )
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).nanos < 0:
        errors.append(invalid_value(f"{path}.tolerance", tolerance, NEGATIVE))


def validate_autoscaler_status(autoscaler: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(autoscaler)
    for count in ("currentReplicas", "desiredReplicas"):
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    return errors
