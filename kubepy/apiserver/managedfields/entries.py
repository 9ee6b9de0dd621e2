"""``metadata.managedFields`` as the API writes it, and as the updater works with it.

Upstream: ``apimachinery/pkg/util/managedfields/internal/{managedfields,conflict}.go``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.apiserver.managedfields.fieldpath import (
    Fields,
    Path,
    from_fields_v1,
    path_text,
    to_fields_v1,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import goformat

APPLY = "Apply"
UPDATE = "Update"
Entry = dict[str, Any]


class EntryError(ValueError):
    """An entry cannot be read: a client's, or one that another program stored without an API
    server."""


class FieldManager(NamedTuple):
    """A manager of fields: an applier is the same in all versions, an updater differs by version
    and subresource."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """Name the manager as conflicts do."""
        text = goformat.quote(self.name)
        if self.subresource:
            text += f" with subresource {goformat.quote(self.subresource)}"
        if self.operation == UPDATE:
            return f"{text} using {self.api_version}"
        return text


class Managed(NamedTuple):
    """The fields of a manager, the version that they are in, and the time of its last change ("":
    not known)."""

    fields: Fields
    api_version: str
    time: str = ""


Managers = dict[FieldManager, Managed]
Pairs = list[tuple[FieldManager, Managed]]


def manager_of(name: str, operation: str, api_version: str, subresource: str = "") -> FieldManager:
    return FieldManager(
        name or "unknown", operation, "" if operation == APPLY else api_version, subresource
    )


def decode(entries: Iterable[Any]) -> Managers:
    """Return the managers of entries; of two entries of a manager the later one counts.

    Raises EntryError.
    """
    return dict(decode_all(entries))


def decode_all(entries: Iterable[Any]) -> Pairs:
    """Return the manager and fields of every entry. Raises EntryError."""
    managers: Pairs = []
    for index, entry in enumerate(entries):
        operation = entry.get("operation")
        api_version = entry.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise EntryError("operation must be `Apply` or `Update`")
        if not api_version:
            raise EntryError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise EntryError(f"invalid fieldsType in managed fields entry {index}")
        manager = field_manager_of(entry)
        try:
            fields = from_fields_v1(entry.get("fieldsV1") or {})
        except (AttributeError, TypeError, ValueError) as error:
            raise EntryError(f"the fields of managed fields entry {index}: {error}") from error
        managers.append((manager, Managed(fields, api_version, entry.get("time") or "")))

    return managers


def field_manager_of(entry: Entry) -> FieldManager:
    """Return the manager of an entry that has a version and an operation."""
    operation = entry.get("operation", "")
    return FieldManager(
        entry.get("manager", ""),
        operation,
        "" if operation == APPLY else entry.get("apiVersion", ""),
        entry.get("subresource", ""),
    )


def encode(managers: Managers) -> list[Entry]:
    """Return the entries in the API's order: appliers first, then by time."""
    return encode_all(managers.items())


def encode_all(managers: Iterable[tuple[FieldManager, Managed]]) -> list[Entry]:
    entries = [_entry(manager, managed) for manager, managed in managers]
    return sorted(
        entries,
        key=lambda entry: (
            entry["operation"],
            entry.get("time", ""),
            entry["manager"],
            entry["apiVersion"],
            entry.get("subresource", ""),
        ),
    )


def _entry(manager: FieldManager, managed: Managed) -> Entry:
    entry: Entry = {
        "apiVersion": managed.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(managed.fields),
        "manager": manager.name,
        "operation": manager.operation,
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    if managed.time:
        entry["time"] = managed.time
    return entry


# --- conflicts ------------------------------------------------------------------------------------


class FieldConflict(NamedTuple):
    """A field that an applier sets to another value than its manager."""

    manager: FieldManager
    path: Path


def conflict_status(conflicts: list[FieldConflict]) -> errors.Status:
    """Make the answer to an apply that met conflicts; they are in order of managers and fields."""
    causes = [
        errors.Cause(
            "FieldManagerConflict", f"conflict with {conflict.manager}", path_text(conflict.path)
        )
        for conflict in conflicts
    ]
    return errors.Conflict(_message(conflicts), causes=causes)


def _message(conflicts: list[FieldConflict]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path_text(path)}"
    lines: list[str] = []
    for manager in sorted({conflict.manager for conflict in conflicts}):
        lines.append(f"conflicts with {manager}:")
        lines += [
            f"- {path_text(conflict.path)}" for conflict in conflicts if conflict.manager == manager
        ]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
