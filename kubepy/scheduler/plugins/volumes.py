"""Filters that look at the claims of a pod: bound or bindable, reachable from the node, not taken by another pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.meta import Object, annotations_of, is_being_deleted, labels_of, name_of
from kubepy.api.objects.volumes import (
    CLAIMS,
    CLASSES,
    SELECTED_NODE,
    VOLUMES,
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
    Admit,
    ClusterEvent,
    Plugin,
    Rejection,
    Skip,
    View,
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_LABELS = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


class Claims(NamedTuple):
    """The claims of a pod, and the view in which to find volumes and classes."""

    view: View
    bound: list[Object]
    delayed: list[Object]  # to be bound when the pod has a node
    volumes: list[Object]  # that one of these might have


class Plan(NamedTuple):
    """How to serve the delayed claims of a pod on one node: by volumes that are free, and by new ones."""

    bindings: list[tuple[Object, Object]]  # volume, claim
    provisions: list[Object]


class VolumeBinding(Plugin):
    """``volumebinding/binder.go``. Claims that are not bound must have a class that waits for the first consumer."""

    name = "VolumeBinding"
    wakes_on = frozenset({VOLUME, NODE_ADD, NODE_LABEL})
    NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
    NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip | Rejection:
        found = []
        for use in uses_of(pod.pod):
            claim = view.informers.get(CLAIMS, pod.namespace, use.claim)
            if (why := _unusable(pod, use, claim)) or claim is None:
                return Rejection((why,), False, self.name)
            found.append(claim)
        if not found:
            return SKIP
        delayed = [one for one in found if not is_bound(one)]
        if any(not waits_for_consumer(_class_of(one, view)) for one in delayed):
            return Rejection(("pod has unbound immediate PersistentVolumeClaims",), False, self.name)
        volumes = open_to(delayed, view.informers.list(VOLUMES)) if delayed else []
        return Admit(Claims(view, [one for one in found if is_bound(one)], delayed, volumes))

    def filter(self, pod: PodInfo, state: Claims, info: NodeInfo) -> Rejection | None:
        reasons = []
        volumes = [state.view.informers.get(VOLUMES, "", claim["spec"]["volumeName"]) for claim in state.bound]
        if any(volume is not None and not reaches(volume, info.node or {}) for volume in volumes):
            reasons.append(self.ELSEWHERE)
        if plan(state, info.node or {}) is None:
            reasons.append(self.NOTHING_TO_BIND)
        if None in volumes:
            reasons.append(self.NO_VOLUME)
        return Rejection(tuple(reasons), False, self.name) if reasons else None

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """A class that comes or reaches other nodes, any volume, a claim of the pod's own, any node."""
        old, new = event.old, event.new or {}
        if new.get("kind") == "StorageClass":
            return old is None or old.get("allowedTopologies") != new.get("allowedTopologies")
        return new.get("kind") != "PersistentVolumeClaim" or _concerns(pod, new)


def _concerns(pod: PodInfo, claim: Object) -> bool:
    """Whether it is a claim that the pod mounts, by its name."""
    metadata = claim["metadata"]
    return metadata["namespace"] == pod.namespace and any(
        use.claim == metadata["name"] for use in uses_of(pod.pod))


def _unusable(pod: PodInfo, use: Use, claim: Object | None) -> str:
    """Why a claim cannot be used at all, in upstream's words (``podHasPVCs``)."""
    if claim is None and use.ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.claim}"'
    if claim is None:
        return f'persistentvolumeclaim "{use.claim}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        return f'persistentvolumeclaim "{use.claim}" bound to non-existent persistentvolume "{volume}"'
    if is_being_deleted(claim):
        return f'persistentvolumeclaim "{use.claim}" is being deleted'
    return not_made_for(claim, pod.pod) if use.ephemeral else ""


def _class_of(claim: Object, view: View) -> Object | None:
    return view.informers.get(CLASSES, "", class_of(claim))


def plan(claims: Claims, node: Object) -> Plan | None:
    """How the delayed claims can be served on this node, or None (``FindPodVolumes``)."""
    if not claims.delayed:
        return Plan([], [])
    chosen = [claim for claim in claims.delayed if SELECTED_NODE in annotations_of(claim)]
    if any(annotations_of(claim)[SELECTED_NODE] != name_of(node) for claim in chosen):
        return None  # a volume is being made for another node
    bindings: list[tuple[Object, Object]] = []
    for claim in sorted((one for one in claims.delayed if one not in chosen), key=requested_size):
        taken = {name_of(volume) for volume, _ in bindings}
        if (volume := best_match(claim, claims.volumes, node, taken=taken)) is not None:
            bindings.append((volume, claim))
        else:
            chosen.append(claim)
    if all(_can_be_provisioned(claim, node, claims.view) for claim in chosen):
        return Plan(bindings, chosen)
    return None


def _can_be_provisioned(claim: Object, node: Object, view: View) -> bool:
    found = _class_of(claim, view)
    if found is None or found.get("provisioner") in (None, "", NO_PROVISIONER):
        return False
    return _topology_fits(found.get("allowedTopologies"), labels_of(node))


def _topology_fits(terms: list[Object] | None, labels: Mapping[str, str]) -> bool:
    """Whether a node's labels fit one of a class's ``allowedTopologies``."""
    if not terms:
        return True
    return any(
        all(labels.get(one["key"]) in one["values"] for one in term.get("matchLabelExpressions") or ())
        for term in terms
    )


class SingleUse(NamedTuple):
    """The ReadWriteOncePod claims of a pod, and the other pods that use one of them; and its disks."""

    claims: set[str]
    users: list[Key]
    disks: list[Object]


def _shared_claims(pod: PodInfo) -> list[str]:
    return [use.claim for use in uses_of(pod.pod) if not use.ephemeral]


class VolumeRestrictions(Plugin):
    """A ReadWriteOncePod claim serves one pod at a time; a disk one on each node, unless all of them only read it."""

    name = "VolumeRestrictions"
    wakes_on = frozenset({POD_DELETE, NODE_ADD, VOLUME})
    IN_USE = Rejection((
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    ), True, name)  # fmt: skip

    NO_DISK = Rejection(("node(s) had no available disk",), True, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip | Rejection:
        single = set()
        for name in _shared_claims(pod):
            claim = view.informers.get(CLAIMS, pod.namespace, name)
            if claim is None:
                return Rejection((f'persistentvolumeclaim "{name}" not found',), False, self.name)
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                single.add(name)
        disks = [volume for volume in pod.spec.get("volumes") or () if disk_of(volume) is not None]
        if not single and not disks:
            return SKIP
        use = SingleUse(single, [], disks)
        for info in view.cache.nodes():
            for other in info.pods.values():
                self.update(pod, use, other, info, 1)
        return Admit(use) if use.users or disks else SKIP

    def filter(self, pod: PodInfo, state: SingleUse, info: NodeInfo) -> Rejection | None:
        if any(_wants_disk_of(state.disks, other.spec) for other in info.pods.values()):
            return self.NO_DISK
        return self.IN_USE if state.users else None

    def clone(self, state: SingleUse) -> SingleUse:
        return state._replace(users=list(state.users))

    def update(self, pod: PodInfo, state: SingleUse, other: PodInfo, info: NodeInfo, count: int) -> None:
        if other.namespace != pod.namespace or state.claims.isdisjoint(_shared_claims(other)):
            return
        if count > 0:
            state.users.append(other.key)
        else:
            state.users.remove(other.key)


    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """A claim of the pod that comes, a pod with one of its claims that goes, a new node."""
        if VOLUME in event.actions:
            claim = event.new or {}
            return event.old is None and claim.get("kind") == "PersistentVolumeClaim" and _concerns(pod, claim)
        gone = event.old
        if POD_DELETE not in event.actions or gone is None or event.unknown:
            return True
        if gone["metadata"]["namespace"] != pod.namespace:
            return False
        if _wants_disk_of(pod.spec.get("volumes") or [], gone["spec"]):
            return True
        return not {use.claim for use in uses_of(gone)}.isdisjoint(_shared_claims(pod))


class Disk(NamedTuple):
    """What tells a disk from others, and the addresses at which it is found."""

    identity: tuple[str, ...]
    read_only: bool
    monitors: frozenset[str] = frozenset()


def disk_of(volume: Object) -> Disk | None:
    """The disk behind a volume of a kind that cannot be mounted twice (``isVolumeConflict``)."""
    if disk := volume.get("gcePersistentDisk"):
        return Disk(("gce", disk["pdName"]), bool(disk.get("readOnly")))
    if disk := volume.get("awsElasticBlockStore"):
        return Disk(("aws", disk["volumeID"]), False)  # not even for reading
    if disk := volume.get("iscsi"):
        return Disk(("iscsi", disk["iqn"]), bool(disk.get("readOnly")))
    if disk := volume.get("rbd"):
        identity = ("rbd", disk.get("pool", ""), disk["image"])
        return Disk(identity, bool(disk.get("readOnly")), frozenset(disk["monitors"]))
    return None


def clash(volume: Object, other: Object) -> bool:
    """Whether two volumes are one disk that both cannot have."""
    one, two = disk_of(volume), disk_of(other)
    if one is None or two is None or one.identity != two.identity or (one.read_only and two.read_only):
        return False
    return not one.monitors or bool(one.monitors & two.monitors)


def _wants_disk_of(volumes: list[Object], other: Object) -> bool:
    """Whether one of the volumes is a disk that the pod of another spec has."""
    return any(clash(one, its) for one in volumes for its in other.get("volumes") or ())


class VolumeZone(Plugin):
    """A volume labelled with a zone or region can be used only there."""

    name = "VolumeZone"
    wakes_on = frozenset({NODE_ADD, NODE_LABEL, VOLUME})
    REJECTION = Rejection(("node(s) had no available volume zone",), False, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        zones: list[tuple[str, frozenset[str]]] = []
        for use in uses_of(pod.pod):
            claim = view.informers.get(CLAIMS, pod.namespace, use.claim)
            name = claim["spec"].get("volumeName") if claim is not None else None
            volume = view.informers.get(VOLUMES, "", name) if name else None
            labels = labels_of(volume) if volume is not None else {}
            zones += [(key, frozenset(labels[key].split("__"))) for key in ZONE_LABELS if key in labels]
        return Admit(zones) if zones else SKIP

    def filter(self, pod: PodInfo, state: list[tuple[str, frozenset[str]]], info: NodeInfo) -> Rejection | None:
        labels = info.labels
        if not any(key in labels for key in ZONE_LABELS):
            return None
        return None if all(labels.get(key) in values for key, values in state) else self.REJECTION

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """A claim of the pod, a volume of another zone, a node."""
        old, new = event.old, event.new or {}
        if new.get("kind") == "PersistentVolumeClaim":
            return _concerns(pod, new)
        if new.get("kind") == "PersistentVolume":
            return old is None or _zones_of(old) != _zones_of(new)
        return True


def _zones_of(volume: Object) -> dict[str, str]:
    return {key: value for key, value in labels_of(volume).items() if key in ZONE_LABELS}
