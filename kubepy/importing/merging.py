"""A later state of an imported cluster, brought into its folder as one change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_exact_time, parse_time
from kubepy.api.meta import Object, uid_of
from kubepy.controllers.nodelifecycle import REGISTERED_UNTIL
from kubepy.controlplane import manager_lock
from kubepy.importing.errors import SourceError
from kubepy.importing.heldkeys import KEYS, keys_value, parse_keys
from kubepy.importing.rulecomments import own_rules
from kubepy.importing.taking import SYSTEM
from kubepy.importing.words import full_name
from kubepy.importing.writing import SETTINGS
from kubepy.kubelet.modelled.logs import LOG
from kubepy.kubelet.modelled.records import RECORD
from kubepy.runtime.checkpoint import CHECKPOINT, MEMORIES
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.importing.making import ImportedCluster
    from kubepy.importing.unread import UnreadResources

NODES, PODS = "nodes", "pods"


class Changes(NamedTuple):
    """The number of objects that came, changed and went."""

    created: int = 0
    changed: int = 0
    removed: int = 0

    def __str__(self) -> str:
        return f"{self.created} created, {self.changed} changed, {self.removed} removed"


def merge(imported: ImportedCluster, cluster: LocalCluster, unread: UnreadResources) -> Changes:
    """Bring the objects, settings and logs of an import into a cluster, in one transaction. Raises
    SourceError for another cluster, or an earlier state; StorageError.

    Objects that the source holds become what they are there, and others of the same kinds are
    removed. What kubepy has made by itself stays.

    :param unread: the resources of which the source may hold more: their objects stay.
    """
    before = parse_keys(cluster.store.meta(KEYS))
    _check_same_cluster(imported, cluster, before)
    now = parse_time(imported.settings["clock"])
    if cluster.clock.own is not None and now < cluster.clock.own:
        raise SourceError(
            f"the source is of {format_exact_time(now)}, and the cluster's time is "
            f"{format_exact_time(cluster.clock.now())} already"
        )
    with manager_lock(cluster) as is_lost:
        if is_lost is None:
            raise SourceError(f"{cluster.folder}: another process runs the controllers")
        cluster.look()
        return _write(
            imported,
            cluster,
            before,
            unread,
        )


def _check_same_cluster(imported: ImportedCluster, cluster: LocalCluster, before: set[Key]) -> None:
    """Raise SourceError where the namespace kube-system shows that it is another cluster's."""
    system = imported.objects.get(SYSTEM)
    present = cluster.store.get(SYSTEM)
    if system is None or present is None or SYSTEM not in before:
        return
    if uid_of(system) != uid_of(present):
        raise SourceError(
            "the source is another cluster: its namespace kube-system has another uid"
        )


def _write(
    imported: ImportedCluster, cluster: LocalCluster, before: set[Key], unread: UnreadResources
) -> Changes:
    now = parse_time(imported.settings["clock"])
    fresh = _objects_of(imported.cluster)
    present = _objects_of(cluster)
    gone = _gone(
        imported,
        cluster,
        [key for key in present if key not in fresh],
        before,
        unread,
    )
    created = [key for key in fresh if key not in present]
    changed = [
        key
        for key in fresh
        if key in present
        and _is_decided(key, imported, unread)
        and _content(fresh[key]) != _content(present[key])
    ]
    stays = present.keys() - gone
    cluster.clock.own = now
    with cluster.store.transaction() as transaction:
        for key in gone:
            transaction.delete(key)
        for key in changed:
            transaction.update(key, _written(fresh[key], present[key]))
        for key in created:
            transaction.create(key, _written(fresh[key]))
        touched = [key for key in (*gone, *changed, *created) if key.resource == "pods"]
        pods = [obj for key in touched for obj in (fresh.get(key), present.get(key)) if obj]
        values = {**_forgotten(cluster, pods), **_values_of(imported.cluster)}
        values |= {
            CHECKPOINT: None,
            MEMORIES: None,
            **keys_value(imported.brought | (before & stays)),
        }
        settings = _settings(
            imported,
            cluster,
            stays,
            unread,
        )
        cluster.store.set_values(values, settings=settings)
    cluster.store.sync()
    return Changes(len(created), len(changed), len(gone))


def _gone(
    imported: ImportedCluster,
    cluster: LocalCluster,
    missing: Iterable[Key],
    before: set[Key],
    unread: UnreadResources,
) -> set[Key]:
    """Return which of the objects that the source does not hold are to be removed: those that an
    import has brought, and all of the kinds that the source holds.

    What could not be read, and what the source holds and could not be taken, stays.
    """
    held = {key.resource for key in imported.objects}
    refused = {(refusal.kind, refusal.name) for refusal in imported.taken.refused}
    gone: set[Key] = set()
    for key in missing:
        if key.resource in unread or (key.resource not in held and key not in before):
            continue
        name = full_name(key.namespace, key.name)
        if (cluster.scheme.by_key(key.resource).qualified_kind, name) not in refused:
            gone.add(key)
    return gone


def _is_decided(key: Key, imported: ImportedCluster, unread: UnreadResources) -> bool:
    """Tell whether the source says what an object is. A ReplicaSet that is made after its
    Deployment only stands in for one that could not be read."""
    if key in imported.taken.objects:
        return True
    return key in imported.objects and key.resource not in unread


def is_left_out(resource: str, imported: ImportedCluster, unread: UnreadResources) -> bool:
    """Tell whether a source has none of the objects of a resource, since they could not be
    read."""
    return resource in unread and not any(key.resource == resource for key in imported.objects)


def _objects_of(cluster: LocalCluster) -> dict[Key, Object]:
    objects: dict[Key, Object] = {}
    for resource in cluster.resources():
        for obj in cluster.store.list(resource).objects:
            metadata = obj["metadata"]
            objects[Key(resource, metadata.get("namespace") or "", metadata["name"])] = obj
    return objects


def _written(obj: Object, present: Object | None = None) -> Object:
    """Return an object as it is stored. Its resourceVersion belongs to the folder; managers that
    the source does not show stay those of the present object."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    managers = present["metadata"].get("managedFields") if present is not None else None
    if managers is not None:
        metadata.setdefault("managedFields", managers)
    return {**obj, "metadata": metadata}


def _content(obj: Object) -> Object:
    """Return an object without its resourceVersion and managers, as two states are compared."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in ("resourceVersion", "managedFields")
    }
    return {**obj, "metadata": metadata}


def _forgotten(cluster: LocalCluster, pods: Iterable[Object]) -> dict[str, str | None]:
    """Return the values that hold what the kubelets have made of pods, each to be removed: what the
    source says of the pods counts now."""
    names = [f"{RECORD}{uid_of(pod)}" for pod in pods]
    return {name: None for name in names if cluster.store.meta(name) is not None}


def _values_of(cluster: LocalCluster) -> dict[str, str | None]:
    """Return the values that an import decides: the logs, and which nodes are registered."""
    values = cluster.store.state().all_meta()
    kept = {name: value for name, value in values.items() if name.startswith(LOG)}
    kept[REGISTERED_UNTIL] = values.get(REGISTERED_UNTIL)
    return kept


def _settings_text(cluster: LocalCluster) -> str:
    """Return the text of ``kubepy.yaml``, "" for a cluster that is in no folder."""
    path = os.path.join(cluster.folder, SETTINGS)
    if not cluster.folder or not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _settings(
    imported: ImportedCluster, cluster: LocalCluster, stays: Set[Key], unread: UnreadResources
) -> Mapping[str, Any]:
    """Return the settings that change: those that an import decides, and no others. What was
    learned earlier of objects that could not be read holds on."""
    present = cluster.store.settings()
    settings: dict[str, Any] = {
        "clock": imported.settings["clock"],
        "absent": _absent(
            imported,
            cluster,
            stays,
            unread,
            present.get("absent") or [],
        ),
    }
    kubelet = dict(present.get("kubelet") or {})
    fresh = imported.settings.get("kubelet") or {}
    if not is_left_out(NODES, imported, unread):
        kubelet.pop("silentNodes", None)
        if "silentNodes" in fresh:
            kubelet["silentNodes"] = fresh["silentNodes"]
    rules = kubelet.get("rules") or []
    # a file of rules is the user's
    if isinstance(rules, list) and not is_left_out(PODS, imported, unread):
        own = own_rules(_settings_text(cluster), rules)
        kubelet["rules"] = [*own, *fresh.get("rules", ())]
        if not kubelet["rules"]:
            del kubelet["rules"]
    settings["kubelet"] = kubelet
    hooks = {
        **(imported.settings.get("webhooks") or {}),
        **(present.get("webhooks") or {}),
    }
    if hooks:
        settings["webhooks"] = hooks
    return {name: value for name, value in settings.items() if value != present.get(name)}


def _absent(
    imported: ImportedCluster,
    cluster: LocalCluster,
    stays: Set[Key],
    unread: UnreadResources,
    earlier: list[Object],
) -> list[Object] | None:
    """Return the setting ``absent``; None where there is nothing to put down.

    Where not all could be read, the earlier entries hold on, and what the cluster holds still is
    not absent.
    """
    fresh = imported.settings.get("absent") or []
    if not unread:
        return fresh or None
    entries = [*earlier, *(entry for entry in fresh if entry not in earlier)]
    lacking = [entry for entry in entries if not _is_present(entry, cluster, stays)]
    return lacking or None


def _is_present(entry: Object, cluster: LocalCluster, stays: Set[Key]) -> bool:
    """Tell whether a cluster holds an object that a source names and does not hold. A namespace of
    which only the content is absent is no such object."""
    resource = cluster.scheme.for_kind(entry["apiVersion"], entry["kind"])
    if resource is None or entry.get("remaining"):
        return False
    return Key(resource.key, entry.get("namespace") or "", entry["name"]) in stays
