"""How much of each zone is not ready (``handleDisruption``, ``ComputeZoneState``).

Where a great part of a zone does not answer, it is rather the network that is broken, or the control plane: then no
more nodes get a NoExecute taint there. Where no node of the cluster is ready, all such taints go.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kubepy.api.meta import Object, labels_of
from kubepy.api.objects.nodes import is_node_ready

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
NOT_COUNTED = "node.kubernetes.io/exclude-disruption"  # a label
UNHEALTHY_SHARE = 0.55
UNHEALTHY_NODES = 2  # so many may be not ready, whatever share of a zone they are
LARGE_ZONE = 50  # a larger one goes on tainting


class Count(NamedTuple):
    ready: int = 0
    not_ready: int = 0

    @property
    def is_disrupted(self) -> bool:
        """Whether no node is ready."""
        return self.ready == 0 and self.not_ready > 0

    @property
    def holds_evictions(self) -> bool:
        """Whether a small zone is not ready for the greater part (``statePartialDisruption``)."""
        total = self.ready + self.not_ready
        unhealthy = self.not_ready > UNHEALTHY_NODES and self.not_ready / total >= UNHEALTHY_SHARE
        return unhealthy and not self.is_disrupted and total <= LARGE_ZONE


class Eviction(Enum):
    """What is done about NoExecute taints of nodes that are not ready."""

    GO = "added"
    HOLD = "left as they are"
    STOP = "removed"


class Zones:
    """The nodes of each zone, counted from change to change."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[str, bool]] = {}  # name → zone, ready
        self._counts: dict[str, Count] = {}

    def eviction(self, zone: str) -> Eviction:
        if bool(self._counts) and all(count.is_disrupted for count in self._counts.values()):
            return Eviction.STOP  # upstream's "master disruption mode"
        return Eviction.HOLD if self._counts.get(zone, Count()).holds_evictions else Eviction.GO

    def modes(self) -> dict[str, str]:
        """The zones that are treated in another way than usual, and in which."""
        found = {zone: self.eviction(zone) for zone in sorted(self._counts)}
        return {zone: mode.value for zone, mode in found.items() if mode is not Eviction.GO}

    def set(self, name: str, node: Object | None) -> bool:
        """Take in a node's present state; None: it is gone. Returns whether other nodes are to be treated otherwise."""
        before = self._nodes.pop(name, None)
        now = (zone_of(node), is_node_ready(node)) if node is not None and NOT_COUNTED not in labels_of(node) else None
        if now is not None:
            self._nodes[name] = now
        zones = [entry[0] for entry in (before, now) if entry is not None] if before != now else []
        modes = [self.eviction(zone) for zone in zones]
        for entry, number in ((before, -1), (now, 1)):
            if zones and entry is not None:
                self._add(*entry, number)
        return modes != [self.eviction(zone) for zone in zones]

    def _add(self, zone: str, ready: bool, number: int) -> None:
        count = self._counts.get(zone, Count())
        count = Count(count.ready + number, count.not_ready) if ready else Count(count.ready, count.not_ready + number)
        if any(count):
            self._counts[zone] = count
        else:
            del self._counts[zone]


def zone_of(node: Object) -> str:
    """The region and zone of a node, "" without (``GetZoneKey``)."""
    labels = labels_of(node)
    place = labels.get(REGION, ""), labels.get(ZONE, "")
    return "/".join(place) if any(place) else ""
