"""Compare the rows of the index with the files, and examine the files that differ: unchanged,
edited, removed, or no object.

Comparing needs the stamps of files alone; only files that differ are read. Nothing here writes, so
readers show what they find here while another process holds the lock, and the holder of the lock
records the same.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kubepy.lazy import blake2b, lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import EditError
from kubepy.storage.folder.database import (
    PENDING,
    WRITTEN,
    Database,
    KnownProblems,
    Row,
    Stamp,
)
from kubepy.storage.folder.files import MANAGED, DeniedError, StateFolder, UnreadableError
from kubepy.storage.folder.manifest import ContentError, UnnamedError, check_place, parse
from kubepy.storage.folder.paths import (
    SUFFIX,
    ancestors_of,
    decode,
    encode,
    is_cut,
    is_folder_path,
    parent_of,
    path_of,
)
from kubepy.storage.folder.scan import (
    NO_PLACE,
    Extent,
    FolderScan,
    ScannedFile,
    extent_at,
    find_obstacle,
    scan_object,
    scan_objects,
)
from kubepy.storage.model import Admit, Key, Object, Problem, Removal, to_json

with lazy_imports():
    from kubepy.storage.yaml import lines

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
# The exceptions of code about an object that has a shape or size which the code does not expect.
UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError)
UNKNOWN = Stamp(0, 0, 0, 0)  # of a problem file that is to be read again
# of a problem file that is to be read again at once: what it was judged by has changed
DOUBTED = Stamp(0, 0, 0, -1)
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"  # each is named as its resource
SIBLINGS_MATTER = frozenset({"services"})  # each is judged by the others too: two want one port
NO_PROBLEM = Problem("", 0, "")
EDIT_NS = 20_000_000  # the age at which an edit is taken for finished
# the age at which a removal or an unreadable file is taken for more than a step of an edit
REMOVAL_NS = 100_000_000
MAX_READS = 5


class Difference(NamedTuple):
    """A file that is not as its row says. ``file`` None: no file; ``row`` None: no (live) row."""

    path: str
    file: ScannedFile | None
    row: Row | None


class Unchanged(NamedTuple):
    """The object is the one of the row; only the stamp of its file is another."""

    row: Row
    stamp: Stamp
    digest: bytes
    racy: bool
    managers: str


class Removed(NamedTuple):
    """The file of the row was removed."""

    row: Row


class Retained(NamedTuple):
    """The file of the row was removed, but the object stays for now: it is written again as
    ``json``."""

    row: Row
    json: str


class Edited(NamedTuple):
    """A file holds another object than its row; without a row, a new object."""

    key: Key
    row: Row | None
    json: str
    stamp: Stamp
    digest: bytes
    racy: bool
    managers: str


class InvalidFile(NamedTuple):
    """A file that cannot be an object, or an obstacle that hides a folder of them."""

    problem: Problem
    stamp: Stamp
    row: Row | None


Outcome = Unchanged | Removed | Retained | Edited | InvalidFile


class KnownState(NamedTuple):
    """The state of the index that a comparison goes by.

    :ivar problems: the problem files with their stamps.
    :ivar same_boot: the machine was not started anew since the index was last recovered; else the
        files of WRITTEN rows may be lost.
    :ivar compared: takes the racy rows whose files are as they say, and so old by now that later
        edits show in their stamps.
    """

    problems: KnownProblems
    same_boot: bool
    compared: list[Row] | None = None


# --- comparing ---


def is_settled(row: Row, known: KnownState) -> bool:
    """Return whether the file of a row can be compared with it; otherwise the row is the truth."""
    return row.state < WRITTEN or (row.state == WRITTEN and known.same_boot)


def compare(
    rows: Iterable[Row], scan: FolderScan, folder: StateFolder, known: KnownState
) -> Iterator[Difference]:
    """Yield the differences between rows and the files at their places, in no order; none behind an
    obstacle."""
    by_place = {
        (listing.directory.resource, listing.directory.namespace): listing
        for listing in scan.listings
    }
    obstacles = scan.obstacles if scan.obstacles else None  # tested once a row
    for row in rows:
        listing = by_place.get(row[:2])
        name = encode(row.name) + SUFFIX
        status = listing.files.pop(name, None) if listing else None
        if (
            status
            and listing
            and not known.problems
            and not row.racy
            and row.json is not None
            and _has_stamp(row, status)
            and not row.managers
            and not listing.managers
        ):
            continue  # as almost all files are, so this comes first
        if row.expires is not None or (
            not is_settled(row, known)
            and not (status and _is_edit_of_unsettled(row, status, folder))
        ):
            continue
        if obstacles and obstacles.before(row.resource, row.namespace):
            continue
        file = listing.object_file(name, status) if listing and status else None
        if difference := _compare_one(row, file, folder, known):
            yield difference

    for listing in by_place.values():
        for name, status in listing.files.items():
            file = listing.object_file(name, status)
            yield Difference(file.path, file, None)


def _compare_one(
    row: Row, file: ScannedFile | None, folder: StateFolder, known: KnownState
) -> Difference | None:
    if file and not known.same_boot and _is_left_by_power_cut(row, file.status):
        return None
    if row.json is None:  # a tombstone: any file there is new
        return Difference(file.path, file, None) if file else None
    if file is None:
        return Difference(path_of(row.key), None, row)
    is_known_problem = bool(known.problems) and file.path in known.problems
    is_different = (
        not _has_stamp(row, file.status) or row.managers != file.managers or is_known_problem
    )
    if not is_different and row.racy:  # an edit may hide behind the same stamp
        try:
            data, stamp, racy = folder.read(file.path)
            is_different = digest_of(data) != row.digest
            if known.compared is not None and not is_different and not racy and stamp == row.stamp:
                known.compared.append(row)
        except (FileNotFoundError, UnreadableError):
            is_different = True

    return Difference(file.path, file, row) if is_different else None


def _has_stamp(row: Row, status: os.stat_result) -> bool:
    return (
        row.ctime_ns == status.st_ctime_ns
        and row.mtime_ns == status.st_mtime_ns
        and row.size == status.st_size
        and row.inode == status.st_ino
    )


def _is_edit_of_unsettled(row: Row, status: os.stat_result, folder: StateFolder) -> bool:
    """Return whether a file is an edit, and not a version that a commit is about to replace or has
    just made. An edit in place may have the size and time of one of these, so the content
    counts."""
    if not status.st_size:
        return False
    version = (status.st_mtime_ns, status.st_size, status.st_ino)
    digests = [known.digest for known in (row.version, *row.replaced()) if version == known[:3]]
    try:
        return not digests or digest_of(folder.read(path_of(row.key))[0]) not in (
            row.digest,
            *digests,
        )
    except (FileNotFoundError, UnreadableError):
        return True


def _is_left_by_power_cut(row: Row, status: os.stat_result) -> bool:
    """Return whether a file is one that a power cut left and the recovery restores or removes, and
    no edit: an empty one, and the file of a deleted object that is back."""
    if not status.st_size:
        return True
    version = (status.st_mtime_ns, status.st_size, status.st_ino)
    return row.json is None and (row.mtime_ns, row.size, row.inode) == version


def digest_of(data: bytes) -> bytes:
    """Return the digest by which a row knows the content of its file."""
    return blake2b(data, 16)


# --- problems that are known already ---


def find_known_problem(difference: Difference, known: KnownState) -> InvalidFile | None:
    """Return the problem of a file that is known and unchanged."""
    if difference.file is None or not known.problems:
        return None
    stamp, problem = known.problems.get(printable(difference.path), (UNKNOWN, NO_PROBLEM))
    return InvalidFile(problem, stamp, difference.row) if stamp == difference.file.stamp else None


def resources_judged_by(keys: Iterable[Key]) -> set[str]:
    """Return the resources whose files may be in order, or not, because of some objects."""
    resources = set()
    for key in keys:
        if key.resource == DEFINITIONS:
            resources.add(key.name)
        elif key.resource in SIBLINGS_MATTER:
            resources.add(key.resource)
    return resources


def doubt_problems(database: Database, changed: Iterable[Key]) -> None:
    """Have the problem files that are judged by objects which have changed read again, in a
    transaction of the index."""
    resources = resources_judged_by(changed)
    if not resources:
        return
    for path, (_, problem) in database.problems().items():
        if extent_at(path).resource in resources:
            database.put_problem(problem, DOUBTED)


def doubted_extents(database: Database) -> list[Extent]:
    """Return the extents of the problem files that are to be read again at once."""
    return [extent_at(path) for path, (stamp, _) in database.problems().items() if stamp == DOUBTED]


def problems_of(scan: FolderScan, rows: Iterable[Row]) -> list[InvalidFile]:
    """Return the obstacles that the user is to see, and the strays, as problems."""
    obstacles = [
        (Problem(printable(obstacle.path), 0, obstacle.reason), UNKNOWN)
        for obstacle in scan.obstacles.to_report(rows)
    ]
    strays = [
        (Problem(printable(stray.path), 0, stray.reason), stray.stamp) for stray in scan.strays
    ]
    return [InvalidFile(problem, stamp, None) for problem, stamp in (*obstacles, *strays)]


def hides_folder(problem: Problem) -> bool:
    """Return whether a problem is about a folder of objects, or one above, and not about a file."""
    return is_folder_path(problem.path) and problem.reason != NO_PLACE


def has_hidden_folder(problems: KnownProblems) -> bool:
    """Return whether objects may be out of reach."""
    return any(hides_folder(problem) for _, problem in problems.values())


# --- examining ---


class Examiner:
    """Reads the files that differ from their rows.

    :param admit: see :data:`Admit`; None admits everything.
    :param removal: see :data:`Removal`; None: every object is gone with its file.
    :param now: the cluster's time in seconds.
    """

    def __init__(
        self,
        folder: StateFolder,
        admit: Admit | None,
        removal: Removal | None,
        now: Callable[[], float],
    ) -> None:
        self.folder = folder
        self._admit = admit
        self._removal = removal
        self._now = now

    def examine(self, difference: Difference) -> Outcome | None:
        """Read a file that differs, once whoever edits it has had the time to finish: git removes a
        file before it makes it anew, an editor may empty it before it writes.

        Return None where there is neither file nor row (any more), or something hides the file now.
        """
        outcome = self._examine_now(difference)
        for _ in range(MAX_READS):
            pause = self._seconds_until_believed(outcome)
            if pause <= 0:
                break
            time.sleep(pause)
            if isinstance(outcome, Edited) and self.folder.stamp(difference.path) == outcome.stamp:
                break
            outcome = self._examine_now(difference)
        return outcome

    def _seconds_until_believed(self, outcome: Outcome | None) -> float:
        """Return the seconds until a removal, a file that cannot be read or an edit is believed."""
        stamp, patience_ns = None, REMOVAL_NS
        if isinstance(outcome, Edited):
            stamp, patience_ns = outcome.stamp, EDIT_NS
        elif isinstance(outcome, InvalidFile):
            stamp = self.folder.stamp(outcome.problem.path)
        elif isinstance(outcome, Removed | Retained):
            parents = [*reversed(ancestors_of(path_of(outcome.row.key))[:-1]), ""]
            stamp = next((stamp for path in parents if (stamp := self.folder.stamp(path))), None)
        age_ns = time.time_ns() - stamp.ctime_ns if stamp else patience_ns
        return (patience_ns - age_ns) / 1e9 if 0 <= age_ns < patience_ns else 0.0

    def _examine_now(self, difference: Difference) -> Outcome | None:
        path, file, row = difference
        if file is None:
            if row is None:
                return None
            scan = scan_object(
                self.folder, row.key
            )  # a folder read while files are renamed may seem to lack one
            if scan.obstacles:
                return None
            (listing,) = scan.listings
            if not listing.files:
                return self._examine_removed(row)
            ((name, status),) = listing.files.items()
            file = listing.object_file(name, status)

        try:
            data, stamp, racy = self.folder.read(path)
        except (
            FileNotFoundError
        ):  # removed a moment ago, unless a link took the place of its folder
            return (
                self._examine_removed(row) if row and not find_obstacle(self.folder, path) else None
            )
        except UnreadableError as error:
            return _invalid(
                difference,
                UNKNOWN if isinstance(error, DeniedError) else file.stamp,
                ContentError(0, str(error)),
            )

        digest = digest_of(data)
        if row and digest == row.digest and (file.managers == row.managers or row.state == PENDING):
            return Unchanged(
                row, stamp, digest, racy, file.managers
            )  # the managers of a commit under way follow

        try:
            key, text = self._load(data, file, row, stamp)
        except ContentError as error:
            return _invalid(difference, UNKNOWN if racy else stamp, error)

        if row and text == row.json:
            return Unchanged(row, stamp, digest, racy, file.managers)
        return Edited(key, row, text, stamp, digest, racy, file.managers)

    def _examine_removed(self, row: Row) -> Outcome:
        """Decide whether an object is gone with its file where there are files in the namespace of
        its name."""
        if self._removal is None or row.namespace or not row.json:
            return Removed(row)
        if not any(
            listing.files for listing in scan_objects(self.folder, namespace=row.name).listings
        ):
            return Removed(row)
        kept = self._removal(row.key, json.loads(row.json), self._now())
        return Removed(row) if kept is None else Retained(row, to_json(kept))

    def _load(
        self, data: bytes, file: ScannedFile, row: Row | None, stamp: Stamp
    ) -> tuple[Key, str]:
        """Return the key of a file's object and its JSON, complete, as its row will hold it. Raises
        ContentError."""
        expected = key_of_file(file)
        content = parse(data)
        directory_key = Key(file.directory.resource, file.directory.namespace, "")
        obj, unnamed = content.object, None
        try:
            key = check_place(obj, expected, directory_key, file.path, content.line)
        except UnnamedError as error:
            if row is None or expected is None:
                raise
            unnamed = ContentError(error.line, error.reason, keeps_object=True)
            key, obj = expected, _with_name(obj, expected)

        try:
            text = to_json(self.complete(key, obj, row, stamp))
        except EditError as error:
            line = lines.line_of(data.decode(), error.field) or content.line
            raise ContentError(line, str(error), keeps_object=row is not None) from None
        except ValueError as error:
            raise unnamed or ContentError(content.line, str(error)) from None
        except RecursionError:
            raise ContentError(content.line, "is nested too deeply") from None
        except (
            UNFORESEEN
        ) as error:  # one file with values that nobody thought of must not stop every command
            raise ContentError(
                content.line, f"cannot be taken in: {type(error).__name__}: {error}"
            ) from None

        if unnamed is not None:  # a mistyped field would have been refused above, with its line
            raise unnamed
        return key, text

    def load(self, key: Key, data: bytes, stamp: Stamp) -> Object:
        """Return the object in the bytes of its file, as one of which nothing was known.

        Raises ContentError, ValueError, RecursionError, UNFORESEEN.
        """
        content = parse(data)
        check_place(content.object, key, key, path_of(key), content.line)
        return self.complete(key, content.object, None, stamp)

    def complete(self, key: Key, obj: Object, row: Row | None, stamp: Stamp) -> Object:
        """Add to an object from a file what the file does not hold. Raises ValueError."""
        metadata = obj["metadata"]
        metadata.pop("resourceVersion", None)
        if key.namespace:
            metadata["namespace"] = key.namespace
        known: Object | None = json.loads(row.json) if row and row.json else None
        old = (
            known["metadata"]
            if known and metadata.get("uid") in (None, "", known["metadata"].get("uid"))
            else {}
        )
        for field in ("uid", "creationTimestamp"):  # a manifest written by hand, edited again
            if field in old and not metadata.get(field):
                metadata[field] = old[field]
        managers = (
            metadata["managedFields"]
            if "managedFields" in metadata
            else read_managers(self.folder, key)
        )
        if (
            not managers
            and "managedFields" not in metadata
            and metadata.get("uid") == old.get("uid")
        ):
            managers = old.get("managedFields")

        if managers:
            metadata["managedFields"] = managers
        return self._admit(key, obj, stamp.mtime_ns / 1e9, known) if self._admit else obj


def _with_name(obj: Object, key: Key) -> Object:
    """Return an object that does not say its name with the one that the path of its file says."""
    metadata = obj.get("metadata")
    named = {**(metadata if isinstance(metadata, dict) else {}), "name": key.name}
    return {**obj, "metadata": named}


def _invalid(difference: Difference, stamp: Stamp, error: ContentError) -> InvalidFile:
    problem = Problem(
        printable(difference.path), error.line, printable(error.reason), error.keeps_object
    )
    return InvalidFile(problem, stamp, difference.row)


def key_of_file(file: ScannedFile) -> Key | None:
    """Return the key that a file's path says; None where only the object can tell.

    Raises ContentError where no object has the path.
    """
    component = file.name.removesuffix(SUFFIX)
    if is_cut(component):
        return None
    name = decode(component)
    if name is None:
        raise ContentError(0, "is not the file name of any object")
    return Key(file.directory.resource, file.directory.namespace, name)


# --- the files of managers ---


def managers_path(key: Key) -> str:
    """Return the path of an object's file of managers."""
    directory, _, name = path_of(key).rpartition("/")
    return f"{directory}/{MANAGED}/{name}"


def read_managers(folder: StateFolder, key: Key) -> object:
    """Return the managers in the file beside an object's file; None when it is not there or cannot
    be read."""
    path = managers_path(key)
    if not folder.is_directory(parent_of(path)):
        return None
    try:
        content = parse(folder.read(path)[0])
    except (FileNotFoundError, UnreadableError, ContentError):
        return None
    managers = content.object.get("managedFields")
    return managers if isinstance(managers, list) and all(map(_is_manager, managers)) else None


def _is_manager(entry: object) -> bool:
    """Return whether an entry has the types of a ManagedFieldsEntry, so that it can be decoded."""
    if not isinstance(entry, dict) or not isinstance(entry.get("fieldsV1", {}), dict):
        return False
    texts = [
        entry.get(field, "")
        for field in ("manager", "operation", "apiVersion", "fieldsType", "subresource")
    ]
    changed_at = entry.get("time") or "1970-01-01T00:00:00Z"
    if not all(isinstance(text, str) for text in (*texts, changed_at)) or not re.fullmatch(
        _TIME, changed_at
    ):
        return False

    from datetime import datetime

    try:
        datetime.fromisoformat(changed_at)
    except ValueError:  # a day that there is not
        return False

    return True
