"""The usage of pods, as HorizontalPodAutoscalers have measured it: so they find the same again.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubepy.api.meta import Object, name_of, namespace_of, nested_list, nested_map
from kubepy.api.values.quantity import BINARY_SI, DECIMAL_SI, Quantity, QuantityError

KIND = "HorizontalPodAutoscaler"
FORMATS = {"cpu": DECIMAL_SI, "memory": BINARY_SI}


class MeasuredUsage(NamedTuple):
    """The usage of the pods of a workload.

    :ivar owner: the workload as rules name it, ``Deployment/web``.
    :ivar amounts: what one pod uses, by resource.
    """

    namespace: str
    autoscaler: str
    owner: str
    amounts: dict[str, Quantity]

    def shares(self, containers: int) -> dict[str, str]:
        """Return what each of so many containers of a pod uses, in equal parts, as rules have
        it."""
        return {
            resource: str(Quantity.of_milli(amount.milli_value() // containers, FORMATS[resource]))
            for resource, amount in self.amounts.items()
        }


def measured_usages(objects: Iterable[Object]) -> Iterator[MeasuredUsage]:
    """Yield what the autoscalers of a source have measured of resources of pods."""
    for obj in objects:
        if obj.get("kind") != KIND:
            continue
        target = nested_map(
            obj,
            "spec",
            "scaleTargetRef",
        )
        amounts: dict[str, Quantity] = {}
        for metric in nested_list(
            obj,
            "status",
            "currentMetrics",
        ):
            measured = nested_map(metric, "resource")
            name = measured.get("name") or ""
            text = nested_map(measured, "current").get("averageValue")
            if name in FORMATS and text:
                amount = _amount(text)
                if amount is not None:
                    amounts[name] = amount
        if amounts:
            owner = f"{target.get('kind')}/{target.get('name')}"
            yield MeasuredUsage(
                namespace_of(obj),
                name_of(obj),
                owner,
                amounts,
            )


def _amount(text: str) -> Quantity | None:
    try:
        return Quantity.parse(text)
    except QuantityError:
        return None
