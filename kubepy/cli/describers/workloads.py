"""DaemonSet, Deployment, ReplicaSet, ReplicationController and StatefulSet."""

from __future__ import annotations

from collections import Counter

from kubepy.api.meta import Object, is_controlled_by, labels_of, name_of, namespace_of
from kubepy.api.objects.deployments import new_replica_set, old_replica_sets
from kubepy.api.selectors import (
    LabelSelector,
    format_label_selector,
    format_labels,
    from_label_selector,
)
from kubepy.cli.describers.pods import template
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
    conditions_table,
    controlled_by,
    events,
    go_value,
    heading,
    label_block,
    labels_and_annotations,
)


def daemon_set(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    writer.field(0, "Node-Selector", format_labels(spec["template"]["spec"].get("nodeSelector")))
    labels_and_annotations(writer, obj)
    for text, key in (("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
                      ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
                      ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
                      ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
                      ("Number of Nodes Misscheduled", "numberMisscheduled")):
        writer.line(0, f"{text}: {status.get(key, 0)}")
    writer.field(0, "Pods Status", pods_status(obj, around))
    template(writer, spec["template"])
    events(writer, around)


def pods_status(obj: Object, around: Surroundings) -> str:
    """How many pods of a controller are in which phase."""
    selector = _selector(obj)
    phases = Counter(
        pod.get("status", {}).get("phase")
        for pod in around.list("pods", namespace_of(obj))
        if is_controlled_by(pod, obj) and selector.matches(labels_of(pod))
    )
    return (f"{phases['Running']} Running / {phases['Pending']} Waiting / {phases['Succeeded']} Succeeded"
            f" / {phases['Failed']} Failed")


def _selector(obj: Object) -> LabelSelector:
    """A ReplicationController's is a mere map of labels."""
    source = obj["spec"]["selector"]
    return from_label_selector({"matchLabels": source} if obj["kind"] == "ReplicationController" else source)


def replication_controller(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "Selector", format_labels(spec["selector"]))
    labels_and_annotations(writer, obj)
    _pods_and_conditions(writer, obj, around, spec, status)


def replica_set(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    labels_and_annotations(writer, obj)
    controlled_by(writer, obj)
    _pods_and_conditions(writer, obj, around, spec, status)


def _pods_and_conditions(writer: Writer, obj: Object, around: Surroundings, spec: Object, status: Object) -> None:
    writer.field(0, "Replicas", f"{status.get('replicas', 0)} current / {spec.get('replicas', 0)} desired")
    writer.field(0, "Pods Status", pods_status(obj, around))
    template(writer, spec["template"])
    conditions_table(writer, status.get("conditions"))
    events(writer, around)


def deployment(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj, created=True)
    labels_and_annotations(writer, obj)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    counts = (f"{status.get(key, 0)} {word}" for key, word in (
        ("updatedReplicas", "updated"), ("replicas", "total"), ("availableReplicas", "available"),
        ("unavailableReplicas", "unavailable")))
    writer.field(0, "Replicas", " | ".join([f"{spec.get('replicas', 0)} desired", *counts]))
    writer.field(0, "StrategyType", spec["strategy"]["type"])
    writer.field(0, "MinReadySeconds", spec.get("minReadySeconds", 0))
    if rolling := spec["strategy"].get("rollingUpdate"):
        writer.field(0, "RollingUpdateStrategy",
                     f"{rolling['maxUnavailable']} max unavailable, {rolling['maxSurge']} max surge")
    template(writer, spec["template"])
    conditions_table(writer, status.get("conditions"))
    _replica_sets(writer, obj, around)
    events(writer, around)


def _replica_sets(writer: Writer, obj: Object, around: Surroundings) -> None:
    owned = [one for one in around.list("replicasets.apps", namespace_of(obj)) if is_controlled_by(one, obj)]
    newest, old = new_replica_set(obj, owned), old_replica_sets(obj, owned)
    if newest is not None or old:
        writer.field(0, "OldReplicaSets", _created(old))
        writer.field(0, "NewReplicaSet", _created([newest] if newest else []))


def _created(replica_sets: list[Object]) -> str:
    return ", ".join(
        f"{name_of(one)} ({one.get('status', {}).get('replicas', 0)}/{one['spec'].get('replicas', 0)} replicas created)"
        for one in replica_sets) or "<none>"


def stateful_set(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj, created=True)
    writer.field(0, "Selector", format_label_selector(spec["selector"]))
    labels_and_annotations(writer, obj)
    writer.field(0, "Replicas", f"{spec.get('replicas', 0)} desired | {status.get('replicas', 0)} total")
    strategy = spec.get("updateStrategy", {})
    writer.field(0, "Update Strategy", strategy.get("type", ""))
    rolling = strategy.get("rollingUpdate") or {}
    if "partition" in rolling:
        writer.field(1, "Partition", rolling["partition"])
        if "maxUnavailable" in rolling:
            writer.field(1, "MaxUnavailable", rolling["maxUnavailable"])
    writer.field(0, "Pods Status", pods_status(obj, around))
    template(writer, spec["template"])
    _claim_templates(writer, spec.get("volumeClaimTemplates"))
    events(writer, around)


def _claim_templates(writer: Writer, templates: list[Object] | None) -> None:
    writer.line(0, "Volume Claims:" + ("" if templates else "\t<none>"))
    for claim in templates or []:
        metadata, spec = claim["metadata"], claim["spec"]
        requested = spec.get("resources", {}).get("requests", {}).get("storage", "<default>")
        writer.field(1, "Name", metadata["name"])
        writer.field(1, "StorageClass", spec.get("storageClassName", ""))
        label_block(writer, "  Labels", metadata.get("labels"))
        label_block(writer, "  Annotations", metadata.get("annotations"))
        writer.field(1, "Capacity", requested)
        writer.field(1, "Access Modes", go_value(spec.get("accessModes") or []))
