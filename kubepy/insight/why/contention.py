"""Controllers that undo each other's work, without end (:mod:`kubepy.runtime.contention`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import Object, controller_of, name_of, nested_list, nested_map, uid_of
from kubepy.api.objects.nodes import NO_EXECUTE, taints_of, tolerates
from kubepy.insight import Finding, Link
from kubepy.insight.prediction import pending
from kubepy.insight.why.goals import count, desired_replicas
from kubepy.insight.why.intent import autoscalers_of
from kubepy.insight.why.remedies import patch_template, pod_spec_of, top_owner
from kubepy.insight.why.scene import Diagnosis, Scene, Words, plural

if TYPE_CHECKING:
    from kubepy.runtime.contention import Contest, Party

CAUSE = "contention"
TAINT_EVICTION = "taint-eviction-controller"
AUTOSCALERS = "horizontalpodautoscalers.autoscaling"


def contention(scene: Scene, obj: Object) -> Finding | None:
    """Blame two controllers that are at odds about an object."""
    key = scene.key(obj)
    for contest in scene.contests:
        if key in (contest.subject, contest.maker.key, contest.undoer.key):
            return finding_of(scene, obj, contest)
    return None


def contention_below(scene: Scene, deployment: Object) -> Finding | None:
    """Blame two controllers that are at odds about a Deployment or one of its ReplicaSets."""
    if (finding := contention(scene, deployment)) is not None:
        return finding
    for replica_set in scene.owned(deployment, "replicasets.apps"):
        if (finding := contention(scene, replica_set)) is not None:
            available = count(deployment, "availableReplicas")
            desired = desired_replicas(deployment)
            text = f"{available} of {plural(desired, 'replica')} available"
            return scene.lead(finding, scene.link(deployment, "status.availableReplicas", text))
    return None


def is_contested(scene: Scene, obj: Object) -> bool:
    """Return whether two controllers are at odds about an object, or one that it owns."""
    subjects = {contest.subject for contest in scene.contests}
    return bool(subjects) and any(
        scene.key(part) in subjects for part in [obj, *parts_of(scene, obj)]
    )


def may_be_contested(scene: Scene, obj: Object) -> bool:
    """Return whether an object that is done may be undone again and again: controllers are at odds
    about it, several autoscalers scale it, or some of its pods are to be evicted."""
    if obj["kind"] not in KINDS:
        return False
    if is_contested(scene, obj) or len(autoscalers_of(scene, obj)) > 1:
        return True
    owners = {uid_of(part) for part in [obj, *parts_of(scene, obj)]}
    return any(
        entry.reconciler == TAINT_EVICTION
        and (pod := scene.get(*entry.key)) is not None
        and (controller := controller_of(pod)) is not None
        and controller["uid"] in owners
        for entry in pending(scene.cluster)
    )


def parts_of(scene: Scene, obj: Object) -> list[Object]:
    """Return the ReplicaSets of a Deployment; other workloads make their pods themselves."""
    return scene.owned(obj, "replicasets.apps") if obj["kind"] == "Deployment" else []


def finding_of(scene: Scene, obj: Object, contest: Contest) -> Finding:
    """Return the finding about an object in a contest: what both controllers do, and the taint or
    the autoscalers behind it."""
    deeds = f"{contest.deeds}: {contest.times}, without end"
    links = [scene.link(obj, "", deeds)]
    remedies: list[Words] = []
    if contest.undoer.reconciler == TAINT_EVICTION:
        for link, words in taints_of_named_node(scene, obj):
            links.append(link)
            remedies.append(words)
        if not remedies and (evicting := evicting_taint(scene, obj)) is not None:
            links.append(evicting.link)
            remedies += evicting.remedies
    for party in (contest.maker, contest.undoer):
        remedies += deletion_of_autoscaler(scene, party)
    return scene.finding(CAUSE, *links, remedies=remedies)


def taints_of_named_node(scene: Scene, owner: Object) -> list[tuple[Link, Words]]:
    """Return the NoExecute taints of the node that a pod template names, each with the command that
    removes it."""
    spec = nested_map(owner["spec"], "template", "spec")
    node = scene.get("nodes", "", spec.get("nodeName", ""))
    if node is None:
        return []
    return [
        (
            scene.link(
                node,
                f"spec.taints[{index}]",
                "the pod template names this node, which evicts its pods",
            ),
            ("taint", "nodes", name_of(node), f"{taint['key']}:{NO_EXECUTE}-"),
        )
        for index, taint in enumerate(nested_list(node["spec"], "taints"))
        if taint.get("effect") == NO_EXECUTE
    ]


class EvictingTaint(NamedTuple):
    """A taint that pods tolerate for a time only, so that they are bound to its node, and evicted.

    :ivar link: the taint.
    """

    link: Link
    remedies: tuple[Words, ...]


def evicting_taint(scene: Scene, owner: Object) -> EvictingTaint | None:
    """Return the first taint that evicts the pods of an owner from nodes that they are bound to."""
    tolerations = nested_list(pod_spec_of(top_owner(scene, owner)), "tolerations")
    for node in scene.list("nodes"):
        for index, taint in enumerate(taints_of(node)):
            brief = [
                toleration
                for toleration in tolerations
                if toleration.get("tolerationSeconds") is not None
                and taint["effect"] == NO_EXECUTE
                and tolerates(toleration, taint)
            ]
            if brief:
                text = f"the pods tolerate this taint for {brief[0]['tolerationSeconds']}s only"
                remedies = for_longer(scene, owner, tolerations, brief, taint)
                link = scene.link(node, f"spec.taints[{index}]", text)
                return EvictingTaint(link, tuple(remedies))

    return None


def for_longer(
    scene: Scene, owner: Object, tolerations: list[Object], brief: list[Object], taint: Any
) -> Iterator[Words]:
    """Yield the commands that remove a taint from all nodes, let pods tolerate it for ever, and do
    not let them tolerate it."""
    nodes = [name_of(node) for node in scene.list("nodes") if taint in taints_of(node)]
    yield ("taint", "nodes", *nodes, f"{taint['key']}:{NO_EXECUTE}-")
    lasting = [
        {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
        if toleration in brief
        else toleration
        for toleration in tolerations
    ]
    without = [toleration for toleration in tolerations if toleration not in brief]
    for changed in (lasting, without):
        yield from patch_template(scene, owner, ("replace", ("tolerations",), changed))


def deletion_of_autoscaler(scene: Scene, party: Party) -> list[Words]:
    """Return the command that deletes the autoscaler which a party looks after."""
    autoscaler = scene.get(*party.key) if party.key.resource == AUTOSCALERS else None
    if autoscaler is None:
        return []
    return [scene.command(autoscaler, "delete", scene.word(autoscaler))]


OWNERS = (
    "replicasets.apps",
    "replicationcontrollers",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
)
KINDS = ("DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    **dict.fromkeys(OWNERS, (contention,)),  # of an autoscaler with a rival more is known (intent)
    "deployments.apps": (contention_below,),
}
NOTES = DIAGNOSES
