"""Diagnoses of every kind that has none of its own: custom resources, definitions, owners.

An object without a controller of kubepy's is judged by its own status, and by what it owns: the
workloads, pods, claims and Services below it are looked at like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import Object, is_being_deleted, status_of
from kubepy.api.objects.pods import get_condition
from kubepy.insight.why import goals
from kubepy.insight.why.scene import OTHER_KINDS, Diagnosis

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Scene


def owned_objects(scene: Scene, obj: Object) -> Finding | None:
    """Blame what an object owns: a custom resource's workloads, pods, claims."""
    for resource in goals.OWNED:
        for child in scene.owned(obj, resource):
            if (
                not goals.is_done(scene, child, child)
                and (finding := scene.diagnose(child)) is not None
            ):
                owns = scene.link(obj, "", f"it owns {scene.word(child)}, which is not done")
                return scene.lead(finding, owns)
    return None


def unhealthy(scene: Scene, obj: Object) -> Finding | None:
    """Blame a condition of an object's own status, its phase, or a controller that has not seen
    it."""
    status = obj.get("status")
    if not isinstance(status, dict) or is_being_deleted(obj):
        return None
    for name in goals.HEALTHY_CONDITIONS:
        condition = get_condition(obj, name)
        if condition is not None and condition.get("status") != "True":
            says = str(
                condition.get("message")
                or condition.get("reason")
                or f"its condition {name} is not True"
            )
            return scene.finding(
                "not-ready", scene.condition_link(obj, name, " ".join(says.split()).rstrip("."))
            )

    if "observedGeneration" in status and not goals.is_observed(obj):
        return scene.finding(
            "no-controllers",
            scene.link(
                obj,
                "status.observedGeneration",
                f"its controller has not seen generation {obj['metadata']['generation']}",
            ),
        )

    return None


def up_to_date(scene: Scene, obj: Object) -> Finding:
    """Say of an object that is done that there is nothing else to say."""
    return scene.finding("up-to-date", scene.link(obj, "", "it is where it should be"))


def rolling_out(scene: Scene, obj: Object) -> Finding:
    """Say of an object that gets there that nothing is to blame."""
    return scene.finding(
        "rolling-out", scene.link(obj, "", "the controllers bring it there by themselves")
    )


def not_there(scene: Scene, obj: Object) -> Finding:
    """Say of a stuck object of which nothing else is known what its status says."""
    finding = unhealthy(scene, obj)
    if finding is not None:
        return finding
    field = "status.phase" if status_of(obj).get("phase") else "status"
    return scene.finding(
        "not-ready", scene.link(obj, field, "nothing that the controllers do brings it further")
    )


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {OTHER_KINDS: (owned_objects, unhealthy)}
