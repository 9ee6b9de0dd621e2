"""ResourceQuotas and LimitRanges (``pkg/registry/core/{resourcequota,limitrange}``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.defaults import core as core_defaults
    from kubepy.apiserver.defaults import quantities as quantities_defaults
    from kubepy.apiserver.validation import quotas as validation


class ResourceQuotaStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        quantities_defaults.round_up_all(obj["spec"].get("hard"))

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_quota(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_quota(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_quota_status(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.quota_warnings(obj)


class LimitRangeStrategy(Strategy):
    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        core_defaults.default_limit_range(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_limit_range(obj)
