"""What it takes to bring a workload back to an earlier revision: a decision, made before anything is written."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, name_of
from kubepy.api.objects.deployments import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    same_template,
    template_without_hash,
)
from kubepy.apiserver.request import JSON_PATCH, STRATEGIC_MERGE_PATCH
from kubepy.cli.errors import CliError
from kubepy.cli.rollout.revisions import Revision, find_revision
from kubepy.quoting import quote
from kubepy.runtime.history import holds

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# What a Deployment keeps of its own annotations; all else comes from the old ReplicaSet.
KEPT_ANNOTATIONS = {LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS,
                    "deprecated.deployment.rollback.to"}


class Rollback(NamedTuple):
    """The patch that goes back to a revision; ``patch`` is None when the workload already has its template."""

    target: Revision
    patch: Any
    patch_type: str

    @property
    def template(self) -> Object:
        """The pod template that the workload gets. Raises CliError for a ControllerRevision that keeps none."""
        return self.target.template


def plan_rollback(obj: Object, revisions: list[Revision], number: int) -> Rollback:
    """How to bring ``obj`` to revision ``number`` (0: the one before). Raises CliError."""
    if number < 0:
        raise CliError(f"unable to find specified revision {number} in history")
    if obj["kind"] == "Deployment":
        return _deployment(obj, revisions, number)
    if number == 0 and len(revisions) < 2:
        raise CliError("no last revision to roll back to")
    target = find_revision(revisions, number)
    is_current = holds(target.keeper, obj["spec"]["template"])
    return Rollback(target, None if is_current else target.keeper["data"], STRATEGIC_MERGE_PATCH)


def _deployment(obj: Object, revisions: list[Revision], number: int) -> Rollback:
    if number == 0 and len(revisions) < 2:
        raise CliError(f"no rollout history found for deployment {quote(name_of(obj))}")
    target = find_revision(revisions, number)
    if same_template(target.template, obj["spec"]["template"]):
        return Rollback(target, None, JSON_PATCH)
    annotations = {key: value for key, value in annotations_of(obj).items() if key in KEPT_ANNOTATIONS}
    annotations |= {key: value for key, value in annotations_of(target.keeper).items() if key not in KEPT_ANNOTATIONS}
    patch = [
        {"op": "replace", "path": "/spec/template", "value": template_without_hash(target.template)},
        {"op": "replace", "path": "/metadata/annotations", "value": annotations},
    ]
    return Rollback(target, patch, JSON_PATCH)


def require_not_paused(obj: Object) -> None:
    if obj["kind"] == "Deployment" and obj["spec"].get("paused"):
        raise CliError("you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and"
                       " try again")
