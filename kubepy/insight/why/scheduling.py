"""Why a pod has no node: the scheduler's own filters are asked about every node.

Nothing here decides whether a pod fits; :func:`attempt` runs the plugins of :mod:`kubepy.scheduler`
as the scheduler does, so that the chain has the reasons and counts of its FailedScheduling event.
Where nodes have different reasons, :func:`nearest` chooses those that are closest to fitting, and
the reason of most of them is the cause:

1. Nodes that the pod itself rules out (selector, affinity, the zone of its volume), control-plane
   nodes and nodes that are too small even when they are empty count only if there are no others.
2. Of the rest, those with the fewest reasons are nearest.
3. Of these, first the ones whose reason a hand removes most easily: a cordon or another passing
   state of the node, then too little room, then taints, then rules about other pods.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

from kubepy.api.meta import (
    Object,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
)
from kubepy.api.objects.nodes import (
    TAINT_UNSCHEDULABLE,
    find_untolerated_taint,
    node_selector_matches,
    required_node_selector,
)
from kubepy.api.objects.pods import (
    SYSTEM_CRITICAL_PRIORITY,
    host_ports,
    is_pod_terminal,
    node_name,
)
from kubepy.api.watch import WatchEvent
from kubepy.controllers.deployment.sizes import max_unavailable
from kubepy.insight.why import room, volumes
from kubepy.insight.why.goals import desired_replicas
from kubepy.insight.why.manifests import new_node, pods_on_new_node
from kubepy.insight.why.missing_nodes import meant_for_missing_node
from kubepy.insight.why.remedies import (
    Operation,
    field_path,
    json_patch,
    largest_share,
    merge_patch,
    on_nodes,
    patch_template,
    placed_pods,
    pods_of,
    replace_in_place,
    request_less,
    scale_down,
    show_amount,
    tolerate,
    top_owner,
    waiting_pods,
)
from kubepy.insight.why.scene import Diagnosis, plural
from kubepy.runtime.informers import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Informers,
)
from kubepy.scheduler.affinity import AffinityTerm
from kubepy.scheduler.cache import Cache, NodeInfo, PodInfo
from kubepy.scheduler.framework import FilterPlugin, Handle, PluginStatus
from kubepy.scheduler.plugins import FILTER_PLUGINS
from kubepy.scheduler.plugins.interpodaffinity import InterPodAffinity, match_all
from kubepy.scheduler.plugins.nodes import DO_NOT_SCHEDULE_EFFECTS
from kubepy.scheduler.plugins.resources import insufficient_resources
from kubepy.scheduler.plugins.topologyspread import DO_NOT_SCHEDULE, constraints_of, count_matching
from kubepy.scheduler.plugins.volumelimits import CSI_NODES
from kubepy.scheduler.plugins.volumes import VolumeBinding
from kubepy.scheduler.schedule_one import FitResult, find_nodes_that_fit_pod, fit_error_message
from kubepy.scheduler.scheduler import NO_NODES, Scheduler

if TYPE_CHECKING:
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Scene, Words

READ = (
    NODES,
    PODS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
)
SCHEDULED = "PodScheduled"
ROLE = "node-role.kubernetes.io/"  # taints that keep a node for its role
STATE = "node.kubernetes.io/"  # taints that say in what state a node is
NOT_TO_RELABEL = (
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
)  # facts about a machine
MAX_NODES = 10  # in one command
ONE_ON_EACH = ("host-port", "pod-anti-affinity")  # causes for which a new node takes one pod

CAUSE_OF_REASON = {
    "Too many pods": "too-many-pods",
    "Insufficient cpu": "insufficient-cpu",
    "Insufficient memory": "insufficient-memory",
    "Insufficient ephemeral-storage": "insufficient-ephemeral-storage",
    VolumeBinding.ELSEWHERE: "volume-zone",
    VolumeBinding.NOTHING_TO_BIND: "claim-without-volume",
    VolumeBinding.NO_VOLUME: "claim-lost",
    InterPodAffinity.AFFINITY.reasons[0]: "pod-affinity",
}
CAUSE_OF_PLUGIN = {
    "InterPodAffinity": "pod-anti-affinity",
    "NodeAffinity": "node-affinity",
    "NodePorts": "host-port",
    "NodeResourcesFit": "insufficient-resource",
    "NodeUnschedulable": "cordoned",
    "NodeVolumeLimits": "volume-limit",
    "PodTopologySpread": "topology-spread",
    "TaintToleration": "taint",
    "VolumeRestrictions": "volume-in-use",
    "VolumeZone": "volume-zone",
}
# How easily a hand removes a cause: those of the first group most easily.
EFFORT = {
    "cordoned": 0,
    **dict.fromkeys(
        (
            "too-many-pods",
            "insufficient-cpu",
            "insufficient-memory",
            "insufficient-ephemeral-storage",
            "insufficient-resource",
            "host-port",
            "volume-limit",
        ),
        1,
    ),
    "taint": 2,
    **dict.fromkeys(("pod-anti-affinity", "topology-spread", "pod-affinity", "volume-in-use"), 3),
    **dict.fromkeys(
        ("node-selector", "node-affinity", "volume-zone", "claim-without-volume", "claim-lost"), 4
    ),
}
EFFORT_OF_ROOM = 1
RULED_OUT = 4  # the pod, or the node's role, rules the node out
RESOURCE_OF_CAUSE = {
    "insufficient-cpu": "cpu",
    "insufficient-memory": "memory",
    "insufficient-ephemeral-storage": "ephemeral-storage",
}


class NodeObstacle(NamedTuple):
    """A reason why a pod cannot run on a node.

    :ivar reason: in the words of the FailedScheduling event.
    :ivar effort: how easily a hand removes it, see ``EFFORT``.
    :ivar hopeless: the node would be too small even if it were empty.
    """

    cause: str
    reason: str
    effort: int
    hopeless: bool = False


class SchedulingAttempt(NamedTuple):
    """One attempt to schedule a pod.

    :ivar obstacles: by node: all of its reasons, not only those of the first filter that rejects
        it.
    """

    pod: PodInfo
    handle: Handle
    result: FitResult
    obstacles: dict[str, list[NodeObstacle]]

    def node(self, name: str) -> NodeInfo:
        node_info = self.handle.cache.get(name)
        assert node_info is not None
        return node_info


# --- asking the scheduler -------------------------------------------------------------------------

handles: WeakKeyDictionary[Scene, Handle] = WeakKeyDictionary()


def handle_of(scene: Scene) -> Handle:
    """Return what the scheduler's plugins read, filled from the scene; once a scene."""
    if scene not in handles:
        informers = Informers()
        for resource in READ:
            for obj in scene.list(resource):
                informers.observe(WatchEvent(scene.key(obj), None, obj))
        handles[scene] = Handle(Cache(informers), informers)
    return handles[scene]


def attempt(scene: Scene, pod: Object) -> SchedulingAttempt:
    """Try to schedule a pod, and ask every filter about each node that the pod may be meant for."""
    handle = handle_of(scene)
    info = PodInfo(scene.key(pod), pod)  # type: ignore[arg-type]
    result = find_nodes_that_fit_pod(info, handle, FILTER_PLUGINS)
    obstacles: dict[str, list[NodeObstacle]] = {}
    if not result.feasible:
        names = result.diagnosis.node_to_status
        obstacles = {
            name: obstacles_on(info, result, node_info)
            for name in names
            if (node_info := handle.cache.get(name)) is not None
        }
    return SchedulingAttempt(info, handle, result, obstacles)


def obstacles_on(pod: PodInfo, result: FitResult, node_info: NodeInfo) -> list[NodeObstacle]:
    """Return the reasons of all filters that reject a node."""
    answers = [
        (plugin, plugin.filter(pod, state, node_info)) for plugin, state in result.cycle.states
    ]
    statuses = [
        status
        for plugin, status in answers
        if status is not None and not repeats_cordon(plugin, pod, node_info)
    ]
    if not statuses:  # the node is kept free for pods that were nominated for it
        statuses = [result.diagnosis.node_to_status[node_info.name]]
    return [obstacle for status in statuses for obstacle in read_status(status, pod, node_info)]


def repeats_cordon(plugin: FilterPlugin, pod: PodInfo, node_info: NodeInfo) -> bool:
    """Tell whether a node is rejected only for the taint that comes with its cordon, which has a
    filter of its own."""
    return (
        plugin.name == "TaintToleration"
        and node_info.unschedulable
        and all(taint["key"] == TAINT_UNSCHEDULABLE for taint in untolerated_taints(pod, node_info))
    )


def untolerated_taints(pod: PodInfo, node_info: NodeInfo) -> list[Object]:
    """Return the taints of a node that keep a pod away."""
    tolerations = pod.spec.get("tolerations")
    return [
        dict(taint)
        for taint in node_info.taints
        if find_untolerated_taint([taint], tolerations, DO_NOT_SCHEDULE_EFFECTS) is not None
    ]


def read_status(status: PluginStatus, pod: PodInfo, node_info: NodeInfo) -> Iterator[NodeObstacle]:
    """Turn a filter's answer into obstacles, each with its cause."""
    for reason in status.reasons:
        cause = CAUSE_OF_REASON.get(reason) or CAUSE_OF_PLUGIN[status.plugin]
        if cause == "node-affinity" and wrong_labels(pod, node_info):
            cause = "node-selector"
        effort = EFFORT[cause]
        if cause == "taint":
            keys = [taint["key"] for taint in untolerated_taints(pod, node_info)]
            if any(key.startswith(ROLE) for key in keys):
                effort = RULED_OUT
            elif all(key.startswith(STATE) for key in keys):
                effort = 0
        yield NodeObstacle(
            cause, reason, effort, status.plugin == "NodeResourcesFit" and not status.resolvable
        )


def wrong_labels(pod: PodInfo, node_info: NodeInfo) -> list[str]:
    """Return the labels of the pod's nodeSelector that the node does not have so."""
    return [
        key
        for key, value in nested_map(pod.spec, "nodeSelector").items()
        if node_info.labels.get(key) != value
    ]


def distance(obstacles: Sequence[NodeObstacle]) -> tuple[int, ...]:
    """Return how far a node is from fitting; see the top of this module."""
    effort = max(obstacle.effort for obstacle in obstacles)
    return (
        effort // RULED_OUT,
        sum(obstacle.hopeless for obstacle in obstacles),
        len(obstacles),
        effort,
    )


def nearest(obstacles: dict[str, list[NodeObstacle]]) -> tuple[str, list[str]]:
    """Return the cause, and the nodes closest to fitting for which it is the first reason, by
    name."""
    shortest = min(map(distance, obstacles.values()))
    first = {
        name: of_node[0].cause
        for name, of_node in sorted(obstacles.items())
        if distance(of_node) == shortest
    }
    [(cause, _)] = Counter(first.values()).most_common(1)
    return cause, [name for name in first if first[name] == cause]


# --- evidence and remedies ------------------------------------------------------------------------


class PlacementCase(NamedTuple):
    """The nodes that are closest to fitting, for one cause."""

    scene: Scene
    attempt: SchedulingAttempt
    pod: Object
    cause: str
    nodes: list[str]

    @property
    def node(self) -> NodeInfo:
        return self.attempt.node(self.nodes[0])

    def node_link(self, field: str, text: str) -> Link:
        assert self.node.node is not None
        return self.scene.link(dict(self.node.node), field, text)

    def pod_link(self, field: str, text: str) -> Link:
        return self.scene.link(self.pod, field, text)

    def obj(self, info: PodInfo) -> Object:
        return dict(info.pod)


Evidence = tuple[list["Link"], list["Words"]]


def cordoned(case: PlacementCase) -> Evidence:
    links = [case.node_link("spec.unschedulable", "it is cordoned")]
    return links, on_nodes(case.scene, case.pod, case.nodes[:MAX_NODES], "uncordon")


def taint(case: PlacementCase) -> Evidence:
    taints = untolerated_taints(case.attempt.pod, case.node)
    index = next(index for index, taint in enumerate(case.node.taints) if dict(taint) == taints[0])
    links = [case.node_link(f"spec.taints[{index}]", "the pod does not tolerate this taint")]
    same = [
        name
        for name in case.nodes[:MAX_NODES]
        if untolerated_taints(case.attempt.pod, case.attempt.node(name)) == taints
    ]
    if all(taint["key"].startswith(STATE) for taint in taints):
        return links, []  # they come back as long as the node is in that state
    removals = [f"{taint['key']}:{taint['effect']}-" for taint in taints]
    return links, [
        *on_nodes(case.scene, case.pod, same, "taint", "nodes", after=removals),
        *tolerate(case.scene, case.pod, taints),
    ]


def node_selector(case: PlacementCase) -> Evidence:
    labels = wrong_labels(case.attempt.pod, case.node)
    selector = case.pod["spec"]["nodeSelector"]
    wanted = field_path("spec.nodeSelector", labels[0])
    links = [
        case.pod_link(wanted, "it wants a node with this label"),
        case.node_link(
            field_path("metadata.labels", labels[0]),
            f"its label is not {selector[labels[0]]}"
            if labels[0] in case.node.labels
            else "it does not have the label",
        ),
    ]
    return links, [
        *label_node(case, {key: selector[key] for key in labels}),
        *patch_template(case.scene, case.pod, ("remove", ("nodeSelector",), None)),
    ]


def label_node(case: PlacementCase, labels: dict[str, str | None]) -> list[Words]:
    """Return the command that gives the node labels (None: takes one away), unless they are facts
    about the machine."""
    if not labels or any(key in NOT_TO_RELABEL for key in labels):
        return []
    words = [f"{key}-" if value is None else f"{key}={value}" for key, value in labels.items()]
    if any(labels[key] is not None and key in case.node.labels for key in labels):
        overwrite = ["--overwrite"]
    else:
        overwrite = []
    return on_nodes(
        case.scene, case.pod, case.nodes[:MAX_NODES], "label", "nodes", after=[*words, *overwrite]
    )


def node_affinity(case: PlacementCase) -> Evidence:
    selector: Any = required_node_selector(case.pod["spec"]) or {}
    terms = nested_list(selector, "nodeSelectorTerms")
    path = (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms"
    )
    links = [case.pod_link(path, "it wants a node that meets one of these terms")]
    labels: dict[str, str | None] = {}
    term = next((term for term in terms if not term.get("matchFields")), None)
    for expression in nested_list(term or {}, "matchExpressions"):
        single: Any = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        if node_selector_matches(single, case.node.node or {}):
            continue
        labels[expression["key"]] = label_that_meets(expression)
        if len(links) == 1:
            links.append(
                case.node_link(
                    field_path("metadata.labels", expression["key"]),
                    f"its label does not meet {show_expression(expression)}",
                )
            )

    if len(links) == 1:
        links.append(case.node_link("metadata.name", "it is none of the nodes that the pod names"))
    affinity = case.pod["spec"]["affinity"]
    gone = ("affinity",) if set(affinity) == {"nodeAffinity"} else ("affinity", "nodeAffinity")
    return links, [
        *label_node(case, labels),
        *patch_template(case.scene, case.pod, ("remove", gone, None)),
    ]


def label_that_meets(expression: Object) -> str | None:
    """Return a value of the label that a node selector's expression accepts; None: the label must
    be gone."""
    values = expression.get("values") or [""]
    match expression["operator"]:
        case "In":
            return str(values[0])
        case "Exists":
            return ""
        case "Gt":
            return str(int(values[0]) + 1)
        case "Lt":
            return str(int(values[0]) - 1)
    return None


def show_expression(expression: Object) -> str:
    values = expression.get("values")
    return f"{expression['key']} {expression['operator']}" + (
        f" ({', '.join(values)})" if values else ""
    )


def make_room(case: PlacementCase) -> list[Words]:
    """Return the commands that need fewer places for the pod's workload, or let a DaemonSet's pod
    displace others."""
    if any(obstacle.hopeless for obstacle in case.attempt.obstacles[case.nodes[0]]):
        return []
    return [
        *scale_down(case.scene, case.pod),
        *replace_in_place(case.scene, case.pod),
        *displace_others(case),
    ]


def displace_others(case: PlacementCase) -> list[Words]:
    """Return the command that makes a DaemonSet's pods more important than all that is not critical
    to the system."""
    workload = top_owner(case.scene, case.pod)
    has_others = any(
        not is_controlled_by(other.pod, workload) and other.priority < SYSTEM_CRITICAL_PRIORITY
        for other in case.node.pods.values()
    )
    if (
        workload["kind"] != "DaemonSet"
        or not has_others
        or case.attempt.pod.priority >= SYSTEM_CRITICAL_PRIORITY
    ):
        return []
    patch = {"spec": {"template": {"spec": {"priorityClassName": "system-node-critical"}}}}
    return [merge_patch(case.scene, workload, patch)]


def resources(case: PlacementCase) -> Evidence:
    lacking = insufficient_resources(case.attempt.pod.requests, case.node)
    amount = next(
        (
            lack
            for lack in lacking
            if CAUSE_OF_REASON.get(f"Insufficient {lack.resource}", "insufficient-resource")
            == case.cause
        ),
        lacking[0] if lacking else None,
    )
    if amount is None:  # the room is kept for nominated pods
        return [
            case.node_link("status.allocatable", "its room is kept for pods of higher priority")
        ], []

    name = amount.resource

    def show(number: int) -> str:
        return show_amount(name, number)

    asking = next(
        (
            index
            for index, container in enumerate(case.pod["spec"]["containers"])
            if name in nested_map(container, "resources", "requests")
        ),
        None,
    )
    links = []
    if asking is not None:
        links.append(
            case.pod_link(
                field_path(f"spec.containers[{asking}].resources.requests", name),
                f"it requests {name} {show(amount.requested)}",
            )
        )

    links.append(
        case.node_link(
            field_path("status.allocatable", name),
            f"it has {name} {show(amount.capacity)}, of which its pods request {show(amount.used)}",
        )
    )
    smaller = {lack.resource: sensible_request(case, lack.resource) for lack in lacking}
    return links, [*make_room(case), *request_less(case.scene, case.pod, smaller)]


def sensible_request(case: PlacementCase, resource: str) -> int:
    """Return the largest request with which all pods of the workload would fit, and beside the old
    ones as many as a rollout needs before it deletes the first."""
    workload = top_owner(case.scene, case.pod)
    own = {name_of(pod) for pod in pods_of(case.scene, workload)}
    free = []
    rooms = []
    for node_info in case.attempt.handle.cache.nodes():
        room = node_info.allocatable.get(resource, 0) - node_info.requested.get(resource, 0)
        kept = sum(
            pod.requests.get(resource, 0)
            for pod in node_info.pods.values()
            if pod.namespace == namespace_of(case.pod) and pod.key.name in own
        )
        obstacles = case.attempt.obstacles.get(node_info.name)
        is_near = obstacles is not None and all(obstacle.effort == 1 for obstacle in obstacles)
        if is_near:
            free.append(room)
        if is_near or kept:
            rooms.append(room + kept)

    if workload["kind"] == "DaemonSet":
        return min(rooms, default=0)
    number = 1
    at_once = 1
    if workload["kind"] == "Deployment":
        number = desired_replicas(workload)
        at_once = max(
            number
            - max_unavailable(cast(Any, workload))
            + 1
            - placed_pods(case.scene, case.pod)[1],
            1,
        )

    amount = largest_share([room for room in rooms if room > 0], number)
    if workload["kind"] != "Deployment" or workload["spec"]["strategy"]["type"] != "Recreate":
        amount = min(amount, largest_share([room for room in free if room > 0], at_once))
    if resource == "cpu":
        return amount - amount % 10
    return amount


def too_many_pods(case: PlacementCase) -> Evidence:
    taken = len(case.node.pods)
    link = case.node_link(
        "status.allocatable.pods", f"it has {plural(taken, 'pod')} already, and may have no more"
    )
    return [link], make_room(case)


def host_port(case: PlacementCase) -> Evidence:
    wanted = case.attempt.pod.ports
    holder = next(
        (
            pod
            for pod in case.node.pods.values()
            if any(port.clashes(used) for used in host_ports(pod.pod) for port in wanted)
        ),
        None,
    )
    if holder is None:
        return [case.node_link("metadata.name", "its ports are kept for other pods")], make_room(
            case
        )

    path = next(
        (
            path
            for path, port in port_paths(case.obj(holder))
            if any(port == own.port for own in wanted)
        ),
        "spec.containers",
    )
    links = [
        case.pod_link(next(iter(port_paths(case.pod)))[0], "it wants this port of its node"),
        case.scene.link(case.obj(holder), path, f"it has the port on {case.node.name}"),
    ]
    return links, [*make_room(case), *delete_bare(case, case.obj(holder))]


def port_paths(pod: Object) -> Iterator[tuple[str, int]]:
    """Yield the paths of a pod's host ports, with the ports."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod["spec"].get(field) or ()):
            for place, port in enumerate(nested_list(container, "ports")):
                if port.get("hostPort"):
                    yield f"spec.{field}[{index}].ports[{place}].hostPort", port["hostPort"]


def delete_bare(case: PlacementCase, other: Object) -> list[Words]:
    """Return the command that deletes a pod that nobody would make again; other pods would only
    come back."""
    if case.scene.owner(other) is not None:
        return []
    return [case.scene.command(other, "delete", case.scene.word(other))]


def matching_pods(case: PlacementCase, term: AffinityTerm) -> Iterator[PodInfo]:
    """Yield the pods in the node's domain that an affinity term selects."""
    domain = case.node.labels.get(term.topology_key)
    for node_info in case.attempt.handle.cache.nodes():
        if node_info.labels.get(term.topology_key) == domain:
            for other in node_info.pods.values():
                if term.matches(
                    other.namespace,
                    other.labels,
                    case.attempt.handle.namespace_labels(other.namespace),
                ):
                    yield other


TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_anti_affinity(case: PlacementCase) -> Evidence:
    pod = case.attempt.pod
    handle = case.attempt.handle
    scene = case.scene
    path = f"spec.affinity.podAntiAffinity.{TERMS}"
    for index, term in enumerate(pod.terms.required_anti_affinity):
        if (
            other := next(matching_pods(case, term), None)
        ) is not None and term.topology_key in case.node.labels:
            key = term.topology_key
            links = [
                case.pod_link(f"{path}[{index}]", f"it must not be in the {key} of such a pod"),
                scene.link(
                    case.obj(other),
                    "spec.nodeName",
                    f"it is such a pod, in that of {case.node.name}",
                ),
            ]
            return links, [*make_room(case), *delete_bare(case, case.obj(other))]

    own = handle.namespace_labels(pod.namespace)
    for node_info in handle.cache.nodes_with_affinity():
        for other in node_info.with_anti_affinity.values():
            for index, term in enumerate(other.terms.required_anti_affinity):
                key = term.topology_key
                if (
                    term.matches(pod.namespace, pod.labels, own)
                    and key in node_info.labels
                    and node_info.labels[key] == case.node.labels.get(key)
                ):
                    text = f"it runs on {node_info.name} and keeps such pods out of its {key}"
                    return [scene.link(case.obj(other), f"{path}[{index}]", text)], make_room(case)

    return [], make_room(case)


def pod_affinity(case: PlacementCase) -> Evidence:
    path = f"spec.affinity.podAffinity.{TERMS}"
    terms = case.attempt.pod.terms.required_affinity
    index = next(
        (index for index, term in enumerate(terms) if not any(matching_pods(case, term))), 0
    )
    key = terms[index].topology_key
    text = f"it must be in the {key} of such a pod, and there is none with room"
    links = [case.pod_link(f"{path}[{index}]", text)]
    if key not in case.node.labels:
        links.append(case.node_link(field_path("metadata.labels", key), f"it is in no {key}"))
    return links, patch_template(
        case.scene, case.pod, ("remove", ("affinity", "podAffinity"), None)
    )


def awaited_pods(case: PlacementCase) -> Iterator[Object]:
    """Yield the pods of others that the pod's affinity selects, and that have no node
    themselves."""
    for other in case.scene.list(PODS):
        own = case.attempt.handle.namespace_labels(namespace_of(other))
        if (
            not node_name(other)
            and controller_of(other) != controller_of(case.pod)
            and match_all(
                case.attempt.pod.terms.required_affinity, namespace_of(other), labels_of(other), own
            )
        ):
            yield other


def topology_spread(case: PlacementCase) -> Evidence:
    pod = case.attempt.pod
    cache = case.attempt.handle.cache
    constraints = constraints_of(pod, DO_NOT_SCHEDULE)
    positions = [
        index
        for index, item in enumerate(nested_list(pod.spec, "topologySpreadConstraints"))
        if item["whenUnsatisfiable"] == DO_NOT_SCHEDULE
    ]
    missing = next(
        (
            position
            for position, constraint in zip(positions, constraints, strict=True)
            if constraint.topology_key not in case.node.labels
        ),
        None,
    )
    index = positions[0] if missing is None else missing
    constraint = constraints[positions.index(index)]
    key = constraint.topology_key
    if missing is not None:
        links = [
            case.pod_link(
                f"spec.topologySpreadConstraints[{index}].topologyKey",
                "such pods are spread over it",
            ),
            case.node_link(field_path("metadata.labels", key), "it does not have the label"),
        ]
    else:
        counts: Counter[str] = Counter()
        for node_info in cache.nodes():
            if (
                key in node_info.labels
                and node_info.node is not None
                and constraint.includes(pod, node_info.node)
            ):
                counts[node_info.labels[key]] += count_matching(
                    node_info, constraint.selector, pod.namespace
                )
        shown = ", ".join(f"{counts[domain]} in {domain}" for domain in sorted(counts))
        if len(counts) < constraint.min_domains:
            shown += f", and 0 elsewhere, as there are fewer than {constraint.min_domains}"
        links = [
            case.pod_link(
                f"spec.topologySpreadConstraints[{index}].maxSkew",
                f"the numbers of pods in each {key} may differ by no more: {shown}",
            ),
            case.node_link(field_path("metadata.labels", key), "one more here would be too many"),
        ]

    changes: list[Operation] = [
        ("replace", ("topologySpreadConstraints", index, "whenUnsatisfiable"), "ScheduleAnyway")
    ]
    if pod.spec["topologySpreadConstraints"][index].get("minDomains"):  # only for DoNotSchedule
        changes.append(("remove", ("topologySpreadConstraints", index, "minDomains"), None))
    return links, [*make_room(case), *patch_template(case.scene, case.pod, *changes)]


def volume_in_use(case: PlacementCase) -> Evidence:
    links, users = volumes.users_of_volumes(case.scene, case.pod, case.node)
    return links, [
        *make_room(case),
        *replace_at_once(case),
        *(command for user in users for command in delete_bare(case, user)),
    ]


def replace_at_once(case: PlacementCase) -> list[Words]:
    """Return the command that lets a Deployment delete its old pods before it makes new ones."""
    workload = top_owner(case.scene, case.pod)
    if workload["kind"] != "Deployment" or not replace_in_place(case.scene, case.pod):
        return []
    patch = [{"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}]
    return [json_patch(case.scene, workload, *patch)]


def volume_limit(case: PlacementCase) -> Evidence:
    csi_node = case.scene.get(CSI_NODES, "", case.node.name)
    drivers = nested_list((csi_node or {"spec": {}})["spec"], "drivers")
    index = next((index for index, driver in enumerate(drivers) if driver.get("allocatable")), 0)
    if csi_node is None:
        links = []
    else:
        links = [
            case.scene.link(
                csi_node,
                f"spec.drivers[{index}].allocatable.count",
                "it has as many volumes of the driver already",
            )
        ]
    return links, make_room(case)


def volume_zone(case: PlacementCase) -> Evidence:
    links, labels = volumes.elsewhere(case.scene, case.pod, case.node)
    return links, label_node(case, labels)


def claim_without_volume(case: PlacementCase) -> Evidence:
    near = volumes.nothing_to_bind(case.scene, case.pod)
    return near.links, near.remedies


def claim_lost(case: PlacementCase) -> Evidence:
    return volumes.lost_volume(case.scene, case.pod), []


EVIDENCE: dict[str, Callable[[PlacementCase], Evidence]] = {
    "claim-lost": claim_lost,
    "claim-without-volume": claim_without_volume,
    "cordoned": cordoned,
    "host-port": host_port,
    **dict.fromkeys(
        (
            "insufficient-cpu",
            "insufficient-ephemeral-storage",
            "insufficient-memory",
            "insufficient-resource",
        ),
        resources,
    ),
    "node-affinity": node_affinity,
    "node-selector": node_selector,
    "pod-affinity": pod_affinity,
    "pod-anti-affinity": pod_anti_affinity,
    "taint": taint,
    "too-many-pods": too_many_pods,
    "topology-spread": topology_spread,
    "volume-in-use": volume_in_use,
    "volume-limit": volume_limit,
    "volume-zone": volume_zone,
}


# --- diagnoses ------------------------------------------------------------------------------------


def unscheduled(scene: Scene, pod: Object) -> Finding | None:
    """Find out why a pod has no node; None where it has one, has ended, is being deleted, or fits
    and only waits."""
    if node_name(pod) or is_pod_terminal(pod) or is_being_deleted(pod):
        return None
    spec = pod["spec"]
    if spec.get("schedulingGates"):
        return gated(scene, pod)
    if spec.get("schedulerName", Scheduler.name) != Scheduler.name:
        return of_other_scheduler(scene, pod)
    if not handle_of(scene).cache.nodes():
        return scene.finding(
            "no-nodes",
            scene.condition_link(pod, SCHEDULED, NO_NODES, field="message"),
            remedies=[new_node(scene, pod, number=number_of_nodes(scene, pod))],
        )

    tried = attempt(scene, pod)
    if tried.result.diagnosis.pre_filter_message:
        return rejected_at_once(scene, pod, tried)
    if tried.result.feasible:
        waiting = volumes.unbound(scene, pod)
        if waiting is not None:
            return scene.lead(
                waiting,
                scene.link(pod, "spec.volumes", "it fits on a node, and waits for its volumes"),
            )
        return None

    return held_by_terminating(scene, pod, tried) or no_node_fits(scene, pod, tried)


def gated(scene: Scene, pod: Object) -> Finding:
    names = ", ".join(gate["name"] for gate in pod["spec"]["schedulingGates"])
    link = scene.link(
        pod, "spec.schedulingGates", f"it is not scheduled before its gates are removed: {names}"
    )
    remedies = patch_template(scene, pod, ("remove", ("schedulingGates",), None))
    if top_owner(scene, pod)["kind"] in ("Pod", "StatefulSet", "Job"):
        remedies = [json_patch(scene, pod, {"op": "remove", "path": "/spec/schedulingGates"})]
    return scene.finding("scheduling-gate", link, remedies=remedies)


def of_other_scheduler(scene: Scene, pod: Object) -> Finding:
    link = scene.link(pod, "spec.schedulerName", "it waits for a scheduler that does not run here")
    remedies = patch_template(scene, pod, ("replace", ("schedulerName",), Scheduler.name))
    return scene.finding("other-scheduler", link, remedies=remedies)


def head(scene: Scene, pod: Object, tried: SchedulingAttempt) -> Link:
    """Return the link with the scheduler's message; where that is older, its words as of now are in
    the sentence."""
    number = len(tried.handle.cache.nodes())
    message = fit_error_message(number, tried.result.diagnosis, "")
    text = "the only node does not fit" if number == 1 else f"none of the {number} nodes fits"
    names = tried.result.diagnosis.node_names
    if names is not None and len(names) == 1:
        text = f"it is meant for {min(names)}, and does not fit there"
    link = scene.condition_link(pod, SCHEDULED, text, field="message")
    if str(link.value).startswith(message):
        return link
    return link._replace(text=message.replace("nodes are available", "nodes fit").rstrip("."))


def rejected_at_once(scene: Scene, pod: Object, tried: SchedulingAttempt) -> Finding | None:
    """Find out why a pod was rejected before any node was looked at: its claims, or contradictory
    terms."""
    link = head(scene, pod, tried)._replace(text="it is not scheduled, whatever the nodes")
    if "NodeAffinity" in tried.result.diagnosis.unschedulable_plugins:
        terms = scene.link(
            pod,
            "spec.affinity.nodeAffinity",
            "the terms contradict each other: no node can meet them",
        )
        return scene.finding(
            "node-affinity",
            link,
            terms,
            remedies=patch_template(scene, pod, ("remove", ("affinity", "nodeAffinity"), None)),
        )

    finding = volumes.unusable_claim(scene, pod)
    if finding is not None:
        return scene.lead(finding, link)
    return None


def held_by_terminating(scene: Scene, pod: Object, tried: SchedulingAttempt) -> Finding | None:
    """Find out whether the pod fits as soon as pods are gone that are being deleted; those are to
    blame then."""
    for name in tried.obstacles:
        going = [other for other in tried.node(name).pods.values() if is_being_deleted(other.pod)]
        if going and fits_without(tried, name, going):
            finding = scene.diagnose_any(dict(other.pod) for other in going)
            if finding is not None:
                return scene.lead(finding, head(scene, pod, tried))
    return None


def fits_without(tried: SchedulingAttempt, node: str, others: Iterable[PodInfo]) -> bool:
    """Return whether the pod fits on a node without some of the node's pods."""
    cycle = tried.result.cycle.clone()
    node_info = tried.node(node).copy()
    for other in others:
        node_info.remove(other.key)
        cycle.update(other, node_info, -1)
    return cycle.run_filter_plugins(node_info) is None


def no_node_fits(scene: Scene, pod: Object, tried: SchedulingAttempt) -> Finding:
    """Name the cause that keeps the pod from the nodes closest to fitting, with the other reasons
    before it."""
    link = head(scene, pod, tried)
    if (finding := meant_for_missing_node(scene, pod)) is not None:
        return scene.lead(finding, link)
    if not tried.obstacles:
        terms = scene.link(pod, "spec.affinity.nodeAffinity", "no node is of those that it names")
        return scene.finding(
            "node-affinity",
            link,
            terms,
            remedies=patch_template(scene, pod, ("remove", ("affinity", "nodeAffinity"), None)),
        )

    cause, names = nearest(tried.obstacles)
    if cause == "claim-without-volume":  # or is there a volume, and no node reaches it?
        cause = volumes.cause_of_nothing_to_bind(scene, pod)
    case = PlacementCase(scene, tried, pod, cause, names)
    if cause == "taint" and (finding := state_of_node(case)) is not None:
        return scene.lead(finding, link)
    links, remedies = EVIDENCE[cause](case)
    cause, links = reason_for_lack(case, links)
    if cause == "pod-affinity" and (finding := scene.diagnose_any(awaited_pods(case))) is not None:
        return scene.lead(scene.lead(finding, links[0]), link, remedies)
    return scene.finding(
        cause,
        link,
        *other_reasons(case),
        *links,
        remedies=[*remedies, *scale_down(scene, pod)],
        fallbacks=[
            new_node(scene, pod, labels=labels_of_new_node(case), number=number_of_new_nodes(case))
        ],
    )


def number_of_new_nodes(case: PlacementCase) -> int:
    """Return how many new nodes would give room to all pods of the workload that have none."""
    return number_of_nodes(case.scene, case.pod, has_each=case.cause in ONE_ON_EACH)


def number_of_nodes(scene: Scene, pod: Object, *, has_each: bool = False) -> int:
    """Return how many new nodes would give room to all pods of a pod's workload that have none.

    :param has_each: each takes one of them.
    """
    waiting = waiting_pods(scene, top_owner(scene, pod))
    on_each = 1 if has_each else pods_on_new_node(pod)
    return min(max(math.ceil(waiting / on_each), 1), MAX_NODES)


def labels_of_new_node(case: PlacementCase) -> dict[str, str]:
    """Return the labels of a node that reaches the pod's volumes; a node without a zone would only
    seem to."""
    if case.cause != "volume-zone":
        return {}
    _, labels = volumes.elsewhere(case.scene, case.pod, case.node)
    return {key: value for key, value in labels.items() if value is not None}


def reason_for_lack(case: PlacementCase, links: list[Link]) -> tuple[str, list[Link]]:
    """Return the cause that lies behind a lack of room, or of a volume, with its links."""
    if case.cause == volumes.WITHOUT_VOLUME:
        return volumes.nothing_to_bind(case.scene, case.pod).cause or case.cause, links
    if EFFORT[case.cause] != EFFORT_OF_ROOM:
        return case.cause, links
    for name in case.nodes:
        higher = room.outranking(
            case.scene, case.pod, case.attempt.pod.priority, case.attempt.node(name).pods.values()
        )
        if higher and fits_without(case.attempt, name, higher):
            return "preempted", [*links, *links_of_priorities(case, higher[0])]

    resource = RESOURCE_OF_CAUSE.get(case.cause)
    default = room.default_request(case.scene, case.pod, resource) if resource is not None else None
    if default is None:
        return (case.cause, links)
    return ("limit-range-default", [links[-1], *links[:-1], default])


def links_of_priorities(case: PlacementCase, other: PodInfo) -> Iterator[Link]:
    """Yield the links about a pod of higher priority, and how it got its place, if that is
    known."""
    own = case.attempt.pod.priority
    priority = other.priority
    yield case.pod_link("spec.priority", f"its priority is {own}")
    event = room.preemption_link(case.scene, case.obj(other))
    if event is not None:
        yield event
    yield case.scene.link(
        case.obj(other),
        "spec.priority",
        f"it has the room on {node_name(other.pod)}, with the higher priority {priority}",
    )


def state_of_node(case: PlacementCase) -> Finding | None:
    """Return the finding of a node that is tainted for the state that it is in (not ready,
    unreachable)."""
    taints = untolerated_taints(case.attempt.pod, case.node)
    if not all(taint["key"].startswith(STATE) for taint in taints):
        return None
    finding = case.scene.diagnose(dict(case.node.node or {}))
    links, _ = taint(case)
    if finding is not None:
        return case.scene.lead(finding, links[0])
    return None


def other_reasons(case: PlacementCase) -> Iterator[Link]:
    """Yield what shows each further reason that nodes were rejected for, on the first of these
    nodes."""
    examples: dict[str, tuple[str, NodeObstacle]] = {}
    for name, obstacles in sorted(case.attempt.obstacles.items()):
        for obstacle in obstacles:
            if obstacle.cause != case.cause:
                examples.setdefault(obstacle.cause, (name, obstacle))
    for cause, (name, obstacle) in examples.items():
        links, _ = EVIDENCE[cause](case._replace(cause=cause, nodes=[name]))
        for link in links[-1:]:
            yield link._replace(text=f"{obstacle.reason}: {link.text}")


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {"pods": (unscheduled,)}
