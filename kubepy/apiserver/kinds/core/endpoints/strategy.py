"""Endpoints (``pkg/registry/core/endpoint``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.endpoints import validation


class EndpointsStrategy(Strategy):
    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        for subset in nested_list(obj, "subsets"):
            for port in nested_list(subset, "ports"):
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_endpoints(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_endpoints(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return validation.endpoints_warnings(obj)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)
