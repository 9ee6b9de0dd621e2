"""The bounds of a workload: how many pods there should be, how many of them may be away or too many, and what budgets
for disruptions say."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object, labels_of, name_of
from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.api.values.gonumbers import scaled_value
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.views import JobView, WorkloadView
from kubepy.insight import Bounds
from kubepy.storage import Key

BUDGETS = "poddisruptionbudgets.policy"


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
    surge = unavailable = 0
    if key.resource == "deployments.apps" and seen.strategy == "Recreate":
        return Bounds(0, desired, 0)
    if seen.strategy != "RollingUpdate":
        return Bounds()
    if key.resource == "statefulsets.apps":
        return Bounds(max(desired - 1, 0), min(1, desired), 0)
    is_daemon_set = key.resource == "daemonsets.apps"
    try:
        surge = scaled_value(seen.max_surge, desired, round_up=True)
        unavailable = scaled_value(seen.max_unavailable, desired, round_up=is_daemon_set)
    except ValueError:
        return Bounds()
    unavailable = min(unavailable or (0 if surge else 1), desired)
    return Bounds(desired - unavailable, unavailable, surge)


def budget_bounds(cluster: LocalCluster, key: Key, desired: int) -> tuple[int, str] | None:
    """Return how many pods of a workload must stay healthy by the strictest PodDisruptionBudget that selects them, and
    its name; None without one."""
    workload = cluster.store.get(key)
    if workload is None:
        return None
    labels = labels_of({"metadata": {}, **(workload["spec"].get("template") or {})})
    budgets = [(least, name_of(budget)) for budget in cluster.store.list(BUDGETS, key.namespace).objects
               if (least := least_healthy(budget, labels, desired)) is not None]
    return max(budgets, key=lambda budget: budget[0], default=None)


def least_healthy(budget: Object, labels: dict[str, str], desired: int) -> int | None:
    """Return how many of the pods with some labels a budget wants healthy, None if it does not select them."""
    spec = budget.get("spec") or {}
    try:
        if not from_label_selector(spec.get("selector")).matches(labels):
            return None
        if (away := spec.get("maxUnavailable")) is not None:
            return max(0, desired - scaled_value(away, desired, round_up=True))
        return scaled_value(spec.get("minAvailable"), desired, round_up=True)
    except (SelectorError, ValueError):
        return None
