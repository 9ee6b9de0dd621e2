"""Resources of a pod as a whole: ``spec.resources`` (``validatePodResources`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import forbidden_field, invalid_value
from kubepy.api.meta import Object
from kubepy.api.objects.pods import aggregate
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import Errors
from kubepy.apiserver.validation.resources import (
    is_huge_page,
    validate_pod_resource_name,
    validate_resource_requirements,
)


def validate_pod_resources(spec: Object, claim_names: list[str], path: str, errors: Errors) -> None:
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        errors.append(forbidden_field(path, "may not be set for a windows pod"))
        return
    if resources.get("claims") is not None:
        errors.append(forbidden_field(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    validate_resource_requirements(resources, claim_names, path, errors, validate_name=validate_pod_resource_name)
    _validate_requests(spec, path, errors)
    _validate_limits(spec, path, errors)


def _validate_requests(spec: Object, path: str, errors: Errors) -> None:
    own = spec["resources"].get("requests") or {}
    for name, total in aggregate(spec, "requests").items():
        if name in own and total > Quantity.parse(own[name]):
            why = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid_value(f"{path}.requests[{name}]", own[name], why))


def _validate_limits(spec: Object, path: str, errors: Errors) -> None:
    own = spec["resources"].get("limits") or {}
    for name, total in aggregate(spec, "limits").items():
        if is_huge_page(name) and name in own and total > Quantity.parse(own[name]):
            why = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid_value(f"{path}.limits[{name}]", own[name], why))
    for index, container in enumerate(spec.get("containers") or ()):
        limits = (container.get("resources") or {}).get("limits") or {}
        for name in sorted(limits):
            if name in own and Quantity.parse(limits[name]) > Quantity.parse(own[name]):
                why = f"must be less than or equal to pod limits of {own[name]}"
                errors.append(invalid_value(f"{path}.containers[{index}][{name}].limits", limits[name], why))
