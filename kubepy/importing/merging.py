"""A later state of an imported cluster, brought into its folder as one change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_exact_time, parse_time
from kubepy.api.meta import Object, uid_of
from kubepy.controllers.nodelifecycle import REGISTERED_UNTIL
from kubepy.controlplane import manager_lock
from kubepy.importing.errors import SourceError
from kubepy.importing.heldkeys import KEYS, keys_value, parse_keys
from kubepy.importing.rulecomments import own_rules
from kubepy.importing.taking import SYSTEM
from kubepy.importing.writing import SETTINGS
from kubepy.kubelet.modelled.logs import LOG
from kubepy.kubelet.modelled.records import RECORD
from kubepy.runtime.checkpoint import CHECKPOINT, MEMORIES
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.importing.making import ImportedCluster

MERGED_SETTINGS = ("absent", "clock")


class Changes(NamedTuple):
    """The number of objects that came, changed and went."""

    created: int = 0
    changed: int = 0
    removed: int = 0

    def __str__(self) -> str:
        return f"{self.created} created, {self.changed} changed, {self.removed} removed"


def merge(imported: ImportedCluster, cluster: LocalCluster, *, removes: bool = True) -> Changes:
    """Bring the objects, settings and logs of an import into a cluster, in one transaction. Raises
    SourceError for another cluster, or an earlier state; StorageError.

    Objects that the source holds become what they are there, and others of the same kinds are
    removed. What kubepy has made by itself stays.

    :param removes: objects may be removed: the whole source could be read.
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
            removes=removes,
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
    imported: ImportedCluster, cluster: LocalCluster, before: set[Key], *, removes: bool
) -> Changes:
    now = parse_time(imported.settings["clock"])
    held = {key.resource for key in imported.objects}
    fresh = _objects_of(imported.cluster)
    present = _objects_of(cluster)
    gone = []
    if removes:
        missing = [key for key in present if key not in fresh]
        gone = [key for key in missing if key.resource in held or key in before]
    created = [key for key in fresh if key not in present]
    changed = [
        key
        for key in fresh
        if key in present
        and key in imported.objects
        and _content(fresh[key]) != _content(present[key])
    ]
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
            **keys_value(imported.objects if removes else {*before, *imported.objects}),
        }
        cluster.store.set_values(values, settings=_settings(imported, cluster))
    cluster.store.sync()
    return Changes(len(created), len(changed), len(gone))


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


def _settings(imported: ImportedCluster, cluster: LocalCluster) -> Mapping[str, Any]:
    """Return the settings that change: those that an import decides, and no others."""
    settings: dict[str, Any] = {name: imported.settings.get(name) for name in MERGED_SETTINGS}
    kubelet = dict(cluster.store.settings().get("kubelet") or {})
    fresh = imported.settings.get("kubelet") or {}
    kubelet.pop("silentNodes", None)
    if "silentNodes" in fresh:
        kubelet["silentNodes"] = fresh["silentNodes"]
    rules = kubelet.get("rules") or []
    if isinstance(rules, list):  # a file of rules is the user's
        own = own_rules(_settings_text(cluster), rules)
        kubelet["rules"] = [*own, *fresh.get("rules", ())]
        if not kubelet["rules"]:
            del kubelet["rules"]
    settings["kubelet"] = kubelet
    hooks = {
        **(imported.settings.get("webhooks") or {}),
        **(cluster.store.settings().get("webhooks") or {}),
    }
    if hooks:
        settings["webhooks"] = hooks
    return {
        name: value
        for name, value in settings.items()
        if value != cluster.store.settings().get(name)
    }
