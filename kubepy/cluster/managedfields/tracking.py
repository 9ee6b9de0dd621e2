"""Which managers an object has, at the least cost for those who never ask.

What a client creates gets a *stamp*: an entry without fields, which stands for all that no other entry names. Fields
are worked out when a second client changes the object, when somebody applies on the server, or asks for managedFields.
Controllers, scheduler and kubelet leave no trace at all: what neither a stamp nor an entry accounts for is theirs. So
the sets are those of a real API server, except that a controller which sets a field anew that a client has set does
not take it over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import reduce
from typing import Any, NamedTuple

from kubepy.cluster.managedfields.entries import (
    APPLY,
    UPDATE,
    Entry,
    Managed,
    Manager,
    Managers,
    decode,
    encode,
    manager_of,
)
from kubepy.cluster.managedfields.fieldpath import EMPTY, Fields, Path, fields_path
from kubepy.cluster.managedfields.stamps import is_stamp, stamp
from kubepy.cluster.managedfields.typed import TypedError, compare
from kubepy.cluster.managedfields.updater import STRIPPED, update, without
from kubepy.cluster.objects.meta import Object, controller_of
from kubepy.cluster.schema.openapi import Schema
from kubepy.cluster.scheme import Resource

CONTROLLERS, KUBELET, BEFORE_APPLY = "kube-controller-manager", "kubelet", "before-first-apply"
STATUS = fields_path("status")
# Fields of a client's object that its controllers set.
_CONTROLLERS_ANNOTATIONS = ("f:deployment.kubernetes.io/", "f:pv.kubernetes.io/", "f:volume.kubernetes.io/")
_ANNOTATIONS = fields_path("metadata", "annotations")
# Of pods: bindings leave no entry, and admission comes after tracking.
_UNTRACKED = tuple(fields_path("spec", name) for name in ("nodeName", "preemptionPolicy", "priority"))


class Writer(NamedTuple):
    """A client that updates an object."""

    manager: str
    subresource: str
    time: str


def ignored_by(resource: Resource, subresource: str) -> tuple[Path, ...]:
    """What a request cannot change, and so does not manage (``GetResetFields``)."""
    if "status" not in resource.subresources:
        return ()
    return (fields_path("spec"),) if subresource == "status" else (STATUS,)


# --- updates ------------------------------------------------------------------------------------------------------


def tracked_update(resource: Resource, read_schema: Callable[[], Schema | None], old: Object, new: Object,
                   entries: list[Entry], writer: Writer) -> list[Entry]:
    """The entries after a client's update, which begins with ``entries``."""
    manager = manager_of(writer.manager, UPDATE, resource.api_version, writer.subresource)
    before, after = bare(old), bare(new)
    if before == after:
        return entries
    if [_stamped(entry) for entry in entries] == [manager]:
        return [stamp(manager.name, manager.api_version, writer.time)]
    schema = read_schema()
    managers = complete(resource, schema, before, entries)
    if not managers:
        return []  # nothing is known of who made it, so nothing is of who changes it
    with suppress(TypedError):  # an object can hold what its schema does not allow: nobody manages that
        managers = update(before, after, schema, managers, manager, resource.api_version, writer.time,
                          ignored_by(resource, writer.subresource))
    return encode(managers)


def shown(resource: Resource, schema: Schema | None, obj: Object) -> Object:
    """The object with complete managedFields, without any if nothing is known of its managers."""
    metadata = dict(obj["metadata"])
    entries = encode(complete(resource, schema, bare(obj), metadata.pop("managedFields", None) or []))
    return {**obj, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def _stamped(entry: Any) -> Manager | None:
    """The manager of a stamp."""
    return Manager(entry["manager"], UPDATE, entry["apiVersion"]) if is_stamp(entry) else None


def bare(obj: Object) -> Object:
    """An object without what says who manages it, and in which version it is."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": metadata}


def requested_entries(requested: Any, live: Any) -> list[Entry]:
    """The entries that an update begins with: those that it brings if they can be read, else those that are there.

    An empty list resets them (``decodeLiveOrNew``).
    """
    if requested == [] or requested == [{}]:
        return []
    if requested and requested != live and not any(is_stamp(entry) for entry in requested):
        try:
            decode(requested)
        except ValueError:
            return live or []
        return list(requested)
    return live or []


# --- what the entries stand for -----------------------------------------------------------------------------------


def complete(resource: Resource, schema: Schema | None, obj: Object, entries: list[Entry], *,
             unknown: str = "") -> Managers:
    """The managers with their fields: those of entries, of a stamp, and of controllers.

    ``unknown`` is who has what nobody can have set; without it such fields have no manager.
    """
    managers = decode(entry for entry in entries if not is_stamp(entry))
    stamps = [entry for entry in entries if is_stamp(entry)]
    try:
        managers = _present(managers, obj, schema)
        rest = _set_by_anyone(resource, schema, obj) - _with_parents(managers)
    except TypedError:
        return managers
    created = obj["metadata"].get("creationTimestamp", "")
    version = resource.api_version
    operations = {manager.operation for manager in managers}
    for manager, fields, time in _shares(resource, obj, rest, stamps, operations, unknown, created):
        if fields:
            managers[manager] = Managed(fields, version, time)
    return managers


def _shares(resource: Resource, obj: Object, rest: Fields, stamps: list[Entry], operations: set[str], unknown: str,
            created: str) -> Iterator[tuple[Manager, Fields, str]]:
    """Who has the fields that no entry names. Defaults of what was applied on the server have no manager."""
    version = resource.api_version
    status = rest - without(rest, [STATUS]) if "status" in resource.subresources else EMPTY
    main = rest - status
    if stamps or operations:
        written_with_status = _of_controllers(main)
        status, main = status | written_with_status, main - written_with_status
    observer = KUBELET if resource.key in ("pods", "nodes") else CONTROLLERS
    yield Manager(observer, UPDATE, version, "status"), status, _newest_time(obj.get("status")) or created
    if stamps:
        yield Manager(stamps[0]["manager"], UPDATE, stamps[0]["apiVersion"]), main, stamps[0]["time"]
    elif APPLY not in operations and (operations or controller_of(obj)):
        yield Manager(CONTROLLERS, UPDATE, version), main, created
    elif unknown and not operations:
        yield Manager(unknown, UPDATE, version), main, created


def _of_controllers(fields: Fields) -> Fields:
    """What controllers set in an object that a client made: their annotations, and the map if there are no others."""
    annotations = {path for path in fields if path[:2] == _ANNOTATIONS}
    theirs = {path for path in annotations if path[2:3] and path[2].startswith(_CONTROLLERS_ANNOTATIONS)}
    return frozenset(annotations if theirs and annotations <= theirs | {_ANNOTATIONS} else theirs)


def _set_by_anyone(resource: Resource, schema: Schema | None, obj: Object) -> Fields:
    """What an object has beyond an empty one of its kind. Raises TypedError."""
    from kubepy.cluster.types import decode as decode_object

    kind = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    empty = {**kind, "metadata": {}} if resource.custom else decode_object(kind).object
    changes = compare(empty, bare(obj), schema)
    ignored = _UNTRACKED if resource.key == "pods" else ()
    return without((changes.added | changes.modified) - STRIPPED, ignored)


def _with_parents(managers: Managers) -> Fields:
    """All fields that have a manager, and what they are in: that is there because they are."""
    fields = reduce(frozenset.union, (managed.fields for managed in managers.values()), EMPTY)
    return fields | {path[:depth] for path in fields for depth in range(1, len(path))}


def _newest_time(value: Any) -> str:
    """The newest time in a status: nothing else tells when it was written."""
    if isinstance(value, dict):
        times = [str(one) for key, one in value.items() if key.endswith("Time") and isinstance(one, str)]
        return max([*times, *(_newest_time(one) for one in value.values())], default="")
    return max((_newest_time(one) for one in value), default="") if isinstance(value, list) else ""


def _present(managers: Managers, obj: Object, schema: Schema | None) -> Managers:
    """The managers less what is not there any more, since a controller removed it. Raises TypedError."""
    there = compare({}, bare(obj), schema).added if managers else EMPTY
    left = {manager: managed._replace(fields=managed.fields & there) for manager, managed in managers.items()}
    return {manager: managed for manager, managed in left.items() if managed.fields}
