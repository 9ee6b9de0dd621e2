"""Pod templates and their selectors, in the kinds that have one, and PodTemplates
(``pkg/apis/core/validation/validation.go``)."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api import selectors
from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, spec_of
from kubepy.apiserver.kinds.core.pods.validation.options import PodOptions, options_for_update
from kubepy.apiserver.kinds.core.pods.validation.spec import validate_pod_template
from kubepy.apiserver.validation.fields import Errors

TOLERANT_OF_NOTHING = PodOptions()


def selector_of(spec: Object) -> selectors.LabelSelector | None:
    """Return the parsed selector, or None if it cannot be parsed."""
    try:
        return selectors.from_label_selector(spec.get("selector"))
    except selectors.SelectorError:
        return None


def template_options(old: Object | None) -> PodOptions:
    if old is None:
        return TOLERANT_OF_NOTHING
    template = old["spec"].get("template") or {}
    return options_for_update(spec_of(template), template.get("metadata") or {})


def validate_tolerating(
    validate_spec: Callable[[Object, PodOptions], Errors], workload: Object, old: Object | None
) -> Errors:
    """Validate the spec of a workload; an update tolerates what the old object had already.

    The tolerances are worked out only if there are errors: most updates have none.
    """
    errors = validate_spec(workload["spec"], TOLERANT_OF_NOTHING)
    if errors and old is not None:
        return validate_spec(workload["spec"], template_options(old))
    return errors


def validate_template_object(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a PodTemplate."""
    errors: Errors = []
    options = PodOptions()
    if old is not None:
        options = options_for_update(
            old["template"].get("spec") or {}, old["template"].get("metadata") or {}
        )
    validate_pod_template(obj["template"], options, "template", errors)
    return errors
