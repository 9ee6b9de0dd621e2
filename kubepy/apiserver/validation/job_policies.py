"""When a Job has failed or succeeded: its podFailurePolicy and successPolicy (``batch/validation/validation.go``)."""

from __future__ import annotations

from contextlib import suppress

from kubepy.api.errors import FieldError, duplicate, invalid_value, not_supported, required, too_long, too_many
from kubepy.api.meta import Object
from kubepy.api.values.goformat import quote
from kubepy.api.values.gonumbers import int_or_none
from kubepy.apiserver.validation.fields import Errors, validate_format, validate_nonnegative
from kubepy.apiserver.validation.goview import go_view
from kubepy.apiserver.validation.labels import label_key

ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
STATUSES = ("False", "True", "Unknown")


def _listed(values: tuple[str, ...]) -> str:
    quoted = " ".join(quote(value) for value in values)
    return f"valid values: [{quoted}]"


def _omitted(path: str, why: str) -> FieldError:
    """An error that does not show its value."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {why}")


def validate_pod_failure_policy(spec: Object, path: str, errors: Errors) -> None:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > 20:
        errors.append(too_many(f"{path}.rules", len(rules), 20))
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    names = {one.get("name") for field in ("containers", "initContainers") for one in pod_spec.get(field) or ()}
    for index, rule in enumerate(rules):
        _validate_rule(rule, spec, names, f"{path}.rules[{index}]", errors)


def _validate_rule(rule: Object, spec: Object, names: set[str], path: str, errors: Errors) -> None:
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if not action:
        errors.append(required(f"{path}.action", _listed(ACTIONS)))
    elif action not in ACTIONS:
        errors.append(not_supported(f"{path}.action", action, ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid_value(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    if codes is not None:
        _validate_exit_codes(codes, names, f"{path}.onExitCodes", errors)
    if conditions:
        _validate_conditions(conditions, f"{path}.onPodConditions", errors)
    if codes is not None and conditions:
        errors.append(_omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(_omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))


def _validate_conditions(patterns: list[Object], path: str, errors: Errors) -> None:
    if len(patterns) > 20:
        errors.append(too_many(path, len(patterns), 20))
    for index, pattern in enumerate(patterns):
        at, kind, status = f"{path}[{index}]", pattern.get("type", ""), pattern.get("status", "")
        validate_format(kind, label_key(kind), f"{at}.type", errors)
        if not status:
            errors.append(required(f"{at}.status", _listed(STATUSES)))
        elif status not in STATUSES:
            errors.append(not_supported(f"{at}.status", status, STATUSES))


def _validate_exit_codes(codes: Object, names: set[str], path: str, errors: Errors) -> None:
    operator, values, container = codes.get("operator", ""), codes.get("values") or [], codes.get("containerName")
    if not operator:
        errors.append(required(f"{path}.operator", _listed(OPERATORS)))
    elif operator not in OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, OPERATORS))
    if container is not None and container not in names:
        why = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid_value(f"{path}.containerName", container, why))
    if not values:
        errors.append(invalid_value(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid_value(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            errors.append(duplicate(f"{path}.values[{index}]", value))
    if values != sorted(values):
        errors.append(invalid_value(f"{path}.values", values, "must be ordered"))


# --- success ------------------------------------------------------------------------------------------------------


def validate_success_policy(spec: Object, path: str, errors: Errors) -> None:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown = go_view("batch.SuccessPolicy", policy)
        errors.append(invalid_value(path, shown, "requires indexed completion mode"))
        return
    rules = policy.get("rules") or []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", why))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.rules", len(rules), 20))
    for index, rule in enumerate(rules):
        _validate_success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{index}]", errors)


def _validate_success_rule(rule: Object, completions: int, path: str, errors: Errors) -> None:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        if len(indexes) > 64 * 1024:
            errors.append(too_long(f"{path}.succeededIndexes", 64 * 1024))
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            why = f"error parsing succeededIndexes: {error}"
            errors.append(invalid_value(f"{path}.succeededIndexes", indexes, why))
    if count is None:
        return
    at = f"{path}.succeededCount"
    validate_nonnegative(count, at, errors)
    if count > completions:
        why = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid_value(at, count, why))
    if indexes is not None and count > total:
        why = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid_value(at, count, why))


def count_indexes(text: str, completions: int) -> int:
    """How many indexes ``0,2-4`` names. Raises ValueError."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        low, high = _parse_interval(interval, completions)
        if last >= low:
            raise ValueError(f"non-increasing order, previous: {last}, current: {low}")
        total += high - low + 1
        last = high
    return total


def first_common_index(text: str, other: str, completions: int) -> int | None:
    """The lowest index that both name; what cannot be read names none."""
    return min((max(one[0], two[0]) for one in _readable(text, completions) for two in _readable(other, completions)
                if one[0] <= two[1] and two[0] <= one[1]), default=None)


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for interval in text.split(","):
        with suppress(ValueError):
            intervals.append(_parse_interval(interval, completions))
    return intervals


def _parse_interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise ValueError(f"the fragment {quote(text)} violates the requirement that an index interval can have at most "
                         "two parts separated by '-'")
    low, high = (_parse_index(part, completions) for part in (parts[0], parts[-1]))
    if len(parts) == 2 and low >= high:
        raise ValueError(f"non-increasing order, previous: {low}, current: {high}")
    return low, high


def _parse_index(text: str, completions: int) -> int:
    index = int_or_none(text)
    if index is None:
        raise ValueError(f"cannot convert string to integer for index: {quote(text)}")
    if index >= completions:
        raise ValueError(f"too large index: {quote(text)}")
    return index
