"""Defaults of what makes pods, and of autoscalers
(``pkg/apis/{apps,batch,autoscaling}/*/defaults.go``)."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object, clone
from kubepy.apiserver.defaults.core import default_claim
from kubepy.apiserver.defaults.pods import default_pod_template


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
    for claim in spec.get("volumeClaimTemplates") or ():
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


def default_replication_controller(controller: Object) -> None:
    """Take selector and labels from the template where they are left out."""
    spec = controller.setdefault("spec", {})
    template = spec.get("template")
    if template is not None:
        default_pod_template(template)
        if labels := template["metadata"].get("labels"):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not controller["metadata"].get("labels"):
                controller["metadata"]["labels"] = dict(labels)
    spec.setdefault("replicas", 1)


# --- Jobs and CronJobs ----------------------------------------------------------------------------


NO_LIMIT = 2**31 - 1


def default_job(job: Object) -> None:
    spec = job.setdefault("spec", {})
    _default_template_and_policies(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else NO_LIMIT)
    default_labels(job)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def default_labels(job: Object) -> None:
    """Give a job without labels those of its template."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _default_template_and_policies(spec: Object) -> None:
    default_pod_template(spec.setdefault("template", {}))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def default_cron_job(cron_job: Object) -> None:
    """Set the defaults of a CronJob; the job inside gets its own when it is made."""
    spec = cron_job.setdefault("spec", {})
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    _default_template_and_policies(template.setdefault("spec", {}))
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


# --- HorizontalPodAutoscalers ---------------------------------------------------------------------


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
    if (behavior := spec.get("behavior")) is not None:
        for direction, rules in (("scaleUp", SCALE_UP), ("scaleDown", SCALE_DOWN)):
            own = {
                key: value
                for key, value in (behavior.get(direction) or {}).items()
                if value is not None
            }
            behavior[direction] = {**clone(rules), **own}
