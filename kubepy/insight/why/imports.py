"""Objects of imported clusters whose owners the source does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import Object, namespace_of, owner_references
from kubepy.insight.why.remedies import absent

if TYPE_CHECKING:
    from kubepy.insight import Finding
    from kubepy.insight.why.scene import Diagnosis, Scene

# The kinds whose objects mostly have owners.
OWNED = ("pods", "replicasets.apps", "jobs.batch", "persistentvolumeclaims")


def owner_not_held(scene: Scene, obj: Object) -> Finding | None:
    """Say of an object that is done that nothing is known of its owner, which counts as there."""
    absent_objects = scene.settings.absent
    if absent_objects is None:
        return None
    for index, reference in enumerate(owner_references(obj)):
        owner = absent_objects.owner(reference)
        resource = scene.cluster.scheme.for_kind(reference["apiVersion"], reference["kind"])
        if owner is None or resource is None:
            continue
        namespace = namespace_of(obj) if resource.namespaced else ""
        if scene.get(resource.key, namespace, owner.name) is not None:
            continue
        return scene.finding(
            "owner-not-held",
            scene.link(obj, f"metadata.ownerReferences[{index}].uid", "this owns it"),
            absent(
                resource.key,
                namespace,
                owner.name,
                "the source of the import does not hold it: it counts as there, and nothing acts "
                "for it",
            ),
        )
    return None


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {}
NOTES: dict[str, tuple[Diagnosis, ...]] = dict.fromkeys(OWNED, (owner_not_held,))
