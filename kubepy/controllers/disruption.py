"""Keeps what PodDisruptionBudgets say of their pods, by which evictions are judged (``pkg/controller/disruption``).

The eviction itself is in ``kubepy.apiserver.requests.eviction``: it takes one from ``disruptionsAllowed`` and notes the
pod in ``disruptedPods`` until this controller sees it go.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from kubepy.api.clock import parse_optional_time, parse_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    Object,
    clone,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import get_condition, is_pod_ready, is_pod_terminal, set_condition
from kubepy.api.selectors import LabelSelector, SelectorError, from_label_selector, go_label_selector
from kubepy.api.values.gonumbers import scaled_value
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

BUDGETS = "poddisruptionbudgets.policy"
PODS = "pods"
DELETION_TIMEOUT = timedelta(minutes=2)  # a pod that was evicted and is still there by then won't go any more
STALE_CONDITION_TIMEOUT = timedelta(minutes=2)  # the same for a DisruptionTarget condition
UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.')


class Expected(NamedTuple):
    """What a budget calls for: how many pods there should be, and how many of them healthy."""

    pods: int
    healthy: int


class SyncError(Exception):
    """Why a budget cannot be judged; until it can, nothing may be evicted."""


class DisruptionController:
    name = "disruption-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._scheme = context.scheme
        self._recorder = Recorder(context.client, "controllermanager")
        self.queue = context.new_queue()
        self._written: dict[Key, str] = {}  # the resource versions that this controller's own writes gave budgets

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {BUDGETS: self._budget_changed, PODS: self._pod_changed}

    def _budget_changed(self, event: WatchEvent) -> None:
        """Sync a budget that others changed.

        Upstream syncs it after its own writes as well, but at once, when its pods are still as they were. Here all
        other controllers would have their turn before that, and a budget that shares its pods with another one would
        see what upstream's never hears of: only one budget is told of a pod.
        """
        written = self._written.pop(event.key, None)
        if event.old is None or event.new is None or event.new["metadata"]["resourceVersion"] != written:
            self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        """Its present labels count: the budget that a pod was relabelled away from learns of it when it looks next."""
        self._watch_stale_condition(event.key, event.new)
        if (pod := event.new or event.old) is not None:
            self._wake(pod)

    def _wake(self, pod: Object) -> None:
        budgets = [one for one in self._informers.list(BUDGETS, namespace_of(pod)) if _covers(one, pod)]
        if len(budgets) > 1:
            message = (f'Pod "{namespace_of(pod)}"/"{name_of(pod)}" matches multiple PodDisruptionBudgets.  '
                       f'Chose "{name_of(budgets[0])}" arbitrarily.')
            self._recorder.event(pod, "Warning", "MultiplePodDisruptionBudgets", message)
        for budget in budgets[:1]:
            self.queue.add(Key(BUDGETS, namespace_of(budget), name_of(budget)))

    def _watch_stale_condition(self, key: Key, pod: Object | None) -> None:
        due = stale_condition_due(pod) if pod is not None else None
        if due is not None:
            self.queue.add_after(key, (due - self._clock.now()).total_seconds())
        else:
            self.queue.cancel(key)

    # --- sync

    def sync(self, key: Key) -> None:
        obj = self._informers.get(*key)
        if obj is None:
            self.queue.cancel(key)
            return
        if key.resource == PODS:
            self._clear_stale_condition(key, obj)
            return
        try:
            self._sync_budget(key, obj)
        except (SyncError, SelectorError, ValueError) as error:
            self._write(obj, failed_status(obj, str(error), self._clock.now()))

    def _sync_budget(self, key: Key, budget: Object) -> None:
        """``trySync``. Raises SyncError, SelectorError, ValueError, Status."""
        pods = self._pods_of(budget)
        expected = self._expected(budget, pods)
        now = self._clock.now()
        disrupted = self._still_disrupted(budget, pods, now)
        healthy = sum(is_pod_ready(pod) and not is_being_deleted(pod) and name_of(pod) not in disrupted for pod in pods)
        self._write(budget, new_status(budget, expected, healthy, disrupted, now))
        if disrupted:
            due = min(map(parse_time, disrupted.values())) + DELETION_TIMEOUT
            self.queue.add_after(key, (due - now).total_seconds())

    def _write(self, budget: Object, status: Object) -> None:
        if status != budget.get("status"):
            stored = self._client.update(BUDGETS, {**budget, "status": status}, namespace=namespace_of(budget),
                                         subresource="status")
            key = Key(BUDGETS, namespace_of(budget), name_of(budget))
            self._written[key] = stored["metadata"]["resourceVersion"]

    def _pods_of(self, budget: Object) -> list[Object]:
        try:
            selector = from_label_selector(budget["spec"].get("selector"))
        except SelectorError as error:
            self._recorder.event(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
            raise
        pods = self._matching(namespace_of(budget), selector)
        if not pods:
            self._recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        return pods

    def _matching(self, namespace: str, selector: LabelSelector) -> list[Object]:
        return [pod for pod in self._informers.list(PODS, namespace) if selector.matches(labels_of(pod))]

    # --- what should be

    def _expected(self, budget: Object, pods: list[Object]) -> Expected:
        """``getExpectedPodCount``. Raises SyncError, ValueError."""
        spec = budget["spec"]
        unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable")
        if unavailable is None and available is None:
            return Expected(0, 0)
        if unavailable is None and isinstance(available, int):
            return Expected(len(pods), available)
        try:
            total = self._expected_scale(budget, pods)
        except SyncError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", message)
            raise
        if unavailable is not None:
            return Expected(total, max(0, total - scaled_value(unavailable, total, round_up=True)))
        return Expected(total, scaled_value(available, total, round_up=True))

    def _expected_scale(self, budget: Object, pods: list[Object]) -> int:
        """What the controllers of all the pods want together (``getExpectedScale``). Raises SyncError."""
        scales: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
            elif reference["uid"] not in scales:
                found = self._scale_of(reference, namespace_of(pod))
                if found is None:
                    raise SyncError(f'found no controllers for pod "{name_of(pod)}"')
                scales[found[0]] = found[1]
        if unmanaged:
            message = UNMANAGED.format(go_label_selector(budget["spec"].get("selector")))
            self._recorder.event(budget, "Warning", "UnmanagedPods", message)
        return sum(scales.values())

    def _scale_of(self, reference: Object, namespace: str) -> tuple[str, int] | None:
        """Uid and replicas of a controller; of a Deployment where that controls it. None where it is gone.

        Raises SyncError.
        """
        resource = self._scheme.for_kind(reference["apiVersion"], reference["kind"])
        if resource is None:
            raise SyncError(f'no matches for kind "{reference["kind"]}" in version "{reference["apiVersion"]}"')
        if "scale" not in resource.subresources:
            raise SyncError(f"{resource.key} does not implement the scale subresource")
        owner = self._informers.get(resource.key, namespace, reference["name"])
        if owner is None or uid_of(owner) != reference["uid"]:
            return None
        above = controller_of(owner)
        if resource.key == "replicasets.apps" and above is not None and above["kind"] == "Deployment":
            found = self._scale_of(above, namespace)
            if found is not None:
                return found
        scale = self._client.get_scale(resource.key, name_of(owner), namespace=namespace)
        return uid_of(owner), scale["spec"].get("replicas", 0)

    # --- what an eviction announced

    def _still_disrupted(self, budget: Object, pods: list[Object], now: datetime) -> dict[str, str]:
        """The pods that were evicted and have not begun to go, with the time of it (``buildDisruptedPodMap``)."""
        noted = (budget.get("status") or {}).get("disruptedPods") or {}
        kept = {}
        for pod in pods:
            name = name_of(pod)
            if name not in noted or is_being_deleted(pod):
                continue
            if parse_time(noted[name]) + DELETION_TIMEOUT > now:
                kept[name] = noted[name]
                continue
            namespace = namespace_of(budget)  # upstream names the namespace twice
            message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._recorder.event(pod, "Warning", "NotDeleted", message)
        return kept

    def _clear_stale_condition(self, key: Key, pod: Object) -> None:
        """A pod that was to be disrupted and never was (``syncStalePodDisruption``)."""
        due, now = stale_condition_due(pod), self._clock.now()
        if due is None:
            return
        if due > now:
            self.queue.add_after(key, (due - now).total_seconds())
            return
        status = clone(pod["status"])
        condition: Object = {"type": "DisruptionTarget", "status": "False"}
        if generation := pod["metadata"].get("generation"):
            condition["observedGeneration"] = generation
        set_condition(status["conditions"], condition, now)
        with suppress(NotFound):
            self._client.update(PODS, {**pod, "status": status}, namespace=namespace_of(pod), subresource="status")


def _covers(budget: Object, pod: Object) -> bool:
    try:
        return from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod))
    except SelectorError:
        return False  # as upstream: such a budget has no pods


def stale_condition_due(pod: Object) -> datetime | None:
    """When the pod's DisruptionTarget condition counts as stale; None for none, or one that is not (any more)."""
    if is_being_deleted(pod) or is_pod_terminal(pod):
        return None
    condition = get_condition(pod, "DisruptionTarget")
    if condition is None or condition["status"] != "True" or condition.get("reason") == "TerminationByKubelet":
        return None
    return parse_optional_time(condition.get("lastTransitionTime")) + STALE_CONDITION_TIMEOUT


def new_status(budget: Object, expected: Expected, healthy: int, disrupted: dict[str, str], now: datetime) -> Object:
    """The status for so many healthy pods (``updatePdbStatus``). A budget that expects no pods allows nothing."""
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    status: Object = {"currentHealthy": healthy, "desiredHealthy": expected.healthy, "disruptionsAllowed": allowed,
                      "expectedPods": expected.pods, "observedGeneration": budget["metadata"].get("generation", 0)}
    if disrupted:
        status["disruptedPods"] = disrupted
    reason = "SufficientPods" if allowed else "InsufficientPods"
    status["conditions"] = _conditions(budget, "True" if allowed else "False", reason, "",
                                       status["observedGeneration"], now)
    return status


def failed_status(budget: Object, why: str, now: datetime) -> Object:
    """The status of a budget that cannot be judged (``failSafe``)."""
    status = budget.get("status") or {}
    conditions = _conditions(budget, "False", "SyncFailed", why, status.get("observedGeneration", 0), now)
    return {**status, "disruptionsAllowed": 0, "conditions": conditions}


def _conditions(budget: Object, verdict: str, reason: str, message: str, generation: int,
                now: datetime) -> list[Object]:
    conditions = list((budget.get("status") or {}).get("conditions") or [])
    condition: Object = {"type": "DisruptionAllowed", "status": verdict, "reason": reason, "message": message}
    if generation:
        condition["observedGeneration"] = generation
    set_condition(conditions, condition, now)
    return conditions
