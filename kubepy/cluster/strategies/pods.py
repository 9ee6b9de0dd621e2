"""Pods (``pkg/registry/core/pod/strategy.go``)."""

from __future__ import annotations

from kubepy.cluster.errors import FieldError
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.strategies.strategy import Strategy, restore
from kubepy.cluster.strategies.templates import drop_disabled_fields
from kubepy.cluster.validation.fields import semantically_equal


class PodStrategy(Strategy):
    has_status = True
    has_generation = True
    selectable = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                  "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName")

    def default(self, obj: Object) -> None:
        from kubepy.cluster.defaults.pods import default_pod

        default_pod(obj)

    def prepare_for_create(self, obj: Object) -> None:
        spec = obj["spec"]
        drop_disabled_fields(spec)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [_scheduling_gated(obj)]
        _merge_match_label_keys(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled_fields(obj["spec"])

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")
        for field in ("deletionTimestamp", "ownerReferences"):
            restore(obj["metadata"], old["metadata"], field)
        status = obj.setdefault("status", {})
        if not status.get("qosClass") and "qosClass" in (old.get("status") or {}):
            status["qosClass"] = old["status"]["qosClass"]

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.cluster.validation.pods import validate_pod

        return validate_pod(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.cluster.validation.pods import validate_pod_update

        return validate_pod_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        from kubepy.cluster.validation.pods import validate_pod_status_update

        return validate_pod_status_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        from kubepy.cluster.validation.pod_warnings import warnings_for_pod

        return warnings_for_pod(obj)

    def grace_period_seconds(self, obj: Object, asked: int | None) -> int:
        spec = obj["spec"]
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            return 0
        period = spec.get("terminationGracePeriodSeconds", 0) if asked is None else asked
        return int(period) if period >= 0 else 1

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        fields = super().selectable_fields(obj)
        fields["spec.hostNetwork"] = "true" if spec.get("hostNetwork") else "false"
        fields["status.podIP"] = next((one.get("ip", "") for one in status.get("podIPs") or ()), "")
        return fields


def _scheduling_gated(pod: Object) -> Object:
    return {
        "lastProbeTime": None, "lastTransitionTime": pod["metadata"].get("creationTimestamp"),
        "message": "Scheduling is blocked due to non-empty scheduling gates", "reason": "SchedulingGated",
        "status": "False", "type": "PodScheduled",
    }


# --- quality of service -------------------------------------------------------------------------------------------


def qos_class(spec: Object) -> str:
    """``BestEffort`` without any amounts, ``Guaranteed`` with equal requests and limits everywhere, else ``Burstable``.

    Upstream: ``pkg/apis/core/helper/qos/qos.go``.
    """
    holders = [spec] if spec.get("resources") else [
        one for field in ("containers", "initContainers") for one in spec.get(field) or ()]
    if not any(one.get("resources") for one in holders):
        return "BestEffort"
    return _qos_class_of(holders)


def _qos_class_of(holders: list[Object]) -> str:
    totals = {"requests": dict[str, int](), "limits": dict[str, int]()}
    all_limited = True
    for holder in holders:
        for field, total in totals.items():
            own = _compute_amounts(holder, field)
            for name, nanos in own.items():
                total[name] = total.get(name, 0) + nanos
            all_limited = all_limited and (field == "requests" or len(own) == 2)
    requests, limits = totals["requests"], totals["limits"]
    if not requests and not limits:
        return "BestEffort"
    guaranteed = all_limited and len(requests) == len(limits) and all(
        limits.get(name) == nanos for name, nanos in requests.items())
    return "Guaranteed" if guaranteed else "Burstable"


def _compute_amounts(holder: Object, field: str) -> dict[str, int]:
    """The cpu and memory that are more than nothing, in billionths."""
    from kubepy.cluster.values.quantity import Quantity

    given = (holder.get("resources") or {}).get(field) or {}
    amounts = {name: Quantity.parse(given[name]).nanos for name in ("cpu", "memory") if name in given}
    return {name: nanos for name, nanos in amounts.items() if nanos > 0}


# --- matchLabelKeys -----------------------------------------------------------------------------------------------


def _merge_match_label_keys(pod: Object) -> None:
    """``matchLabelKeys`` become conditions of the selector, with this pod's own values."""
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    if spec.get("affinity"):
        from kubepy.cluster.validation.pod_options import pod_affinity_terms

        for term in pod_affinity_terms(spec):
            _merge_keys(term, "matchLabelKeys", "In", labels)
            _merge_keys(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, "matchLabelKeys", "In", labels)


def _merge_keys(term: Object, field: str, operator: str, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    keys = [key for key in term.get(field) or () if key in labels]
    if selector is not None and keys:
        added = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys]
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
