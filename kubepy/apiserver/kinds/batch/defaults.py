"""Defaults of Jobs and CronJobs (``batch/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.kinds.core.pods.defaults import default_pod_template

NO_LIMIT = 2**31 - 1


def default_job(job: Object) -> None:
    spec = job.setdefault("spec", {})
    _default_template_and_policies(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else NO_LIMIT)
    default_labels(job)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def default_labels(job: Object) -> None:
    """Give a job without labels those of its template."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _default_template_and_policies(spec: Object) -> None:
    default_pod_template(spec.setdefault("template", {}))
    for rule in nested_list(spec, "podFailurePolicy", "rules"):
        for pattern in nested_list(rule, "onPodConditions"):
            if not pattern.get("status"):
                pattern["status"] = "True"


def default_cron_job(cron_job: Object) -> None:
    """Set the defaults of a CronJob; the job inside gets its own when it is made."""
    spec = cron_job.setdefault("spec", {})
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    _default_template_and_policies(template.setdefault("spec", {}))
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
