"""HorizontalPodAutoscalers (``pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go``)."""

from __future__ import annotations

from kubepy.cluster.errors import FieldError
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.strategies.strategy import Strategy, restore


class HorizontalPodAutoscalerStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        from kubepy.cluster.defaults.autoscaling import default_autoscaler

        default_autoscaler(obj)

    def empty_status(self) -> Object:
        return {"currentMetrics": None, "desiredReplicas": 0}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.cluster.validation.autoscaling import validate_autoscaler

        return validate_autoscaler(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.cluster.validation.autoscaling import validate_autoscaler

        return validate_autoscaler(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.cluster.validation.autoscaling import validate_autoscaler_status

        return validate_autoscaler_status(obj)
