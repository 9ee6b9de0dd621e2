"""ResourceQuotas: what a request uses of them, and that it fits (``apiserver/pkg/admission/plugin/resourcequota``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.objects import quotas
from kubepy.api.objects.pods import Amounts
from kubepy.api.objects.quotas import Evaluator
from kubepy.apiserver.admission.request import Request

QUOTAS = "resourcequotas"


class Charge(NamedTuple):
    """A quota before and after what a request uses of it."""

    old: Object
    new: Object


def charge(request: Request) -> list[Charge]:
    """The quotas that a request changes. Raises Forbidden if it does not fit one of them."""
    found = [_in_force(request, quota) for quota in request.session.list(QUOTAS, request.target.namespace)]
    if not _is_measured(request):
        return []
    evaluator = quotas.evaluator_for(request.target.resource.key)
    restricting = [quota for quota in found if quotas.matches(quota, evaluator, request.obj)]
    for quota in restricting:
        _check_measurable(request, quota, evaluator)
    now = request.server.clock.now()
    charges = [_charge(request, quota, _used(request, quota, evaluator, now)) for quota in restricting]
    return [one for one in charges if one is not None]


def _in_force(request: Request, quota: Object) -> Object:
    """A quota as its controller, which may not be running here, has it moments after it was written."""
    status = quota.get("status") or {}
    if (status.get("hard") or {}) == (quota["spec"].get("hard") or {}):
        return quota
    served = [one.key for one in request.server.scheme if one.namespaced]
    observed = quotas.observed_status(quota, served, lambda one: request.session.list(one, request.target.namespace),
                                      request.server.clock.now())
    return {**quota, "status": observed}


def _is_measured(request: Request) -> bool:
    """Creations count; of updates those of claims, services and the sizes of pods."""
    if request.old is None:
        return True
    if request.subresource:
        return request.target.resource.key == "pods" and request.subresource == "resize"
    return quotas.evaluator_for(request.target.resource.key).counts_updates


def _check_measurable(request: Request, quota: Object, evaluator: Evaluator) -> None:
    name, status = quota["metadata"]["name"], quota["status"]
    restricted = [one for one in status["hard"] if evaluator.measures(one)]
    if request.target.resource.key == "pods":
        missing = quotas.unnamed_resources(request.obj, restricted)
        if missing:
            words = "; ".join(f"{resource} for: {','.join(names)}" for resource, names in missing.items())
            raise request.refuse(f"failed quota: {name}: must specify {words}")
    if any(one not in (status.get("used") or {}) for one in restricted):
        raise request.refuse(f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}")


def _used(request: Request, quota: Object, evaluator: Evaluator, now: datetime) -> Amounts:
    """What the object uses; at an update of one that the quota was about already, what it uses more."""
    usage = evaluator.usage(request.obj, now)
    if request.old is not None and quotas.matches(quota, evaluator, request.old):
        usage = quotas.subtract(usage, evaluator.usage(request.old, now))
    return {name: amount for name, amount in usage.items() if not amount.is_zero()}


def _charge(request: Request, quota: Object, usage: Amounts) -> Charge | None:
    hard, used = quotas.amounts(quota["status"]["hard"]), quotas.amounts(quota["status"]["used"])
    asked = quotas.masked(usage, hard)
    if not asked:
        return None
    total = quotas.add(used, asked)
    if exceeded := [name for name in asked if total[name] > hard[name]]:
        raise request.refuse(f"exceeded quota: {quota['metadata']['name']}, requested: {_list(asked, exceeded)}, "
                             f"used: {_list(used, exceeded)}, limited: {_list(hard, exceeded)}")
    status = {**quota["status"], "used": quotas.shown(total)}
    return Charge(quota, {**quota, "metadata": dict(quota["metadata"]), "status": status})


def _list(values: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={values[name]}" for name in sorted(names) if name in values)
