"""PodDisruptionBudgets (``pkg/apis/policy/validation``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object, spec_of, status_of
from kubepy.apiserver.kinds.apps.validation import (
    validate_at_most_100_percent,
    validate_int_or_percent,
)
from kubepy.apiserver.validation.fields import (
    Errors,
    go_view,
    has_invalid_label_value,
    validate_label_selector,
    validate_nonnegative,
    validate_optional_choice,
)


def validate_disruption_budget(budget: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(budget)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = go_view("policy.PodDisruptionBudgetSpec", spec)
        errors.append(
            invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
        )

    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        if value is not None:
            validate_int_or_percent(value, f"spec.{field}", errors)
            validate_at_most_100_percent(value, f"spec.{field}", errors)

    tolerated = old is not None and has_invalid_label_value(spec_of(old).get("selector"))
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
    status = status_of(budget)
    for count in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    return errors
