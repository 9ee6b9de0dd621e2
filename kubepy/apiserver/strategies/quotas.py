"""ResourceQuotas and LimitRanges (``pkg/registry/core/{resourcequota,limitrange}``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy, restore


class ResourceQuotaStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        from kubepy.apiserver.defaults.quantities import round_up_all

        round_up_all(obj["spec"].get("hard"))

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.quotas import validate_quota

        return validate_quota(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.quotas import validate_quota

        return validate_quota(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.quotas import validate_quota_status

        return validate_quota_status(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        from kubepy.apiserver.validation.quotas import quota_warnings

        return quota_warnings(obj)


class LimitRangeStrategy(Strategy):
    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        from kubepy.apiserver.defaults.core import default_limit_range

        default_limit_range(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.quotas import validate_limit_range

        return validate_limit_range(obj)
