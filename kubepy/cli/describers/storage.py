"""PersistentVolumeClaim, PersistentVolume and StorageClass."""

from __future__ import annotations

from kubepy.cli.describers.volumes import volume_source
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
    events,
    format_date,
    go_value,
    heading,
    labels_and_annotations,
    since,
    true_or_false,
)
from kubepy.cluster.objects.meta import Object, name_of, namespace_of
from kubepy.cluster.selectors.labels import format_labels

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def claim(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj["spec"], obj.get("status", {})
    heading(writer, obj)
    writer.field(0, "StorageClass", _class_of(obj))
    writer.field(0, "Status", _phase(obj, around))
    writer.field(0, "Volume", spec.get("volumeName", ""))
    labels_and_annotations(writer, obj)
    writer.field(0, "Finalizers", go_value(obj["metadata"].get("finalizers") or []))
    bound = bool(spec.get("volumeName"))
    writer.field(0, "Capacity", (status.get("capacity") or {}).get("storage", "0") if bound else "")
    writer.field(0, "Access Modes", _access_modes(status.get("accessModes")) if bound else "")
    if "volumeMode" in spec:
        writer.field(0, "VolumeMode", spec["volumeMode"])
    if source := spec.get("dataSource"):
        writer.line(0, "DataSource:")
        for name, key in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")):
            if key in source:
                writer.field(1, name, source[key])
    writer.several(0, "Used By", (name_of(pod) for pod in around.list("pods", namespace_of(obj)) if _uses(pod, obj)))
    _conditions(writer, status.get("conditions"))
    events(writer, around)


def _class_of(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(BETA_CLASS) or obj["spec"].get("storageClassName", ""))


def _phase(obj: Object, around: Surroundings) -> str:
    if deleted := obj["metadata"].get("deletionTimestamp"):
        return f"Terminating (lasts {since(deleted, around.now)})"
    return str(obj.get("status", {}).get("phase", ""))


def _access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in (modes or []))


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


def volume(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec = obj["spec"]
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "Finalizers", go_value(obj["metadata"].get("finalizers") or []))
    writer.field(0, "StorageClass", _class_of(obj))
    writer.field(0, "Status", _phase(obj, around))
    reference = spec.get("claimRef")
    writer.field(0, "Claim", f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else "")
    writer.field(0, "Reclaim Policy", spec.get("persistentVolumeReclaimPolicy", ""))
    writer.field(0, "Access Modes", _access_modes(spec.get("accessModes")))
    if "volumeMode" in spec:
        writer.field(0, "VolumeMode", spec["volumeMode"])
    writer.field(0, "Capacity", (spec.get("capacity") or {}).get("storage", "0"))
    _node_affinity(writer, spec.get("nodeAffinity"))
    writer.field(0, "Message", obj.get("status", {}).get("message", ""))
    writer.line(0, "Source:")
    volume_source(writer, spec)
    events(writer, around)


def _node_affinity(writer: Writer, affinity: Object | None) -> None:
    writer.line(0, "Node Affinity:" + ("" if affinity else "\t<none>"))
    if not affinity:
        return
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or []
    writer.line(1, "Required Terms:" + ("" if terms else "\t<none>"))
    for index, term in enumerate(terms):
        writer.several(2, f"Term {index}", (_requirement(one) for one in term.get("matchExpressions") or []))


def _requirement(one: Object) -> str:
    text = f"{one['key']} {one['operator'].lower()}"
    return f"{text} [{', '.join(one['values'])}]" if one.get("values") else text


def storage_class(writer: Writer, obj: Object, around: Surroundings) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    heading(writer, obj, namespaced=False)
    writer.field(0, "IsDefaultClass", "Yes" if annotations.get(DEFAULT_CLASS) == "true" else "No")
    writer.field(0, "Annotations", format_labels(annotations))
    writer.field(0, "Provisioner", obj.get("provisioner", ""))
    writer.field(0, "Parameters", format_labels(obj.get("parameters")))
    writer.field(0, "AllowVolumeExpansion", true_or_false(obj.get("allowVolumeExpansion")))
    options = obj.get("mountOptions") or []
    writer.line(0, "MountOptions:" + ("" if options else "\t<none>"))
    for option in options:
        writer.line(1, option)
    for name, key in (("ReclaimPolicy", "reclaimPolicy"), ("VolumeBindingMode", "volumeBindingMode")):
        if key in obj:
            writer.field(0, name, obj[key])
    events(writer, around)
