"""On which nodes a DaemonSet's pod belongs (``NodeShouldRunDaemonPod``). Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.cluster.meta import Object, name_of
from kubepy.cluster.nodes import (
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

# In upstream's order, which is the order they are appended in (``AddOrUpdateDaemonPodTolerations``).
TOLERATED = (
    (TAINT_NOT_READY, NO_EXECUTE),
    (TAINT_UNREACHABLE, NO_EXECUTE),
    (TAINT_DISK_PRESSURE, NO_SCHEDULE),
    (TAINT_MEMORY_PRESSURE, NO_SCHEDULE),
    (TAINT_PID_PRESSURE, NO_SCHEDULE),
    (TAINT_UNSCHEDULABLE, NO_SCHEDULE),
)
TOLERATED_ON_HOST_NETWORK = (*TOLERATED, (TAINT_NETWORK_UNAVAILABLE, NO_SCHEDULE))


class Placement(NamedTuple):
    """``should_run``: a pod is to be created where none is; ``should_continue``: one that is there may stay."""

    should_run: bool
    should_continue: bool


NOWHERE = Placement(False, False)
HERE = Placement(True, True)


def daemon_tolerations(pod_spec: Object) -> list[Object]:
    """The pod's own tolerations, then those that every daemon pod has.

    An own one that differs only in its seconds keeps its place and loses them.
    """
    tolerations: list[Object] = list(pod_spec.get("tolerations") or ())
    for key, effect in TOLERATED_ON_HOST_NETWORK if pod_spec.get("hostNetwork") else TOLERATED:
        wanted = {"effect": effect, "key": key, "operator": "Exists"}
        same = [index for index, one in enumerate(tolerations) if _means(one) == _means(wanted)]
        if not same:
            tolerations.append(wanted)
        for index in same:
            tolerations[index] = wanted
    return tolerations


def _means(toleration: Object) -> tuple[str, ...]:
    """What ``Toleration.MatchToleration`` compares."""
    return tuple(toleration.get(field, "") for field in ("key", "effect", "operator", "value"))


def placement_of(daemon_set: Object) -> Callable[[Object], Placement]:
    """A function from a node to whether the DaemonSet's pod belongs there."""
    template = daemon_set["spec"]["template"]
    tolerations = daemon_tolerations(template["spec"])
    only_node = template["spec"].get("nodeName", "")
    anywhere = not template["spec"].get("nodeSelector") and not template["spec"].get("affinity")

    def placement(node: Object) -> Placement:
        if only_node and only_node != name_of(node):
            return NOWHERE
        if not anywhere and not required_node_affinity_matches(template, node):
            return NOWHERE
        taints = taints_of(node)
        if not taints or find_untolerated_taint(taints, tolerations, (NO_EXECUTE, NO_SCHEDULE)) is None:
            return HERE
        return Placement(False, find_untolerated_taint(taints, tolerations, (NO_EXECUTE,)) is None)

    return placement
