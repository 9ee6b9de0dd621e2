"""Filters that look at the claims of a pod: bound or bindable, reachable from the node, not taken by another pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.cluster.meta import Object, annotations_of, is_being_deleted, is_controlled_by, labels_of, name_of
from kubepy.cluster.nodes import node_selector_matches
from kubepy.cluster.quantity import Quantity
from kubepy.cluster.reconcile import Key
from kubepy.cluster.selectors import from_label_selector
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

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_LABELS = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


class Use(NamedTuple):
    """A claim that a pod mounts; ``ephemeral``: made for this pod alone."""

    claim: str
    ephemeral: bool


def claims_of(pod: PodInfo) -> Iterator[Use]:
    for volume in pod.spec.get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield Use(source["claimName"], False)
        elif "ephemeral" in volume:
            yield Use(f"{name_of(pod.pod)}-{volume['name']}", True)


def is_bound(claim: Mapping[str, Any]) -> bool:
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations_of(claim)


class Claims(NamedTuple):
    """The claims of a pod, and the view in which to find volumes and classes."""

    view: View
    bound: list[Object]
    delayed: list[Object]  # to be bound when the pod has a node


class VolumeBinding(Plugin):
    """``volumebinding/binder.go``. Claims that are not bound must have a class that waits for the first consumer."""

    name = "VolumeBinding"
    wakes_on = frozenset({VOLUME, NODE_ADD, NODE_LABEL})
    NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
    NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip | Rejection:
        found = []
        for use in claims_of(pod):
            claim = view.informers.get(CLAIMS, pod.namespace, use.claim)
            if (why := _unusable(pod, use, claim)) or claim is None:
                return Rejection((why,), False, self.name)
            found.append(claim)
        if not found:
            return SKIP
        claims = Claims(view, [one for one in found if is_bound(one)], [one for one in found if not is_bound(one)])
        if any(not _waits_for_consumer(one, view) for one in claims.delayed):
            return Rejection(("pod has unbound immediate PersistentVolumeClaims",), False, self.name)
        return Admit(claims)

    def filter(self, pod: PodInfo, state: Claims, info: NodeInfo) -> Rejection | None:
        reasons = []
        volumes = [state.view.informers.get(VOLUMES, "", claim["spec"]["volumeName"]) for claim in state.bound]
        if any(volume is not None and not reaches(volume, info.node or {}) for volume in volumes):
            reasons.append(self.ELSEWHERE)
        if any(not bindable(claim, info.node or {}, state.view) for claim in state.delayed):
            reasons.append(self.NOTHING_TO_BIND)
        if None in volumes:
            reasons.append(self.NO_VOLUME)
        return Rejection(tuple(reasons), False, self.name) if reasons else None

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if event.new is None or event.new.get("kind") != "PersistentVolumeClaim":
            return event.new is not None
        meta = event.new["metadata"]
        return meta["namespace"] == pod.namespace and any(use.claim == meta["name"] for use in claims_of(pod))


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
    if use.ephemeral and not is_controlled_by(claim, pod.pod):
        own = f"{pod.namespace}/{name_of(pod.pod)}"
        return f"PVC {pod.namespace}/{use.claim} was not created for pod {own} (pod is not owner)"
    return ""


def _class_of(claim: Mapping[str, Any], view: View) -> Object | None:
    return view.informers.get(CLASSES, "", claim["spec"].get("storageClassName") or "")


def _waits_for_consumer(claim: Mapping[str, Any], view: View) -> bool:
    found = _class_of(claim, view)
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def reaches(volume: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether a volume's node affinity allows the node."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or node_selector_matches(required, node)


def bindable(claim: Object, node: Object, view: View) -> bool:
    """Whether an unbound claim could be served on this node: by a free volume, or by its class's provisioner."""
    if any(_serves(volume, claim) and reaches(volume, node) for volume in view.informers.list(VOLUMES)):
        return True
    found = _class_of(claim, view)
    if found is None or found.get("provisioner") in (None, "", NO_PROVISIONER):
        return False
    return _topology_fits(found.get("allowedTopologies"), labels_of(node))


def _serves(volume: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Whether a free volume fits a claim: class, modes, size and selector (``FindMatchingVolume``)."""
    spec, wanted = volume["spec"], claim["spec"]
    if (owner := spec.get("claimRef")) and owner.get("uid") not in (None, claim["metadata"].get("uid")):
        return False
    if is_being_deleted(volume) or (volume.get("status") or {}).get("phase") not in (None, "Available", "Pending"):
        return False
    same_class = (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
    same_mode = spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
    has_modes = set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
    if not (same_class and same_mode and has_modes):
        return False
    if wanted.get("selector") is not None and not from_label_selector(wanted["selector"]).matches(labels_of(volume)):
        return False
    return Quantity.parse(spec["capacity"]["storage"]) >= Quantity.parse(wanted["resources"]["requests"]["storage"])


def _topology_fits(terms: list[Object] | None, labels: Mapping[str, str]) -> bool:
    """Whether a node's labels fit one of a class's ``allowedTopologies``."""
    if not terms:
        return True
    return any(
        all(labels.get(one["key"]) in one["values"] for one in term.get("matchLabelExpressions") or ())
        for term in terms
    )


class SingleUse(NamedTuple):
    """The ReadWriteOncePod claims of a pod, and the other pods that use one of them."""

    claims: set[str]
    users: list[Key]


def _shared_claims(pod: PodInfo) -> list[str]:
    return [use.claim for use in claims_of(pod) if not use.ephemeral]


class VolumeRestrictions(Plugin):
    """A ReadWriteOncePod claim serves one pod at a time."""

    name = "VolumeRestrictions"
    wakes_on = frozenset({POD_DELETE, VOLUME})
    IN_USE = Rejection((
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    ), True, name)  # fmt: skip

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip | Rejection:
        single = set()
        for name in _shared_claims(pod):
            claim = view.informers.get(CLAIMS, pod.namespace, name)
            if claim is None:
                return Rejection((f'persistentvolumeclaim "{name}" not found',), False, self.name)
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                single.add(name)
        if not single:
            return SKIP
        use = SingleUse(single, [])
        for info in view.cache.nodes():
            for other in info.pods.values():
                self.update(pod, use, other, info, 1)
        return Admit(use) if use.users else SKIP

    def filter(self, pod: PodInfo, state: SingleUse, info: NodeInfo) -> Rejection | None:
        return self.IN_USE if state.users else None

    def clone(self, state: SingleUse) -> SingleUse:
        return SingleUse(state.claims, list(state.users))

    def update(self, pod: PodInfo, state: SingleUse, other: PodInfo, info: NodeInfo, count: int) -> None:
        if other.namespace != pod.namespace or state.claims.isdisjoint(_shared_claims(other)):
            return
        if count > 0:
            state.users.append(other.key)
        else:
            state.users.remove(other.key)


class VolumeZone(Plugin):
    """A volume labelled with a zone or region can be used only there."""

    name = "VolumeZone"
    wakes_on = frozenset({NODE_ADD, NODE_LABEL, VOLUME})
    REJECTION = Rejection(("node(s) had no available volume zone",), False, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        zones: list[tuple[str, frozenset[str]]] = []
        for use in claims_of(pod):
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
