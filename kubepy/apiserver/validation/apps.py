"""DaemonSets, Deployments, ReplicaSets and ControllerRevisions (``pkg/apis/apps/validation/validation.go``)."""

from __future__ import annotations

from kubepy.api import selectors
from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    NEGATIVE,
    Errors,
    semantically_equal,
    validate_format,
    validate_nonnegative,
)
from kubepy.apiserver.validation.formats import percent
from kubepy.apiserver.validation.goview import go_view, selector_view
from kubepy.apiserver.validation.labels import is_empty_selector, validate_label_selector
from kubepy.apiserver.validation.pods.options import PodOptions, options_for_update
from kubepy.apiserver.validation.pods.templates import (
    forbid_active_deadline,
    validate_pod_template,
    validate_restart_policy,
    validate_selected,
)

IntOrString = int | str
TOLERANT_OF_NOTHING = PodOptions()


# --- numbers and percentages --------------------------------------------------------------------------------------


def validate_int_or_percent(value: IntOrString, path: str, errors: Errors) -> None:
    """``ValidatePositiveIntOrPercent``: a number from 0 on, or ``25%``."""
    if isinstance(value, str):
        validate_format(value, percent(value), path, errors)
    elif value < 0:
        errors.append(invalid_value(path, value, NEGATIVE))


def int_or_percent_value(value: IntOrString) -> int:
    """The number, of a percentage without its sign; 0 for a word (``getIntOrPercentValue``)."""
    if isinstance(value, int):
        return value
    return max(int_or_none(value.removesuffix("%")) or 0, 0)


def validate_at_most_100_percent(value: IntOrString, path: str, errors: Errors) -> None:
    if isinstance(value, str) and not percent(value) and int_or_percent_value(value) > 100:
        errors.append(invalid_value(path, value, "must not be greater than 100%"))


# --- what the workloads share -------------------------------------------------------------------------------------


def validate_workload_selector(spec: Object, kind: str, path: str, errors: Errors) -> None:
    """A selector that must be there, be well formed, and not be empty."""
    selector = spec.get("selector")
    if selector is None:
        errors.append(required(f"{path}.selector"))
        return
    validate_label_selector(selector, f"{path}.selector", errors)
    if is_empty_selector(selector):
        errors.append(invalid_value(f"{path}.selector", selector_view(selector),
                                    f"empty selector is invalid for {kind}"))


def validate_selector_kept(spec: Object, old_spec: Object, errors: Errors) -> None:
    if not semantically_equal(spec.get("selector"), old_spec.get("selector")):
        errors.append(invalid_value("spec.selector", selector_view(spec.get("selector")), IMMUTABLE))


def selector_of(spec: Object) -> selectors.LabelSelector | None:
    """The parsed selector, or None when it cannot be parsed."""
    try:
        return selectors.from_label_selector(spec.get("selector"))
    except selectors.SelectorError:
        return None


def template_options(old: Object | None) -> PodOptions:
    if old is None:
        return TOLERANT_OF_NOTHING
    template = old["spec"].get("template") or {}
    return options_for_update(template.get("spec") or {}, template.get("metadata") or {})


def validate_count_status(status: Object, old_status: Object, counts: tuple[str, ...], errors: Errors) -> None:
    """Counts are not negative, and the collision count never goes down."""
    for count in counts:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    if (status.get("collisionCount") or 0) < (old_status.get("collisionCount") or 0):
        errors.append(invalid_value("status.collisionCount", status.get("collisionCount") or 0,
                                    "cannot be decremented"))


# --- DaemonSet ----------------------------------------------------------------------------------------------------


DAEMON_SET_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
                     "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
                     "collisionCount")


def validate_daemon_set(daemon_set: Object, old: Object | None = None) -> list[FieldError]:
    """With ``old``: an update. What the old object had already is tolerated; that is asked only when there is need."""
    errors: Errors = []
    if old is not None:
        validate_selector_kept(daemon_set["spec"], old["spec"], errors)
    found = _daemon_set_spec(daemon_set["spec"], TOLERANT_OF_NOTHING)
    if found and old is not None:
        found = _daemon_set_spec(daemon_set["spec"], template_options(old))
    return errors + found


def _daemon_set_spec(spec: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    template, selector = spec.get("template") or {}, spec.get("selector")
    validate_label_selector(selector, "spec.selector", errors,
                            allow_invalid_values=options.allow_invalid_selector_values)
    if (parsed := selector_of(spec)) is not None:
        validate_selected(template, parsed, "spec.template", errors)
    if selector is not None and is_empty_selector(selector):
        errors.append(invalid_value("spec.selector", selector, "empty selector is invalid for daemonset"))
    validate_pod_template(template, options, "spec.template", errors)
    validate_restart_policy(template, ("Always",), "spec.template", errors)
    forbid_active_deadline(template, "DaemonSet", "spec.template", errors)
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    _validate_daemon_set_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy", errors)
    validate_nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit", errors)
    return errors


def _validate_daemon_set_strategy(strategy: Object, path: str, errors: Errors) -> None:
    match strategy.get("type", ""):
        case "OnDelete":
            pass
        case "RollingUpdate":
            if strategy.get("rollingUpdate") is None:
                errors.append(required(f"{path}.rollingUpdate"))
            else:
                _validate_daemon_set_rolling_update(strategy["rollingUpdate"], f"{path}.rollingUpdate", errors)
        case _:
            shown = go_view("apps.DaemonSetUpdateStrategy", strategy)
            errors.append(not_supported(path, shown, ("RollingUpdate", "OnDelete")))


def _validate_daemon_set_rolling_update(rolling: Object, path: str, errors: Errors) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    limits = ((unavailable, f"{path}.maxUnavailable"), (surge, f"{path}.maxSurge"))
    for check in (validate_int_or_percent, validate_at_most_100_percent):
        for value, at in limits:
            check(value, at, errors)
    has_unavailable, has_surge = int_or_percent_value(unavailable) != 0, int_or_percent_value(surge) != 0
    if has_unavailable and has_surge:
        errors.append(invalid_value(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not has_unavailable and not has_surge:
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


def validate_daemon_set_status_update(daemon_set: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    validate_count_status(daemon_set.get("status") or {}, old.get("status") or {}, DAEMON_SET_COUNTS, errors)
    return errors


# --- ControllerRevision -------------------------------------------------------------------------------------------


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


# --- Deployment and ReplicaSet ------------------------------------------------------------------------------------


DEPLOYMENT_COUNTS = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
                     "unavailableReplicas", "terminatingReplicas", "collisionCount")
REPLICA_SET_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas",
                      "observedGeneration")
ABOVE_REPLICAS = "cannot be greater than status.replicas"


def validate_deployment(deployment: Object, old: Object | None = None) -> list[FieldError]:
    found = _deployment_spec(deployment["spec"], TOLERANT_OF_NOTHING)
    if found and old is not None:
        found = _deployment_spec(deployment["spec"], template_options(old))
    if old is not None:
        validate_selector_kept(deployment["spec"], old["spec"], found)
    return found


def _deployment_spec(spec: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    validate_nonnegative(spec.get("replicas"), "spec.replicas", errors)
    validate_workload_selector(spec, "deployment", "spec", errors)
    _validate_replicated_template(spec, options, errors)
    _validate_deployment_strategy(spec.get("strategy") or {}, "spec.strategy", errors)
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    validate_nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit", errors)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        validate_nonnegative(deadline, "spec.progressDeadlineSeconds", errors)
        if deadline <= spec.get("minReadySeconds", 0):
            errors.append(invalid_value("spec.progressDeadlineSeconds", deadline,
                                        "must be greater than minReadySeconds"))
    return errors


def _validate_replicated_template(spec: Object, options: PodOptions, errors: Errors) -> None:
    """``ValidatePodTemplateSpecForReplicaSet``."""
    template, selector = spec.get("template") or {}, selector_of(spec)
    if selector is None:
        errors.append(invalid_value("spec.selector", selector_view(spec.get("selector")), "invalid label selector"))
        return
    if not selector.is_empty():
        validate_selected(template, selector, "spec.template", errors)
    validate_pod_template(template, options, "spec.template", errors)
    validate_restart_policy(template, ("Always",), "spec.template", errors)
    forbid_active_deadline(template, "ReplicaSet", "spec.template", errors)


def _validate_deployment_strategy(strategy: Object, path: str, errors: Errors) -> None:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "Recreate":
            if rolling is not None:
                errors.append(forbidden_field(f"{path}.rollingUpdate",
                                              "may not be specified when strategy `type` is 'Recreate'"))
        case "RollingUpdate":
            if rolling is None:
                errors.append(required(f"{path}.rollingUpdate", "this should be defaulted and never be nil"))
            else:
                _validate_deployment_rolling_update(rolling, f"{path}.rollingUpdate", errors)
        case _:
            shown = go_view("apps.DeploymentStrategy", strategy)
            errors.append(not_supported(path, shown, ("Recreate", "RollingUpdate")))


def _validate_deployment_rolling_update(rolling: Object, path: str, errors: Errors) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    validate_int_or_percent(unavailable, f"{path}.maxUnavailable", errors)
    validate_int_or_percent(surge, f"{path}.maxSurge", errors)
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        errors.append(invalid_value(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    validate_at_most_100_percent(unavailable, f"{path}.maxUnavailable", errors)


def validate_deployment_status_update(deployment: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = deployment.get("status") or {}
    for count in DEPLOYMENT_COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    _validate_ready_and_available(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), errors)
    validate_count_status(status, old.get("status") or {}, (), errors)
    return errors


def _validate_ready_and_available(status: Object, counts: tuple[str, ...], errors: Errors) -> None:
    validate_below_replicas(status, counts, errors)
    if (available := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        errors.append(invalid_value("status.availableReplicas", available, "cannot be greater than readyReplicas"))


def validate_below_replicas(status: Object, counts: tuple[str, ...], errors: Errors) -> None:
    for count in counts:
        if (found := status.get(count, 0)) > status.get("replicas", 0):
            errors.append(invalid_value(f"status.{count}", found, ABOVE_REPLICAS))


def validate_replica_set(replica_set: Object, old: Object | None = None) -> list[FieldError]:
    found = _replica_set_spec(replica_set["spec"], TOLERANT_OF_NOTHING)
    if found and old is not None:
        found = _replica_set_spec(replica_set["spec"], template_options(old))
    if old is not None:
        validate_selector_kept(replica_set["spec"], old["spec"], found)
    return found


def _replica_set_spec(spec: Object, options: PodOptions) -> Errors:
    errors: Errors = []
    validate_nonnegative(spec.get("replicas"), "spec.replicas", errors)
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    validate_workload_selector(spec, "deployment", "spec", errors)  # upstream's word, also for a ReplicaSet
    _validate_replicated_template(spec, options, errors)
    return errors


def validate_replica_set_status_update(replica_set: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = replica_set.get("status") or {}
    for count in REPLICA_SET_COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    _validate_ready_and_available(status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), errors)
    return errors
