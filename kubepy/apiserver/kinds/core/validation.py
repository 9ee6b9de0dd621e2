"""Namespaces, ConfigMaps, Secrets and Events
(``pkg/apis/core/validation/{validation,events}.go``)."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from kubepy.api.errors import (
    WHOLE_OBJECT,
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from kubepy.api.meta import Object, annotations_of, namespace_of, nested_list, status_of
from kubepy.api.values.names import dns1123_subdomain, qualified_name
from kubepy.apiserver.validation.fields import (
    Errors,
    validate_as,
    validate_immutable,
)
from kubepy.apiserver.validation.formats import config_map_key

MAX_DATA_BYTES = 1024 * 1024
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
IMMUTABLE_DATA = "field is immutable when `immutable` is set"


# --- namespaces -----------------------------------------------------------------------------------


def validate_namespace(namespace: Object) -> list[FieldError]:
    errors: Errors = []
    for finalizer in nested_list(namespace, "spec", "finalizers"):
        validate_namespace_finalizer(finalizer, "spec.finalizers", errors)
    return errors


def validate_namespace_finalize(namespace: Object) -> list[FieldError]:
    """Validate the subresource ``finalize``, the only one to change ``spec.finalizers``."""
    errors: Errors = []
    for index, finalizer in enumerate(nested_list(namespace, "spec", "finalizers")):
        validate_namespace_finalizer(finalizer, f"spec.finalizers[{index}]", errors)
    return errors


def validate_namespace_finalizer(finalizer: str, path: str, errors: Errors) -> None:
    validate_as(qualified_name, finalizer, path, errors)
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid_value(path, finalizer, detail))


def validate_namespace_status_update(namespace: Object) -> list[FieldError]:
    """Require the phase that follows from the deletion timestamp."""
    phase = status_of(namespace).get("phase", "")
    deleted = bool(namespace["metadata"].get("deletionTimestamp"))
    expected = "Terminating" if deleted else "Active"
    if phase == expected:
        return []
    detail = (
        f"may only be '{expected}' if `deletionTimestamp` is {'not empty' if deleted else 'empty'}"
    )
    return [invalid_value("status.Phase", phase, detail)]


# --- config maps ----------------------------------------------------------------------------------


def validate_config_map(config_map: Object) -> list[FieldError]:
    errors: Errors = []
    data = config_map.get("data") or {}
    binary = config_map.get("binaryData") or {}
    for key in sorted(data):
        _validate_key(key, "data", errors)
        if key in binary:
            errors.append(
                invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
            )

    for key in sorted(binary):
        _validate_key(key, "binaryData", errors)
    size = sum(len(value.encode()) for value in data.values())
    size += sum(map(decoded_size, binary.values()))
    if size > MAX_DATA_BYTES:
        errors.append(too_long(WHOLE_OBJECT, MAX_DATA_BYTES))
    return errors


def _validate_key(key: str, path: str, errors: Errors) -> None:
    validate_as(config_map_key, key, f"{path}[{key}]", errors)


def decoded_size(encoded: str) -> int:
    """Return the number of bytes that a base64 text encodes."""
    padding = encoded[-2:].count("=")
    return len(encoded) * 3 // 4 - padding


def validate_immutable_data(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    """Refuse changes of data that is marked immutable, and of the mark."""
    if not old.get("immutable"):
        return []
    errors = []
    if not new.get("immutable"):
        errors.append(forbidden_field("immutable", IMMUTABLE_DATA))
    for field in fields:
        data = new.get(field) or {}
        old_data = old.get(field) or {}
        if data != old_data:
            errors.append(forbidden_field(field, IMMUTABLE_DATA))
    return errors


# --- secrets --------------------------------------------------------------------------------------


def validate_secret(secret: Object) -> list[FieldError]:
    errors: Errors = []
    data = secret.get("data") or {}
    for key in sorted(data):
        _validate_key(key, "data", errors)
    if sum(map(decoded_size, data.values())) > MAX_DATA_BYTES:
        errors.append(too_long("data", MAX_DATA_BYTES))

    match secret.get("type", ""):
        case "kubernetes.io/service-account-token":
            name = "kubernetes.io/service-account.name"
            if not annotations_of(secret).get(name):
                errors.append(required(f"metadata.annotations[{name}]"))
        case "kubernetes.io/dockercfg":
            _validate_json(".dockercfg", data, errors)
        case "kubernetes.io/dockerconfigjson":
            _validate_json(".dockerconfigjson", data, errors)
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                errors.extend((required("data[username]"), required("data[password]")))
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                errors.append(required("data[ssh-privatekey]"))
        case "kubernetes.io/tls":
            errors.extend(
                required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data
            )

    return errors


def _validate_json(key: str, data: Mapping[str, str], errors: Errors) -> None:
    if key not in data:
        errors.append(required(f"data[{key}]"))
        return

    detail = ""
    try:
        parsed: Any = json.loads(b64decode(data[key]))
    except ValueError:
        text = b64decode(data[key]).decode(errors="replace").strip()
        if not text:
            detail = "unexpected end of JSON input"
        else:
            detail = f"invalid character '{text[0]}' looking for beginning of value"
    else:
        kinds = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
        if isinstance(parsed, tuple(kinds)):
            kind = next(name for kind, name in kinds.items() if isinstance(parsed, kind))
            detail = (
                f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )

    if detail:
        errors.append(invalid_value(f"data[{key}]", "<secret contents redacted>", detail))


def validate_secret_type_kept(new: Object, old: Object) -> list[FieldError]:
    errors: Errors = []
    validate_immutable(new.get("type", ""), old.get("type", ""), "type", errors)
    return errors + validate_immutable_data(new, old, ("data",))


def secret_warnings(secret: Object) -> list[str]:
    """Warn of a TLS secret without PEM data. Certificates and keys are not parsed: no cryptographic
    library is here."""
    if secret.get("type") != "kubernetes.io/tls":
        return []
    data = secret.get("data") or {}
    for key, name in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in b64decode(data.get(key, "")):
            return [f"tls: failed to find any PEM data in {name} input"]
    return []


# --- events: the rules of the group "" ------------------------------------------------------------


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
        # Events with an eventTime must have the fields of events.k8s.io.
        controller = event.get("reportingComponent", "")
        if not controller:
            errors.append(required("reportingComponent"))
        validate_as(qualified_name, controller, "reportingComponent", errors)
        for field, limit in LIMITS:
            value = event.get(field, "")
            if not value:
                errors.append(required(field))
            if len(value.encode()) > limit:
                errors.append(invalid_value(field, "", f"can have at most {limit} characters"))
        if len(event.get("message", "").encode()) > 1024:
            errors.append(invalid_value("message", "", "can have at most 1024 characters"))

    validate_as(dns1123_subdomain, namespace, "namespace", errors)
    return errors
