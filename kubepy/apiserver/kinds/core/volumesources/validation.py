"""Volumes of storage systems, in pods and in PersistentVolumes (``validate*VolumeSource``
upstream)."""

from __future__ import annotations

import re
from typing import Any

from kubepy.api.errors import invalid_value, not_supported, required, too_long
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.apiserver.validation.fields import (
    Errors,
    between,
    validate_as,
    validate_format,
    validate_no_backsteps,
    validate_optional_choice,
    validate_required,
)

# The fields that a source of each kind must have.
REQUIRED_FIELDS = {
    "awsElasticBlockStore": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "glusterfs": ("endpoints", "path"),
    "nfs": ("server", "path"),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "vsphereVolume": ("volumePath",),
}
ISCSI_NAMES = {
    "iqn": r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$",
    "eui": r"^eui.[A-Za-z0-9]{16}$",
    "naa": r"^naa.[A-Za-z0-9]{32}$",
}
BAD_ISCSI_NAME = "must be valid format"
HOST_PORTS = "must be a host:port pair or multiple pairs separated by commas"
INITIATOR_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
    "iscsi.initiatorName is specified."
)


def validate_storage_source(
    kind: str, source: Object, volume_name: str, path: str, errors: Errors
) -> None:
    """Validate a source in a pod. ``path`` ends with the kind."""
    validate_required(source, REQUIRED_FIELDS.get(kind, ()), path, errors)

    match kind:
        case "awsElasticBlockStore" | "gcePersistentDisk":
            if not 0 <= source.get("partition", 0) <= 255:
                errors.append(
                    invalid_value(f"{path}.partition", source["partition"], between(1, 255))
                )
        case "nfs":
            if not source.get("path", "").startswith("/"):
                errors.append(
                    invalid_value(
                        f"{path}.path", source.get("path", ""), "must be an absolute path"
                    )
                )
        case "iscsi":
            validate_required(source, ("targetPortal",), path, errors)
            # In a PersistentVolume the error for a name of an unknown kind is shorter.
            _validate_iscsi_rest(
                source, path, f"{BAD_ISCSI_NAME} starting with iqn, eui, or naa", errors
            )
            if _is_initiator_too_long(source, volume_name):
                errors.append(
                    invalid_value(
                        f"{path.rpartition('.')[0]}.name", volume_name, INITIATOR_TOO_LONG
                    )
                )
        case "flexVolume":
            for key in sorted(nested_list(source, "options")):
                if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
                    detail = "kubernetes.io and k8s.io namespaces are reserved"
                    errors.append(invalid_value(f"{path}.options[{key}]", key, detail))
        case "cinder":
            _validate_secret_name(source, path, errors)
        case _ if kind in _VALIDATORS:
            _VALIDATORS[kind](source, path, errors)


def _validate_iscsi_rest(
    source: Object, path: str, unknown_kind: str, errors: Errors, *, needs_secret_name: bool = False
) -> None:
    validate_required(source, ("iqn",), path, errors)
    if name := source.get("iqn"):
        _validate_iscsi_name(name, unknown_kind, f"{path}.iqn", errors)
    if not 0 <= source.get("lun", 0) <= 255:
        errors.append(invalid_value(f"{path}.lun", source["lun"], between(0, 255)))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get(
        "secretRef"
    ) is None:
        errors.append(required(f"{path}.secretRef"))
    if needs_secret_name:
        _validate_secret_name(source, path, errors)
    name = source.get("initiatorName")
    if name is not None:
        _validate_iscsi_name(name, unknown_kind, f"{path}.initiatorname", errors)


def _validate_iscsi_name(name: str, unknown_kind: str, path: str, errors: Errors) -> None:
    """Validate a name by its kind, which is its first three letters. ``unknown_kind``: the error
    for another."""
    pattern = ISCSI_NAMES.get(name[:3])
    if pattern is None:
        errors.append(invalid_value(path, name, unknown_kind))
    elif not re.search(pattern, name):
        errors.append(invalid_value(path, name, BAD_ISCSI_NAME))


def _is_initiator_too_long(source: Object, volume_name: str) -> bool:
    return (
        source.get("initiatorName") is not None
        and len(f"{volume_name}:{source.get('targetPortal', '')}") > 64
    )


def _validate_fc(source: Object, path: str, errors: Errors) -> None:
    targets = nested_list(source, "targetWWNs")
    lun = source.get("lun")
    if not targets and not source.get("wwids"):
        errors.append(
            required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
        )
    if targets and source.get("wwids"):
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid_value(f"{path}.targetWWNs", targets, detail))
    if targets and lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif targets and not 0 <= (lun or 0) <= 255:
        errors.append(invalid_value(f"{path}.lun", lun, between(0, 255)))


def _validate_quobyte(source: Object, path: str, errors: Errors) -> None:
    registry = source.get("registry", "")
    if not registry:
        errors.append(required(f"{path}.registry", HOST_PORTS))
    elif len(source.get("tenant", "")) >= 65:
        errors.append(
            required(
                f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"
            )
        )
    else:
        errors.extend(
            invalid_value(f"{path}.registry", registry, HOST_PORTS)
            for pair in registry.split(",")
            if not re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*):[^:]*", pair)
        )

    validate_required(source, ("volume",), path, errors)


def _validate_flocker(source: Object, path: str, errors: Errors) -> None:
    name = source.get("datasetName", "")
    identifier = source.get("datasetUUID", "")
    if not name and not identifier:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and identifier:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid_value(path, "resource", detail))
    if "/" in name:
        errors.append(invalid_value(f"{path}.datasetName", name, "must not contain '/'"))


def _validate_azure_disk(source: Object, path: str, errors: Errors) -> None:
    validate_required(source, ("diskName", "diskURI"), path, errors)
    modes = ("None", "ReadOnly", "ReadWrite")
    validate_optional_choice(source.get("cachingMode"), modes, f"{path}.cachingMode", errors)
    kind = source.get("kind")
    uri = source.get("diskURI", "")
    validate_optional_choice(kind, ("Dedicated", "Managed", "Shared"), f"{path}.kind", errors)
    managed = (
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/"
        "disks/{disk-id}"
    )
    blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.append(not_supported(f"{path}.diskURI", uri, (managed,)))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        errors.append(not_supported(f"{path}.diskURI", uri, (blob,)))


def _validate_secret_name(source: Object, path: str, errors: Errors) -> None:
    if source.get("secretRef") is not None and not source["secretRef"].get("name"):
        errors.append(required(f"{path}.secretRef.name"))


def _validate_storage_os(source: Object, path: str, errors: Errors) -> None:
    if not source.get("volumeName"):
        errors.append(required(f"{path}.volumeName"))
    for field in ("volumeName", "volumeNamespace"):
        if name := source.get(field):
            validate_as(dns1123_label, name, f"{path}.{field}", errors)
    _validate_secret_name(source, path, errors)


def validate_csi_driver_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
        return
    if len(name.encode()) > 63:
        errors.append(too_long(path, 63))
    validate_format(name, dns1123_subdomain(name.lower()), path, errors)


def _validate_csi(source: Object, path: str, errors: Errors) -> None:
    validate_csi_driver_name(source.get("driver", ""), f"{path}.driver", errors)
    reference = source.get("nodePublishSecretRef")
    if reference is None:
        return
    if not reference.get("name"):
        errors.append(required(f"{path}.nodePublishSecretRef.name"))
    else:
        validate_as(dns1123_subdomain, reference["name"], f"{path}.name", errors)


_VALIDATORS: dict[str, Any] = {
    "fc": _validate_fc,
    "quobyte": _validate_quobyte,
    "flocker": _validate_flocker,
    "azureDisk": _validate_azure_disk,
    "storageos": _validate_storage_os,
    "csi": _validate_csi,
}


# --- in PersistentVolumes -------------------------------------------------------------------------


def validate_persistent_source(
    kind: str, source: Object, volume_name: str, path: str, errors: Errors
) -> None:
    """Validate a source in a PersistentVolume: as in a pod, but references to secrets have a
    namespace."""
    match kind:
        case "csi":
            _validate_persistent_csi(source, path, errors)
            return
        case "iscsi":
            validate_required(source, ("targetPortal",), path, errors)
            if _is_initiator_too_long(source, volume_name):
                errors.append(
                    invalid_value(
                        f"{path}.targetportal", source.get("targetPortal", ""), INITIATOR_TOO_LONG
                    )
                )
            _validate_iscsi_rest(source, path, BAD_ISCSI_NAME, errors, needs_secret_name=True)
            return
        case "local":
            validate_required(source, ("path",), path, errors)
            validate_no_backsteps(source.get("path", ""), f"{path}.path", errors)
            return

    validate_storage_source(kind, source, "", path, errors)
    reference = source.get("secretRef")
    if kind in ("cinder", "storageos") and reference is not None and not reference.get("namespace"):
        errors.append(required(f"{path}.secretRef.namespace"))
    if kind == "azureFile" and source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))

    if kind == "glusterfs" and (namespace := source.get("endpointsNamespace")) is not None:
        if namespace:
            complaints = dns1123_label(namespace)
        else:
            complaints = ["if the endpointnamespace is set, it must be a valid namespace name"]
        validate_format(namespace, complaints, f"{path}.endpointsNamespace", errors)


def _validate_persistent_csi(source: Object, path: str, errors: Errors) -> None:
    validate_csi_driver_name(source.get("driver", ""), f"{path}.driver", errors)
    validate_required(source, ("volumeHandle",), path, errors)
    for field in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        reference = source.get(field)
        if reference is not None:
            for name, rule in (("name", dns1123_subdomain), ("namespace", dns1123_label)):
                if not reference.get(name):
                    errors.append(required(f"{path}.{field}.{name}"))
                else:
                    validate_as(rule, reference[name], f"{path}.{field}.{name}", errors)
