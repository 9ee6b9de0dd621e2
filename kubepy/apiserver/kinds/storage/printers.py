"""Tables of storage classes, CSI kinds and volume attachments."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, annotations_of, nested_list, spec_of, status_of
from kubepy.apiserver.printers import Cell, age, printer

DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


@printer("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age")
def print_storage_class(obj: Object, now: datetime) -> list[Cell]:
    default = any(annotations_of(obj).get(key) == "true" for key in DEFAULT_ANNOTATIONS)
    return [
        obj["metadata"]["name"] + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj, now),
    ]


@printer("Name", "Attacher", "PV", "Node", "Attached", "Age")
def print_volume_attachment(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        status_of(obj).get("attached", False),
        age(obj, now),
    ]


@printer("Name", "DriverName", "Age")
def print_volume_attributes_class(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now)]


@printer("Name", "Drivers", "Age")
def print_csi_node(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        len(nested_list(obj, "spec", "drivers")),
        age(obj, now),
    ]


@printer(
    "Name",
    "AttachRequired",
    "PodInfoOnMount",
    "StorageCapacity",
    "TokenRequests",
    "RequiresRepublish",
    "Modes",
    "Age",
)
def print_csi_driver(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    requests = spec.get("tokenRequests")
    audiences = "<unset>"
    if requests is not None:
        audiences = ",".join(request.get("audience", "") for request in requests)
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        audiences,
        spec.get("requiresRepublish", False),
        ",".join(nested_list(spec, "volumeLifecycleModes")) or "<none>",
        age(obj, now),
    ]
