"""Jobs and CronJobs (``pkg/registry/batch/*/strategy.go``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, name_of, nested_map, status_of, uid_of
from kubepy.apiserver.kinds.batch.defaults import default_labels
from kubepy.apiserver.kinds.core.pods.gates import drop_disabled_fields
from kubepy.apiserver.kinds.core.podtemplates.strategy import (
    WorkloadStrategy,
    name_warnings,
    template_of,
    template_warnings,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.apiserver.kinds.batch import defaults
    from kubepy.apiserver.kinds.batch.validation import cronjobs, jobs
    from kubepy.apiserver.kinds.batch.validation import job_status as job_status_validation

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"


class JobStrategy(WorkloadStrategy):
    selectable = ("status.successful",)

    def default(self, obj: Object) -> None:
        defaults.default_job(obj)

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)
        default_labels(obj)  # once more, as upstream defaults again what it reads back from storage

    def validate(self, obj: Object) -> list[FieldError]:
        return jobs.validate_job(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return jobs.validate_job(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return job_status_validation.validate_job_status_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + _job_warnings(obj["spec"], "spec")

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        changed = obj["metadata"].get("generation") != old["metadata"].get("generation")
        if changed:
            return _job_warnings(obj["spec"], "spec")
        return []

    def default_propagation(self) -> str:
        """Orphan the pods: ``batch/v1`` keeps the behaviour from before there was garbage
        collection."""
        return "Orphan"

    def not_selectable(self, field: str) -> str:
        return f"field label {quote(field)} not supported for Job"

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"status.successful": str(status_of(obj).get("succeeded", 0))}


def _generate_selector(job: Object) -> None:
    """Select the pods of a job by its own uid."""
    metadata = template_of(job).setdefault("metadata", {})
    generated = {
        "job-name": name_of(job),
        "batch.kubernetes.io/job-name": name_of(job),
        "controller-uid": uid_of(job),
        CONTROLLER_UID: uid_of(job),
    }
    metadata["labels"] = {**generated, **(metadata.get("labels") or {})}
    if not job["metadata"].get(
        "labels"
    ):  # as for every object that is read, these fill in what is missing
        job["metadata"]["labels"] = dict(metadata["labels"])

    selector = job["spec"].get("selector") or {}
    labels = {CONTROLLER_UID: uid_of(job), **(selector.get("matchLabels") or {})}
    job["spec"]["selector"] = {**selector, "matchLabels": labels}


def _job_warnings(spec: Object, path: str) -> list[str]:
    """Return the warnings for a job's spec (``WarningsForJobSpec``)."""
    warnings = []
    if spec.get("completionMode") == "Indexed":
        completions = spec.get("completions") or 0
        parallelism = spec.get("parallelism") or 0
        if completions > 100_000 and parallelism > 10_000:
            warnings.append(
                f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a "
                f"parallelism "
                "higher than 10^4, Kubernetes might not be able to track completedIndexes when a "
                "big "
                "number of indexes fail"
            )
    return warnings + template_warnings({"spec": spec}, f"{path}.template")


class CronJobStrategy(WorkloadStrategy):
    def default(self, obj: Object) -> None:
        defaults.default_cron_job(obj)

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        drop_disabled_fields(_pod_spec(obj))

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled_fields(_pod_spec(obj))

    def validate(self, obj: Object) -> list[FieldError]:
        return cronjobs.validate_cron_job(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return cronjobs.validate_cron_job(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return name_warnings(obj) + _job_warnings(
            obj["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec"
        )

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        changed = obj["metadata"].get("generation") != old["metadata"].get("generation")
        job_spec = obj["spec"]["jobTemplate"]["spec"]
        warnings = _job_warnings(job_spec, "spec.jobTemplate.spec") if changed else []
        if "TZ" in obj["spec"].get("schedule", ""):
            link = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
            warnings.append(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                f"{link} for more details"
            )
        return warnings


def _pod_spec(cron_job: Object) -> Object:
    job_spec = nested_map(cron_job["spec"], "jobTemplate", "spec")
    pod_spec: Object = nested_map(job_spec, "template", "spec")
    return pod_spec
