"""On which nodes a DaemonSet's pod belongs (``NodeShouldRunDaemonPod``), and a memory of what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubepy.api.meta import Object, name_of, uid_of
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
from kubepy.runtime.reconcile import Informers

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


class _Known(NamedTuple):
    template: Object
    placement: Callable[[Object], Placement]
    nodes: int  # the version of the nodes that ``everywhere`` is of
    everywhere: Mapping[str, Placement]


class Placements:
    """Where the DaemonSets' pods belong, worked out once for each template and each change of nodes."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._nodes = 0
        self._known: dict[str, _Known] = {}  # by the DaemonSet's uid

    def node_changed(self) -> None:
        self._nodes += 1

    def forget(self, daemon_set: Object) -> None:
        self._known.pop(uid_of(daemon_set), None)

    def on(self, daemon_set: Object, node: Object) -> Placement:
        return self._of(daemon_set).placement(node)

    def everywhere(self, daemon_set: Object) -> Mapping[str, Placement]:
        """On every node there is, by its name, in order."""
        known = self._of(daemon_set)
        if known.nodes != self._nodes:
            placements = {name_of(node): known.placement(node) for node in self._informers.list("nodes")}
            known = self._known[uid_of(daemon_set)] = known._replace(nodes=self._nodes, everywhere=placements)
        return known.everywhere

    def _of(self, daemon_set: Object) -> _Known:
        template = daemon_set["spec"]["template"]
        known = self._known.get(uid_of(daemon_set))
        if known is None or known.template != template:
            known = self._known[uid_of(daemon_set)] = _Known(template, placement_of(daemon_set), -1, {})
        return known
