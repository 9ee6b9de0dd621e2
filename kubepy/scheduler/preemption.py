"""Preemption: the pods of lower priority that would have to go for a pod to fit
(``framework/preemption``).

:func:`preempt` decides; the scheduler deletes the victims and writes the nominated node, for which
the pod then waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import Object, is_being_deleted
from kubepy.api.objects.pods import get_condition
from kubepy.api.selectors import from_label_selector
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import PluginStatus
from kubepy.scheduler.schedule_one import CycleState, Diagnosis, fit_error_message

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

BUDGETS = "poddisruptionbudgets.policy"
NO_CLAIMS = "no new claims to deallocate"  # the DynamicResources plugin adds this to every message
NOT_HELPFUL = PluginStatus(("Preemption is not helpful for scheduling",), False)
NO_VICTIMS = PluginStatus(("No preemption victims found for incoming pod",), False)
MIN_CANDIDATE_NODES = 100
MIN_CANDIDATE_NODES_PERCENTAGE = 10
PREEMPTED = "PreemptionByScheduler"


class Candidate(NamedTuple):
    """A node on which the pod fits once the victims, most important first, are deleted."""

    node: str
    victims: list[PodInfo]
    violations: int  # victims whose disruption budget does not allow it


class PostFilterResult(NamedTuple):
    """The outcome of preemption. ``nominate``: set the pod's nominated node, to the candidate's or
    to none."""

    message: str
    candidate: Candidate | None = None
    nominate: bool = False


def preempt(cycle: CycleState, diagnosis: Diagnosis) -> PostFilterResult:
    """Decide what to do for a pod that fits nowhere, or say why nothing can be done
    (``Evaluator.Preempt``)."""
    if diagnosis.pre_filter_message:
        # Upstream's DynamicResources plugin fails on a pod that was rejected before its turn.
        return PostFilterResult("not found")
    cache = cycle.handle.cache
    reason = _why_not_eligible(cycle, diagnosis)
    if reason:
        return PostFilterResult(f"{NO_CLAIMS}, preemption: {reason}")
    potential = [
        node_info for node_info in cache.nodes() if diagnosis.status_of(node_info.name).resolvable
    ]
    budgets = cycle.handle.informers.list(BUDGETS) if potential else []
    candidates, node_to_status = _dry_run(cycle, potential, budgets)
    if not candidates:
        failed = Diagnosis(node_to_status, absent_nodes_status=NOT_HELPFUL)
        message = f"{NO_CLAIMS}, preemption: {fit_error_message(len(cache.nodes()), failed, '')}"
        return PostFilterResult(message, nominate=True)

    return PostFilterResult("", min(candidates, key=_preference), nominate=True)


def _why_not_eligible(cycle: CycleState, diagnosis: Diagnosis) -> str:
    """Say why the pod may not preempt others, or "" (``PodEligibleToPreemptOthers``)."""
    pod = cycle.pod
    if pod.spec.get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    status = pod.pod.get("status") or {}
    nominated = status.get("nominatedNodeName", "")
    if not nominated or not diagnosis.status_of(nominated).resolvable:
        return ""
    node_info = cycle.handle.cache.get(nominated)
    if node_info is None:
        return ""
    for other in node_info.pods.values():
        if other.priority < pod.priority and _is_being_preempted(other.pod):
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def _is_being_preempted(pod: Pod) -> bool:
    if not is_being_deleted(pod):
        return False
    condition = get_condition(pod, "DisruptionTarget")
    if condition is None:
        return False
    if condition["status"] != "True":
        return False
    return condition.get("reason") == PREEMPTED


def _dry_run(
    cycle: CycleState, nodes: Sequence[NodeInfo], budgets: Sequence[Object]
) -> tuple[list[Candidate], dict[str, PluginStatus]]:
    """Try node after node until there are enough candidates, at least one of which violates no
    budget."""
    enough = min(
        max(len(nodes) * MIN_CANDIDATE_NODES_PERCENTAGE // 100, MIN_CANDIDATE_NODES), len(nodes)
    )
    candidates: list[Candidate] = []
    node_to_status: dict[str, PluginStatus] = {}
    for node_info in nodes:
        result = _select_victims_on_node(cycle.clone(), node_info.copy(), budgets)
        if isinstance(result, PluginStatus):
            node_to_status[node_info.name] = result
            continue
        candidates.append(result)
        if len(candidates) >= enough and any(not candidate.violations for candidate in candidates):
            break
    return candidates, node_to_status


def _select_victims_on_node(
    cycle: CycleState, node_info: NodeInfo, budgets: Sequence[Object]
) -> Candidate | PluginStatus:
    """Remove all pods of lower priority, then put back those that may stay
    (``SelectVictimsOnNode``)."""

    def remove(pod: PodInfo) -> None:
        node_info.remove(pod.key)
        cycle.update(pod, node_info, -1)

    def reprieve(pod: PodInfo) -> bool:
        """Put a pod back if the incoming one still fits then."""
        node_info.add(pod)
        cycle.update(pod, node_info, 1)
        if cycle.run_filter_plugins_with_nominated_pods(node_info) is None:
            return True
        remove(pod)
        return False

    lower = sorted(
        (pod for pod in node_info.pods.values() if pod.priority < cycle.pod.priority),
        key=_importance,
    )
    if not lower:
        return NO_VICTIMS
    for pod in lower:
        remove(pod)
    status = cycle.run_filter_plugins_with_nominated_pods(node_info)
    if status is not None:
        return status
    violating, others = _split_by_budget(lower, budgets)
    violating_victims = [pod for pod in violating if not reprieve(pod)]
    victims = violating_victims + [pod for pod in others if not reprieve(pod)]
    if not victims:
        return NO_VICTIMS
    return Candidate(node_info.name, sorted(victims, key=_importance), len(violating_victims))


def _importance(pod: PodInfo) -> tuple[int, str, str]:
    """Sort by higher priority, then earlier start (``MoreImportantPod``)."""
    return -pod.priority, _start_time(pod), pod.key.name


def _start_time(pod: PodInfo) -> str:
    status = pod.pod.get("status") or {}
    # a pod that has not started counts as newest
    return str(status.get("startTime") or "9999")


def _split_by_budget(
    pods: Iterable[PodInfo], budgets: Sequence[Object]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split the pods into those whose deletion violates a budget, each counting against it, and the
    others."""
    disruptions_allowed = [
        (budget.get("status") or {}).get("disruptionsAllowed", 0) for budget in budgets
    ]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        is_violating = False
        for index, budget in enumerate(budgets):
            if _covers(budget, pod):
                disruptions_allowed[index] -= 1
                is_violating = is_violating or disruptions_allowed[index] < 0
        (violating if is_violating else others).append(pod)
    return violating, others


def _covers(budget: Mapping[str, Any], pod: PodInfo) -> bool:
    """Tell whether a deletion of the pod counts against the budget; one that it disrupted already
    does not."""
    if budget["metadata"]["namespace"] != pod.namespace or not pod.labels:
        return False
    selector = from_label_selector(budget["spec"].get("selector"))
    if selector.is_empty() or not selector.matches(pod.labels):
        return False
    status = budget.get("status") or {}
    disrupted_pods = status.get("disruptedPods") or {}
    return pod.key.name not in disrupted_pods


def _preference(candidate: Candidate) -> tuple[Any, ...]:
    """Sort by upstream's order of preference (``pickOneNodeForPreemption``); ties by name."""
    victims = candidate.victims
    highest_priority = victims[0].priority
    start_times = [_start_time(pod) for pod in victims if pod.priority == highest_priority]
    earliest = min(start_times, default="")
    latest_first = tuple(-ord(letter) for letter in earliest)
    total_priority = sum(pod.priority + 2**31 for pod in victims)
    return (
        candidate.violations,
        highest_priority,
        total_priority,
        len(victims),
        latest_first,
        candidate.node,
    )
