"""ReplicationControllers and PodTemplates (``pkg/apis/core/validation``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, required
from kubepy.api.meta import Object
from kubepy.api.selectors import from_set
from kubepy.apiserver.validation.apps import template_options
from kubepy.apiserver.validation.fields import Errors, validate_nonnegative
from kubepy.apiserver.validation.pods.options import PodOptions, options_for_update
from kubepy.apiserver.validation.pods.templates import (
    forbid_active_deadline,
    validate_pod_template,
    validate_restart_policy,
    validate_selected,
)


def validate_replication_controller(controller: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec, path = controller["spec"], "spec.template"
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


def validate_template_object(obj: Object, old: Object | None = None) -> list[FieldError]:
    """A PodTemplate."""
    errors: Errors = []
    options = PodOptions()
    if old is not None:
        options = options_for_update(old["template"].get("spec") or {}, old["template"].get("metadata") or {})
    validate_pod_template(obj["template"], options, "template", errors)
    return errors
