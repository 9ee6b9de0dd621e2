"""Keeps the status of PodDisruptionBudgets, by which evictions are allowed or refused
(``pkg/controller/disruption``).

The eviction itself is in ``kubepy.apiserver``: it takes one from ``disruptionsAllowed`` and records
the pod in ``disruptedPods`` until this controller sees its deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.clock import parse_optional_time, parse_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    clone,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import get_condition, is_pod_ready, is_pod_terminal, set_condition
from kubepy.api.selectors import SelectorError, from_label_selector, go_label_selector
from kubepy.api.values.gonumbers import scaled_value
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PODS, ResourceClient, TypedResource
from kubepy.runtime.ownwrites import OwnWrites
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import (
        Condition,
        OwnerReference,
        Pod,
        PodCondition,
        PodDisruptionBudget,
        PodDisruptionBudgetStatus,
        PodStatus,
    )

BUDGETS: TypedResource[PodDisruptionBudget] = TypedResource("poddisruptionbudgets.policy")
DELETION_TIMEOUT = timedelta(
    minutes=2
)  # a pod that was evicted and is not being deleted by then will stay
STALE_CONDITION_TIMEOUT = timedelta(minutes=2)  # the same for a DisruptionTarget condition
UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a "
    "result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account "
    "for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class ExpectedPods(NamedTuple):
    """The number of pods that a budget expects, and how many of them must be healthy."""

    pods: int
    healthy: int


class SyncError(Exception):
    """The status of a budget cannot be calculated; until it can, no pod may be evicted."""


class DisruptionController:
    """Reconciles budgets, and pods whose DisruptionTarget condition becomes stale."""

    name = "disruption-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._pods = context.informers.lister(PODS)
        self._budgets = context.informers.lister(BUDGETS)
        self._budget_client = ResourceClient(context.client, BUDGETS)
        self._pod_client = ResourceClient(context.client, PODS)
        self._clock = context.clock
        self._scheme = context.scheme
        self._recorder = Recorder(context.client, "controllermanager")
        self.queue = context.new_queue()
        self._own_writes = OwnWrites(context.informers)

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {BUDGETS: self._budget_changed, PODS: self._pod_changed}

    def _budget_changed(self, event: WatchEvent) -> None:
        """Reconcile a budget that others changed.

        Upstream reconciles it after its own writes as well, but at once, while its pods are
        unchanged. Here all other controllers would have their turn before that, and a budget that
        shares its pods with another one would see changes that upstream's does not: a changed pod
        wakes only one of its budgets.
        """
        if not self._own_writes.observe(event):
            self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        """Reconcile the budget that covers a changed pod now; one that covered it before is not
        woken, as upstream."""
        pod = cast("Pod | None", event.new)
        self.queue.cancel(event.key)
        if pod is not None and (due := stale_condition_due(pod)) is not None:
            self.queue.add_at(event.key, due)
        pod = pod or cast("Pod | None", event.old)
        if pod is None:
            return
        budgets = [
            budget for budget in self._budgets.list(namespace_of(pod)) if _covers(budget, pod)
        ]
        if len(budgets) > 1:
            message = (
                f'Pod "{namespace_of(pod)}"/"{name_of(pod)}" matches multiple '
                f"PodDisruptionBudgets.  "
                f'Chose "{name_of(budgets[0])}" arbitrarily.'
            )
            self._recorder.event(pod, "Warning", "MultiplePodDisruptionBudgets", message)

        for budget in budgets[:1]:
            self.queue.add(Key(BUDGETS, namespace_of(budget), name_of(budget)))

    # --- sync

    def sync(self, key: Key) -> None:
        if key.resource == PODS:
            pod = self._pods.get(key.namespace, key.name)
            now = self._clock.now()
            due = stale_condition_due(pod) if pod is not None else None
            if due is not None and due > now:
                self.queue.add_at(key, due)
            elif pod is not None and due is not None:
                with suppress(NotFound):
                    self._pod_client.update_status(pod, status_without_disruption(pod, now))
            return

        budget = self._budgets.get(key.namespace, key.name)
        if budget is None:
            return
        try:
            self._sync_budget(key, budget)
        except (SyncError, SelectorError, ValueError) as error:
            self._update_status(budget, failed_status(budget, str(error), self._clock.now()))

    def _sync_budget(self, key: Key, budget: PodDisruptionBudget) -> None:
        """Calculate and write the status (``trySync``). Raises SyncError, SelectorError,
        ValueError, Status."""
        try:
            selector = from_label_selector(budget["spec"].get("selector"))
        except SelectorError as error:
            self._recorder.event(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
            raise

        pods = [
            pod for pod in self._pods.list(namespace_of(budget)) if selector.matches(labels_of(pod))
        ]
        if not pods:
            self._recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        expected = self._expected_pods(budget, pods)
        now = self._clock.now()
        disrupted = self._disrupted_pods(budget, pods, now)
        healthy = sum(
            is_pod_ready(pod) and not is_being_deleted(pod) and name_of(pod) not in disrupted
            for pod in pods
        )
        self._update_status(budget, new_status(budget, expected, healthy, disrupted, now))
        if disrupted:
            self.queue.add_at(key, min(map(parse_time, disrupted.values())) + DELETION_TIMEOUT)

    def _update_status(
        self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus
    ) -> None:
        if status != budget.get("status"):
            stored = self._budget_client.update_status(budget, status)
            self._own_writes.note(Key(BUDGETS, namespace_of(budget), name_of(budget)), stored)

    # --- expected pods

    def _expected_pods(self, budget: PodDisruptionBudget, pods: list[Pod]) -> ExpectedPods:
        """Calculate how many pods the budget expects (``getExpectedPodCount``). Raises SyncError,
        ValueError."""
        spec = budget["spec"]
        max_unavailable = spec.get("maxUnavailable")
        min_available = spec.get("minAvailable")
        if max_unavailable is None and min_available is None:
            return ExpectedPods(0, 0)
        if max_unavailable is None and isinstance(min_available, int):
            return ExpectedPods(len(pods), min_available)
        try:
            total = self._expected_scale(budget, pods)
        except SyncError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", message)
            raise

        if max_unavailable is not None:
            return ExpectedPods(
                total, max(0, total - scaled_value(max_unavailable, total, round_up=True))
            )

        return ExpectedPods(total, scaled_value(min_available, total, round_up=True))

    def _expected_scale(self, budget: PodDisruptionBudget, pods: list[Pod]) -> int:
        """Add up the replicas of the controllers of all the pods (``getExpectedScale``). Raises
        SyncError."""
        scales: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
            elif reference["uid"] not in scales:
                scale = self._scale_of(reference, namespace_of(pod))
                if scale is None:
                    raise SyncError(f'found no controllers for pod "{name_of(pod)}"')
                uid, replicas = scale
                scales[uid] = replicas

        if unmanaged:
            message = UNMANAGED.format(go_label_selector(budget["spec"].get("selector")))
            self._recorder.event(budget, "Warning", "UnmanagedPods", message)
        return sum(scales.values())

    def _scale_of(self, reference: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """Return uid and replicas of a controller, or of the Deployment that controls it; None when
        it does not exist.

        Raises SyncError.
        """
        resource = self._scheme.for_kind(reference["apiVersion"], reference["kind"])
        if resource is None:
            raise SyncError(
                f'no matches for kind "{reference["kind"]}" in version "{reference["apiVersion"]}"'
            )

        if "scale" not in resource.subresources:
            raise SyncError(f"{resource.key} does not implement the scale subresource")
        owner = self._informers.get(resource.key, namespace, reference["name"])
        if owner is None or uid_of(owner) != reference["uid"]:
            return None
        deployment = controller_of(owner)
        if (
            resource.key == "replicasets.apps"
            and deployment is not None
            and deployment["kind"] == "Deployment"
        ):
            scale_of_deployment = self._scale_of(deployment, namespace)
            if scale_of_deployment is not None:
                return scale_of_deployment

        scale = self._client.get(
            resource.key, name_of(owner), namespace=namespace, subresource="scale"
        )
        return uid_of(owner), scale["spec"].get("replicas", 0)

    # --- disrupted pods

    def _disrupted_pods(
        self, budget: PodDisruptionBudget, pods: list[Pod], now: datetime
    ) -> dict[str, str]:
        """Return the pods that were evicted and are not being deleted yet, with the time
        (``buildDisruptedPodMap``)."""
        recorded = (budget.get("status") or {}).get("disruptedPods") or {}
        kept = {}
        for pod in pods:
            name = name_of(pod)
            if name not in recorded or is_being_deleted(pod):
                continue
            if parse_time(recorded[name]) + DELETION_TIMEOUT > now:
                kept[name] = recorded[name]
                continue
            namespace = namespace_of(budget)  # upstream names the namespace twice
            message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._recorder.event(pod, "Warning", "NotDeleted", message)
        return kept


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Tell whether the budget selects the pod."""
    try:
        return from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod))
    except SelectorError:
        return False  # as upstream: such a budget has no pods


def stale_condition_due(pod: Pod) -> datetime | None:
    """Return when the pod's DisruptionTarget condition becomes stale; None when it has none that
    can."""
    if is_being_deleted(pod) or is_pod_terminal(pod):
        return None
    condition = get_condition(pod, "DisruptionTarget")
    if (
        condition is None
        or condition["status"] != "True"
        or condition.get("reason") == "TerminationByKubelet"
    ):
        return None
    return parse_optional_time(condition.get("lastTransitionTime")) + STALE_CONDITION_TIMEOUT


def status_without_disruption(pod: Pod, now: datetime) -> PodStatus:
    """Return the status of a pod that was to be disrupted and never was
    (``syncStalePodDisruption``)."""
    status: PodStatus = clone(pod["status"])
    condition: PodCondition = {"type": "DisruptionTarget", "status": "False"}
    generation = pod["metadata"].get("generation")
    if generation:
        condition["observedGeneration"] = generation
    set_condition(status["conditions"], condition, now)
    return status


def new_status(
    budget: PodDisruptionBudget,
    expected: ExpectedPods,
    healthy: int,
    disrupted: dict[str, str],
    now: datetime,
) -> PodDisruptionBudgetStatus:
    """Return the status for so many healthy pods (``updatePdbStatus``); one that expects no pods
    allows nothing."""
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    status: PodDisruptionBudgetStatus = {
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": expected.pods,
        "observedGeneration": budget["metadata"].get("generation", 0),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    condition: Condition = (
        {"status": "True", "reason": "SufficientPods", "message": ""}
        if allowed
        else {"status": "False", "reason": "InsufficientPods", "message": ""}
    )
    status["conditions"] = _with_condition(budget, condition, status["observedGeneration"], now)
    return status


def failed_status(
    budget: PodDisruptionBudget, error: str, now: datetime
) -> PodDisruptionBudgetStatus:
    """Return a status that allows no eviction because of an error (``failSafe``)."""
    status = budget.get("status") or {}
    condition: Condition = {"status": "False", "reason": "SyncFailed", "message": error}
    conditions = _with_condition(budget, condition, status.get("observedGeneration", 0), now)
    return {**status, "disruptionsAllowed": 0, "conditions": conditions}


def _with_condition(
    budget: PodDisruptionBudget, values: Condition, generation: int, now: datetime
) -> list[Condition]:
    """Return the budget's conditions with a new DisruptionAllowed condition."""
    conditions: list[Condition] = [
        {**present} for present in (budget.get("status") or {}).get("conditions") or []
    ]
    condition: Condition = {"type": "DisruptionAllowed", **values}
    if generation:
        condition["observedGeneration"] = generation
    set_condition(conditions, condition, now)
    return conditions
