"""PersistentVolume, StorageClass, VolumeAttributesClass and CSINode."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.objects.volumes import access_modes, class_of
from kubepy.api.selectors import format_labels
from kubepy.cli.describers.claims import phase
from kubepy.cli.describers.volumes import volume_source
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
    events,
    format_date,
    go_value,
    heading,
    labels_and_annotations,
    true_or_false,
)

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def volume(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec = obj["spec"]
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "Finalizers", go_value(obj["metadata"].get("finalizers") or []))
    writer.field(0, "StorageClass", class_of(obj))
    writer.field(0, "Status", phase(obj, around))
    reference = spec.get("claimRef")
    writer.field(0, "Claim", f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else "")
    writer.field(0, "Reclaim Policy", spec.get("persistentVolumeReclaimPolicy", ""))
    writer.field(0, "Access Modes", access_modes(spec.get("accessModes")))
    if "volumeMode" in spec:
        writer.field(0, "VolumeMode", spec["volumeMode"])
    writer.field(0, "Capacity", (spec.get("capacity") or {}).get("storage", "0"))
    _node_affinity(writer, spec.get("nodeAffinity"))
    writer.field(0, "Message", obj.get("status", {}).get("message", ""))
    writer.line(0, "Source:")
    volume_source(writer, spec, persistent=True)
    events(writer, around)


def _node_affinity(writer: Writer, affinity: Object | None) -> None:
    required = (affinity or {}).get("required")
    if required is None:
        writer.line(0, "Node Affinity:\t<none>")
        return
    terms = required.get("nodeSelectorTerms") or []
    writer.line(0, "Node Affinity:\t")
    writer.line(1, "Required Terms:\t" + ("" if terms else "<none>"))
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
    _allowed_topologies(writer, obj.get("allowedTopologies"))
    events(writer, around)


def _allowed_topologies(writer: Writer, terms: list[Object] | None) -> None:
    if terms is not None:
        writer.line(0, "AllowedTopologies:\t" + ("" if terms else "<none>"))
    for index, term in enumerate(terms or []):
        writer.several(1, f"Term {index}", (
            f"{one['key']} in [{', '.join(one['values'])}]" for one in term.get("matchLabelExpressions") or []))


def volume_attributes_class(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj, namespaced=False)
    writer.field(0, "Annotations", format_labels(obj["metadata"].get("annotations")))
    writer.field(0, "DriverName", obj.get("driverName", ""))
    writer.field(0, "Parameters", format_labels(obj.get("parameters")))
    events(writer, around)


def csi_node(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "CreationTimestamp", format_date(obj["metadata"].get("creationTimestamp")))
    writer.line(0, "Spec:")
    drivers = (obj.get("spec") or {}).get("drivers")
    if drivers is not None:
        writer.line(1, "Drivers:")
    for driver in drivers or []:
        writer.line(2, f"{driver['name']}:")
        writer.field(3, "Node ID", driver.get("nodeID", ""))
        if (count := (driver.get("allocatable") or {}).get("count")) is not None:
            writer.line(3, "Allocatables:")
            writer.field(4, "Count", count)
        if driver.get("topologyKeys") is not None:
            writer.field(3, "Topology Keys", go_value(driver["topologyKeys"]))
    events(writer, around)
