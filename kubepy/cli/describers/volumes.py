"""The volumes of a pod or a pod template: for each source its title and the fields that describe shows."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.cli.describers.writer import Writer, go_value
from kubepy.cluster.objects.meta import Object


class Shown(NamedTuple):
    """How one volume source is shown: the text after ``Type:`` and (label, field, what stands there if absent)."""

    title: str
    fields: tuple[tuple[str, str, object], ...]


SOURCES: dict[str, Shown] = {
    "hostPath": Shown("HostPath (bare host directory volume)",
                      (("Path", "path", ""), ("HostPathType", "type", "<none>"))),
    "emptyDir": Shown("EmptyDir (a temporary directory that shares a pod's lifetime)",
                      (("Medium", "medium", ""), ("SizeLimit", "sizeLimit", "<unset>"))),
    "secret": Shown("Secret (a volume populated by a Secret)",
                    (("SecretName", "secretName", ""), ("Optional", "optional", False))),
    "configMap": Shown("ConfigMap (a volume populated by a ConfigMap)",
                       (("Name", "name", ""), ("Optional", "optional", False))),
    "nfs": Shown("NFS (an NFS mount that lasts the lifetime of a pod)",
                 (("Server", "server", ""), ("Path", "path", ""), ("ReadOnly", "readOnly", False))),
    "persistentVolumeClaim": Shown(
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        (("ClaimName", "claimName", ""), ("ReadOnly", "readOnly", False))),
    "image": Shown("Image (a container image or OCI artifact)",
                   (("Reference", "reference", ""), ("PullPolicy", "pullPolicy", ""))),
    "local": Shown("LocalVolume (a persistent volume backed by local storage on a node)", (("Path", "path", ""),)),
}


def volumes(writer: Writer, found: list[Object] | None, *, indent: str = "") -> None:
    writer.line(0, f"{indent}Volumes:" + ("" if found else "\t<none>"))
    for volume in found or []:
        writer.line(1, f"{' ' if indent else ''}{volume['name']}:")
        volume_source(writer, volume)


def volume_source(writer: Writer, volume: Object) -> None:
    """The one source of a volume (or of a PersistentVolume's spec)."""
    for source, shown in SOURCES.items():
        if source in volume:
            writer.field(2, "Type", shown.title)
            for label, field, absent in shown.fields:
                value = volume[source].get(field, absent)
                writer.field(2, label, go_value(value))
            return
    for source, describe in SPECIAL.items():
        if source in volume:
            describe(writer, volume[source])
            return
    writer.line(1, "<unknown>")


def _projected(writer: Writer, source: Object) -> None:
    writer.field(2, "Type", "Projected (a volume that contains injected data from multiple sources)")
    for part in source.get("sources") or []:
        for key, label in (("secret", "SecretName"), ("configMap", "ConfigMapName")):
            if key in part:
                writer.field(2, label, part[key].get("name", ""))
                writer.field(2, "Optional", go_value(bool(part[key].get("optional"))))
        if "downwardAPI" in part:
            writer.field(2, "DownwardAPI", "true")
        if "serviceAccountToken" in part:
            writer.field(2, "TokenExpirationSeconds", part["serviceAccountToken"].get("expirationSeconds", 0))


def _downward_api(writer: Writer, source: Object) -> None:
    writer.field(2, "Type", "DownwardAPI (a volume populated by information about the pod)")
    writer.line(2, "Items:")
    for item in source.get("items") or []:
        if "fieldRef" in item:
            writer.line(3, f"{item['fieldRef']['fieldPath']} -> {item['path']}")
        if "resourceFieldRef" in item:
            writer.line(3, f"{item['resourceFieldRef']['resource']} -> {item['path']}")


def _csi(writer: Writer, source: Object) -> None:
    writer.field(2, "Type", "CSI (a Container Storage Interface (CSI) volume source)")
    writer.field(2, "Driver", source.get("driver", ""))
    writer.field(2, "FSType", source.get("fsType", ""))
    if "volumeHandle" in source:
        writer.field(2, "VolumeHandle", source["volumeHandle"])
    writer.field(2, "ReadOnly", go_value(bool(source.get("readOnly"))))
    attributes = sorted((source.get("volumeAttributes") or {}).items())
    writer.several(2, "VolumeAttributes", (f"{key}={value}" for key, value in attributes))


def _ephemeral(writer: Writer, source: Object) -> None:
    writer.field(2, "Type",
                 "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)")
    if template := source.get("volumeClaimTemplate"):
        spec = template.get("spec", {})
        writer.field(2, "StorageClass", spec.get("storageClassName", ""))
        writer.field(2, "Volume", spec.get("volumeName", ""))
        writer.field(2, "Capacity", "")
        writer.field(2, "Access Modes", "")
        writer.field(2, "VolumeMode", spec.get("volumeMode", ""))


SPECIAL = {"projected": _projected, "downwardAPI": _downward_api, "csi": _csi, "ephemeral": _ephemeral}
