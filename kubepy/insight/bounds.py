"""The bounds of a workload: how many pods there should be, how many of them may be away or too many, and what budgets
for disruptions say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.meta import Object, controller_of, name_of
from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.api.values.gonumbers import scaled_value
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.views import WORKLOADS, JobView, WorkloadView, view_workload
from kubepy.insight import Bounds
from kubepy.storage import Key

BUDGETS, DAEMON_SETS = "poddisruptionbudgets.policy", "daemonsets.apps"


def desired_of(seen: Any) -> int:
    """Return how many pods there should be of a workload or Job; for a DaemonSet as many as its status says."""
    if isinstance(seen, JobView):
        if seen.end or seen.is_suspended:
            return 0
        if seen.completions is None:  # a work queue: once a pod has succeeded, no other is started
            return seen.parallelism if not seen.succeeded else 0
        return max(min(seen.parallelism, seen.completions - seen.succeeded), 0)
    return (seen.scheduled or seen.replicas) if isinstance(seen, WorkloadView) else 0


def bounds_of(cluster: LocalCluster, key: Key, seen: Any, desired: int, *, rolled: bool, evicted: bool) -> Bounds:
    """Return the bounds of a workload.

    :param seen: its view.
    :param rolled: its template has changed meanwhile.
    :param evicted: a pod was evicted meanwhile. A rollout does not ask budgets, and an eviction asks nothing else.
    """
    if not isinstance(seen, WorkloadView):
        return Bounds()
    by_strategy = strategy_bounds(key, seen, desired)
    by_budget = budget_bounds(cluster, key, desired)
    if by_budget is None or (rolled and not evicted) or (not evicted and by_strategy.min_available is not None):
        return by_strategy._replace(min_available=None) if evicted and not rolled else by_strategy
    least, budget = by_budget
    if rolled and by_strategy.min_available is not None and by_strategy.min_available <= least:
        return by_strategy
    return by_strategy._replace(min_available=least, budget=budget)


def strategy_bounds(key: Key, seen: WorkloadView, desired: int) -> Bounds:
    """Return the bounds that a strategy sets while the template changes."""
    if key.resource == "deployments.apps" and seen.strategy == "Recreate":
        return Bounds(0, desired, 0)
    if seen.strategy != "RollingUpdate":
        return Bounds()
    if key.resource == "statefulsets.apps":
        return Bounds(max(desired - 1, 0), min(1, desired), 0)
    is_daemon_set = key.resource == DAEMON_SETS
    try:
        surge = scaled_value(seen.max_surge, desired, round_up=True)
        unavailable = scaled_value(seen.max_unavailable, desired, round_up=is_daemon_set)
    except ValueError:
        return Bounds()
    unavailable = min(unavailable or (0 if surge else 1), desired)
    return Bounds(desired - unavailable, unavailable, surge)


def budget_bounds(cluster: LocalCluster, key: Key, desired: int) -> tuple[int, str] | None:
    """Return how many pods of a workload must stay healthy by the strictest PodDisruptionBudget that selects them, and
    its name; None without one. Of a budget over several workloads, the others are taken to have all their pods."""
    budgets = cluster.store.list(BUDGETS, key.namespace).objects
    workloads = dict(workloads_in(cluster, key.namespace)) if budgets else {}
    if key not in workloads:
        return None
    leasts = []
    for budget in budgets:
        selected = {other: obj for other, obj in workloads.items() if selects(budget, obj)}
        if key in selected:
            others = sum(desired_of(view_workload(obj)) for other, obj in selected.items() if other != key)
            has_daemon_set = any(other.resource == DAEMON_SETS for other in selected)
            least = least_healthy(budget["spec"], others + desired, has_daemon_set)
            leasts.append((max(min(least - others, desired), 0), name_of(budget)))
    return max(leasts, key=lambda least: least[0], default=None)


def workloads_in(cluster: LocalCluster, namespace: str) -> Iterator[tuple[Key, Object]]:
    """Yield the workloads of a namespace that no other controls."""
    for resource in WORKLOADS:
        for obj in cluster.store.list(resource, namespace).objects:
            if controller_of(obj) is None:
                yield Key(resource, namespace, name_of(obj)), obj


def selects(budget: Object, workload: Object) -> bool:
    """Return whether a budget is about the pods of a workload."""
    labels = ((workload["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    try:
        return from_label_selector((budget.get("spec") or {}).get("selector")).matches(labels or {})
    except SelectorError:
        return False


def least_healthy(spec: Object, total: int, has_daemon_set: bool) -> int:
    """Return how many of so many pods a budget wants healthy.

    All of them where its controller cannot compute it: a DaemonSet has no scale, by which it counts the pods that there
    should be, unless ``minAvailable`` is a number.
    """
    away, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if away is None and not isinstance(least, str):
        return least or 0
    if has_daemon_set:
        return total
    try:
        if away is None:
            return scaled_value(least, total, round_up=True)
        return total - scaled_value(away, total, round_up=True)
    except ValueError:
        return total
