"""Disruption budgets, priority classes, autoscalers, flow control.

Upstream: ``pkg/registry/{policy,scheduling,autoscaling,flowcontrol}``. Requests here never wait for
a priority level.
"""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.api.objects.autoscalers import V1, to_v1, to_v2
from kubepy.api.types import Decoded
from kubepy.apiserver.strategies import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import types
    from kubepy.apiserver.defaults import core as core_defaults
    from kubepy.apiserver.defaults import workloads as defaults
    from kubepy.apiserver.validation import autoscaling as autoscaling_validation
    from kubepy.apiserver.validation import policy as validation


class PodDisruptionBudgetStrategy(Strategy):
    has_status = True
    has_generation = True
    has_observer = True
    allow_unconditional_update = False

    def validate_name(self, name: str) -> list[str]:
        """Take any path segment: ``ValidatePodDisruptionBudget`` does not look at the metadata."""
        return []

    def empty_status(self) -> Object:
        return {
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "disruptionsAllowed": 0,
            "expectedPods": 0,
        }

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_disruption_budget(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_disruption_budget(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_disruption_budget_status(obj)


class PriorityClassStrategy(Strategy):
    """Generation is 1 for ever."""

    has_generation = True

    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return False

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_priority_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_priority_class_update(obj, old)


# --- HorizontalPodAutoscalers ---------------------------------------------------------------------


class HorizontalPodAutoscalerStrategy(Strategy):
    has_status = True

    def decode(self, obj: Object) -> Decoded:
        if obj["apiVersion"] != V1:
            return super().decode(obj)
        older = types.decode(obj)
        return Decoded(super().decode(to_v2(older.object)).object, older.unknown_fields)

    def in_version(self, obj: Object, api_version: str) -> Object:
        return to_v1(obj) if api_version == V1 else obj

    def to_stored_version(self, config: Object) -> Object:
        return to_v2(config) if config["apiVersion"] == V1 else config

    def default(self, obj: Object) -> None:
        defaults.default_autoscaler(obj)

    def empty_status(self) -> Object:
        return {"currentMetrics": None, "desiredReplicas": 0}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return autoscaling_validation.validate_autoscaler(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return autoscaling_validation.validate_autoscaler(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return autoscaling_validation.validate_autoscaler_status(obj)


# --- flow control ---------------------------------------------------------------------------------


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
        if (limited := spec.get("limited")) is not None:
            _default_shares(limited, 30)
            if (queuing := (limited.get("limitResponse") or {}).get("queuing")) is not None:
                core_defaults.fill(queuing, QUEUES)
        if spec.get("type") == "Exempt":
            exempt = spec.setdefault("exempt", {})
            _default_shares(exempt, 0)


def _default_shares(level: Object, shares: int) -> None:
    for field, value in (("nominalConcurrencyShares", shares), ("lendablePercent", 0)):
        if level.get(field) is None:
            level[field] = value
