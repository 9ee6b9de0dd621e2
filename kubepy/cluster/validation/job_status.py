"""The status of a Job: what may not be contradictory, or go back (``validateJobStatus``, ``ValidateJobStatusUpdate``).

Upstream looks only at what an update changes, so that a status from before a rule existed can still be written.
"""

from __future__ import annotations

from kubepy.cluster.errors import FieldError, invalid_value, required
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.validation.fields import Errors, validate_nonnegative

COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def validate_job_status_update(job: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status, before = job.get("status") or {}, old.get("status") or {}
    for count in COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    changed = {field for field in status.keys() | before.keys() if status.get(field) != before.get(field)}
    if changed:
        errors += _validate_conditions(status)
        errors += _validate_times(status, before)
        errors += _validate_finished(job, status)
        errors += _validate_kept(job["spec"], status, before)
    return errors


def is_true(status: Object, condition: str) -> bool:
    return any(one.get("type") == condition and one.get("status") == "True" for one in status.get("conditions") or ())


def _contradiction(why: str) -> FieldError:
    return FieldError("FieldValueInvalid", "status.conditions", f"Invalid value: {why}")


def _validate_conditions(status: Object) -> Errors:
    complete, failed = is_true(status, "Complete"), is_true(status, "Failed")
    failing, met = is_true(status, "FailureTarget"), is_true(status, "SuccessCriteriaMet")
    rules = (
        (complete and failed, "cannot set Complete=True and Failed=true conditions"),
        (complete and failing, "cannot set Complete=True and FailureTarget=true conditions"),
        (failed and not failing, "cannot set Failed=True condition without the FailureTarget=true condition"),
        (complete and not met, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"),
        (met and failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (met and failing, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    )
    return [_contradiction(why) for broken, why in rules if broken]


def _validate_times(status: Object, before: Object) -> Errors:
    started, completed = status.get("startTime"), status.get("completionTime")
    complete, at = is_true(status, "Complete"), "status.completionTime"
    errors: Errors = []
    if completed is not None and not complete:
        why = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid_value(at, completed, why))
    if completed is None and complete:
        errors.append(required(at, "completionTime is required for Complete jobs"))
    if started is not None and completed is not None and completed < started:
        errors.append(invalid_value(at, completed, "must be equal to or after `startTime`"))
    if None not in (completed, before.get("completionTime")) and completed != before["completionTime"]:
        errors.append(invalid_value(at, completed, "field is immutable"))
    return errors


def _validate_finished(job: Object, status: Object) -> Errors:
    errors: Errors = []
    finished = is_true(status, "Complete") or is_true(status, "Failed")
    active, ready = status.get("active", 0), status.get("ready", 0)
    nothing_to_do = job["spec"].get("suspend") and job["spec"].get("completions") == 0
    if finished and active > 0:
        errors.append(invalid_value("status.active", active, "active>0 is invalid for finished job"))
    if finished and status.get("startTime") is None and not nothing_to_do:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    if finished and status.get("terminating", 0) > 0:
        why = "terminating>0 is invalid for finished job"
        errors.append(invalid_value("status.terminating", status["terminating"], why))
    if ready > active:
        errors.append(invalid_value("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _validate_kept(spec: Object, status: Object, before: Object) -> Errors:
    """What is final stays, and counts only go up; but an Indexed job that shrinks loses completions."""
    errors = [_contradiction(f"cannot disable the terminal {condition}=True condition")
              for condition in ("Failed", "Complete", "FailureTarget")
              if is_true(before, condition) and not is_true(status, condition)]
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for count in ("failed",) if elastic else ("failed", "succeeded"):
        if status.get(count, 0) < before.get(count, 0):
            why = f"cannot decrease the {count} counter"
            errors.append(invalid_value(f"status.{count}", status.get(count, 0), why))
    if is_true(before, "SuccessCriteriaMet") and not is_true(status, "SuccessCriteriaMet"):
        errors.append(_contradiction("cannot disable the SuccessCriteriaMet=True condition"))
    return errors
