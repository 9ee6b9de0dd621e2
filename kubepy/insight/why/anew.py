"""Jobs that can only be made anew: those that fail, or have failed, and those that are left to a
controller that does not run here. What a Job's pods are made of, and who looks after it, cannot be
changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import Object, annotations_of
from kubepy.api.objects.outcomes import EXIT_CODE, OUTCOME
from kubepy.api.objects.pods import phase_of
from kubepy.insight.why import jobs
from kubepy.insight.why.remedies import made_anew, pointer

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Diagnosis, Scene

TEMPLATE = ("spec", "template")


def failed_job(scene: Scene, job: Object) -> Finding | None:
    """Diagnose a Job that fails, or has failed: it can be made anew without what has failed it, as
    long as no pod of it has succeeded."""
    finding = jobs.failed_job(scene, job)
    if finding is None:
        return None
    changes = removals(job, finding.cause)
    has_result = any(phase_of(pod) == "Succeeded" for pod in scene.owned(job, "pods"))
    anew = [] if has_result else made_anew(scene, job, changes, has_begun=True)
    return finding._replace(remedies=(*finding.remedies, *anew))


def removals(job: Object, cause: str) -> list[Object]:
    """Return the operations of a patch that removes from a Job what fails it: its deadline, the
    node that its template names, what annotations say about its pods."""
    template = job["spec"]["template"]
    paths: list[tuple[str, ...]] = [
        (*TEMPLATE, "metadata", "annotations", name)
        for name in (OUTCOME, EXIT_CODE)
        if name in annotations_of(template)
    ]
    if template["spec"].get("nodeName"):
        paths.append((*TEMPLATE, "spec", "nodeName"))
    if cause == "job-deadline":
        paths = [("spec", "activeDeadlineSeconds"), *paths]
    return [{"op": "remove", "path": pointer(*path)} for path in paths]


def unmanaged_job(scene: Scene, job: Object) -> Finding | None:
    """Diagnose a Job that is left to another controller: the one here takes it when it is made
    anew."""
    finding = jobs.unmanaged_job(scene, job)
    if finding is None or finding.cause != "job-managed-by":
        return None
    patch = [{"op": "remove", "path": "/spec/managedBy"}]
    return finding._replace(remedies=tuple(made_anew(scene, job, patch)))


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {jobs.JOBS: (failed_job, unmanaged_job)}
