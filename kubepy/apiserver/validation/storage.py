"""PersistentVolumes and StorageClasses (``core`` and ``storage`` validation)."""

from __future__ import annotations

from posixpath import normpath

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kubepy.api.meta import Object, name_of
from kubepy.api.values.names import dns1123_subdomain
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.claims import VOLUME_MODES, validate_access_modes
from kubepy.apiserver.validation.fields import (
    NOT_POSITIVE,
    Errors,
    go_diff,
    go_view,
    label_key,
    semantically_equal,
    validate_format,
    validate_immutable,
    validate_label_name,
    validate_optional_choice,
)
from kubepy.apiserver.validation.pods.scheduling import validate_node_selector
from kubepy.apiserver.validation.pods.warnings import DEPRECATED_LABELS, node_term_warnings
from kubepy.apiserver.validation.storage_sources import validate_persistent_source
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.validation.pods import volumes

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
MAX_PARAMETERS, MAX_PARAMETER_BYTES = 512, 256 * 1024
_DEPRECATED_SOURCES = {
    "cephfs": ("v1.28", "v1.31"),
    "photonPersistentDisk": ("v1.11", "v1.16"),
    "scaleIO": ("v1.16", "v1.22"),
    "storageos": ("v1.22", "v1.25"),
    "glusterfs": ("v1.25", "v1.26"),
    "rbd": ("v1.28", "v1.31"),
}
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


# --- volumes --------------------------------------------------------------------------------------


def validate_volume(volume: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a PersistentVolume."""
    errors: Errors = []
    spec = volume["spec"]
    if not spec.get("accessModes"):
        errors.append(required("spec.accessModes"))
    validate_access_modes(spec.get("accessModes") or [], "spec.accessModes", errors)
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
    if (affinity := spec.get("nodeAffinity")) is not None:
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
        validate_format(name, dns1123_subdomain(name), "spec.storageClassName", errors)
    validate_optional_choice(spec.get("volumeMode"), VOLUME_MODES, "spec.volumeMode", errors)
    name, at = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name is None:
        return
    if not name:
        errors.append(required(at, "an empty string is disallowed"))
    else:
        validate_format(name, dns1123_subdomain(name), at, errors)
    if spec.get("csi") is None:
        errors.append(
            required("spec.csi", "has to be specified when using volumeAttributesClassName")
        )


def validate_volume_update(volume: Object, old: Object) -> list[FieldError]:
    errors = validate_volume(volume, old)
    spec, old_spec = volume["spec"], old["spec"]
    new_source, old_source = _source(spec), _source(old_spec)
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
    affinity, old_affinity = spec.get("nodeAffinity"), old_spec.get("nodeAffinity")
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
    spec, annotations = volume["spec"], volume["metadata"].get("annotations") or {}
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
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
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


# --- storage classes ------------------------------------------------------------------------------


def validate_storage_class(storage_class: Object) -> list[FieldError]:
    errors: Errors = []
    _validate_driver_name(storage_class.get("provisioner", ""), "provisioner", errors)
    _validate_parameters(storage_class.get("parameters") or {}, errors)
    if policy := storage_class.get("reclaimPolicy"):
        validate_optional_choice(policy, ("Delete", "Retain"), "reclaimPolicy", errors)
    mode = storage_class.get("volumeBindingMode")
    if mode is None:
        errors.append(required("volumeBindingMode"))
    validate_optional_choice(
        mode, ("Immediate", "WaitForFirstConsumer"), "volumeBindingMode", errors
    )
    known_terms: list[dict[str, set[str]]] = []
    for index, term in enumerate(storage_class.get("allowedTopologies") or ()):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        expressions: dict[str, set[str]] = {}
        for position, expression in enumerate(term.get("matchLabelExpressions") or ()):
            at, key, values = (
                f"{path}[{position}]",
                expression.get("key", ""),
                expression.get("values") or [],
            )
            if not values:
                errors.append(required(f"{at}.values"))
            errors.extend(
                duplicate(f"{at}.values[{number}]", value)
                for number, value in enumerate(values)
                if value in values[:number]
            )
            validate_label_name(key, f"{at}.key", errors)
            if key in expressions:
                errors.append(duplicate(f"{at}.key", key))
            expressions[key] = set(values)
        if (
            not expressions or expressions in known_terms
        ):  # upstream: a term without expressions is a duplicate too
            errors.append(duplicate(path, ""))
        known_terms.append(expressions)
    return errors


def _validate_driver_name(name: str, path: str, errors: Errors) -> None:
    """Require a qualified name, whatever its case."""
    if not name:
        errors.append(required(path))
    else:
        validate_format(name, label_key(name.lower()), path, errors)


def _validate_parameters(parameters: dict[str, str], errors: Errors) -> None:
    if len(parameters) > MAX_PARAMETERS:
        errors.append(too_long("parameters", MAX_PARAMETERS))
        return
    if "" in parameters:
        errors.append(invalid_value("parameters", "", "field can not be empty."))
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
        > MAX_PARAMETER_BYTES
    ):
        errors.append(too_long("parameters", MAX_PARAMETER_BYTES))


def validate_storage_class_update(new: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        validate_immutable(new.get(field), old.get(field), field, errors)
    return errors


def validate_attributes_class(
    attributes_class: Object, old: Object | None = None
) -> list[FieldError]:
    """Validate a VolumeAttributesClass, which no update may change."""
    errors: Errors = []
    driver, parameters = (
        attributes_class.get("driverName", ""),
        attributes_class.get("parameters") or {},
    )
    if old is not None:
        errors.extend(
            forbidden_field(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if not semantically_equal(attributes_class.get(field), old.get(field))
        )
    _validate_driver_name(driver, "driverName", errors)
    if not parameters:
        errors.append(required("parameters", "must contain at least one key/value pair"))
    _validate_parameters(parameters, errors)
    return errors


def storage_class_warnings(storage_class: Object) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: "
        f"{DEPRECATED_LABELS[expression['key']]}"
        for index, term in enumerate(storage_class.get("allowedTopologies") or ())
        for position, expression in enumerate(term.get("matchLabelExpressions") or ())
        if expression.get("key") in DEPRECATED_LABELS
    ]
