"""Diagnoses of workloads and of pods that are not ready: the way from a workload down to the pod
that holds it up.

The causes of a pod itself are other modules': a workload's diagnosis picks the pods to blame, and
puts its own link in front of what they say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_exact_time, later, parse_optional_time
from kubepy.api.meta import (
    Object,
    annotations_of,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
    status_of,
    uid_of,
)
from kubepy.api.objects.deployments import new_replica_set, old_replica_sets
from kubepy.api.objects.nodes import (
    DOWN_UNTIL,
    NO_EXECUTE,
    NO_SCHEDULE,
    down_until,
    find_untolerated_taint,
    required_node_affinity_matches,
    taints_of,
)
from kubepy.api.objects.pods import (
    get_condition,
    is_pod_ready,
    is_pod_terminal,
    node_name,
    phase_of,
    pod_ready_time,
)
from kubepy.api.selectors import from_label_selector
from kubepy.controllers.daemonset.placement import daemon_tolerations, node_should_run_daemon_pod
from kubepy.controllers.statefulset.pods import ordinals, parent_name_and_ordinal
from kubepy.insight.why import goals
from kubepy.insight.why.deletions import MOST_MERGED, together
from kubepy.insight.why.goals import count, desired_replicas
from kubepy.insight.why.manifests import new_node
from kubepy.insight.why.remedies import patch_template, tolerate
from kubepy.insight.why.scene import Diagnosis, Scene, Words, condition_status, plural, unready_link
from kubepy.insight.why.scheduling import NOT_TO_RELABEL, ROLE
from kubepy.insight.why.templates import of_earlier_template

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, Node, Pod, StatefulSet
    from kubepy.insight import Finding, Link

# Causes that say only that something is not there yet: a pod with another one is blamed first.
WEAK = frozenset(("min-ready-seconds", "not-ready", "rolling-out", "terminating"))
IN_ORDER = frozenset(
    ("broken-revision", "ordered-behind-broken-pod")
)  # undoing a change does not help
REVISION_HASH = "controller-revision-hash"
UNHEALTHY = "Unhealthy"  # the reason of the kubelet's events about probes
# Reasons of events about a pod whose containers cannot be created yet.
NOT_CREATED = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
READINESS_PROBES = ("Readiness probe", "Startup probe")
LOOKED_AT = 40  # pods that are diagnosed, of those that differ
MOST_REVISIONS = 3  # that are tried beside the one before


# --- pods -----------------------------------------------------------------------------------------


def readiness_gate(scene: Scene, pod: Object) -> Finding | None:
    """Blame a readiness gate whose condition nobody has set to True."""
    if is_being_deleted(pod) or condition_status(pod, "ContainersReady") != "True":
        return None
    for gate in nested_list(pod["spec"], "readinessGates"):
        name = gate["conditionType"]
        if condition_status(pod, name) != "True":
            return scene.finding(
                "readiness-gate",
                scene.condition_link(
                    pod,
                    name,
                    f"its containers are ready, but nobody has set its readiness gate {name} to "
                    f"True",
                ),
                remedies=patch_template(scene, pod, ("remove", ("readinessGates",), None)),
            )

    return None


def not_ready(scene: Scene, pod: Object) -> Finding | None:
    """Say of a pod that runs that it is not ready, and of one without a node that nobody has seen
    it."""
    if goals.pod(scene, pod) or is_pod_terminal(pod) or is_being_deleted(pod):
        return None
    if not node_name(pod):
        return scene.finding("not-ready", scene.link(pod, "spec.nodeName", "it has no node yet"))
    return scene.finding("not-ready", unready_link(scene, pod), *probe_links(scene, pod))


def probe_links(scene: Scene, pod: Object) -> list[Link]:
    """Return what was said last of the probe that keeps a pod from being ready, or of the volumes
    and the network that its containers wait for."""
    for event in reversed(scene.events(pod)):
        message = event.get("message") or ""
        reason = event.get("reason")
        if reason == UNHEALTHY and message.startswith(READINESS_PROBES):
            return [scene.link(pod, "", f"the kubelet says: {message.strip()}")]
        if reason in NOT_CREATED and phase_of(pod) == "Pending":
            return [scene.link(pod, "", f"{reason}: {message.strip()}")]
    return []


def appearance(scene: Scene, pod: Object) -> tuple[object, ...]:
    """Return what tells the state of a pod from those of others: pods that look alike have the same
    cause."""
    status = status_of(pod)
    reasons = [
        (state.get("waiting") or state.get("terminated") or {}).get("reason")
        for name in ("initContainerStatuses", "containerStatuses")
        for container in status.get(name) or ()
        for state in (nested_map(container, "state"),)
    ]
    conditions = [
        (condition["type"], condition.get("status"), condition.get("reason"))
        for condition in nested_list(status, "conditions")
    ]
    node = scene.get("nodes", "", node_name(pod)) if is_being_deleted(pod) else None
    labels = labels_of(pod)
    return (
        labels.get("pod-template-hash"),
        labels.get(REVISION_HASH),
        is_being_deleted(pod),
        status.get("phase"),
        status.get("reason"),
        tuple(reasons),
        tuple(conditions),
        pod["metadata"].get("finalizers") and True,
        condition_status(node, "Ready") if node else "",
    )


def blame(scene: Scene, pods: Iterable[Object]) -> Finding | None:
    """Return the finding about the pod that is most to blame: the first one with a cause of its
    own."""
    different: dict[tuple[object, ...], list[Object]] = {}
    for pod in pods:
        if not _is_done(scene, pod):
            different.setdefault(appearance(scene, pod), []).append(pod)
    findings = [
        finding
        for alike in list(different.values())[:LOOKED_AT]
        if (finding := _finding_about(scene, alike)) is not None
    ]
    return next(
        (finding for finding in findings if finding.cause not in WEAK), next(iter(findings), None)
    )


def _finding_about(scene: Scene, alike: list[Object]) -> Finding | None:
    """Return the finding about the first of some pods that look alike; remedies of pods that do not
    go are for all."""
    findings = [
        scene.diagnose(pod) for pod in alike[: MOST_MERGED if is_being_deleted(alike[0]) else 1]
    ]
    if all(findings):
        return together([finding for finding in findings if finding is not None])
    return findings[0]


def _is_done(scene: Scene, pod: Object) -> bool:
    return not is_being_deleted(pod) and goals.pod(scene, pod)


def waits_for_min_ready_seconds(
    scene: Scene, obj: Object, pods: Iterable[Object]
) -> Finding | None:
    """Say which pod of a workload becomes available last."""
    seconds = int(obj["spec"].get("minReadySeconds") or 0)
    times = [
        (since, pod)
        for pod in pods
        if (since := pod_ready_time(pod)) and later(since, seconds) > scene.now
    ]
    if not seconds or not times:
        return None
    since, pod = max(times, key=lambda entry: entry[0])
    ready = scene.condition_link(
        pod,
        "Ready",
        f"it is ready, and available at {format_exact_time(later(since, seconds))}",
        "lastTransitionTime",
    )
    return scene.finding(
        "min-ready-seconds",
        scene.link(
            obj,
            "spec.minReadySeconds",
            f"a pod counts as available when it has been ready for {seconds} s",
        ),
        ready,
    )


# --- all workloads --------------------------------------------------------------------------------


def shares_pods(scene: Scene, obj: Object) -> Finding | None:
    """Say of a workload that is done that its selector also chooses pods of another one."""
    selector = from_label_selector(obj["spec"].get("selector"))
    own = {uid_of(obj), *(uid_of(child) for child in scene.owned(obj, "replicasets.apps"))}
    for pod in scene.list("pods", namespace_of(obj)):
        controller = controller_of(pod)
        if controller and controller["uid"] not in own and selector.matches(labels_of(pod)):
            owner = f"{controller['kind'].lower()}/{controller['name']}"
            return scene.finding(
                "selector-conflict",
                scene.link(obj, "spec.selector", f"its selector also chooses pods of {owner}"),
                scene.link(pod, "metadata.ownerReferences", f"it belongs to {owner}"),
            )
    return None


def undo(scene: Scene, obj: Object) -> list[Words]:
    """Return the command that goes back to the revision before, where there is one."""
    if len(revisions_of(scene, obj)) > 1:
        return [scene.command(obj, "rollout", "undo", scene.word(obj))]
    return []


def undo_further(scene: Scene, obj: Object) -> list[Words]:
    """Return the commands that go back to earlier revisions than the one before: first to one that
    has pods which are ready, then to the latest ones."""
    earlier = revisions_of(scene, obj)[2:]
    earlier.sort(key=lambda revision: (not ready_pods(scene, obj, revision), -number_of(revision)))
    return [
        scene.command(
            obj, "rollout", "undo", scene.word(obj), f"--to-revision={number_of(revision)}"
        )
        for revision in earlier[:MOST_REVISIONS]
    ]


def revisions_of(scene: Scene, obj: Object) -> list[Object]:
    """Return the ReplicaSets or ControllerRevisions of a workload, the newest first."""
    resource = "replicasets.apps" if obj["kind"] == "Deployment" else "controllerrevisions.apps"
    return sorted(scene.owned(obj, resource), key=number_of, reverse=True)


def number_of(revision: Object) -> int:
    """Return the number of a revision, as ``rollout history`` shows it."""
    if revision["kind"] == "ReplicaSet":
        return int(annotations_of(revision).get("deployment.kubernetes.io/revision") or 0)
    return int(revision.get("revision") or 0)


def ready_pods(scene: Scene, obj: Object, revision: Object) -> int:
    """Return how many pods of a revision are ready."""
    if revision["kind"] == "ReplicaSet":
        return count(revision, "readyReplicas")
    wanted = labels_of(revision).get(REVISION_HASH) or name_of(revision)
    return sum(
        is_pod_ready(pod)
        for pod in scene.owned(obj, "pods")
        if labels_of(pod).get(REVISION_HASH) == wanted
    )


def held_up(
    scene: Scene, obj: Object, link: Link, finding: Finding, *, surges: bool = False
) -> Finding:
    """Put a workload's link in front of what holds it up, with the undo of its last change.

    :param surges: old pods stay until new ones are available.
    """
    progressing = get_condition(obj, "Progressing") or {}
    since = parse_optional_time(progressing.get("lastTransitionTime"))
    if finding.cause in WEAK and progressing.get("status") == "False" and since <= scene.asked_at:
        late = scene.condition_link(
            obj,
            "Progressing",
            "no progress within progressDeadlineSeconds "
            f"({obj['spec'].get('progressDeadlineSeconds', 600)} s)",
            "reason",
        )
        return scene.lead(
            finding._replace(cause="progress-deadline-exceeded"),
            late,
            undo(scene, obj),
            undo_further(scene, obj),
        )

    if finding.cause == "not-ready" and surges and not scene.is_stuck:
        finding = finding._replace(cause="surge-waits")
    elif finding.cause == "terminating":
        finding = finding._replace(cause="rolling-out")

    return scene.lead(finding, link, undo(scene, obj), undo_further(scene, obj))


# --- Deployments and ReplicaSets ------------------------------------------------------------------


def paused(scene: Scene, deployment: Object) -> Finding | None:
    """Blame a pause, if there is something to roll out."""
    newest = new_replica_set(deployment, scene.owned(deployment, "replicasets.apps"))
    is_new = newest is not None and desired_replicas(newest) >= desired_replicas(deployment)
    if not deployment["spec"].get("paused") or is_new or goals.deployment(scene, deployment):
        return None
    updated = desired_replicas(newest) if newest else 0
    desired = desired_replicas(deployment)
    return scene.finding(
        "paused",
        scene.link(
            deployment,
            "spec.paused",
            f"{updated} of {plural(desired, 'replica')} {'has' if updated == 1 else 'have'} "
            "the new template, and a paused Deployment makes no more",
        ),
        remedies=[scene.command(deployment, "rollout", "resume", scene.word(deployment))],
    )


def deployment(scene: Scene, obj: Object) -> Finding | None:
    """Blame the new ReplicaSet, or pods of the old ones that do not go."""
    if goals.deployment(scene, obj):
        return None
    replica_sets = scene.owned(obj, "replicasets.apps")
    newest = new_replica_set(obj, replica_sets)
    old = old_replica_sets(obj, replica_sets)
    desired = desired_replicas(obj)
    updated = count(obj, "updatedReplicas")
    available = count(obj, "availableReplicas")
    finding = scene.diagnose(newest) if newest is not None else None
    if finding is None or finding.cause in WEAK:
        leaving = [
            pod
            for rs in (*old, *([newest] if newest else []))
            for pod in scene.owned(rs, "pods")
            if is_being_deleted(pod)
        ]
        finding = (
            blame(scene, leaving)
            or finding
            or scene.diagnose_any(rs for rs in old if not goals.replica_set(scene, rs))
        )

    if finding is None:
        return waits_for_min_ready_seconds(
            scene, obj, scene.owned(newest, "pods") if newest else []
        )

    surges = any(desired_replicas(rs) for rs in old) and available >= desired
    if updated < desired:
        link = scene.link(
            obj, "status.updatedReplicas", f"{updated} of {plural(desired, 'replica')} updated"
        )
    elif available < desired:
        link = scene.link(
            obj,
            "status.availableReplicas",
            f"{available} of {plural(desired, 'replica')} available",
        )
    else:
        left = plural(count(obj, "replicas") - updated, "old replica")
        link = scene.link(obj, "status.replicas", f"all replicas updated, {left} still there")

    return held_up(scene, obj, link, finding, surges=surges)


def replica_set(scene: Scene, obj: Object) -> Finding | None:
    """Blame the pods of a ReplicaSet or ReplicationController."""
    if goals.replica_set(scene, obj):
        return None
    pods = scene.owned(obj, "pods")
    desired = desired_replicas(obj)
    finding = (
        of_earlier_template(scene, obj)
        or blame(scene, pods)
        or waits_for_min_ready_seconds(scene, obj, pods)
    )
    if finding is None:
        return None
    ready = count(obj, "availableReplicas")
    return scene.lead(
        finding,
        scene.link(
            obj, "status.availableReplicas", f"{ready} of {plural(desired, 'pod')} available"
        ),
    )


# --- DaemonSets -----------------------------------------------------------------------------------


def on_delete(scene: Scene, obj: Object) -> Finding | None:
    """Blame updateStrategy OnDelete, where pods are healthy but old."""
    if nested_map(obj["spec"], "updateStrategy").get("type") != "OnDelete" or goals.is_done(
        scene, obj, obj
    ):
        return None

    field = (
        "status.updatedNumberScheduled" if obj["kind"] == "DaemonSet" else "status.updatedReplicas"
    )
    desired = desired_replicas(obj)
    updated = count(obj, field.removeprefix("status."))
    old = [pod for pod in scene.owned(obj, "pods") if not is_new(scene, obj, pod)]
    if updated >= desired or not old:
        return None
    names = sorted(name_of(pod) for pod in old)
    return scene.finding(
        "on-delete",
        scene.link(obj, field, f"{updated} of {plural(desired, 'pod')} updated"),
        scene.link(
            obj, "spec.updateStrategy.type", "it leaves old pods alone until somebody deletes them"
        ),
        scene.link(old[0], f"metadata.labels['{REVISION_HASH}']", "it has an old revision"),
        remedies=[scene.command(obj, "delete", "pod", *names)],
    )


def newest_revision(scene: Scene, obj: Object) -> str:
    """Return the revision hash of the newest template of a DaemonSet or StatefulSet."""
    if obj["kind"] == "StatefulSet":
        return str(status_of(obj).get("updateRevision", ""))
    revisions = scene.owned(obj, "controllerrevisions.apps")
    newest = max(revisions, key=lambda revision: int(revision.get("revision") or 0), default=None)
    if newest:
        return labels_of(newest).get(REVISION_HASH, "")
    return ""


def is_new(scene: Scene, obj: Object, pod: Object) -> bool:
    return labels_of(pod).get(REVISION_HASH) == newest_revision(scene, obj)


def dead_nodes(scene: Scene, obj: Object) -> Finding | None:
    """Blame dead nodes, when their pods alone are as many as may be unavailable and others are
    still old."""
    if (
        goals.daemon_set(scene, obj)
        or nested_map(obj["spec"], "updateStrategy").get("type") == "OnDelete"
    ):
        return None

    pods = scene.owned(obj, "pods")
    desired = desired_replicas(obj)
    dead = [
        (pod, node)
        for pod in pods
        if not is_pod_ready(pod)
        and (node := scene.get("nodes", "", node_name(pod))) is not None
        and condition_status(node, "Ready") != "True"
    ]
    names = {name_of(pod) for pod, _ in dead}
    waiting = [pod for pod in pods if name_of(pod) not in names and not is_new(scene, obj, pod)]
    rolling = nested_map(obj["spec"], "updateStrategy", "rollingUpdate")
    allowed = scaled(rolling.get("maxUnavailable", 1), desired)
    if not dead or not waiting or len(dead) < allowed:
        return None
    pod, node = dead[0]
    down = sorted({name_of(node) for _, node in dead if down_until(node) is not None})
    return scene.finding(
        "dead-nodes-use-up-unavailable",
        scene.link(
            obj,
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
            f"{plural(len(waiting), 'pod')} still to update; at most {allowed} may be "
            f"unavailable, and so "
            f"{'is one' if len(dead) == 1 else f'are {len(dead)}'} on dead nodes",
        ),
        scene.condition_link(pod, "Ready", "it is not ready"),
        scene.condition_link(node, "Ready", "its node is not ready"),
        remedies=[
            ("delete", "node", *sorted({name_of(node) for _, node in dead})),
            *([("annotate", "node", *down, f"{DOWN_UNTIL}-")] if down else []),
        ],
    )


def scaled(value: object, total: int) -> int:
    """Return an int-or-percent of a total, rounded up."""
    text = str(value)
    if text.endswith("%"):
        return math.ceil(int(text[:-1]) * total / 100)
    return int(text)


def daemon_set(scene: Scene, obj: Object) -> Finding | None:
    """Blame the pods of the newest revision, then the others."""
    if goals.daemon_set(scene, obj):
        return None
    pods = sorted(scene.owned(obj, "pods"), key=lambda pod: not is_new(scene, obj, pod))
    desired = desired_replicas(obj)
    updated = count(obj, "updatedNumberScheduled")
    finding = blame(scene, pods) or waits_for_min_ready_seconds(scene, obj, pods)
    if finding is None:
        return None
    field, state = (
        ("updatedNumberScheduled", "updated")
        if updated < desired
        else ("numberAvailable", "available")
    )
    return held_up(
        scene,
        obj,
        scene.link(
            obj, f"status.{field}", f"{count(obj, field)} of {plural(desired, 'pod')} {state}"
        ),
        finding,
        surges=len(pods) > desired and count(obj, "numberAvailable") >= desired,
    )


# --- StatefulSets ---------------------------------------------------------------------------------


def ordinal(pod: Object) -> int:
    return int(name_of(pod).rpartition("-")[2])


def stateful_set(scene: Scene, obj: Object) -> Finding | None:
    """Blame the pods in their order; one of an old, broken revision holds up its own repair."""
    if goals.stateful_set(scene, obj):
        return None
    pods = sorted(scene.owned(obj, "pods"), key=ordinal)
    desired = desired_replicas(obj)
    broken = [pod for pod in pods if not _is_done(scene, pod)]
    finding = behind_broken_pod(scene, obj, pods, broken) or blame(scene, broken)
    finding = finding or waits_for_min_ready_seconds(scene, obj, pods)
    if finding is None:
        return None
    updated = count(obj, "updatedReplicas")
    field, state = (
        ("updatedReplicas", "updated")
        if updated < desired - goals.partition_of(obj)
        else ("availableReplicas", "available")
    )
    link = scene.link(
        obj, f"status.{field}", f"{count(obj, field)} of {plural(desired, 'pod')} {state}"
    )
    if finding.cause in IN_ORDER:
        return scene.lead(finding, link)
    return held_up(scene, obj, link, finding)


def name_is_taken(scene: Scene, obj: Object) -> Finding | None:
    """Blame a pod of another owner that has the name of one that is to be made."""
    in_range = ordinals(cast("StatefulSet", obj))
    named = {}
    for pod in scene.list("pods", namespace_of(obj)):
        parent, ordinal = parent_name_and_ordinal(cast("Pod", pod))
        if parent == name_of(obj) and ordinal in in_range:
            named[ordinal] = pod

    for _, pod in sorted(named.items()):
        if not is_controlled_by(pod, obj) and not goals.stateful_set(scene, obj):
            controller = controller_of(pod)
            if controller:
                owner = f"belongs to {controller['kind'].lower()}/{controller['name']}"
            else:
                owner = "has no owner"
            return scene.finding(
                "selector-conflict",
                scene.link(
                    obj,
                    "status.replicas",
                    f"it cannot make its pod {name_of(pod)}: the name is taken",
                ),
                scene.link(pod, "metadata.ownerReferences", f"it {owner}"),
                remedies=[scene.command(obj, "delete", "pod", name_of(pod))],
            )

    return None


def behind_broken_pod(
    scene: Scene, obj: Object, pods: list[Object], broken: list[Object]
) -> Finding | None:
    """Blame the order of pods (OrderedReady): the first broken pod keeps the others from being made
    or replaced."""
    is_ordered = obj["spec"].get("podManagementPolicy") != "Parallel"
    if not broken or not is_ordered or not scene.is_stuck or is_being_deleted(broken[0]):
        return None
    first = broken[0]
    same = [
        pod
        for pod in pods
        if labels_of(pod).get(REVISION_HASH) == labels_of(first).get(REVISION_HASH)
    ]
    is_sound = any(_is_done(scene, pod) for pod in same)  # its revision
    waits = len(pods) < desired_replicas(obj) or any(not is_new(scene, obj, pod) for pod in pods)
    reason = scene.diagnose(first)
    if reason is None or not waits:
        return None
    if not is_new(scene, obj, first) and not is_sound:
        return scene.lead(
            reason._replace(cause="broken-revision", remedies=()),
            scene.link(
                first,
                f"metadata.labels['{REVISION_HASH}']",
                "it has an older revision, and is replaced only when it is "
                "ready, which that revision never is",
            ),
            [scene.command(obj, "delete", "pod", name_of(first))],
        )

    if is_sound:
        return scene.lead(
            reason._replace(cause="ordered-behind-broken-pod"),
            scene.link(
                obj,
                "spec.podManagementPolicy",
                f"the other pods wait until {name_of(first)} is ready",
            ),
            [scene.command(obj, "delete", "pod", name_of(first))],
        )

    return None


# --- what a done object has to say ----------------------------------------------------------------


def scaled_to_zero(scene: Scene, obj: Object) -> Finding | None:
    if desired_replicas(obj) != 0 or obj["kind"] == "DaemonSet":
        return None
    return scene.finding(
        "scaled-to-zero", scene.link(obj, "spec.replicas", "it is to have no pods")
    )


def partition(scene: Scene, obj: Object) -> Finding | None:
    """Say that a rollout has ended at its partition."""
    number = goals.partition_of(obj)
    status = status_of(obj)
    if not number or status.get("currentRevision") == status.get("updateRevision"):
        return None
    return scene.finding(
        "partition",
        scene.link(
            obj,
            "spec.updateStrategy.rollingUpdate.partition",
            f"pods below ordinal {number} keep the old revision",
        ),
    )


def misscheduled(scene: Scene, obj: Object) -> Finding | None:
    """Say which pod of a DaemonSet may stay on a node where it would not be made again."""
    placement = node_should_run_daemon_pod(cast("DaemonSet", obj))
    for pod in scene.owned(obj, "pods"):
        node = scene.get("nodes", "", node_name(pod))
        if (
            node is not None
            and not is_being_deleted(pod)
            and not placement(cast("Node", node)).should_run
        ):
            taints = spec_of(node).get("taints")
            return scene.finding(
                "misscheduled",
                scene.link(
                    obj,
                    "status.numberMisscheduled" if count(obj, "numberMisscheduled") else "",
                    "it leaves a pod where it makes none",
                ),
                scene.link(pod, "spec.nodeName", "it may stay, but would not be made there again"),
                scene.link(
                    node,
                    "spec.taints" if taints else "metadata.labels",
                    "it has a taint that the pod does not tolerate"
                    if taints
                    else "it is not one for the pod",
                ),
            )

    return None


def left_out(scene: Scene, obj: Object) -> Finding | None:
    """Say that a DaemonSet has no pod on a node that it chooses, for a taint; nodes that are kept
    for their role do not count."""
    template = obj["spec"]["template"]
    tolerations = daemon_tolerations(template["spec"])
    occupied = {node_name(pod) for pod in scene.owned(obj, "pods")}
    chosen = [
        node for node in scene.list("nodes") if required_node_affinity_matches(template, node)
    ]
    tainted = [
        (node, taint)
        for node in chosen
        if name_of(node) not in occupied
        and (
            taint := find_untolerated_taint(taints_of(node), tolerations, (NO_EXECUTE, NO_SCHEDULE))
        )
        is not None
    ]
    tainted = [(node, taint) for node, taint in tainted if not taint["key"].startswith(ROLE)]
    if not tainted:
        return None
    node, taint = tainted[0]
    return scene.finding(
        "taint",
        scene.link(
            obj,
            "status.desiredNumberScheduled",
            f"it has no pod on {len(tainted)} of the {plural(len(chosen), 'node')} that it is for",
        ),
        scene.link(
            node,
            f"spec.taints[{taints_of(node).index(taint)}]",
            "the pods do not tolerate this taint",
        ),
        remedies=against_taint(scene, obj, taint, [node for node, _ in tainted]),
    )


def without_nodes(scene: Scene, obj: Object) -> Finding | None:
    """Say that a DaemonSet has no pods, as there are no nodes, none that it chooses, or only
    tainted ones."""
    nodes = scene.list("nodes")
    template = obj["spec"]["template"]
    if desired_replicas(obj) or scene.owned(obj, "pods"):
        return None
    none = scene.link(
        obj, "status.desiredNumberScheduled", "it has no pods, as there is no node for them"
    )
    if not nodes:
        return scene.finding("no-nodes", none, remedies=[new_node(scene, template)])
    chosen = [node for node in nodes if required_node_affinity_matches(template, node)]
    selector = nested_map(template["spec"], "nodeSelector")
    if selector and not any(selector.items() <= labels_of(node).items() for node in nodes):
        labels = [f"{name}={value}" for name, value in sorted(selector.items())]
        label = [("label", "nodes", place, *labels) for place in (name_of(nodes[0]), "--all")]
        return scene.finding(
            "node-selector",
            none,
            scene.link(obj, "spec.template.spec.nodeSelector", "no node has these labels"),
            remedies=label if selector.keys().isdisjoint(NOT_TO_RELABEL) else (),
        )

    if not chosen:
        return scene.finding(
            "node-affinity",
            none,
            scene.link(
                obj,
                "spec.template.spec.affinity.nodeAffinity",
                "no node fulfils it"
                if not selector
                else "no node with the labels of the nodeSelector fulfils it",
            ),
        )

    tolerations = daemon_tolerations(template["spec"])
    for node in chosen:
        if taint := find_untolerated_taint(taints_of(node), tolerations, (NO_EXECUTE, NO_SCHEDULE)):
            return scene.finding(
                "taint",
                none,
                scene.link(
                    node,
                    f"spec.taints[{taints_of(node).index(taint)}]",
                    "the pods do not tolerate this taint",
                ),
                remedies=against_taint(scene, obj, taint, chosen),
            )

    return None


def against_taint(scene: Scene, obj: Object, taint: Any, nodes: Iterable[Object]) -> list[Words]:
    """Return the commands that let the pods of a DaemonSet tolerate a taint, and that remove it
    from those nodes that have it."""
    alike = [name_of(node) for node in nodes if taint in taints_of(node)]
    return [
        *tolerate(scene, obj, [dict(taint)]),
        ("taint", "nodes", *alike, f"{taint['key']}:{taint['effect']}-"),
    ]


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    "daemonsets.apps": (on_delete, dead_nodes, daemon_set),
    "deployments.apps": (paused, deployment),
    "pods": (readiness_gate, not_ready),
    "replicasets.apps": (replica_set,),
    "replicationcontrollers": (replica_set,),
    "statefulsets.apps": (on_delete, name_is_taken, stateful_set),
}
# What a plan says of workloads that finish, too.
PLAN_NOTES: dict[str, tuple[Diagnosis, ...]] = {"daemonsets.apps": (without_nodes, left_out)}
NOTES: dict[str, tuple[Diagnosis, ...]] = {
    "daemonsets.apps": (without_nodes, misscheduled, left_out, shares_pods),
    "deployments.apps": (scaled_to_zero, shares_pods),
    "replicasets.apps": (scaled_to_zero,),
    "replicationcontrollers": (scaled_to_zero,),
    "statefulsets.apps": (scaled_to_zero, partition, shares_pods),
}
