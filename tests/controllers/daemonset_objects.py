"""Objects for the controllers' tests: as small as the code under test allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, new_controller_ref
from kubepy.controllers.daemonset.nodes import DaemonSetNodes
from kubepy.controllers.daemonset.placement import Placement
from kubepy.controllers.daemonset.pods import PodCriteria, read_daemon_pod, template_generation
from kubepy.controllers.daemonset.state import DaemonSetState, FailedPodsBackoff
from kubepy.runtime.reconcile import Key

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HASH = "7b6958c85"
OLD_HASH = "746986886"


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def node(
    name: str, *, labels: dict[str, str] | None = None, taints: list[Object] | None = None
) -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{name}"}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": taints} if taints else {},
    }


def taint(key: str, effect: str, value: str = "") -> Object:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def daemon_set(
    name: str = "agent",
    *,
    strategy: Object | None = None,
    template_spec: Object | None = None,
    min_ready_seconds: int = 0,
    annotations: dict[str, str] | None = None,
    **status: Any,
) -> Object:
    spec: Object = {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "agent:1"}], **(template_spec or {})},
        },
        "updateStrategy": strategy or rolling(),
        "revisionHistoryLimit": 10,
    }
    if min_ready_seconds:
        spec["minReadySeconds"] = min_ready_seconds
    metadata: Object = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def rolling(unavailable: int | str = 1, surge: int | str = 0) -> Object:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def pod(
    name: str,
    on: str,
    *,
    hash_: str = HASH,
    ready_for: float | None = 60,
    phase: str = "Running",
    age: float = 90,
    deleted: bool = False,
    owner: Object | None = None,
    bound: bool = True,
) -> Object:
    """Return a daemon pod; ``ready_for`` is the seconds since it became Ready, None if it is
    not."""
    ready = {
        "type": "Ready",
        "status": "True" if ready_for is not None else "False",
        "lastTransitionTime": ago(ready_for or 0),
    }
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": ago(age),
        "labels": {"app": "agent", "controller-revision-hash": hash_},
        "ownerReferences": [new_controller_ref(owner or daemon_set())],
    }
    if deleted:
        metadata["deletionTimestamp"] = ago(1)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec: Object = {
        "affinity": {"nodeAffinity": required},
        "containers": [{"name": "c", "image": "agent:1"}],
    }
    if bound:
        spec["nodeName"] = on
    status = {"phase": phase, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def state_of(
    owner: Object, pods: Iterable[Object], placements: Mapping[str, Placement]
) -> DaemonSetState:
    """Return the state that a sync observes, with these pods and placements."""
    daemon_pods = [
        read_daemon_pod(one) for one in sorted(pods, key=lambda one: one["metadata"]["name"])
    ]
    min_ready_seconds = owner["spec"].get("minReadySeconds", 0)
    ready_by = NOW - timedelta(seconds=min_ready_seconds) if min_ready_seconds else None
    criteria = PodCriteria(HASH, template_generation(owner), ready_by)
    nodes = DaemonSetNodes(daemon_pods)
    nodes.set_placements(placements)
    nodes.observe(criteria)
    return DaemonSetState(
        Key("daemonsets.apps", "default", owner["metadata"]["name"]),
        owner,
        criteria,
        nodes,
        FailedPodsBackoff(),
        NOW,
        daemon_pods,
    )
