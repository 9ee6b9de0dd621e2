"""Making room: which pods of lower priority would have to go for a pod to fit (``framework/preemption``).

:func:`preempt` decides; the scheduler deletes the victims and notes the node that the pod now waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.api.meta import Object, is_being_deleted
from kubepy.api.objects.pods import get_condition
from kubepy.api.selectors import from_label_selector
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.fit import Cycle, Diagnosis, fit_message
from kubepy.scheduler.framework import Rejection

BUDGETS = "poddisruptionbudgets.policy"
NO_CLAIMS = "no new claims to deallocate"  # what the DynamicResources plugin adds to every message
NOT_HELPFUL = Rejection(("Preemption is not helpful for scheduling",), False)
NO_VICTIMS = Rejection(("No preemption victims found for incoming pod",), False)
MIN_CANDIDATES, CANDIDATES_PERCENTAGE = 100, 10
PREEMPTED = "PreemptionByScheduler"


class Candidate(NamedTuple):
    """A node that fits once the victims, most important first, are gone."""

    node: str
    victims: list[PodInfo]
    violations: int  # victims whose disruption budget does not allow it


class Preemption(NamedTuple):
    """What becomes of it. ``nominate``: set the pod's nominated node, to the candidate's or to none."""

    message: str
    candidate: Candidate | None = None
    nominate: bool = False


def preempt(cycle: Cycle, diagnosis: Diagnosis) -> Preemption:
    """What to do for a pod that fits nowhere (``Evaluator.Preempt``), and what to say when it is nothing."""
    if diagnosis.pre_filter:
        return Preemption("not found")  # upstream's DynamicResources plugin fails on a pod turned away before its turn
    cache = cycle.view.cache
    if why := _ineligible(cycle, diagnosis):
        return Preemption(f"{NO_CLAIMS}, preemption: {why}")
    potential = [info for info in cache.nodes() if diagnosis.of(info.name).resolvable]
    budgets = cycle.view.informers.list(BUDGETS) if potential else []
    candidates, rejections = _dry_run(cycle, potential, budgets)
    if not candidates:
        failed = Diagnosis(nodes=rejections, absent=NOT_HELPFUL)
        return Preemption(f"{NO_CLAIMS}, preemption: {fit_message(len(cache.nodes()), failed, '')}", nominate=True)
    best = min(candidates, key=_cost)
    return Preemption("", best, nominate=True)


def _ineligible(cycle: Cycle, diagnosis: Diagnosis) -> str:
    pod = cycle.pod
    if pod.spec.get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = (pod.pod.get("status") or {}).get("nominatedNodeName", "")
    if not nominated or not diagnosis.of(nominated).resolvable:
        return ""
    info = cycle.view.cache.get(nominated)
    leaving = [] if info is None else [one for one in info.pods.values() if one.priority < pod.priority]
    if any(_is_leaving(one.pod) for one in leaving):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _is_leaving(pod: Object) -> bool:
    if not is_being_deleted(pod):
        return False
    condition = get_condition(pod, "DisruptionTarget")
    return condition is not None and condition["status"] == "True" and condition.get("reason") == PREEMPTED


def _dry_run(
    cycle: Cycle, nodes: Sequence[NodeInfo], budgets: Sequence[Object]
) -> tuple[list[Candidate], dict[str, Rejection]]:
    """Try node after node until there are enough candidates, one of which breaks no budget."""
    enough = min(max(len(nodes) * CANDIDATES_PERCENTAGE // 100, MIN_CANDIDATES), len(nodes))
    candidates: list[Candidate] = []
    rejections: dict[str, Rejection] = {}
    for info in nodes:
        found = _select_victims(cycle.clone(), info.copy(), budgets)
        if isinstance(found, Rejection):
            rejections[info.name] = found
            continue
        candidates.append(found)
        if len(candidates) >= enough and any(not one.violations for one in candidates):
            break
    return candidates, rejections


def _select_victims(cycle: Cycle, info: NodeInfo, budgets: Sequence[Object]) -> Candidate | Rejection:
    """Take off all pods of lower priority, and put back as many as the pod can do with (``SelectVictimsOnNode``)."""
    lower = sorted((one for one in info.pods.values() if one.priority < cycle.pod.priority), key=_importance)
    if not lower:
        return NO_VICTIMS
    for one in lower:
        _take_off(cycle, info, one)
    if (rejection := cycle.rejection_with_nominated(info)) is not None:
        return rejection
    violating, others = _split_by_budget(lower, budgets)
    broken = [one for one in violating if not _reprieve(cycle, info, one)]
    victims = broken + [one for one in others if not _reprieve(cycle, info, one)]
    return Candidate(info.name, sorted(victims, key=_importance), len(broken)) if victims else NO_VICTIMS


def _take_off(cycle: Cycle, info: NodeInfo, pod: PodInfo) -> None:
    info.remove(pod.key)
    cycle.update(pod, info, -1)


def _reprieve(cycle: Cycle, info: NodeInfo, pod: PodInfo) -> bool:
    """Put a pod back if the incoming one still fits then."""
    info.add(pod)
    cycle.update(pod, info, 1)
    if cycle.rejection_with_nominated(info) is None:
        return True
    _take_off(cycle, info, pod)
    return False


def _importance(pod: PodInfo) -> tuple[int, str, str]:
    """Higher priority first, then the pod that started earlier (``MoreImportantPod``)."""
    return -pod.priority, _start_time(pod), pod.key.name


def _start_time(pod: PodInfo) -> str:
    return str((pod.pod.get("status") or {}).get("startTime") or "9999")  # what has not started counts as newest


def _split_by_budget(pods: Iterable[PodInfo], budgets: Sequence[Object]) -> tuple[list[PodInfo], list[PodInfo]]:
    """The pods whose deletion breaks a budget, each counting against it, and the others."""
    left = [(one.get("status") or {}).get("disruptionsAllowed", 0) for one in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        broken = False
        for index, budget in enumerate(budgets):
            if _guards(budget, pod):
                left[index] -= 1
                broken = broken or left[index] < 0
        (violating if broken else others).append(pod)
    return violating, others


def _guards(budget: Mapping[str, Any], pod: PodInfo) -> bool:
    if budget["metadata"]["namespace"] != pod.namespace or not pod.labels:
        return False
    selector = from_label_selector(budget["spec"].get("selector"))
    if selector.is_empty() or not selector.matches(pod.labels):
        return False
    return pod.key.name not in ((budget.get("status") or {}).get("disruptedPods") or {})


def _cost(candidate: Candidate) -> tuple[Any, ...]:
    """Upstream's order of preference, cheapest first (``pickOneNodeForPreemption``); ties by name."""
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min((_start_time(one) for one in victims if one.priority == highest), default="")
    latest_first = tuple(-ord(letter) for letter in earliest)
    total = sum(one.priority + 2**31 for one in victims)
    return candidate.violations, highest, total, len(victims), latest_first, candidate.node
