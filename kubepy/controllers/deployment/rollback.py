"""Rolling back to a revision that an annotation of the Deployment names, as ``extensions/v1beta1``
had it.

``kubectl rollout undo`` has long changed the template itself. Pure functions (``rollback.go``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.meta import annotations_of, name_of
from kubepy.api.objects.deployments import same_template, template_without_hash
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.deployment.replica_sets import NOT_COPIED, ROLLBACK_TO, revision_or_zero

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, ReplicaSet

NOT_FOUND = "DeploymentRollbackRevisionNotFound"
UNCHANGED = "DeploymentRollbackTemplateUnchanged"
DONE = "DeploymentRollback"


class DeploymentRollback(NamedTuple):
    """The Deployment as it is to be, and the event about it."""

    deployment: Deployment
    event_type: str
    reason: str
    message: str


def rollback_revision(deployment: Deployment) -> int | None:
    """Return the revision to roll back to, 0 for the last one before this; None without the
    annotation."""
    return int_or_none(annotations_of(deployment).get(ROLLBACK_TO, ""))


def roll_back(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], revision: int
) -> DeploymentRollback:
    """Return the rollback to a revision; in any case the Deployment loses the annotation."""
    revisions = sorted(map(revision_or_zero, replica_sets), reverse=True)
    revision = revision or (revisions[1] if len(revisions) > 1 else 0)
    if not revision:
        return DeploymentRollback(
            _without_rollback(deployment), "Warning", NOT_FOUND, "Unable to find last revision."
        )

    target = next(
        (replica_set for replica_set in replica_sets if revision_or_zero(replica_set) == revision),
        None,
    )
    if target is None:
        message = "Unable to find the revision to rollback to."
        return DeploymentRollback(_without_rollback(deployment), "Warning", NOT_FOUND, message)
    if same_template(target["spec"]["template"], deployment["spec"]["template"]):
        message = (
            f"The rollback revision contains the same template as current deployment "
            f'"{name_of(deployment)}"'
        )
        return DeploymentRollback(_without_rollback(deployment), "Warning", UNCHANGED, message)

    message = f'Rolled back deployment "{name_of(deployment)}" to revision {revision}'
    return DeploymentRollback(
        _without_rollback(_with_template_of(deployment, target)), "Normal", DONE, message
    )


def _without_rollback(deployment: Deployment) -> Deployment:
    annotations = {
        key: value for key, value in annotations_of(deployment).items() if key != ROLLBACK_TO
    }
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}


def _with_template_of(deployment: Deployment, replica_set: ReplicaSet) -> Deployment:
    """Return the Deployment with the template and the annotations of a revision; those of no
    revision stay."""
    own = {
        key: value
        for key, value in annotations_of(deployment).items()
        if key in NOT_COPIED - {ROLLBACK_TO}
    }
    copied = {
        key: value for key, value in annotations_of(replica_set).items() if key not in NOT_COPIED
    }
    spec = {
        **deployment["spec"],
        "template": template_without_hash(replica_set["spec"]["template"]),
    }
    return cast(
        "Deployment",
        {
            **deployment,
            "metadata": {**deployment["metadata"], "annotations": own | copied},
            "spec": spec,
        },
    )
