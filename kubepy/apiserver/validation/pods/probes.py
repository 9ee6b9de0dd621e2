"""Probes and lifecycle handlers of a container (``validateProbe``, ``validateHandler`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.apiserver.validation.fields import NEGATIVE, Errors, validate_format
from kubepy.apiserver.validation.formats import http_header_name, port_number, port_number_or_name

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
LIFECYCLE_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def validate_lifecycle_and_probes(container: Object, grace_period: int | None, path: str, errors: Errors) -> None:
    """``stopSignal`` is behind a gate that is off in v1.36 and dropped before."""
    for event in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(event)
        if handler is not None:
            _validate_handler(handler, LIFECYCLE_HANDLERS, grace_period, f"{path}.lifecycle.{event}", errors)
    for kind in PROBES:
        if container.get(kind) is not None:
            _validate_probe(kind, container[kind], f"{path}.{kind}", errors)


def _validate_probe(kind: str, probe: Object, path: str, errors: Errors) -> None:
    _validate_handler(probe, PROBE_HANDLERS, None, path, errors)
    for count in COUNTS:
        value = probe.get(count, 0)
        if value < 0:
            errors.append(invalid_value(f"{path}.{count}", value, NEGATIVE))
    period = probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", period, "must be greater than 0"))
    if kind == "readinessProbe":
        if period is not None:
            why = "must not be set for readinessProbes"
            errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", period, why))
    elif probe.get("successThreshold", 0) != 1:
        errors.append(invalid_value(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))


def _validate_handler(handler: Object, kinds: tuple[str, ...], grace_period: int | None, path: str,
                      errors: Errors) -> None:
    found = [kind for kind in kinds if handler.get(kind) is not None]
    if not found:
        errors.append(required(path, "must specify a handler type"))
        return
    _validate_action(found[0], handler[found[0]], grace_period, f"{path}.{found[0]}", errors)
    for kind in found[1:]:
        errors.append(forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type"))


def _validate_action(kind: str, action: Object, grace_period: int | None, path: str, errors: Errors) -> None:
    match kind:
        case "exec":
            if not action.get("command"):
                errors.append(required(f"{path}.command"))
        case "httpGet":
            _validate_http_get(action, path, errors)
        case "tcpSocket":
            _validate_port(action.get("port", 0), f"{path}.port", errors)
        case "grpc":
            validate_format(action.get("port", 0), port_number(action.get("port", 0)), f"{path}.port", errors)
        case "sleep":
            _validate_sleep(action.get("seconds", 0), grace_period, path, errors)


def _validate_http_get(action: Object, path: str, errors: Errors) -> None:
    if not action.get("path"):
        errors.append(required(f"{path}.path"))
    _validate_port(action.get("port", 0), f"{path}.port", errors)
    if action.get("scheme", "") not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        validate_format(name, http_header_name(name), f"{path}.httpHeaders", errors)


def _validate_port(port: int | str, path: str, errors: Errors) -> None:
    validate_format(port, port_number_or_name(port), path, errors)


def _validate_sleep(seconds: int, grace_period: int | None, path: str, errors: Errors) -> None:
    if grace_period is not None and not 0 <= seconds <= grace_period:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        errors.append(invalid_value(path, seconds, why))
