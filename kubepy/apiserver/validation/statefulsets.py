"""StatefulSets (``ValidateStatefulSet*`` in ``pkg/apis/apps/validation/validation.go``)."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, required
from kubepy.api.meta import Object
from kubepy.api.selectors import LabelSelector
from kubepy.api.values.names import dns1123_label
from kubepy.apiserver.validation.apps import (
    TOLERANT_OF_NOTHING,
    int_or_percent_value,
    selector_of,
    template_options,
    validate_at_most_100_percent,
    validate_below_replicas,
    validate_count_status,
    validate_int_or_percent,
    validate_workload_selector,
)
from kubepy.apiserver.validation.claims import validate_claim_spec
from kubepy.apiserver.validation.fields import (
    Errors,
    semantically_equal,
    validate_format,
    validate_nonnegative,
    validate_optional_choice,
)
from kubepy.apiserver.validation.goview import go_view, selector_view
from kubepy.apiserver.validation.pods.options import PodOptions
from kubepy.apiserver.validation.pods.templates import (
    forbid_active_deadline,
    validate_pod_template,
    validate_restart_policy,
    validate_selected,
)

MUTABLE = ("replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
           "persistentVolumeClaimRetentionPolicy")
SPEC_KEPT = ("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
             "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
COUNTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
          "observedGeneration", "collisionCount")
LIMITED_COUNTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


class _Tolerance(NamedTuple):
    """What an update does not look at again: fields that cannot change, a template that was bad already."""

    is_update: bool = False
    skips_template: bool = False


def validate_stateful_set(stateful_set: Object, old: Object | None = None) -> list[FieldError]:
    spec = stateful_set["spec"]
    if old is None:
        return _validate_spec(spec, TOLERANT_OF_NOTHING, _Tolerance())
    tolerance = _Tolerance(is_update=True)
    errors = _validate_spec(spec, TOLERANT_OF_NOTHING, tolerance)
    if errors:  # only then does it matter what the old object had
        options = template_options(old)
        skips = bool(_validate_spec(old["spec"], options, tolerance))
        errors = _validate_spec(spec, options, tolerance._replace(skips_template=skips))
    if not semantically_equal(_without_mutable(spec), _without_mutable(old["spec"])):
        errors.append(forbidden_field("spec", SPEC_KEPT))
    return errors


def _without_mutable(spec: Object) -> Object:
    return {field: value for field, value in spec.items() if field not in MUTABLE}


def _validate_spec(spec: Object, options: PodOptions, tolerance: _Tolerance) -> Errors:
    errors: Errors = []
    _validate_management_policy(spec.get("podManagementPolicy", ""), errors)
    _validate_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy", errors)
    _validate_claims(spec, errors, is_update=tolerance.is_update)
    for field in ("replicas", "minReadySeconds"):
        validate_nonnegative(spec.get(field), f"spec.{field}", errors)
    validate_nonnegative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start", errors)
    if (name := spec.get("serviceName")) and not tolerance.is_update:
        validate_format(name, dns1123_label(name), "spec.serviceName", errors)
    validate_workload_selector(spec, "statefulset", "spec", errors)
    selector = selector_of(spec)
    if selector is None:
        errors.append(invalid_value("spec.selector", selector_view(spec.get("selector")), ""))
    else:
        _validate_template(spec, selector, options, tolerance, errors)
    template = spec.get("template") or {}
    validate_restart_policy(template, ("Always",), "spec.template", errors)
    forbid_active_deadline(template, "StatefulSet", "spec.template", errors)
    return errors


def _validate_management_policy(policy: str, errors: Errors) -> None:
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))


def _validate_strategy(strategy: Object, path: str, errors: Errors) -> None:
    rolling, at = strategy.get("rollingUpdate"), f"{path}.rollingUpdate"
    match strategy.get("type", ""):
        case "":
            errors.append(required(path))
        case "OnDelete":
            if rolling is not None:
                shown = go_view("apps.RollingUpdateStatefulSetStrategy", rolling)
                errors.append(invalid_value(at, shown, "only allowed for updateStrategy 'RollingUpdate'"))
        case "RollingUpdate":
            if rolling is not None:
                _validate_rolling_update(rolling, at, errors)
        case _:
            shown = go_view("apps.StatefulSetUpdateStrategy", strategy)
            errors.append(invalid_value(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))


def _validate_rolling_update(rolling: Object, path: str, errors: Errors) -> None:
    validate_nonnegative(rolling.get("partition"), f"{path}.partition", errors)
    unavailable, at = rolling.get("maxUnavailable"), f"{path}.maxUnavailable"
    if unavailable is not None:
        validate_int_or_percent(unavailable, at, errors)
        if int_or_percent_value(unavailable) == 0:
            errors.append(invalid_value(at, unavailable, "cannot be 0"))
        validate_at_most_100_percent(unavailable, at, errors)


def _validate_claims(spec: Object, errors: Errors, *, is_update: bool) -> None:
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for when in ("whenDeleted", "whenScaled"):
        at = f"spec.persistentVolumeClaimRetentionPolicy.{when}"
        validate_optional_choice(retention.get(when), ("Retain", "Delete"), at, errors)
    if is_update:
        return
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec", errors)


def _validate_template(spec: Object, selector: LabelSelector, options: PodOptions, tolerance: _Tolerance,
                       errors: Errors) -> None:
    template = _with_claims(spec)
    if not selector.is_empty():
        validate_selected(template, selector, "spec.template", errors)
    if not tolerance.skips_template:
        validate_pod_template(template, options, "spec.template", errors)


def _with_claims(spec: Object) -> Object:
    """The template as its pods will be: the controller sets host name and subdomain, and adds the claims."""
    template: Object = spec.get("template") or {}
    pod_spec, claims = template.get("spec") or {}, spec.get("volumeClaimTemplates") or ()
    if not claims and not pod_spec.get("hostname") and not pod_spec.get("subdomain"):
        return template
    names = [(claim.get("metadata") or {}).get("name", "") for claim in claims]
    own = [volume for volume in pod_spec.get("volumes") or () if volume.get("name", "") not in names]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    changed = {**pod_spec, "volumes": [*made, *own]}
    for field in ("hostname", "subdomain"):
        changed.pop(field, None)
    return {**template, "spec": changed}


def validate_stateful_set_status_update(stateful_set: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = stateful_set.get("status") or {}
    for count in COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    validate_below_replicas(status, LIMITED_COUNTS, errors)
    if (available := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        why = "cannot be greater than status.readyReplicas"
        errors.append(invalid_value("status.availableReplicas", available, why))
    validate_count_status(status, old.get("status") or {}, (), errors)
    return errors
