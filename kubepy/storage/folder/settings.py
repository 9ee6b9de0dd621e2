"""``kubepy.yaml``: the settings of a cluster. The index keeps them parsed, so that most commands load no YAML."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from typing import Any

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import FolderError, NoClusterError
from kubepy.storage.folder.database import Database, Stamp
from kubepy.storage.folder.files import StateFolder, UnreadableError, is_racy
from kubepy.storage.folder.index import OWN, make_own_folder
from kubepy.storage.folder.manifest import ContentError, parse
from kubepy.storage.model import Object

with lazy_imports():
    from kubepy.storage import yaml

FILE = "kubepy.yaml"
FORMAT_VERSION = 1
GITIGNORE = "/.kubepy/\n"


def initialize(root: str, settings: Mapping[str, Any]) -> None:
    """Make an empty cluster. Raises FolderError when there is one, or when the folder cannot be written."""
    text = yaml.dump({"formatVersion": FORMAT_VERSION, **settings})
    path = os.path.join(root, FILE)
    try:
        os.makedirs(root, exist_ok=True)
        make_own_folder(root)
        _write_new(root, ".gitignore", GITIGNORE)
        created = _write_new(root, FILE, text)
    except OSError as error:
        raise FolderError(f"{printable(root)}: cannot be made a cluster: {error.strerror}") from error
    if not created:
        raise FolderError(printable(f"{root} is a cluster already ({path} is there)"))


def _write_new(root: str, name: str, text: str) -> bool:
    """Write a file, whole or not at all, unless one is there; return whether it was written."""
    path = os.path.join(root, name)
    if os.path.lexists(path):
        return False
    temporary = os.path.join(root, OWN, f"{name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return True


def check_cluster(folder: StateFolder) -> Stamp:
    """Return the stamp of ``kubepy.yaml``. Raises NoClusterError."""
    stamp = folder.stamp(FILE)
    if stamp is not None:
        return stamp
    if not os.path.isdir(folder.root):
        raise NoClusterError(f"{printable(folder.root)} is not there")
    raise NoClusterError(f"{printable(folder.root)} is not a cluster: it has no {FILE}")


def read(folder: StateFolder) -> Object:
    """Read ``kubepy.yaml``. Raises NoClusterError, FolderError."""
    check_cluster(folder)
    path = folder.absolute(FILE)
    try:
        content = parse(folder.read(FILE)[0])
    except FileNotFoundError:
        raise NoClusterError(f"{printable(folder.root)} is not a cluster: it has no {FILE}") from None
    except UnreadableError as error:
        raise FolderError(printable(f"{path}: {error}")) from None
    except ContentError as error:
        place = f"{path}:{error.line}" if error.line else path
        raise FolderError(printable(f"{place}: {error.reason}")) from None
    version = content.object.get("formatVersion")
    if version is None:
        raise FolderError(f'{printable(path)}: formatVersion is missing: add "formatVersion: {FORMAT_VERSION}"')
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FolderError(f"{printable(path)}: formatVersion must be a positive number, not {version!r}")
    if version > FORMAT_VERSION:
        raise FolderError(
            f"{path}: the folder has format version {version}; this kubepy knows {FORMAT_VERSION}: install a newer one"
        )
    return content.object


def cached(database: Database, stamp: Stamp) -> Object | None:
    """Return the settings that the index remembers of a file with this stamp, None without. Raises DamagedError."""
    text = database.value("internal", "settings")
    if text is None:
        return None
    kept: Object = json.loads(text)
    settings: Object = kept["settings"]
    return settings if kept["stamp"] == str(stamp) else None


def remember(database: Database, stamp: Stamp, settings: Object, read_ns: int) -> None:
    """Keep settings that were read at ``read_ns`` in the index, unless an edit could leave the same stamp."""
    if is_racy(stamp, read_ns):
        return
    kept = json.dumps({"stamp": str(stamp), "settings": settings})
    try:
        with database.write(durable=False):
            database.set_value("internal", "settings", kept)
    except sqlite3.OperationalError:  # not ours to write, or busy: the file is read again next time
        return
