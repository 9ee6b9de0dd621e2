"""Pods (``pkg/registry/core/pod/strategy.go``)."""

from __future__ import annotations

from types import MappingProxyType

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, labels_of, spec_of, status_of
from kubepy.api.objects.pods import qos_class
from kubepy.apiserver.kinds.core.pods.gates import drop_disabled_fields
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core.pods import defaults
    from kubepy.apiserver.kinds.core.pods.validation import options as options_validation
    from kubepy.apiserver.kinds.core.pods.validation import pods as pods_validation
    from kubepy.apiserver.kinds.core.pods.validation import status as status_validation
    from kubepy.apiserver.kinds.core.pods.validation import warnings as pod_warnings


class PodStrategy(Strategy):
    has_status = True
    has_generation = True
    is_plain = True
    assigned = ("nodeName",)
    selectable = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )
    selectable_aliases = MappingProxyType({"spec.host": "spec.nodeName"})

    def default(self, obj: Object) -> None:
        defaults.default_pod(obj)

    def prepare_for_create(self, obj: Object) -> None:
        spec = obj["spec"]
        drop_disabled_fields(spec)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "lastProbeTime": None,
                    "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "reason": "SchedulingGated",
                    "status": "False",
                    "type": "PodScheduled",
                }
            ]

        _merge_match_label_keys(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled_fields(obj["spec"])

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")
        for field in ("deletionTimestamp", "ownerReferences"):
            restore(obj["metadata"], old["metadata"], field)
        status = obj.setdefault("status", {})
        if not status.get("qosClass") and "qosClass" in (status_of(old)):
            status["qosClass"] = old["status"]["qosClass"]

    def prepare_for_subresource_update(self, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            super().prepare_for_subresource_update(obj, old, subresource)
            return

        spec = dict(old["spec"])
        if subresource == "resize":
            spec |= {
                field: _resized(spec[field], obj["spec"].get(field) or [])
                for field in ("containers", "initContainers")
                if spec.get(field)
            }
            restore(spec, obj["spec"], "resources")
        else:
            restore(spec, obj["spec"], "ephemeralContainers")

        metadata = {
            **old["metadata"],
            "resourceVersion": obj["metadata"].get("resourceVersion", ""),
        }
        obj |= {**old, "metadata": metadata, "spec": spec}

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get("spec"), old.get("spec"))

    def validate(self, obj: Object) -> list[FieldError]:
        return pods_validation.validate_pod(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return pods_validation.validate_pod_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return status_validation.validate_pod_status_update(obj, old)

    def validate_subresource_update(
        self, obj: Object, old: Object, subresource: str
    ) -> list[FieldError]:
        match subresource:
            case "resize":
                return status_validation.validate_pod_resize(obj, old)
            case "ephemeralcontainers":
                return pods_validation.validate_ephemeral_containers_update(obj, old)
        return self.validate_status_update(obj, old)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return pod_warnings.warnings_for_pod(obj)

    def grace_period_seconds(self, obj: Object, requested: int | None) -> int:
        spec = obj["spec"]
        has_ended = status_of(obj).get("phase") in ("Failed", "Succeeded")
        if not spec.get("nodeName") or has_ended:
            return 0
        period = requested
        if period is None:
            period = int(spec.get("terminationGracePeriodSeconds", 0))
        return period if period >= 0 else 1

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec = spec_of(obj)
        status = status_of(obj)
        fields = super().selectable_fields(obj)
        fields["spec.hostNetwork"] = "true" if spec.get("hostNetwork") else "false"
        fields["status.podIPs"] = ""  # may be named, but upstream never fills it in
        pod_ips = status.get("podIPs") or [{}]
        fields["status.podIP"] = pod_ips[0].get("ip", "")
        return fields


def _resized(containers: list[Object], requested: list[Object]) -> list[Object]:
    """Return the containers with the resources and resizePolicy of the requested containers of the
    same name."""
    by_name = {container.get("name"): container for container in requested}
    resized = []
    for container in containers:
        updated = dict(container)
        resize = by_name.get(container["name"])
        if resize is not None:
            for field in ("resources", "resizePolicy"):
                restore(updated, resize, field)
        resized.append(updated)
    return resized


# --- matchLabelKeys -------------------------------------------------------------------------------


def _merge_match_label_keys(pod: Object) -> None:
    """Make ``matchLabelKeys`` requirements of the selector, with this pod's own values."""
    spec = pod["spec"]
    labels = labels_of(pod)
    if spec.get("affinity"):
        for term in options_validation.pod_affinity_terms(spec):
            _merge_keys(term, "matchLabelKeys", "In", labels)
            _merge_keys(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, "matchLabelKeys", "In", labels)


def _merge_keys(term: Object, field: str, operator: str, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    expressions = list(selector.get("matchExpressions") or ())
    keys = [key for key in term.get(field) or () if key in labels]
    for key in keys:
        expressions.append({"key": key, "operator": operator, "values": [labels[key]]})
    if keys:
        selector["matchExpressions"] = expressions
