"""Tables of Jobs and CronJobs."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, nested_list, spec_of, status_of
from kubepy.api.selectors import format_label_selector
from kubepy.apiserver.kinds.core.podtemplates.printers import container_cells, pod_spec
from kubepy.apiserver.printers import Cell, age, human_duration, printer, since


@printer("Name", "Status", "Completions", "Duration", "Age", "+Containers", "+Images", "+Selector")
def print_job(obj: Object, now: datetime) -> list[Cell]:
    status = status_of(obj)
    duration = ""
    if status.get("startTime"):
        end = parse_time(status["completionTime"]) if status.get("completionTime") else now
        duration = human_duration((end - parse_time(status["startTime"])).total_seconds())
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        _completions(obj),
        duration,
        age(obj, now),
        *container_cells(pod_spec(spec_of(obj))),
        format_label_selector(spec_of(obj).get("selector")),
    ]


def _job_status(obj: Object) -> str:
    conditions: dict[str, str] = {}
    for condition in nested_list(obj, "status", "conditions"):
        conditions.setdefault(condition["type"], condition["status"])
    for kind in ("Complete", "Failed"):
        if conditions.get(kind) == "True":
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if conditions.get(kind) == "True":
            return kind
    return "Running"


def _completions(obj: Object) -> str:
    spec = spec_of(obj)
    succeeded = status_of(obj).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    if parallelism > 1:
        return f"{succeeded}/1 of {parallelism}"
    return f"{succeeded}/1"


@printer(
    "Name",
    "Schedule",
    "Timezone",
    "Suspend",
    "Active",
    "Last Schedule",
    "Age",
    "+Containers",
    "+Images",
    "+Selector",
)
def print_cron_job(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    status = status_of(obj)
    job = spec_of(spec.get("jobTemplate") or {})
    last = status.get("lastScheduleTime")
    return [
        obj["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone", "<none>"),
        {None: "<unset>", True: "True", False: "False"}[spec.get("suspend")],
        len(status.get("active") or []),
        since(last, now) if last else "<none>",
        age(obj, now),
        *container_cells(pod_spec(job)),
        format_label_selector(job.get("selector")),
    ]
