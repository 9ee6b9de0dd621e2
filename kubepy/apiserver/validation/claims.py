"""PersistentVolumeClaims and the templates of claims (``ValidatePersistentVolumeClaimSpec`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_label, dns1123_subdomain
from kubepy.api.values.quantity import NANO, Quantity
from kubepy.apiserver.validation.fields import (
    NOT_POSITIVE,
    Errors,
    go_diff,
    label_key,
    semantically_equal,
    validate_format,
    validate_label_selector,
    validate_labels,
    validate_optional_choice,
)
from kubepy.apiserver.validation.metadata import validate_annotations
from kubepy.quoting import quote

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
TEMPLATE_METADATA = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields")
SPEC_KEPT = ("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
             "claims")


def validate_claim_spec(spec: Object, path: str, errors: Errors, *, allow_invalid_values: bool = False,
                        allow_invalid_group: bool = False) -> None:
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    validate_label_selector(spec.get("selector"), f"{path}.selector", errors,
                            allow_invalid_values=allow_invalid_values)
    validate_access_modes(spec.get("accessModes") or [], f"{path}.accessModes", errors)
    requests = (spec.get("resources") or {}).get("requests") or {}
    size = requests.get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif Quantity.parse(size).nanos <= 0:
        errors.append(invalid_value(f"{path}.resources[storage]", size, NOT_POSITIVE))
    if name := spec.get("storageClassName"):
        validate_format(name, dns1123_subdomain(name), f"{path}.storageClassName", errors)
    validate_optional_choice(spec.get("volumeMode"), VOLUME_MODES, f"{path}.volumeMode", errors)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            item_path = f"{path}.{field}"
            for source_field in ("name", "kind"):
                if not given.get(source_field):
                    errors.append(required(f"{item_path}.{source_field}"))
            group, kind = given.get("apiGroup") or "", given.get("kind", "")
            if not group and kind != "PersistentVolumeClaim":
                detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
                errors.append(invalid_value(item_path, kind, detail))
            if group and not allow_invalid_group:
                validate_format(group, dns1123_subdomain(group), f"{item_path}.apiGroup", errors)
            if namespace := given.get("namespace"):
                validate_format(namespace, dns1123_label(namespace), f"{item_path}.namespace", errors)
    if source is not None and reference is not None:
        if reference.get("namespace"):
            detail = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(invalid_value(path, {}, detail))
        elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
            errors.append(invalid_value(path, {}, "must match dataSourceRef"))
    if name := spec.get("volumeAttributesClassName"):
        validate_format(name, dns1123_subdomain(name), f"{path}.volumeAttributesClassName", errors)


def validate_access_modes(modes: list[str], path: str, errors: Errors) -> None:
    errors.extend(not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        errors.append(forbidden_field(path, "may not use ReadWriteOncePod with other access modes"))


def validate_claim_template(template: Object, path: str, errors: Errors) -> None:
    """The template of an ephemeral volume: of its metadata only labels and annotations may be given."""
    metadata = template.get("metadata") or {}
    if annotations := metadata.get("annotations"):
        errors.extend(validate_annotations(annotations, f"{path}.metadata.annotations"))
    validate_labels(metadata.get("labels"), f"{path}.metadata.labels", errors)
    errors.extend(forbidden_field(f"{path}.metadata.{field}", "cannot be set")
                  for field in TEMPLATE_METADATA if metadata.get(field))
    validate_claim_spec(template.get("spec") or {}, f"{path}.spec", errors)


# --- claims -------------------------------------------------------------------------------------------------------


def validate_claim(claim: Object) -> list[FieldError]:
    errors: Errors = []
    validate_claim_spec(claim["spec"], "spec", errors)
    return errors


def validate_claim_update(claim: Object, old: Object) -> list[FieldError]:
    """A bound claim may only grow and change its attributes class."""
    errors: Errors = []
    spec, old_spec = claim["spec"], old["spec"]
    source = old_spec.get("dataSource") or old_spec.get("dataSourceRef") or {}
    validate_claim_spec(spec, "spec", errors, allow_invalid_group=source.get("apiGroup") is not None)
    munged, before = _without_mutable_fields(claim, old)
    if not _class_was_annotation(claim, old):
        new_class, old_class = ((entry["metadata"].get("annotations") or {}).get(BETA_CLASS, "") for entry in (claim, old))
        if new_class != old_class:
            errors.append(invalid_value(f"metadata.annotations.{BETA_CLASS}", new_class, "field is immutable"))
    if not semantically_equal(munged, before):
        difference = go_diff("core.PersistentVolumeClaimSpec", before, munged)
        errors.append(forbidden_field("spec", f"{SPEC_KEPT}\n{difference}"))
    # A claim may shrink again to what it has not been given yet.
    zero = Quantity(0)
    new_size = _storage(claim["spec"].get("resources") or {}, "requests") or zero
    old_size = _storage(old["spec"].get("resources") or {}, "requests") or zero
    capacity = _storage(old.get("status") or {}, "capacity") or zero
    if new_size < old_size and new_size <= capacity:
        errors.append(forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity"))
    if spec.get("volumeMode") != old_spec.get("volumeMode"):
        errors.append(invalid_value("volumeMode", spec.get("volumeMode"), "field is immutable"))
    new_class = claim["spec"].get("volumeAttributesClassName")
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if (current is not None and not new_class) and new_class != old["spec"].get("volumeAttributesClassName"):
        what = "nil" if new_class is None else "empty string"
        detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        errors.append(forbidden_field("spec.volumeAttributesClassName", detail))
    return errors


def _without_mutable_fields(claim: Object, old: Object) -> tuple[Object, Object]:
    """The new and the old spec, alike in everything that may change."""
    munged, before = dict(claim["spec"]), dict(old["spec"])
    if not before.get("volumeName") and "volumeName" in munged:
        before["volumeName"] = munged["volumeName"]
    if _class_was_annotation(claim, old):
        munged.pop("storageClassName", None)
    elif before.get("storageClassName") is None and BETA_CLASS not in (old["metadata"].get("annotations") or {}):
        munged.pop("storageClassName", None)  # a class that admission would have filled in, given later
    if (claim.get("status") or {}).get("phase") == "Bound":
        resources = munged.get("resources") or {}
        if resources.get("requests") is not None:
            old_requests = (before.get("resources") or {}).get("requests") or {}
            requests = {**resources["requests"], "storage": old_requests.get("storage")}
            munged["resources"] = {**resources, "requests": requests}
        munged.pop("volumeAttributesClassName", None)
        if "volumeAttributesClassName" in before:
            munged["volumeAttributesClassName"] = before["volumeAttributesClassName"]
    return munged, before


def _class_was_annotation(claim: Object, old: Object) -> bool:
    """A class that was given by the old annotation may become a field instead."""
    noted = (old["metadata"].get("annotations") or {}).get(BETA_CLASS)
    now = (claim["metadata"].get("annotations") or {}).get(BETA_CLASS, noted)
    return noted is not None and now == noted and old["spec"].get("storageClassName") is None and (
        claim["spec"].get("storageClassName") == noted)


def _storage(holder: Object, field: str) -> Quantity | None:
    amount = (holder.get(field) or {}).get("storage")
    return None if amount is None else Quantity.parse(amount)


RESIZE_STATUSES = ("ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
                   "NodeResizeInfeasible", "NodeResizePending")


def validate_claim_status(claim: Object) -> list[FieldError]:
    errors: Errors = []
    status = claim.get("status") or {}
    if not claim["spec"].get("accessModes"):
        errors.append(required("Spec.accessModes"))  # upstream's spelling
    for name, amount in sorted((status.get("capacity") or {}).items()):
        _validate_amount(amount, f"status.capacity[{name}]", errors)
    for name, state in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        _validate_resource_key(name, "status.allocatedResourceStatuses", errors)
        if state not in RESIZE_STATUSES:
            errors.append(not_supported("status.allocatedResourceStatuses", name, sorted(RESIZE_STATUSES)))
    for name, amount in sorted((status.get("allocatedResources") or {}).items()):
        if _validate_resource_key(name, "status.allocatedResources", errors):
            _validate_amount(amount, f"status.allocatedResources[{name}]", errors)
    return errors


def _validate_amount(amount: str, path: str, errors: Errors) -> None:
    if (value := Quantity.parse(amount).value()) < 0:
        errors.append(invalid_value(path, value, "must be a valid resource quantity"))


def _validate_resource_key(name: str, path: str, errors: Errors) -> bool:
    """Of Kubernetes' own resources only storage; whether it is one."""
    wrong = label_key(name)
    validate_format(name, wrong, path, errors)
    if not wrong and name != "storage" and ("/" not in name or "kubernetes.io/" in name):
        errors.append(not_supported(path, name, ("storage",)))
        return False
    return not wrong


def claim_warnings(claim: Object) -> list[str]:
    warnings = []
    if BETA_CLASS in (claim["metadata"].get("annotations") or {}):
        warnings.append(f'metadata.annotations[{BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute '
                        "instead")
    return warnings + claim_spec_warnings(claim["spec"], "spec")


def claim_spec_warnings(spec: Object, path: str) -> list[str]:
    """Bytes come whole."""
    warnings = []
    for field in ("requests", "limits"):
        size = _storage(spec.get("resources") or {}, field)
        if size is not None and size.nanos % NANO:
            detail = f"fractional byte value {quote(str(size))} is invalid, must be an integer"
            warnings.append(f"{path}.resources.{field}[storage]: {detail}")
    return warnings
