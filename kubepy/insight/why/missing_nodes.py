"""Pods that are meant for a node that does not exist: by their selector, their affinity, where
their volume is, or by the nodeName of their template.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import Object, name_of, namespace_of, nested_list, nested_map
from kubepy.api.objects.nodes import required_node_selector
from kubepy.api.objects.pods import is_pod_terminal, node_name
from kubepy.api.objects.volumes import is_bound
from kubepy.insight.why import volumes
from kubepy.insight.why.manifests import known_hosts, new_node
from kubepy.insight.why.remedies import absent, field_path, patch_template, pod_spec_of, top_owner
from kubepy.scheduler.scores import HOSTNAME

if TYPE_CHECKING:
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

CAUSE = "node-missing"


class MissingNode(NamedTuple):
    """A node that a pod is meant for and that does not exist.

    :ivar links: how the pod, or its volume, names it.
    :ivar before: remedies that come before that of making the node; ``after``: those that come
        after it.
    """

    name: str
    links: tuple[Link, ...]
    before: tuple[Words, ...] = ()
    after: tuple[Words, ...] = ()


def meant_for_missing_node(scene: Scene, pod: Object) -> Finding | None:
    """Diagnose a pod without a node that can only run on nodes that do not exist."""
    hosts = known_hosts(scene)
    for look in LOOKS:
        missing = look(scene, pod, hosts)
        if missing is not None:
            last = absent("nodes", "", missing.name, "there is no such node")
            node = new_node(scene, pod, name=missing.name)
            return scene.finding(
                CAUSE, *missing.links, last, remedies=[*missing.before, node, *missing.after]
            )
    return None


def bound_by_template(scene: Scene, pod: Object) -> Finding | None:
    """Diagnose a pod whose template names a node that does not exist: each pod that is made will be
    deleted again."""
    name = node_name(pod)
    workload = top_owner(scene, pod)
    is_named = workload["kind"] != "Pod" and pod_spec_of(workload).get("nodeName") == name
    if not name or not is_named or is_pod_terminal(pod) or scene.get("nodes", "", name) is not None:
        return None
    link = scene.link(
        pod, "spec.nodeName", "its template names this node, and pods of a missing node are deleted"
    )
    last = absent("nodes", "", name, "there is no such node")
    elsewhere = patch_template(scene, pod, ("remove", ("nodeName",), None))
    return scene.finding(CAUSE, link, last, remedies=[*elsewhere, new_node(scene, pod, name=name)])


def by_selector(scene: Scene, pod: Object, hosts: Collection[str]) -> MissingNode | None:
    name = nested_map(pod["spec"], "nodeSelector").get(HOSTNAME)
    if not name or name in hosts:
        return None
    link = scene.link(pod, field_path("spec.nodeSelector", HOSTNAME), "it is meant for this node")
    return MissingNode(
        name,
        (link,),
        tuple(patch_template(scene, pod, ("remove", ("nodeSelector", HOSTNAME), None))),
    )


def by_affinity(scene: Scene, pod: Object, hosts: Collection[str]) -> MissingNode | None:
    """Return the node that the pod's affinity wants, if each of its terms names nodes that do not
    exist."""
    selector: Any = required_node_selector(pod["spec"]) or {}
    named = [hosts_of(term) for term in nested_list(selector, "nodeSelectorTerms")]
    if not named or not all(named) or any(name in hosts for names in named for name in names):
        return None
    path = (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms"
    )
    link = scene.link(pod, path, "it is meant for nodes that do not exist")
    return MissingNode(
        named[0][0],
        (link,),
        tuple(patch_template(scene, pod, ("remove", ("affinity", "nodeAffinity"), None))),
    )


def hosts_of(term: Object) -> list[str]:
    """Return the nodes that a term of a node selector names; none where it may match any node."""
    wanted = [
        *((expression, HOSTNAME) for expression in nested_list(term, "matchExpressions")),
        *((expression, "metadata.name") for expression in nested_list(term, "matchFields")),
    ]
    return [
        value
        for expression, key in wanted
        if expression["key"] == key and expression["operator"] == "In"
        for value in nested_list(expression, "values")
    ]


def by_volume(scene: Scene, pod: Object, hosts: Collection[str]) -> MissingNode | None:
    """Return the node that a volume of the pod is on."""
    for claim in volumes.claims_of(scene, pod):
        places = list(volumes.reachable_from_elsewhere(scene, claim))
        names = [value for _, _, key, values in places if key == HOSTNAME for value in values]
        is_on_host = bool(places) and all(key == HOSTNAME for _, _, key, _ in places)
        if is_on_host and names and not any(name in hosts for name in names):
            volume, path, *_ = places[0]
            first = scene.link(
                claim,
                "spec.volumeName" if is_bound(claim) else "spec.storageClassName",
                "it is bound to this volume" if is_bound(claim) else "only this volume matches it",
            )
            link = scene.link(volume, path, "the volume is on this node alone")
            return MissingNode(
                names[0], (first, link), after=tuple(without_volume(scene, pod, claim))
            )

    return None


def without_volume(scene: Scene, pod: Object, claim: Object) -> list[Words]:
    """Return the command after which a StatefulSet makes a pod and its claim anew, with an empty
    volume."""
    if top_owner(scene, pod)["kind"] != "StatefulSet" or not name_of(claim).endswith(name_of(pod)):
        return []
    assert namespace_of(pod) == namespace_of(claim)
    return [scene.command(claim, "delete", scene.word(claim), scene.word(pod))]


Look = Callable[["Scene", Object, Collection[str]], MissingNode | None]
LOOKS: tuple[Look, ...] = (by_selector, by_affinity, by_volume)
DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {"pods": (bound_by_template,)}
