"""Validation of ``metadata``, the same for every kind
(``apimachinery/pkg/api/validation/objectmeta.go``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, required, too_long
from kubepy.api.meta import FOREGROUND, ORPHAN, Object, nested_list
from kubepy.api.scheme import Resource
from kubepy.api.values.goformat import code_point
from kubepy.api.values.names import (
    NameRule,
    dns1123_label,
    mask_trailing_dash,
    path_segment,
    path_segment_prefix,
)
from kubepy.apiserver.validation.fields import (
    json_view,
    label_key,
    validate_as,
    validate_format,
    validate_labels,
)
from kubepy.quoting import quote

IMMUTABLE = "field is immutable"
FIELD_MANAGER_MAX_LENGTH = 128
ANNOTATIONS_LIMIT = 256 * 1024  # bytes of all keys and values together
STANDARD_FINALIZERS = frozenset(("kubernetes", ORPHAN, FOREGROUND))
# Core kinds whose finalizers may have any name: they use the generic check, or none at all.
FREE_FINALIZERS = frozenset(
    (
        "events",
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        *(
            f"{kind}.admissionregistration.k8s.io"
            for kind in (
                "mutatingadmissionpolicies",
                "mutatingadmissionpolicybindings",
                "mutatingwebhookconfigurations",
                "validatingadmissionpolicies",
                "validatingadmissionpolicybindings",
                "validatingwebhookconfigurations",
            )
        ),
    )
)
# Fields that no update changes; the API server puts the old values of most back before it
# validates.
IMMUTABLE_FIELDS = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)

Metadata = Mapping[str, Any]


def validate_object_meta(
    metadata: Metadata, *, namespaced: bool, name_rule: NameRule, path: str = "metadata"
) -> list[FieldError]:
    """Return all errors of an object's metadata; ``name_rule`` is the kind's
    (``ValidateObjectMeta``)."""
    prefix = metadata.get("generateName") or ""
    errors: list[FieldError] = []
    masked = mask_trailing_dash(prefix)
    if prefix:
        validate_format(prefix, name_rule(masked), f"{path}.generateName", errors)
    errors += _validate_name(metadata.get("name") or "", name_rule, path)
    return errors + _validate_common(metadata, namespaced, path)


def validate_path_segments(metadata: Metadata) -> list[FieldError]:
    """Check that the name is a path segment, for kinds whose own rule allows more (upstream checks
    a second time)."""
    prefix = metadata.get("generateName") or ""
    errors: list[FieldError] = []
    validate_as(path_segment_prefix, prefix, "metadata.generateName", errors)
    return errors + _validate_name(metadata.get("name") or "", path_segment, "metadata")


def validate_common(metadata: Metadata, *, namespaced: bool) -> list[FieldError]:
    """Return the errors of metadata that hold for every kind, in updates too
    (``ValidateObjectMetaAccessor``)."""
    return validate_path_segments(metadata) + _validate_common(metadata, namespaced, "metadata")


def validate_object_meta_update(new: Metadata, old: Metadata) -> list[FieldError]:
    """Return the errors of an update of metadata (``ValidateObjectMetaAccessorUpdate``)."""
    errors = []
    added = sorted(set(nested_list(new, "finalizers")) - set(nested_list(old, "finalizers")))
    if old.get("deletionTimestamp") and added:
        shown = ", ".join(quote(name) for name in added)
        detail = (
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{shown}}}"
        )
        errors.append(forbidden_field("metadata.finalizers", detail))
    for name in IMMUTABLE_FIELDS:
        value = new.get(name)
        if value != old.get(name):
            errors.append(invalid_value(f"metadata.{name}", value, IMMUTABLE))
    return errors


def validate_kube_finalizers(resource: Resource, metadata: Metadata) -> list[FieldError]:
    """Require qualified finalizers or standard ones, as most built-in kinds do
    (``validateKubeFinalizerName``)."""
    if not resource.is_core_api or resource.key in FREE_FINALIZERS:
        return []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{index}]", name, detail)
        for index, name in enumerate(nested_list(metadata, "finalizers"))
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Validate the keys, whatever their case, and the size of all annotations together."""
    annotations = annotations or {}
    errors: list[FieldError] = []
    for key in sorted(annotations):
        validate_format(key, label_key(key.lower()), path, errors)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


def _validate_name(name: str, name_rule: NameRule, path: str) -> list[FieldError]:
    if not name:
        return [required(f"{path}.name", "name or generateName is required")]
    return [invalid_value(f"{path}.name", name, detail) for detail in name_rule(name)]


def _validate_common(metadata: Metadata, namespaced: bool, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    namespace = metadata.get("namespace") or ""
    if namespaced and not namespace:
        errors.append(required(f"{path}.namespace"))
    elif namespaced:
        validate_as(dns1123_label, namespace, f"{path}.namespace", errors)
    elif namespace:
        errors.append(forbidden_field(f"{path}.namespace", "not allowed on this type"))

    generation = metadata.get("generation") or 0
    if generation < 0:
        errors.append(
            invalid_value(f"{path}.generation", generation, "must be greater than or equal to 0")
        )

    validate_labels(metadata.get("labels"), f"{path}.labels", errors)
    errors += validate_annotations(metadata.get("annotations"), f"{path}.annotations")
    errors += validate_owner_references(
        nested_list(metadata, "ownerReferences"), f"{path}.ownerReferences"
    )
    finalizers = nested_list(metadata, "finalizers")
    for name in finalizers:
        validate_as(label_key, name, f"{path}.finalizers", errors)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(invalid_value(f"{path}.finalizers", list(finalizers), detail))
    return errors


def validate_owner_references(references: Sequence[Object], path: str) -> list[FieldError]:
    """Validate that every reference is complete, and at most one is a controller."""
    errors: list[FieldError] = []
    controller = ""
    for reference in references:
        api_version = reference.get("apiVersion") or ""
        kind = reference.get("kind") or ""
        if not api_version or api_version.endswith("/"):
            errors.append(
                invalid_value(f"{path}.apiVersion", api_version, "version must not be empty")
            )
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                errors.append(invalid_value(f"{path}.{name}", "", "must not be empty"))
        if (api_version, kind) == ("v1", "Event"):
            shown = json_view("meta/v1.OwnerReference", reference)
            errors.append(
                invalid_value(path, shown, "/v1, Kind=Event is disallowed from being an owner")
            )
        if not reference.get("controller"):
            continue
        current = f"{kind}/{reference.get('name', '')}"
        if controller:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {current}'
            )
            shown = json_view("[]meta/v1.OwnerReference", list(references))
            errors.append(invalid_value(path, shown, detail))
        else:
            controller = current

    return errors


def validate_field_manager(manager: str) -> list[FieldError]:
    """Check the name of a field manager (``apis/meta/v1/validation.ValidateFieldManager``)."""
    errors = []
    if len(manager.encode(errors="replace")) > FIELD_MANAGER_MAX_LENGTH:
        errors.append(too_long("fieldManager", FIELD_MANAGER_MAX_LENGTH))
    position = 0
    for character in manager:
        if not character.isprintable():
            errors.append(
                invalid_value(
                    "fieldManager",
                    manager,
                    f"invalid character {code_point(character)} (at position {position})",
                )
            )
        position += len(character.encode(errors="replace"))

    return errors
