"""The claims of a StatefulSet's pods: their names, and their owners under the retention policy.
Pure functions.

Upstream: ``stateful_set_utils.go``, from getPersistentVolumeClaims to
updateClaimOwnerRefForSetAndPod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kubepy.api.meta import (
    AnyObject,
    Object,
    name_of,
    namespace_of,
    new_controller_ref,
    owner_references,
    uid_of,
)
from kubepy.controllers.ref_manager import with_owner_references

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolumeClaim, StatefulSet

RETAIN, DELETE = "Retain", "Delete"


def claim_name(stateful_set: StatefulSet, template: PersistentVolumeClaim, ordinal: int) -> str:
    return f"{name_of(template)}-{name_of(stateful_set)}-{ordinal}"


def claim_names(stateful_set: StatefulSet, ordinal: int) -> list[str]:
    return [
        claim_name(stateful_set, template, ordinal)
        for template in stateful_set["spec"].get("volumeClaimTemplates") or []
    ]


def new_claims(stateful_set: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
    """Return the claims of a pod, with the labels of the template, and above them those of the
    selector (``getPersistentVolumeClaims``)."""
    selector_labels = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    claims: list[Object] = []
    for template in stateful_set["spec"].get("volumeClaimTemplates") or []:
        metadata: Object = {
            **template["metadata"],
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": namespace_of(stateful_set),
        }
        labels = {**(metadata.get("labels") or {}), **selector_labels}
        if labels:
            metadata["labels"] = labels
        claims.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": metadata,
                "spec": template["spec"],
            }
        )

    return cast("list[PersistentVolumeClaim]", claims)


def retention_policy(stateful_set: StatefulSet) -> tuple[str, str]:
    """Return ``whenDeleted`` and ``whenScaled``."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", RETAIN), policy.get("whenScaled", RETAIN)


def matches_owner(reference: AnyObject, owner: AnyObject) -> bool:
    """Return whether a reference names the owner by kind and name, whatever its uid."""
    return bool(
        (reference["apiVersion"], reference["kind"], reference["name"])
        == (owner["apiVersion"], owner["kind"], name_of(owner))
    )


def has_stale_owner_ref(claim: PersistentVolumeClaim, owner: AnyObject) -> bool:
    """Return whether the claim belongs to an earlier object of the owner's name
    (``hasStaleOwnerRef``)."""
    first = next(
        (reference for reference in owner_references(claim) if matches_owner(reference, owner)),
        None,
    )
    return first is not None and first["uid"] != uid_of(owner)


def has_unexpected_controller(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: AnyObject
) -> bool:
    """Return whether something else controls a claim that the retention policy is to handle."""
    if retention_policy(stateful_set) == (RETAIN, RETAIN):
        return False
    for reference in owner_references(claim):
        owner = next(
            (owner for owner in (stateful_set, pod) if matches_owner(reference, owner)), None
        )
        if owner is not None and reference["uid"] != uid_of(owner):
            return True
        if owner is None and reference.get("controller"):
            return True
    return False


def _is_owned_by(claim: PersistentVolumeClaim, owner: AnyObject) -> bool:
    uid = uid_of(owner)
    return any(reference["uid"] == uid for reference in owner_references(claim))


def _policy_owner(stateful_set: StatefulSet, pod: AnyObject, in_range: bool) -> AnyObject | None:
    """Return the owner that is to control the claims of a pod under the policy: the set, the pod,
    or None."""
    when_deleted, when_scaled = retention_policy(stateful_set)
    if when_scaled == DELETE and not in_range:
        return pod
    if when_deleted == DELETE:
        return stateful_set
    return None


def is_claim_owner_up_to_date(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: AnyObject, in_range: bool
) -> bool:
    """Return whether the claim's owners are those of the policy, or not to be touched
    (``isClaimOwnerUpToDate``)."""
    if not owner_references(claim):
        return _policy_owner(stateful_set, pod, in_range) is None
    if has_stale_owner_ref(claim, stateful_set) or has_stale_owner_ref(claim, pod):
        return True
    if has_unexpected_controller(claim, stateful_set, pod):
        if _is_owned_by(claim, stateful_set):
            return False
        return not _is_owned_by(claim, pod)

    uids = (uid_of(stateful_set), uid_of(pod))
    if any(
        reference["uid"] in uids and not reference.get("controller")
        for reference in owner_references(claim)
    ):
        return False

    policy_owner = _policy_owner(stateful_set, pod, in_range)
    return all(
        _is_owned_by(claim, owner) == (owner is policy_owner) for owner in (stateful_set, pod)
    )


def with_claim_owner(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: AnyObject, in_range: bool
) -> PersistentVolumeClaim:
    """Return the claim with the owners of the policy (``updateClaimOwnerRefForSetAndPod``)."""
    references = [
        reference
        for reference in owner_references(claim)
        if not matches_owner(reference, stateful_set) and not matches_owner(reference, pod)
    ]
    policy_owner = _policy_owner(stateful_set, pod, in_range)
    if policy_owner is not None and not has_unexpected_controller(claim, stateful_set, pod):
        references.append(new_controller_ref(policy_owner))
    return with_owner_references(claim, references)
