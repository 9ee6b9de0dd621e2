"""Which taints and labels a node should have, by its conditions and ``spec.unschedulable``. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, labels_of
from kubepy.api.objects.nodes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    get_condition,
    taints_of,
)
from kubepy.controllers.nodelifecycle.zones import Eviction

READINESS_TAINTS = {"False": TAINT_NOT_READY, "Unknown": TAINT_UNREACHABLE}
# condition type → its status → the taint's key (``nodeConditionToTaintKeyStatusMap``)
CONDITION_TAINTS: Mapping[str, Mapping[str, str]] = {
    "Ready": READINESS_TAINTS,
    "MemoryPressure": {"True": TAINT_MEMORY_PRESSURE},
    "DiskPressure": {"True": TAINT_DISK_PRESSURE},
    "NetworkUnavailable": {"True": TAINT_NETWORK_UNAVAILABLE},
    "PIDPressure": {"True": TAINT_PID_PRESSURE},
}
OWN_KEYS = frozenset(key for taints in CONDITION_TAINTS.values() for key in taints.values()) | {TAINT_UNSCHEDULABLE}
# The older label follows the newer one (``labelReconcileInfo``).
FOLLOWING_LABELS = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}

Taint = tuple[str, str]  # key, effect


def lifecycle_change(node: Object, eviction: Eviction, now: datetime) -> Object | None:
    """The node with the taints and labels that it should have, or None when it has them."""
    taints = updated_taints(taints_of(node), wanted_taints(node, eviction), now)
    labels = updated_labels(labels_of(node))
    if taints == taints_of(node) and labels == labels_of(node):
        return None
    spec = {key: value for key, value in (node.get("spec") or {}).items() if key != "taints"}
    if taints:
        spec["taints"] = taints
    metadata = {**node["metadata"], "labels": labels} if labels else node["metadata"]
    return {**node, "metadata": metadata, "spec": spec}


def wanted_taints(node: Object, eviction: Eviction) -> list[Taint]:
    """What the conditions and the spec call for, in upstream's order: NoSchedule first, NoExecute last."""
    taints: list[Taint] = []
    for condition in (node.get("status") or {}).get("conditions") or ():
        key = CONDITION_TAINTS.get(condition["type"], {}).get(condition["status"])
        if key:
            taints.append((key, NO_SCHEDULE))
    if (node.get("spec") or {}).get("unschedulable"):
        taints.append((TAINT_UNSCHEDULABLE, NO_SCHEDULE))
    return taints + _wanted_no_execute(node, eviction)


def _wanted_no_execute(node: Object, eviction: Eviction) -> list[Taint]:
    """At most one. Where there is one already it changes with the condition, whatever the other nodes do."""
    there = [(one["key"], NO_EXECUTE) for one in taints_of(node)
             if one.get("effect") == NO_EXECUTE and one["key"] in READINESS_TAINTS.values()]
    ready = get_condition(node, "Ready")
    if ready is None:
        return there  # nothing is known of the node yet
    wanted = READINESS_TAINTS.get(ready["status"])
    if wanted is None or eviction is Eviction.STOP or (eviction is Eviction.HOLD and not there):
        return []
    return [(wanted, NO_EXECUTE)]


def updated_taints(taints: list[Object], wanted: Iterable[Taint], now: datetime) -> list[Object]:
    """The taints with the wanted ones added at the end, and those of this controller that are not wanted removed."""
    wished = dict.fromkeys(wanted)
    kept = [one for one in taints if not _is_own(one) or (one["key"], one["effect"]) in wished]
    there = {(one["key"], one["effect"]) for one in kept}
    added = [{"effect": effect, "key": key, "timeAdded": format_time(now)} for key, effect in wished
             if (key, effect) not in there]
    return [*kept, *added]


def _is_own(taint: Object) -> bool:
    """Whether this controller adds and removes such a taint."""
    if taint.get("effect") == NO_EXECUTE:
        return taint["key"] in READINESS_TAINTS.values()
    return taint.get("effect") == NO_SCHEDULE and taint["key"] in OWN_KEYS


def updated_labels(labels: Mapping[str, str]) -> dict[str, str]:
    follow = {older: labels[newer] for newer, older in FOLLOWING_LABELS.items() if newer in labels}
    return {**labels, **follow}
