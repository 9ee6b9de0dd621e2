"""Describe PersistentVolumes, PersistentVolumeClaims, StorageClasses, VolumeAttributesClasses and
CSINodes."""

from __future__ import annotations

from kubepy.api.meta import (
    AnyObject,
    annotations_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
)
from kubepy.api.objects.volumes import access_modes, class_of
from kubepy.api.selectors import format_labels
from kubepy.cli.describers.volumes import claimed_volume, volume_source
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    events,
    format_date,
    go_value,
    heading,
    labels_and_annotations,
    since,
    true_or_false,
)

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def volume(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "Finalizers", go_value(nested_list(obj["metadata"], "finalizers")))
    writer.field(0, "StorageClass", class_of(obj))
    writer.field(0, "Status", phase(obj, context))
    reference = spec.get("claimRef")
    writer.field(
        0,
        "Claim",
        f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else "",
    )
    writer.field(0, "Reclaim Policy", spec.get("persistentVolumeReclaimPolicy", ""))
    writer.field(0, "Access Modes", access_modes(spec.get("accessModes")))
    if "volumeMode" in spec:
        writer.field(0, "VolumeMode", spec["volumeMode"])
    writer.field(0, "Capacity", nested_map(spec, "capacity").get("storage", "0"))
    required = nested_map(spec, "nodeAffinity").get("required")
    if required is None:
        writer.line(0, "Node Affinity:\t<none>")
    else:
        terms = nested_list(required, "nodeSelectorTerms")
        writer.line(0, "Node Affinity:\t")
        writer.line(1, "Required Terms:\t" + ("" if terms else "<none>"))
        for index, term in enumerate(terms):
            requirements = []
            for expression in nested_list(term, "matchExpressions"):
                values = f" [{', '.join(expression['values'])}]" if expression.get("values") else ""
                requirements.append(f"{expression['key']} {expression['operator'].lower()}{values}")
            writer.several(2, f"Term {index}", requirements)

    writer.field(0, "Message", obj.get("status", {}).get("message", ""))
    writer.line(0, "Source:")
    volume_source(writer, spec, persistent=True)
    events(writer, context)


def storage_class(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    annotations = annotations_of(obj)
    heading(writer, obj, namespaced=False)
    writer.field(0, "IsDefaultClass", "Yes" if annotations.get(DEFAULT_CLASS) == "true" else "No")
    writer.field(0, "Annotations", format_labels(annotations))
    writer.field(0, "Provisioner", obj.get("provisioner", ""))
    writer.field(0, "Parameters", format_labels(obj.get("parameters")))
    writer.field(0, "AllowVolumeExpansion", true_or_false(obj.get("allowVolumeExpansion")))
    options = nested_list(obj, "mountOptions")
    writer.line(0, "MountOptions:" + ("" if options else "\t<none>"))
    for option in options:
        writer.line(1, option)
    for name, key in (
        ("ReclaimPolicy", "reclaimPolicy"),
        ("VolumeBindingMode", "volumeBindingMode"),
    ):
        if key in obj:
            writer.field(0, name, obj[key])

    topologies = obj.get("allowedTopologies")
    if topologies is not None:
        writer.line(0, "AllowedTopologies:\t" + ("" if topologies else "<none>"))
    for index, term in enumerate(topologies or []):
        writer.several(
            1,
            f"Term {index}",
            (
                f"{expression['key']} in [{', '.join(expression['values'])}]"
                for expression in nested_list(term, "matchLabelExpressions")
            ),
        )

    events(writer, context)


def volume_attributes_class(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    writer.field(0, "Annotations", format_labels(obj["metadata"].get("annotations")))
    writer.field(0, "DriverName", obj.get("driverName", ""))
    writer.field(0, "Parameters", format_labels(obj.get("parameters")))
    events(writer, context)


def csi_node(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "CreationTimestamp", format_date(obj["metadata"].get("creationTimestamp")))
    writer.line(0, "Spec:")
    drivers = spec_of(obj).get("drivers")
    if drivers is not None:
        writer.line(1, "Drivers:")
    for driver in drivers or []:
        writer.line(2, f"{driver['name']}:")
        writer.field(3, "Node ID", driver.get("nodeID", ""))
        if (count := nested_map(driver, "allocatable").get("count")) is not None:
            writer.line(3, "Allocatables:")
            writer.field(4, "Count", count)
        if driver.get("topologyKeys") is not None:
            writer.field(3, "Topology Keys", go_value(driver["topologyKeys"]))

    events(writer, context)


def claim(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    heading(writer, obj)
    writer.field(0, "StorageClass", class_of(obj))
    writer.field(0, "Status", phase(obj, context))
    writer.field(0, "Volume", spec.get("volumeName", ""))
    labels_and_annotations(writer, obj)
    writer.field(0, "Finalizers", go_value(nested_list(obj["metadata"], "finalizers")))
    claimed_volume(writer, 0, obj)
    writer.several(
        0,
        "Used By",
        (
            name_of(pod)
            for pod in context.list("pods", namespace_of(obj))
            if _mounts_claim(pod, obj)
        ),
    )
    conditions = nested_list(obj.get("status", {}), "conditions")
    if conditions:
        writer.line(0, "Conditions:")
        writer.line(1, "Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage")
        writer.line(1, "----\t------\t-----------------\t------------------\t------\t-------")

    for condition in conditions:
        times = [
            format_date(condition.get("lastProbeTime")),
            format_date(condition.get("lastTransitionTime")),
        ]
        cells = [
            condition["type"],
            condition["status"],
            *times,
            condition.get("reason", ""),
            condition.get("message", ""),
        ]
        writer.line(1, " \t".join(cells))

    events(writer, context)


def phase(obj: AnyObject, context: DescribeContext) -> str:
    if deleted := obj["metadata"].get("deletionTimestamp"):
        return f"Terminating (lasts {since(deleted, context.now)})"
    return str(obj.get("status", {}).get("phase", ""))


def _mounts_claim(pod: AnyObject, obj: AnyObject) -> bool:
    """Return whether a pod mounts the claim, by name or as an ephemeral volume."""
    for volume in nested_list(pod["spec"], "volumes"):
        if volume.get("persistentVolumeClaim", {}).get("claimName") == name_of(obj):
            return True
        if "ephemeral" in volume and f"{name_of(pod)}-{volume['name']}" == name_of(obj):
            return True
    return False
