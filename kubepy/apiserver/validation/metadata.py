"""Validation of ``metadata``, the same for every kind (``apimachinery/pkg/api/validation/objectmeta.go``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, required, too_long
from kubepy.api.meta import FOREGROUND, ORPHAN, Object
from kubepy.api.values.names import (
    NameRule,
    dns1123_label,
    mask_trailing_dash,
    path_segment,
    path_segment_prefix,
)
from kubepy.apiserver.validation.fields import json_view, label_key, validate_labels
from kubepy.quoting import quote

IMMUTABLE = "field is immutable"
ANNOTATIONS_LIMIT = 256 * 1024  # bytes of all keys and values together
STANDARD_FINALIZERS = frozenset(("kubernetes", ORPHAN, FOREGROUND))
# What no update changes; the API server puts the old values of most back before it validates.
IMMUTABLE_FIELDS = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")

Metadata = Mapping[str, Any]


def validate_object_meta(metadata: Metadata, *, namespaced: bool, name_rule: NameRule,
                         path: str = "metadata") -> list[FieldError]:
    """All errors of an object's metadata; ``name_rule`` is the kind's (``ValidateObjectMeta``)."""
    prefix = metadata.get("generateName") or ""
    masked = mask_trailing_dash(prefix)
    wrong = [invalid_value(f"{path}.generateName", prefix, why) for why in (name_rule(masked) if prefix else ())]
    wrong += _validate_name(metadata.get("name") or "", name_rule, path)
    return wrong + _validate_common(metadata, namespaced, path)


def validate_path_segments(metadata: Metadata) -> list[FieldError]:
    """The least that every name must be: upstream's second look, for what the rule of a kind lets through."""
    prefix = metadata.get("generateName") or ""
    wrong = [invalid_value("metadata.generateName", prefix, why) for why in path_segment_prefix(prefix)]
    return wrong + _validate_name(metadata.get("name") or "", path_segment, "metadata")


def validate_common(metadata: Metadata, *, namespaced: bool) -> list[FieldError]:
    """What holds for the metadata of every kind, at an update too (``ValidateObjectMetaAccessor``)."""
    return validate_path_segments(metadata) + _validate_common(metadata, namespaced, "metadata")


def validate_object_meta_update(new: Metadata, old: Metadata) -> list[FieldError]:
    """What an update may not do to metadata (``ValidateObjectMetaAccessorUpdate``)."""
    wrong = []
    if old.get("deletionTimestamp"):
        wrong += _validate_no_new_finalizers(new.get("finalizers") or [], old.get("finalizers") or [])
    for name in IMMUTABLE_FIELDS:
        if (value := new.get(name)) != old.get(name):
            wrong.append(invalid_value(f"metadata.{name}", value, IMMUTABLE))
    return wrong


def validate_kube_finalizers(metadata: Metadata) -> list[FieldError]:
    """Built-in kinds take only qualified finalizers and the standard ones (``validateKubeFinalizerName``)."""
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{index}]", name, why)
        for index, name in enumerate(metadata.get("finalizers") or ())
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Keys, whatever their case, and the size of all together."""
    found = annotations or {}
    wrong = [invalid_value(path, key, why) for key in sorted(found) for why in label_key(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in found.items()) > ANNOTATIONS_LIMIT:
        wrong.append(too_long(path, ANNOTATIONS_LIMIT))
    return wrong


def _validate_name(name: str, name_rule: NameRule, path: str) -> list[FieldError]:
    if not name:
        return [required(f"{path}.name", "name or generateName is required")]
    return [invalid_value(f"{path}.name", name, why) for why in name_rule(name)]


def _validate_common(metadata: Metadata, namespaced: bool, path: str) -> list[FieldError]:
    wrong = _validate_namespace(metadata.get("namespace") or "", namespaced, path)
    if (generation := metadata.get("generation") or 0) < 0:
        wrong.append(invalid_value(f"{path}.generation", generation, "must be greater than or equal to 0"))
    validate_labels(metadata.get("labels"), f"{path}.labels", wrong)
    wrong += validate_annotations(metadata.get("annotations"), f"{path}.annotations")
    wrong += validate_owner_references(metadata.get("ownerReferences") or [], f"{path}.ownerReferences")
    finalizers = metadata.get("finalizers") or []
    wrong += [invalid_value(f"{path}.finalizers", name, why) for name in finalizers for why in label_key(name)]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        why = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        wrong.append(invalid_value(f"{path}.finalizers", list(finalizers), why))
    return wrong


def _validate_namespace(namespace: str, namespaced: bool, path: str) -> list[FieldError]:
    if not namespaced:
        return [forbidden_field(f"{path}.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(f"{path}.namespace")]
    return [invalid_value(f"{path}.namespace", namespace, why) for why in dns1123_label(namespace)]


def validate_owner_references(references: Sequence[Object], path: str) -> list[FieldError]:
    """Each reference complete, at most one a controller."""
    wrong: list[FieldError] = []
    controller = ""
    for reference in references:
        wrong += _validate_owner_reference(reference, path)
        if not reference.get("controller"):
            continue
        current = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        if controller:
            why = ("Only one reference can have Controller set to true. "
                   f'Found "true" in references for {controller} and {current}')
            wrong.append(invalid_value(path, json_view("[]meta/v1.OwnerReference", list(references)), why))
        else:
            controller = current
    return wrong


def _validate_owner_reference(reference: Object, path: str) -> list[FieldError]:
    api_version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
    wrong = []
    if not api_version or api_version.endswith("/"):
        wrong.append(invalid_value(f"{path}.apiVersion", api_version, "version must not be empty"))
    for name in ("kind", "name", "uid"):
        if not reference.get(name):
            wrong.append(invalid_value(f"{path}.{name}", "", "must not be empty"))
    if (api_version, kind) == ("v1", "Event"):
        shown = json_view("meta/v1.OwnerReference", reference)
        wrong.append(invalid_value(path, shown, "/v1, Kind=Event is disallowed from being an owner"))
    return wrong


def _validate_no_new_finalizers(new: Sequence[str], old: Sequence[str]) -> list[FieldError]:
    extra = sorted(set(new) - set(old))
    if not extra:
        return []
    shown = ", ".join(quote(name) for name in extra)
    why = ("no new finalizers can be added if the object is being deleted, "
           f"found new finalizers []string{{{shown}}}")
    return [forbidden_field("metadata.finalizers", why)]
