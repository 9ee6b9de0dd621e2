"""PersistentVolumeClaims and the templates of claims (``ValidatePersistentVolumeClaimSpec``
upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, annotations_of, nested_list, nested_map, spec_of, status_of
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.api.values.quantity import NANO, Quantity
from kubepy.apiserver.validation.fields import (
    NOT_POSITIVE,
    Errors,
    go_diff,
    label_key,
    semantically_equal,
    validate_as,
    validate_format,
    validate_label_selector,
    validate_labels,
    validate_optional_choice,
    validate_required,
)
from kubepy.apiserver.validation.metadata import validate_annotations
from kubepy.quoting import quote

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
TEMPLATE_METADATA = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
SPEC_KEPT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound "
    "claims"
)


def validate_claim_spec(
    spec: Object,
    path: str,
    errors: Errors,
    *,
    allow_invalid_values: bool = False,
    allow_invalid_group: bool = False,
) -> None:
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    validate_label_selector(
        spec.get("selector"), f"{path}.selector", errors, allow_invalid_values=allow_invalid_values
    )
    validate_access_modes(nested_list(spec, "accessModes"), f"{path}.accessModes", errors)
    requests = nested_map(spec, "resources", "requests")

    size = requests.get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif Quantity.parse(size).nanos <= 0:
        errors.append(invalid_value(f"{path}.resources[storage]", size, NOT_POSITIVE))

    if name := spec.get("storageClassName"):
        validate_as(dns1123_subdomain, name, f"{path}.storageClassName", errors)
    validate_optional_choice(spec.get("volumeMode"), VOLUME_MODES, f"{path}.volumeMode", errors)

    source = spec.get("dataSource")
    reference = spec.get("dataSourceRef")
    for field, data_source in (("dataSource", source), ("dataSourceRef", reference)):
        if data_source is not None:
            _validate_data_source(
                data_source, f"{path}.{field}", errors, allow_invalid_group=allow_invalid_group
            )

    if source is not None and reference is not None:
        if reference.get("namespace"):
            detail = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(invalid_value(path, {}, detail))
        elif any(
            source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")
        ):
            errors.append(invalid_value(path, {}, "must match dataSourceRef"))

    if name := spec.get("volumeAttributesClassName"):
        validate_as(dns1123_subdomain, name, f"{path}.volumeAttributesClassName", errors)


def _validate_data_source(
    source: Object, path: str, errors: Errors, *, allow_invalid_group: bool
) -> None:
    validate_required(source, ("name", "kind"), path, errors)
    group = source.get("apiGroup") or ""
    kind = source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid_value(path, kind, detail))
    if group and not allow_invalid_group:
        validate_as(dns1123_subdomain, group, f"{path}.apiGroup", errors)
    if namespace := source.get("namespace"):
        validate_as(dns1123_label, namespace, f"{path}.namespace", errors)


def validate_access_modes(modes: list[str], path: str, errors: Errors) -> None:
    errors.extend(
        not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES
    )
    if "ReadWriteOncePod" in modes and any(
        mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes
    ):
        errors.append(forbidden_field(path, "may not use ReadWriteOncePod with other access modes"))


def validate_claim_template(template: Object, path: str, errors: Errors) -> None:
    """Validate the template of an ephemeral volume, whose metadata may have labels and annotations
    only."""
    validate_template_metadata(template.get("metadata") or {}, f"{path}.metadata", errors)
    validate_claim_spec(spec_of(template), f"{path}.spec", errors)


def validate_template_metadata(metadata: Object, path: str, errors: Errors) -> None:
    if annotations := metadata.get("annotations"):
        errors.extend(validate_annotations(annotations, f"{path}.annotations"))
    validate_labels(metadata.get("labels"), f"{path}.labels", errors)
    errors.extend(
        forbidden_field(f"{path}.{field}", "cannot be set")
        for field in TEMPLATE_METADATA
        if metadata.get(field)
    )


# --- claims ---------------------------------------------------------------------------------------


def validate_claim(claim: Object) -> list[FieldError]:
    errors: Errors = []
    validate_claim_spec(claim["spec"], "spec", errors)
    return errors


def validate_claim_update(claim: Object, old: Object) -> list[FieldError]:
    """Validate an update; a bound claim may only grow and change its attributes class."""
    errors: Errors = []
    spec = claim["spec"]
    old_spec = old["spec"]
    source = old_spec.get("dataSource") or old_spec.get("dataSourceRef") or {}
    validate_claim_spec(
        spec, "spec", errors, allow_invalid_group=source.get("apiGroup") is not None
    )
    compared, old_compared = _with_immutable_fields_only(claim, old)

    if not _class_was_annotation(claim, old):
        annotation = annotations_of(claim).get(BETA_CLASS, "")
        if annotation != annotations_of(old).get(BETA_CLASS, ""):
            at = f"metadata.annotations.{BETA_CLASS}"
            errors.append(invalid_value(at, annotation, "field is immutable"))

    if not semantically_equal(compared, old_compared):
        difference = go_diff("core.PersistentVolumeClaimSpec", old_compared, compared)
        errors.append(forbidden_field("spec", f"{SPEC_KEPT}\n{difference}"))
    # A request that has not been fulfilled yet may be lowered, but not to the capacity or below.
    zero = Quantity(0)

    new_size = _storage(spec.get("resources") or {}, "requests") or zero
    old_size = _storage(old_spec.get("resources") or {}, "requests") or zero
    capacity = _storage(status_of(old), "capacity") or zero
    if new_size < old_size and new_size <= capacity:
        errors.append(
            forbidden_field(
                "spec.resources.requests.storage", "field can not be less than status.capacity"
            )
        )

    if spec.get("volumeMode") != old_spec.get("volumeMode"):
        errors.append(invalid_value("volumeMode", spec.get("volumeMode"), "field is immutable"))

    new_class = spec.get("volumeAttributesClassName")
    is_changed = new_class != old_spec.get("volumeAttributesClassName")
    current = status_of(old).get("currentVolumeAttributesClassName")
    if current is not None and not new_class and is_changed:
        shown = "nil" if new_class is None else "empty string"
        detail = (
            f"update to {shown} is forbidden when status.currentVolumeAttributesClassName is "
            f"not nil"
        )
        errors.append(forbidden_field("spec.volumeAttributesClassName", detail))

    return errors


def _with_immutable_fields_only(claim: Object, old: Object) -> tuple[Object, Object]:
    """Return the new and the old spec with the same values in all fields that may change."""
    spec = dict(claim["spec"])
    old_spec = dict(old["spec"])
    if not old_spec.get("volumeName") and "volumeName" in spec:
        old_spec["volumeName"] = spec["volumeName"]

    if _class_was_annotation(claim, old):
        spec.pop("storageClassName", None)
    elif old_spec.get("storageClassName") is None and BETA_CLASS not in (annotations_of(old)):
        spec.pop("storageClassName", None)  # the default class, set later than by admission

    if status_of(claim).get("phase") == "Bound":
        resources = spec.get("resources") or {}
        if resources.get("requests") is not None:
            old_requests = nested_map(old_spec, "resources", "requests")
            requests = {**resources["requests"], "storage": old_requests.get("storage")}
            spec["resources"] = {**resources, "requests": requests}
        spec.pop("volumeAttributesClassName", None)
        if "volumeAttributesClassName" in old_spec:
            spec["volumeAttributesClassName"] = old_spec["volumeAttributesClassName"]

    return spec, old_spec


def _class_was_annotation(claim: Object, old: Object) -> bool:
    """Return whether the class of the old annotation has become the field ``storageClassName``."""
    annotation = annotations_of(old).get(BETA_CLASS)
    if annotation is None or annotations_of(claim).get(BETA_CLASS, annotation) != annotation:
        return False
    had_field = old["spec"].get("storageClassName") is not None
    return not had_field and bool(claim["spec"].get("storageClassName") == annotation)


def _storage(holder: Object, field: str) -> Quantity | None:
    amount = (holder.get(field) or {}).get("storage")
    if amount is None:
        return None
    return Quantity.parse(amount)


RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def validate_claim_status(claim: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(claim)
    if not claim["spec"].get("accessModes"):
        errors.append(required("Spec.accessModes"))  # upstream's spelling
    for name, amount in sorted((status.get("capacity") or {}).items()):
        _validate_amount(amount, f"status.capacity[{name}]", errors)
    for name, state in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        _validate_resource_key(name, "status.allocatedResourceStatuses", errors)
        if state not in RESIZE_STATUSES:
            errors.append(
                not_supported("status.allocatedResourceStatuses", name, sorted(RESIZE_STATUSES))
            )

    for name, amount in sorted((status.get("allocatedResources") or {}).items()):
        if _validate_resource_key(name, "status.allocatedResources", errors):
            _validate_amount(amount, f"status.allocatedResources[{name}]", errors)
    return errors


def _validate_amount(amount: str, path: str, errors: Errors) -> None:
    value = Quantity.parse(amount).value()
    if value < 0:
        errors.append(invalid_value(path, value, "must be a valid resource quantity"))


def _validate_resource_key(name: str, path: str, errors: Errors) -> bool:
    """Require a qualified name, of Kubernetes' own resources ``storage``. Returns whether it is
    one."""
    complaints = label_key(name)
    validate_format(name, complaints, path, errors)
    if complaints:
        return False
    is_of_kubernetes = "/" not in name or "kubernetes.io/" in name
    if is_of_kubernetes and name != "storage":
        errors.append(not_supported(path, name, ("storage",)))
        return False
    return True


def claim_warnings(claim: Object) -> list[str]:
    warnings = []
    if BETA_CLASS in annotations_of(claim):
        warnings.append(
            f'metadata.annotations[{BETA_CLASS}]: deprecated since v1.8; use "storageClassName" '
            f"attribute "
            "instead"
        )
    return warnings + claim_spec_warnings(claim["spec"], "spec")


def claim_spec_warnings(spec: Object, path: str) -> list[str]:
    """Warn of sizes that are no whole number of bytes."""
    warnings = []
    for field in ("requests", "limits"):
        size = _storage(spec.get("resources") or {}, field)
        if size is not None and size.nanos % NANO:
            detail = f"fractional byte value {quote(str(size))} is invalid, must be an integer"
            warnings.append(f"{path}.resources.{field}[storage]: {detail}")
    return warnings
