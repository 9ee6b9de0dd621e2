"""The objects of an etcd, a real control plane's or kubepy's own. It is only read."""

from __future__ import annotations

from contextlib import closing

from kubepy.controlplane.open import open_cluster, shown
from kubepy.importing.documents import SourceContent, SourceObject
from kubepy.importing.errors import SourceError


def read_place(place: str, content: SourceContent) -> None:
    """Read all objects of an etcd into a content. Raises SourceError, StorageError."""
    name = shown(place)
    with closing(open_cluster(place)) as cluster:
        for resource in cluster.resources():
            for obj in cluster.store.list(resource).objects:
                content.objects.append(SourceObject(obj, name))
        for key, problem in cluster.unread_values().items():
            content.unread.append(f"{key}: {problem}")
            content.unread_resources.are_others_unread = True
    if not content.objects:
        raise SourceError(f"{name}: holds no objects")
