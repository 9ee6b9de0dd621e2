"""PodDisruptionBudgets and PriorityClasses (``pkg/registry/{policy,scheduling}``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.validation import policy as validation


class PodDisruptionBudgetStrategy(Strategy):
    has_status = True
    has_generation = True
    has_observer = True
    allow_unconditional_update = False

    def empty_status(self) -> Object:
        return {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}

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
    """Its generation is 1 for ever."""

    has_generation = True

    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return False

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_priority_class(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_priority_class_update(obj, old)
