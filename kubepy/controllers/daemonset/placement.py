"""The nodes on which a DaemonSet's pod belongs (``NodeShouldRunDaemonPod``). Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.meta import name_of
from kubepy.api.objects.nodes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    find_untolerated_taint,
    required_node_affinity_matches,
    taints_of,
)

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, Node, PodSpec, Toleration

# In upstream's order, which is the order they are appended in
# (``AddOrUpdateDaemonPodTolerations``).
TOLERATED = (
    (TAINT_NOT_READY, NO_EXECUTE),
    (TAINT_UNREACHABLE, NO_EXECUTE),
    (TAINT_DISK_PRESSURE, NO_SCHEDULE),
    (TAINT_MEMORY_PRESSURE, NO_SCHEDULE),
    (TAINT_PID_PRESSURE, NO_SCHEDULE),
    (TAINT_UNSCHEDULABLE, NO_SCHEDULE),
)
TOLERATED_ON_HOST_NETWORK = (*TOLERATED, (TAINT_NETWORK_UNAVAILABLE, NO_SCHEDULE))


PLACEMENT_PARTS = ("metadata.name", "metadata.labels", "spec.taints")  # all that is read of a node


class Placement(NamedTuple):
    """``should_run``: a pod is to be created where none is; ``should_continue``: one that is there
    may stay."""

    should_run: bool
    should_continue: bool


NOWHERE = Placement(False, False)
HERE = Placement(True, True)


def daemon_tolerations(pod_spec: PodSpec) -> list[Toleration]:
    """Return the pod's own tolerations, then those that every daemon pod has.

    An own one that differs only in its seconds keeps its place and loses them.
    """

    def identity(toleration: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the fields that ``Toleration.MatchToleration`` reads."""
        fields = ("key", "effect", "operator", "value")
        return tuple(toleration.get(field, "") for field in fields)

    tolerations = list(pod_spec.get("tolerations") or ())
    for key, effect in TOLERATED_ON_HOST_NETWORK if pod_spec.get("hostNetwork") else TOLERATED:
        added = cast("Toleration", {"effect": effect, "key": key, "operator": "Exists"})
        same = [index for index, own in enumerate(tolerations) if identity(own) == identity(added)]
        if not same:
            tolerations.append(added)
        for index in same:
            tolerations[index] = added
    return tolerations


def node_should_run_daemon_pod(daemon_set: DaemonSet) -> Callable[[Node], Placement]:
    """Return a function that tells for a node whether the DaemonSet's pod belongs there."""
    template = daemon_set["spec"]["template"]
    tolerations = daemon_tolerations(template["spec"])
    only_node = template["spec"].get("nodeName", "")
    chooses = bool(
        only_node or template["spec"].get("nodeSelector") or template["spec"].get("affinity")
    )

    def placement(node: Node) -> Placement:
        if not chooses and not node["spec"].get("taints"):
            return HERE  # as most nodes
        if chooses and (
            (only_node and only_node != name_of(node))
            or not required_node_affinity_matches(template, node)
        ):
            return NOWHERE
        taints = taints_of(node)
        if (
            not taints
            or find_untolerated_taint(taints, tolerations, (NO_EXECUTE, NO_SCHEDULE)) is None
        ):
            return HERE
        return Placement(False, find_untolerated_taint(taints, tolerations, (NO_EXECUTE,)) is None)

    return placement
