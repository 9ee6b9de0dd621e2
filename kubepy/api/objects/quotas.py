"""What objects use of a ResourceQuota, and which objects a quota is about (``pkg/quota/v1/evaluator``).

Pods are measured by what they ask for, claims and services by what they are made of, everything else is counted. The
API server charges for a request with these functions, the quota controller adds up what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import AnyObject, Object
from kubepy.api.objects.pods import Amounts, pod_limits, pod_requests, qos_class
from kubepy.api.objects.volumes import class_of
from kubepy.api.values.quantity import NANO, Quantity

ResourceList = AnyObject

ONE, ZERO = Quantity.of(1), Quantity.of(0)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = frozenset(("count/pods", "pods", *_COMPUTE)) | frozenset(
    f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE)
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_SERVICE_NAMES = frozenset(("count/services", "services", "services.nodeports", "services.loadbalancers"))
# Kinds that a quota may also count under their own name.
_ALIASES = frozenset(("configmaps", "resourcequotas", "replicationcontrollers", "secrets"))
# A quota on one of these wants every container to name it.
_WANTED_OF_CONTAINERS = frozenset((
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))


class Evaluator(NamedTuple):
    """How objects of one resource count. ``measures``: whether a name of a quota is about them."""

    resource: str
    measures: Callable[[str], bool]
    usage: Callable[[AnyObject, datetime], Amounts]
    in_scope: Callable[[AnyObject, AnyObject], bool]
    counts_updates: bool = False


def evaluator_for(resource: str) -> Evaluator:
    """``resource`` is a resource key (``deployments.apps``)."""
    match resource:
        case "pods":
            return Evaluator(resource, _measures_pods, pod_usage, _pod_in_scope)
        case "persistentvolumeclaims":
            return Evaluator(resource, _measures_claims, _claim_usage, _claim_in_scope, counts_updates=True)
        case "services":
            return Evaluator(resource, _SERVICE_NAMES.__contains__, _service_usage, _in_no_scope, counts_updates=True)
    names = (f"count/{resource}", *((resource,) if resource in _ALIASES else ()))
    return Evaluator(resource, names.__contains__, lambda obj, now: dict.fromkeys(names, ONE), _in_no_scope)


def measured_resources(name: str, served: Iterable[str]) -> list[str]:
    """The resources, of those served in namespaces, whose objects a name of a quota is about."""
    return [resource for resource in served if evaluator_for(resource).measures(name)]


def matches(quota: AnyObject, evaluator: Evaluator, obj: AnyObject) -> bool:
    """Whether a quota restricts an object: by one of its resources, and all its scopes."""
    hard = (quota.get("status") or {}).get("hard") or {}
    return any(evaluator.measures(name) for name in hard) and is_in_scopes(quota, evaluator, obj)


def is_in_scopes(quota: AnyObject, evaluator: Evaluator, obj: AnyObject) -> bool:
    return all(evaluator.in_scope(requirement, obj) for requirement in _scopes(quota["spec"]))


def _scopes(spec: AnyObject) -> Iterator[Object]:
    for scope in spec.get("scopes") or ():
        yield {"scopeName": scope, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def total_usage(quota: AnyObject, evaluator: Evaluator, objects: Iterable[AnyObject], now: datetime) -> Amounts:
    """What all objects of a resource in the quota's scopes use of it, 0 for what none of them uses."""
    names = [name for name in quota["spec"].get("hard") or {} if evaluator.measures(name)]
    total = dict.fromkeys(names, ZERO)
    for obj in objects:
        if is_in_scopes(quota, evaluator, obj):
            total = masked(add(total, evaluator.usage(obj, now)), names)
    return total


def observed_status(quota: AnyObject, served: Iterable[str], list_objects: Callable[[str], Iterable[AnyObject]],
                    now: datetime) -> Object:
    """The status of a quota: its limits, and what there is of them. What nothing served is about keeps its usage.

    ``list_objects`` gives the objects of a resource in the quota's namespace.
    """
    hard = quota["spec"].get("hard") or {}
    used = masked(amounts((quota.get("status") or {}).get("used")), hard)
    resources = tuple(served)
    for resource in {one: None for name in hard for one in measured_resources(name, resources)}:
        used |= total_usage(quota, evaluator_for(resource), list_objects(resource), now)
    return {"hard": dict(hard), "used": shown(used)}


# --- arithmetic (``apiserver/pkg/quota/v1/resources.go``) -----------------------------------------------------------


def amounts(values: ResourceList | None) -> Amounts:
    return {name: Quantity.parse(value) for name, value in (values or {}).items()}


def shown(values: Amounts) -> dict[str, str]:
    return {name: str(values[name]) for name in sorted(values)}


def add(total: Amounts, more: Amounts) -> Amounts:
    return {**more, **{name: amount + more[name] if name in more else amount for name, amount in total.items()}}


def subtract(total: Amounts, less: Amounts) -> Amounts:
    """What is used more than before; never less than nothing."""
    return {name: max(amount - less[name], Quantity(0, amount.format)) if name in less else amount
            for name, amount in total.items()}


def masked(values: Amounts, names: Iterable[str]) -> Amounts:
    wanted = frozenset(names)
    return {name: amount for name, amount in values.items() if name in wanted}


# --- pods -----------------------------------------------------------------------------------------------------------


def _measures_pods(name: str) -> bool:
    return name in _POD_NAMES or name.startswith(("hugepages-", "requests.hugepages-")) or _is_extended(name)


def _is_extended(name: str) -> bool:
    return name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name


def pod_usage(pod: AnyObject, now: datetime) -> Amounts:
    """A pod that has ended, or whose grace period is over, only counts as an object."""
    counted = {"count/pods": ONE}
    return counted if _is_over(pod, now) else {**counted, **_compute_usage(pod_requests(pod), pod_limits(pod))}


def _is_over(pod: AnyObject, now: datetime) -> bool:
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds")
    if not metadata.get("deletionTimestamp") or grace is None:
        return False
    return now > later(parse_time(metadata["deletionTimestamp"]), grace)


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
    """The resources under quota that containers do not name, with those containers."""
    wanted = sorted(_WANTED_OF_CONTAINERS.intersection(restricted))
    missing: dict[str, set[str]] = {}
    for container in (*pod["spec"].get("containers", ()), *(pod["spec"].get("initContainers") or ())):
        resources = container.get("resources") or {}
        named = _compute_usage(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in wanted:
            if name not in named:
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
            return _selects(requirement, [spec["priorityClassName"]] if spec.get("priorityClassName") else [])
        case "CrossNamespacePodAffinity":
            return any(_crosses_namespaces(term) for term in _affinity_terms(spec))
    return False


def _selects(requirement: AnyObject, values: list[str]) -> bool:
    """A scope selector about a label whose value is one of these; without any the label is not there."""
    wanted = requirement.get("values") or ()
    match requirement["operator"]:
        case "Exists":
            return bool(values)
        case "DoesNotExist":
            return not values
        case "In":
            return any(value in wanted for value in values)
        case _:
            return not values or any(value not in wanted for value in values)


def _affinity_terms(spec: AnyObject) -> Iterator[Object]:
    for field in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(field) or {}
        yield from affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted["podAffinityTerm"]


def _crosses_namespaces(term: AnyObject) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None


# --- claims and services --------------------------------------------------------------------------------------------


def _measures_claims(name: str) -> bool:
    suffixes = tuple(_OF_CLASS + own for own in _CLAIM_NAMES)
    return name in ("count/persistentvolumeclaims", *_CLAIM_NAMES) or name.endswith(suffixes)


def _claim_usage(claim: AnyObject, now: datetime) -> Amounts:
    usage = dict.fromkeys(("persistentvolumeclaims", "count/persistentvolumeclaims"), ONE)
    storage, storage_class = _storage_of(claim), class_of(claim)
    if storage is not None:
        usage["requests.storage"] = storage
    if storage_class:
        usage |= {f"{storage_class}{_OF_CLASS}{name}": usage[name] for name in _CLAIM_NAMES if name in usage}
    return usage


def _storage_of(claim: AnyObject) -> Quantity | None:
    """The larger of what is asked for and what is set aside, in whole bytes."""
    asked = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        return None
    allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    sizes = [Quantity.parse(size) for size in (asked, allocated) if size is not None]
    largest = max(sizes)
    return largest if largest.nanos % NANO == 0 else Quantity.of(largest.value(), largest.format)


def _claim_in_scope(requirement: AnyObject, claim: AnyObject) -> bool:
    if requirement["scopeName"] != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    named = (claim["spec"].get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"),
             (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"))
    return _selects(requirement, [name for name in named if name])


def _service_usage(service: AnyObject, now: datetime) -> Amounts:
    spec = service["spec"]
    ports, kind = spec.get("ports") or [], spec.get("type")
    usage = {"count/services": ONE, "services": ONE, "services.loadbalancers": ZERO, "services.nodeports": ZERO}
    if kind == "LoadBalancer":
        usage["services.loadbalancers"] = ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if kind in ("NodePort", "LoadBalancer"):
        usage["services.nodeports"] = Quantity.of(len(ports))
    return usage


def _in_no_scope(requirement: AnyObject, obj: AnyObject) -> bool:
    return False
