"""Job and CronJob."""

from __future__ import annotations

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object
from kubepy.api.selectors import format_label_selector
from kubepy.cli.describers.pods import template
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
    controlled_by,
    events,
    format_date,
    go_value,
    heading,
    labels_and_annotations,
    true_or_false,
)

SHOWN_INDEXES = 50


def job(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "Selector", format_label_selector(spec.get("selector") or {}))
    labels_and_annotations(writer, obj)
    controlled_by(writer, obj)
    _settings(writer, spec)
    _times(writer, spec, status)
    ready = f" ({status['ready']} Ready)" if "ready" in status else ""
    writer.field(0, "Pods Statuses", f"{status.get('active', 0)} Active{ready} / {status.get('succeeded', 0)} Succeeded"
                                     f" / {status.get('failed', 0)} Failed")
    if spec.get("completionMode") == "Indexed":
        writer.field(0, "Completed Indexes", _indexes(status.get("completedIndexes", "")))
    template(writer, spec["template"])
    events(writer, around)


def _settings(writer: Writer, spec: Object) -> None:
    if "parallelism" in spec:
        writer.field(0, "Parallelism", spec["parallelism"])
    writer.field(0, "Completions", spec.get("completions", "<unset>"))
    for name, key in (("Completion Mode", "completionMode"), ("Suspend", "suspend"), ("Backoff Limit", "backoffLimit"),
                      ("TTL Seconds After Finished", "ttlSecondsAfterFinished")):
        if key in spec:
            writer.field(0, name, go_value(spec[key]))


def _times(writer: Writer, spec: Object, status: Object) -> None:
    from kubepy.apiserver.printers.duration import human_duration

    started, completed = status.get("startTime"), status.get("completionTime")
    if started:
        writer.field(0, "Start Time", format_date(started))
    if completed:
        writer.field(0, "Completed At", format_date(completed))
    if started and completed:
        seconds = (parse_time(completed) - parse_time(started)).total_seconds()
        writer.field(0, "Duration", human_duration(seconds))
    if "activeDeadlineSeconds" in spec:
        writer.field(0, "Active Deadline Seconds", f"{spec['activeDeadlineSeconds']}s")


def _indexes(text: str) -> str:
    """The completed indexes, cut behind the first comma after 50 characters."""
    if not text:
        return "<none>"
    comma = text.find(",", SHOWN_INDEXES)
    return text if comma < 0 else text[:comma + 1] + "..."


def cron_job(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.field(0, "Schedule", spec["schedule"])
    writer.field(0, "Concurrency Policy", spec.get("concurrencyPolicy", ""))
    writer.field(0, "Suspend", true_or_false(spec.get("suspend")))
    for name, key in (("Time Zone", "timeZone"), ("Successful Job History Limit", "successfulJobsHistoryLimit"),
                      ("Failed Job History Limit", "failedJobsHistoryLimit")):
        writer.field(0, name, spec.get(key, "<unset>"))
    deadline = spec.get("startingDeadlineSeconds")
    writer.field(0, "Starting Deadline Seconds", "<unset>" if deadline is None else f"{deadline}s")
    _job_template(writer, spec["jobTemplate"].get("spec", {}))
    last = status.get("lastScheduleTime")
    writer.field(0, "Last Schedule Time", format_date(last) if last else "<unset>")
    writer.field(0, "Active Jobs", ", ".join(one["name"] for one in status.get("active") or []) or "<none>")
    events(writer, around)


def _job_template(writer: Writer, spec: Object) -> None:
    selector = spec.get("selector")
    writer.field(0, "Selector", "<unset>" if selector is None else format_label_selector(selector))
    writer.field(0, "Parallelism", spec.get("parallelism", "<unset>"))
    writer.field(0, "Completions", spec.get("completions", "<unset>"))
    if "activeDeadlineSeconds" in spec:
        writer.field(0, "Active Deadline Seconds", f"{spec['activeDeadlineSeconds']}s")
    template(writer, spec["template"])
