"""Stamps: entries of managedFields without ``fieldsType``, which stand for all fields that no other
entry names.

The client that creates an object gets a stamp, because it costs nothing to write; ``tracking``
computes the fields when they are needed. Fields that the server itself set (a Service's address)
have no manager: a stamp lists them under ``fieldsV1.unset``, each as a path of field names and list
indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.meta import Object

Entry = dict[str, Any]
Place = list[str | int]
_UNSET = "unset"
# Fields that the server sets and that no manager owns.
_UNMANAGED = {("metadata", name) for name in ("creationTimestamp", "generation", "name", "uid")}


def stamp(
    manager: str, api_version: str, time: str, unset_places: list[Place] | None = None
) -> Entry:
    """Return the entry of the client that creates an object; ``unset_places`` are those that the
    server set."""
    entry: Entry = {
        "apiVersion": api_version,
        "manager": manager,
        "operation": "Update",
        "time": time,
    }
    if unset_places:
        return {**entry, "fieldsV1": {_UNSET: unset_places}}
    return entry


def is_stamp(entry: Any) -> bool:
    return isinstance(entry, dict) and "fieldsType" not in entry


def is_whole(entry: Entry) -> bool:
    """Tell whether a stamp is complete; one in a file from elsewhere may not be."""
    texts = [entry.get(field) for field in ("apiVersion", "manager", "time")]
    fields = entry.get("fieldsV1") or {}
    if not isinstance(fields, dict):
        return False
    places = fields.get(_UNSET) or []
    return (
        all(isinstance(text, str) and text for text in texts)
        and fields.keys() <= {_UNSET}
        and isinstance(places, list)
        and all(place and isinstance(place, list) for place in places)
    )


def unset(entry: Entry) -> list[Place]:
    """Return the places that the server set, so that neither the stamp's nor any other manager owns
    them."""
    return (entry.get("fieldsV1") or {}).get(_UNSET) or []


def added(requested: Object, created: Object) -> list[Place]:
    """Return the places that a created object has beyond the request, without status and unmanaged
    fields."""
    return [
        place
        for place in _added(requested, created, [])
        if place[0] != "status" and tuple(place) not in _UNMANAGED
    ]


def _added(requested: Any, created: Any, place: Place) -> Iterator[Place]:
    if requested == created:
        return
    if isinstance(requested, dict) and isinstance(created, dict):
        for name, value in created.items():
            if name in requested:
                yield from _added(requested[name], value, [*place, name])
            else:
                yield [*place, name]
    elif isinstance(requested, list) and isinstance(created, list):
        for index, value in enumerate(created):
            if index < len(requested):
                yield from _added(requested[index], value, [*place, index])
            else:
                yield [*place, index]
