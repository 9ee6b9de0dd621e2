"""PersistentVolumeClaim, also as the template of a pod's ephemeral volume."""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of, labels_of, name_of, namespace_of
from kubepy.api.objects.volumes import access_modes, class_of
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
    annotation_lines,
    events,
    format_date,
    go_value,
    heading,
    labels_and_annotations,
    since,
)


def claim(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec = obj["spec"]
    heading(writer, obj)
    writer.field(0, "StorageClass", class_of(obj))
    writer.field(0, "Status", phase(obj, around))
    writer.field(0, "Volume", spec.get("volumeName", ""))
    labels_and_annotations(writer, obj)
    writer.field(0, "Finalizers", go_value(obj["metadata"].get("finalizers") or []))
    _volume(writer, 0, obj)
    writer.several(0, "Used By", (name_of(pod) for pod in around.list("pods", namespace_of(obj)) if _uses(pod, obj)))
    _conditions(writer, obj.get("status", {}).get("conditions"))
    events(writer, around)


def phase(obj: Object, around: Surroundings) -> str:
    if deleted := obj["metadata"].get("deletionTimestamp"):
        return f"Terminating (lasts {since(deleted, around.now)})"
    return str(obj.get("status", {}).get("phase", ""))


def claim_template(writer: Writer, level: int, template: Object) -> None:
    """What the claim of an ephemeral volume will be, its labels and annotations further in, as upstream has them."""
    writer.field(level, "StorageClass", class_of(template))
    writer.field(level, "Volume", template["spec"].get("volumeName", ""))
    labels = (f"{key}={value}" for key, value in sorted(labels_of(template).items()))
    writer.several_nested(level, "Labels", labels, none="  " * level + "<none>")
    _annotations(writer, level, template)
    _volume(writer, level, template)


def _annotations(writer: Writer, level: int, template: Object) -> None:
    pad = "  " * level
    lines = annotation_lines(annotations_of(template))
    first, *rest = lines or ["<none>"]
    writer.line(level, f"Annotations:\t{pad}{first}")
    for line in rest:  # what follows a long one's key is not further in
        writer.line(level, f"\t{'' if line.startswith(' ') else pad}{line}")


def _volume(writer: Writer, level: int, obj: Object) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    bound = bool(spec.get("volumeName"))
    writer.field(level, "Capacity", (status.get("capacity") or {}).get("storage", "0") if bound else "")
    writer.field(level, "Access Modes", access_modes(status.get("accessModes")) if bound else "")
    if "volumeMode" in spec:
        writer.field(level, "VolumeMode", spec["volumeMode"])
    if source := spec.get("dataSource"):
        writer.line(level, "DataSource:")
        for name, key in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")):
            if source.get(key) is not None:
                writer.field(level + 1, name, source[key])


def _uses(pod: Object, obj: Object) -> bool:
    """Whether a pod mounts the claim, by name or through an ephemeral volume."""
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim", {}).get("claimName") == name_of(obj):
            return True
        if "ephemeral" in volume and f"{name_of(pod)}-{volume['name']}" == name_of(obj):
            return True
    return False


def _conditions(writer: Writer, conditions: list[Object] | None) -> None:
    if conditions:
        writer.line(0, "Conditions:")
        writer.line(1, "Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage")
        writer.line(1, "----\t------\t-----------------\t------------------\t------\t-------")
    for one in conditions or []:
        times = [format_date(one.get("lastProbeTime")), format_date(one.get("lastTransitionTime"))]
        cells = [one["type"], one["status"], *times, one.get("reason", ""), one.get("message", "")]
        writer.line(1, " \t".join(cells))
