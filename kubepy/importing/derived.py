"""The objects that controllers make of others, where a dump leaves out the whole kind: endpoints of
Services, and the revisions that DaemonSets and StatefulSets stand at.

A real cluster has them. Without them the first run of the controllers would write them, and give
the pods of DaemonSets other revisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import (
    Object,
    is_controlled_by,
    labels_of,
    name_of,
    namespace_of,
    nested_map,
)
from kubepy.controllers.daemonset.pods import GENERATION_LABEL, HASH_LABEL, template_generation
from kubepy.controllers.statefulset import HASH_LABEL as HASH_LABEL_OF_SETS
from kubepy.controlplane import build_manager, manager_lock
from kubepy.importing.revisions import REVISIONS, former_revision
from kubepy.runtime.checkpoint import CHECKPOINT, MEMORIES
from kubepy.runtime.history import new_revision

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet
    from kubepy.apiserver.cluster import LocalCluster

# The controllers that make the objects of a resource, and write nothing else.
MAKERS = {
    "endpoints": ("endpoint-controller",),
    "endpointslices.discovery.k8s.io": (
        "endpoint-slice-controller",
        "endpoint-slice-mirroring-controller",
    ),
}


def complete(cluster: LocalCluster, held: Collection[str]) -> Counter[str]:
    """Make what a source leaves out; return by resource how many objects were made.

    :param held: the resources of which the source holds objects.
    """
    made: Counter[str] = Counter()
    if REVISIONS not in held:
        with cluster.client.joined():
            for revision in list(_revisions(cluster)):
                namespace = namespace_of(revision)
                cluster.client.create(REVISIONS, revision, namespace=namespace)
                made[REVISIONS] += 1
    lacking = [resource for resource in MAKERS if resource not in held]
    if "services" not in held or not lacking:
        return made
    before = {resource: cluster.client.count_recorded(resource) for resource in lacking}
    _run(cluster, [name for resource in lacking for name in MAKERS[resource]])
    for resource in lacking:
        made[resource] = cluster.client.count_recorded(resource) - before[resource]
    return +made


def _run(cluster: LocalCluster, controllers: Collection[str]) -> None:
    """Let controllers do their work. They leave no checkpoint, since it would be theirs alone."""
    with manager_lock(cluster):
        build_manager(cluster, controllers).run_until_settled()
    cluster.store.set_values({CHECKPOINT: None, MEMORIES: None})


def _revisions(cluster: LocalCluster) -> Iterator[Object]:
    """Yield the revisions of the present templates of DaemonSets and StatefulSets."""
    pods: dict[str, list[Object]] = {}
    for pod in cluster.client.list("pods").items:
        pods.setdefault(namespace_of(pod), []).append(pod)
    for daemon_set in cluster.client.list("daemonsets.apps").items:
        of_set = [
            pod
            for pod in pods.get(namespace_of(daemon_set), ())
            if is_controlled_by(pod, daemon_set)
        ]
        hash_ = _hash_of_daemons(daemon_set, of_set)
        if hash_:
            generation = template_generation(cast("DaemonSet", daemon_set))
            number = max(int(generation or 1), 1)
            yield cast(
                "Object",
                new_revision(
                    daemon_set,
                    number,
                    hash_,
                    HASH_LABEL,
                ),
            )
    for stateful_set in cluster.client.list("statefulsets.apps").items:
        former = former_revision(stateful_set, pods.get(namespace_of(stateful_set), ()))
        if former is not None:
            yield former
        name = nested_map(stateful_set, "status").get("updateRevision") or ""
        hash_ = name.removeprefix(f"{name_of(stateful_set)}-")
        if hash_ and hash_ != name:
            # what is numbered before it are revisions that nothing tells of
            is_updated = name == stateful_set["status"].get("currentRevision")
            number = 1 if is_updated else 2
            yield cast(
                "Object",
                new_revision(
                    stateful_set,
                    number,
                    hash_,
                    HASH_LABEL_OF_SETS,
                ),
            )


def _hash_of_daemons(daemon_set: Object, pods: Collection[Object]) -> str:
    """Return the hash of the revision of the present template: that of the pods which were made of
    it; "" where none tells."""
    generation = template_generation(cast("DaemonSet", daemon_set))
    for pod in pods:
        labels = labels_of(pod)
        if labels.get(GENERATION_LABEL) == generation and labels.get(HASH_LABEL):
            return labels[HASH_LABEL]
    return ""
