"""The managers of a Scale: those who have the replicas of the object that is scaled.

An updater is known by the version that it wrote in, so updaters of the object and of its Scale are
never the same. A request about the Scale, even one that changes nothing, takes the replicas out of
the entry of an updater, and gives them to one of the same name that has nothing else and no time.
Appliers have no version, and keep their entries. Upstream:
``apimachinery/pkg/util/managedfields/scalehandler.go``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import Schema, schema_for
from kubepy.api.scheme import Resource
from kubepy.apiserver.managedfields.entries import UPDATE, Entry, Managed, Managers, manager_of
from kubepy.apiserver.managedfields.fieldpath import Path, fields_path
from kubepy.apiserver.managedfields.tracking import bare, complete, written
from kubepy.apiserver.managedfields.updater import Write, update

SCALE_VERSION = "autoscaling/v1"
REPLICAS = fields_path("spec", "replicas")


def scale_managers(managers: Managers, replicas: Path) -> Managers:
    """Return the managers of a Scale; ``replicas`` is the path of the replicas in the object."""
    of_scale: Managers = {}
    for manager, managed in managers.items():
        if replicas in managed.fields:
            if manager.operation == UPDATE:
                manager = manager._replace(api_version=SCALE_VERSION)
            of_scale[manager] = Managed(frozenset((REPLICAS,)), SCALE_VERSION, managed.time)
    return of_scale


def with_scale_managers(
    managers: Managers, scale: Managers, replicas: Path, api_version: str
) -> Managers:
    """Return the managers of an object after a request about its Scale that led to the managers
    ``scale``."""
    updated = {
        manager: managed
        if manager in scale
        else managed._replace(fields=managed.fields - {replicas})
        for manager, managed in managers.items()
    }
    updated = {manager: managed for manager, managed in updated.items() if managed.fields}
    for manager, managed in scale.items():
        if REPLICAS in managed.fields and manager not in updated:
            updated[manager] = Managed(frozenset((replicas,)), api_version)
    return updated


class ScaleUpdate(NamedTuple):
    """A change of a Scale; ``replicas`` is the path of the replicas in the object that is
    scaled."""

    replicas: tuple[str, ...]
    before: Object
    after: Object


def tracked_scale(
    resource: Resource,
    schema: Schema | None,
    old: Object,
    change: ScaleUpdate,
    manager: str,
    time: str,
) -> list[Entry]:
    """Return the managedFields of an object, which had the state ``old``, after a client's update
    of its Scale."""
    entries = old["metadata"].get("managedFields") or []
    replicas = fields_path(*change.replicas)
    managers = complete(resource, schema, bare(old), entries)
    scale = scale_managers(managers, replicas)
    if scale:  # an object without managers gets none by updates
        write = Write(manager_of(manager, UPDATE, SCALE_VERSION, "scale"), SCALE_VERSION, time)
        scale = update(
            bare(change.before),
            bare(change.after),
            schema_for(SCALE_VERSION, "Scale"),
            scale,
            write,
        )

    return written(
        entries, managers, with_scale_managers(managers, scale, replicas, resource.api_version)
    )
