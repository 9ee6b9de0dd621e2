"""Going back to a revision that an annotation of the Deployment names, as ``extensions/v1beta1`` asked for it.

``kubectl rollout undo`` has long changed the template itself. Pure functions (``rollback.go``).
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object, annotations_of, name_of
from kubepy.api.objects.deployments import same_template, template_without_hash
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.deployment.revision import NOT_COPIED, ROLLBACK_TO, number_of
from kubepy.controllers.deployment.sizes import ReplicaSets

KEPT = NOT_COPIED - {ROLLBACK_TO}
NOT_FOUND = "DeploymentRollbackRevisionNotFound"
UNCHANGED = "DeploymentRollbackTemplateUnchanged"
DONE = "DeploymentRollback"


class Rollback(NamedTuple):
    """The Deployment as it is to be, and what to say about it."""

    deployment: Object
    kind: str
    reason: str
    message: str


def wanted_revision(deployment: Object) -> int | None:
    """The revision to go back to, 0 for the last one before this; None where none is asked for."""
    return int_or_none(annotations_of(deployment).get(ROLLBACK_TO, ""))


def roll_back(deployment: Object, replica_sets: ReplicaSets, revision: int) -> Rollback:
    """What comes of it; in any case the Deployment no longer asks."""
    revision = revision or _last_revision(replica_sets)
    if not revision:
        return Rollback(_without_request(deployment), "Warning", NOT_FOUND, "Unable to find last revision.")
    found = next((one for one in replica_sets if number_of(one) == revision), None)
    if found is None:
        message = "Unable to find the revision to rollback to."
        return Rollback(_without_request(deployment), "Warning", NOT_FOUND, message)
    if same_template(found["spec"]["template"], deployment["spec"]["template"]):
        message = f'The rollback revision contains the same template as current deployment "{name_of(deployment)}"'
        return Rollback(_without_request(deployment), "Warning", UNCHANGED, message)
    message = f'Rolled back deployment "{name_of(deployment)}" to revision {revision}'
    return Rollback(_without_request(_with_template_of(deployment, found)), "Normal", DONE, message)


def _last_revision(replica_sets: ReplicaSets) -> int:
    """The second highest, 0 if there is none."""
    numbers = sorted(map(number_of, replica_sets), reverse=True)
    return numbers[1] if len(numbers) > 1 else 0


def _without_request(deployment: Object) -> Object:
    annotations = {key: value for key, value in annotations_of(deployment).items() if key != ROLLBACK_TO}
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}


def _with_template_of(deployment: Object, replica_set: Object) -> Object:
    """The template and the annotations of that revision; those that are no revision's own stay."""
    stay = {key: value for key, value in annotations_of(deployment).items() if key in KEPT}
    back = {key: value for key, value in annotations_of(replica_set).items() if key not in NOT_COPIED}
    spec = {**deployment["spec"], "template": template_without_hash(replica_set["spec"]["template"])}
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": stay | back}, "spec": spec}
