"""PersistentVolumes (``ValidatePersistentVolume`` upstream)."""

from __future__ import annotations

from posixpath import normpath

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, annotations_of, name_of, nested_list
from kubepy.api.values.names import dns1123_subdomain
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.kinds.core.persistentvolumeclaims.validation import (
    VOLUME_MODES,
    validate_access_modes,
)
from kubepy.apiserver.kinds.core.pods.validation.scheduling import validate_node_selector
from kubepy.apiserver.kinds.core.pods.validation.warnings import node_term_warnings
from kubepy.apiserver.kinds.core.volumesources.validation import validate_persistent_source
from kubepy.apiserver.validation.fields import (
    NOT_POSITIVE,
    Errors,
    go_diff,
    go_view,
    semantically_equal,
    validate_as,
    validate_immutable,
    validate_optional_choice,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.pods.validation import volumes


RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
# The fields of volume sources in upstream's order, and their names in errors where those differ.
SOURCES: dict[str, str] = {
    "hostPath": "",
    "gcePersistentDisk": "persistentDisk",
    "awsElasticBlockStore": "",
    "glusterfs": "",
    "flocker": "",
    "nfs": "",
    "rbd": "",
    "quobyte": "",
    "cephfs": "",
    "iscsi": "",
    "cinder": "",
    "fc": "",
    "flexVolume": "",
    "azureFile": "",
    "vsphereVolume": "",
    "photonPersistentDisk": "",
    "portworxVolume": "",
    "azureDisk": "",
    "scaleIO": "",
    "local": "",
    "storageos": "",
    "csi": "",
}
_DEPRECATED_SOURCES = {
    "cephfs": ("v1.28", "v1.31"),
    "photonPersistentDisk": ("v1.11", "v1.16"),
    "scaleIO": ("v1.16", "v1.22"),
    "storageos": ("v1.22", "v1.25"),
    "glusterfs": ("v1.25", "v1.26"),
    "rbd": ("v1.28", "v1.31"),
}
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def validate_volume(volume: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a PersistentVolume."""
    errors: Errors = []
    spec = volume["spec"]
    if not spec.get("accessModes"):
        errors.append(required("spec.accessModes"))
    validate_access_modes(nested_list(spec, "accessModes"), "spec.accessModes", errors)
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required("spec.capacity"))

    if list(capacity) != ["storage"]:
        errors.append(
            not_supported("spec.capacity", dict(sorted(capacity.items())) or None, ("storage",))
        )

    for name in sorted(capacity):
        amount = Quantity.parse(capacity[name])
        at = f"spec.capacity[{name}]"
        if amount.value() < 0:
            errors.append(invalid_value(at, amount.value(), "must be a valid resource quantity"))
        if amount.nanos <= 0:
            errors.append(invalid_value(at, capacity[name], NOT_POSITIVE))

    if policy := spec.get("persistentVolumeReclaimPolicy"):
        validate_optional_choice(
            policy, RECLAIM_POLICIES, "spec.persistentVolumeReclaimPolicy", errors
        )

    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            errors.append(
                required("spec.nodeAffinity.required", "must specify required node constraints")
            )
        else:
            tolerated = (old or {"spec": {}})["spec"].get("nodeAffinity") or {}
            validate_node_selector(
                affinity["required"],
                "spec.nodeAffinity.required",
                errors,
                allow_invalid_values=tolerated.get("required") == affinity["required"],
            )

    _validate_sources(spec, name_of(volume), errors)
    _validate_classes(spec, errors)
    return errors


def _validate_sources(spec: Object, name: str, errors: Errors) -> None:
    kinds = [kind for kind in SOURCES if spec.get(kind) is not None]
    if not kinds:
        errors.append(required("spec", "must specify a volume type"))
        return

    kind = kinds[0]
    if kind == "hostPath":
        volumes.validate_host_path(spec[kind], "spec.hostPath", errors)
    else:
        validate_persistent_source(kind, spec[kind], name, f"spec.{SOURCES[kind] or kind}", errors)

    for second in kinds[1:]:
        shown = "cephFS" if second == "cephfs" else second  # upstream's spelling
        errors.append(forbidden_field(f"spec.{shown}", "may not specify more than 1 volume type"))
    if kind == "local" and spec.get("nodeAffinity") is None:
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))

    path = (spec.get("hostPath") or {}).get("path", "")
    if (
        path
        and normpath(path).strip("/") == ""
        and spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    ):
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden_field("spec.persistentVolumeReclaimPolicy", detail))


def _validate_classes(spec: Object, errors: Errors) -> None:
    if name := spec.get("storageClassName"):
        validate_as(dns1123_subdomain, name, "spec.storageClassName", errors)
    validate_optional_choice(spec.get("volumeMode"), VOLUME_MODES, "spec.volumeMode", errors)
    name = spec.get("volumeAttributesClassName")
    at = "spec.volumeAttributesClassName"
    if name is None:
        return
    if not name:
        errors.append(required(at, "an empty string is disallowed"))
    else:
        validate_as(dns1123_subdomain, name, at, errors)

    if spec.get("csi") is None:
        errors.append(
            required("spec.csi", "has to be specified when using volumeAttributesClassName")
        )


def validate_volume_update(volume: Object, old: Object) -> list[FieldError]:
    errors = validate_volume(volume, old)
    spec = volume["spec"]
    old_spec = old["spec"]

    new_source = _source(spec)
    old_source = _source(old_spec)
    if (
        "csi" in new_source
        and "csi" in old_source
        and old_source["csi"].get("controllerExpandSecretRef") is None
    ):
        new_source["csi"] = {**new_source["csi"], "controllerExpandSecretRef": None}

    if not semantically_equal(new_source, old_source):
        difference = go_diff("core.PersistentVolumeSource", old_source, new_source)
        detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
        errors.append(forbidden_field("spec.persistentvolumesource", detail))

    validate_immutable(spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode", errors)

    affinity = spec.get("nodeAffinity")
    old_affinity = old_spec.get("nodeAffinity")
    if old_affinity is not None and not semantically_equal(affinity, old_affinity):
        detail = "field is immutable, except for updating from beta label to GA"
        errors.append(
            invalid_value("nodeAffinity", go_view("*core.VolumeNodeAffinity", affinity), detail)
        )

    if (
        old_spec.get("volumeAttributesClassName") is not None
        and spec.get("volumeAttributesClassName") is None
    ):
        detail = "update from non-nil value to nil is forbidden"
        errors.append(forbidden_field("spec.volumeAttributesClassName", detail))

    return errors


def _source(spec: Object) -> Object:
    return {kind: spec[kind] for kind in SOURCES if spec.get(kind) is not None}


def volume_warnings(volume: Object) -> list[str]:
    spec = volume["spec"]

    annotations = annotations_of(volume)
    warnings = []
    if BETA_CLASS in annotations:
        warnings.append(
            f'metadata.annotations[{BETA_CLASS}]: deprecated since v1.8; use "storageClassName" '
            f"attribute "
            "instead"
        )

    if "volume.beta.kubernetes.io/mount-options" in annotations:
        warnings.append(
            "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since "
            "v1.31; use "
            '"mountOptions" attribute instead'
        )

    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        warnings.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the "
            "recommended approach is to use dynamic provisioning."
        )

    terms = nested_list(spec, "nodeAffinity", "required", "nodeSelectorTerms")
    for index, term in enumerate(terms):
        warnings += node_term_warnings(
            term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
        )

    for kind, (deprecated, removed) in _DEPRECATED_SOURCES.items():
        if spec.get(kind) is not None:
            shown = "storageOS" if kind == "storageos" else kind  # upstream's spelling
            warnings.append(
                f"spec.{shown}: deprecated in {deprecated}, non-functional in {removed}+"
            )

    return warnings
