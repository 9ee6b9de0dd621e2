"""Reading the change log."""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.storage.errors import CompactedError
from kubepy.storage.folder.database import DamagedError, Database, LogEntry
from kubepy.storage.folder.manifest import from_json
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Change, Key


def read_changes(database: Database, since: int) -> list[Change]:
    """Raises CompactedError, and DamagedError for an entry beyond the counter."""
    with database.snapshot():
        _check_reach(database, since)
        entries = coalesce(database.entries(since))
        if entries and max(entry.revision for entry in entries) > database.counter("revision"):
            raise DamagedError("an entry of the change log is beyond the counter")
        found = [_change(entry, database) for entry in entries]
    return [change for change in found if change is not None]


def _check_reach(database: Database, since: int) -> None:
    """A revision yet to come is one of another life of the index, before it was made anew."""
    compacted, revision = database.counter("compacted"), database.counter("revision")
    if not compacted <= since <= revision:
        raise CompactedError(f"the change log reaches from revision {compacted} to {revision}, not to {since}")


def coalesce(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """One entry for what happened to an object between two deletions: only its newest state is still there."""
    open_runs: dict[Key, LogEntry] = {}
    found: list[LogEntry] = []
    for entry in entries:
        key = Key(entry.resource, entry.namespace, entry.name)
        earlier = open_runs.pop(key, None)
        if entry.type == DELETED:
            found.append(entry)
        else:
            is_new = ADDED in (entry.type, earlier and earlier.type)
            open_runs[key] = entry._replace(type=ADDED if is_new else MODIFIED)
    return sorted([*found, *open_runs.values()])


def _change(entry: LogEntry, database: Database) -> Change | None:
    key = Key(entry.resource, entry.namespace, entry.name)
    if entry.type == DELETED:
        assert entry.json is not None
        return Change(entry.revision, DELETED, key, from_json(entry.json, entry.revision))
    row = database.row(key)
    if row is None or row.json is None:
        return None
    return Change(entry.revision, entry.type, key, from_json(row.json, row.revision))
