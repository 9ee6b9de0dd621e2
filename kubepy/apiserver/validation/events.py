"""Events (``pkg/apis/core/validation/events.go``), the rules of the group ``""``."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object, namespace_of
from kubepy.api.values.names import dns1123_subdomain, qualified_name
from kubepy.apiserver.validation.fields import Errors, validate_format

LIMITS = (("reportingInstance", 128), ("action", 128), ("reason", 128))
NAMESPACE_DIFFERS = "does not match event.namespace"


def validate_event(event: Object) -> list[FieldError]:
    errors: Errors = []
    namespace = namespace_of(event)
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    if event.get("eventTime") is None:
        if namespace not in ((involved,) if involved else ("", "default")):
            errors.append(invalid_value("involvedObject.namespace", involved, NAMESPACE_DIFFERS))
    else:
        if not involved and namespace not in ("default", "kube-system"):
            errors.append(invalid_value("involvedObject.namespace", involved, NAMESPACE_DIFFERS))
        _validate_reporter(event, errors)
    validate_format(namespace, dns1123_subdomain(namespace), "namespace", errors)
    return errors


def _validate_reporter(event: Object, errors: Errors) -> None:
    """What an event of the new kind must say: who reports what was done, and why."""
    controller = event.get("reportingComponent", "")
    if not controller:
        errors.append(required("reportingComponent"))
    validate_format(controller, qualified_name(controller), "reportingComponent", errors)
    for field, limit in LIMITS:
        value = event.get(field, "")
        if not value:
            errors.append(required(field))
        if len(value.encode()) > limit:
            errors.append(invalid_value(field, "", f"can have at most {limit} characters"))
    if len(event.get("message", "").encode()) > 1024:
        errors.append(invalid_value("message", "", "can have at most 1024 characters"))
