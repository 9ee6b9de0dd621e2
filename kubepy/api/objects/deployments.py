"""Which ReplicaSet of a Deployment is its newest, which are old, and their revisions.

Pure questions that the controller, `describe` and `rollout` ask alike. Upstream: ``pkg/controller/deployment/util``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.api.meta import AnyObject, Object, ObjectT, annotations_of, uid_of
from kubepy.api.values.gonumbers import parse_int

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"


def template_without_hash(template: AnyObject) -> Object:
    """A pod template less its pod-template-hash label, which a ReplicaSet's has and a Deployment's has not."""
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    return {**template, "metadata": metadata}


def same_template(one: AnyObject, other: AnyObject) -> bool:
    """Whether two pod templates are equal but for the hash label (``EqualIgnoreHash``)."""
    return template_without_hash(one) == template_without_hash(other)


def by_age(replica_sets: Iterable[ObjectT]) -> list[ObjectT]:
    """Oldest first (``ReplicaSetsByCreationTimestamp``); of those made within one second UIDs tell the age."""
    return sorted(replica_sets, key=lambda one: (one["metadata"].get("creationTimestamp", ""), uid_of(one)))


def new_replica_set(deployment: AnyObject, replica_sets: Iterable[ObjectT]) -> ObjectT | None:
    """The oldest ReplicaSet with the Deployment's template, if there is one (``FindNewReplicaSet``)."""
    template = deployment["spec"]["template"]
    return next((one for one in by_age(replica_sets) if same_template(one["spec"]["template"], template)), None)


def old_replica_sets(deployment: AnyObject, replica_sets: Iterable[ObjectT]) -> list[ObjectT]:
    """All others, in the order given (``FindOldReplicaSets``)."""
    found = list(replica_sets)
    newest = new_replica_set(deployment, found)
    return [one for one in found if newest is None or uid_of(one) != uid_of(newest)]


def revision_of(obj: AnyObject) -> int:
    """The revision that an object's annotation names; 0 without one. Raises NumberError where it is no number."""
    text = annotations_of(obj).get(REVISION)
    return parse_int(text) if text else 0
