"""The claims of a StatefulSet's pods: their names, and who owns them under the retention policy. Pure functions.

Upstream: ``stateful_set_utils.go``, from getPersistentVolumeClaims to updateClaimOwnerRefForSetAndPod.
"""

from __future__ import annotations

from kubepy.api.meta import Object, name_of, namespace_of, new_controller_ref, owner_references, uid_of

RETAIN, DELETE = "Retain", "Delete"


def claim_name(set_: Object, template: Object, ordinal: int) -> str:
    return f"{name_of(template)}-{name_of(set_)}-{ordinal}"


def claim_names(set_: Object, ordinal: int) -> list[str]:
    return [claim_name(set_, one, ordinal) for one in set_["spec"].get("volumeClaimTemplates") or []]


def new_claims(set_: Object, ordinal: int) -> list[Object]:
    """The claims that a pod is to have, labelled as the template says, and above that as the selector wants."""
    wanted = (set_["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in set_["spec"].get("volumeClaimTemplates") or []:
        metadata: Object = {**template["metadata"], "name": claim_name(set_, template, ordinal),
                            "namespace": namespace_of(set_)}
        if labels := {**(metadata.get("labels") or {}), **wanted}:
            metadata["labels"] = labels
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
                       "spec": template["spec"]})
    return claims


def retention(set_: Object) -> tuple[str, str]:
    """``whenDeleted`` and ``whenScaled``."""
    policy = set_["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", RETAIN), policy.get("whenScaled", RETAIN)


def names_as_owner(reference: Object, owner: Object) -> bool:
    """Whether a reference names the owner by kind and name, whatever its uid."""
    return bool((reference["apiVersion"], reference["kind"], reference["name"])
                == (owner["apiVersion"], owner["kind"], name_of(owner)))


def has_stale_owner(claim: Object, owner: Object) -> bool:
    """Whether the claim belongs to an earlier object of the owner's name."""
    first = next((one for one in owner_references(claim) if names_as_owner(one, owner)), None)
    return first is not None and first["uid"] != uid_of(owner)


def has_unexpected_controller(claim: Object, set_: Object, pod: Object) -> bool:
    """Whether something else controls a claim that the retention policy is to handle."""
    if retention(set_) == (RETAIN, RETAIN):
        return False
    for reference in owner_references(claim):
        owner = next((one for one in (set_, pod) if names_as_owner(reference, one)), None)
        if owner is not None and reference["uid"] != uid_of(owner):
            return True
        if owner is None and reference.get("controller"):
            return True
    return False


def _owns(claim: Object, owner: Object) -> bool:
    return any(one["uid"] == uid_of(owner) for one in owner_references(claim))


def _wanted_owner(set_: Object, pod: Object, in_range: bool) -> Object | None:
    """The set, the pod, or None: who is to control the claims of a pod under the policy."""
    when_deleted, when_scaled = retention(set_)
    if when_scaled == DELETE and not in_range:
        return pod
    return set_ if when_deleted == DELETE else None


def is_owner_up_to_date(claim: Object, set_: Object, pod: Object, in_range: bool) -> bool:
    """Whether the claim's owners are as the policy wants them, or not to be touched (``isClaimOwnerUpToDate``)."""
    if not owner_references(claim):
        return _wanted_owner(set_, pod, in_range) is None
    if has_stale_owner(claim, set_) or has_stale_owner(claim, pod):
        return True
    owned = _owns(claim, set_) or _owns(claim, pod)
    if has_unexpected_controller(claim, set_, pod):
        return not owned
    if any(one["uid"] in (uid_of(set_), uid_of(pod)) and not one.get("controller") for one in owner_references(claim)):
        return False
    wanted = _wanted_owner(set_, pod, in_range)
    return all(_owns(claim, one) == (one is wanted) for one in (set_, pod))


def with_owner(claim: Object, set_: Object, pod: Object, in_range: bool) -> Object:
    """The claim with the owners that the policy wants (``updateClaimOwnerRefForSetAndPod``)."""
    references = [one for one in owner_references(claim)
                  if not names_as_owner(one, set_) and not names_as_owner(one, pod)]
    wanted = _wanted_owner(set_, pod, in_range)
    if wanted is not None and not has_unexpected_controller(claim, set_, pod):
        references.append(new_controller_ref(wanted))
    metadata = {key: value for key, value in claim["metadata"].items() if key != "ownerReferences"}
    if references:
        metadata["ownerReferences"] = references
    return {**claim, "metadata": metadata}
