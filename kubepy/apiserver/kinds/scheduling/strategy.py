"""PriorityClasses (``pkg/registry/scheduling``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.scheduling import validation


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
