"""``fsck`` of the index: everything in which files, index, journal and change log disagree."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubepy.storage.folder.compare import (
    Edited,
    Known,
    Outcome,
    Refused,
    Same,
    compare,
    complete,
    digest_of,
    examine,
    known_problem,
    managers_path,
    read_managers,
)
from kubepy.storage.folder.database import DURABLE, PENDING, WRITTEN, DamagedError, Database, Row
from kubepy.storage.folder.files import MANAGED, PRIVATE, Folder, UnreadableError
from kubepy.storage.folder.index import INDEX, OWN
from kubepy.storage.folder.manifest import ContentError, from_json, managers_of, parse, to_json
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.scan import survey
from kubepy.storage.model import DELETED, Key

if TYPE_CHECKING:
    from kubepy.storage.folder.access import Access


def check(access: Access) -> list[str]:
    """Every disagreement, a line each; of an index that is damaged the first damage alone."""
    database = access.database()
    if damage := next(damages(database), ""):
        return [f"{OWN}/{INDEX}: {damage}"]
    rows = database.rows()
    return [
        *check_index(access, rows),
        *_check_stamps(access, rows),
        *(f"{path}: {why}" for path, why in check_managers(access.folder, rows)),
        *(f"{path}: {why}" for path, why in check_modes(access.folder, rows)),
    ]


def check_index(access: Access, rows: list[Row]) -> list[str]:
    """Defects of the index that making it anew from the files mends."""
    database = access.database()
    return [
        *_check_database(database),
        *_check_revisions(database, rows),
        *_check_log(database, rows),
        *_check_contents(access, rows),
    ]


def damages(database: Database) -> Iterator[str]:
    """Contents of an index that no kubepy can have written."""
    try:
        yield from _check_database(database)
        for row in database.rows():
            if problem := _wrong_types(row):
                yield problem
            json.loads(row.json or "null")
            row.replaced()
        database.check_log()
        database.counter("compacted")
        for entry in database.entries(0):
            json.loads(entry.json or "null")
            texts = entry[1:5]
            if not all(isinstance(text, str) for text in texts) or not (entry.type and entry.resource and entry.name) \
                    or (entry.type == DELETED) != (entry.json is not None):
                yield f"an entry of the change log has other types: {entry[:5]}"
        for stamp, told in database.problems().values():
            if not all(isinstance(number, int) for number in (*stamp, told.line)) or not isinstance(told.why, str):
                yield "a problem has other types"
        for table in ("meta", "internal"):
            for (name,) in database.connection.execute(f"SELECT name FROM {table}").fetchall():
                database.value(table, name)
    except (DamagedError, sqlite3.Error, TypeError, ValueError, AttributeError, RecursionError) as error:
        yield str(error)


def _wrong_types(row: Row) -> str:
    texts, numbers = (*row.key, row.replaces, row.managers), (row.revision, *row.stamp, row.racy, row.state)
    is_sound = all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)
    return "" if is_sound and isinstance(row.digest, bytes) else f"{row[:3]}: a column has another type"


def _check_database(database: Database) -> Iterator[str]:
    for (line,) in database.connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"index: {line}"


def _check_revisions(database: Database, rows: list[Row]) -> Iterator[str]:
    revision = database.counter("revision")
    seen: dict[int, Key] = {}
    for row in rows:
        if row.revision > revision:
            yield f"{_name(row)}: revision {row.revision} is beyond the counter, {revision}"
        if row.revision in seen:
            yield f"{_name(row)}: revision {row.revision} is also that of {path_of(seen[row.revision])}"
        seen[row.revision] = row.key
        if row.state == PENDING:
            yield f"{_name(row)}: the journal is not finished"
        if row.state not in (DURABLE, WRITTEN, PENDING):
            yield f"{_name(row)}: has no such state: {row.state}"


def _check_log(database: Database, rows: list[Row]) -> Iterator[str]:
    """The newest entry of every object that the log still reaches must tell of its row."""
    newest = {Key(*entry[2:5]): entry for entry in database.entries(0)}
    live = {row.key: row for row in rows if row.json is not None}
    compacted = database.counter("compacted")
    for key, row in live.items():
        entry = newest.get(key)
        is_told = entry is not None and entry.type != DELETED and entry.revision == row.revision
        if row.revision > compacted and not is_told:
            yield f"{_name(row)}: revision {row.revision} is not in the change log"
    for key, entry in newest.items():
        if entry.type != DELETED and key not in live:
            yield f"{path_of(key)}: the change log has it {entry.type}, but it is not there"
        if not compacted < entry.revision <= database.counter("revision"):
            yield f"{path_of(key)}: the change log has revision {entry.revision}, out of its bounds"


def _check_stamps(access: Access, rows: list[Row]) -> Iterator[str]:
    database = access.database()
    known = Known(database.problems(), access.is_same_boot(database))
    for difference in compare(rows, survey(access.folder), access.folder, known):
        outcome = known_problem(difference, known) or examine(
            difference, access.folder, access.admit, access.retain)
        if outcome is not None and not isinstance(outcome, Same | Refused):
            yield f"{difference.path}: {_difference_words(outcome)}"


def _difference_words(outcome: Outcome) -> str:
    if isinstance(outcome, Edited):
        return "differs from the index" if outcome.row else "is not in the index"
    return "is in the index, but not there"


def _check_contents(access: Access, rows: list[Row]) -> Iterator[str]:
    """Every file read in full: it must hold the object of its row."""
    problems = access.database().problems()
    obstacles = survey(access.folder).obstacles
    for row in rows:
        path = path_of(row.key)
        if row.json is None or row.expires is not None or path in problems:
            continue
        if obstacles and obstacles.before(row.resource, row.namespace):
            continue
        if why := _wrong_content(access, row, path):
            yield f"{path}: {why}"


def _wrong_content(access: Access, row: Row, path: str) -> str:
    try:
        data, stamp, _ = access.folder.read(path)
        obj = parse(data).object
        text = to_json(complete(row.key, obj, row, access.folder, stamp, access.admit))
    except FileNotFoundError:
        return ""  # told by its stamp
    except (UnreadableError, ContentError, ValueError) as error:
        return f"is in the index, but {error}"
    if digest_of(data) != row.digest:
        return "has not the bytes that the index remembers"
    return "" if text == row.json else "does not hold the object of the index"


def check_managers(folder: Folder, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The files of managers that do not hold those of their object's row, or belong to none: path and reason."""
    paths = {f"{listing.directory.path}/{MANAGED}/{file}" for listing in survey(folder).listings
             for file in listing.managers}
    for row in rows:
        path = managers_path(row.key)
        if row.json is None or row.expires is not None:
            continue
        if path not in paths and managers_of(row.json) is not None:
            yield path, "is missing: the managers of its object are in the index alone"
        elif path in paths:
            managers = from_json(row.json, 0)["metadata"].get("managedFields")
            if read_managers(folder, row.key) != managers:
                yield path, "does not hold the managers of its object"
        paths.discard(path)
    yield from ((path, "belongs to no object") for path in sorted(paths))


def check_modes(folder: Folder, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The files of Secrets that others than their owner can read: path and reason."""
    for row in rows:
        if row.resource in PRIVATE and row.json is not None:
            path = path_of(row.key)
            try:
                mode = stat.S_IMODE(os.lstat(folder.absolute(path)).st_mode)
            except OSError:
                continue  # told by its stamp
            if mode & 0o077:
                yield path, f"others can read it (mode {mode:04o})"


def check_leftovers(folder: Folder) -> Iterator[str]:
    """The paths of temporary files that no process works on; for the holder of the lock."""
    for listing in survey(folder).listings:
        for path in (listing.directory.path, f"{listing.directory.path}/{MANAGED}"):
            yield from folder.temporaries(path)


def _name(row: Row) -> str:
    return path_of(row.key)
