"""The annotations that a Deployment's ReplicaSets carry: revision, its history, and sizes. Pure functions.

Upstream: ``SetNewReplicaSetAnnotations`` and ``SetReplicasAnnotations`` of ``deployment/util``.
"""

from __future__ import annotations

from collections.abc import Iterable

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

ROLLBACK_TO = "deprecated.deployment.rollback.to"
NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS,
    ROLLBACK_TO,
}
HISTORY_LENGTH = 2000  # characters
MAX_NAME = 253


def next_revision(old: Iterable[Object]) -> int:
    """One more than the highest of the old ReplicaSets; revisions that are no numbers do not count."""
    return max(map(number_of, old), default=0) + 1


def outlived(deployment: Object, gone: list[Object]) -> list[Object]:
    """Those of the ReplicaSets that are gone, in the order in which they went, that went after the newest.

    A controller that sees every deletion by itself replaces the newest while they are still there, and they count for
    its revision. Here several deletions are often seen at once.
    """
    template = deployment["spec"]["template"]
    newest = [index for index, one in enumerate(gone) if same_template(one["spec"]["template"], template)]
    return gone[newest[-1] + 1:] if newest else []


def number_of(replica_set: Object) -> int:
    """The revision; 0 where the annotation is no number."""
    try:
        return revision_of(replica_set)
    except ValueError:
        return 0


def with_revision(deployment: Object, annotations: dict[str, str], revision: int) -> dict[str, str]:
    """The annotations of the newest ReplicaSet: the Deployment's own, and a revision that only ever rises.

    One that had a revision already has been rolled back to: its former number goes into the history.
    """
    copied = {key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED}
    before = annotations.get(REVISION, "")
    number = int_or_none(before or "0")
    if number is None:
        return annotations | copied
    result = annotations | copied
    if number < revision:
        result[REVISION] = str(revision)
        if before:
            result[REVISION_HISTORY] = _extended(annotations.get(REVISION_HISTORY, ""), before)
    return result


def _extended(history: str, revision: str) -> str:
    """The history with one more revision; the oldest give way when it becomes too long."""
    entries = history.split(",") if history else []
    while entries and len(",".join([*entries, revision])) > HISTORY_LENGTH:
        entries.pop(0)
    return ",".join([*entries, revision])


def size_annotations(deployment: Object) -> dict[str, str]:
    wanted = replicas(deployment)
    return {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + max_surge(deployment))}


def new_replica_set(deployment: Object, revision: int, size: int) -> Object:
    """The ReplicaSet of the Deployment's present template."""
    template, spec = deployment["spec"]["template"], deployment["spec"]
    hash_ = compute_hash(template, (deployment.get("status") or {}).get("collisionCount"))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: hash_}
    selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: hash_}}
    new_spec: Object = {
        "replicas": size,
        "selector": selector,
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        new_spec["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": _name(name_of(deployment), hash_),
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": with_revision(deployment, {}, revision) | size_annotations(deployment),
            "ownerReferences": [new_controller_ref(deployment)],
        },
        "spec": new_spec,
    }


def _name(deployment: str, hash_: str) -> str:
    """``name-hash``, the name cut where it would be too long (``generateReplicaSetName``)."""
    return f"{deployment[:MAX_NAME - len(hash_) - 1]}-{hash_}"
