"""ResourceQuotas: the usage of objects, and the objects in a quota's scopes
(``pkg/quota/v1/evaluator``).

Pods use what they request, claims their storage, services their ports; objects of all other kinds
are counted. Admission charges requests with these functions, the quota controller computes the
status of quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import AnyObject, nested_list, nested_map, status_of
from kubepy.api.objects.pods import Amounts, is_pod_terminal, pod_limits, pod_requests, qos_class
from kubepy.api.objects.volumes import class_of
from kubepy.api.values.quantity import NANO, Quantity

if TYPE_CHECKING:
    from kubepy.api.typed import ResourceQuotaStatus

ResourceList = AnyObject

ONE = Quantity.of(1)
ZERO = Quantity.of(0)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = frozenset(("count/pods", "pods", *_COMPUTE)) | frozenset(
    f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE
)
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_SERVICE_NAMES = frozenset(
    ("count/services", "services", "services.nodeports", "services.loadbalancers")
)
# Kinds that a quota may also count by their plain name, without ``count/``.
_ALIASES = frozenset(("configmaps", "resourcequotas", "replicationcontrollers", "secrets"))
# With a quota on one of these every container has to specify it.
_REQUIRED_OF_CONTAINERS = frozenset(
    ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
)


class Evaluator(NamedTuple):
    """The way in which objects of one resource count; ``measures`` returns whether a name in a
    quota is about them."""

    resource: str
    measures: Callable[[str], bool]
    usage: Callable[[AnyObject, datetime], Amounts]
    in_scope: Callable[[AnyObject, AnyObject], bool]
    counts_updates: bool = False


def evaluator_for(resource: str) -> Evaluator:
    """Return the evaluator of a resource (``deployments.apps``)."""
    match resource:
        case "pods":
            return Evaluator(resource, _measures_pods, pod_usage, _pod_in_scope)
        case "persistentvolumeclaims":
            return Evaluator(
                resource, _measures_claims, _claim_usage, _claim_in_scope, counts_updates=True
            )
        case "services":
            return Evaluator(
                resource,
                _SERVICE_NAMES.__contains__,
                _service_usage,
                _in_no_scope,
                counts_updates=True,
            )

    names = (f"count/{resource}", *((resource,) if resource in _ALIASES else ()))
    return Evaluator(
        resource, names.__contains__, lambda obj, now: dict.fromkeys(names, ONE), _in_no_scope
    )


def measured_resources(name: str, served: Iterable[str]) -> list[str]:
    """Return the resources, of those served in namespaces, whose objects a name in a quota is
    about."""
    return [resource for resource in served if evaluator_for(resource).measures(name)]


def matches(quota: AnyObject, evaluator: Evaluator, obj: AnyObject) -> bool:
    """Return whether a quota restricts an object: one of its resources is measured, and all its
    scopes fit."""
    hard = nested_map(quota, "status", "hard")
    return any(evaluator.measures(name) for name in hard) and is_in_scopes(quota, evaluator, obj)


def is_in_scopes(quota: AnyObject, evaluator: Evaluator, obj: AnyObject) -> bool:
    spec = quota["spec"]
    scopes = [{"scopeName": scope, "operator": "Exists"} for scope in nested_list(spec, "scopes")]
    scopes += nested_list(spec, "scopeSelector", "matchExpressions")
    return all(evaluator.in_scope(requirement, obj) for requirement in scopes)


def total_usage(
    quota: AnyObject, evaluator: Evaluator, objects: Iterable[AnyObject], now: datetime
) -> Amounts:
    """Sum up the usage of all objects of a resource in the quota's scopes; names that none of them
    uses are 0."""
    names = [name for name in nested_map(quota["spec"], "hard") if evaluator.measures(name)]
    total = dict.fromkeys(names, ZERO)
    for obj in objects:
        if is_in_scopes(quota, evaluator, obj):
            total = masked(add(total, evaluator.usage(obj, now)), names)
    return total


def observed_status(
    quota: AnyObject,
    served: Iterable[str],
    list_objects: Callable[[str], Iterable[AnyObject]],
    now: datetime,
) -> ResourceQuotaStatus:
    """Compute the status of a quota: its limits and their usage. Names that are about no served
    resource keep theirs.

    ``list_objects`` returns the objects of a resource in the quota's namespace.
    """
    hard = nested_map(quota["spec"], "hard")
    used = masked(amounts(status_of(quota).get("used")), hard)
    resources = tuple(served)
    for resource in {
        resource: None for name in hard for resource in measured_resources(name, resources)
    }:
        used |= total_usage(quota, evaluator_for(resource), list_objects(resource), now)
    return {"hard": dict(hard), "used": shown(used)}


# --- arithmetic (``apiserver/pkg/quota/v1/resources.go``) -----------------------------------------


def amounts(values: ResourceList | None) -> Amounts:
    return {name: Quantity.parse(value) for name, value in (values or {}).items()}


def shown(values: Amounts) -> dict[str, str]:
    return {name: str(values[name]) for name in sorted(values)}


def add(total: Amounts, more: Amounts) -> Amounts:
    return {
        **more,
        **{name: amount + more[name] if name in more else amount for name, amount in total.items()},
    }


def subtract(total: Amounts, less: Amounts) -> Amounts:
    """Subtract usages; results are never below zero."""
    return {
        name: max(amount - less[name], Quantity(0, amount.format)) if name in less else amount
        for name, amount in total.items()
    }


def masked(values: Amounts, names: Iterable[str]) -> Amounts:
    kept = frozenset(names)
    return {name: amount for name, amount in values.items() if name in kept}


# --- pods -----------------------------------------------------------------------------------------


def _measures_pods(name: str) -> bool:
    return (
        name in _POD_NAMES
        or name.startswith(("hugepages-", "requests.hugepages-"))
        or _is_extended(name)
    )


def _is_extended(name: str) -> bool:
    return name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name


def pod_usage(pod: AnyObject, now: datetime) -> Amounts:
    """Return the usage of a pod; one that has ended, or whose grace period is over, counts as an
    object only."""
    end = end_of_deletion(pod)
    is_overdue = end is not None and now > end
    if is_pod_terminal(pod) or is_overdue:
        return {"count/pods": ONE}
    return {"count/pods": ONE, **_compute_usage(pod_requests(pod), pod_limits(pod))}


def end_of_deletion(pod: AnyObject) -> datetime | None:
    """Return the moment after which a pod that is being deleted does not count, however long it is
    still there."""
    metadata = pod["metadata"]
    deleted = metadata.get("deletionTimestamp")
    grace = metadata.get("deletionGracePeriodSeconds")
    if deleted and grace is not None:
        return later(parse_time(deleted), grace)
    return None


def _compute_usage(requests: Amounts, limits: Amounts) -> Amounts:
    usage = {"pods": ONE}
    for name in _COMPUTE:
        if name in requests:
            usage[name] = usage[f"requests.{name}"] = requests[name]
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            usage[name] = amount
        if name.startswith("hugepages-") or _is_extended(f"requests.{name}"):
            usage[f"requests.{name}"] = amount
    return usage


def unnamed_resources(pod: AnyObject, restricted: Iterable[str]) -> dict[str, list[str]]:
    """Return the resources under quota that containers do not specify, with the names of those
    containers."""
    required = sorted(_REQUIRED_OF_CONTAINERS.intersection(restricted))
    missing: dict[str, set[str]] = {}
    for container in (
        *pod["spec"].get("containers", ()),
        *nested_list(pod["spec"], "initContainers"),
    ):
        resources = nested_map(container, "resources")
        specified = _compute_usage(
            amounts(resources.get("requests")), amounts(resources.get("limits"))
        )
        for name in required:
            if name not in specified:
                missing.setdefault(name, set()).add(container["name"])
    return {name: sorted(missing[name]) for name in sorted(missing)}


def _pod_in_scope(requirement: AnyObject, pod: AnyObject) -> bool:
    spec = pod["spec"]
    match requirement["scopeName"]:
        case "Terminating":
            return (spec.get("activeDeadlineSeconds") or -1) >= 0
        case "NotTerminating":
            return (spec.get("activeDeadlineSeconds") or -1) < 0
        case "BestEffort":
            return qos_class(pod) == "BestEffort"
        case "NotBestEffort":
            return qos_class(pod) != "BestEffort"
        case "PriorityClass":
            return _selects(
                requirement, [spec["priorityClassName"]] if spec.get("priorityClassName") else []
            )
        case "CrossNamespacePodAffinity":
            affinities = [
                nested_map(spec, "affinity").get(field) or {}
                for field in ("podAffinity", "podAntiAffinity")
            ]
            terms = [
                term
                for affinity in affinities
                for term in (
                    *nested_list(affinity, "requiredDuringSchedulingIgnoredDuringExecution"),
                    *(
                        weighted["podAffinityTerm"]
                        for weighted in nested_list(
                            affinity, "preferredDuringSchedulingIgnoredDuringExecution"
                        )
                    ),
                )
            ]
            return any(
                term.get("namespaces") or term.get("namespaceSelector") is not None
                for term in terms
            )

    return False


def _selects(requirement: AnyObject, values: list[str]) -> bool:
    """Match a scope selector against a value: the only one of ``values``, which are none if it is
    not set."""
    selected = nested_list(requirement, "values")
    match requirement["operator"]:
        case "Exists":
            return bool(values)
        case "DoesNotExist":
            return not values
        case "In":
            return any(value in selected for value in values)
        case _:
            return not values or any(value not in selected for value in values)


# --- claims and services --------------------------------------------------------------------------


def _measures_claims(name: str) -> bool:
    suffixes = tuple(_OF_CLASS + own for own in _CLAIM_NAMES)
    return name in ("count/persistentvolumeclaims", *_CLAIM_NAMES) or name.endswith(suffixes)


def _claim_usage(claim: AnyObject, now: datetime) -> Amounts:
    """Return the usage of a claim: its storage is the larger of the requested and the allocated, in
    whole bytes."""
    usage = dict.fromkeys(("persistentvolumeclaims", "count/persistentvolumeclaims"), ONE)
    requested = nested_map(claim["spec"], "resources", "requests").get("storage")
    if requested is not None:
        allocated = nested_map(claim, "status", "allocatedResources").get("storage")
        storage = max(Quantity.parse(size) for size in (requested, allocated) if size is not None)
        is_whole = storage.nanos % NANO == 0
        usage["requests.storage"] = (
            storage if is_whole else Quantity.of(storage.value(), storage.format)
        )

    if storage_class := class_of(claim):
        usage |= {
            f"{storage_class}{_OF_CLASS}{name}": usage[name]
            for name in _CLAIM_NAMES
            if name in usage
        }

    return usage


def _claim_in_scope(requirement: AnyObject, claim: AnyObject) -> bool:
    if requirement["scopeName"] != "VolumeAttributesClass":
        return False
    return _selects(requirement, attributes_classes(claim))


def attributes_classes(claim: AnyObject) -> list[str]:
    """Return the names of the attributes classes that a claim asks for, has, or is on the way
    to."""
    status = status_of(claim)
    names = (
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        nested_map(status, "modifyVolumeStatus").get("targetVolumeAttributesClassName"),
    )
    return [name for name in names if name]


def _service_usage(service: AnyObject, now: datetime) -> Amounts:
    spec = service["spec"]
    ports = nested_list(spec, "ports")
    kind = spec.get("type")
    usage = {
        "count/services": ONE,
        "services": ONE,
        "services.loadbalancers": ZERO,
        "services.nodeports": ZERO,
    }
    if kind == "LoadBalancer":
        usage["services.loadbalancers"] = ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]

    if kind in ("NodePort", "LoadBalancer"):
        usage["services.nodeports"] = Quantity.of(len(ports))
    return usage


def _in_no_scope(requirement: AnyObject, obj: AnyObject) -> bool:
    return False
