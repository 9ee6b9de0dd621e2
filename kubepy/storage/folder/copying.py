"""``kubepy fork``: a new state folder with all that is in another store.

A state folder is copied file by file, byte for byte, while nobody writes to it; its index goes
along with the stamps of the copies, so that no command has to read the files again. What another
store holds is written as new files.

``kubepy.yaml`` comes last: without it nothing is a cluster, so whoever is killed leaves no half of
one. Until then a mark says so, and nobody makes another cluster of that half. Everything else that
fails removes what it has made. The index is on disk when the command ends, and has all objects, so
that a power cut loses none of them; the files follow when the system writes them.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from math import inf
from shutil import rmtree
from types import MappingProxyType
from typing import NamedTuple

from kubepy import system
from kubepy.quoting import printable
from kubepy.storage.errors import FolderError, LostStateError
from kubepy.storage.folder import index, settings, volumefiles
from kubepy.storage.folder import origin as origins
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.compare import digest_of, managers_path
from kubepy.storage.folder.database import WRITTEN, Database, Row, Stamp, is_damage
from kubepy.storage.folder.files import (
    MAX_SIZE,
    PRIVATE,
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    TICK_NS,
    StateFolder,
    is_racy,
    stamp_of,
)
from kubepy.storage.folder.manifest import managers_of, to_file
from kubepy.storage.folder.paths import SUFFIX, encode, folder_of, parent_of, path_of
from kubepy.storage.model import VOLUME_PREFIX, Object, to_json
from kubepy.storage.state import State

NOT_COPIED = frozenset(
    (index.OWN, ".git", settings.FILE)
)  # of the state folder itself; the last is copied at the end
AT_ONCE = 1 << 20  # bytes that are read at a time
NO_EXPIRIES: Mapping[str, float] = MappingProxyType({})
THREADS = 2  # more of them wait for each other: half of the time is the interpreter's
FILES_A_THREAD = 200  # fewer files do not get another thread
MAX_TRIES = 5  # to copy what others are changing


class CopiedFile(NamedTuple):
    """The stamps of a file and of its copy. They have the same modification time, size and
    content."""

    original: Stamp
    copy: Stamp


Copied = dict[str, CopiedFile]  # by path


# --- the new folder ---


@contextmanager
def new_folder(target: str, origin: str = "") -> Iterator[None]:
    """Make the folder of a new cluster for the length of a block; what fails in it leaves nothing
    behind.

    :param target: where nothing may be but an empty folder.
    :param origin: the state folder that is copied, if one is.

    Raises FolderError.
    """
    made = _make_folder(target, origin)
    mark = os.path.join(target, settings.UNFINISHED_FORK)
    try:
        with open(mark, "x"):
            pass
        yield
        os.unlink(mark)
    except BaseException as error:
        _empty(target)
        with suppress(OSError):
            for path in reversed(made):
                os.rmdir(path)
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            raise FolderError(printable(f"{target}: {error}")) from error
        if isinstance(error, OSError):
            raise FolderError(printable(f"{error.filename or target}: {error.strerror}")) from error
        raise


def _make_folder(target: str, origin: str) -> list[str]:
    """Make a folder and those above it; return the paths of those that were not there. Raises
    FolderError."""
    real = os.path.realpath(target)
    if origin and real.startswith(os.path.join(os.path.realpath(origin), "")):
        raise FolderError(printable(f"{target} is inside the state folder {origin}"))
    made: list[str] = []
    try:
        if os.path.lexists(target):
            if not os.path.isdir(target):
                raise FolderError(printable(f"{target} is there already, and is not a folder"))
            settings.check_finished(target)
            if names := os.listdir(target):
                what = "is a cluster already" if settings.FILE in names else "is not empty"
                raise FolderError(printable(f"{target} {what}"))
        missing = os.path.abspath(target)
        while not os.path.isdir(missing):
            made.insert(0, missing)
            missing = os.path.dirname(missing)
        for path in made:
            os.mkdir(path)
        if not origins.make(target, network=not origin or origins.may_use_network(origin)):
            raise FileExistsError(
                errno.EEXIST, os.strerror(errno.EEXIST)
            )  # another process makes a cluster there
    except OSError as error:
        for path in reversed(made):
            with suppress(OSError):  # it was not made, or somebody else has put something there
                os.rmdir(path)
        raise FolderError(printable(f"{target}: cannot be made: {error.strerror}")) from error

    return made


def _empty(folder: str) -> None:
    """Remove what is in a folder that this process has filled; as long as a part is there, it is no
    cluster."""
    ranks = {settings.FILE: 0, index.OWN: 2}
    names = sorted(os.listdir(folder), key=lambda name: ranks.get(name, 1))
    for path in [os.path.join(folder, name) for name in names]:
        if os.path.isdir(path) and not os.path.islink(path):
            rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


@contextmanager
def _new_index(target: str, origin: Database | None = None) -> Iterator[Database]:
    """Fill the index of a new folder in a block: a copy of another, or an empty one. It is durable
    after that."""
    own = os.path.join(target, index.OWN)
    path = os.path.join(own, index.INDEX)
    os.close(os.open(path, system.WRITE_NEW, 0o600))
    with closing(Database(path)) as database:
        if origin is not None:
            origin.connection.backup(database.connection)
        else:
            database.create()
        database.set_value("internal", origins.ORIGIN_VALUE, origins.index_codes(own, path) or None)
        database.connection.execute("PRAGMA journal_mode = MEMORY")
        database.connection.execute("PRAGMA synchronous = OFF")
        database.connection.execute("BEGIN")
        yield database
        database.connection.execute("COMMIT")
        database.connection.execute("PRAGMA journal_mode = WAL")

    system.sync_file(path)
    for folder in (own, target, os.path.dirname(os.path.abspath(target))):
        system.sync_folder(folder)


# --- copying a state folder ---


def copy_folder(access: Access, target: str, lock_timeout: float) -> None:
    """Copy a state folder and its index. Raises FolderError, LockTimeoutError."""
    origin = access.folder.root
    access.settings()  # there is a cluster
    if _is_writable(origin):
        with new_folder(target, origin), access.locked(lock_timeout):
            _copy_all(access, target)
        return

    for _ in range(
        MAX_TRIES
    ):  # nobody can be locked out, so what was copied counts if nobody has written meanwhile
        before = _version(access)
        with new_folder(target, origin):
            _copy_all(access, target)
        if _version(access) == before:
            return
        _empty(target)

    raise FolderError(
        printable(
            f"{origin} cannot be copied: others write to it all the time, and it cannot be locked"
        )
    )


def _is_writable(root: str) -> bool:
    own = os.path.join(root, index.OWN)
    return system.is_usable_folder(own if os.path.isdir(own) else root)


def _version(access: Access) -> object:
    """Return what differs after somebody has written: the stamps of the index, or where there is
    none to use (that of another user), the revision to which a look at all files leads."""
    access.try_catch_up()
    database = access.database()
    if database.in_memory:
        return database.counter("revision")
    return [access.folder.stamp(f"{index.OWN}/{index.INDEX}{suffix}") for suffix in ("", "-wal")]


def _copy_all(access: Access, target: str) -> None:
    """Copy files and index, as they are now."""
    database = access.database()
    copied = _copy_files(access.folder.root, target)
    rows = [row for row in database.row_summaries() if row.json is not None]
    updates = list(_new_stamps(access, target, rows, copied))
    with _new_index(target, database) as copy:
        copy.remove_tombstones()
        copy.restamp_all(updates)
        copy.forget_sums(copy.places())
        for path, (stamp, problem) in copy.problems().items():
            file = copied.get(path)
            if file is not None and file.original == stamp:
                copy.put_problem(problem, file.copy)
    _copy_settings(access, target)


def _copy_files(origin: str, target: str) -> Copied:
    """Copy the files of a state folder, in several threads: most of the time is the system's."""
    paths = list(_copy_folders(os.path.join(origin, ""), os.path.join(target, ""), ""))
    copied: Copied = {}
    errors: list[BaseException] = []

    def work(part: list[str]) -> None:
        try:
            for path in part:
                file = (
                    None
                    if errors
                    else copy_file(os.path.join(origin, path), os.path.join(target, path))
                )
                if file is not None:
                    copied[path] = file
        except BaseException as error:
            errors.append(error)

    count = min(THREADS, len(paths) // FILES_A_THREAD + 1)
    others = [
        threading.Thread(target=work, args=(paths[number::count],)) for number in range(1, count)
    ]
    try:
        for thread in others:
            thread.start()
        work(paths[::count])
    except BaseException as error:
        errors.append(error)

    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
    return copied


def _copy_folders(origin: str, target: str, path: str) -> Iterator[str]:
    """Copy the folders and symbolic links in a folder, and yield the paths of the files. ``path``:
    of the folder, "" or with a slash at its end."""
    with os.scandir(origin + path) as entries:
        for entry in entries:
            name = entry.name
            inner = path + name
            if not path and (
                name in NOT_COPIED or name.startswith(f"{index.OWN}.")
            ):  # .kubepy.untrusted
                continue
            if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX):
                continue
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(
                    target + inner,
                    stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode) | stat.S_IRWXU,
                )
                yield from _copy_folders(origin, target, f"{inner}/")
            elif entry.is_symlink():
                os.symlink(os.readlink(origin + inner), target + inner)
            elif entry.is_file(follow_symlinks=False):
                yield inner


def copy_file(origin: str, target: str) -> CopiedFile | None:
    """Copy a file with its modification time; return None if it was removed. One that is changed
    meanwhile is copied again."""
    for _ in range(MAX_TRIES):
        try:
            descriptor = os.open(origin, system.READ)
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(descriptor)
            copy = os.open(target, system.WRITE_NEW, stat.S_IMODE(status.st_mode))
            try:
                while data := os.read(descriptor, AT_ONCE):
                    while data:
                        data = data[os.write(copy, data) :]
                    if status.st_size < AT_ONCE:
                        break
                system.set_times(copy, target, (status.st_atime_ns, status.st_mtime_ns))
                file = CopiedFile(stamp_of(status), stamp_of(os.fstat(copy)))
            finally:
                os.close(copy)
            if (
                stamp_of(os.fstat(descriptor)) == file.original
                and file.copy.size == file.original.size
            ):
                return file
        finally:
            os.close(descriptor)
        os.unlink(target)

    raise FolderError(printable(f"{origin} is changed all the time"))


def _new_stamps(access: Access, target: str, rows: Iterable[Row], copied: Copied) -> Iterator[Row]:
    """Yield the rows with the stamps of the copies. One whose file was edited keeps its stamp, and
    so the edit counts in the copy as well."""
    folders: dict[tuple[str, str], str] = {}
    for row in rows:
        place = row[:2]
        folder = folders.get(place) or folders.setdefault(place, folder_of(*place))
        name = encode(row.name) + SUFFIX
        file = copied.get(f"{folder}/{name}")
        if file is None or row.expires is not None:
            continue
        if file.original != row.stamp or row.racy:
            file = _copied_when_finished(access, target, f"{folder}/{name}", row, file)
            if file is None:
                continue
        managers = copied.get(f"{folder}/.managed/{name}") if row.managers else None
        yield row._replace(
            **file.copy._asdict(),
            racy=int(is_racy(file.copy, time.time_ns())),
            state=WRITTEN,
            managers=str(managers.copy) if managers else "",
            replaces="",
        )


def _copied_when_finished(
    access: Access, target: str, path: str, row: Row, file: CopiedFile
) -> CopiedFile | None:
    """Return the copy of a file that was edited lately, if it has the content of its row after all.

    An edit may be under way, and the copy half of it, so the file is copied again when it is old
    enough.
    """
    copy = os.path.join(target, path)
    tries = 0
    while is_racy(file.original, time.time_ns()) and tries < MAX_TRIES:
        tries += 1
        time.sleep(TICK_NS / 1e9)
        os.unlink(copy)
        again = copy_file(access.folder.absolute(path), copy)
        if again is None:
            return None
        file = again
    with open(copy, "rb") as content:
        return file if digest_of(content.read()) == row.digest else None


def _copy_settings(access: Access, target: str) -> None:
    """Copy ``kubepy.yaml``, which makes the folder a cluster, and note its stamp in the index."""
    folder = StateFolder(target)
    temporary = f"{index.OWN}/{settings.FILE}.{os.getpid()}.tmp"
    file = copy_file(access.folder.absolute(settings.FILE), folder.absolute(temporary))
    if file is None:
        raise FolderError(printable(f"{access.folder.root} is not a cluster any more"))
    folder.rename_into_place(temporary, settings.FILE)
    values = access.settings_at(file.original)
    _remember_settings(
        folder, settings.read(folder)[2] if values is None else values
    )  # None: it has just been written
    folder.sync_directories([""])


def _remember_settings(folder: StateFolder, values: Object) -> None:
    """Note in the index what ``kubepy.yaml`` says."""
    text, stamp, _ = folder.read(settings.FILE)
    with closing(Database(folder.absolute(f"{index.OWN}/{index.INDEX}"))) as database:
        settings.remember(database, stamp, values, text, time.time_ns())


# --- writing what another store holds ---


def write_state(
    state: State,
    target: str,
    expiries: Mapping[str, float] = NO_EXPIRIES,
    shorten: Callable[[Object], Object] = lambda obj: obj,
) -> None:
    """Write all that a store holds as a new state folder, with its revisions and its change log.
    Raises FolderError.

    :param expiries: by resource, when objects are over of which the store does not say that: in
        etcd only their leases know.
    :param shorten: returns an object as a folder keeps it: etcd has it whole.
    """
    with new_folder(target):
        folder = StateFolder(target)
        with _new_index(target) as database:
            rows = list(_written_rows(state, folder, expiries, shorten))
            now_ns = time.time_ns()  # nobody edits the files before they are a cluster
            database.put(
                row._replace(racy=int(row.size > 0 and is_racy(row.stamp, now_ns))) for row in rows
            )
            compacted = state.compacted
            try:
                database.log(state.entries(compacted))
            except LostStateError:  # others have compacted it meanwhile: the objects are whole
                compacted = state.revision
            database.add_to_timeline(state.timeline_entries(), inf)
            database.set_counter("revision", state.revision)
            database.set_counter("compacted", compacted)
            for name, value in state.all_meta().items():
                if name.startswith(VOLUME_PREFIX):
                    volumefiles.write(folder, name, value)
                else:
                    database.set_value("meta", name, value)
            database.set_built()
            database.set_value("internal", "boot", index.boot_id() or "")
        settings.initialize(
            target,
            {name: value for name, value in state.settings.items() if name != "formatVersion"},
        )
        _remember_settings(folder, {"formatVersion": settings.FORMAT_VERSION, **state.settings})


def _written_rows(
    state: State,
    folder: StateFolder,
    expiries: Mapping[str, float],
    shorten: Callable[[Object], Object],
) -> Iterator[Row]:
    """Write the files of all objects, and yield their rows."""
    for resource in sorted(state.tables):
        for record in state.records(resource, None):
            key, text = record.key, record.json
            assert text is not None
            expires = expiries.get(resource) if record.expires is None else record.expires
            if expires is not None:
                yield Row(*key, record.revision, text, expires=expires)
                continue
            obj = shorten(json.loads(text))
            text = to_json(obj)
            path, data = path_of(key), to_file(obj)
            if len(data) > MAX_SIZE:
                raise FolderError(printable(f"{folder.absolute(path)}: would be larger than 3 MiB"))
            mode = 0o600 if resource in PRIVATE else 0o666
            stamp = _write_file(folder, path, data, mode)
            row = Row(
                *key, record.revision, text, *stamp, digest_of(data), state=WRITTEN, canonical=1
            )
            managers = managers_of(obj)
            if managers is not None:
                row = row._replace(
                    managers=str(_write_file(folder, managers_path(key), managers, 0o666))
                )
            yield row


def _write_file(folder: StateFolder, path: str, data: bytes, mode: int) -> Stamp:
    folder.make_directory(parent_of(path))
    return folder.write_temporary(path, data, mode)
