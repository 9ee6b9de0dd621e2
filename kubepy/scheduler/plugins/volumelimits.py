"""How many volumes of one CSI driver a node can attach: what its CSINode says (``nodevolumelimits/csi.go``)."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.objects.volumes import CLAIMS, CLASSES, VOLUMES, class_of, uses_of
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import POD_DELETE, SKIP, VOLUME, Admit, ClusterEvent, Plugin, Rejection, Skip, View

CSI_NODES = "csinodes.storage.k8s.io"


class Attached(NamedTuple):
    """A volume that a driver attaches to the nodes of its pods; a handle names it once for all of them."""

    driver: str
    handle: str


class NodeVolumeLimits(Plugin):
    name = "NodeVolumeLimits"
    wakes_on = frozenset({POD_DELETE, VOLUME})
    REJECTION = Rejection(("node(s) exceed max volume count",), True, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        wanted = attached_volumes(pod, view)
        return Admit((view, wanted)) if wanted else SKIP

    def filter(self, pod: PodInfo, state: tuple[View, set[Attached]], info: NodeInfo) -> Rejection | None:
        view, wanted = state
        limits = volume_limits(view.informers.get(CSI_NODES, "", info.name))
        if not limits:
            return None
        there: set[Attached] = set()
        for other in info.pods.values():
            there |= attached_volumes(other, view)
        used, more = (Counter(one.driver for one in volumes) for volumes in (there, wanted - there))
        too_many = any(used[driver] + number > limits.get(driver, used[driver] + number)
                       for driver, number in more.items())  # fmt: skip
        return self.REJECTION if too_many else None

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        return POD_DELETE not in event.actions or event.old is None or bool(event.old["spec"].get("volumes"))


def volume_limits(csi_node: Object | None) -> dict[str, int]:
    """For each driver that limits them the number of volumes."""
    drivers = csi_node["spec"].get("drivers") or () if csi_node is not None else ()
    counts = {one["name"]: (one.get("allocatable") or {}).get("count") for one in drivers}
    return {name: count for name, count in counts.items() if count is not None}


def attached_volumes(pod: PodInfo, view: View) -> set[Attached]:
    """The volumes behind the pod's claims, those included that are still to be made."""
    found = (_attached(view.informers.get(CLAIMS, pod.namespace, use.claim), view) for use in uses_of(pod.pod))
    return {one for one in found if one is not None}


def _attached(claim: Object | None, view: View) -> Attached | None:
    if claim is None:
        return None
    if (name := claim["spec"].get("volumeName")) and (volume := view.informers.get(VOLUMES, "", name)) is not None:
        csi = volume["spec"].get("csi")
        return Attached(csi["driver"], csi["volumeHandle"]) if csi else None
    found = view.informers.get(CLASSES, "", class_of(claim))
    meta = claim["metadata"]
    return Attached(found["provisioner"], f"{meta['namespace']}/{meta['name']}") if found is not None else None
