"""CronJobs (``pkg/apis/batch/validation/validation.go``)."""

from __future__ import annotations

import re

from kubepy.api.errors import FieldError, invalid_value, not_supported, required
from kubepy.api.meta import Object, name_of, nested_map
from kubepy.apiserver.kinds.batch.validation.jobs import validate_job_spec
from kubepy.apiserver.kinds.core.pods.validation.options import PodOptions
from kubepy.apiserver.kinds.core.podtemplates.validation import (
    TOLERANT_OF_NOTHING,
    template_options,
)
from kubepy.apiserver.validation.fields import (
    Errors,
    selector_view,
    validate_choice,
    validate_nonnegative,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import cron


def validate_cron_job(cron_job: Object, old: Object | None = None) -> list[FieldError]:
    errors = _validate_cron_spec(cron_job["spec"], old, TOLERANT_OF_NOTHING)
    if errors and old is not None:
        errors = _validate_cron_spec(
            cron_job["spec"], old, template_options({"spec": _job_spec(old["spec"])})
        )
    if old is None and len(name_of(cron_job).encode()) > 52:
        errors.append(
            invalid_value("metadata.name", name_of(cron_job), "must be no more than 52 characters")
        )
    return errors


def _job_spec(spec: Object) -> Object:
    job_spec: Object = nested_map(spec, "jobTemplate", "spec")
    return job_spec


def _validate_cron_spec(spec: Object, old: Object | None, options: PodOptions) -> Errors:
    errors: Errors = []
    old_spec: Object = (old or {}).get("spec") or {}
    _validate_schedule(spec, old_spec.get("schedule", ""), errors)
    validate_nonnegative(
        spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds", errors
    )
    zone = spec.get("timeZone")
    if zone is not None and zone != old_spec.get("timeZone"):
        _validate_time_zone(zone, "spec.timeZone", errors)
    policies = ("Allow", "Forbid", "Replace")
    validate_choice(spec.get("concurrencyPolicy", ""), policies, "spec.concurrencyPolicy", errors)
    job_spec = _job_spec(spec)
    path = "spec.jobTemplate.spec"
    validate_job_spec(job_spec, options, path, errors)
    if job_spec.get("selector") is not None:
        shown = selector_view(job_spec["selector"])
        errors.append(invalid_value(f"{path}.selector", shown, "`selector` will be auto-generated"))
    if job_spec.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        validate_nonnegative(spec.get(field), f"spec.{field}", errors)
    return errors


def _validate_schedule(spec: Object, old_schedule: str, errors: Errors) -> None:
    schedule = spec.get("schedule", "")
    path = "spec.schedule"
    if not schedule:
        errors.append(required(path))
        return

    try:
        cron.parse(schedule)
    except cron.CronError as error:
        errors.append(invalid_value(path, schedule, str(error)))

    if "TZ" not in schedule:
        return

    if "TZ" not in old_schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid_value(path, schedule, detail))
    elif spec.get("timeZone") is not None:
        errors.append(
            invalid_value(
                path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            )
        )


def _validate_time_zone(zone: str, path: str, errors: Errors) -> None:
    if not zone:
        errors.append(invalid_value(path, zone, "timeZone must be nil or non-empty string"))
    elif not all(
        re.fullmatch(r"[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}", part) and part not in (".", "..")
        for part in zone.split("/")
    ):
        errors.append(invalid_value(path, zone, printable(f"unknown time zone {zone}")))
    elif zone.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        errors.append(invalid_value(path, zone, detail))
    elif not cron.is_time_zone(zone):
        errors.append(invalid_value(path, zone, printable(f"unknown time zone {zone}")))
