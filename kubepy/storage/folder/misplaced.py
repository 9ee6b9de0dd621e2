"""Find files that are read by nobody, beside the folders of objects and in them.

What lies in the way of a scan is found by it (``scan.Stray``); this is what nothing scans.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator

from kubepy.quoting import printable
from kubepy.storage.folder import settings
from kubepy.storage.folder.files import MANAGED, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, StateFolder
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES
from kubepy.storage.folder.scan import MANIFEST_SUFFIXES, NO_FOLDER
from kubepy.storage.model import Problem

_PARENTS = (CLUSTER, NAMESPACES)


def beside_folders(folder: StateFolder, named: Container[str] = ()) -> Iterator[Problem]:
    """Yield YAML files beside the folders of objects, and what stands in the place of those
    folders.

    :param named: the files that are read because the settings name them.
    """
    try:
        names = sorted(name for name in os.listdir(folder.root) if name[0] != ".")
    except OSError:
        return  # that is a problem itself
    for name in names:
        mode = _mode(folder, name)
        if name in _PARENTS and _is_no_folder(folder, name, mode):
            yield Problem(printable(name), 0, NO_FOLDER)
        elif name == settings.FILE or name in named:
            continue
        elif name.endswith((".yaml", ".yml")) and stat.S_ISREG(mode):
            yield Problem(printable(name), 0, "is not where an object's file can be")


def _is_no_folder(folder: StateFolder, name: str, mode: int) -> bool:
    """Tell whether something else is where a folder should be; not if another process has just
    removed the folder."""
    return mode != 0 and not stat.S_ISDIR(mode) and not os.path.isdir(folder.absolute(name))


def _mode(folder: StateFolder, path: str) -> int:
    """Return the type of what is at a path, as ``st_mode`` has it; 0 where it cannot be looked
    at."""
    try:
        return os.lstat(folder.absolute(path)).st_mode
    except OSError:
        return 0


def other_files(folder: StateFolder, known: Container[str]) -> tuple[list[str], list[str]]:
    """Return the paths of the files in the folders of objects that are not known, hidden ones
    included: regular files with the ending of a manifest, and all others. Files of managers and of
    commits under way do not count."""
    manifests: list[str] = []
    others: list[str] = []
    for path in _files(folder):
        if printable(path) in known:
            continue
        if path.endswith(MANIFEST_SUFFIXES) and stat.S_ISREG(_mode(folder, path)):
            manifests.append(path)
        else:
            others.append(path)
    return sorted(manifests), sorted(others)


def _files(folder: StateFolder) -> Iterator[str]:
    """Yield the paths of all files in the folders of objects and below."""
    for parent in _PARENTS:
        for directory, folders, files in os.walk(folder.absolute(parent)):
            relative = parent + directory[len(folder.absolute(parent)) :]
            folders[:] = [name for name in folders if name not in (MANAGED, ".git")]
            yield from (
                f"{relative}/{name}"
                for name in files
                if not (name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX))
            )
