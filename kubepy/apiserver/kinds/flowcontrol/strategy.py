"""FlowSchemas and PriorityLevelConfigurations (``pkg/registry/flowcontrol``). Requests here never
wait for a priority level."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver import defaults


QUEUES = {"handSize": 8, "queueLengthLimit": 50, "queues": 64}


class _FlowStrategy(Strategy):
    has_status = True
    has_generation = True

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))


class FlowSchemaStrategy(_FlowStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = 1000


class PriorityLevelConfigurationStrategy(_FlowStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        limited = spec.get("limited")
        if limited is not None:
            _default_shares(limited, 30)
            queuing = (limited.get("limitResponse") or {}).get("queuing")
            if queuing is not None:
                defaults.fill(queuing, QUEUES)
        if spec.get("type") == "Exempt":
            exempt = spec.setdefault("exempt", {})
            _default_shares(exempt, 0)


def _default_shares(level: Object, shares: int) -> None:
    for field, value in (("nominalConcurrencyShares", shares), ("lendablePercent", 0)):
        if level.get(field) is None:
            level[field] = value
