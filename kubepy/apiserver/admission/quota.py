"""ResourceQuotas: requests are charged to them, and must fit
(``apiserver/pkg/admission/plugin/resourcequota``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.objects import quotas
from kubepy.api.objects.pods import Amounts
from kubepy.api.objects.quotas import Evaluator
from kubepy.apiserver.server import Attributes

QUOTAS = "resourcequotas"


class Charge(NamedTuple):
    """A quota before and after a request is charged to it."""

    old: Object
    new: Object


def charge(attributes: Attributes) -> list[Charge]:
    """Return the quotas that a request changes. Raises Forbidden if it does not fit one of them."""
    in_force = [
        _in_force(attributes, quota)
        for quota in attributes.transaction.list(QUOTAS, attributes.namespace)
    ]
    if not _is_measured(attributes):
        return []
    evaluator = quotas.evaluator_for(attributes.resource.key)
    restricting = [quota for quota in in_force if quotas.matches(quota, evaluator, attributes.obj)]
    for quota in restricting:
        _check_measurable(attributes, quota, evaluator)
    now = attributes.context.clock.now()
    charges = []
    for quota in restricting:
        usage = evaluator.usage(attributes.obj, now)
        if attributes.old is not None and quotas.matches(
            quota, evaluator, attributes.old
        ):  # only the increase
            usage = quotas.subtract(usage, evaluator.usage(attributes.old, now))
        charges.append(
            _charge(
                attributes,
                quota,
                {name: used for name, used in usage.items() if not used.is_zero()},
            )
        )

    return [charge for charge in charges if charge is not None]


def _in_force(attributes: Attributes, quota: Object) -> Object:
    """Return a quota with the status that its controller, which may not be running, would soon give
    it."""
    status = quota.get("status") or {}
    if (status.get("hard") or {}) == (quota["spec"].get("hard") or {}):
        return quota
    served = [resource.key for resource in attributes.server.scheme if resource.namespaced]
    observed = quotas.observed_status(
        quota,
        served,
        lambda key: attributes.transaction.list(key, attributes.namespace),
        attributes.context.clock.now(),
    )
    return {**quota, "status": observed}


def _is_measured(attributes: Attributes) -> bool:
    """Tell whether a request counts: creations, and updates of claims, services and the sizes of
    pods."""
    if attributes.old is None:
        return True
    if attributes.subresource:
        return attributes.resource.key == "pods" and attributes.subresource == "resize"
    return quotas.evaluator_for(attributes.resource.key).counts_updates


def _check_measurable(attributes: Attributes, quota: Object, evaluator: Evaluator) -> None:
    name = quota["metadata"]["name"]
    status = quota["status"]
    restricted = [name for name in status["hard"] if evaluator.measures(name)]
    if attributes.resource.key == "pods":
        missing = quotas.unnamed_resources(attributes.obj, restricted)
        if missing:
            words = "; ".join(
                f"{resource} for: {','.join(names)}" for resource, names in missing.items()
            )
            raise attributes.forbidden(f"failed quota: {name}: must specify {words}")
    if any(resource not in (status.get("used") or {}) for resource in restricted):
        raise attributes.forbidden(
            f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}"
        )


def _charge(attributes: Attributes, quota: Object, usage: Amounts) -> Charge | None:
    hard = quotas.amounts(quota["status"]["hard"])
    used = quotas.amounts(quota["status"]["used"])
    requested = quotas.masked(usage, hard)
    if not requested:
        return None
    total = quotas.add(used, requested)
    if exceeded := [name for name in requested if total[name] > hard[name]]:
        raise attributes.forbidden(
            f"exceeded quota: {quota['metadata']['name']}, requested: "
            f"{_list(requested, exceeded)}, "
            f"used: {_list(used, exceeded)}, limited: {_list(hard, exceeded)}"
        )
    status = {**quota["status"], "used": quotas.shown(total)}
    return Charge(quota, {**quota, "metadata": dict(quota["metadata"]), "status": status})


def _list(values: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={values[name]}" for name in sorted(names) if name in values)
