"""ResourceQuotas (``pkg/registry/core/resourcequota``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver import defaults
    from kubepy.apiserver.kinds.core.resourcequotas import validation


class ResourceQuotaStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        defaults.round_up_all(obj["spec"].get("hard"))

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
