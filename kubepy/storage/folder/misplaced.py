"""Find the files that are read by nobody: YAML where no object is looked for, and what stands where a folder should be.

A command that lists or controls everything warns of them; this looks at names and at folders, never into a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from kubepy.quoting import printable
from kubepy.storage.folder import settings
from kubepy.storage.folder.files import MANAGED, StateFolder
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, SUFFIX, decode
from kubepy.storage.model import Problem

_ENDINGS = (".yaml", ".yml")
_DEPTHS = {CLUSTER: 1, NAMESPACES: 2}  # of folders below it that hold object files


def find_misplaced(folder: StateFolder) -> Iterator[Problem]:
    """Yield YAML files where no object is looked for, and links and files where a folder should be."""
    for name in _names(folder, ""):
        if name in _DEPTHS and not os.path.isdir(folder.absolute(name)):
            yield Problem(printable(name), 0, "is not a folder")
        elif name in _DEPTHS:
            yield from _walk(folder, name, _DEPTHS[name])
        elif name.endswith(_ENDINGS) and name != settings.FILE and stat.S_ISREG(_mode(folder, name)):
            yield Problem(printable(name), 0, "is not where an object's file can be")


def _names(folder: StateFolder, path: str, without: tuple[str, ...] = ()) -> list[str]:
    """Return the names in a folder that are not hidden, in order, without those with an ending; none of a folder that
    cannot be read: that is a problem itself."""
    try:
        names = os.listdir(folder.absolute(path))
    except OSError:
        return []
    return sorted([name for name in names if name[0] != "." and not name.endswith(without)])


def _mode(folder: StateFolder, path: str) -> int:
    """Return the type of what is at a path, as ``st_mode`` has it; 0 where it cannot be looked at."""
    try:
        return os.lstat(folder.absolute(path)).st_mode
    except OSError:
        return 0


def _walk(folder: StateFolder, path: str, depth: int) -> Iterator[Problem]:
    """Yield what is wrong at a path and below. ``depth``: how many folders further down the object files are; -1 for an
    object file itself, and below that there should be none."""
    name, mode, is_yaml = path.rpartition("/")[2], _mode(folder, path), path.endswith(_ENDINGS)
    if stat.S_ISLNK(mode) and not is_yaml:
        yield Problem(printable(path), 0, "is a symbolic link")
    elif not stat.S_ISDIR(mode):
        if is_yaml and depth != -1:
            yield Problem(printable(path), 0, "is not where an object's file can be "
                                              f"({CLUSTER}/RESOURCE/ or {NAMESPACES}/NAMESPACE/RESOURCE/)")
        elif path.endswith(".yml"):
            yield Problem(printable(path), 0, "is not read: the name of an object's file ends in .yaml")
    elif depth >= 0 and decode(name) is None:
        yield Problem(printable(path), 0, "is not the folder name of any namespace or resource")
    elif depth == 0 and name in folder.volatile:
        yield Problem(printable(path), 0, f"is not read: {name} are not kept in files")
    elif depth != -1 or not is_yaml:  # a folder in the place of an object file is a problem of that file
        managed = f"{path}/{MANAGED}"
        if depth == 0 and os.path.lexists(folder.absolute(managed)) and not folder.is_directory(managed):
            yield Problem(printable(managed), 0, "is not a folder")
        # A file of a folder of objects, or what is there instead, is read as an object
        for child in _names(folder, path, without=(SUFFIX,) if depth == 0 else ()):
            yield from _walk(folder, f"{path}/{child}", depth - 1)
