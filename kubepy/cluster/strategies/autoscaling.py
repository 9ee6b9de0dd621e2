"""HorizontalPodAutoscalers (``pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go``)."""

from __future__ import annotations

from kubepy.cluster.errors import FieldError
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.strategies.strategy import Strategy, restore
from kubepy.cluster.types import Decoded


class HorizontalPodAutoscalerStrategy(Strategy):
    has_status = True

    def decode(self, obj: Object) -> Decoded:
        if obj["apiVersion"] != "autoscaling/v1":
            return super().decode(obj)
        from kubepy.cluster.types import decode

        older = decode(obj)
        return Decoded(super().decode(_from_v1(older.object)).object, older.unknown_fields)

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


def _from_v1(obj: Object) -> Object:
    """An autoscaler as ``autoscaling/v1`` writes it, which knows of one metric: the use of cpu."""
    spec = dict(obj.get("spec") or {})
    utilization = spec.pop("targetCPUUtilizationPercentage", None)
    if utilization is not None:
        target = {"averageUtilization": utilization, "type": "Utilization"}
        spec["metrics"] = [{"resource": {"name": "cpu", "target": target}, "type": "Resource"}]
    return {"apiVersion": "autoscaling/v2", "kind": obj["kind"], "metadata": obj["metadata"], "spec": spec}
