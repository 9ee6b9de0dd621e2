"""Resource names and amounts (``validateResourceRequirements``, ``pkg/apis/core/helper``
upstream)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_label, qualified_name
from kubepy.api.values.quantity import NANO, Quantity, QuantityError
from kubepy.apiserver.validation.fields import NEGATIVE, Errors, validate_as, validate_format
from kubepy.quoting import quote

HUGE_PAGES = "hugepages-"
CONTAINER_RESOURCES = frozenset(("cpu", "memory", "ephemeral-storage"))
COUNTED = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
STANDARD = (
    CONTAINER_RESOURCES
    | COUNTED
    | frozenset(("storage", "requests.storage"))
    | frozenset(f"requests.{name}" for name in CONTAINER_RESOURCES)
    | frozenset(f"limits.{name}" for name in CONTAINER_RESOURCES)
)


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Return whether a resource is of the ``kubernetes.io/`` namespace, as names without a prefix
    are too."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Return whether a resource is of another domain, such as ``example.com/gpu``."""
    return (
        not is_native(name)
        and not name.startswith("requests.")
        and not qualified_name(f"requests.{name}")
    )


def is_overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def is_integer_resource(name: str) -> bool:
    return name in COUNTED or is_extended(name)


def is_standard(name: str) -> bool:
    return name in STANDARD or name.startswith((HUGE_PAGES, "requests.hugepages-"))


def is_divisible_by_page(name: str, amount: str) -> bool:
    """Return whether an amount of huge pages (``hugepages-2Mi``) is a whole number of pages."""
    try:
        size = Quantity.parse(name.removeprefix(HUGE_PAGES)).nanos
    except QuantityError:
        return False
    return size > 0 and size % NANO == 0 and Quantity.parse(amount).nanos % size == 0


# --- names ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def resource_name(name: str) -> tuple[str, ...]:
    """Check the name of any resource; returns complaints."""
    complaints = tuple(qualified_name(name))
    if not complaints and "/" not in name and not is_standard(name):
        return ("must be a standard resource type or fully qualified",)
    return complaints


@lru_cache(maxsize=1024)
def container_resource_name(name: str) -> tuple[str, ...]:
    """Check the name of a resource that a container requests; returns complaints."""
    complaints = resource_name(name)
    if "/" not in name:
        known = name in CONTAINER_RESOURCES or is_huge_page(name)
        if known:
            return complaints
        return (*complaints, "must be a standard resource for containers")
    if not is_native(name) and not is_extended(name):
        return (*complaints, "doesn't follow extended resource name standard")
    return complaints


def validate_container_resource_name(name: str, path: str, errors: Errors) -> None:
    validate_as(container_resource_name, name, path, errors)


def validate_pod_resource_name(name: str, path: str, errors: Errors) -> None:
    """Validate the name of a resource that a pod as a whole requests."""
    complaints = resource_name(name)
    validate_format(name, complaints, path, errors)
    if not complaints and name not in ("cpu", "memory") and not is_huge_page(name):
        errors.append(not_supported(path, name, ("cpu", "hugepages-", "memory")))


# --- amounts --------------------------------------------------------------------------------------


def validate_resource_quantity(name: str, amount: str, path: str, errors: Errors) -> None:
    nanos = Quantity.parse(amount).nanos
    if nanos < 0:
        errors.append(invalid_value(path, amount, NEGATIVE))
    if nanos % NANO and is_integer_resource(name):
        errors.append(invalid_value(path, amount, "must be an integer"))


def validate_resource_requirements(
    resources: Object,
    claim_names: list[str],
    path: str,
    errors: Errors,
    *,
    allow_indivisible: bool = False,
    validate_name: Callable[[str, str, Errors], None] = validate_container_resource_name,
) -> None:
    """Validate ``limits``, ``requests`` and ``claims``, by default those of a container."""
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    for name in sorted(limits):
        at = f"{path}.limits[{name}]"
        validate_name(name, at, errors)
        validate_resource_quantity(name, limits[name], at, errors)
        if is_huge_page(name) and not allow_indivisible:
            _validate_pages(name, limits[name], at, errors)

    for name in sorted(requests):
        at = f"{path}.requests[{name}]"
        validate_name(name, at, errors)
        validate_resource_quantity(name, requests[name], at, errors)
        _validate_request(name, requests[name], limits.get(name), path, errors)
        if is_huge_page(name) and not allow_indivisible:
            _validate_pages(name, requests[name], at, errors)

    names = {*limits, *requests}
    if any(map(is_huge_page, names)) and not {"cpu", "memory"} & names:
        errors.append(forbidden_field(path, "HugePages require cpu or memory"))
    if claims := resources.get("claims"):
        _validate_claims(claims, claim_names, f"{path}.claims", errors)


def _validate_request(name: str, amount: str, limit: str | None, path: str, errors: Errors) -> None:
    """Validate a request beside the limit: equal to it where the resource cannot be
    overcommitted."""
    may_overcommit = is_overcommit_allowed(name)
    if limit is None:
        if not may_overcommit:
            detail = "Limit must be set for non overcommitable resources"
            errors.append(required(f"{path}.limits", detail))
        return
    request = Quantity.parse(amount)
    allowed = Quantity.parse(limit)
    if request != allowed and not may_overcommit:
        detail = f"must be equal to {name} limit of {limit}"
        errors.append(invalid_value(f"{path}.requests", amount, detail))
    elif request > allowed:
        detail = f"must be less than or equal to {name} limit of {limit}"
        errors.append(invalid_value(f"{path}.requests", amount, detail))


def _validate_pages(name: str, amount: str, path: str, errors: Errors) -> None:
    if not is_divisible_by_page(name, amount):
        errors.append(
            invalid_value(path, amount, f"{amount} is not positive integer multiple of {name}")
        )


def _validate_claims(
    claims: list[Object], claim_names: list[str], path: str, errors: Errors
) -> None:
    keys: set[str] = set()  # "name" or "name/request"
    for index, claim in enumerate(claims):
        name = claim.get("name", "")
        request = claim.get("request", "")
        at = f"{path}[{index}]"
        if not name:
            errors.append(required(at))
        elif name in keys:
            errors.append(duplicate(at, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                validate_as(dns1123_label, request, f"{at}.request", errors)
            if key in keys:
                errors.append(duplicate(at, key))
            elif not request:
                errors.extend(
                    duplicate(at, name)
                    for other in sorted(keys)
                    if other.partition("/")[0] == name and "/" in other
                )
            keys.add(key)
        if name and name not in claim_names:
            tail = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
            text = (
                f"Not found: {quote(name)}: must be one of the names in "
                f"pod.spec.resourceClaims{tail}"
            )
            errors.append(FieldError("FieldValueNotFound", at, text))
