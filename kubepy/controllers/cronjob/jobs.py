"""The Jobs of a CronJob: what a new one looks like, which ones need not be kept. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, name_of, new_controller_ref
from kubepy.controllers.cronjob.schedule import zone_of

SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
COMPLETE, FAILED = "Complete", "Failed"


def outcome(job: Object) -> str:
    """Complete, Failed, or "" while it has not ended."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in (COMPLETE, FAILED) and condition["status"] == "True":
            return str(condition["type"])
    return ""


def job_name(cron_job: Object, due: datetime) -> str:
    """By the minute, so that no start is made twice (``getJobName``)."""
    return f"{name_of(cron_job)}-{int(due.timestamp()) // 60}"


def new_job(cron_job: Object, due: datetime) -> Object:
    """The Job of the start that is due (``getJobFromTemplate2``)."""
    template = cron_job["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), SCHEDULED_TIMESTAMP: _local_time(cron_job, due)}
    labels = {"labels": metadata["labels"]} if metadata.get("labels") else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(cron_job, due), **labels, "annotations": annotations,
                     "ownerReferences": [new_controller_ref(cron_job)]},
        "spec": template["spec"],
    }


def _local_time(cron_job: Object, due: datetime) -> str:
    local = due.astimezone(zone_of(cron_job)).replace(microsecond=0)
    return local.isoformat() if local.utcoffset() else format_time(due)


def beyond_limits(cron_job: Object, jobs: Iterable[Object]) -> list[Object]:
    """The Jobs that have ended and need not be kept, those that succeeded first, each the oldest first."""
    found = list(jobs)
    limits = ((COMPLETE, "successfulJobsHistoryLimit"), (FAILED, "failedJobsHistoryLimit"))
    surplus: list[Object] = []
    for kind, field in limits:
        ended = sorted((job for job in found if outcome(job) == kind), key=_start)
        limit = cron_job["spec"].get(field)
        surplus += ended[:max(len(ended) - limit, 0)] if limit is not None else []
    return surplus


def _start(job: Object) -> tuple[bool, str, str]:
    """By start, those that never started last, then by name (``byJobStartTime``)."""
    started = (job.get("status") or {}).get("startTime")
    return not started, started or "", name_of(job)
