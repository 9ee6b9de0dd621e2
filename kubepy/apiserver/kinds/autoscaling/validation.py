"""HorizontalPodAutoscalers (``pkg/apis/autoscaling/validation/validation.go``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, nested_list, status_of
from kubepy.api.values.names import dns1123_label, path_segment
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import (
    NEGATIVE,
    Errors,
    validate_as,
    validate_nonnegative,
    validate_optional_choice,
    validate_positive,
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
MAX_WINDOW = 3600
MAX_PERIOD = 1800


def validate_autoscaler(autoscaler: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = autoscaler["spec"]
    old_spec = (old or {}).get("spec") or {}
    _validate_bounds(spec, old_spec, errors)
    target = spec.get("scaleTargetRef") or {}
    old_target = old_spec.get("scaleTargetRef") or {}
    has_old_version = target.get("apiVersion") == old_target.get("apiVersion")
    has_old_kind = target.get("kind") == old_target.get("kind")
    _validate_reference(
        target,
        "spec.scaleTargetRef",
        errors,
        any_version=old is not None and has_old_version and has_old_kind,
        core=target.get("kind") == "ReplicationController",
    )
    metrics = nested_list(spec, "metrics")
    for index, metric in enumerate(metrics):
        _validate_metric(metric, f"spec.metrics[{index}]", errors)

    types = {metric.get("type") for metric in metrics}
    if spec.get("minReplicas") == 0 and not types & {"Object", "External"}:
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


def _validate_bounds(spec: Object, old_spec: Object, errors: Errors) -> None:
    """Validate the least and the largest number of replicas; 0 is tolerated if it was there
    before."""
    lowest = 0 if old_spec.get("minReplicas") == 0 else 1
    low = spec.get("minReplicas")
    high = spec.get("maxReplicas", 0)
    if low is not None and low < lowest:
        detail = f"must be greater than or equal to {lowest}"
        errors.append(invalid_value("spec.minReplicas", low, detail))
    if high == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif high < 0:
        errors.append(invalid_value("spec.maxReplicas", high, "must be greater than or equal to 1"))
    if low is not None and high < low:
        detail = "must be greater than or equal to `minReplicas`"
        errors.append(invalid_value("spec.maxReplicas", high, detail))


def _validate_metric(metric: Object, path: str, errors: Errors) -> None:
    """Require the source of the metric's type, and no other."""
    kind = metric.get("type", "")
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in METRIC_TYPES:
        errors.append(not_supported(f"{path}.type", kind, METRIC_TYPES))
    present = [field for field in METRIC_FIELDS.values() if metric.get(field) is not None]
    if present:
        first = present[0]
        _validate_source(first, metric[first], f"{path}.{first}", errors)

    expected = METRIC_FIELDS.get(kind)
    if expected is None:
        errors.append(not_supported(f"{path}.type", kind, METRIC_TYPES))  # twice, as upstream
    elif expected not in present:
        detail = "must populate information for the given metric source"
        errors.append(required(f"{path}.{expected}", detail))

    if len(present) == 1:
        return

    for field in present:
        if field != expected:
            detail = "must populate the given metric source only"
            errors.append(forbidden_field(f"{path}.{field}", detail))


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
    match field:
        case "resource" | "containerResource":
            _validate_resource_source(field, source, path, errors)
        case _:
            _validate_metric_source(field, source, path, errors)
    target = source.get("target") or {}
    _validate_target(target, f"{path}.target", errors)
    _validate_target_values(field, target, f"{path}.target", errors)


def _validate_resource_source(field: str, source: Object, path: str, errors: Errors) -> None:
    name = source.get("name", "")
    if not name:
        errors.append(required(f"{path}.name", "must specify a resource name"))
    if field != "containerResource":
        return
    if name:
        validate_container_resource_name(name, f"{path}.name", errors)
    container = source.get("container", "")
    if not container:
        errors.append(required(f"{path}.container", "must specify a container"))
    else:
        validate_as(dns1123_label, container, f"{path}.container", errors)


def _validate_metric_source(field: str, source: Object, path: str, errors: Errors) -> None:
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


def _validate_target(target: Object, path: str, errors: Errors) -> None:
    kind = target.get("type", "")
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in TARGET_TYPES:
        detail = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid_value(f"{path}.type", kind, detail))
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and Quantity.parse(amount).nanos <= 0:
            errors.append(invalid_value(f"{path}.{field}", amount, "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        detail = "must be greater than 0"
        errors.append(invalid_value(f"{path}.averageUtilization", utilization, detail))


def _validate_target_values(field: str, target: Object, path: str, errors: Errors) -> None:
    """Require the values that a kind of source takes."""
    value = target.get("value")
    average = target.get("averageValue")
    utilization = target.get("averageUtilization")
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
        if field == "object":
            detail = "must set either a target value or averageValue"
        else:
            detail = "must set either a target value for metric or a per-pod target"
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
        _validate_scaling_policy(policy, f"{path}.policies[{index}]", errors)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).nanos < 0:
        errors.append(invalid_value(f"{path}.tolerance", tolerance, NEGATIVE))


def _validate_scaling_policy(policy: Object, path: str, errors: Errors) -> None:
    kind = policy.get("type", "")
    if kind not in ("Percent", "Pods"):
        errors.append(not_supported(f"{path}.type", kind, ("Percent", "Pods")))
    validate_positive(policy.get("value", 0), f"{path}.value", errors)
    period = policy.get("periodSeconds", 0)
    validate_positive(period, f"{path}.periodSeconds", errors)
    if period > MAX_PERIOD:
        detail = f"must be less than or equal to {MAX_PERIOD}"
        errors.append(invalid_value(f"{path}.periodSeconds", period, detail))


def validate_autoscaler_status(autoscaler: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(autoscaler)
    for count in ("currentReplicas", "desiredReplicas"):
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    return errors
