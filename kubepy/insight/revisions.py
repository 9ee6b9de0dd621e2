"""What the revisions of workloads brought, in words: images, or what else of the template changed.

The templates are those of ReplicaSets and ControllerRevisions. Of a workload that is deleted by
now, only the steps of its changes tell (``kubepy.insight.picture.words``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.objects.deployments import HASH_LABEL
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.views import owner_of, view_controller_revision, view_workload
from kubepy.insight import Rollout, Timeline
from kubepy.storage import Key

REPLICA_SETS = "replicasets.apps"
CONTROLLER_REVISIONS = "controllerrevisions.apps"
# The kinds of revisions. Their steps follow from those of their workload.
REVISION_RESOURCES = (REPLICA_SETS, CONTROLLER_REVISIONS)
CONTAINERS = ("initContainers", "containers")


class RevisionTemplate(NamedTuple):
    """The pod template of a revision, with the number of the revision."""

    number: int
    revision: str
    template: Object


def with_rollouts(cluster: LocalCluster, timeline: Timeline) -> Timeline:
    """Return a timeline of a cluster with what the revisions of its workloads brought, for a
    picture."""
    workloads = [course.key for course in timeline.courses]
    return timeline._replace(rollouts=tuple(rollouts_of(cluster, workloads)))


def rollouts_of(cluster: LocalCluster, workloads: Collection[Key]) -> Iterator[Rollout]:
    """Yield what the revisions of workloads brought, older ones first."""
    if not workloads:
        return
    for workload, templates in templates_of(cluster, set(workloads)).items():
        templates.sort(key=lambda entry: entry.number)
        yield from told_apart(workload, templates)


def templates_of(
    cluster: LocalCluster, workloads: Collection[Key]
) -> dict[Key, list[RevisionTemplate]]:
    """Return the templates that the ReplicaSets and ControllerRevisions of workloads have."""
    templates = defaultdict[Key, list[RevisionTemplate]](list)
    state = cluster.recorded_state()
    for resource, read in ((REPLICA_SETS, of_replica_set), (CONTROLLER_REVISIONS, of_revision)):
        for record in state.records(resource, None):
            owner, _, name = owner_of(record.object).partition("/")
            workload = Key(owner, record.key.namespace, name)
            if workload in workloads:
                templates[workload].append(read(record.object))
    return templates


def of_replica_set(replica_set: Object) -> RevisionTemplate:
    """Return the template of a Deployment's ReplicaSet."""
    seen = view_workload(replica_set)
    return RevisionTemplate(
        seen.number, seen.revision, (replica_set.get("spec") or {}).get("template") or {}
    )


def of_revision(revision: Object) -> RevisionTemplate:
    """Return the template that a ControllerRevision keeps. The label of a StatefulSet's has the
    name of the ControllerRevision before the hash, as its pods have."""
    seen = view_controller_revision(revision)
    spec = (revision.get("data") or {}).get("spec") or {}
    return RevisionTemplate(
        seen.number, seen.revision.rpartition("-")[2], spec.get("template") or {}
    )


def told_apart(workload: Key, templates: Sequence[RevisionTemplate]) -> Iterator[Rollout]:
    """Yield what a workload's revisions brought: the images of containers that have several, and
    what else differs from the revision before, or from the one before that had the same images."""
    images = [images_of(entry.template) for entry in templates]
    names = dict.fromkeys(name for own in images for name in own)
    changing = [name for name in names if len({own.get(name) for own in images}) > 1]
    shown = changing or list(names)[-1:]
    newest: Object | None = None
    with_images: dict[str, Object] = {}  # the newest template that has these images
    for entry, own in zip(templates, images, strict=True):
        text = ", ".join(short_image(own[name]) for name in shown if name in own)
        before = with_images.get(text, newest)
        changes = [] if before is None else changed_parts(before, entry.template)
        yield Rollout(workload, entry.revision, text, ", ".join(changes))
        newest = with_images[text] = entry.template


def images_of(template: Object) -> dict[str, str]:
    """Return the image of each container of a template."""
    return {
        str(container.get("name")): str(container.get("image"))
        for container in containers_of(template)
    }


def containers_of(template: Object) -> list[Object]:
    """Return the containers of a template, those that run first before the others."""
    spec = template.get("spec") or {}
    return [container for field in CONTAINERS for container in spec.get(field) or ()]


def short_image(image: str) -> str:
    """Return an image without its registry and path; of a digest the first twelve digits."""
    name = image.rpartition("/")[2]
    name, at, digest = name.partition("@")
    return f"{name}{at}{digest.rpartition(':')[2][:12]}"


def changed_parts(before: Object, after: Object) -> list[str]:
    """Return the names of the fields in which two templates differ, without images."""
    changes = list(changed_keys(metadata_of(before), metadata_of(after)))
    changes += changed_keys(
        without(before.get("spec") or {}, CONTAINERS), without(after.get("spec") or {}, CONTAINERS)
    )
    old = {container.get("name"): container for container in containers_of(before)}
    new = {container.get("name"): container for container in containers_of(after)}
    for name in dict.fromkeys([*old, *new]):
        if name in old and name in new:
            fields = changed_keys(without(old[name], ("image",)), without(new[name], ("image",)))
            changes += (field if len(new) == 1 else f"{field} of {name}" for field in fields)
        else:
            changes.append(f"container {name} {'added' if name in new else 'removed'}")
    return changes


def metadata_of(template: Object) -> Object:
    """Return the labels and annotations of a template, without the hashes of controllers."""
    metadata = template.get("metadata") or {}
    labels = without(metadata.get("labels") or {}, (HASH_LABEL,))
    return {"labels": labels, "annotations": metadata.get("annotations") or {}}


def without(values: Object, left_out: Collection[str]) -> Object:
    """Return a mapping without some of its keys."""
    return {key: value for key, value in values.items() if key not in left_out}


def changed_keys(before: Object, after: Object) -> list[str]:
    """Return the keys whose values differ in two mappings."""
    return [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
