"""Where files and index differ, and what a file that differs turns out to be.

Comparing looks at stamps alone; only files that differ are read. Nothing here writes, so readers show what they find
here when the lock is taken, and the holder of the lock takes the same in for good.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kubepy.quoting import printable
from kubepy.storage.errors import EditError
from kubepy.storage.folder.database import PENDING, WRITTEN, KnownProblems, Row, Stamp
from kubepy.storage.folder.files import MANAGED, DeniedError, Folder, UnreadableError, parts_of, shown
from kubepy.storage.folder.manifest import ContentError, check_place, parse, to_json
from kubepy.storage.folder.paths import SUFFIX, decode, encode, is_cut, path_of
from kubepy.storage.folder.scan import Found, Obstacles, Survey, obstacle_before, survey, survey_of
from kubepy.storage.model import Admit, Key, Object, Problem

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch
# What code about an object raises when the object is of a shape or size that the code does not expect.
UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError)
UNKNOWN = Stamp(0, 0, 0, 0)  # of a problem file that is to be read again
NO_PROBLEM = Problem("", 0, "")
EDIT_NS = 20_000_000
REMOVAL_NS = 100_000_000
MAX_LOOKS = 5


class Difference(NamedTuple):
    """A file that is not as its row says. ``found`` None: no file; ``row`` None: no (live) row."""

    path: str
    found: Found | None
    row: Row | None


class Same(NamedTuple):
    """The object is the one of the row; only the stamp of its file is another."""

    row: Row
    stamp: Stamp
    digest: bytes
    racy: bool
    managers: str


class Gone(NamedTuple):
    """The file of the row was removed."""

    row: Row


class Retained(NamedTuple):
    """The file of the row was removed, but the object is not gone yet: it is written again as ``json``."""

    row: Row
    json: str


class Edited(NamedTuple):
    """A file holds another object than the row, or one that has none."""

    key: Key
    row: Row | None
    json: str
    stamp: Stamp
    digest: bytes
    racy: bool
    managers: str


class Refused(NamedTuple):
    """A file that cannot be an object, or an obstacle before a folder of them."""

    problem: Problem
    stamp: Stamp
    row: Row | None


Outcome = Same | Gone | Retained | Edited | Refused
Retain = Callable[[Key, Object], Object | None]  # a Removal at the present time


class Known(NamedTuple):
    """What a comparison knows beforehand: problem files with their stamps, and whether WRITTEN rows can be trusted
    to have their file (not when the machine was started anew since). ``refresh``: racy stamps that no longer are
    racy count as differences too, so that they are taken anew."""

    problems: KnownProblems
    same_boot: bool
    refresh: bool = False


def is_settled(row: Row, known: Known) -> bool:
    """Whether the file of a row can be compared with it; otherwise the row is the truth."""
    return row.state < WRITTEN or (row.state == WRITTEN and known.same_boot)


def compare(rows: Iterable[Row], survey: Survey, folder: Folder, known: Known) -> Iterator[Difference]:
    """The differences between rows and the files at their places, in no order. What is behind an obstacle has none."""
    by_place = {(listing.directory.resource, listing.directory.namespace): listing for listing in survey.listings}
    obstacles = survey.obstacles if survey.obstacles else None  # asked for once a row
    for row in rows:
        listing = by_place.get(row[:2])
        file = encode(row.name) + SUFFIX
        stat = listing.files.pop(file, None) if listing else None
        if (stat and listing and not known.problems and not row.racy and row.json is not None
                and _has_stamp(row, stat) and not row.managers and not listing.managers):
            continue  # as almost all files are, so this comes first
        if row.expires is not None or (not is_settled(row, known) and not (stat and _is_edit_of_unsettled(row, stat))):
            continue
        if obstacles and obstacles.before(row.resource, row.namespace):
            continue
        found = listing.found(file, stat) if listing and stat else None
        if difference := _difference(row, found, folder, known):
            yield difference
    for listing in by_place.values():
        for file, stat in listing.files.items():
            found = listing.found(file, stat)
            yield Difference(found.path, found, None)


def refusals(obstacles: Obstacles, rows: Iterable[Row]) -> list[Refused]:
    """The obstacles that are to be told."""
    found = (Problem(shown(one.path), 0, one.why) for one in obstacles.that_matter(rows))
    return [Refused(problem, UNKNOWN, None) for problem in found]


def _difference(row: Row, found: Found | None, folder: Folder, known: Known) -> Difference | None:
    if found and not known.same_boot and _is_of_lost_power(row, found):
        return None
    if row.json is None:  # a tombstone: any file there is new
        return Difference(found.path, found, None) if found else None
    if found is None:
        return Difference(path_of(row.key), None, row)
    if not _has_stamp(row, found.stat) or row.managers != found.managers:
        return Difference(found.path, found, row)
    if known.problems and found.path in known.problems:
        return Difference(found.path, found, row)
    return Difference(found.path, found, row) if row.racy and _is_edited(row, found, folder, known) else None


def _has_stamp(row: Row, stat: os.stat_result) -> bool:
    return row.ctime_ns == stat.st_ctime_ns and row.mtime_ns == stat.st_mtime_ns and row.size == stat.st_size \
        and row.inode == stat.st_ino


def _is_edit_of_unsettled(row: Row, stat: os.stat_result) -> bool:
    """Tell an edit from the file that a commit is about to replace or has just made, by whoever cannot wait for it."""
    if not stat.st_size:
        return False
    version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return all(version != known[:3] for known in (row.version, *row.replaced()))


def _is_of_lost_power(row: Row, found: Found) -> bool:
    """Tell a file that a power cut left, which the recovery restores or removes, from an edit: an empty one, and the
    file of a deleted object that is back."""
    stat = found.stat
    if not stat.st_size:
        return True
    return row.json is None and (row.mtime_ns, row.size, row.inode) == (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _is_edited(row: Row, file: Found, folder: Folder, known: Known) -> bool:
    try:
        data, _, racy = folder.read(file.path)
    except (FileNotFoundError, UnreadableError):
        return True
    return (known.refresh and not racy) or digest_of(data) != row.digest


def digest_of(data: bytes) -> bytes:
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


def known_problem(difference: Difference, known: Known) -> Refused | None:
    """The problem of a file that is known and unchanged."""
    if difference.found is None or not known.problems:
        return None
    stamp, problem = known.problems.get(shown(difference.path), (UNKNOWN, NO_PROBLEM))
    return Refused(problem, stamp, difference.row) if stamp == difference.found.stamp else None


def examine(
    difference: Difference, folder: Folder, admit: Admit | None, retain: Retain | None = None
) -> Outcome | None:
    """Read a file that differs, once whoever edits it has had the time to finish: git removes a file before it makes it
    anew, an editor may empty it before it writes. None: there is neither file nor row (any more), or something is in
    the way now."""
    outcome = _examine(difference, folder, admit, retain)
    for _ in range(MAX_LOOKS):
        pause = _seconds_until_believed(outcome, folder)
        if pause <= 0:
            break
        time.sleep(pause)
        if isinstance(outcome, Edited) and folder.stamp(difference.path) == outcome.stamp:
            break
        outcome = _examine(difference, folder, admit, retain)
    return outcome


def _seconds_until_believed(outcome: Outcome | None, folder: Folder) -> float:
    """The seconds until a removal, a file that cannot be read or an edit is believed."""
    if isinstance(outcome, Edited):
        return _seconds_left(outcome.stamp.ctime_ns, EDIT_NS)
    if isinstance(outcome, Refused):
        stamp = folder.stamp(outcome.problem.path)
        return _seconds_left(stamp.ctime_ns, REMOVAL_NS) if stamp else 0.0
    if isinstance(outcome, Gone | Retained):
        parents = reversed(parts_of(path_of(outcome.row.key))[:-1])
        stamp = next((stamp for path in parents if (stamp := folder.stamp(path))), folder.stamp(""))
        return _seconds_left(stamp.ctime_ns, REMOVAL_NS) if stamp else 0.0
    return 0.0


def _seconds_left(since_ns: int, patience_ns: int) -> float:
    age_ns = time.time_ns() - since_ns
    return (patience_ns - age_ns) / 1e9 if 0 <= age_ns < patience_ns else 0.0


def _examine(
    difference: Difference, folder: Folder, admit: Admit | None, retain: Retain | None
) -> Outcome | None:
    if difference.found is None:
        looked = _look_again(difference, folder)
        if looked is None:
            return None
        difference = looked
    if difference.found is None:
        return _removed(difference.row, folder, retain) if difference.row else None
    try:
        data, stamp, racy = folder.read(difference.path)
    except FileNotFoundError:
        return _gone(difference, folder, retain)
    except UnreadableError as error:
        stamp = UNKNOWN if isinstance(error, DeniedError) else difference.found.stamp
        return _refused(difference, stamp, ContentError(0, str(error)))
    digest, managers = digest_of(data), difference.found.managers
    row = difference.row
    if row and digest == row.digest and (managers == row.managers or row.state == PENDING):
        return Same(row, stamp, digest, racy, managers)  # of a commit under way the managers follow
    try:
        key, text = _load(data, difference, difference.found, folder, stamp, admit)
    except ContentError as error:
        return _refused(difference, UNKNOWN if racy else stamp, error)
    if difference.row and text == difference.row.json:
        return Same(difference.row, stamp, digest, racy, managers)
    return Edited(key, difference.row, text, stamp, digest, racy, managers)


def _gone(difference: Difference, folder: Folder, retain: Retain | None) -> Outcome | None:
    """What was there a moment ago is not; unless a link took the place of its folder, it was removed."""
    is_hidden = obstacle_before(folder, difference.path) is not None
    return _removed(difference.row, folder, retain) if difference.row and not is_hidden else None


def _removed(row: Row, folder: Folder, retain: Retain | None) -> Outcome:
    """Ask whether the object is gone with its file where there are files in the namespace of its name."""
    if retain is None or row.namespace or not row.json or not has_files(folder, row.name):
        return Gone(row)
    from json import loads

    kept = retain(row.key, loads(row.json))
    return Gone(row) if kept is None else Retained(row, to_json(kept))


def has_files(folder: Folder, namespace: str) -> bool:
    """Tell whether there are files of objects in a namespace."""
    return any(listing.files for listing in survey(folder, namespace=namespace).listings)


def _look_again(difference: Difference, folder: Folder) -> Difference | None:
    """A folder that is read while files in it are renamed may seem to lack one; None: it is behind an obstacle now."""
    if difference.row is None:
        return difference
    survey = survey_of(folder, difference.row.key)
    if survey.obstacles:
        return None
    (listing,) = survey.listings
    found = [listing.found(file, stat) for file, stat in listing.files.items()]
    return difference._replace(found=found[0] if found else None)


def _refused(difference: Difference, stamp: Stamp, error: ContentError) -> Refused:
    problem = Problem(shown(difference.path), error.line, printable(error.why), error.keeps_object)
    return Refused(problem, stamp, difference.row)


def _load(
    data: bytes, difference: Difference, found: Found, folder: Folder, stamp: Stamp, admit: Admit | None
) -> tuple[Key, str]:
    """The object of a file, complete, as its row will hold it. Raises ContentError."""
    expected = key_of_path(found)
    content = parse(data)
    place = Key(found.directory.resource, found.directory.namespace, "")
    key = check_place(content.object, expected, place, found.path, content.line)
    try:
        return key, to_json(complete(key, content.object, difference.row, folder, stamp, admit))
    except EditError as error:
        from kubepy.storage.yaml.lines import line_of

        line = line_of(data.decode(), error.field) or content.line
        raise ContentError(line, str(error), keeps_object=difference.row is not None) from None
    except ValueError as error:
        raise ContentError(content.line, str(error)) from None
    except RecursionError:
        raise ContentError(content.line, "is nested too deeply") from None
    except UNFORESEEN as error:  # one file with values that nobody thought of must not stop every command
        raise ContentError(content.line, f"cannot be taken in: {type(error).__name__}: {error}") from None


def key_of_path(found: Found) -> Key | None:
    """The key that a path says. None: only the object can tell. Raises ContentError when no object has the path."""
    component = found.file.removesuffix(SUFFIX)
    if is_cut(component):
        return None
    name = decode(component)
    if name is None:
        raise ContentError(0, "is not the file name of any object")
    return Key(found.directory.resource, found.directory.namespace, name)


def complete(
    key: Key, obj: Object, row: Row | None, folder: Folder, stamp: Stamp, admit: Admit | None
) -> Object:
    """Give an object from a file what the file does not hold. Raises ValueError."""
    metadata = obj["metadata"]
    metadata.pop("resourceVersion", None)
    if key.namespace:
        metadata["namespace"] = key.namespace
    known = _known_object(row)
    old = known if known and metadata.get("uid") in (None, "", known["metadata"].get("uid")) else None
    for field in ("uid", "creationTimestamp"):  # a manifest written by hand, edited again
        if old and field in old["metadata"] and not metadata.get(field):
            metadata[field] = old["metadata"][field]
    if managers := _managers(key, metadata, old["metadata"] if old else {}, folder):
        metadata["managedFields"] = managers
    return admit(key, obj, stamp.mtime_ns / 1e9, known) if admit else obj


def _known_object(row: Row | None) -> Object | None:
    if row is None or not row.json:
        return None
    from json import loads

    known: Object = loads(row.json)
    return known


def _managers(key: Key, metadata: Object, old: Object, folder: Folder) -> object:
    """The managers of a file's object: its own, those of the file beside it, or the row's for the same object."""
    if "managedFields" in metadata:
        return metadata["managedFields"]
    if kept := read_managers(folder, key):
        return kept
    return old.get("managedFields") if metadata.get("uid") == old.get("uid") else None


def managers_path(key: Key) -> str:
    directory, _, file = path_of(key).rpartition("/")
    return f"{directory}/{MANAGED}/{file}"


def read_managers(folder: Folder, key: Key) -> object:
    """What the file of managers beside an object's file holds; None when it is not there or cannot be read."""
    path = managers_path(key)
    if not folder.is_directory(path.rpartition("/")[0]):
        return None
    try:
        content = parse(folder.read(path)[0])
    except (FileNotFoundError, UnreadableError, ContentError):
        return None
    managers = content.object.get("managedFields")
    return managers if isinstance(managers, list) and all(map(_is_manager, managers)) else None


def _is_manager(entry: object) -> bool:
    """Tell whether an entry has the types of a ManagedFieldsEntry, so that it can be decoded."""
    if not isinstance(entry, dict):
        return False
    texts = [entry.get(field, "") for field in ("manager", "operation", "apiVersion", "fieldsType", "subresource")]
    return all(isinstance(text, str) for text in texts) and isinstance(entry.get("fieldsV1", {}), dict) \
        and _is_time(entry.get("time") or "1970-01-01T00:00:00Z")


def _is_time(value: object) -> bool:
    """Tell whether a value is a time as managers have it, of a day that there is."""
    from datetime import datetime

    if not isinstance(value, str) or not _TIME(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
