"""DaemonSets, Deployments, ReplicaSets, StatefulSets and ControllerRevisions.

Upstream: ``pkg/apis/apps/validation/validation.go``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, nested_list, spec_of, status_of
from kubepy.api.values.gonumbers import int_or_none
from kubepy.api.values.names import dns1123_label
from kubepy.apiserver.kinds.core.persistentvolumeclaims.validation import validate_claim_spec
from kubepy.apiserver.kinds.core.pods.validation.options import PodOptions
from kubepy.apiserver.kinds.core.pods.validation.spec import (
    forbid_active_deadline,
    validate_pod_template,
    validate_restart_policy,
    validate_selected,
)
from kubepy.apiserver.kinds.core.podtemplates.validation import (
    TOLERANT_OF_NOTHING,
    selector_of,
    template_options,
    validate_tolerating,
)
from kubepy.apiserver.kinds.core.replicationcontrollers.validation import (
    validate_below_replicas,
    validate_ready_and_available,
)
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    NEGATIVE,
    Errors,
    go_view,
    is_empty_selector,
    selector_view,
    semantically_equal,
    validate_as,
    validate_label_selector,
    validate_nonnegative,
    validate_optional_choice,
)
from kubepy.apiserver.validation.formats import percent

IntOrString = int | str


# --- numbers and percentages ----------------------------------------------------------------------


def validate_int_or_percent(value: IntOrString, path: str, errors: Errors) -> None:
    """Require a number from 0 on, or a percentage like ``25%``
    (``ValidatePositiveIntOrPercent``)."""
    if isinstance(value, str):
        validate_as(percent, value, path, errors)
    elif value < 0:
        errors.append(invalid_value(path, value, NEGATIVE))


def int_or_percent_value(value: IntOrString) -> int:
    """Return a number, that of a percentage, 0 for any other text (``getIntOrPercentValue``)."""
    if isinstance(value, int):
        return value
    return max(int_or_none(value.removesuffix("%")) or 0, 0)


def validate_at_most_100_percent(value: IntOrString, path: str, errors: Errors) -> None:
    if isinstance(value, str) and not percent(value) and int_or_percent_value(value) > 100:
        errors.append(invalid_value(path, value, "must not be greater than 100%"))


# --- all workloads --------------------------------------------------------------------------------


def validate_workload_selector(spec: Object, kind: str, path: str, errors: Errors) -> None:
    """Require a selector that is valid and not empty."""
    selector = spec.get("selector")
    if selector is None:
        errors.append(required(f"{path}.selector"))
        return
    validate_label_selector(selector, f"{path}.selector", errors)
    if is_empty_selector(selector):
        errors.append(
            invalid_value(
                f"{path}.selector", selector_view(selector), f"empty selector is invalid for {kind}"
            )
        )


def validate_selector_kept(spec: Object, old_spec: Object, errors: Errors) -> None:
    if not semantically_equal(spec.get("selector"), old_spec.get("selector")):
        errors.append(
            invalid_value("spec.selector", selector_view(spec.get("selector")), IMMUTABLE)
        )


def validate_count_status(
    status: Object, old_status: Object, counts: tuple[str, ...], errors: Errors
) -> None:
    """Require counts that are not negative, and a collision count that never goes down."""
    for count in counts:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    if (status.get("collisionCount") or 0) < (old_status.get("collisionCount") or 0):
        errors.append(
            invalid_value(
                "status.collisionCount", status.get("collisionCount") or 0, "cannot be decremented"
            )
        )


# --- DaemonSet ------------------------------------------------------------------------------------


DAEMON_SET_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def validate_daemon_set(daemon_set: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a creation, or an update of ``old``."""
    errors: Errors = []
    if old is not None:
        validate_selector_kept(daemon_set["spec"], old["spec"], errors)
    return errors + validate_tolerating(_daemon_set_spec, daemon_set, old)


def _daemon_set_spec(spec: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    template = spec.get("template") or {}
    selector = spec.get("selector")
    validate_label_selector(
        selector,
        "spec.selector",
        errors,
        allow_invalid_values=options.allow_invalid_selector_values,
    )
    parsed = selector_of(spec)
    if parsed is not None:
        validate_selected(template, parsed, "spec.template", errors)

    if selector is not None and is_empty_selector(selector):
        errors.append(
            invalid_value("spec.selector", selector, "empty selector is invalid for daemonset")
        )

    validate_pod_template(template, options, "spec.template", errors)
    validate_restart_policy(template, ("Always",), "spec.template", errors)
    forbid_active_deadline(template, "DaemonSet", "spec.template", errors)
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)

    strategy = spec.get("updateStrategy") or {}
    match strategy.get("type", ""):
        case "OnDelete":
            pass
        case "RollingUpdate":
            if strategy.get("rollingUpdate") is None:
                errors.append(required("spec.updateStrategy.rollingUpdate"))
            else:
                _validate_daemon_set_rolling_update(strategy["rollingUpdate"], errors)
        case _:
            shown = go_view("apps.DaemonSetUpdateStrategy", strategy)
            errors.append(
                not_supported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete"))
            )

    validate_nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit", errors)
    return errors


def _validate_daemon_set_rolling_update(rolling: Object, errors: Errors) -> None:
    path = "spec.updateStrategy.rollingUpdate"
    unavailable = rolling.get("maxUnavailable", 0)
    surge = rolling.get("maxSurge", 0)
    for check in (validate_int_or_percent, validate_at_most_100_percent):
        for value, at in ((unavailable, f"{path}.maxUnavailable"), (surge, f"{path}.maxSurge")):
            check(value, at, errors)
    has_unavailable = int_or_percent_value(unavailable) != 0
    has_surge = int_or_percent_value(surge) != 0
    if has_unavailable and has_surge:
        errors.append(
            invalid_value(
                f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"
            )
        )
    elif not has_unavailable and not has_surge:
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


def validate_daemon_set_status_update(daemon_set: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    validate_count_status(status_of(daemon_set), status_of(old), DAEMON_SET_COUNTS, errors)
    return errors


# --- ControllerRevision ---------------------------------------------------------------------------


def validate_controller_revision(revision: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    validate_nonnegative(revision.get("revision"), "revision", errors)
    data = revision.get("data")
    if old is not None:
        if data != old.get("data"):
            errors.append(invalid_value("data", data, "field is immutable"))
    elif data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


# --- Deployment and ReplicaSet --------------------------------------------------------------------


DEPLOYMENT_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def validate_deployment(deployment: Object, old: Object | None = None) -> list[FieldError]:
    errors = validate_tolerating(_deployment_spec, deployment, old)
    if old is not None:
        validate_selector_kept(deployment["spec"], old["spec"], errors)
    return errors


def _deployment_spec(spec: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    validate_nonnegative(spec.get("replicas"), "spec.replicas", errors)
    validate_workload_selector(spec, "deployment", "spec", errors)
    _validate_replicated_template(spec, options, errors)
    _validate_deployment_strategy(spec.get("strategy") or {}, errors)
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    validate_nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit", errors)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        validate_nonnegative(deadline, "spec.progressDeadlineSeconds", errors)
        if deadline <= spec.get("minReadySeconds", 0):
            errors.append(
                invalid_value(
                    "spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
                )
            )

    return errors


def _validate_deployment_strategy(strategy: Object, errors: Errors) -> None:
    path = "spec.strategy.rollingUpdate"
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                errors.append(forbidden_field(path, detail))
        case "RollingUpdate":
            if rolling is None:
                errors.append(required(path, "this should be defaulted and never be nil"))
            else:
                _validate_rolling_update(rolling, path, errors)
        case _:
            shown = go_view("apps.DeploymentStrategy", strategy)
            errors.append(not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate")))


def _validate_rolling_update(rolling: Object, path: str, errors: Errors) -> None:
    at = f"{path}.maxUnavailable"
    unavailable = rolling.get("maxUnavailable", 0)
    surge = rolling.get("maxSurge", 0)
    validate_int_or_percent(unavailable, at, errors)
    validate_int_or_percent(surge, f"{path}.maxSurge", errors)
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        errors.append(invalid_value(at, unavailable, "may not be 0 when `maxSurge` is 0"))
    validate_at_most_100_percent(unavailable, at, errors)


def _validate_replicated_template(spec: Object, options: PodOptions, errors: Errors) -> None:
    """Validate the template of a ReplicaSet or Deployment
    (``ValidatePodTemplateSpecForReplicaSet``)."""
    template = spec.get("template") or {}
    selector = selector_of(spec)
    if selector is None:
        errors.append(
            invalid_value(
                "spec.selector", selector_view(spec.get("selector")), "invalid label selector"
            )
        )
        return
    if not selector.is_empty():
        validate_selected(template, selector, "spec.template", errors)
    validate_pod_template(template, options, "spec.template", errors)
    validate_restart_policy(template, ("Always",), "spec.template", errors)
    forbid_active_deadline(template, "ReplicaSet", "spec.template", errors)


def validate_deployment_status_update(deployment: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(deployment)
    for count in DEPLOYMENT_COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    validate_ready_and_available(
        status, ("updatedReplicas", "readyReplicas", "availableReplicas"), errors
    )
    validate_count_status(status, status_of(old), (), errors)
    return errors


def validate_replica_set(replica_set: Object, old: Object | None = None) -> list[FieldError]:
    errors = validate_tolerating(_replica_set_spec, replica_set, old)
    if old is not None:
        validate_selector_kept(replica_set["spec"], old["spec"], errors)
    return errors


def _replica_set_spec(spec: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    validate_nonnegative(spec.get("replicas"), "spec.replicas", errors)
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    validate_workload_selector(
        spec, "deployment", "spec", errors
    )  # upstream's word, also for a ReplicaSet
    _validate_replicated_template(spec, options, errors)
    return errors


# --- StatefulSet ----------------------------------------------------------------------------------


MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
SPEC_KEPT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
    "forbidden"
)
COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
LIMITED_COUNTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


class _Tolerance(NamedTuple):
    """The checks that an update leaves out: of fields that cannot change, of a template that was
    invalid already."""

    is_update: bool = False
    skips_template: bool = False


def validate_stateful_set(stateful_set: Object, old: Object | None = None) -> list[FieldError]:
    spec = stateful_set["spec"]
    if old is None:
        return _validate_spec(spec, TOLERANT_OF_NOTHING, _Tolerance())
    tolerance = _Tolerance(is_update=True)
    errors = _validate_spec(spec, TOLERANT_OF_NOTHING, tolerance)
    if errors:  # tolerate what the old object had already
        options = template_options(old)
        skips = bool(_validate_spec(old["spec"], options, tolerance))
        errors = _validate_spec(spec, options, tolerance._replace(skips_template=skips))

    immutable, old_immutable = (
        {field: value for field, value in each.items() if field not in MUTABLE}
        for each in (spec, old["spec"])
    )
    if not semantically_equal(immutable, old_immutable):
        errors.append(forbidden_field("spec", SPEC_KEPT))
    return errors


def _validate_spec(spec: Object, options: PodOptions, tolerance: _Tolerance) -> Errors:
    errors: Errors = []
    policy = spec.get("podManagementPolicy", "")
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(
            invalid_value(
                "spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"
            )
        )

    _validate_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy", errors)
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for when in ("whenDeleted", "whenScaled"):
        at = f"spec.persistentVolumeClaimRetentionPolicy.{when}"
        validate_optional_choice(retention.get(when), ("Retain", "Delete"), at, errors)
    if not tolerance.is_update:
        for index, claim in enumerate(nested_list(spec, "volumeClaimTemplates")):
            validate_claim_spec(spec_of(claim), f"spec.volumeClaimTemplates[{index}].spec", errors)
    for field in ("replicas", "minReadySeconds"):
        validate_nonnegative(spec.get(field), f"spec.{field}", errors)
    validate_nonnegative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start", errors)
    name = spec.get("serviceName")
    if name and not tolerance.is_update:
        validate_as(dns1123_label, name, "spec.serviceName", errors)
    validate_workload_selector(spec, "statefulset", "spec", errors)

    selector = selector_of(spec)
    if selector is None:
        errors.append(invalid_value("spec.selector", selector_view(spec.get("selector")), ""))
    else:
        if not selector.is_empty():
            validate_selected(_with_claims(spec), selector, "spec.template", errors)
        if not tolerance.skips_template:
            validate_pod_template(_with_claims(spec), options, "spec.template", errors)

    template = spec.get("template") or {}
    validate_restart_policy(template, ("Always",), "spec.template", errors)
    forbid_active_deadline(template, "StatefulSet", "spec.template", errors)
    return errors


def _validate_strategy(strategy: Object, path: str, errors: Errors) -> None:
    rolling = strategy.get("rollingUpdate")
    at = f"{path}.rollingUpdate"
    match strategy.get("type", ""):
        case "":
            errors.append(required(path))
        case "OnDelete":
            if rolling is not None:
                shown = go_view("apps.RollingUpdateStatefulSetStrategy", rolling)
                errors.append(
                    invalid_value(at, shown, "only allowed for updateStrategy 'RollingUpdate'")
                )
        case "RollingUpdate":
            if rolling is not None:
                validate_nonnegative(rolling.get("partition"), f"{at}.partition", errors)
            if rolling is not None and (unavailable := rolling.get("maxUnavailable")) is not None:
                validate_int_or_percent(unavailable, f"{at}.maxUnavailable", errors)
                if int_or_percent_value(unavailable) == 0:
                    errors.append(invalid_value(f"{at}.maxUnavailable", unavailable, "cannot be 0"))
                validate_at_most_100_percent(unavailable, f"{at}.maxUnavailable", errors)
        case _:
            shown = go_view("apps.StatefulSetUpdateStrategy", strategy)
            errors.append(invalid_value(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))


def _with_claims(spec: Object) -> Object:
    """Return the template as the controller makes pods of it: it sets host name and subdomain, and
    adds the claims."""
    template: Object = spec.get("template") or {}
    pod_spec = spec_of(template)
    claims = nested_list(spec, "volumeClaimTemplates")
    if not claims and not pod_spec.get("hostname") and not pod_spec.get("subdomain"):
        return template
    names = [(claim.get("metadata") or {}).get("name", "") for claim in claims]
    own = [
        volume for volume in nested_list(pod_spec, "volumes") if volume.get("name", "") not in names
    ]
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    kept = {
        field: value for field, value in pod_spec.items() if field not in ("hostname", "subdomain")
    }
    return {**template, "spec": {**kept, "volumes": [*added, *own]}}


def validate_stateful_set_status_update(stateful_set: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(stateful_set)
    for count in COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    validate_below_replicas(status, LIMITED_COUNTS, errors)
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        detail = "cannot be greater than status.readyReplicas"
        errors.append(invalid_value("status.availableReplicas", available, detail))
    validate_count_status(status, status_of(old), (), errors)
    return errors
