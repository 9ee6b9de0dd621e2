"""PodDisruptionBudgets and PriorityClasses (``pkg/apis/{policy,scheduling}/validation``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, forbidden_field, invalid_value
from kubepy.api.meta import Object, name_of
from kubepy.apiserver.validation.apps import validate_at_most_100_percent, validate_int_or_percent
from kubepy.apiserver.validation.fields import (
    Errors,
    go_view,
    has_invalid_label_value,
    validate_choice,
    validate_immutable,
    validate_label_selector,
    validate_nonnegative,
    validate_optional_choice,
)

HIGHEST_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def validate_disruption_budget(budget: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = go_view("policy.PodDisruptionBudgetSpec", spec)
        errors.append(
            invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
        )
    for field in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(field)) is not None:
            validate_int_or_percent(value, f"spec.{field}", errors)
            validate_at_most_100_percent(value, f"spec.{field}", errors)
    tolerated = old is not None and has_invalid_label_value((old.get("spec") or {}).get("selector"))
    validate_label_selector(
        spec.get("selector"), "spec.selector", errors, allow_invalid_values=tolerated
    )
    validate_optional_choice(
        spec.get("unhealthyPodEvictionPolicy"),
        ("AlwaysAllow", "IfHealthyBudget"),
        "spec.unhealthyPodEvictionPolicy",
        errors,
    )
    return errors


def validate_disruption_budget_status(budget: Object) -> list[FieldError]:
    errors: Errors = []
    status = budget.get("status") or {}
    for count in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    return errors


def validate_priority_class(priority_class: Object) -> list[FieldError]:
    errors: Errors = []
    name, value = name_of(priority_class), priority_class.get("value", 0)
    if name.startswith("system-"):
        detail = ""
        if name not in SYSTEM_CLASSES:
            detail = f"{name} is not a known system priority class"
        elif value != SYSTEM_CLASSES[name]:
            detail = f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
        elif priority_class.get("globalDefault"):
            detail = f"globalDefault of {name} PriorityClass must be false"
        if detail:
            prefix = (
                "priority class names with 'system-' prefix are reserved for system use "
                "only. error: "
            )
            errors.append(forbidden_field("metadata.name", prefix + detail))
    elif value > HIGHEST_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"
        errors.append(forbidden_field("value", detail))
    if (policy := priority_class.get("preemptionPolicy")) is not None:
        validate_choice(policy, ("PreemptLowerPriority", "Never"), "preemptionPolicy", errors)
    return errors


def validate_priority_class_update(new: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    if new.get("value", 0) != old.get("value", 0):
        errors.append(forbidden_field("value", "may not be changed in an update."))
    validate_immutable(
        new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", errors
    )
    return errors
