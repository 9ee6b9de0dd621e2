"""Defaults of HorizontalPodAutoscalers (``autoscaling/v2/defaults.go``)."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object, clone

CPU = {
    "resource": {"name": "cpu", "target": {"averageUtilization": 80, "type": "Utilization"}},
    "type": "Resource",
}
PERIOD = 15
SCALE_UP: dict[str, Any] = {
    "policies": [
        {"periodSeconds": PERIOD, "type": "Pods", "value": 4},
        {"periodSeconds": PERIOD, "type": "Percent", "value": 100},
    ],
    "selectPolicy": "Max",
    "stabilizationWindowSeconds": 0,
}
SCALE_DOWN: dict[str, Any] = {
    "policies": [{"periodSeconds": PERIOD, "type": "Percent", "value": 100}],
    "selectPolicy": "Max",
}


def default_autoscaler(autoscaler: Object) -> None:
    spec = autoscaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [clone(CPU)]
    behavior = spec.get("behavior")
    if behavior is not None:
        for direction, rules in (("scaleUp", SCALE_UP), ("scaleDown", SCALE_DOWN)):
            own = {
                key: value
                for key, value in (behavior.get(direction) or {}).items()
                if value is not None
            }
            behavior[direction] = {**clone(rules), **own}
