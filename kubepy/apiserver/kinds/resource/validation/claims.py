"""Claims, classes and slices of devices (``pkg/apis/resource/validation``).

Of a selector's expression only the syntax is checked: the library of devices is not here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from kubepy.api.errors import (
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)
from kubepy.api.meta import Object, nested_list, status_of
from kubepy.api.values.goformat import Ordered
from kubepy.api.values.names import dns1123_label, dns1123_subdomain, regex_error
from kubepy.apiserver.kinds.core.pods.validation.scheduling import validate_node_selector
from kubepy.apiserver.kinds.core.volumesources.validation import (
    validate_csi_driver_name as validate_driver_name,
)
from kubepy.apiserver.validation.fields import (
    NOT_POSITIVE,
    Errors,
    go_view,
    label_value,
    semantically_equal,
    validate_as,
    validate_choice,
    validate_immutable,
    validate_label_name,
    validate_optional_choice,
    validate_required,
)
from kubepy.apiserver.validation.resources import is_extended
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api.cel import checker

Validator = Callable[[Any, str, Errors], None]
RequestNames = dict[str, set[str]]  # request → its subrequests

LARGEST_JSON = LONGEST_EXPRESSION = 10 * 1024
MOST_REQUESTS = MOST_SELECTORS = MOST_CONSTRAINTS = MOST_CONFIGS = MOST_RESULTS = 32
MOST_SUBREQUESTS = 8
NEGATIVE_GENERATION = "must be greater than or equal to zero"
STATUSES = ("False", "True", "Unknown")
EFFECTS = ("NoExecute", "NoSchedule", "None")
ONE_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
ONE_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
    "fields are set"
)
NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a "
    "subrequest separated by '/'"
)
DELETED = (
    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
)
NO_UID_FORM = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
    "lowercase "
    "hexadecimal characters"
)
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
IDENTIFIER = regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
REASON = regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def validate_items(
    items: list[Any] | None,
    most: int | None,
    validate: Validator,
    path: str,
    errors: Errors,
    key: Callable[[Any], Any] | None = None,
) -> None:
    """Validate the items of a list, and with ``key`` that no two have the same (``validateSlice``,
    ``validateSet``)."""
    items = items or []
    if most is not None and len(items) > most:
        errors.append(too_many(path, len(items), most))
        return
    for index, item in enumerate(items):
        validate(item, f"{path}[{index}]", errors)
    keys = [key(item) for item in items] if key else []
    errors.extend(
        duplicate(f"{path}[{index}]", found)
        for index, found in enumerate(keys)
        if found in keys[:index]
    )


def name_of(item: Object) -> str:
    return str(item.get("name", ""))


def validate_label(name: str, path: str, errors: Errors) -> None:
    validate_as(dns1123_label, name, path, errors)


def validate_pool_name(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required(path))
        return
    if len(name.encode()) > 253:
        errors.append(too_long(path, 253))
    for part in name.split("/"):
        validate_as(dns1123_subdomain, part, path, errors)


def validate_qualified_name(name: str, path: str, errors: Errors) -> None:
    """Validate a C identifier, which may follow a domain and a slash; upstream takes any name with
    more slashes."""
    domain, slash, identifier = name.rpartition("/")
    if "/" in domain:
        return
    if slash and not domain:
        errors.append(invalid_value(path, "", "the domain must not be empty"))
    elif slash:
        validate_driver_name(domain, path, errors)
    if slash and not identifier:
        errors.append(invalid_value(path, "", "the name must not be empty"))
        return
    if len(identifier.encode()) > 32:
        errors.append(too_long(path, 32))
    if not re.fullmatch(_IDENTIFIER, identifier):
        errors.append(invalid_value(path, identifier, IDENTIFIER))


def validate_binding_conditions(holder: Object, path: str, errors: Errors) -> None:
    fields = ("bindingConditions", "bindingFailureConditions")
    conditions, failures = (nested_list(holder, field) for field in fields)
    for field in fields:
        validate_items(holder.get(field), 4, validate_label_name, f"{path}.{field}", errors)
    errors.extend(
        duplicate(f"{path}.{fields[0]}[{index}]", condition)
        for index, condition in enumerate(conditions)
        if condition in conditions[:index]
    )

    for index, condition in enumerate(failures):
        at = f"{path}.{fields[1]}[{index}]"
        if condition in failures[:index]:
            errors.append(duplicate(at, condition))
        if condition in conditions:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid_value(at, condition, detail))

    for field, other in (fields, fields[::-1]):
        if not holder.get(field) and holder.get(other):
            errors.append(
                invalid_value(
                    f"{path}.{field}", holder.get(field), f"{field} are required to use {other}"
                )
            )


# --- claims ---------------------------------------------------------------------------------------


def validate_claim_spec(spec: Object, path: str, errors: Errors) -> None:
    devices = spec.get("devices") or {}
    names = request_names(spec)
    path = f"{path}.devices"
    validate_items(
        devices.get("requests"),
        MOST_REQUESTS,
        validate_request,
        f"{path}.requests",
        errors,
        name_of,
    )
    validate_items(
        devices.get("constraints"),
        MOST_CONSTRAINTS,
        partial(_validate_constraint, names),
        f"{path}.constraints",
        errors,
    )
    validate_items(
        devices.get("config"),
        MOST_CONFIGS,
        partial(validate_configuration, names),
        f"{path}.config",
        errors,
    )


def request_names(spec: Object) -> RequestNames:
    return {
        name_of(request): {
            name_of(subrequest) for subrequest in nested_list(request, "firstAvailable")
        }
        for request in nested_list(spec, "devices", "requests")
    }


def validate_request(request: Object, path: str, errors: Errors) -> None:
    validate_label(name_of(request), f"{path}.name", errors)

    exactly = request.get("exactly")
    alternatives = request.get("firstAvailable")
    if exactly is None and not alternatives:
        errors.append(required(path, ONE_REQUEST))
    elif exactly is not None and alternatives:
        errors.append(invalid_value(path, None, f"{ONE_REQUEST}, but multiple fields are set"))
    elif alternatives:
        validate_items(
            alternatives,
            MOST_SUBREQUESTS,
            _validate_subrequest,
            f"{path}.firstAvailable",
            errors,
            name_of,
        )
    else:
        validate_exact_request(exactly or {}, f"{path}.exactly", errors)


def _validate_subrequest(request: Object, path: str, errors: Errors) -> None:
    validate_label(name_of(request), f"{path}.name", errors)
    validate_exact_request(request, path, errors)


def validate_exact_request(request: Object, path: str, errors: Errors) -> None:
    if name := request.get("deviceClassName"):
        validate_as(dns1123_subdomain, name, f"{path}.deviceClassName", errors)
    else:
        errors.append(required(f"{path}.deviceClassName"))

    validate_items(
        request.get("selectors"), MOST_SELECTORS, validate_selector, f"{path}.selectors", errors
    )

    mode = request.get("allocationMode", "")
    count = request.get("count", 0)
    if mode not in ("All", "ExactCount"):
        errors.append(not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    elif mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        errors.append(invalid_value(f"{path}.count", count, detail))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid_value(f"{path}.count", count, NOT_POSITIVE))

    validate_items(
        request.get("tolerations"), None, _validate_toleration, f"{path}.tolerations", errors
    )


def validate_selector(selector: Object, path: str, errors: Errors) -> None:
    cel = selector.get("cel")
    if cel is None:
        errors.append(required(f"{path}.cel"))
        return
    path = f"{path}.cel.expression"
    expression = cel.get("expression", "")
    if len(expression.encode()) > LONGEST_EXPRESSION:
        errors.append(too_long(path, LONGEST_EXPRESSION))
        return
    try:
        checker.parse_expression(expression)
    except checker.CompileError as error:
        errors.append(invalid_value(path, expression, f"compilation failed: {error}"))


def _validate_toleration(toleration: Object, path: str, errors: Errors) -> None:
    if key := toleration.get("key"):
        validate_label_name(key, f"{path}.key", errors)
    operator = toleration.get("operator", "")
    value = toleration.get("value", "")
    validate_choice(operator, ("Equal", "Exists"), f"{path}.operator", errors)
    if operator == "Exists" and value:
        errors.append(invalid_value(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        validate_as(label_value, value, f"{path}.value", errors)
    validate_optional_choice(toleration.get("effect") or None, EFFECTS, f"{path}.effect", errors)


def _validate_constraint(
    names: RequestNames, constraint: Object, path: str, errors: Errors
) -> None:
    validate_items(
        constraint.get("requests"),
        MOST_REQUESTS,
        partial(validate_reference, names),
        f"{path}.requests",
        errors,
        str,
    )
    for field in ("matchAttribute", "distinctAttribute"):
        attribute = constraint.get(field)
        if attribute is not None:
            validate_qualified_name(attribute, f"{path}.{field}", errors)
            if "/" not in attribute:
                detail = "a fully qualified name must be a domain and a name separated by a slash"
                errors.append(invalid_value(f"{path}.{field}", attribute, detail))
            return

    errors.append(required(path, ONE_ATTRIBUTE))


def validate_reference(names: RequestNames, name: str, path: str, errors: Errors) -> None:
    """Validate the name of a request, or of one and its subrequest: ``gpu/large``."""
    segments = name.split("/")
    if len(segments) <= 2:
        for segment in segments:
            validate_label(segment, path, errors)
    if (
        len(segments) > 2
        or segments[0] not in names
        or not names[segments[0]].issuperset(segments[1:])
    ):
        errors.append(invalid_value(path, name, NO_REQUEST))


def validate_configuration(names: RequestNames, config: Object, path: str, errors: Errors) -> None:
    validate_items(
        config.get("requests"),
        MOST_REQUESTS,
        partial(validate_reference, names),
        f"{path}.requests",
        errors,
        str,
    )
    validate_device_configuration(config, path, errors)


def validate_device_configuration(
    config: Object, path: str, errors: Errors, *, stored: bool = False
) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        errors.append(required(f"{path}.opaque"))
        return
    validate_driver_name(opaque.get("driver", ""), f"{path}.opaque.driver", errors)
    parameters = opaque.get("parameters")
    if parameters is None:
        errors.append(required(f"{path}.opaque.parameters"))
    else:
        validate_json_object(parameters, f"{path}.opaque.parameters", errors, stored=stored)


def validate_json_object(value: Any, path: str, errors: Errors, *, stored: bool = False) -> None:
    """Validate a RawExtension, which may be large where it was stored so."""
    if (
        not stored
        and len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
        > LARGEST_JSON
    ):
        errors.append(too_long(path, LARGEST_JSON))
    elif not isinstance(value, dict):
        errors.append(invalid_value(path, "<value omitted>", "must be a valid JSON object"))


# --- the status of claims -------------------------------------------------------------------------


def validate_claim_status(claim: Object, old: Object, errors: Errors) -> None:
    status = status_of(claim)
    old_status = status_of(old)
    allocation = status.get("allocation")
    consumers = nested_list(status, "reservedFor")
    validate_items(
        consumers,
        256,
        _validate_consumer,
        "status.reservedFor",
        errors,
        lambda consumer: consumer.get("uid", ""),
    )
    allocated = [device_key(result) for result in allocation_results(status)]
    validate_items(
        status.get("devices"),
        None,
        partial(_validate_device_status, allocated),
        "status.devices",
        errors,
        device_key,
    )

    if consumers and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(forbidden_field("status.reservedFor", detail))
    elif claim["metadata"].get("deletionTimestamp") and any(
        consumer not in nested_list(old_status, "reservedFor") for consumer in consumers
    ):
        errors.append(forbidden_field("status.reservedFor", DELETED))

    if allocation is not None and (old_allocation := old_status.get("allocation")) is not None:
        if not semantically_equal(allocation, old_allocation):
            shown = go_view("*resource.AllocationResult", allocation)
            validate_immutable(shown, None, "status.allocation", errors)
    elif allocation is not None:
        _validate_allocation(request_names(claim["spec"]), allocation, "status.allocation", errors)


def allocation_results(status: Object) -> list[Object]:
    return nested_list(status, "allocation", "devices", "results")


def device_key(device: Object) -> Ordered:
    """Return what tells a device of a claim from the others (``SharedDeviceID``)."""
    return Ordered(
        {
            field: device.get(f"{field[0].lower()}{field[1:]}") or ""
            for field in ("Driver", "Pool", "Device", "ShareID")
        }
    )


def _validate_consumer(consumer: Object, path: str, errors: Errors) -> None:
    validate_required(consumer, ("resource", "name", "uid"), path, errors)


def validate_device_id(device: Object, path: str, errors: Errors) -> None:
    validate_driver_name(device.get("driver", ""), f"{path}.driver", errors)
    validate_pool_name(device.get("pool", ""), f"{path}.pool", errors)
    validate_label(device.get("device", ""), f"{path}.device", errors)


def validate_share(device: Object, path: str, errors: Errors) -> None:
    uid = device.get("shareID")
    if uid is None:
        return
    try:
        normalized = str(UUID(uid))
    except ValueError:
        detail = f"error validating uid: invalid UUID length: {len(uid.encode())}"
        errors.append(invalid_value(f"{path}.shareID", uid, detail))
        return
    if uid != normalized:
        errors.append(invalid_value(f"{path}.shareID", uid, NO_UID_FORM))


def _validate_device_status(
    allocated: list[Ordered], device: Object, path: str, errors: Errors
) -> None:
    validate_device_id(device, path, errors)
    validate_share(device, path, errors)
    if device_key(device) not in allocated:
        errors.append(
            invalid_value(path, device_key(device), "must be an allocated device in the claim")
        )

    _validate_conditions(nested_list(device, "conditions"), f"{path}.conditions", errors)
    if device.get("data") is not None:
        validate_json_object(device["data"], f"{path}.data", errors)
    network = device.get("networkData") or {}
    network_path = f"{path}.networkData"
    _validate_length(network, "interfaceName", 256, network_path, errors)
    _validate_length(network, "hardwareAddress", 128, network_path, errors)
    validate_items(
        network.get("ips"), 16, _validate_interface_address, f"{network_path}.ips", errors, str
    )


def _validate_length(holder: Object, field: str, limit: int, path: str, errors: Errors) -> None:
    """Limit the bytes of a text field."""
    size = len(holder.get(field, "").encode())
    if size > limit:
        errors.append(too_long(f"{path}.{field}", limit))


def _validate_conditions(conditions: list[Object], path: str, errors: Errors) -> None:
    if len(conditions) > 8:
        errors.append(too_many(path, len(conditions), 8))
    types = [condition.get("type") for condition in conditions]
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        if condition.get("type") in types[:index]:
            errors.append(duplicate(f"{at}.type", condition.get("type", "")))
        _validate_condition(condition, at, errors)


def _validate_interface_address(address: str, path: str, errors: Errors) -> None:
    import ipaddress

    try:
        canonical = str(ipaddress.ip_interface(address))
    except ValueError:
        canonical = ""
    if not canonical or "/" not in address:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        errors.append(invalid_value(path, address, detail))
    elif address != canonical:
        errors.append(
            invalid_value(path, address, f"must be in canonical form ({quote(canonical)})")
        )


def _validate_condition(condition: Object, path: str, errors: Errors) -> None:
    validate_label_name(condition.get("type", ""), f"{path}.type", errors)
    status = condition.get("status", "")
    if status not in STATUSES:
        errors.append(not_supported(f"{path}.status", status, STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        errors.append(invalid_value(f"{path}.observedGeneration", generation, NEGATIVE_GENERATION))
    validate_required(condition, ("lastTransitionTime", "reason"), path, errors)
    reason = condition.get("reason")
    if reason and not re.fullmatch(_REASON, reason):
        errors.append(invalid_value(f"{path}.reason", reason, REASON))
    _validate_length(condition, "reason", 1024, path, errors)
    _validate_length(condition, "message", 32 * 1024, path, errors)


def _validate_allocation(
    names: RequestNames, allocation: Object, path: str, errors: Errors
) -> None:
    def validate_result(result: Object, at: str, errors: Errors) -> None:
        validate_reference(names, result.get("request", ""), f"{at}.request", errors)
        validate_device_id(result, at, errors)
        validate_binding_conditions(result, at, errors)
        validate_share(result, at, errors)

    def validate_config(config: Object, at: str, errors: Errors) -> None:
        validate_choice(
            config.get("source", ""), ("FromClaim", "FromClass"), f"{at}.source", errors
        )
        validate_configuration(names, config, at, errors)

    devices = allocation.get("devices") or {}
    validate_items(
        devices.get("results"), MOST_RESULTS, validate_result, f"{path}.devices.results", errors
    )
    validate_items(
        devices.get("config"), 2 * MOST_CONFIGS, validate_config, f"{path}.devices.config", errors
    )
    selector = allocation.get("nodeSelector")
    if selector is not None:
        validate_node_selector(selector, f"{path}.nodeSelector", errors)


# --- classes --------------------------------------------------------------------------------------


def validate_class(spec: Object, old: Object | None, errors: Errors) -> None:
    validate_items(
        spec.get("selectors"), MOST_SELECTORS, validate_selector, "spec.selectors", errors
    )
    stored = old is not None and semantically_equal(spec.get("config"), old.get("config"))
    validate_items(
        spec.get("config"),
        MOST_CONFIGS,
        partial(validate_device_configuration, stored=stored),
        "spec.config",
        errors,
    )

    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        errors.append(
            invalid_value(
                "spec.extendedResourceName", name, "must be a valid extended resource name"
            )
        )
