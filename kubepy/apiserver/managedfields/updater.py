"""Fields move between managers with each write. Upstream:
``structured-merge-diff/merge/update.go``.

Objects of other versions of a kind are taken to have the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.entries import (
    APPLY,
    UPDATE,
    Entry,
    FieldConflict,
    FieldManager,
    Managed,
    Managers,
    decode,
    encode,
    manager_of,
)
from kubepy.apiserver.managedfields.fieldpath import EMPTY, Fields, Path, fields_path, in_order
from kubepy.apiserver.managedfields.merging import merge, remove, with_named_fields
from kubepy.apiserver.managedfields.typed import ABSENT, Comparison, compare, field_set

# What every request names, and nobody manages.
STRIPPED: Fields = frozenset(
    (
        fields_path("apiVersion"),
        fields_path("kind"),
        fields_path("metadata"),
        *(
            fields_path("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    )
)
MAX_UPDATERS = 10
ANCIENT = "ancient-changes"


class ConflictsError(Exception):
    """An apply would take fields from others."""

    def __init__(self, conflicts: list[FieldConflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class Applied(NamedTuple):
    """The object and the managers after an apply."""

    object: Object
    managers: Managers


def without(fields: Fields, ignored: Iterable[Path]) -> Fields:
    """Return the fields that are neither ignored nor below ignored ones."""
    prefixes = frozenset(ignored)
    lengths = {len(prefix) for prefix in prefixes}
    if len(lengths) == 1:  # as they mostly are
        [length] = lengths
        return frozenset([path for path in fields if path[:length] not in prefixes])
    return frozenset(
        [path for path in fields if prefixes.isdisjoint([path[:length] for length in lengths])]
    )


class Write(NamedTuple):
    """A manager's write: the version that it is in, its time, and the fields that it cannot
    change."""

    manager: FieldManager
    api_version: str
    time: str
    ignored: tuple[Path, ...] = ()


def update(
    live: Object, new: Object, schema: Schema | None, managers: Managers, write: Write
) -> Managers:
    """Return the managers after an update: its changes belong to its manager alone. Raises
    TypedError."""
    changes = _filtered(compare(live, new, schema), write.ignored)
    left = _give_up(managers, changes)
    taken = (changes.modified | changes.added) - STRIPPED
    if taken:
        before = left[write.manager].fields if write.manager in left else EMPTY
        left[write.manager] = Managed(before | taken, write.api_version, write.time)
    return _capped(left)


def apply(
    live: Object,
    config: Object,
    schema: Schema | None,
    managers: Managers,
    write: Write,
    *,
    force: bool,
) -> Applied:
    """Merge a configuration into an object, and remove the fields that its manager no longer
    applies.

    Raises ConflictsError, TypedError.
    """
    manager = write.manager
    merged = merge(live, config, schema)
    last = managers[manager].fields if manager in managers else EMPTY
    previous = managers[manager].time if manager in managers else ""
    own = without(field_set(config, schema), write.ignored)
    managers = {**managers, manager: Managed(own, write.api_version, previous)}
    new = _pruned(merged, schema, managers, last)
    changes = _filtered(compare(live, new, schema), write.ignored)
    others = {other: managed for other, managed in managers.items() if other != manager}
    if not force and (conflicts := conflicts_with(others, changes)):
        raise ConflictsError(conflicts)
    left = {**_give_up(others, changes), manager: managers[manager]}
    if own := own - STRIPPED:
        left[manager] = Managed(own, write.api_version, previous if new == live else write.time)
    else:
        del left[manager]

    return Applied(new, left)


def _filtered(changes: Comparison, ignored: Iterable[Path]) -> Comparison:
    return Comparison(*(without(fields, ignored) for fields in changes))


def conflicts_with(managers: Managers, changes: Comparison) -> list[FieldConflict]:
    """Return the fields that others manage and the changes set, in order of managers and fields."""
    changed = changes.modified | changes.added
    return [
        FieldConflict(manager, path)
        for manager in sorted(managers)
        for path in in_order(managers[manager].fields & changed)
    ]


def _give_up(managers: Managers, changes: Comparison) -> Managers:
    """Remove changed and removed fields from all managers, and managers that have nothing left."""
    lost = changes.modified | changes.added | changes.removed
    left = {
        manager: managed._replace(fields=managed.fields - lost)
        for manager, managed in managers.items()
    }
    return {manager: managed for manager, managed in left.items() if managed.fields}


def _pruned(merged: Object, schema: Schema | None, managers: Managers, last: Fields) -> Object:
    """Remove the fields that the applier had and gave up, unless another manager has them."""
    if not last:
        return merged

    def named(fields: Fields) -> Fields:
        return with_named_fields(fields, schema)

    def all_of(value: Any) -> Fields:
        return named(EMPTY if value is ABSENT else field_set(value, schema))

    everything = all_of(merged)
    owned = reduce(frozenset.union, (managed.fields for managed in managers.values()), EMPTY)
    pruned = remove(merged, named(last), schema)
    pruned = remove(merged, everything - (all_of(pruned) | named(owned)), schema)
    pruned_object: Object = remove(merged, (everything - all_of(pruned)) & named(last), schema)
    return pruned_object


def _capped(managers: Managers) -> Managers:
    """Unite the oldest of too many updaters (``capmanagers.go``)."""
    updaters = sorted(
        (manager for manager in managers if manager.operation == UPDATE),
        key=lambda manager: (managers[manager].time, manager),
    )
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managers
    oldest = updaters[: surplus + 1]
    version = managers[oldest[0]].api_version
    together = reduce(frozenset.union, (managers[manager].fields for manager in oldest), EMPTY)
    bucket = Managed(together, version, max(managers[manager].time for manager in oldest))
    kept = {updater: managed for updater, managed in managers.items() if updater not in oldest}
    return {**kept, FieldManager(ANCIENT, UPDATE, version): bucket}


def owners(managers: Managers, path: Path, operation: str = APPLY) -> list[FieldManager]:
    """Return the managers that have a field by one operation."""
    return sorted(
        manager
        for manager, managed in managers.items()
        if manager.operation == operation and path in managed.fields
    )


# --- from apply on the client to apply on the server (``client-go/util/csaupgrade/upgrade.go``) ---


def managers_of_field(obj: Object, names: tuple[str, ...], operation: str) -> list[str]:
    """Return the names of the managers that have a field; the object's entries must be complete."""
    managers = decode(obj["metadata"].get("managedFields") or [])
    return [manager.name for manager in owners(managers, fields_path(*names), operation)]


def upgrade_patch(obj: Object, clients: Iterable[str], applier: str) -> list[Entry] | None:
    """Return the JSON patch that gives an applier the fields of updaters; None if there are none to
    give."""
    before = decode(obj["metadata"].get("managedFields") or [])
    after = before
    for name in clients:
        after = _upgraded(after, name, applier)
    if after == before:
        return None
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": encode(after)},
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": obj["metadata"]["resourceVersion"],
        },
    ]


def _upgraded(managers: Managers, client: str, applier: str) -> Managers:
    """Move a client's updates to the applier, as far as they are in the applier's version."""
    target = manager_of(applier, APPLY, "")
    updates = [
        manager
        for manager in managers
        if manager.name == client and manager.operation == UPDATE and not manager.subresource
    ]
    if not updates:
        return managers
    own = managers.get(target) or managers[updates[0]]
    same = [
        managers[manager].fields for manager in updates if manager.api_version == own.api_version
    ]
    kept = {other: managed for other, managed in managers.items() if other not in updates}
    return {**kept, target: own._replace(fields=own.fields.union(*same))}
