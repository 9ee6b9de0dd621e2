"""The filter by the number of volumes of a CSI driver that a node's CSINode allows
(``nodevolumelimits/csi.go``)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import name_of, namespace_of
from kubepy.api.objects.volumes import class_of, uses_of
from kubepy.runtime.informers import TypedResource
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import (
    POD_DELETE,
    SKIP,
    VOLUME,
    ClusterEvent,
    FilterPlugin,
    Handle,
    PluginStatus,
    PreFilterResult,
    Skip,
)

if TYPE_CHECKING:
    from kubepy.api.typed import CSINode, PersistentVolumeClaim

CSI_NODES: TypedResource[CSINode] = TypedResource("csinodes.storage.k8s.io")


class AttachedVolume(NamedTuple):
    """A volume that a driver attaches to the nodes of its pods; pods that share it have the same
    handle."""

    driver: str
    handle: str


AttachState = tuple[Handle, set[AttachedVolume]]


class NodeVolumeLimits(FilterPlugin):
    """Allow only nodes that can attach all volumes of the pod."""

    name = "NodeVolumeLimits"
    events_to_register = frozenset({POD_DELETE, VOLUME})
    REJECTION = PluginStatus(("node(s) exceed max volume count",), True, name)

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip:
        volumes = attached_volumes(pod, handle)
        if volumes:
            return PreFilterResult((handle, volumes))
        return SKIP

    def filter(self, pod: PodInfo, state: AttachState, node_info: NodeInfo) -> PluginStatus | None:
        handle, new = state
        limits = volume_limits(handle.informers.lister(CSI_NODES).get("", node_info.name))
        if not limits:
            return None
        attached: set[AttachedVolume] = set()
        for other in node_info.pods.values():
            attached |= attached_volumes(other, handle)
        used = Counter(volume.driver for volume in attached)
        more = Counter(volume.driver for volume in new - attached)
        too_many = any(used[driver] + number > limits.get(driver, used[driver] + number)
                       for driver, number in more.items())  # fmt: skip
        if too_many:
            return self.REJECTION
        return None

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if POD_DELETE not in event.actions:
            return True
        if event.old is None:
            return True
        return bool(event.old["spec"].get("volumes"))


def volume_limits(csi_node: CSINode | None) -> dict[str, int]:
    """Return the greatest number of volumes for each driver that limits them."""
    if csi_node is None:
        return {}
    limits: dict[str, int] = {}
    for driver in csi_node["spec"].get("drivers") or ():
        allocatable = driver.get("allocatable") or {}
        count = allocatable.get("count")
        if count is not None:
            limits[driver["name"]] = count
    return limits


def attached_volumes(pod: PodInfo, handle: Handle) -> set[AttachedVolume]:
    """Return the volumes of the pod's claims, those included that are still to be provisioned."""
    volumes: set[AttachedVolume] = set()
    for use in uses_of(pod.pod):
        claim = handle.claims.get(pod.namespace, use.claim)
        if claim is None:
            continue
        volume = _attached_volume(claim, handle)
        if volume is not None:
            volumes.add(volume)
    return volumes


def _attached_volume(claim: PersistentVolumeClaim, handle: Handle) -> AttachedVolume | None:
    name = claim["spec"].get("volumeName")
    if name and (volume := handle.volumes.get("", name)) is not None:
        csi = volume["spec"].get("csi")
        if csi:
            return AttachedVolume(csi["driver"], csi["volumeHandle"])
        return None
    storage_class = handle.classes.get("", class_of(claim))
    if storage_class is None:
        return None
    return AttachedVolume(storage_class["provisioner"], f"{namespace_of(claim)}/{name_of(claim)}")
