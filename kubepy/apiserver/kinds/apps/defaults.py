"""Defaults of DaemonSets, Deployments, ReplicaSets and StatefulSets (``apps/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.kinds.core.persistentvolumeclaims.defaults import default_claim
from kubepy.apiserver.kinds.core.pods.defaults import default_pod_template


def default_daemon_set(daemon_set: Object) -> None:
    spec = daemon_set.setdefault("spec", {})
    default_pod_template(spec.setdefault("template", {}))
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _default_rolling_update(strategy, max_unavailable=1, max_surge=0)
    spec.setdefault("revisionHistoryLimit", 10)


def default_deployment(deployment: Object) -> None:
    spec = deployment.setdefault("spec", {})
    default_pod_template(spec.setdefault("template", {}))
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _default_rolling_update(strategy, max_unavailable="25%", max_surge="25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _default_rolling_update(
    strategy: Object, *, max_unavailable: int | str, max_surge: int | str
) -> None:
    rolling = strategy.setdefault("rollingUpdate", {})
    rolling.setdefault("maxUnavailable", max_unavailable)
    rolling.setdefault("maxSurge", max_surge)


def default_replica_set(replica_set: Object) -> None:
    spec = replica_set.setdefault("spec", {})
    default_pod_template(spec.setdefault("template", {}))
    spec.setdefault("replicas", 1)


def default_stateful_set(stateful_set: Object) -> None:
    """Set the defaults of a StatefulSet; ``maxUnavailable`` is behind a gate that is off in
    v1.36."""
    spec = stateful_set.setdefault("spec", {})
    default_pod_template(spec.setdefault("template", {}))
    for claim in nested_list(spec, "volumeClaimTemplates"):
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        default_claim(claim)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    _default_stateful_set_strategy(spec.setdefault("updateStrategy", {}))
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for when in ("whenDeleted", "whenScaled"):
        if not retention.get(when):
            retention[when] = "Retain"
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)


def _default_stateful_set_strategy(strategy: Object) -> None:
    """Default the strategy; a type that is written out gets no ``rollingUpdate``, as upstream."""
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        rolling.setdefault("partition", 0)
