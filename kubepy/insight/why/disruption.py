"""Nodes that are not ready, and nodes, budgets and pods where a PodDisruptionBudget is in the way
of a drain.

A cordoned node is done when nothing keeps its pods from being evicted, so that a drain would end. A
budget is done when enough of its pods are healthy and it keeps no pod on a cordoned node. A dry run
asks the API about each eviction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.clock import format_time
from kubepy.api.errors import Status, TooManyRequests
from kubepy.api.meta import (
    Object,
    annotations_of,
    controller_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    status_of,
)
from kubepy.api.objects.nodes import (
    DOWN_UNTIL,
    down_until,
    is_down,
    is_node_ready,
    is_unschedulable,
)
from kubepy.api.objects.outcomes import OUTCOME
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal, node_name
from kubepy.api.selectors import SelectorError, from_label_selector
from kubepy.api.values.gonumbers import scaled_value
from kubepy.apiserver.request import DeleteOptions
from kubepy.insight.why.deletions import top_owner
from kubepy.insight.why.jobs import patch
from kubepy.insight.why.scene import condition_status, plural

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

BUDGETS = "poddisruptionbudgets.policy"
NODES = "nodes"
PODS = "pods"
MIRROR = "kubernetes.io/config.mirror"
CAUSE = "disruption-budget"
MOST_MORE = 1000  # pods that a remedy adds


# --- nodes ----------------------------------------------------------------------------------------


def node_not_ready(scene: Scene, node: Object) -> Finding | None:
    """Diagnose a node whose kubelet reports that it is not ready, or reports nothing."""
    if is_node_ready(node) and not is_down(node, scene.now):
        return None
    status = condition_status(node, "Ready")
    name = name_of(node)
    if status == "False":
        text = "its kubelet says that it is not ready"
    else:
        text = "its kubelet does not report"

    link = scene.condition_link(node, "Ready", text)
    if (until := down_until(node)) is not None:
        annotation = scene.link(
            node,
            f"metadata.annotations['{DOWN_UNTIL}']",
            f"its kubelet is down until {format_time(until)}",
        )
        return scene.finding(
            "node-not-ready",
            link,
            annotation,
            remedies=[("annotate", "node", name, f"{DOWN_UNTIL}-")],
        )

    if OUTCOME in annotations_of(node):
        annotation = scene.link(
            node, f"metadata.annotations['{OUTCOME}']", "this keeps it from becoming ready"
        )
        return scene.finding(
            "node-not-ready", link, annotation, remedies=[("annotate", "node", name, f"{OUTCOME}-")]
        )

    return scene.finding("node-not-ready", link)


def kept_pods(scene: Scene, node: Object) -> list[Object]:
    """Return the pods of a node that a drain would evict and may not."""
    return [
        pod
        for pod in scene.list(PODS)
        if node_name(pod) == name_of(node) and is_drained(pod) and refusal(scene, pod) is not None
    ]


def is_drained(pod: Object) -> bool:
    """Return whether a drain evicts such a pod: it is not a DaemonSet's, not a static one, and has
    not ended."""
    owner = (controller_of(pod) or {}).get("kind")
    return not (
        owner == "DaemonSet"
        or MIRROR in annotations_of(pod)
        or is_pod_terminal(pod)
        or is_being_deleted(pod)
    )


def refusal(scene: Scene, pod: Object) -> Status | None:
    """Return why a pod may not be evicted for a budget; None if it may."""
    if not budgets_of(scene, pod):
        return None
    try:
        scene.client.evict(
            name_of(pod), namespace=namespace_of(pod), options=DeleteOptions(dry_run=True)
        )
    except Status as error:
        return error
    return None


def budgets_of(scene: Scene, pod: Object) -> list[Object]:
    """Return the budgets that cover a pod."""
    return [budget for budget in scene.list(BUDGETS, namespace_of(pod)) if covers(budget, pod)]


def covers(budget: Object, pod: Object) -> bool:
    try:
        return from_label_selector(budget["spec"].get("selector")).matches(labels_of(pod))
    except SelectorError:
        return False


def drain_blocked(scene: Scene, node: Object) -> Finding | None:
    """Diagnose a cordoned node with pods that a budget keeps."""
    if not is_node_ready(node) or is_down(node, scene.now) or not is_unschedulable(node):
        return None
    if not (kept := kept_pods(scene, node)):
        return None
    names = ", ".join(f"{namespace_of(pod)}/{name_of(pod)}" for pod in kept[:5])
    link = scene.link(
        node,
        "spec.unschedulable",
        f"it is cordoned, and a drain cannot evict {names}"
        + (f" and {len(kept) - 5} more" if len(kept) > 5 else ""),
    )
    finding = kept_by_budget(scene, kept[0])
    return scene.finding(
        CAUSE, link, *finding.chain, remedies=(*finding.remedies, ("uncordon", name_of(node)))
    )


def note_cordoned(scene: Scene, node: Object) -> Finding | None:
    """Say about a node that is ready that no further pod is bound to it."""
    if not is_unschedulable(node):
        return None
    left = sum(node_name(pod) == name_of(node) and is_drained(pod) for pod in scene.list(PODS))
    text = "it is cordoned: no further pod is bound to it" + (
        f"; {plural(left, 'pod')} that a drain would evict {'is' if left == 1 else 'are'} there"
        if left
        else ""
    )
    return scene.finding(
        "cordoned",
        scene.link(node, "spec.unschedulable", text),
        remedies=[("uncordon", name_of(node))],
    )


def node_is_done(scene: Scene, node: Object) -> bool:
    """Return whether a node is ready, and if it is cordoned, a drain of it would end."""
    return (
        is_node_ready(node)
        and not is_down(node, scene.now)
        and not (is_unschedulable(node) and kept_pods(scene, node))
    )


# --- budgets --------------------------------------------------------------------------------------


def kept_by_budget(scene: Scene, pod: Object) -> Finding:
    """Return the finding about a pod that may not be evicted."""
    budgets = budgets_of(scene, pod)
    if len(budgets) > 1:
        text = f"{len(budgets)} budgets cover it, and then no eviction is allowed"
        chain = [scene.link(budget, "spec.selector", "it covers the pod") for budget in budgets]
        return scene.finding(
            CAUSE,
            scene.link(pod, "metadata.labels", text),
            *chain,
            remedies=[scene.command(budget, "delete", scene.word(budget)) for budget in budgets],
        )
    link = scene.link(pod, "metadata.labels", f"the budget {name_of(budgets[0])} covers it")
    return scene.lead(strict_budget(scene, budgets[0], pod), link)


def strict_budget(
    scene: Scene, budget: Object, pod: Object | None = None, *, is_note: bool = False
) -> Finding:
    """Return the finding about a budget that allows no eviction, with a pod that is not healthy, if
    there is one.

    :param is_note: nobody wants to evict anything: the budget alone is described.
    """
    status = status_of(budget)
    healthy, needed, expected = (
        status.get(name) or 0 for name in ("currentHealthy", "desiredHealthy", "expectedPods")
    )
    allowed = get_message(budget)
    if allowed:
        link = scene.condition_link(
            budget,
            "DisruptionAllowed",
            "it allows no eviction, as its pods cannot be counted",
            "message",
        )
        return scene.finding(
            CAUSE, link, remedies=[scene.command(budget, "delete", scene.word(budget))]
        )

    link = scene.link(
        budget,
        "status.disruptionsAllowed",
        f"it needs {plural(needed, 'healthy pod')} and has {healthy}",
    )
    pods = [other for other in scene.list(PODS, namespace_of(budget)) if covers(budget, other)]
    alone = [other for other in pods if controller_of(other) is None]
    if alone and not isinstance(budget["spec"].get("minAvailable"), int):
        text = "it has no controller, and only an integer in minAvailable counts such pods"
        return scene.finding(
            CAUSE,
            link,
            scene.link(alone[0], "metadata.ownerReferences", text),
            remedies=[
                patch(scene, budget, {"maxUnavailable": None, "minAvailable": max(healthy - 1, 0)})
            ],
        )

    unhealthy = [other for other in pods if not is_pod_ready(other)]
    leaf = scene.diagnose_any(unhealthy) if healthy < expected and not is_note else None
    chain, remedies = (leaf.chain, leaf.remedies) if leaf is not None else ((), ())
    return scene.finding(
        CAUSE,
        link,
        *chain,
        remedies=[
            *remedies,
            *looser_budgets(scene, budget, pod),
            *larger_workloads(scene, budget, pods),
        ],
    )


def get_message(budget: Object) -> str:
    """Return why the status of a budget cannot be calculated; "" if it can."""
    return next(
        (
            condition.get("message", "")
            for condition in nested_list(budget, "status", "conditions")
            if condition.get("reason") == "SyncFailed"
        ),
        "",
    )


def looser_budgets(scene: Scene, budget: Object, pod: Object | None) -> list[Words]:
    """Return the commands after which a budget allows an eviction."""
    spec = budget["spec"]
    status = status_of(budget)
    healthy = status.get("currentHealthy") or 0
    expected = status.get("expectedPods") or 0
    commands = []
    if pod is not None and not is_pod_ready(pod):
        commands.append(patch(scene, budget, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}))
    if spec.get("maxUnavailable") is not None:
        commands.append(patch(scene, budget, {"maxUnavailable": max(expected - healthy, 0) + 1}))
    elif healthy:
        commands.append(patch(scene, budget, {"minAvailable": healthy - 1}))
    return commands


def larger_workloads(scene: Scene, budget: Object, pods: list[Object]) -> list[Words]:
    """Return the command that scales up the workload of a budget's pods so that one may be evicted,
    if that helps."""
    owners = {
        scene.key(owner): owner for pod in pods if (owner := top_owner(scene, pod)) is not None
    }
    owner = next(iter(owners.values()), None)
    if (
        len(owners) != 1
        or owner is None
        or not isinstance(owner.get("spec", {}).get("replicas"), int)
    ):
        return []

    replicas: int = owner["spec"]["replicas"]
    for size in range(replicas + 1, min(2 * replicas, replicas + MOST_MORE) + 12):
        if allowed_of(budget["spec"], size) > 0:
            return [scene.command(owner, "scale", scene.word(owner), f"--replicas={size}")]
    return []


def allowed_of(spec: Object, size: int) -> int:
    """Return how many of so many healthy pods a budget allows to evict."""
    if spec.get("maxUnavailable") is not None:
        return scaled_value(spec["maxUnavailable"], size, round_up=True)
    return size - scaled_value(spec.get("minAvailable") or 0, size, round_up=True)


def budget(scene: Scene, obj: Object) -> Finding | None:
    """Diagnose a budget: it has too few healthy pods, or keeps pods on a cordoned node."""
    if budget_is_done(scene, obj):
        return None
    if (place := cordoned_pod(scene, obj)) is not None:
        pod, node = place
        finding = kept_by_budget(scene, pod)
        text = f"the pod may not be evicted from {name_of(node)}, which is cordoned"
        return scene.finding(
            CAUSE,
            *finding.chain[1:],
            scene.link(pod, "spec.nodeName", text),
            remedies=(*finding.remedies, ("uncordon", name_of(node))),
        )
    return strict_budget(scene, obj)


def cordoned_pod(scene: Scene, budget: Object) -> tuple[Object, Object] | None:
    """Return a pod that a budget keeps on a cordoned node, with the node."""
    cordoned = {name_of(node): node for node in scene.list(NODES) if is_unschedulable(node)}
    for pod in scene.list(PODS, namespace_of(budget)) if cordoned else ():
        node = cordoned.get(node_name(pod))
        if (
            node is not None
            and covers(budget, pod)
            and is_drained(pod)
            and refusal(scene, pod) is not None
        ):
            return pod, node
    return None


def note_strict_budget(scene: Scene, obj: Object) -> Finding | None:
    """Say about a budget that it allows no eviction though its pods are healthy."""
    status = status_of(obj)
    if status.get("disruptionsAllowed") or not status.get("expectedPods"):
        return None
    return strict_budget(scene, obj, is_note=True)


def budget_is_done(scene: Scene, obj: Object) -> bool:
    """Return whether a budget counts its pods, has enough healthy ones, and keeps none on a
    cordoned node."""
    status = status_of(obj)
    observed = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
    is_healthy = (status.get("currentHealthy") or 0) >= (status.get("desiredHealthy") or 0)
    # A budget with minAvailable and no pods protects nothing.
    has_enough = is_healthy or not status.get("expectedPods")
    return observed and not get_message(obj) and has_enough and cordoned_pod(scene, obj) is None


def note_kept_pod(scene: Scene, pod: Object) -> Finding | None:
    """Say about a pod that is ready that a drain of its node, which is cordoned, cannot evict
    it."""
    node = scene.get(NODES, "", node_name(pod))
    if node is None or not is_unschedulable(node) or not is_drained(pod):
        return None
    if not isinstance(refusal(scene, pod), TooManyRequests):
        return None
    finding = kept_by_budget(scene, pod)
    text = f"{name_of(node)} is cordoned, and a drain cannot evict it"
    return scene.lead(finding, scene.link(pod, "spec.nodeName", text))


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    NODES: (drain_blocked,),
    BUDGETS: (budget,),
}
LAST_DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {NODES: (node_not_ready,)}
NOTES: dict[str, tuple[Diagnosis, ...]] = {
    NODES: (note_cordoned,),
    BUDGETS: (note_strict_budget,),
    PODS: (note_kept_pod,),
}
