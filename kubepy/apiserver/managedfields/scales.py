"""The managers of a Scale: those who have the replicas of the object that is scaled.

An updater is known by the version of what it wrote, so that one of the object and one of its Scale are never the same:
a request about the Scale, even one that changes nothing, takes the replicas out of the entry of an updater and gives
them to one of the same name that has nothing else and no time. Appliers have no version, and keep their entries.
Upstream: ``apimachinery/pkg/util/managedfields/scalehandler.go``.
"""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import Schema, schema_for
from kubepy.api.scheme import Resource
from kubepy.apiserver.managedfields.entries import UPDATE, Entry, Managed, Manager, Managers, manager_of
from kubepy.apiserver.managedfields.fieldpath import Path, fields_path
from kubepy.apiserver.managedfields.tracking import Writer, bare, complete, written
from kubepy.apiserver.managedfields.updater import update

SCALE_VERSION = "autoscaling/v1"
REPLICAS = fields_path("spec", "replicas")


def scale_managers(managers: Managers, replicas: Path) -> Managers:
    """The managers of a Scale, by the path of the replicas in the object."""
    return {_of_scale(manager): Managed(frozenset((REPLICAS,)), SCALE_VERSION, managed.time)
            for manager, managed in managers.items() if replicas in managed.fields}


def _of_scale(manager: Manager) -> Manager:
    return manager._replace(api_version=SCALE_VERSION) if manager.operation == UPDATE else manager


def with_scale_managers(managers: Managers, scale: Managers, replicas: Path, api_version: str) -> Managers:
    """The managers of an object after a request about its Scale, which has these managers then."""
    found = {manager: managed if manager in scale else managed._replace(fields=managed.fields - {replicas})
             for manager, managed in managers.items()}
    found = {manager: managed for manager, managed in found.items() if managed.fields}
    for manager, managed in scale.items():
        if REPLICAS in managed.fields and manager not in found:
            found[manager] = Managed(frozenset((replicas,)), api_version)
    return found


def tracked_scale(resource: Resource, schema: Schema | None, replicas: Path, old: Object, before: Object,
                  after: Object, writer: Writer) -> list[Entry]:
    """The entries of an object after a client's update of its Scale from ``before`` to ``after``."""
    entries = old["metadata"].get("managedFields") or []
    managers = complete(resource, schema, bare(old), entries)
    scale = scale_managers(managers, replicas)
    if scale:  # what has no managers gets none by updates
        manager = manager_of(writer.manager, UPDATE, SCALE_VERSION, writer.subresource)
        scale = update(bare(before), bare(after), schema_for(SCALE_VERSION, "Scale"), scale, manager, SCALE_VERSION,
                       writer.time)
    return written(entries, managers, with_scale_managers(managers, scale, replicas, resource.api_version))
