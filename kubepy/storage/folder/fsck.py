"""``kubepy fsck``: check the folder for everything in which files, index, journal and change log
disagree, and repair what can be repaired safely."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from kubepy import system
from kubepy.lazy import lazy_imports
from kubepy.storage.errors import EditError
from kubepy.storage.folder import index, volumefiles
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.commit_files import settle_managers, stage_managers
from kubepy.storage.folder.compare import (
    Edited,
    InvalidFile,
    KnownState,
    Outcome,
    Unchanged,
    compare,
    digest_of,
    find_known_problem,
    managers_path,
    read_managers,
)
from kubepy.storage.folder.database import (
    DURABLE,
    PENDING,
    WRITTEN,
    Database,
    Place,
    Row,
    sum_of_rows,
)
from kubepy.storage.folder.files import MANAGED, PRIVATE, StateFolder, UnreadableError
from kubepy.storage.folder.manifest import ContentError, from_json, parse, recorded_managers
from kubepy.storage.folder.paths import folder_of, path_of
from kubepy.storage.folder.scan import scan_objects
from kubepy.storage.model import DELETED, Key, to_json

with lazy_imports():
    from kubepy.storage.yaml import lines

# --- checking ---


def check(access: Access) -> list[str]:
    """Return every disagreement, a line each; of an index that is damaged the first damage
    alone."""
    database = access.database()
    if damage := next(index.find_damage(database), ""):
        return [f"{index.OWN}/{index.INDEX}: {damage}"]
    rows = database.rows()
    refused: list[str] = []
    return [
        *check_index(access, rows, refused),
        *refused,
        *_check_stamps(access, rows),
        *(f"{path}: {reason}" for path, reason in check_managers(access.folder, rows)),
        *(f"{path}: {reason}" for path, reason in check_modes(access.folder, rows)),
        *volumefiles.check(access.folder),
    ]


def check_index(access: Access, rows: list[Row], refused: list[str]) -> list[str]:
    """Return the defects of the index that rebuilding it from the files repairs.

    :param refused: takes the files that no edit could make so, and that an earlier version has
        taken in: nothing but an edit puts them right.
    """
    database = access.database()
    return [
        *index.check_integrity(database),
        *_check_revisions(database, rows),
        *_check_log(database, rows),
        *_check_sums(database, rows),
        *_check_contents(access, rows, refused),
    ]


def _check_revisions(database: Database, rows: list[Row]) -> Iterator[str]:
    newest = database.counter("revision")
    keys: dict[int, Key] = {}  # by revision
    for row in rows:
        path = path_of(row.key)
        if row.revision > newest:
            yield f"{path}: revision {row.revision} is beyond the counter, {newest}"
        if row.revision in keys:
            yield f"{path}: revision {row.revision} is also that of {path_of(keys[row.revision])}"
        keys[row.revision] = row.key
        if row.state == PENDING:
            yield f"{path}: the journal is not finished"
        if row.state not in (DURABLE, WRITTEN, PENDING):
            yield f"{path}: has no such state: {row.state}"


def _check_log(database: Database, rows: list[Row]) -> Iterator[str]:
    """Check that the newest entry of every object that the change log still reaches is that of its
    row."""
    newest = {Key(*entry[2:5]): entry for entry in database.entries(0)}
    live = {row.key: row for row in rows if row.json is not None}
    compacted = database.counter("compacted")
    for key, row in live.items():
        entry = newest.get(key)
        is_logged = entry is not None and entry.type != DELETED and entry.revision == row.revision
        if row.revision > compacted and not is_logged:
            yield f"{path_of(key)}: revision {row.revision} is not in the change log"
    for key, entry in newest.items():
        if entry.type != DELETED and key not in live:
            yield f"{path_of(key)}: the change log has it {entry.type}, but it is not there"
        if not compacted < entry.revision <= database.counter("revision"):
            yield f"{path_of(key)}: the change log has revision {entry.revision}, out of its bounds"


def _check_sums(database: Database, rows: list[Row]) -> Iterator[str]:
    """Check the sums of files, by which whole folders are known to be as their rows say."""
    by_place: dict[Place, list[Row]] = {}
    for row in rows:
        by_place.setdefault(row[:2], []).append(row)
    for place, total in database.sums(by_place).items():
        if total != sum_of_rows(by_place[place]):
            yield f"{folder_of(*place)}: the sum of its files is wrong"


def _check_stamps(access: Access, rows: list[Row]) -> Iterator[str]:
    """Compare rows and files as readers do."""
    database = access.database()
    known = KnownState(database.problems(), access.is_same_boot(database))
    for difference in compare(rows, scan_objects(access.folder), access.folder, known):
        outcome: Outcome | None = find_known_problem(difference, known) or access.examiner.examine(
            difference
        )
        if outcome is None or isinstance(outcome, Unchanged | InvalidFile):
            continue
        if isinstance(outcome, Edited):
            yield (
                f"{difference.path}: "
                f"{'differs from the index' if outcome.row else 'is not in the index'}"
            )
        else:
            yield f"{difference.path}: is in the index, but not there"


def _check_contents(access: Access, rows: list[Row], refused: list[str]) -> Iterator[str]:
    """Read every file in full: it must hold the object of its row."""
    problems = access.database().problems()
    obstacles = scan_objects(access.folder).obstacles
    for row in rows:
        path = path_of(row.key)
        if row.json is None or row.expires is not None or path in problems:
            continue
        if obstacles and obstacles.before(row.resource, row.namespace):
            continue
        try:
            data, stamp, _ = access.folder.read(path)
            text = to_json(access.examiner.complete(row.key, parse(data).object, row, stamp))
        except FileNotFoundError:
            continue  # its stamp shows that it is missing
        except EditError as error:
            refused.append(f"{path}:{lines.line_of(data.decode(), error.field)}: {error}")
            continue
        except (UnreadableError, ContentError, ValueError) as error:
            yield f"{path}: is in the index, but {error}"
            continue
        if digest_of(data) != row.digest:
            yield f"{path}: has not the bytes that the index remembers"
        elif text != row.json:
            yield f"{path}: does not hold the object of the index"


def check_managers(folder: StateFolder, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield the files of managers that do not hold those of their object's row, or belong to none:
    path and reason."""
    paths = {
        f"{listing.directory.path}/{MANAGED}/{name}"
        for listing in scan_objects(folder).listings
        for name in listing.managers
    }
    for row in rows:
        path = managers_path(row.key)
        if row.json is None or row.expires is not None:
            continue
        if path not in paths and recorded_managers(row.json) is not None:
            yield path, "is missing: the managers of its object are in the index alone"
        elif path in paths:
            managers = from_json(row.json, 0)["metadata"].get("managedFields")
            if read_managers(folder, row.key) != managers:
                yield path, "does not hold the managers of its object"
        paths.discard(path)

    yield from ((path, "belongs to no object") for path in sorted(paths))


def check_modes(folder: StateFolder, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield the files of Secrets that others than their owner can read: path and reason."""
    for row in rows:
        if row.resource in PRIVATE and row.json is not None:
            path = path_of(row.key)
            try:
                mode = stat.S_IMODE(os.lstat(folder.absolute(path)).st_mode)
            except OSError:
                continue  # its stamp shows that
            if system.is_open_to_others(mode):
                yield path, f"others can read it (mode {mode:04o})"


def leftovers(folder: StateFolder) -> Iterator[str]:
    """Yield the paths of temporary files that no process works on. For the holder of the lock."""
    for listing in scan_objects(folder).listings:
        for path in (listing.directory.path, f"{listing.directory.path}/{MANAGED}"):
            yield from folder.temporaries(path)


# --- repairing ---


def repair(access: Access) -> Iterator[str]:
    """Repair what can be repaired safely, and yield each repair as a line.

    The caller holds the lock and has recorded all edits.

    An index that disagrees with itself or with the files is rebuilt from them; temporary files are
    removed; files of managers are written again from the index, or removed where they belong to no
    object; Secrets become private. Raises FolderError, OSError.
    """
    folder = access.folder
    if any(index.find_damage(access.database())) or check_index(
        access, access.database().rows(), []
    ):
        access.rebuild()
        yield f"{index.OWN}/{index.INDEX}: rebuilt from the files"

    for path in list(leftovers(folder)):
        folder.remove(path)
        yield f"{path}: was left over, removed"
    rows = access.database().rows()
    rows_by_path = {path_of(row.key): row for row in rows if row.json is not None}
    for path, _ in list(check_managers(folder, rows)):
        row = rows_by_path.get(path.replace("/.managed/", "/"))
        if folder.is_directory(path):
            yield f"{path}: is a folder, left as it is: remove it"
        elif row is None:
            folder.remove(path)
            yield f"{path}: belongs to no object, removed"
        else:
            managers = recorded_managers(row.json) if row.json is not None else None
            settle_managers(folder, row, stage_managers(folder, row, managers, sync=True))
            yield f"{path}: made anew from the index"

    for path, _ in list(check_modes(folder, rows)):
        os.chmod(folder.absolute(path), 0o600)
        yield f"{path}: made private (mode 0600)"
    access.record_outside_edits()  # the stamps of the repaired files
