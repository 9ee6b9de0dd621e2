"""Describe the volumes of pods and pod templates: a title and some fields for each kind of
source."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import AnyObject, annotations_of, labels_of, nested_list, nested_map
from kubepy.api.objects.volumes import access_modes, class_of
from kubepy.api.values.quantity import parse_quantity
from kubepy.cli.describers.writer import PrefixWriter, annotation_lines, go_value, shorten


class SourceFormat(NamedTuple):
    """The text after ``Type:``, and (label, field, default) of each line below it."""

    title: str
    fields: tuple[tuple[str, str, object], ...]


READ_ONLY = ("ReadOnly", "readOnly", False)
FS_TYPE = ("FSType", "fsType", "")
SECRET_REF = ("SecretRef", "secretRef", None)

SOURCES: dict[str, SourceFormat] = {
    "hostPath": SourceFormat(
        "HostPath (bare host directory volume)",
        (("Path", "path", ""), ("HostPathType", "type", "<none>")),
    ),
    "gcePersistentDisk": SourceFormat(
        "GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
        (("PDName", "pdName", ""), FS_TYPE, ("Partition", "partition", 0), READ_ONLY),
    ),
    "awsElasticBlockStore": SourceFormat(
        "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
        (("VolumeID", "volumeID", ""), FS_TYPE, ("Partition", "partition", 0), READ_ONLY),
    ),
    "gitRepo": SourceFormat(
        "GitRepo (a volume that is pulled from git when the pod is created)",
        (("Repository", "repository", ""), ("Revision", "revision", "")),
    ),
    "secret": SourceFormat(
        "Secret (a volume populated by a Secret)",
        (("SecretName", "secretName", ""), ("Optional", "optional", False)),
    ),
    "configMap": SourceFormat(
        "ConfigMap (a volume populated by a ConfigMap)",
        (("Name", "name", ""), ("Optional", "optional", False)),
    ),
    "nfs": SourceFormat(
        "NFS (an NFS mount that lasts the lifetime of a pod)",
        (("Server", "server", ""), ("Path", "path", ""), READ_ONLY),
    ),
    "iscsi": SourceFormat(
        "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then "
        "exposed to the pod)",
        (
            ("TargetPortal", "targetPortal", ""),
            ("IQN", "iqn", ""),
            ("Lun", "lun", 0),
            ("ISCSIInterface", "iscsiInterface", ""),
            FS_TYPE,
            READ_ONLY,
            ("Portals", "portals", ()),
            ("DiscoveryCHAPAuth", "chapAuthDiscovery", False),
            ("SessionCHAPAuth", "chapAuthSession", False),
            SECRET_REF,
            ("InitiatorName", "initiatorName", "<none>"),
        ),
    ),
    "glusterfs": SourceFormat(
        "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)",
        (("EndpointsName", "endpoints", ""), ("Path", "path", ""), READ_ONLY),
    ),
    "persistentVolumeClaim": SourceFormat(
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        (("ClaimName", "claimName", ""), READ_ONLY),
    ),
    "rbd": SourceFormat(
        "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
        (
            ("CephMonitors", "monitors", ()),
            ("RBDImage", "image", ""),
            FS_TYPE,
            ("RBDPool", "pool", ""),
            ("RadosUser", "user", ""),
            ("Keyring", "keyring", ""),
            SECRET_REF,
            READ_ONLY,
        ),
    ),
    "quobyte": SourceFormat(
        "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
        (("Registry", "registry", ""), ("Volume", "volume", ""), READ_ONLY),
    ),
    "azureDisk": SourceFormat(
        "AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
        (
            ("DiskName", "diskName", ""),
            ("DiskURI", "diskURI", ""),
            ("Kind", "kind", ""),
            FS_TYPE,
            ("CachingMode", "cachingMode", ""),
            READ_ONLY,
        ),
    ),
    "vsphereVolume": SourceFormat(
        "vSphereVolume (a Persistent Disk resource in vSphere)",
        (("VolumePath", "volumePath", ""), FS_TYPE, ("StoragePolicyName", "storagePolicyName", "")),
    ),
    "cinder": SourceFormat(
        "Cinder (a Persistent Disk resource in OpenStack)",
        (("VolumeID", "volumeID", ""), FS_TYPE, READ_ONLY, SECRET_REF),
    ),
    "photonPersistentDisk": SourceFormat(
        "PhotonPersistentDisk (a Persistent Disk resource in photon platform)",
        (("PdID", "pdID", ""), FS_TYPE),
    ),
    "portworxVolume": SourceFormat(
        "PortworxVolume (a Portworx Volume resource)", (("VolumeID", "volumeID", ""),)
    ),
    "scaleIO": SourceFormat(
        "ScaleIO (a persistent volume backed by a block device in ScaleIO)",
        (
            ("Gateway", "gateway", ""),
            ("System", "system", ""),
            ("Protection Domain", "protectionDomain", ""),
            ("Storage Pool", "storagePool", ""),
            ("Storage Mode", "storageMode", ""),
            ("VolumeName", "volumeName", ""),
            FS_TYPE,
            READ_ONLY,
        ),
    ),
    "cephfs": SourceFormat(
        "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
        (
            ("Monitors", "monitors", ()),
            ("Path", "path", ""),
            ("User", "user", ""),
            ("SecretFile", "secretFile", ""),
            SECRET_REF,
            READ_ONLY,
        ),
    ),
    "storageos": SourceFormat(
        "StorageOS (a StorageOS Persistent Disk resource)",
        (
            ("VolumeName", "volumeName", ""),
            ("VolumeNamespace", "volumeNamespace", ""),
            FS_TYPE,
            READ_ONLY,
        ),
    ),
    "azureFile": SourceFormat(
        "AzureFile (an Azure File Service mount on the host and bind mount to the pod)",
        (("SecretName", "secretName", ""), ("ShareName", "shareName", ""), READ_ONLY),
    ),
    "flexVolume": SourceFormat(
        "FlexVolume (a generic volume resource that is provisioned/attached using an exec based "
        "plugin)",
        (("Driver", "driver", ""), FS_TYPE, SECRET_REF, READ_ONLY, ("Options", "options", {})),
    ),
    "flocker": SourceFormat(
        "Flocker (a Flocker volume mounted by the Flocker agent)",
        (("DatasetName", "datasetName", ""), ("DatasetUUID", "datasetUUID", "")),
    ),
    "image": SourceFormat(
        "Image (a container image or OCI artifact)",
        (("Reference", "reference", ""), ("PullPolicy", "pullPolicy", "")),
    ),
    "local": SourceFormat(
        "LocalVolume (a persistent volume backed by local storage on a node)",
        (("Path", "path", ""),),
    ),
}
# Fields that only a PersistentVolume's source has, with the label after which they come.
PERSISTENT = {
    "glusterfs": ("EndpointsName", [("EndpointsNamespace", "endpointsNamespace", "<unset>")]),
    "azureFile": ("SecretName", [("SecretNamespace", "secretNamespace", "")]),
    "scaleIO": (
        "VolumeName",
        [("SecretName", "secretRef.name", ""), ("SecretNamespace", "secretRef.namespace", "")],
    ),
}
# Upstream writes one label without a colon, and another with a space after it.
ODD_LABELS = {"ISCSIInterface": "ISCSIInterface", "Kind": "Kind: "}


def volumes(writer: PrefixWriter, volumes: list[AnyObject] | None, *, indent: str = "") -> None:
    writer.line(0, f"{indent}Volumes:" + ("" if volumes else "\t<none>"))
    for volume in volumes or []:
        writer.line(1, f"{' ' if indent else ''}{volume['name']}:")
        volume_source(writer, volume)


def volume_source(writer: PrefixWriter, volume: AnyObject, *, persistent: bool = False) -> None:
    """Write the source of a volume; ``persistent``: of a PersistentVolume's spec."""
    for source, source_format in SOURCES.items():
        if source not in volume:
            continue
        writer.field(2, "Type", source_format.title)
        previous, more = PERSISTENT.get(source, ("", []))
        for line in source_format.fields:
            for label, path, default in [
                line,
                *(more if persistent and line[0] == previous else []),
            ]:
                field, _, inner = path.partition(".")
                value = volume[source].get(field, None if inner else default)
                if inner:
                    value = (value or {}).get(inner, default)
                text = go_value(value)
                if path == "secretRef":  # as Go prints a pointer to it
                    secret = value or {}
                    kind = "SecretReference" if persistent else "LocalObjectReference"
                    namespace = f"Namespace:{secret.get('namespace', '')}," if persistent else ""
                    if value is None:
                        text = "nil"
                    else:
                        text = f"&{kind}{{Name:{secret.get('name', '')},{namespace}}}"
                writer.line(2, f"{ODD_LABELS.get(label, f'{label}:')}\t{text}")
        return

    for source, describe in SPECIAL.items():
        if source in volume:
            describe(writer, volume[source])
            return

    writer.line(1, "<unknown>")


def _empty_dir(writer: PrefixWriter, source: AnyObject) -> None:
    limit = source.get("sizeLimit", "0")
    writer.field(2, "Type", "EmptyDir (a temporary directory that shares a pod's lifetime)")
    writer.field(2, "Medium", source.get("medium", ""))
    writer.field(2, "SizeLimit", limit if parse_quantity(limit).nanos > 0 else "<unset>")


def _projected(writer: PrefixWriter, source: AnyObject) -> None:
    writer.field(
        2, "Type", "Projected (a volume that contains injected data from multiple sources)"
    )
    for part in nested_list(source, "sources"):
        for key, label in (("secret", "SecretName"), ("configMap", "ConfigMapName")):
            if key in part:
                writer.field(2, label, part[key].get("name", ""))
                writer.field(2, "Optional", go_value(bool(part[key].get("optional"))))
        if "downwardAPI" in part:
            writer.field(2, "DownwardAPI", "true")
        if "serviceAccountToken" in part:
            writer.field(
                2, "TokenExpirationSeconds", part["serviceAccountToken"].get("expirationSeconds", 0)
            )


def _downward_api(writer: PrefixWriter, source: AnyObject) -> None:
    writer.field(2, "Type", "DownwardAPI (a volume populated by information about the pod)")
    writer.line(2, "Items:")
    for item in nested_list(source, "items"):
        if "fieldRef" in item:
            writer.line(3, f"{item['fieldRef']['fieldPath']} -> {item['path']}")
        if "resourceFieldRef" in item:
            writer.line(3, f"{item['resourceFieldRef']['resource']} -> {item['path']}")


def _csi(writer: PrefixWriter, source: AnyObject) -> None:
    writer.field(2, "Type", "CSI (a Container Storage Interface (CSI) volume source)")
    writer.field(2, "Driver", source.get("driver", ""))
    writer.field(2, "FSType", source.get("fsType", ""))
    if "volumeHandle" in source:
        writer.field(2, "VolumeHandle", source["volumeHandle"])
    writer.field(2, "ReadOnly", go_value(bool(source.get("readOnly"))))
    attributes = sorted(nested_map(source, "volumeAttributes").items())
    writer.several_nested(
        2, "VolumeAttributes", (shorten(f"{key}={value}") for key, value in attributes)
    )


def _ephemeral(writer: PrefixWriter, source: AnyObject) -> None:
    """Write the template of an ephemeral volume's claim; upstream indents its labels and
    annotations further."""
    writer.field(
        2,
        "Type",
        "EphemeralVolume (an inline specification for a volume that gets created and deleted with "
        "the pod)",
    )
    if not source.get("volumeClaimTemplate"):
        return
    template = {"metadata": {}, "spec": {}, **source["volumeClaimTemplate"]}
    writer.field(2, "StorageClass", class_of(template))
    writer.field(2, "Volume", template["spec"].get("volumeName", ""))
    labels = (f"{key}={value}" for key, value in sorted(labels_of(template).items()))
    writer.several_nested(2, "Labels", labels, none="    <none>")
    first, *rest = annotation_lines(annotations_of(template)) or ["<none>"]
    writer.line(2, f"Annotations:\t    {first}")
    for line in rest:  # the lines below a long annotation's key are not indented
        writer.line(2, f"\t{'' if line.startswith(' ') else '    '}{line}")
    claimed_volume(writer, 2, template)


def claimed_volume(writer: PrefixWriter, level: int, claim: AnyObject) -> None:
    """Write the capacity, access modes, volume mode and data source of a claim or its template."""
    spec = claim["spec"]
    status = claim.get("status", {})
    bound = bool(spec.get("volumeName"))
    writer.field(
        level, "Capacity", nested_map(status, "capacity").get("storage", "0") if bound else ""
    )
    writer.field(level, "Access Modes", access_modes(status.get("accessModes")) if bound else "")
    if "volumeMode" in spec:
        writer.field(level, "VolumeMode", spec["volumeMode"])
    if source := spec.get("dataSource"):
        writer.line(level, "DataSource:")
        for name, key in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")):
            if source.get(key) is not None:
                writer.field(level + 1, name, source[key])


def _fibre_channel(writer: PrefixWriter, source: AnyObject) -> None:
    writer.field(2, "Type", "FC (a Fibre Channel disk)")
    writer.field(2, "TargetWWNs", ", ".join(nested_list(source, "targetWWNs")))
    writer.field(2, "LUN", source.get("lun", "<none>"))
    writer.field(2, "FSType", source.get("fsType", ""))
    writer.field(2, "ReadOnly", go_value(bool(source.get("readOnly"))))


SPECIAL = {
    "emptyDir": _empty_dir,
    "fc": _fibre_channel,
    "projected": _projected,
    "downwardAPI": _downward_api,
    "csi": _csi,
    "ephemeral": _ephemeral,
}
