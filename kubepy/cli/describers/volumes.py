"""The volumes of a pod or a pod template: for each source its title and the fields that describe shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.quantity import parse_quantity
from kubepy.cli.describers.writer import Writer, go_value, shorten


class Shown(NamedTuple):
    """How one volume source is shown: the text after ``Type:`` and (label, field, what stands there if absent)."""

    title: str
    fields: tuple[tuple[str, str, object], ...]


READ_ONLY = ("ReadOnly", "readOnly", False)
FS_TYPE = ("FSType", "fsType", "")
SECRET_REF = ("SecretRef", "secretRef", None)

SOURCES: dict[str, Shown] = {
    "hostPath": Shown("HostPath (bare host directory volume)",
                      (("Path", "path", ""), ("HostPathType", "type", "<none>"))),
    "gcePersistentDisk": Shown("GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
                               (("PDName", "pdName", ""), FS_TYPE, ("Partition", "partition", 0), READ_ONLY)),
    "awsElasticBlockStore": Shown("AWSElasticBlockStore (a Persistent Disk resource in AWS)",
                                  (("VolumeID", "volumeID", ""), FS_TYPE, ("Partition", "partition", 0), READ_ONLY)),
    "gitRepo": Shown("GitRepo (a volume that is pulled from git when the pod is created)",
                     (("Repository", "repository", ""), ("Revision", "revision", ""))),
    "secret": Shown("Secret (a volume populated by a Secret)",
                    (("SecretName", "secretName", ""), ("Optional", "optional", False))),
    "configMap": Shown("ConfigMap (a volume populated by a ConfigMap)",
                       (("Name", "name", ""), ("Optional", "optional", False))),
    "nfs": Shown("NFS (an NFS mount that lasts the lifetime of a pod)",
                 (("Server", "server", ""), ("Path", "path", ""), READ_ONLY)),
    "iscsi": Shown(
        "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)",
        (("TargetPortal", "targetPortal", ""), ("IQN", "iqn", ""), ("Lun", "lun", 0),
         ("ISCSIInterface", "iscsiInterface", ""), FS_TYPE, READ_ONLY, ("Portals", "portals", ()),
         ("DiscoveryCHAPAuth", "chapAuthDiscovery", False), ("SessionCHAPAuth", "chapAuthSession", False), SECRET_REF,
         ("InitiatorName", "initiatorName", "<none>"))),
    "glusterfs": Shown("Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)",
                       (("EndpointsName", "endpoints", ""), ("Path", "path", ""), READ_ONLY)),
    "persistentVolumeClaim": Shown(
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        (("ClaimName", "claimName", ""), READ_ONLY)),
    "rbd": Shown("RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
                 (("CephMonitors", "monitors", ()), ("RBDImage", "image", ""), FS_TYPE, ("RBDPool", "pool", ""),
                  ("RadosUser", "user", ""), ("Keyring", "keyring", ""), SECRET_REF, READ_ONLY)),
    "quobyte": Shown("Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
                     (("Registry", "registry", ""), ("Volume", "volume", ""), READ_ONLY)),
    "azureDisk": Shown("AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
                       (("DiskName", "diskName", ""), ("DiskURI", "diskURI", ""), ("Kind", "kind", ""), FS_TYPE,
                        ("CachingMode", "cachingMode", ""), READ_ONLY)),
    "vsphereVolume": Shown("vSphereVolume (a Persistent Disk resource in vSphere)",
                           (("VolumePath", "volumePath", ""), FS_TYPE,
                            ("StoragePolicyName", "storagePolicyName", ""))),
    "cinder": Shown("Cinder (a Persistent Disk resource in OpenStack)",
                    (("VolumeID", "volumeID", ""), FS_TYPE, READ_ONLY, SECRET_REF)),
    "photonPersistentDisk": Shown("PhotonPersistentDisk (a Persistent Disk resource in photon platform)",
                                  (("PdID", "pdID", ""), FS_TYPE)),
    "portworxVolume": Shown("PortworxVolume (a Portworx Volume resource)", (("VolumeID", "volumeID", ""),)),
    "scaleIO": Shown("ScaleIO (a persistent volume backed by a block device in ScaleIO)",
                     (("Gateway", "gateway", ""), ("System", "system", ""),
                      ("Protection Domain", "protectionDomain", ""), ("Storage Pool", "storagePool", ""),
                      ("Storage Mode", "storageMode", ""), ("VolumeName", "volumeName", ""), FS_TYPE, READ_ONLY)),
    "cephfs": Shown("CephFS (a CephFS mount on the host that shares a pod's lifetime)",
                    (("Monitors", "monitors", ()), ("Path", "path", ""), ("User", "user", ""),
                     ("SecretFile", "secretFile", ""), SECRET_REF, READ_ONLY)),
    "storageos": Shown("StorageOS (a StorageOS Persistent Disk resource)",
                       (("VolumeName", "volumeName", ""), ("VolumeNamespace", "volumeNamespace", ""), FS_TYPE,
                        READ_ONLY)),
    "azureFile": Shown("AzureFile (an Azure File Service mount on the host and bind mount to the pod)",
                       (("SecretName", "secretName", ""), ("ShareName", "shareName", ""), READ_ONLY)),
    "flexVolume": Shown(
        "FlexVolume (a generic volume resource that is provisioned/attached using an exec based plugin)",
        (("Driver", "driver", ""), FS_TYPE, SECRET_REF, READ_ONLY, ("Options", "options", {}))),
    "flocker": Shown("Flocker (a Flocker volume mounted by the Flocker agent)",
                     (("DatasetName", "datasetName", ""), ("DatasetUUID", "datasetUUID", ""))),
    "image": Shown("Image (a container image or OCI artifact)",
                   (("Reference", "reference", ""), ("PullPolicy", "pullPolicy", ""))),
    "local": Shown("LocalVolume (a persistent volume backed by local storage on a node)", (("Path", "path", ""),)),
}
# Fields that only the volume source of a PersistentVolume has, with the label that they stand behind.
PERSISTENT = {"glusterfs": ("EndpointsName", [("EndpointsNamespace", "endpointsNamespace", "<unset>")]),
              "azureFile": ("SecretName", [("SecretNamespace", "secretNamespace", "")]),
              "scaleIO": ("VolumeName", [("SecretName", "secretRef.name", ""),
                                         ("SecretNamespace", "secretRef.namespace", "")])}
# Upstream forgets the colon of one label, and has a blank behind that of another.
ODD_LABELS = {"ISCSIInterface": "ISCSIInterface", "Kind": "Kind: "}


def volumes(writer: Writer, found: list[Object] | None, *, indent: str = "") -> None:
    writer.line(0, f"{indent}Volumes:" + ("" if found else "\t<none>"))
    for volume in found or []:
        writer.line(1, f"{' ' if indent else ''}{volume['name']}:")
        volume_source(writer, volume)


def volume_source(writer: Writer, volume: Object, *, persistent: bool = False) -> None:
    """The one source of a volume; ``persistent``: of a PersistentVolume's spec."""
    for source, shown in SOURCES.items():
        if source in volume:
            writer.field(2, "Type", shown.title)
            for label, field, absent in _fields(source, shown, persistent):
                value = _value(volume[source], field, absent)
                text = _reference(value, persistent) if field == "secretRef" else go_value(value)
                writer.line(2, f"{ODD_LABELS.get(label, f'{label}:')}\t{text}")
            return
    for source, describe in SPECIAL.items():
        if source in volume:
            describe(writer, volume[source])
            return
    writer.line(1, "<unknown>")


def _fields(source: str, shown: Shown, persistent: bool) -> Iterator[tuple[str, str, object]]:
    before, more = PERSISTENT.get(source, ("", []))
    for field in shown.fields:
        yield field
        if persistent and field[0] == before:
            yield from more


def _value(source: Object, path: str, absent: object) -> object:
    """What a source has in a field, or in one of a field's (``secretRef.name``)."""
    outer, _, inner = path.partition(".")
    return _value(source.get(outer) or {}, inner, absent) if inner else source.get(outer, absent)


def _reference(reference: Any, persistent: bool) -> str:
    """A reference to a Secret as Go prints a pointer to it."""
    if reference is None:
        return "nil"
    if persistent:
        return f"&SecretReference{{Name:{reference.get('name', '')},Namespace:{reference.get('namespace', '')},}}"
    return f"&LocalObjectReference{{Name:{reference.get('name', '')},}}"


def _empty_dir(writer: Writer, source: Object) -> None:
    limit = source.get("sizeLimit", "0")
    writer.field(2, "Type", "EmptyDir (a temporary directory that shares a pod's lifetime)")
    writer.field(2, "Medium", source.get("medium", ""))
    writer.field(2, "SizeLimit", limit if parse_quantity(limit).nanos > 0 else "<unset>")


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
    writer.several_nested(2, "VolumeAttributes", (shorten(f"{key}={value}") for key, value in attributes))


def _ephemeral(writer: Writer, source: Object) -> None:
    writer.field(2, "Type",
                 "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)")
    if template := source.get("volumeClaimTemplate"):
        from kubepy.cli.describers.claims import claim_template

        claim_template(writer, 2, {"metadata": {}, "spec": {}, **template})


def _fibre_channel(writer: Writer, source: Object) -> None:
    writer.field(2, "Type", "FC (a Fibre Channel disk)")
    writer.field(2, "TargetWWNs", ", ".join(source.get("targetWWNs") or []))
    writer.field(2, "LUN", source.get("lun", "<none>"))
    writer.field(2, "FSType", source.get("fsType", ""))
    writer.field(2, "ReadOnly", go_value(bool(source.get("readOnly"))))


SPECIAL = {"emptyDir": _empty_dir, "fc": _fibre_channel, "projected": _projected, "downwardAPI": _downward_api,
           "csi": _csi, "ephemeral": _ephemeral}
