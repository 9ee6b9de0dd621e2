"""HorizontalPodAutoscalers (``pkg/registry/autoscaling``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.api.objects.autoscalers import V1, to_v1, to_v2
from kubepy.api.types import Decoded
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import types
    from kubepy.apiserver.kinds.autoscaling import defaults
    from kubepy.apiserver.kinds.autoscaling import validation as autoscaling_validation


class HorizontalPodAutoscalerStrategy(Strategy):
    has_status = True

    def decode(self, obj: Object) -> Decoded:
        if obj["apiVersion"] != V1:
            return super().decode(obj)
        older = types.decode(obj)
        return Decoded(super().decode(to_v2(older.object)).object, older.unknown_fields)

    def in_version(self, obj: Object, api_version: str) -> Object:
        if api_version == V1:
            return to_v1(obj)
        return obj

    def to_stored_version(self, config: Object) -> Object:
        if config["apiVersion"] == V1:
            return to_v2(config)
        return config

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
