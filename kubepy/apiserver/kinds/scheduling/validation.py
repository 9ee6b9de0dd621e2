"""PriorityClasses (``pkg/apis/scheduling/validation``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, forbidden_field
from kubepy.api.meta import Object, name_of
from kubepy.apiserver.validation.fields import Errors, validate_choice, validate_immutable

HIGHEST_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def validate_priority_class(priority_class: Object) -> list[FieldError]:
    errors: Errors = []
    name = name_of(priority_class)
    value = priority_class.get("value", 0)
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

    policy = priority_class.get("preemptionPolicy")
    if policy is not None:
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
