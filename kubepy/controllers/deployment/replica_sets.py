"""A Deployment's ReplicaSets: new ones, their revisions and the other annotations they carry. Pure
functions.

Upstream: ``SetNewReplicaSetAnnotations`` and ``SetReplicasAnnotations`` of ``deployment/util``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import Object, annotations_of, name_of, namespace_of, new_controller_ref
from kubepy.api.objects.deployments import (
    DESIRED_REPLICAS,
    HASH_LABEL,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    revision_of,
    same_template,
)
from kubepy.api.types.hashing import compute_hash
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.deployment.sizes import max_surge, replicas

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, ReplicaSet

ROLLBACK_TO = "deprecated.deployment.rollback.to"
NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
}
HISTORY_LENGTH = 2000  # characters
MAX_NAME = 253


def next_revision(replica_sets: Iterable[ReplicaSet]) -> int:
    """Return one more than the highest revision; those that are no numbers do not count."""
    return max(map(revision_or_zero, replica_sets), default=0) + 1


def revision_or_zero(replica_set: ReplicaSet) -> int:
    """Return the revision; 0 where the annotation is no number."""
    try:
        return revision_of(replica_set)
    except ValueError:
        return 0


def outlived(deployment: Deployment, deleted: Sequence[ReplicaSet]) -> Sequence[ReplicaSet]:
    """Return those of the deleted ReplicaSets, in the order in which they went, that went after the
    newest.

    A controller that sees every deletion by itself replaces the newest while they are still there,
    and they count for its revision. Here several deletions are often seen at once.
    """
    template = deployment["spec"]["template"]
    newest = [
        index
        for index, replica_set in enumerate(deleted)
        if same_template(replica_set["spec"]["template"], template)
    ]
    if newest:
        return deleted[newest[-1] + 1 :]
    return []


def annotations_with_revision(
    deployment: Deployment, annotations: Mapping[str, str], revision: int
) -> dict[str, str]:
    """Return the annotations of the newest ReplicaSet: the Deployment's own, and a revision that
    only ever rises.

    One that had a revision already has been rolled back to: its former number goes into the
    history.
    """
    copied = {
        key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED
    }
    before = annotations.get(REVISION, "")
    number = int_or_none(before or "0")
    result = {**annotations, **copied}
    if number is not None and number < revision:
        result[REVISION] = str(revision)
        if before:
            text = annotations.get(REVISION_HISTORY, "")
            history = [*(text.split(",") if text else ()), before]
            while len(history) > 1 and len(",".join(history)) > HISTORY_LENGTH:
                history.pop(0)
            result[REVISION_HISTORY] = ",".join(history)

    return result


def size_annotations(deployment: Deployment) -> dict[str, str]:
    desired = replicas(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + max_surge(deployment))}


def scaled_replica_set(deployment: Deployment, replica_set: ReplicaSet, size: int) -> ReplicaSet:
    """Return the ReplicaSet with another size, and with the size annotations of now."""
    annotations = {**annotations_of(replica_set), **size_annotations(deployment)}
    return {
        **replica_set,
        "metadata": {**replica_set["metadata"], "annotations": annotations},
        "spec": {**replica_set["spec"], "replicas": size},
    }


def new_replica_set(deployment: Deployment, revision: int, size: int) -> ReplicaSet:
    """Return the ReplicaSet of the Deployment's present template.

    Its name is ``name-hash``, the name cut where it would be too long (``generateReplicaSetName``).
    """
    template = deployment["spec"]["template"]
    spec = deployment["spec"]
    hash_ = compute_hash(template, (deployment.get("status") or {}).get("collisionCount"))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: hash_}
    selector = {
        **spec["selector"],
        "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: hash_},
    }
    new_spec: Object = {
        "replicas": size,
        "selector": selector,
        "template": {
            **template,
            "metadata": {**(template.get("metadata") or {}), "labels": labels},
        },
    }
    if spec.get("minReadySeconds"):
        new_spec["minReadySeconds"] = spec["minReadySeconds"]
    return cast(
        "ReplicaSet",
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name_of(deployment)[: MAX_NAME - len(hash_) - 1]}-{hash_}",
                "namespace": namespace_of(deployment),
                "labels": labels,
                "annotations": annotations_with_revision(deployment, {}, revision)
                | size_annotations(deployment),
                "ownerReferences": [new_controller_ref(deployment)],
            },
            "spec": new_spec,
        },
    )
