"""LimitRanges (``pkg/registry/core/limitrange``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.limitranges import defaults, validation


class LimitRangeStrategy(Strategy):
    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        defaults.default_limit_range(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_limit_range(obj)
