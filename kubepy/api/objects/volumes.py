"""PersistentVolumes, the claims that they can serve, and StorageClasses; for binder and scheduler
alike.

Upstream: ``component-helpers/storage/volume/pv_helpers.go`` and
``pkg/controller/volume/persistentvolume/index.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import (
    AnyObject,
    ObjectT,
    annotations_of,
    is_being_deleted,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    object_reference,
    spec_of,
    status_of,
    uid_of,
)
from kubepy.api.objects.nodes import node_selector_matches
from kubepy.api.selectors import from_label_selector
from kubepy.api.values.quantity import Quantity
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolume, PersistentVolumeClaim

CLASSES = "storageclasses.storage.k8s.io"

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


# --- classes --------------------------------------------------------------------------------------


def class_of(obj: AnyObject) -> str:
    """Return the name of a claim's or volume's class, "" for none."""
    beta = annotations_of(obj).get(BETA_CLASS)
    return str(beta if beta is not None else spec_of(obj).get("storageClassName") or "")


def access_modes(modes: Sequence[str] | None) -> str:
    """Abbreviate access modes: ``RWO,RWX``, always in the same order
    (``GetAccessModesAsString``)."""
    return ",".join(short for mode, short in SHORT_MODES.items() if mode in (modes or ()))


def has_class(claim: AnyObject) -> bool:
    """Return whether the claim names a class, be it the empty one."""
    return BETA_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def default_class(classes: Iterable[ObjectT]) -> ObjectT | None:
    """Return the default class; of several the newest, of those the first by name
    (``GetDefaultClass``)."""
    defaults = sorted(
        (storage_class for storage_class in classes if is_default_class(storage_class)), key=name_of
    )
    return max(
        defaults,
        key=lambda default: str(default["metadata"].get("creationTimestamp")),
        default=None,
    )


def is_default_class(storage_class: AnyObject) -> bool:
    annotations = annotations_of(storage_class)
    return "true" in (annotations.get(DEFAULT_CLASS), annotations.get(BETA_DEFAULT_CLASS))


def waits_for_consumer(storage_class: AnyObject | None) -> bool:
    """Return whether claims of the class are bound only when a pod that uses them has a node."""
    return (
        storage_class is not None
        and storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
    )


# --- a claim and a volume -------------------------------------------------------------------------


def is_bound(claim: AnyObject) -> bool:
    """Return whether the binding of a claim was completed."""
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations_of(claim)


def is_bound_to(volume: AnyObject, claim: AnyObject) -> bool:
    """Return whether the volume is bound to the claim or reserved for its name
    (``IsVolumeBoundToClaim``)."""
    claim_ref = volume["spec"].get("claimRef")
    if not claim_ref or (claim_ref.get("namespace"), claim_ref.get("name")) != (
        namespace_of(claim),
        name_of(claim),
    ):
        return False
    return claim_ref.get("uid") in (None, "", uid_of(claim))


def with_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume bound to the claim; the same object if it already is
    (``GetBindVolumeToClaim``)."""
    spec = volume["spec"]
    metadata = volume["metadata"]
    claim_ref = nested_map(spec, "claimRef")
    bound_to = (claim_ref.get("name"), claim_ref.get("namespace"), claim_ref.get("uid"))
    if bound_to != (name_of(claim), namespace_of(claim), uid_of(claim)):
        spec = {**spec, "claimRef": object_reference(claim)}
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations_of(volume):
        metadata = {
            **metadata,
            "annotations": {**annotations_of(volume), BOUND_BY_CONTROLLER: "yes"},
        }
    if spec is volume["spec"] and metadata is volume["metadata"]:
        return volume
    return {**volume, "metadata": metadata, "spec": spec}


def reaches(volume: AnyObject, node: AnyObject) -> bool:
    """Return whether the volume's node affinity allows the node."""
    required = nested_map(volume["spec"], "nodeAffinity").get("required")
    return required is None or node_selector_matches(required, node)


def requested_size(claim: AnyObject) -> Quantity:
    return Quantity.parse(nested_map(claim["spec"], "resources", "requests").get("storage", "0"))


def capacity(volume: AnyObject) -> Quantity:
    return Quantity.parse(nested_map(volume["spec"], "capacity").get("storage", "0"))


def modes_match(claim: AnyObject, volume: AnyObject) -> bool:
    """Return whether both have the same volume mode, Filesystem or Block."""
    return bool(
        claim["spec"].get("volumeMode", "Filesystem")
        == volume["spec"].get("volumeMode", "Filesystem")
    )


def offers_access(volume: AnyObject, claim: AnyObject) -> bool:
    return set(nested_list(claim["spec"], "accessModes")) <= set(
        nested_list(volume["spec"], "accessModes")
    )


def attributes_match(claim: AnyObject, volume: AnyObject) -> bool:
    return (claim["spec"].get("volumeAttributesClassName") or "") == (
        volume["spec"].get("volumeAttributesClassName") or ""
    )


def mismatch(volume: AnyObject, claim: AnyObject) -> str:
    """Return why a volume that a claim names cannot serve it, "" if it can
    (``checkVolumeSatisfyClaim``)."""
    if is_being_deleted(volume):
        return f"the volume is marked for deletion {quote(name_of(volume))}"
    if capacity(volume).value() < requested_size(claim).value():
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if not attributes_match(claim, volume):
        return "volumeAttributesClassName does not match"
    if not modes_match(claim, volume):
        return "incompatible volumeMode"
    if offers_access(volume, claim):
        return ""
    return "incompatible accessMode"


# --- the claims of a pod --------------------------------------------------------------------------


class Use(NamedTuple):
    """A claim that a pod mounts; ``ephemeral``: created for this pod alone."""

    claim: str
    ephemeral: bool


def uses_of(pod: AnyObject) -> Iterator[Use]:
    for volume in nested_list(pod["spec"], "volumes"):
        if source := volume.get("persistentVolumeClaim"):
            yield Use(source["claimName"], False)
        elif "ephemeral" in volume:
            yield Use(ephemeral_claim_name(pod, volume), True)


def ephemeral_claim_name(pod: AnyObject, volume: AnyObject) -> str:
    return f"{name_of(pod)}-{volume['name']}"


def not_made_for(claim: AnyObject, pod: AnyObject) -> str:
    """Return upstream's error for a claim that has an ephemeral volume's name but another owner
    than the pod.

    "" if the pod is its owner (``VolumeIsForPod``).
    """
    if is_controlled_by(claim, pod):
        return ""
    return (
        f"PVC {namespace_of(claim)}/{name_of(claim)} was not created for pod "
        f"{namespace_of(pod)}/{name_of(pod)} "
        "(pod is not owner)"
    )


def mounts(pod: AnyObject, claim: AnyObject) -> bool:
    """Return whether a pod in the claim's namespace mounts the claim.

    An ephemeral volume's claim that was created for another pod, under the same name, does not
    count.
    """
    return any(
        use.claim == name_of(claim) and not (use.ephemeral and not_made_for(claim, pod))
        for use in uses_of(pod)
    )


# --- choosing -------------------------------------------------------------------------------------


def find_volume(
    claim: AnyObject, volumes: Iterable[ObjectT], *, only_reserved: bool
) -> ObjectT | None:
    """Return the volume to bind a claim to: a reserved one, or the smallest free one with the
    fewest access modes.

    ``only_reserved``: the claim waits for its consumer, and the scheduler chooses among the free
    volumes. Upstream: ``findByClaim``.
    """
    candidates = sorted(
        (volume for volume in open_to([claim], volumes) if offers_access(volume, claim)), key=_modes
    )
    for _, group in groupby(candidates, key=_modes):
        if (match := best_match(claim, group, None, reserved_only=only_reserved)) is not None:
            return match
    return None


def open_to(claims: Collection[AnyObject], volumes: Iterable[ObjectT]) -> list[ObjectT]:
    """Return the volumes that neither belong to another claim nor are reserved for one: few, if
    most are in use."""
    return [
        volume
        for volume in volumes
        if not volume["spec"].get("claimRef") or any(is_bound_to(volume, claim) for claim in claims)
    ]


def _modes(volume: AnyObject) -> tuple[int, list[str]]:
    modes = [mode for mode in SHORT_MODES if mode in nested_list(volume["spec"], "accessModes")]
    return len(modes), modes


def best_match(
    claim: AnyObject,
    volumes: Iterable[ObjectT],
    node: AnyObject | None,
    *,
    taken: Collection[str] = (),
    reserved_only: bool = False,
) -> ObjectT | None:
    """Return a volume reserved for the claim, if the node can reach it, or the smallest that fits.

    ``taken``: the names of volumes that are used already. Upstream: ``FindMatchingVolume``.
    """
    candidates = [
        volume
        for volume in volumes
        if name_of(volume) not in taken
        and (not volume["spec"].get("claimRef") or is_bound_to(volume, claim))
        and capacity(volume) >= requested_size(claim)
        and modes_match(claim, volume)
        and attributes_match(claim, volume)
        and not is_being_deleted(volume)
    ]
    for volume in candidates:
        if is_bound_to(volume, claim):
            if node is None or reaches(volume, node):
                return volume
            return None

    if reserved_only:
        return None
    fitting = [
        volume
        for volume in candidates
        if _is_free_for(volume, claim)
        and (node is None or (reaches(volume, node) and offers_access(volume, claim)))
    ]
    return min(fitting, key=capacity, default=None)


def _is_free_for(volume: AnyObject, claim: AnyObject) -> bool:
    if status_of(volume).get("phase") != "Available" or class_of(volume) != class_of(claim):
        return False
    selector = claim["spec"].get("selector")
    return selector is None or from_label_selector(selector).matches(labels_of(volume))
