"""Creations and updates of pods (``ValidatePodCreate``, ``ValidatePodUpdate``, … upstream)."""

from __future__ import annotations

from kubepy.api.errors import WHOLE_OBJECT, FieldError, forbidden_field, invalid_value, required
from kubepy.api.meta import Object, annotations_of, name_of, nested_list
from kubepy.apiserver.kinds.core.pods.validation.containers import validate_image_padding
from kubepy.apiserver.kinds.core.pods.validation.options import (
    REQUIRED,
    PodOptions,
    options_for_update,
)
from kubepy.apiserver.kinds.core.pods.validation.scheduling import validate_tolerations
from kubepy.apiserver.kinds.core.pods.validation.spec import (
    MIRROR,
    validate_annotation_changes,
    validate_pod_annotations,
    validate_pod_spec,
    validate_profiles_match,
)
from kubepy.apiserver.validation.fields import Errors, between, go_diff, go_view, semantically_equal
from kubepy.quoting import quote

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
CREATED = PodOptions(resource_is_pod=True)


def validate_pod(pod: Object) -> list[FieldError]:
    errors: Errors = []
    spec = pod["spec"]
    annotations = pod["metadata"].get("annotations")
    _validate_annotations_and_spec(pod, CREATED, errors)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(
            forbidden_field(
                "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
            )
        )
    validate_profiles_match(annotations, spec, "spec", errors)
    return errors


def _validate_annotations_and_spec(pod: Object, options: PodOptions, errors: Errors) -> None:
    """Validate as ``validatePodMetadataAndSpec``, except for the metadata that all objects have.

    A volume with a token needs no ``serviceAccountName``, which a real cluster's admission fills in
    before validation.
    """
    spec = pod["spec"]
    validate_pod_annotations(
        pod["metadata"].get("annotations"), spec, options, "metadata.annotations", errors
    )
    validate_pod_spec(spec, name_of(pod), options, "spec", errors)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            validate_image_padding(container, f"spec.{field}[{index}]", errors)


# --- update ---------------------------------------------------------------------------------------


def validate_pod_update(pod: Object, old: Object) -> list[FieldError]:
    errors = revalidate(pod, old)
    spec = pod["spec"]
    old_spec = old["spec"]
    for field in ("containers", "initContainers"):
        new_list = spec.get(field) or []
        old_list = old_spec.get(field) or []
        if len(new_list) != len(old_list):
            return [
                *errors,
                forbidden_field(f"spec.{field}", "pod updates may not add or remove containers"),
            ]
        for index, container in enumerate(new_list):
            if not container.get("image"):
                errors.append(required(f"spec.{field}[{index}].image"))
            validate_image_padding(container, f"spec.{field}[{index}]", errors)

    if deadline_errors := _deadline_errors(spec, old_spec):
        errors += deadline_errors
        if spec.get("activeDeadlineSeconds") is not None:
            return errors

    tolerations = spec.get("tolerations") or []
    old_tolerations = old_spec.get("tolerations") or []
    if tolerations != old_tolerations:
        compared = [_without_seconds(toleration) for toleration in tolerations]
        old_compared = [_without_seconds(toleration) for toleration in old_tolerations]
        if any(toleration not in compared for toleration in old_compared):
            detail = "existing toleration can not be modified except its tolerationSeconds"
            errors.append(forbidden_field("spec.tolerations", detail))
        else:
            validate_tolerations(tolerations, "spec.tolerations", errors)

    old_gates = {gate.get("name") for gate in old_spec.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in old_gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            errors.append(forbidden_field(f"spec.schedulingGates[{index}].name", detail))

    # Give all fields that may change their old values; any difference that remains is forbidden.
    if not semantically_equal(spec, old_spec):
        compared_spec = _with_old_mutable_fields(spec, old_spec)
        if old_spec.get("schedulingGates"):
            _validate_gated_scheduling(compared_spec, old_spec, errors)
        if not semantically_equal(compared_spec, old_spec):
            difference = go_diff("core.PodSpec", old_spec, compared_spec)
            detail = f"pod updates may not change fields other than {UPDATABLE}\n{difference}"
            errors.append(forbidden_field("spec", detail))

    return errors


def _without_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def revalidate(pod: Object, old: Object) -> Errors:
    """Validate the whole pod again, tolerating what the old one had already.

    The tolerances are worked out only if there are errors: most updates have none.
    """
    errors = _validate_whole(pod, old, CREATED)
    if not errors:
        return []
    return _validate_whole(
        pod, old, options_for_update(old["spec"], old["metadata"], resource_is_pod=True)
    )


def _validate_whole(pod: Object, old: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    new_annotations = annotations_of(pod)
    old_annotations = annotations_of(old)
    _validate_annotations_and_spec(pod, options, errors)
    if new_annotations != old_annotations:
        validate_annotation_changes(
            new_annotations, old_annotations, "metadata.annotations", errors
        )
    return errors


def _deadline_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    """Refuse to remove or lengthen a deadline."""
    new = spec.get("activeDeadlineSeconds")
    old = old_spec.get("activeDeadlineSeconds")
    at = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        if old is None:
            return []
        return [invalid_value(at, None, detail)]
    if not 0 <= new < 2**31:
        return [invalid_value(at, new, between(0, 2**31 - 1))]
    if old is not None and old < new:
        return [invalid_value(at, new, "must be less than or equal to previous value")]
    return []


def _with_old_mutable_fields(spec: Object, old_spec: Object) -> Object:
    """Return the spec with the old values of all fields that may change."""
    compared = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            compared[field] = [dict(container) for container in spec[field]]
            for container, old_container in zip(compared[field], old_spec[field], strict=True):
                _copy_field(container, old_container, "image")
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _copy_field(compared, old_spec, field)
    period = "terminationGracePeriodSeconds"
    if (old_spec.get(period) or 0) < 0 and compared.get(period) == 1:
        compared[period] = old_spec[period]
    return compared


def _copy_field(target: Object, source: Object, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _validate_gated_scheduling(spec: Object, old_spec: Object, errors: Errors) -> None:
    """Let a pod with scheduling gates narrow the nodes that it can run on; ``spec`` gets the old
    values back."""
    new = spec.get("nodeSelector") or {}
    old = old_spec.get("nodeSelector") or {}
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid_value("spec.nodeSelector", new, detail))
    _copy_field(spec, old_spec, "nodeSelector")
    new_affinity = spec.get("affinity") or {}
    old_affinity = old_spec.get("affinity") or {}
    if semantically_equal(new_affinity.get("nodeAffinity"), old_affinity.get("nodeAffinity")):
        return

    at = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    old_terms = nested_list(old_affinity, "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    new_terms = nested_list(new_affinity, "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    if old_terms and len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.append(invalid_value(at, go_view("[]core.NodeSelectorTerm", new_terms), detail))
    else:
        for index, (new_term, old_term) in enumerate(zip(new_terms, old_terms, strict=False)):
            if not _is_extended(new_term, old_term):
                detail = "only additions are allowed (no mutations or deletions)"
                errors.append(
                    invalid_value(
                        f"{at}[{index}]", go_view("core.NodeSelectorTerm", new_term), detail
                    )
                )

    restored = dict(new_affinity)
    _copy_field(restored, old_affinity, "nodeAffinity")

    if restored or old_spec.get("affinity") is not None:
        spec["affinity"] = restored
    else:
        spec.pop("affinity", None)


def _is_extended(new: Object, old: Object) -> bool:
    """Return whether a node selector term differs only by additions."""
    expressions = nested_list(new, "matchExpressions")
    fields = nested_list(new, "matchFields")
    old_expressions = nested_list(old, "matchExpressions")
    old_fields = nested_list(old, "matchFields")
    if not old_expressions and not old_fields:
        return not expressions and not fields
    if expressions[: len(old_expressions)] != old_expressions:
        return False
    return fields[: len(old_fields)] == old_fields


# --- ephemeral containers -------------------------------------------------------------------------


def validate_ephemeral_containers_update(pod: Object, old: Object) -> list[FieldError]:
    if MIRROR in annotations_of(old):
        return [forbidden_field(WHOLE_OBJECT, "static pods do not support ephemeral containers")]
    errors = revalidate(pod, old)
    new = {
        container.get("name"): container
        for container in pod["spec"].get("ephemeralContainers") or ()
    }
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in new:
            detail = f"existing ephemeral containers {quote(name)} may not be removed\n"
            errors.append(forbidden_field("spec.ephemeralContainers", detail))
        elif not semantically_equal(new[name], container):
            difference = go_diff("core.EphemeralContainer", container, new[name])
            detail = f"existing ephemeral containers {quote(name)} may not be changed\n{difference}"
            errors.append(forbidden_field("spec.ephemeralContainers", detail))

    return errors
