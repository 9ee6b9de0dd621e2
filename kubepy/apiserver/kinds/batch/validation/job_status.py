"""Updates of a Job's status: no contradictions, no steps back (``validateJobStatus``,
``ValidateJobStatusUpdate``).

Only changes are checked, so that a status from before a rule existed can still be written, and one
that a change of the spec made invalid can be repaired (``getStatusValidationOptions``).
"""

from __future__ import annotations

from kubepy.api.errors import FieldError, duplicate, invalid_value, required
from kubepy.api.meta import Object, nested_list, status_of
from kubepy.apiserver.kinds.batch.validation.jobs import count_indexes, first_common_index
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    Errors,
    go_view,
    semantically_equal,
    validate_nonnegative,
)

COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
FINISHED = "Complete or Failed"


def validate_job_status_update(job: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(job)
    for count in COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    change = _Change(job["spec"], status, status_of(old))

    uids: set[str] = set()
    for kind in ("succeeded", "failed"):
        for index, uid in enumerate(nested_list(status, "uncountedTerminatedPods", kind)):
            path = f"status.uncountedTerminatedPods.{kind}[{index}]"
            if not uid:
                errors.append(invalid_value(path, uid, "must not be empty"))
            elif uid in uids:
                errors.append(duplicate(path, uid))
            uids.add(uid)

    return [
        *errors,
        *_validate_conditions(change),
        *_validate_finished(change),
        *_validate_indexes(change),
        *_validate_success(change),
        *_validate_kept(change),
    ]


def _validate_conditions(change: _Change) -> Errors:
    errors: Errors = []
    is_complete = change.has("Complete")
    is_failed = change.has("Failed")
    fails = change.has("FailureTarget")
    succeeds = change.has("SuccessCriteriaMet")
    if change.turns("Complete", "Failed") and is_complete and is_failed:
        errors.append(_contradiction("cannot set Complete=True and Failed=true conditions"))
    if change.turns("Complete", "FailureTarget") and is_complete and fails:
        errors.append(_contradiction("cannot set Complete=True and FailureTarget=true conditions"))
    errors += _validate_completion_time(change)
    # FailureTarget comes before Failed, SuccessCriteriaMet before Complete.
    if change.turns("Failed", "FailureTarget") and is_failed and not fails:
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(_contradiction(detail))
    if change.turns("Complete", "SuccessCriteriaMet") and is_complete and not succeeds:
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(_contradiction(detail))
    return errors


def _validate_success(change: _Change) -> Errors:
    errors: Errors = []
    terminating = change.status.get("terminating", 0)
    ready = change.status.get("ready", 0)

    ends = change.turns(FINISHED)
    if (ends or change.changes("terminating")) and terminating > 0 and change.has(FINISHED):
        errors.append(
            invalid_value(
                "status.terminating", terminating, "terminating>0 is invalid for finished job"
            )
        )

    if change.changes("ready", "active") and ready > change.status.get("active", 0):
        errors.append(
            invalid_value("status.ready", ready, "cannot set more ready pods than active")
        )

    met = change.has("SuccessCriteriaMet")
    if met and change.has("Failed"):
        errors.append(
            _contradiction("cannot set SuccessCriteriaMet=True and Failed=true conditions")
        )

    if met and change.has("FailureTarget"):
        errors.append(
            _contradiction("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
        )

    if change.spec.get("successPolicy") is not None and change.has("Complete") and not met:
        detail = (
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        )
        errors.append(_contradiction(detail))

    return errors


class _Change:
    """An update of a status."""

    def __init__(self, spec: Object, status: Object, old: Object) -> None:
        self.spec = spec
        self.status = status
        self.old = old

    @property
    def is_indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == "Indexed")

    def has(self, condition: str) -> bool:
        return _has(self.status, condition)

    def had(self, condition: str) -> bool:
        return _has(self.old, condition)

    def turns(self, *conditions: str) -> bool:
        """Return whether one of the conditions becomes true, or no longer is."""
        return any(self.has(condition) != self.had(condition) for condition in conditions)

    def changes(self, *fields: str) -> bool:
        return any(
            not semantically_equal(self.status.get(field), self.old.get(field)) for field in fields
        )


def _has(status: Object, condition: str) -> bool:
    if condition == FINISHED:
        return _has(status, "Complete") or _has(status, "Failed")
    return any(
        entry.get("type") == condition and entry.get("status") == "True"
        for entry in nested_list(status, "conditions")
    )


def _contradiction(detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", "status.conditions", f"Invalid value: {detail}")


def _validate_completion_time(change: _Change) -> Errors:
    errors: Errors = []
    started = change.status.get("startTime")
    completed = change.status.get("completionTime")
    complete = change.has("Complete")
    path = "status.completionTime"
    if change.turns("Complete") or change.changes("completionTime"):
        if completed is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid_value(path, completed, detail))
        if completed is None and complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))

    are_both_set = started is not None and completed is not None
    ends_too_early = are_both_set and str(completed) < str(started)
    if change.changes("startTime", "completionTime") and ends_too_early:
        errors.append(invalid_value(path, completed, "must be equal to or after `startTime`"))
    return errors


def _validate_finished(change: _Change) -> Errors:
    """Require that a Job that has finished has no active pods, and has counted all."""
    if not change.has(FINISHED):
        return []
    errors: Errors = []
    status = change.status
    ends = change.turns(FINISHED)
    active = status.get("active", 0)
    uncounted = status.get("uncountedTerminatedPods") or {}

    if (ends or change.changes("active")) and active > 0:
        errors.append(
            invalid_value("status.active", active, "active>0 is invalid for finished job")
        )

    never_began = change.spec.get("suspend") and change.spec.get("completions") == 0
    lacks_start = status.get("startTime") is None and not never_began
    if (ends or change.changes("startTime")) and lacks_start:
        errors.append(required("status.startTime", "startTime is required for finished job"))

    if (ends or change.changes("uncountedTerminatedPods")) and any(uncounted.values()):
        shown = go_view("batch.UncountedTerminatedPods", uncounted)
        errors.append(
            invalid_value("status.uncountedTerminatedPods", shown, "must be empty for finished job")
        )

    return errors


def _validate_indexes(change: _Change) -> Errors:
    errors: Errors = []
    if change.changes("completedIndexes"):
        errors += _validate_index_list(change, "completedIndexes")
    if change.changes("failedIndexes") and "backoffLimitPerIndex" in change.spec:
        errors += _validate_index_list(change, "failedIndexes")
    completed = change.status.get("completedIndexes", "")
    failed = change.status.get("failedIndexes")
    if change.changes("completedIndexes") and completed and not change.is_indexed:
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid_value("status.completedIndexes", completed, detail))

    if (
        change.changes("failedIndexes")
        and failed is not None
        and "backoffLimitPerIndex" not in change.spec
    ):
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid_value("status.failedIndexes", failed, detail))

    if (
        change.changes("failedIndexes", "completedIndexes")
        and failed
        and "completions" in change.spec
    ):
        common = first_common_index(completed, failed, change.spec["completions"])
        if common is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {common}"
            errors.append(invalid_value("status.failedIndexes", failed, detail))

    return errors


def _validate_index_list(change: _Change, field: str) -> Errors:
    text = change.status.get(field)
    completions = change.spec.get("completions")
    if not text or completions is None:
        return []
    try:
        count_indexes(text, completions)
    except ValueError as error:
        return [invalid_value(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []


def _validate_kept(change: _Change) -> Errors:
    """Refuse to undo final conditions, or to lower counts; but an Indexed job that shrinks loses
    completions."""
    errors = [
        _contradiction(f"cannot disable the terminal {condition}=True condition")
        for condition in ("Failed", "Complete", "FailureTarget")
        if change.had(condition) and not change.has(condition)
    ]
    is_elastic = change.is_indexed and change.spec.get("completions") == change.spec.get(
        "parallelism"
    )

    counts = ("failed",) if is_elastic else ("failed", "succeeded")
    for count in counts:
        now = change.status.get(count, 0)
        if now < change.old.get(count, 0):
            errors.append(
                invalid_value(f"status.{count}", now, f"cannot decrease the {count} counter")
            )

    completed = change.status.get("completionTime")
    had_completed = change.old.get("completionTime") is not None
    if change.changes("completionTime") and completed is not None and had_completed:
        errors.append(invalid_value("status.completionTime", completed, IMMUTABLE))
    had_started = change.old.get("startTime") is not None
    resumes = change.had("Suspended") and not change.has("Suspended")

    may_start_again = resumes or change.spec.get("suspend")
    if change.changes("startTime") and had_started and not may_start_again:
        errors.append(
            required("status.startTime", "startTime cannot be removed for unsuspended job")
        )

    if change.had("SuccessCriteriaMet") and not change.has("SuccessCriteriaMet"):
        errors.append(_contradiction("cannot disable the SuccessCriteriaMet=True condition"))
    elif (
        change.had("Complete")
        and change.has("SuccessCriteriaMet")
        and not change.had("SuccessCriteriaMet")
    ):
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(_contradiction(detail))

    return errors
