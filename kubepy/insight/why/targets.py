"""Autoscalers whose target is missing: it may be a workload with another name, or of another
kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import Object, is_being_deleted, name_of, namespace_of
from kubepy.insight.why import intent
from kubepy.insight.why.remedies import merge_patch
from kubepy.insight.why.services import MOST_OFFERED, SIMILAR, alikeness

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Diagnosis, Scene


def missing_target(scene: Scene, autoscaler: Object) -> Finding | None:
    """Diagnose an autoscaler whose target is missing, with the workloads that it may mean."""
    if intent.target_of(scene, autoscaler) is not None:
        return None
    finding = intent.autoscaler(scene, autoscaler)
    if finding is None:
        return None
    name = autoscaler["spec"]["scaleTargetRef"]["name"]
    workloads = [
        workload
        for resource in intent.SCALED
        for workload in scene.list(resource, namespace_of(autoscaler))
        if scene.owner(workload) is None and not is_being_deleted(workload)
    ]
    meant = [
        workload
        for workload in workloads
        if alikeness(name_of(workload), name) >= SIMILAR or name_of(workload) == name_of(autoscaler)
    ]
    meant.sort(key=lambda workload: -alikeness(name_of(workload), name))
    references = [
        {field: workload[field] for field in ("apiVersion", "kind")} | {"name": name_of(workload)}
        for workload in meant[:MOST_OFFERED]
    ]
    return finding._replace(
        remedies=tuple(
            merge_patch(scene, autoscaler, {"spec": {"scaleTargetRef": reference}})
            for reference in references
        )
    )


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {intent.AUTOSCALERS: (missing_target,)}
