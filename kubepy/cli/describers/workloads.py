"""Describe DaemonSets, Deployments, ReplicaSets, ReplicationControllers, StatefulSets, Jobs and
CronJobs."""

from __future__ import annotations

from collections import Counter

from kubepy.api.clock import parse_time
from kubepy.api.meta import (
    AnyObject,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
)
from kubepy.api.objects.deployments import new_replica_set, old_replica_sets
from kubepy.api.selectors import (
    format_label_selector,
    format_labels,
    from_label_selector,
)
from kubepy.cli.describers.pods import template
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    conditions_table,
    controlled_by,
    events,
    format_date,
    go_value,
    heading,
    label_block,
    labels_and_annotations,
    true_or_false,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver import printers as duration

SHOWN_INDEXES = 50  # characters


def daemon_set(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    writer.field(0, "Node-Selector", format_labels(spec["template"]["spec"].get("nodeSelector")))
    labels_and_annotations(writer, obj)
    for text, key in (
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ):
        writer.line(0, f"{text}: {status.get(key, 0)}")

    writer.field(0, "Pods Status", pods_status(obj, context))
    template(writer, spec["template"])
    events(writer, context)


def pods_status(obj: AnyObject, context: DescribeContext) -> str:
    """Count the pods of a controller by phase."""
    labels = obj["spec"]["selector"]  # of a ReplicationController
    selector = from_label_selector(
        {"matchLabels": labels} if obj["kind"] == "ReplicationController" else labels
    )
    phases = Counter(
        pod.get("status", {}).get("phase")
        for pod in context.list("pods", namespace_of(obj))
        if is_controlled_by(pod, obj) and selector.matches(labels_of(pod))
    )
    return (
        f"{phases['Running']} Running / {phases['Pending']} Waiting / {phases['Succeeded']} "
        f"Succeeded"
        f" / {phases['Failed']} Failed"
    )


def replication_controller(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    writer.field(0, "Selector", format_labels(obj["spec"]["selector"]))
    labels_and_annotations(writer, obj)
    _pods_and_conditions(writer, obj, context)


def replica_set(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    writer.field(0, "Selector", format_label_selector(obj["spec"]["selector"]))
    labels_and_annotations(writer, obj)
    controlled_by(writer, obj)
    _pods_and_conditions(writer, obj, context)


def _pods_and_conditions(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    writer.field(
        0, "Replicas", f"{status.get('replicas', 0)} current / {spec.get('replicas', 0)} desired"
    )
    writer.field(0, "Pods Status", pods_status(obj, context))
    template(writer, spec["template"])
    conditions_table(writer, status.get("conditions"))
    events(writer, context)


def deployment(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj, created=True)
    labels_and_annotations(writer, obj)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    counts = (
        f"{status.get(key, 0)} {word}"
        for key, word in (
            ("updatedReplicas", "updated"),
            ("replicas", "total"),
            ("availableReplicas", "available"),
            ("unavailableReplicas", "unavailable"),
        )
    )
    writer.field(0, "Replicas", " | ".join([f"{spec.get('replicas', 0)} desired", *counts]))
    writer.field(0, "StrategyType", spec["strategy"]["type"])
    writer.field(0, "MinReadySeconds", spec.get("minReadySeconds", 0))
    if rolling := spec["strategy"].get("rollingUpdate"):
        writer.field(
            0,
            "RollingUpdateStrategy",
            f"{rolling['maxUnavailable']} max unavailable, {rolling['maxSurge']} max surge",
        )

    template(writer, spec["template"])
    conditions_table(writer, status.get("conditions"))
    owned = [
        replica_set
        for replica_set in context.list("replicasets.apps", namespace_of(obj))
        if is_controlled_by(replica_set, obj)
    ]
    newest = new_replica_set(obj, owned)
    old = old_replica_sets(obj, owned)
    if newest is not None or old:
        for name, replica_sets in (
            ("OldReplicaSets", old),
            ("NewReplicaSet", [newest] if newest else []),
        ):
            texts = (
                f"{name_of(replica_set)} ({replica_set.get('status', {}).get('replicas', 0)}/"
                f"{replica_set['spec'].get('replicas', 0)} replicas created)"
                for replica_set in replica_sets
            )
            writer.field(0, name, ", ".join(texts) or "<none>")

    events(writer, context)


def stateful_set(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj, created=True)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    labels_and_annotations(writer, obj)
    writer.field(
        0, "Replicas", f"{spec.get('replicas', 0)} desired | {status.get('replicas', 0)} total"
    )
    strategy = spec.get("updateStrategy", {})
    writer.field(0, "Update Strategy", strategy.get("type", ""))
    rolling = nested_map(strategy, "rollingUpdate")
    if "partition" in rolling:
        writer.field(1, "Partition", rolling["partition"])
        if "maxUnavailable" in rolling:
            writer.field(1, "MaxUnavailable", rolling["maxUnavailable"])

    writer.field(0, "Pods Status", pods_status(obj, context))
    template(writer, spec["template"])
    templates = nested_list(spec, "volumeClaimTemplates")
    writer.line(0, "Volume Claims:" + ("" if templates else "\t<none>"))
    for claim in templates:
        metadata = claim["metadata"]
        claim_spec = claim["spec"]
        writer.field(1, "Name", metadata["name"])
        writer.field(1, "StorageClass", claim_spec.get("storageClassName", ""))
        label_block(writer, "  Labels", metadata.get("labels"))
        label_block(writer, "  Annotations", metadata.get("annotations"))
        requests = claim_spec.get("resources", {}).get("requests", {})
        writer.field(1, "Capacity", requests.get("storage", "<default>"))
        writer.field(1, "Access Modes", go_value(nested_list(claim_spec, "accessModes")))

    events(writer, context)


def job(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "Selector", format_label_selector(nested_map(spec, "selector")))
    labels_and_annotations(writer, obj)
    controlled_by(writer, obj)
    if "parallelism" in spec:
        writer.field(0, "Parallelism", spec["parallelism"])
    writer.field(0, "Completions", spec.get("completions", "<unset>"))
    for name, key in (
        ("Completion Mode", "completionMode"),
        ("Suspend", "suspend"),
        ("Backoff Limit", "backoffLimit"),
        ("TTL Seconds After Finished", "ttlSecondsAfterFinished"),
    ):
        if key in spec:
            writer.field(0, name, go_value(spec[key]))

    started = status.get("startTime")
    completed = status.get("completionTime")
    if started:
        writer.field(0, "Start Time", format_date(started))
    if completed:
        writer.field(0, "Completed At", format_date(completed))
    if started and completed:
        seconds = (parse_time(completed) - parse_time(started)).total_seconds()
        writer.field(0, "Duration", duration.human_duration(seconds))
    if "activeDeadlineSeconds" in spec:
        writer.field(0, "Active Deadline Seconds", f"{spec['activeDeadlineSeconds']}s")
    ready = f" ({status['ready']} Ready)" if "ready" in status else ""
    writer.field(
        0,
        "Pods Statuses",
        f"{status.get('active', 0)} Active{ready} / {status.get('succeeded', 0)} Succeeded"
        f" / {status.get('failed', 0)} Failed",
    )
    if spec.get("completionMode") == "Indexed":
        indexes = status.get("completedIndexes", "")
        comma = indexes.find(",", SHOWN_INDEXES)  # a longer list is cut after that comma
        writer.field(
            0,
            "Completed Indexes",
            (indexes if comma < 0 else indexes[: comma + 1] + "...") or "<none>",
        )

    template(writer, spec["template"])
    events(writer, context)


def cron_job(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.field(0, "Schedule", spec["schedule"])
    writer.field(0, "Concurrency Policy", spec.get("concurrencyPolicy", ""))
    writer.field(0, "Suspend", true_or_false(spec.get("suspend")))
    for name, key in (
        ("Time Zone", "timeZone"),
        ("Successful Job History Limit", "successfulJobsHistoryLimit"),
        ("Failed Job History Limit", "failedJobsHistoryLimit"),
    ):
        writer.field(0, name, spec.get(key, "<unset>"))

    deadline = spec.get("startingDeadlineSeconds")
    writer.field(0, "Starting Deadline Seconds", "<unset>" if deadline is None else f"{deadline}s")
    job_spec = spec["jobTemplate"].get("spec", {})
    selector = job_spec.get("selector")
    writer.field(0, "Selector", "<unset>" if selector is None else format_label_selector(selector))
    writer.field(0, "Parallelism", job_spec.get("parallelism", "<unset>"))
    writer.field(0, "Completions", job_spec.get("completions", "<unset>"))
    if "activeDeadlineSeconds" in job_spec:
        writer.field(0, "Active Deadline Seconds", f"{job_spec['activeDeadlineSeconds']}s")
    template(writer, job_spec["template"])
    last = status.get("lastScheduleTime")
    writer.field(0, "Last Schedule Time", format_date(last) if last else "<unset>")
    writer.field(
        0,
        "Active Jobs",
        ", ".join(reference["name"] for reference in nested_list(status, "active")) or "<none>",
    )
    events(writer, context)
