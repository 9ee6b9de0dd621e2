"""Jobs, their podFailurePolicy and successPolicy (``pkg/apis/batch/validation/validation.go``)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kubepy.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)
from kubepy.api.meta import Object, name_of, nested_list, nested_map, spec_of, status_of, uid_of
from kubepy.api.values.goformat import quote
from kubepy.api.values.gonumbers import int_or_none
from kubepy.api.values.names import dns1123_label
from kubepy.apiserver.kinds.core.pods.validation.options import PodOptions
from kubepy.apiserver.kinds.core.pods.validation.spec import (
    template_labels,
    validate_pod_template,
    validate_selected,
)
from kubepy.apiserver.kinds.core.podtemplates.validation import (
    TOLERANT_OF_NOTHING,
    selector_of,
    template_options,
)
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    Errors,
    go_view,
    has_invalid_label_value,
    label_key,
    selector_view,
    semantically_equal,
    validate_as,
    validate_label_selector,
    validate_nonnegative,
    validate_optional_choice,
)
from kubepy.apiserver.validation.formats import domain_prefixed_path

LEGACY_LABELS = ("controller-uid", "job-name")
LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
NEEDS_INDEXES = "requires indexed completion mode"
MANY = 100_000
MANY_PARALLEL = 10_000
MANY_FAILED = 10_000


def validate_job(job: Object, old: Object | None = None) -> list[FieldError]:
    errors = _validate_job(job, TOLERANT_OF_NOTHING, old)
    if errors and old is not None:
        options = template_options(old)
        if has_invalid_label_value(old["spec"].get("selector")):
            options = options._replace(allow_invalid_selector_values=True)
        errors = _validate_job(job, options, old)
    if old is not None:
        _validate_kept(job, old, errors)
    return errors


def _validate_kept(job: Object, old: Object, errors: Errors) -> None:
    """Refuse changes of fields that stay; an Indexed job may change completions and parallelism
    together."""
    spec = job["spec"]
    old_spec = old["spec"]
    completions = spec.get("completions")
    if completions != old_spec.get("completions"):
        if spec.get("completionMode") != "Indexed":
            errors.append(invalid_value("spec.completions", completions, IMMUTABLE))
        elif completions is not None and completions != spec.get("parallelism"):
            detail = "can only be modified in tandem with spec.parallelism"
            errors.append(invalid_value("spec.completions", completions, detail))

    selector = spec.get("selector")
    if not semantically_equal(selector, old_spec.get("selector")):
        errors.append(invalid_value("spec.selector", selector_view(selector), IMMUTABLE))
    _validate_template_kept(job, old, errors)

    for field, kind in KEPT:
        value = spec.get(field)
        if semantically_equal(value, old_spec.get(field)):
            continue
        shown = go_view(kind, value) if kind else value
        errors.append(invalid_value(f"spec.{field}", shown, IMMUTABLE))


def _validate_job(job: Object, options: PodOptions, old: Object | None) -> Errors:
    errors: Errors = []
    spec = job["spec"]
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        _validate_generated_selector(job, old, errors)
    validate_job_spec(spec, options, "spec", errors)

    if spec.get("selector") is None:
        errors.append(required("spec.selector"))
    else:
        validate_label_selector(
            spec["selector"],
            "spec.selector",
            errors,
            allow_invalid_values=options.allow_invalid_selector_values,
        )

    selector = selector_of(spec)
    if selector is not None:
        validate_selected(spec.get("template") or {}, selector, "spec.template", errors)

    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        last = f"{name_of(job)}-{spec['completions'] - 1}"
        if dns1123_label(last):
            detail = f"will not able to create pod with invalid DNS label: {last}"
            errors.append(invalid_value("metadata.name", name_of(job), detail))

    return errors


def _validate_generated_selector(job: Object, old: Object | None, errors: Errors) -> None:
    """Require the selector and labels that the server makes from the job's uid and name."""
    spec = job["spec"]
    old_labels = template_labels((old or job)["spec"].get("template") or {}) or {}
    uid_and_name = (uid_of(job), name_of(job))
    expected = dict(zip(LEGACY_LABELS, uid_and_name, strict=True))
    if old is None or all(key in old_labels for key in LABELS):
        expected |= dict(zip(LABELS, uid_and_name, strict=True))

    labels = template_labels(spec.get("template") or {}) or {}
    for name, value in expected.items():
        at = f"spec.template.metadata.labels[{name}]"
        if name not in labels:
            errors.append(required(at, f"must be '{value}'"))
        elif labels[name] != value:
            errors.append(invalid_value(at, labels, f"must be '{value}'"))

    selector = selector_of(spec)
    if selector is not None and not selector.matches(expected):
        errors.append(
            invalid_value(
                "spec.selector", selector_view(spec["selector"]), "`selector` not auto-generated"
            )
        )


# --- spec -----------------------------------------------------------------------------------------


def validate_job_spec(spec: Object, options: PodOptions, path: str, errors: Errors) -> None:
    """Validate the spec of a job or of a CronJob's template (``validateJobSpec``)."""
    for count in COUNTS:
        validate_nonnegative(spec.get(count), f"{path}.{count}", errors)

    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(
            required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
        )

    manager = spec.get("managedBy")
    if manager is not None:
        errors.extend(domain_prefixed_path(manager, f"{path}.managedBy"))
        if len(manager.encode()) > 63:
            errors.append(too_long(f"{path}.managedBy", 63))

    mode = spec.get("completionMode")
    validate_optional_choice(mode, ("NonIndexed", "Indexed"), f"{path}.completionMode", errors)

    if mode == "Indexed":
        _validate_indexed(spec, path, errors)
    elif mode in (None, "NonIndexed"):
        errors.extend(
            invalid_value(f"{path}.{field}", spec[field], NEEDS_INDEXES)
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        )

    if spec.get("podFailurePolicy") is not None:
        validate_pod_failure_policy(spec, f"{path}.podFailurePolicy", errors)
    if spec.get("successPolicy") is not None:
        validate_success_policy(spec, f"{path}.successPolicy", errors)
    replacement = spec.get("podReplacementPolicy")
    allowed: tuple[str, ...] = ("Failed", "TerminatingOrFailed")
    if spec.get("podFailurePolicy") is not None:
        allowed = ("Failed",)
    validate_optional_choice(replacement, allowed, f"{path}.podReplacementPolicy", errors)
    validate_pod_template(spec.get("template") or {}, options, f"{path}.template", errors)

    policy = nested_map(spec, "template", "spec").get("restartPolicy", "")
    at = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        errors.append(required(at, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(not_supported(at, policy, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        errors.append(
            invalid_value(
                at, policy, 'only "Never" is supported when podFailurePolicy is specified'
            )
        )


def _validate_indexed(spec: Object, path: str, errors: Errors) -> None:
    completions = spec.get("completions")
    parallelism = spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > MANY:
        detail = f"must be less than or equal to {MANY} when completion mode is Indexed"
        errors.append(invalid_value(f"{path}.parallelism", parallelism, detail))

    if completions is not None and failed is not None and failed > completions:
        errors.append(
            invalid_value(
                f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"
            )
        )

    if failed is not None and failed > MANY:
        errors.append(
            invalid_value(
                f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MANY}"
            )
        )

    if (completions or 0) > MANY and spec.get("backoffLimitPerIndex") is not None:
        tail = f"when completions are above {MANY} and used with backoff limit per index"
        if failed is None:
            errors.append(
                required(
                    f"{path}.maxFailedIndexes",
                    f"must be specified when completions is above {MANY}",
                )
            )
        if parallelism > MANY_PARALLEL:
            detail = f"must be less than or equal to {MANY_PARALLEL} {tail}"
            errors.append(invalid_value(f"{path}.parallelism", parallelism, detail))
        if (failed or 0) > MANY_FAILED:
            errors.append(
                invalid_value(
                    f"{path}.maxFailedIndexes",
                    failed,
                    f"must be less than or equal to {MANY_FAILED} {tail}",
                )
            )


# --- update ---------------------------------------------------------------------------------------


KEPT = (
    ("completionMode", ""),
    ("podFailurePolicy", "*batch.PodFailurePolicy"),
    ("backoffLimitPerIndex", ""),
    ("managedBy", ""),
    ("successPolicy", "*batch.SuccessPolicy"),
)


def _validate_template_kept(job: Object, old: Object, errors: Errors) -> None:
    """Refuse changes of the template, but of scheduling and resources while the job is suspended
    and has no pods."""
    new_template = job["spec"].get("template") or {}
    old_template = old["spec"].get("template") or {}
    if semantically_equal(new_template, old_template):
        return
    status: dict[str, Any] = status_of(old)
    is_suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in nested_list(status, "conditions")
    )

    is_idle = (status.get("startTime") is None or is_suspended) and not status.get("active")
    if not (old["spec"].get("suspend") and is_idle):
        errors.append(
            invalid_value("spec.template", go_view("core.PodTemplateSpec", new_template), IMMUTABLE)
        )
    elif not semantically_equal(
        new_template.get("spec"),
        _with_mutable_fields(spec_of(old_template), spec_of(new_template)),
    ):
        shown = go_view("core.PodSpec", new_template.get("spec"))
        errors.append(invalid_value("spec.template.spec", shown, IMMUTABLE))


def _with_mutable_fields(old_spec: Object, new_spec: Object) -> Object:
    """Return the old pod spec with the fields of the new one that may change while a job is
    suspended."""
    spec = dict(old_spec)
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        spec[field] = new_spec.get(field)
    affinity = {
        **(spec.get("affinity") or {}),
        "nodeAffinity": (new_spec.get("affinity") or {}).get("nodeAffinity"),
    }
    kept = {kind: value for kind, value in affinity.items() if value is not None}

    spec["affinity"] = kept or new_spec.get("affinity")
    spec = {field: value for field, value in spec.items() if value is not None}
    for field in ("containers", "initContainers"):
        containers = nested_list(spec, field)
        new_containers = nested_list(new_spec, field)
        if containers and len(containers) == len(new_containers):
            spec[field] = [
                {**container, "resources": new_container.get("resources", {})}
                if container.get("name") == new_container.get("name")
                else container
                for container, new_container in zip(containers, new_containers, strict=True)
            ]

    return spec


# --- when a Job has failed ------------------------------------------------------------------------


ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
STATUSES = ("False", "True", "Unknown")


def _listed(values: tuple[str, ...]) -> str:
    quoted = " ".join(quote(value) for value in values)
    return f"valid values: [{quoted}]"


def _omitted(path: str, detail: str) -> FieldError:
    """Return an error that does not show its value."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {detail}")


def validate_pod_failure_policy(spec: Object, path: str, errors: Errors) -> None:
    rules = nested_list(spec["podFailurePolicy"], "rules")
    if len(rules) > 20:
        errors.append(too_many(f"{path}.rules", len(rules), 20))
    pod_spec = nested_map(spec, "template", "spec")
    containers = [*nested_list(pod_spec, "containers"), *nested_list(pod_spec, "initContainers")]

    names = {container.get("name") for container in containers}
    for index, rule in enumerate(rules):
        rule_path = f"{path}.rules[{index}]"
        action = rule.get("action", "")
        codes = rule.get("onExitCodes")
        conditions = nested_list(rule, "onPodConditions")
        if not action:
            errors.append(required(f"{rule_path}.action", _listed(ACTIONS)))
        elif action not in ACTIONS:
            errors.append(not_supported(f"{rule_path}.action", action, ACTIONS))
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            errors.append(
                invalid_value(
                    f"{rule_path}.action", action, "requires the backoffLimitPerIndex to be set"
                )
            )
        if codes is not None:
            _validate_exit_codes(codes, names, f"{rule_path}.onExitCodes", errors)
        if conditions:
            _validate_pod_conditions(conditions, f"{rule_path}.onPodConditions", errors)
        if codes is not None and conditions:
            errors.append(
                _omitted(
                    rule_path, "specifying both OnExitCodes and OnPodConditions is not supported"
                )
            )
        if codes is None and not conditions:
            errors.append(
                _omitted(rule_path, "specifying one of OnExitCodes and OnPodConditions is required")
            )


def _validate_pod_conditions(patterns: list[Object], path: str, errors: Errors) -> None:
    if len(patterns) > 20:
        errors.append(too_many(path, len(patterns), 20))
    for index, pattern in enumerate(patterns):
        at = f"{path}[{index}]"
        kind = pattern.get("type", "")
        status = pattern.get("status", "")
        validate_as(label_key, kind, f"{at}.type", errors)
        if not status:
            errors.append(required(f"{at}.status", _listed(STATUSES)))
        elif status not in STATUSES:
            errors.append(not_supported(f"{at}.status", status, STATUSES))


def _validate_exit_codes(codes: Object, names: set[str], path: str, errors: Errors) -> None:
    operator = codes.get("operator", "")
    values = nested_list(codes, "values")
    container = codes.get("containerName")

    if not operator:
        errors.append(required(f"{path}.operator", _listed(OPERATORS)))
    elif operator not in OPERATORS:
        errors.append(not_supported(f"{path}.operator", operator, OPERATORS))

    if container is not None and container not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid_value(f"{path}.containerName", container, detail))

    if not values:
        errors.append(
            invalid_value(f"{path}.values", codes.get("values"), "at least one value is required")
        )
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))

    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(
                invalid_value(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
            )
        if value in values[:index]:
            errors.append(duplicate(f"{path}.values[{index}]", value))

    if values != sorted(values):
        errors.append(invalid_value(f"{path}.values", values, "must be ordered"))


# --- success --------------------------------------------------------------------------------------


def validate_success_policy(spec: Object, path: str, errors: Errors) -> None:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown = go_view("batch.SuccessPolicy", policy)
        errors.append(invalid_value(path, shown, "requires indexed completion mode"))
        return

    rules = nested_list(policy, "rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", detail))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.rules", len(rules), 20))

    for index, rule in enumerate(rules):
        completions = spec.get("completions") or 0
        rule_path = f"{path}.rules[{index}]"
        indexes = rule.get("succeededIndexes")
        count = rule.get("succeededCount")
        if indexes is None and count is None:
            errors.append(
                required(
                    rule_path,
                    "at least one of succeededCount or succeededIndexes must be specified",
                )
            )
        total = 0
        if indexes is not None:
            if len(indexes) > 64 * 1024:
                errors.append(too_long(f"{rule_path}.succeededIndexes", 64 * 1024))
            try:
                total = count_indexes(indexes, completions)
            except ValueError as error:
                detail = f"error parsing succeededIndexes: {error}"
                errors.append(invalid_value(f"{rule_path}.succeededIndexes", indexes, detail))
        if count is None:
            continue
        at = f"{rule_path}.succeededCount"
        validate_nonnegative(count, at, errors)
        if count > completions:
            detail = (
                f"must be less than or equal to {completions} (the number of specified completions)"
            )
            errors.append(invalid_value(at, count, detail))
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} "
                "(the number of indexes in the specified succeededIndexes field)"
            )
            errors.append(invalid_value(at, count, detail))


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in ``0,2-4``. Raises ValueError."""
    total = 0
    last = -1
    for interval in text.split(",") if text else ():
        low, high = _parse_interval(interval, completions)
        if last >= low:
            raise ValueError(f"non-increasing order, previous: {last}, current: {low}")
        total += high - low + 1
        last = high
    return total


def first_common_index(text: str, other: str, completions: int) -> int | None:
    """Return the lowest index that is in both texts; intervals that cannot be parsed count as
    empty."""
    other_intervals = _valid_intervals(other, completions)
    common: list[int] = []
    for low, high in _valid_intervals(text, completions):
        common += [
            max(low, other_low)
            for other_low, other_high in other_intervals
            if low <= other_high and other_low <= high
        ]
    return min(common, default=None)


def _valid_intervals(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for interval in text.split(","):
        with suppress(ValueError):
            intervals.append(_parse_interval(interval, completions))
    return intervals


def _parse_interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise ValueError(
            f"the fragment {quote(text)} violates the requirement that an index interval can have "
            f"at most "
            "two parts separated by '-'"
        )

    indexes = []
    for part in (parts[0], parts[-1]):
        index = int_or_none(part)
        if index is None:
            raise ValueError(f"cannot convert string to integer for index: {quote(part)}")
        if index >= completions:
            raise ValueError(f"too large index: {quote(part)}")
        indexes.append(index)

    low, high = indexes
    if len(parts) == 2 and low >= high:
        raise ValueError(f"non-increasing order, previous: {low}, current: {high}")
    return low, high
