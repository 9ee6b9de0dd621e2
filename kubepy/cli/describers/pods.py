"""Describe a pod, and the pod template of a workload."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_list
from kubepy.cli.describers.containers import containers, resources
from kubepy.cli.describers.volumes import volumes
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    annotation_block,
    controlled_by,
    events,
    format_date,
    heading,
    label_block,
    labels_and_annotations,
    since,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import selectors


def pod(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj)
    if "priority" in spec:
        writer.field(0, "Priority", spec["priority"])
    for name, key in (
        ("Priority Class Name", "priorityClassName"),
        ("Runtime Class Name", "runtimeClassName"),
        ("Service Account", "serviceAccountName"),
    ):
        if spec.get(key):
            writer.field(0, name, spec[key])

    node = spec.get("nodeName")
    writer.field(0, "Node", f"{node}/{status.get('hostIP', '')}" if node else "<none>")
    if "startTime" in status:
        writer.field(0, "Start Time", format_date(status["startTime"]))
    labels_and_annotations(writer, obj)
    _status(writer, obj, context.now)
    writer.field(0, "IP", status.get("podIP", ""))
    if addresses := status.get("podIPs"):
        writer.line(0, "IPs:")
        for address in addresses:
            writer.field(1, "IP", address["ip"])
    else:
        writer.line(0, "IPs:\t<none>")

    controlled_by(writer, obj)
    if nominated := status.get("nominatedNodeName"):
        writer.field(0, "NominatedNodeName", nominated)
    if "resources" in spec:
        writer.line(0, "Resources:")
        resources(writer, spec["resources"], 1)
    for title, key, status_key in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ):
        if spec.get(key) or key == "containers":
            containers(
                writer,
                title,
                spec.get(key) or [],
                statuses=status.get(status_key),
                field_value=lambda path: field_value(obj, path),
            )

    _gates_and_conditions(writer, spec, status)
    volumes(writer, spec.get("volumes"))
    writer.field(0, "QoS Class", status.get("qosClass", "BestEffort"))
    label_block(writer, "Node-Selectors", spec.get("nodeSelector"))
    tolerations(writer, spec.get("tolerations"))
    spread_constraints(writer, spec.get("topologySpreadConstraints"))
    if context.unknowns:
        writer.several(0, "Not Known", context.unknowns)
    events(writer, context)


def _status(writer: PrefixWriter, obj: AnyObject, now: datetime) -> None:
    metadata = obj["metadata"]
    status = obj.get("status", {})
    phase = status.get("phase", "")
    if metadata.get("deletionTimestamp") and phase not in ("Failed", "Succeeded"):
        writer.field(
            0, "Status", f"Terminating (lasts {since(metadata['deletionTimestamp'], now)})"
        )
        writer.field(
            0, "Termination Grace Period", f"{metadata.get('deletionGracePeriodSeconds', 0)}s"
        )
    else:
        writer.field(0, "Status", phase)

    for name, key in (("Reason", "reason"), ("Message", "message")):
        if status.get(key):
            writer.field(0, name, status[key])
    if profile := obj["spec"].get("securityContext", {}).get("seccompProfile"):
        writer.field(0, "SeccompProfile", profile["type"])
        if profile["type"] == "Localhost":
            writer.field(0, "LocalhostProfile", profile["localhostProfile"])


def _gates_and_conditions(writer: PrefixWriter, spec: AnyObject, status: AnyObject) -> None:
    conditions = {
        condition["type"]: condition["status"] for condition in nested_list(status, "conditions")
    }
    if gates := spec.get("readinessGates"):
        writer.line(0, "Readiness Gates:\n  Type\tStatus")
        for gate in gates:
            writer.line(
                1, f"{gate['conditionType']} \t{conditions.get(gate['conditionType'], '<none>')} "
            )
    if conditions:
        writer.line(0, "Conditions:\n  Type\tStatus")
        for name, value in conditions.items():
            writer.line(1, f"{name} \t{value} ")


def field_value(obj: AnyObject, path: str) -> str:
    """Return a field of a pod that an environment variable refers to; kubectl knows these two."""
    return {"metadata.name": name_of(obj), "metadata.namespace": namespace_of(obj)}.get(path, "")


def template(writer: PrefixWriter, pod_template: AnyObject) -> None:
    """Write ``Pod Template:`` and everything in it."""
    metadata = pod_template.get("metadata", {})
    spec = pod_template.get("spec", {})
    writer.line(0, "Pod Template:")
    label_block(writer, "  Labels", metadata.get("labels"))
    if metadata.get("annotations"):
        annotation_block(writer, "  Annotations", metadata["annotations"])
    if spec.get("serviceAccountName"):
        writer.field(1, "Service Account", spec["serviceAccountName"])
    if spec.get("initContainers"):
        containers(writer, "Init Containers", spec["initContainers"], indent="  ")
    containers(writer, "Containers", nested_list(spec, "containers"), indent="  ")
    volumes(writer, spec.get("volumes"), indent="  ")
    spread_constraints(writer, spec.get("topologySpreadConstraints"), indent="  ")
    if spec.get("priorityClassName"):
        writer.field(1, "Priority Class Name", spec["priorityClassName"])
    label_block(writer, "  Node-Selectors", spec.get("nodeSelector"))
    tolerations(writer, spec.get("tolerations"), "  Tolerations")


def tolerations(
    writer: PrefixWriter, tolerations: list[AnyObject] | None, title: str = "Tolerations"
) -> None:
    in_order = sorted(tolerations or [], key=lambda toleration: toleration.get("key", ""))
    writer.several(0, title, (_toleration_text(toleration) for toleration in in_order))


def _toleration_text(toleration: AnyObject) -> str:
    text: str = toleration.get("key", "")
    if toleration.get("value"):
        text += f"={toleration['value']}"
    if toleration.get("effect"):
        text += f":{toleration['effect']}"
    if toleration.get("operator") == "Exists" and not toleration.get("value"):
        text += " op=Exists" if toleration.get("key") or toleration.get("effect") else "op=Exists"
    if "tolerationSeconds" in toleration:
        return f"{text} for {toleration['tolerationSeconds']}s"
    return text


def spread_constraints(
    writer: PrefixWriter, constraints: list[AnyObject] | None, indent: str = ""
) -> None:
    if not constraints:
        return
    lines = []
    for constraint in sorted(constraints, key=lambda constraint: constraint["topologyKey"]):
        line = (
            f"{constraint['topologyKey']}:{constraint['whenUnsatisfiable']} when max skew "
            f"{constraint['maxSkew']} "
            "is exceeded"
        )
        if "labelSelector" in constraint:
            line += f" for selector {selectors.format_label_selector(constraint['labelSelector'])}"
        lines.append(line)
    writer.several(0, f"{indent}Topology Spread Constraints", lines)
