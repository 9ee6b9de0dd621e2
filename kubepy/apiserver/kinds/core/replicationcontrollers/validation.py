"""ReplicationControllers, and the replicas in a status, which ReplicaSets have too.

Upstream: ``pkg/apis/core/validation/validation.go``, ``pkg/apis/apps/validation/validation.go``.
"""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object, status_of
from kubepy.api.selectors import from_set
from kubepy.apiserver.kinds.core.pods.validation.spec import (
    forbid_active_deadline,
    validate_pod_template,
    validate_restart_policy,
    validate_selected,
)
from kubepy.apiserver.kinds.core.podtemplates.validation import template_options
from kubepy.apiserver.validation.fields import Errors, validate_nonnegative

REPLICA_SET_COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    "observedGeneration",
)
ABOVE_REPLICAS = "cannot be greater than status.replicas"


def validate_ready_and_available(status: Object, counts: tuple[str, ...], errors: Errors) -> None:
    validate_below_replicas(status, counts, errors)
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        errors.append(
            invalid_value(
                "status.availableReplicas", available, "cannot be greater than readyReplicas"
            )
        )


def validate_below_replicas(status: Object, counts: tuple[str, ...], errors: Errors) -> None:
    for count in counts:
        number = status.get(count, 0)
        if number > status.get("replicas", 0):
            errors.append(invalid_value(f"status.{count}", number, ABOVE_REPLICAS))


def validate_replica_set_status_update(replica_set: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    status = status_of(replica_set)
    for count in REPLICA_SET_COUNTS:
        validate_nonnegative(status.get(count), f"status.{count}", errors)
    validate_ready_and_available(
        status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), errors
    )
    return errors


def validate_replication_controller(
    controller: Object, old: Object | None = None
) -> list[FieldError]:
    errors: Errors = []
    spec = controller["spec"]
    path = "spec.template"
    validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    if not spec.get("selector"):
        errors.append(required("spec.selector"))
    if spec.get("replicas") is None:
        errors.append(required("spec.replicas"))
    validate_nonnegative(spec.get("replicas"), "spec.replicas", errors)
    template = spec.get("template")
    if template is None:
        errors.append(required(path))
        return errors
    if spec.get("selector"):
        validate_selected(template, from_set(spec["selector"]), path, errors)
    validate_pod_template(template, template_options(old), path, errors)
    validate_restart_policy(template, ("Always",), path, errors)
    forbid_active_deadline(template, "ReplicationController", path, errors)
    return errors
