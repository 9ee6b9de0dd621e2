"""The filters by the claims of a pod: bound or bindable, reachable from the node, not in use by
another pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import (
    AnyObject,
    annotations_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
)
from kubepy.api.objects.volumes import (
    SELECTED_NODE,
    Use,
    best_match,
    class_of,
    is_bound,
    not_made_for,
    open_to,
    reaches,
    requested_size,
    uses_of,
    waits_for_consumer,
)
from kubepy.runtime.reconcile import Key
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import (
    NODE_ADD,
    NODE_LABEL,
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
    from kubepy.api.typed import Node, PersistentVolume, PersistentVolumeClaim, StorageClass, Volume

NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_LABELS = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


class PodVolumeClaims(NamedTuple):
    """The claims of a pod, and the handle in which to find volumes and classes
    (``PodVolumeClaims``)."""

    handle: Handle
    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]  # to be bound when the pod has a node
    volumes: list[PersistentVolume]  # candidates for these


class PodVolumes(NamedTuple):
    """The volumes for the delayed claims of a pod on one node: those that are free, and claims that
    need a new one."""

    static_bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]]
    dynamic_provisions: list[PersistentVolumeClaim]


class VolumeBinding(FilterPlugin):
    """Require bound claims, or claims of a class that waits for the first consumer
    (``volumebinding/binder.go``)."""

    name = "VolumeBinding"
    events_to_register = frozenset({VOLUME, NODE_ADD, NODE_LABEL})
    NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
    NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip | PluginStatus:
        claims = []
        for use in uses_of(pod.pod):
            claim = handle.claims.get(pod.namespace, use.claim)
            if claim is None and _counts_as_there(pod, use.claim, handle):
                continue
            reason = _why_unusable(pod, use, claim)
            if reason or claim is None:
                return PluginStatus((reason,), False, self.name)
            claims.append(claim)

        if not claims:
            return SKIP
        delayed = [claim for claim in claims if not is_bound(claim)]
        if any(not waits_for_consumer(_class_of(claim, handle)) for claim in delayed):
            return PluginStatus(
                ("pod has unbound immediate PersistentVolumeClaims",), False, self.name
            )

        volumes = open_to(delayed, handle.volumes.list()) if delayed else []
        bound = [claim for claim in claims if is_bound(claim)]
        return PreFilterResult(PodVolumeClaims(handle, bound, delayed, volumes))

    def filter(
        self, pod: PodInfo, state: PodVolumeClaims, node_info: NodeInfo
    ) -> PluginStatus | None:
        reasons = []
        volumes = [
            state.handle.volumes.get("", claim["spec"]["volumeName"]) for claim in state.bound
        ]
        if any(
            volume is not None and not reaches(volume, node_info.node or {}) for volume in volumes
        ):
            reasons.append(self.ELSEWHERE)

        if find_pod_volumes(state, node_info.node or {}) is None:
            reasons.append(self.NOTHING_TO_BIND)
        if None in volumes:
            reasons.append(self.NO_VOLUME)
        if reasons:
            return PluginStatus(tuple(reasons), False, self.name)
        return None

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Accept a class that is new or reaches other nodes, any volume, a claim of the pod's own,
        any node."""
        old = event.old
        new = event.new or {}
        if new.get("kind") == "StorageClass":
            if old is None:
                return True
            return old.get("allowedTopologies") != new.get("allowedTopologies")
        if new.get("kind") != "PersistentVolumeClaim":
            return True
        return _is_claim_of(pod, new)


def _is_claim_of(pod: PodInfo, claim: AnyObject) -> bool:
    """Tell whether the pod mounts the claim, by its name."""
    if namespace_of(claim) != pod.namespace:
        return False
    name = name_of(claim)
    return any(use.claim == name for use in uses_of(pod.pod))


def _counts_as_there(pod: PodInfo, claim: str, handle: Handle) -> bool:
    """Tell whether a claim that the cluster does not hold was there where the pod came from."""
    if handle.absent is None:
        return False
    return handle.absent.has("PersistentVolumeClaim", pod.namespace, claim)


def _why_unusable(pod: PodInfo, use: Use, claim: PersistentVolumeClaim | None) -> str:
    """Say why a claim cannot be used at all, in upstream's words, or "" (``podHasPVCs``)."""
    if claim is None and use.ephemeral:
        return (
            f"waiting for ephemeral volume controller to create the persistentvolumeclaim "
            f'"{use.claim}"'
        )

    if claim is None:
        return f'persistentvolumeclaim "{use.claim}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        return (
            f'persistentvolumeclaim "{use.claim}" bound to non-existent persistentvolume "{volume}"'
        )

    if is_being_deleted(claim):
        return f'persistentvolumeclaim "{use.claim}" is being deleted'
    if use.ephemeral:
        return not_made_for(claim, pod.pod)
    return ""


def _class_of(claim: PersistentVolumeClaim, handle: Handle) -> StorageClass | None:
    return handle.classes.get("", class_of(claim))


def find_pod_volumes(claims: PodVolumeClaims, node: Node) -> PodVolumes | None:
    """Find volumes for the delayed claims on this node; None when there are not enough
    (``FindPodVolumes``)."""
    if not claims.delayed:
        return PodVolumes([], [])
    provisions = [claim for claim in claims.delayed if SELECTED_NODE in annotations_of(claim)]
    if any(annotations_of(claim)[SELECTED_NODE] != name_of(node) for claim in provisions):
        return None  # a volume is being provisioned for another node
    bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
    for claim in sorted(
        (claim for claim in claims.delayed if claim not in provisions), key=requested_size
    ):
        taken = {name_of(volume) for volume, _ in bindings}
        volume = best_match(claim, claims.volumes, node, taken=taken)
        if volume is not None:
            bindings.append((volume, claim))
        else:
            provisions.append(claim)

    if all(_can_be_provisioned(claim, node, claims.handle) for claim in provisions):
        return PodVolumes(bindings, provisions)
    return None


def _can_be_provisioned(claim: PersistentVolumeClaim, node: Node, handle: Handle) -> bool:
    """Tell whether the claim's class can provision a volume that reaches the node, by its
    ``allowedTopologies``."""
    storage_class = _class_of(claim, handle)
    if storage_class is None or storage_class.get("provisioner") in (None, "", NO_PROVISIONER):
        return False
    terms = storage_class.get("allowedTopologies")
    labels = labels_of(node)
    if not terms:
        return True
    return any(
        all(
            labels.get(requirement["key"]) in requirement["values"]
            for requirement in term.get("matchLabelExpressions") or ()
        )
        for term in terms
    )


class RestrictionsState(NamedTuple):
    """The ReadWriteOncePod claims of a pod, the other pods that use one of them, and its disks."""

    claims: set[str]
    users: list[Key]
    disks: list[Volume]


def _shared_claims(pod: PodInfo) -> list[str]:
    uses = uses_of(pod.pod)
    return [use.claim for use in uses if not use.ephemeral]


class VolumeRestrictions(FilterPlugin):
    """Allow one pod for a ReadWriteOncePod claim, and one pod on each node for a disk unless all
    only read it."""

    name = "VolumeRestrictions"
    events_to_register = frozenset({POD_DELETE, NODE_ADD, VOLUME})
    IN_USE = PluginStatus(
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by "
            "another pod",
        ),
        True,
        name,
    )

    NO_DISK = PluginStatus(("node(s) had no available disk",), True, name)

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip | PluginStatus:
        read_write_once_pod = set()
        for name in _shared_claims(pod):
            claim = handle.claims.get(pod.namespace, name)
            if claim is None and _counts_as_there(pod, name, handle):
                continue
            if claim is None:
                return PluginStatus(
                    (f'persistentvolumeclaim "{name}" not found',), False, self.name
                )
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                read_write_once_pod.add(name)

        disks = [volume for volume in pod.spec.get("volumes") or () if disk_of(volume) is not None]
        if not read_write_once_pod and not disks:
            return SKIP
        state = RestrictionsState(read_write_once_pod, [], disks)
        for node_info in handle.cache.nodes():
            for other in node_info.pods.values():
                self.update(pod, state, other, node_info, 1)
        if state.users or disks:
            return PreFilterResult(state)
        return SKIP

    def filter(
        self, pod: PodInfo, state: RestrictionsState, node_info: NodeInfo
    ) -> PluginStatus | None:
        if any(_conflict(state.disks, other.spec) for other in node_info.pods.values()):
            return self.NO_DISK
        if state.users:
            return self.IN_USE
        return None

    def clone(self, state: RestrictionsState) -> RestrictionsState:
        return state._replace(users=list(state.users))

    def update(
        self,
        pod: PodInfo,
        state: RestrictionsState,
        other: PodInfo,
        node_info: NodeInfo,
        count: int,
    ) -> None:
        if other.namespace != pod.namespace or state.claims.isdisjoint(_shared_claims(other)):
            return
        if count > 0:
            state.users.append(other.key)
        else:
            state.users.remove(other.key)

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Accept a new claim of the pod, a deleted pod with one of its claims or disks, a new
        node."""
        if VOLUME in event.actions:
            claim = event.new or {}
            if event.old is not None:
                return False
            if claim.get("kind") != "PersistentVolumeClaim":
                return False
            return _is_claim_of(pod, claim)

        deleted = event.old
        if POD_DELETE not in event.actions or deleted is None or event.unknown:
            return True
        if namespace_of(deleted) != pod.namespace:
            return False
        if _conflict(pod.spec.get("volumes") or [], deleted["spec"]):
            return True
        return not {use.claim for use in uses_of(deleted)}.isdisjoint(_shared_claims(pod))


class Disk(NamedTuple):
    """A disk that cannot be mounted twice: its identity, and the monitors at which it is found."""

    identity: tuple[str, ...]
    read_only: bool
    monitors: frozenset[str] = frozenset()


def disk_of(volume: AnyObject) -> Disk | None:
    """Return the disk of a volume of a kind that cannot be mounted twice (``isVolumeConflict``)."""
    disk = volume.get("gcePersistentDisk")
    if disk:
        return Disk(("gce", disk["pdName"]), bool(disk.get("readOnly")))
    disk = volume.get("awsElasticBlockStore")
    if disk:
        return Disk(("aws", disk["volumeID"]), False)  # not even for reading
    disk = volume.get("iscsi")
    if disk:
        return Disk(("iscsi", disk["iqn"]), bool(disk.get("readOnly")))
    disk = volume.get("rbd")
    if disk:
        identity = ("rbd", disk.get("pool", ""), disk["image"])
        return Disk(identity, bool(disk.get("readOnly")), frozenset(disk["monitors"]))
    return None


def is_volume_conflict(volume: AnyObject, other: AnyObject) -> bool:
    """Tell whether two volumes are the same disk, and one of them writes to it."""
    disk = disk_of(volume)
    other_disk = disk_of(other)
    if disk is None or other_disk is None or disk.identity != other_disk.identity:
        return False
    if disk.read_only and other_disk.read_only:
        return False
    if not disk.monitors:
        return True
    return bool(disk.monitors & other_disk.monitors)


def _conflict(volumes: Iterable[Volume], spec: AnyObject) -> bool:
    """Tell whether one of the volumes is a disk that the pod of this spec uses."""
    return any(
        is_volume_conflict(volume, other)
        for volume in volumes
        for other in spec.get("volumes") or ()
    )


class VolumeZone(FilterPlugin):
    """Allow volumes labelled with a zone or region only there."""

    name = "VolumeZone"
    events_to_register = frozenset({NODE_ADD, NODE_LABEL, VOLUME})
    REJECTION = PluginStatus(("node(s) had no available volume zone",), False, name)

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip:
        zones: list[tuple[str, frozenset[str]]] = []
        for use in uses_of(pod.pod):
            claim = handle.claims.get(pod.namespace, use.claim)
            name = claim["spec"].get("volumeName") if claim is not None else None
            volume = handle.volumes.get("", name) if name else None
            labels = labels_of(volume) if volume is not None else {}
            zones += [
                (key, frozenset(labels[key].split("__"))) for key in ZONE_LABELS if key in labels
            ]
        if zones:
            return PreFilterResult(zones)
        return SKIP

    def filter(
        self, pod: PodInfo, state: list[tuple[str, frozenset[str]]], node_info: NodeInfo
    ) -> PluginStatus | None:
        labels = node_info.labels
        if not any(key in labels for key in ZONE_LABELS):
            return None
        if all(labels.get(key) in values for key, values in state):
            return None
        return self.REJECTION

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Accept a claim of the pod, a volume of another zone, a node."""
        old = event.old
        new = event.new or {}
        if new.get("kind") == "PersistentVolumeClaim":
            return _is_claim_of(pod, new)
        if new.get("kind") == "PersistentVolume":
            if old is None:
                return True
            return _zones_of(old) != _zones_of(new)
        return True


def _zones_of(volume: AnyObject) -> dict[str, str]:
    labels = labels_of(volume)
    return {key: labels[key] for key in labels if key in ZONE_LABELS}
