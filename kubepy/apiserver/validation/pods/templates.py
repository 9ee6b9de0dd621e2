"""The pod template of a workload (``ValidatePodTemplateSpec`` upstream), shared by all workload kinds."""

from __future__ import annotations

from typing import Any

from kubepy.api.errors import forbidden_field, invalid_value, not_supported
from kubepy.api.meta import Object
from kubepy.api.selectors import LabelSelector
from kubepy.apiserver.validation.fields import Errors
from kubepy.apiserver.validation.labels import validate_labels
from kubepy.apiserver.validation.pods.annotations import validate_pod_annotations, validate_profiles_match
from kubepy.apiserver.validation.pods.options import PodOptions
from kubepy.apiserver.validation.pods.spec import validate_pod_spec


def validate_pod_template(template: Object, options: PodOptions, path: str, errors: Errors) -> None:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = metadata.get("annotations")
    validate_labels(metadata.get("labels"), f"{path}.labels", errors)
    if annotations:
        from kubepy.apiserver.validation.metadata import validate_annotations

        errors.extend(validate_annotations(annotations, f"{path}.annotations"))
        validate_pod_annotations(annotations, spec, options, f"{path}.annotations", errors)
    validate_pod_spec(spec, "", options, f"{path}.spec", errors)
    validate_profiles_match(annotations, spec, f"{path}.spec", errors)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden_field(f"{path}.spec.ephemeralContainers",
                                      "ephemeral containers not allowed in pod template"))


def template_labels(template: Object) -> Any:
    """The labels as Go holds them: None when there are none."""
    return (template.get("metadata") or {}).get("labels")


def validate_selected(template: Object, selector: LabelSelector, path: str, errors: Errors) -> None:
    """A workload must select its own pods."""
    labels = template_labels(template)
    if not selector.matches(labels or {}):
        errors.append(invalid_value(f"{path}.metadata.labels", labels, "`selector` does not match template `labels`"))


def validate_restart_policy(template: Object, allowed: tuple[str, ...], path: str, errors: Errors) -> None:
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy not in allowed:
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, allowed))


def forbid_active_deadline(template: Object, kind: str, path: str, errors: Errors) -> None:
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        errors.append(forbidden_field(f"{path}.spec.activeDeadlineSeconds",
                                      f"activeDeadlineSeconds in {kind} is not Supported"))
