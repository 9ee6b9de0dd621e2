"""Tracking of managers, at no cost for objects that only controllers write.

The client that creates an object gets a *stamp*: an entry without fields, which stands for all that
no other entry names. Fields are worked out when a second client changes the object, when somebody
applies on the server, or asks for managedFields. Controllers, scheduler and kubelet leave no
entries: fields that neither a stamp nor an entry names are inferred to be theirs. So the sets are
those of a real API server, except that a controller which sets a field anew that a client has set
does not take it over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, reduce
from typing import Any, NamedTuple

from kubepy.api.meta import FOREGROUND, ORPHAN, Object, controller_of, is_being_deleted
from kubepy.api.schema.openapi import Schema
from kubepy.api.scheme import Resource
from kubepy.apiserver.managedfields.entries import (
    UPDATE,
    Entry,
    EntryError,
    FieldManager,
    Managed,
    Managers,
    Pairs,
    decode,
    decode_all,
    encode,
    encode_all,
    field_manager_of,
    manager_of,
)
from kubepy.apiserver.managedfields.fieldpath import (
    EMPTY,
    Fields,
    Path,
    fields_path,
    in_order,
    item,
)
from kubepy.apiserver.managedfields.stamps import is_stamp, is_whole, stamp, unset
from kubepy.apiserver.managedfields.typed import TypedError, compare, path_at
from kubepy.apiserver.managedfields.updater import STRIPPED, Write, update, without
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import types

CONTROLLERS = "kube-controller-manager"
KUBELET = "kubelet"
BEFORE_APPLY = "before-first-apply"
STATUS = fields_path("status")
# Fields of pods without managers: bindings leave no entry, and admission comes after tracking.
_UNTRACKED = (
    *(fields_path("spec", name) for name in ("nodeName", "preemptionPolicy", "priority")),
    fields_path("status", "qosClass"),
)
_FINALIZERS = fields_path("metadata", "finalizers")
_FIRST_PHASES = {
    "namespaces": "Active",
    "persistentvolumeclaims": "Pending",
    "persistentvolumes": "Pending",
    "pods": "Pending",
}
_DELETION = tuple(
    fields_path("metadata", name) for name in ("deletionGracePeriodSeconds", "deletionTimestamp")
)

# Fields that controllers write besides status. Upstream: callers of ``Update`` and ``UpdateStatus``
# in ``pkg/controller``.
_ANNOTATIONS = fields_path("metadata", "annotations")
_CONTROLLERS_ANNOTATIONS = (
    "f:deployment.kubernetes.io/",
    "f:pv.kubernetes.io/",
    "f:volume.kubernetes.io/",
)
_CONTROLLERS_FIELDS: dict[str, tuple[Path, ...]] = {
    "persistentvolumeclaims": (fields_path("spec", "volumeName"),),
    "persistentvolumes": (fields_path("spec", "claimRef"),),
}
_CONTROLLERS_TAINTS = "node.kubernetes.io/"
_ANNOTATED_WITH_STATUS = (
    "deployments.apps",
)  # the controller annotates them as it writes their status


class Writer(NamedTuple):
    """A client that updates an object."""

    manager: str
    subresource: str
    time: str


def ignored_by(resource: Resource, subresource: str) -> tuple[Path, ...]:
    """Return the fields that a request cannot change, and so does not manage
    (``GetResetFields``)."""
    if "status" not in resource.subresources:
        return ()
    if subresource == "status":
        return (fields_path("spec"),)
    return (STATUS,)


# --- updates --------------------------------------------------------------------------------------


def tracked_update(
    resource: Resource,
    read_schema: Callable[[], Schema | None],
    old: Object,
    new: Object,
    entries: list[Entry],
    writer: Writer,
) -> list[Entry]:
    """Return the entries after a client's update, which begins with ``entries``.

    ``new`` is the object that the client sent, before the kind's strategy has kept and cleared
    anything.
    """
    manager = manager_of(writer.manager, UPDATE, resource.api_version, writer.subresource)
    before = bare(old)
    after = bare(new)
    if before == after:
        return reread(entries)
    if (
        len(entries) == 1
        and is_stamp(entries[0])
        and _stamped(entries[0]) == manager
        and not unset(entries[0])
    ):
        return [stamp(manager.name, manager.api_version, writer.time)]

    schema = read_schema()
    managers = complete(resource, schema, before, entries)
    if not managers:
        return []  # nothing is known of who made it, so nothing is of who changes it
    changed = managers
    with suppress(
        TypedError
    ):  # an object can hold what its schema does not allow: nobody manages that
        changed = update(
            before,
            after,
            schema,
            managers,
            Write(
                manager, resource.api_version, writer.time, ignored_by(resource, writer.subresource)
            ),
        )

    return written(entries, managers, changed)


def written(entries: list[Entry], before: Managers, after: Managers) -> list[Entry]:
    """Return the entries to store for the managers ``after``, where ``before`` are those of the
    entries."""
    if after == before:
        return reread(entries)
    return encode(after)


def keep_times(
    resource: Resource, read_schema: Callable[[], Schema | None], new: Object, old: Object
) -> None:
    """Restore managers where only their times have changed
    (``IgnoreManagedFieldsTimestampsTransformer``).

    The manager that applies a manifest again cannot know that defaults make up for what the
    manifest leaves out.
    """
    entries, old_entries = (obj["metadata"].get("managedFields") for obj in (new, old))
    if not old_entries or entries == old_entries or bare(new) != bare(old):
        return
    before = shown(resource, read_schema(), old)["metadata"].get("managedFields", [])
    known = [{**entry, "time": ""} for entry in (*old_entries, *before)]
    if len(entries) == len(before) and all({**entry, "time": ""} in known for entry in entries):
        new["metadata"]["managedFields"] = old_entries


def shown(resource: Resource, schema: Schema | None, obj: Object) -> Object:
    """Return the object with complete managedFields, without any if nothing is known of its
    managers, and with those that cannot be read as they are."""
    entries = obj["metadata"].get("managedFields") or []
    try:
        managers = _completed(resource, schema, bare(obj), entries)
    except EntryError:
        return obj
    return _with_entries(obj, encode_all(managers))


def stored_whole(resource: Resource, schema: Schema | None, obj: Object) -> Object:
    """Return the object with complete managedFields, as an API server stores it; without any where
    nothing is known of who made it, and with those that cannot be read as they are.

    Who reports the status has written it when it says so, though no field was new then.
    """
    entries = obj["metadata"].get("managedFields") or []
    if not entries and controller_of(obj) is None:
        return obj
    try:
        managers = _completed(resource, schema, bare(obj), entries)
    except EntryError:
        return obj
    if any(_reports_status(entry["manager"], entry.get("subresource", "")) for entry in entries):
        newest = _newest_time(obj.get("status"))
        managers = [
            (manager, _not_before(newest, manager, managed)) for manager, managed in managers
        ]
    return _with_entries(obj, encode_all(managers))


def _reports_status(manager: str, subresource: str) -> bool:
    return subresource == "status" and manager in (CONTROLLERS, KUBELET)


def _not_before(newest: str, manager: FieldManager, managed: Managed) -> Managed:
    """Return the fields of a manager with a later time, if it is who reports the status."""
    if not _reports_status(manager.name, manager.subresource):
        return managed
    time = max(managed.time, newest)
    return managed._replace(time=time)


def shortened(resource: Resource, schema: Schema | None, obj: Object) -> Object:
    """Return the object with the least managedFields that stand for the complete ones it has."""
    entries = obj["metadata"].get("managedFields") or []
    if any(is_stamp(entry) for entry in entries):
        return obj
    creators = [
        stamp(entry["manager"], entry["apiVersion"], entry.get("time", ""))
        for entry in entries
        if entry["operation"] == UPDATE
        and not entry.get("subresource")
        and entry["manager"] != CONTROLLERS
    ]
    for stamps in ([], creators):
        short = _with_entries(obj, stamps)
        whole = stored_whole(resource, schema, short)
        if whole["metadata"].get("managedFields") == entries:
            return short
    return obj


def _with_entries(obj: Object, entries: list[Entry]) -> Object:
    metadata = dict(obj["metadata"])
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def reread(entries: list[Entry]) -> list[Entry]:
    """Return the entries after a request without changes; of two entries of a manager the later one
    stays."""
    if any(is_stamp(entry) for entry in entries):
        return entries
    if len({field_manager_of(entry) for entry in entries}) == len(entries):
        return entries
    try:
        return encode(decode(entries))
    except EntryError:
        return entries


def bare(obj: Object) -> Object:
    """Return an object without managedFields and resourceVersion."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("managedFields", "resourceVersion")
    }
    return {**obj, "metadata": metadata}


def requested_entries(requested: Any, live: Any) -> list[Entry]:
    """Return the entries that an update begins with: its own if they can be read, else the stored
    ones.

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


def are_readable(entries: list[Any]) -> bool:
    """Tell whether entries that another program wrote, stamps among them, can be worked with."""
    try:
        for _, managed in decode_all(entry for entry in entries if not is_stamp(entry)):
            in_order(managed.fields)
    except (AttributeError, RecursionError, TypeError, ValueError):
        return False
    return all(is_whole(entry) for entry in entries if is_stamp(entry))


# --- what the entries stand for -------------------------------------------------------------------


def complete(
    resource: Resource,
    schema: Schema | None,
    obj: Object,
    entries: list[Entry],
    unknown: tuple[str, str] | None = None,
) -> Managers:
    """Return the managers with their fields: those of entries, of a stamp, and of controllers.
    Entries that cannot be read count as none (``RemoveObjectManagedFields``).

    :param unknown: name and time of the manager of fields whose setter is not known; without it
        they have none.
    """
    try:
        return dict(_completed(resource, schema, obj, reread(entries), unknown))
    except EntryError:
        return dict(_completed(resource, schema, obj, [], unknown))


def _completed(
    resource: Resource,
    schema: Schema | None,
    obj: Object,
    entries: list[Entry],
    unknown: tuple[str, str] | None = None,
) -> Pairs:
    """Return the same with all entries of one manager."""
    managers = decode_all(entry for entry in entries if not is_stamp(entry))
    stamps = [entry for entry in entries if is_stamp(entry)]
    try:
        # Walking an object is what costs here. So all of its fields are looked for only where
        # entries must be cut to them, or where an empty object has no fields to be left out.
        empty = None if resource.custom else _empty(obj["apiVersion"], obj["kind"])
        all_fields = EMPTY
        if managers or empty is None:
            all_fields = compare({}, bare(obj), schema).added
        if managers:  # a controller may have removed fields of theirs
            left = [
                (manager, managed._replace(fields=managed.fields & all_fields))
                for manager, managed in managers
            ]
            managers = [(manager, managed) for manager, managed in left if managed.fields]
        managed = reduce(frozenset.union, (managed.fields for _, managed in managers), EMPTY)
        parents = {
            path[:depth] for path in managed for depth in range(1, len(path))
        }  # there because of those below
        set_fields = all_fields if empty is None else _beyond(empty, obj, schema)
        rest = _set_by_anyone(resource, obj, set_fields) - managed - parents
    except TypedError:
        return managers

    if not stamps and not managers:
        return _joined([], _shares(resource, obj, rest, unknown))
    return _joined(managers, _shares_of_client(resource, schema, obj, rest, stamps))


def _joined(managers: Pairs, shares: Pairs) -> Pairs:
    """Add shares to the managers' entries."""
    joined = list(managers)
    for manager, share in shares:
        index = next((index for index, (known, _) in enumerate(joined) if known == manager), None)
        if not share.fields:
            continue
        if index is None:
            joined.append((manager, share))
        else:
            entry = joined[index][1]
            joined[index] = (
                manager,
                Managed(
                    entry.fields | share.fields, share.api_version, max(entry.time, share.time)
                ),
            )

    return joined


def _shares_of_client(
    resource: Resource, schema: Schema | None, obj: Object, rest: Fields, stamps: list[Entry]
) -> Pairs:
    """Share the fields that no entry names, in an object that a client has made or changed.

    Fields that controllers are known to set are theirs; only the client that made the object can
    have set the others.
    """
    status = _status_fields(resource, rest)
    annotations, others = _written_by_controllers(resource, obj, rest - status)
    with_status = resource.key in _ANNOTATED_WITH_STATUS
    shares = [
        _observed(resource, obj, status | annotations if with_status else status),
        (
            FieldManager(CONTROLLERS, UPDATE, resource.api_version),
            _since_creation(resource, obj, others if with_status else annotations | others),
        ),
    ]
    for entry in stamps:
        unset_paths = [path_at(obj, schema, place) for place in unset(entry)]
        own = without(rest - status - annotations - others, unset_paths)
        shares.append((_stamped(entry), Managed(own, entry["apiVersion"], entry["time"])))

    return shares


def _written_by_controllers(
    resource: Resource, obj: Object, fields: Fields
) -> tuple[Fields, Fields]:
    """Return the annotations and the other fields among ``fields`` that only controllers can have
    set."""
    annotations = {path for path in fields if path[:2] == _ANNOTATIONS}
    written = {
        path for path in annotations if path[2:3] and path[2].startswith(_CONTROLLERS_ANNOTATIONS)
    }
    if written and annotations <= written | {_ANNOTATIONS}:
        written = annotations  # the map itself, too, if it has no others
    places = list(_CONTROLLERS_FIELDS.get(resource.key, ()))
    if controller_of(obj):
        places.append(fields_path("metadata", "ownerReferences"))
    taints = obj["spec"].get("taints") or () if resource.key == "nodes" else ()
    if any(taint.get("key", "").startswith(_CONTROLLERS_TAINTS) for taint in taints):
        places.append(fields_path("spec", "taints"))
    others = frozenset(
        path for path in fields if any(path[: len(place)] == place for place in places)
    )
    return frozenset(written), others


def _stamped(entry: Entry) -> FieldManager:
    """Return the manager of a stamp."""
    return FieldManager(entry["manager"], UPDATE, entry["apiVersion"])


def _shares(
    resource: Resource, obj: Object, rest: Fields, unknown: tuple[str, str] | None
) -> Pairs:
    """Share the fields of an object that no client has touched: of a controller, or of an unknown
    manager."""
    version = resource.api_version
    status = _status_fields(resource, rest)
    shares = [_observed(resource, obj, status)]
    if controller_of(obj):
        shares.append(
            (
                FieldManager(CONTROLLERS, UPDATE, version),
                _since_creation(resource, obj, rest - status),
            )
        )
    elif unknown:
        name, since = unknown
        shares.append((FieldManager(name, UPDATE, version), Managed(rest - status, version, since)))
    return shares


def _status_fields(resource: Resource, fields: Fields) -> Fields:
    if "status" in resource.subresources:
        return fields - without(fields, [STATUS])
    return EMPTY


def _observed(resource: Resource, obj: Object, fields: Fields) -> tuple[FieldManager, Managed]:
    """Return the fields written with the status, and the component that reports it."""
    observer = KUBELET if resource.key in ("pods", "nodes") else CONTROLLERS
    time = ""
    if fields:
        time = _newest_time(obj.get("status")) or obj["metadata"].get("creationTimestamp", "")
    return FieldManager(observer, UPDATE, resource.api_version, "status"), Managed(
        fields, resource.api_version, time
    )


def _since_creation(resource: Resource, obj: Object, fields: Fields) -> Managed:
    return Managed(fields, resource.api_version, obj["metadata"].get("creationTimestamp", ""))


@cache
def _empty(api_version: str, kind: str) -> Object | None:
    """Return an object of a built-in kind in which nothing is set: the fields that it has all the
    same, such as ``status: {}``, nobody has set in others either. None where it has no such fields
    but apiVersion, kind and metadata, which nobody manages."""
    empty = types.decode({"apiVersion": api_version, "kind": kind}).object
    return empty if empty.keys() - {"apiVersion", "kind"} != {"metadata"} else None


def _beyond(empty: Object, obj: Object, schema: Schema | None) -> Fields:
    """Return the fields that an object has beyond an empty one. Raises TypedError."""
    changes = compare(empty, bare(obj), schema)
    return changes.added | changes.modified


def _set_by_anyone(resource: Resource, obj: Object, fields: Fields) -> Fields:
    """Return the fields that somebody has set.

    :param fields: those that the object has beyond an empty one of its kind.
    """
    ignored = (*_DELETION, *_UNTRACKED) if resource.key == "pods" else _DELETION
    status = obj.get("status") or {}
    if (
        resource.key in _FIRST_PHASES
        and status.get("phase") == _FIRST_PHASES[resource.key]
        and ("startTime" not in status)
    ):  # a new object has it, nobody has written it
        ignored += (
            fields_path("status", "phase"),
            fields_path("status", "lastPhaseTransitionTime"),
        )

    return without(fields - STRIPPED, (*ignored, *_set_by_deletion(obj)))


def _set_by_deletion(obj: Object) -> list[Path]:
    """Return the paths of the garbage collector's finalizers, which the deletion of an object has
    set."""
    finalizers = obj["metadata"].get("finalizers") or []
    if not is_being_deleted(obj):
        return []
    collecting = [name for name in finalizers if name in (FOREGROUND, ORPHAN)]
    if len(collecting) == len(finalizers):
        return [_FINALIZERS]
    return [(*_FINALIZERS, item(name)) for name in collecting]


def _newest_time(value: Any) -> str:
    """Return the newest time in a status, the only hint at when the status was written."""
    if isinstance(value, dict):
        times = [
            str(item)
            for key, item in value.items()
            if key.endswith("Time") and isinstance(item, str)
        ]
        return max([*times, *(_newest_time(item) for item in value.values())], default="")
    if isinstance(value, list):
        return max((_newest_time(item) for item in value), default="")
    return ""
