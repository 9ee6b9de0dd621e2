"""``kubepy.yaml``: the settings of a cluster. The index keeps them parsed, so that most commands
load no YAML.

A change of settings is part of a commit (``commit_files``): the new text is staged beside the file,
the index records which values change, and the file is replaced after that. Where a process dies in
between, whoever holds the lock next makes the recorded changes in the file that is there then, so
that an edit of other lines is not lost.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from kubepy import system
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import FolderError, NoClusterError
from kubepy.storage.folder import origin
from kubepy.storage.folder.compare import digest_of
from kubepy.storage.folder.database import Database, Stamp
from kubepy.storage.folder.files import TICK_NS, StateFolder, UnreadableError, is_racy
from kubepy.storage.folder.index import OWN, make_own_folder
from kubepy.storage.folder.manifest import ContentError, parse
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES
from kubepy.storage.model import Object

with lazy_imports():
    from kubepy.storage import yaml
    from kubepy.storage.folder import replacing
    from kubepy.storage.yaml import roundtrip

FILE = "kubepy.yaml"
UNFINISHED_FORK = os.path.join(
    OWN, "unfinished-fork"
)  # there as long as a folder is being copied to
FORMAT_VERSION = 1
GITIGNORE = "/.kubepy/\n"
# In the index: changes that are committed, and may not have reached the file; the exchange of files
# by which they do.
CHANGES, EXCHANGE = "settings.changes", "settings.exchange"

Settings = dict[str, Any]
ValueChanges = dict[str, tuple[Any, Any]]  # the values before and after, None where there is none


def initialize(root: str, settings: Mapping[str, Any]) -> None:
    """Make an empty cluster. Raises FolderError when there is one, or when the folder cannot be
    written."""
    text = yaml.dump({"formatVersion": FORMAT_VERSION, **settings})
    path = os.path.join(root, FILE)
    try:
        os.makedirs(root, exist_ok=True)
        origin.examine(root)
        has_objects = any(
            os.path.lexists(os.path.join(root, name)) for name in (CLUSTER, NAMESPACES)
        )
        make_own_folder(root, network=not has_objects)
        _write_new(root, ".gitignore", GITIGNORE)
        created = _write_new(root, FILE, text)
    except OSError as error:
        raise FolderError(
            f"{printable(root)}: cannot be made a cluster: {error.strerror}"
        ) from error

    if not created:
        raise FolderError(printable(f"{root} is a cluster already ({path} is there)"))


def _write_new(root: str, name: str, text: str) -> bool:
    """Write a file, whole or not at all, unless one is there; return whether it was written."""
    path = os.path.join(root, name)
    if os.path.lexists(path):
        return False
    temporary = os.path.join(root, _temporary_path(name))
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            now = time.time_ns()
            # no later edit can have this stamp
            system.set_times(file.fileno(), temporary, (now, now - 2 * TICK_NS))
            os.fsync(file.fileno())
        system.name_new(temporary, path)
    except FileExistsError:
        return False
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)

    return True


def _temporary_path(name: str) -> str:
    return f"{OWN}/{name}.{os.getpid()}.tmp"


def named_files(settings: Object) -> frozenset[str]:
    """Return the files of the state folder that the settings name, by their paths in it."""
    kubelet = settings.get("kubelet")
    rules = kubelet.get("rules") if isinstance(kubelet, dict) else None
    if not isinstance(rules, str):
        return frozenset()
    return frozenset((os.path.normpath(rules),))


# --- reading ---


def check_finished(root: str) -> None:
    """Raise FolderError for the part of a cluster that a killed ``kubepy fork`` has left."""
    if os.path.lexists(os.path.join(root, UNFINISHED_FORK)) and not os.path.lexists(
        os.path.join(root, FILE)
    ):
        raise FolderError(
            printable(
                f"{root} is an unfinished copy of a cluster, which a 'kubepy fork' that was killed "
                "has left: remove that folder, and fork again"
            )
        )


def check_cluster(folder: StateFolder) -> Stamp:
    """Return the stamp of ``kubepy.yaml``. Raises NoClusterError."""
    stamp = folder.stamp(FILE)
    if stamp is not None:
        return stamp
    if not os.path.isdir(folder.root):
        raise NoClusterError(f"{printable(folder.root)} is not there")
    raise NoClusterError(f"{printable(folder.root)} is not a cluster: it has no {FILE}")


def read(folder: StateFolder) -> tuple[bytes, Stamp, Object]:
    """Read ``kubepy.yaml``: its text, its stamp, what it says. Raises NoClusterError,
    FolderError."""
    check_cluster(folder)
    path = folder.absolute(FILE)
    try:
        text, stamp, _ = folder.read(FILE)
        content = parse(text)
    except FileNotFoundError:
        raise NoClusterError(
            f"{printable(folder.root)} is not a cluster: it has no {FILE}"
        ) from None
    except UnreadableError as error:
        raise FolderError(printable(f"{path}: {error}")) from None
    except ContentError as error:
        place = f"{path}:{error.line}" if error.line else path
        raise FolderError(printable(f"{place}: {error.reason}")) from None

    version = content.object.get("formatVersion")
    if version is None:
        raise FolderError(
            f'{printable(path)}: formatVersion is missing: add "formatVersion: {FORMAT_VERSION}"'
        )

    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FolderError(
            f"{printable(path)}: formatVersion must be a positive number, not {version!r}"
        )

    if version > FORMAT_VERSION:
        raise FolderError(
            f"{path}: the folder has format version {version}; this kubepy knows "
            f"{FORMAT_VERSION}: install a newer one"
        )

    return text, stamp, content.object


def cached(database: Database, folder: StateFolder, stamp: Stamp) -> Object | None:
    """Return the settings that the index remembers of the file with this stamp, None without.
    Raises DamagedError."""
    text = database.value("internal", "settings")
    if text is None:
        return None
    kept: Object = json.loads(text)
    settings: Object = kept["settings"]
    if kept["stamp"] != str(stamp):
        return None
    try:  # an edit may hide behind the same stamp
        return (
            settings
            if "text" not in kept or folder.read(FILE)[0].decode() == kept["text"]
            else None
        )
    except (FileNotFoundError, UnreadableError, UnicodeDecodeError):
        return None


def remember(database: Database, stamp: Stamp, settings: Object, text: bytes, read_ns: int) -> None:
    """Keep settings in the index whose text was read at ``read_ns``."""
    try:
        with database.write(durable=False):
            _keep(database, stamp, settings, text, read_ns)
    except sqlite3.OperationalError:  # not ours to write, or busy: the file is read again next time
        return


def _keep(database: Database, stamp: Stamp, settings: Object, text: bytes, read_ns: int) -> None:
    """Keep settings, and their text where an edit could leave the same stamp."""
    kept = {
        "stamp": str(stamp),
        "settings": settings,
        **({"text": text.decode()} if is_racy(stamp, read_ns) else {}),
    }
    database.set_value("internal", "settings", json.dumps(kept))


# --- changing ---


def with_recorded_changes(database: Database, settings: Object) -> Object:
    """Return settings of the file with the changes that are committed and have not reached it.
    Raises DamagedError."""
    changes = _recorded_changes(database)
    return _with_changes(settings, _outstanding(settings, changes)) if changes else settings


def _recorded_changes(database: Database) -> ValueChanges:
    text = database.value("internal", CHANGES)
    return (
        {name: (before, after) for name, (before, after) in json.loads(text).items()}
        if text
        else {}
    )


def _outstanding(settings: Object, changes: ValueChanges) -> Settings:
    """Return the values of changes for the settings that are as they were before; others were
    edited since."""
    return {
        name: after for name, (before, after) in changes.items() if settings.get(name) == before
    }


def _with_changes(settings: Object, changes: Mapping[str, Any]) -> Object:
    return {name: value for name, value in {**settings, **changes}.items() if value is not None}


def edited(text: bytes, settings: Object, changes: Mapping[str, Any]) -> bytes:
    """Return the text of a file with some settings changed; the rest of it stays as it is.

    :param settings: what the text says.
    """
    for name, value in changes.items():
        after = _with_changes(settings, {name: value})
        attempt = text
        if name not in settings:
            line_end = b"\r\n" if b"\r\n" in text else b"\n"
            lines = yaml.dump({name: value}).encode().replace(b"\n", line_end)
            attempt = text + (b"" if text.endswith(b"\n") else line_end) + lines
        elif isinstance(value, str | int | float):
            old, new = (
                yaml.dump({name: scalar}).partition(":")[2].strip().encode()
                for scalar in (settings[name], value)
            )
            attempt = text.replace(old, new) if text.count(old) == 1 else text
        text = attempt if _means(attempt, after) else roundtrip.merge(text, after)
        settings = after

    return text


def _means(text: bytes, settings: Object) -> bool:
    try:
        return parse(text).object == settings
    except ContentError:
        return False


class Exchange(NamedTuple):
    """A replacement of the file that is under way.

    :ivar temporary: where the new file is, and then the one that it replaces.
    :ivar new: the digest of the new text; ``old``: that of the other.
    """

    temporary: str
    new: bytes
    old: bytes

    def record(self, database: Database) -> None:
        """Note it for whoever comes after this process, should it die."""
        database.set_value(
            "internal", EXCHANGE, json.dumps([self.temporary, self.new.hex(), self.old.hex()])
        )

    def rescue(self, folder: StateFolder) -> None:
        """Remove what it has left; an edit that came out of its place gets its name back. Raises
        OSError."""
        replacing.rescue(folder, self.temporary, FILE, self.new, frozenset((self.old,)))


def _recorded_exchange(database: Database) -> Exchange | None:
    text = database.value("internal", EXCHANGE)
    if text is None:
        return None
    temporary, new, old = json.loads(text)
    return Exchange(temporary, bytes.fromhex(new), bytes.fromhex(old))


class SettingsEdit(NamedTuple):
    """A change of ``kubepy.yaml`` that is staged: its text is on disk under a temporary name.

    :ivar changes: the values before and after.
    :ivar settings: all values after.
    :ivar present: the stamp of the file that is to be replaced.
    :ivar text: the new one; ``old_text``: that of the present file.
    """

    changes: ValueChanges
    settings: Object
    present: Stamp
    text: bytes
    old_text: bytes

    @property
    def exchange(self) -> Exchange:
        """The two versions of the file that change places."""
        return Exchange(_temporary_path(FILE), digest_of(self.text), digest_of(self.old_text))

    def record(self, database: Database) -> None:
        """Make the change part of the commit that is being recorded."""
        database.set_value("internal", CHANGES, json.dumps(self.changes))
        self.exchange.record(database)

    def replace_file(self, folder: StateFolder) -> bool:
        """Put the new file in its place; return False where somebody has edited the file since it
        was staged."""
        exchange = self.exchange
        if folder.stamp(FILE) != self.present:
            folder.remove(exchange.temporary)
            return False
        if not replacing.replace(folder, exchange.temporary, FILE, exchange.old, exchange.new):
            return False
        folder.sync_directories([""])
        return True

    def mark_written(self, database: Database, folder: StateFolder) -> None:
        """Note that the file says what was recorded, and what its stamp is."""
        database.set_value("internal", CHANGES, None)
        database.set_value("internal", EXCHANGE, None)
        if stamp := folder.stamp(FILE):
            _keep(database, stamp, self.settings, self.text, time.time_ns())


def stage(folder: StateFolder, values: Mapping[str, Any]) -> SettingsEdit | None:
    """Write ``kubepy.yaml`` with some values changed (None removes one) beside it; return None if
    none changes.

    Raises FolderError, OSError.
    """
    text, present, settings = read(folder)
    changes = {
        name: (settings.get(name), value)
        for name, value in values.items()
        if settings.get(name) != value
    }
    if not changes:
        return None
    new_values = {name: after for name, (_, after) in changes.items()}
    mode = stat.S_IMODE(os.lstat(folder.absolute(FILE)).st_mode)
    temporary = _temporary_path(FILE)
    new_text = edited(text, settings, new_values)
    folder.write_temporary(temporary, new_text, mode, sync=True)
    os.chmod(folder.absolute(temporary), mode)  # whatever the umask is
    return SettingsEdit(changes, _with_changes(settings, new_values), present, new_text, text)


def discard_staged(folder: StateFolder) -> None:
    """Remove what was staged, if it is there still."""
    folder.remove(_temporary_path(FILE))


def finish(database: Database, folder: StateFolder) -> None:
    """Bring the file to what is recorded: the process that changed it died, or the file was edited
    meanwhile. For the holder of the lock. Raises FolderError, OSError, DamagedError."""
    if _recorded_changes(database) and (exchange := _recorded_exchange(database)):
        exchange.rescue(folder)
    while changes := _recorded_changes(database):
        edit = stage(folder, _outstanding(read(folder)[2], changes))
        with database.write(durable=False):
            if edit is None:
                database.set_value("internal", CHANGES, None)
                database.set_value("internal", EXCHANGE, None)
            else:
                edit.exchange.record(database)
        if edit is not None and edit.replace_file(folder):
            with database.write(durable=False):
                edit.mark_written(database, folder)
