"""PodDisruptionBudgets (``pkg/registry/policy``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.policy import validation


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
