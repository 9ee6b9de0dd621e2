"""The new and the old ReplicaSets of a Deployment, and their revisions.

Used by the Deployment controller, ``describe`` and ``rollout``. Upstream:
``pkg/controller/deployment/util``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.api.meta import (
    AnyObject,
    Object,
    ObjectT,
    annotations_of,
    name_of,
    nested_map,
    uid_of,
)
from kubepy.api.values.gonumbers import parse_int

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"


def template_without_hash(template: AnyObject) -> Object:
    """Return a pod template without its pod-template-hash label.

    The template of a ReplicaSet has that label, the template of its Deployment has not.
    """
    metadata = dict(nested_map(template, "metadata"))
    labels = {
        key: value for key, value in nested_map(metadata, "labels").items() if key != HASH_LABEL
    }
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    return {**template, "metadata": metadata}


def same_template(left: AnyObject, right: AnyObject) -> bool:
    """Compare two pod templates, their hash labels left out (``EqualIgnoreHash``)."""
    return template_without_hash(left) == template_without_hash(right)


def by_age(replica_sets: Iterable[ObjectT]) -> list[ObjectT]:
    """Sort ReplicaSets by age, oldest first (``ReplicaSetsByCreationTimestamp``).

    Those created within one second are sorted by name.
    """
    return sorted(
        replica_sets, key=lambda rs: (rs["metadata"].get("creationTimestamp", ""), name_of(rs))
    )


def new_replica_set(deployment: AnyObject, replica_sets: Iterable[ObjectT]) -> ObjectT | None:
    """Return the oldest ReplicaSet with the Deployment's template, or None
    (``FindNewReplicaSet``)."""
    template = deployment["spec"]["template"]
    return next(
        (rs for rs in by_age(replica_sets) if same_template(rs["spec"]["template"], template)), None
    )


def old_replica_sets(deployment: AnyObject, replica_sets: Iterable[ObjectT]) -> list[ObjectT]:
    """Return all ReplicaSets but the new one, in the order given (``FindOldReplicaSets``)."""
    all_replica_sets = list(replica_sets)
    newest = new_replica_set(deployment, all_replica_sets)
    return [rs for rs in all_replica_sets if newest is None or uid_of(rs) != uid_of(newest)]


def revision_of(obj: AnyObject) -> int:
    """Return the revision in an object's annotation, 0 without one. Raises NumberError if it is not
    a number."""
    text = annotations_of(obj).get(REVISION)
    if text:
        return parse_int(text)
    return 0
