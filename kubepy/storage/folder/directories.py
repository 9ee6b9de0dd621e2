"""The folders of objects as they were when they were last looked through: git's "untracked cache".

A file that is added, removed, renamed or replaced changes the time of its folder. As long as a
folder has the times at which its entries were compared with the rows, nothing of that kind has
happened in it. The change time is among them, which nobody can set; and times so new that another
change could leave the same are not kept. A file that is edited in place changes no time of its
folder.

What is kept is a value of the index, with a checksum, so that a folder that is missing in it is
never one forgotten.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable

from kubepy.storage.folder.compare import has_hidden_folder
from kubepy.storage.folder.database import Database
from kubepy.storage.folder.files import MANAGED, StateFolder, is_racy, stamp_of
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES
from kubepy.storage.folder.scan import EVERYTHING, Extents, extent_of

FOLDERS = "folders"  # the name of the value
NOTHING = "-"  # the times of a folder that there is not
UNKNOWN = ""

Times = dict[str, str]  # by path


def find_changed(database: Database, folder: StateFolder) -> Extents:
    """Return the extents in which files may have been added, removed or replaced since they were
    looked through."""
    text = database.value("internal", FOLDERS)
    if text is None or has_hidden_folder(database.problems()):
        return EVERYTHING
    known: Times = json.loads(text)
    changed = [
        path for path, times in known.items() if times == UNKNOWN or times != times_of(folder, path)
    ]
    extents = [extent for path in changed if (extent := extent_of(path))]
    return extents if len(extents) == len(changed) else EVERYTHING


def times_now(folder: StateFolder, extents: Extents) -> Times:
    """Return the times of the folders of some extents, UNKNOWN where they are too new. Take them
    before the folders are listed."""
    if extents == EVERYTHING:
        return dict(_all_times(folder))
    return {path: times_of(folder, path) for extent in extents if (path := extent.directory)}


def remember(database: Database, times: Times, extents: Extents) -> None:
    """Keep the times of the folders of some extents, which were looked through: all that is in them
    is recorded."""
    text = None if extents == EVERYTHING else database.value("internal", FOLDERS)
    if text is None and extents != EVERYTHING:
        return  # the folders above them are not known
    known = json.loads(text) if text else {}
    if known != (new := {**known, **times}):
        database.try_to_write(
            lambda: database.set_value("internal", FOLDERS, json.dumps(new, sort_keys=True))
        )


def times_of(folder: StateFolder, path: str) -> str:
    """Return the times of a folder and of the folder of managers in it; UNKNOWN where they are too
    new to tell."""
    texts = []
    for directory in (path, f"{path}/{MANAGED}") if extent_of(path) else (path,):
        now_ns = time.time_ns()
        try:
            status = os.lstat(folder.absolute(directory))
        except OSError:  # it may be there and out of reach: a look through it tells
            texts.append(NOTHING)
            continue
        if is_racy(stamp_of(status), now_ns):
            return UNKNOWN
        texts.append(f"{status.st_dev}:{status.st_ino}:{status.st_mtime_ns}:{status.st_ctime_ns}")
    return " ".join(texts)


def _all_times(folder: StateFolder) -> Iterable[tuple[str, str]]:
    """Yield all folders that may hold objects and those above them, with their times. A folder's
    times are taken before it is listed."""
    for parent in (CLUSTER, NAMESPACES):
        yield parent, times_of(folder, parent)
        for path in folder.subfolders(parent):
            yield path, times_of(folder, path)
            if parent == NAMESPACES:
                yield from ((inner, times_of(folder, inner)) for inner in folder.subfolders(path))
