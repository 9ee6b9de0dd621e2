"""The bounds of a workload at a moment: how many pods there should be, how many of them may be away
or too many, and what budgets for disruptions say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.api.values.gonumbers import scaled_value
from kubepy.apiserver.views import BUDGETS, WORKLOADS, BudgetView, JobView, WorkloadView
from kubepy.insight import Bounds
from kubepy.storage import Key

DAEMON_SETS = "daemonsets.apps"
Share = int | str | None  # a number or a percentage


def desired_of(seen: Any) -> int:
    """Return how many pods there should be of a workload or Job; for a DaemonSet as many as its
    status says."""
    if isinstance(seen, JobView):
        if seen.end or seen.is_suspended:
            return 0
        if seen.completions is None:  # a work queue: once a pod has succeeded, no other is started
            if not seen.succeeded:
                return seen.parallelism
            return 0
        return max(min(seen.parallelism, seen.completions - seen.succeeded), 0)
    if isinstance(seen, WorkloadView):
        return seen.scheduled or seen.replicas
    return 0


def bounds_of(
    key: Key, seen: Any, desired: int, budgets: Budgets, *, is_rolling: bool, is_evicted: bool
) -> Bounds:
    """Return the bounds of a workload at one moment.

    :param seen: its view, None if it is gone.
    :param is_rolling: pods of an older template are being replaced.
    :param is_evicted: evicted pods are not replaced yet. A rollout does not ask budgets, and an
        eviction asks nothing else.
    """
    if seen is None or seen.is_terminating:
        return Bounds(is_leaving=True)
    if not isinstance(seen, WorkloadView):
        return Bounds()
    by_strategy = strategy_bounds(
        key.resource, seen.strategy, seen.max_surge, seen.max_unavailable, desired
    )
    if not is_evicted and by_strategy.min_available is not None:
        return by_strategy
    by_budget = budgets.strictest(key, desired)
    if by_budget is None:
        if is_evicted and not is_rolling:
            return by_strategy._replace(min_available=None)
        return by_strategy

    least, budget = by_budget
    if is_rolling and by_strategy.min_available is not None and by_strategy.min_available <= least:
        return by_strategy
    return by_strategy._replace(min_available=least, budget=budget)


@lru_cache(10_000)
def strategy_bounds(
    resource: str, strategy: str, max_surge: Share, max_unavailable: Share, desired: int
) -> Bounds:
    """Return the bounds that a strategy sets while the template changes."""
    if resource == "deployments.apps" and strategy == "Recreate":
        return Bounds(0, desired, 0)
    if strategy != "RollingUpdate":
        return Bounds()
    if resource == "statefulsets.apps":
        return Bounds(max(desired - 1, 0), min(1, desired), 0)
    try:
        surge = scaled_value(max_surge, desired, round_up=True)
        unavailable = scaled_value(max_unavailable, desired, round_up=resource == DAEMON_SETS)
    except ValueError:
        return Bounds()
    unavailable = min(unavailable or (0 if surge else 1), desired)
    return Bounds(desired - unavailable, unavailable, surge)


class Budgets:
    """The PodDisruptionBudgets of a moment, and the workloads whose pods they are about."""

    def __init__(self) -> None:
        self._budgets = dict[Key, BudgetView]()
        self._workloads = dict[Key, WorkloadView]()
        self._known = dict[tuple[Key, int], tuple[int, str] | None]()

    def replace(self, key: Key, seen: Any) -> None:
        """Take in the view of an object, None if it is gone."""
        views = self._budgets if key.resource == BUDGETS else self._workloads
        if key.resource == BUDGETS or key.resource in WORKLOADS:
            self._known.clear()
            if seen is not None:
                views[key] = seen
            else:
                views.pop(key, None)

    def strictest(self, key: Key, desired: int) -> tuple[int, str] | None:
        """Return how many pods of a workload must stay healthy by the strictest budget that selects
        them, and its name; None without one. Of a budget over several workloads, the others are
        taken to have all their pods."""
        if (key, desired) not in self._known:
            leasts = list(self._leasts(key, desired)) if key in self._workloads else []
            self._known[key, desired] = max(leasts, key=lambda least: least[0], default=None)
        return self._known[key, desired]

    def _leasts(self, key: Key, desired: int) -> Iterator[tuple[int, str]]:
        for budget, seen in sorted(self._budgets.items()):
            if budget.namespace != key.namespace or not is_selected(
                seen.selector, self._workloads[key].labels
            ):
                continue
            others = {
                other: workload
                for other, workload in self._workloads.items()
                if other != key
                and other.namespace == key.namespace
                and not workload.owner
                and is_selected(seen.selector, workload.labels)
            }
            total = sum(desired_of(workload) for workload in others.values())
            has_daemon_set = any(other.resource == DAEMON_SETS for other in (key, *others))
            least = least_healthy(seen, total + desired, has_daemon_set)
            yield max(min(least - total, desired), 0), budget.name


@lru_cache(1000)
def is_selected(selector: str, labels: str) -> bool:
    """Return whether a label selector matches labels, both as JSON."""
    with suppress(SelectorError):
        return from_label_selector(json.loads(selector or "null")).matches(
            json.loads(labels or "null") or {}
        )
    return False


def least_healthy(budget: BudgetView, total: int, has_daemon_set: bool) -> int:
    """Return how many of so many pods a budget wants healthy.

    All of them where its controller cannot compute it: a DaemonSet has no scale, by which it counts
    the pods that there should be, unless ``minAvailable`` is a number.
    """
    away = budget.max_unavailable
    least = budget.min_available
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
