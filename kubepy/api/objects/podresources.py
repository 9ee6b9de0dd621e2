"""What the containers of a pod ask for together (``k8s.io/component-helpers/resource/helpers.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.values.quantity import Quantity

Amounts = dict[str, Quantity]


def aggregate(spec: Object, field: str) -> Amounts:
    """The sum of the containers, or what the largest init container needs; by name. ``field``: requests or limits.

    Init containers run one after another, but sidecars among them go on (``AggregateContainerRequests``). Overhead and
    the pod's own ``resources`` are not in it.
    """
    total = _sum_of(spec.get("containers") or (), field)
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = amounts_of(container, field)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            needed = dict(sidecars)
        else:
            needed = dict(own)
            _add(needed, sidecars)
        _raise_to(largest, needed)
    _raise_to(total, largest)
    return dict(sorted(total.items()))


def amounts_of(container: Object, field: str) -> Amounts:
    given = (container.get("resources") or {}).get(field) or {}
    return {name: Quantity.parse(amount) for name, amount in given.items()}


def _sum_of(containers: list[Object] | tuple[()], field: str) -> Amounts:
    total: Amounts = {}
    for container in containers:
        _add(total, amounts_of(container, field))
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in total or total[name] < amount:
            total[name] = amount
