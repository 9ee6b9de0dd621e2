"""YAML files where no object is looked for, and links where a folder should be."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kubepy.storage.folder import settings
from kubepy.storage.folder.files import MANAGED, Folder, shown
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, decode
from kubepy.storage.model import Problem

_ENDINGS = (".yaml", ".yml")
_DEPTHS = {CLUSTER: 1, NAMESPACES: 2}  # of folders below it that hold object files


def strays(folder: Folder) -> Iterator[Problem]:
    for entry in _entries(folder, ""):
        if entry.name in _DEPTHS and not entry.is_dir():
            yield Problem(shown(entry.name), 0, "is not a folder")
        elif entry.name in _DEPTHS:
            yield from _walk(folder, entry, entry.name, _DEPTHS[entry.name])
        elif entry.name.endswith(_ENDINGS) and entry.name != settings.FILE and entry.is_file(follow_symlinks=False):
            yield Problem(shown(entry.name), 0, "is not where an object's file can be")


def _entries(folder: Folder, path: str) -> list[os.DirEntry[str]]:
    """Those of a folder that cannot be read are none: the folder is a problem itself."""
    try:
        with os.scandir(folder.absolute(path)) as entries:
            return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError:
        return []


def _walk(folder: Folder, entry: os.DirEntry[str], path: str, depth: int) -> Iterator[Problem]:
    """``depth``: how many folders further down the object files are; below 0 there should be none."""
    if entry.is_symlink() and not path.endswith(_ENDINGS):
        yield Problem(shown(path), 0, "is a symbolic link")
    elif entry.is_dir(follow_symlinks=False):
        yield from _walk_folder(folder, path, depth)
    elif path.endswith(_ENDINGS) and (depth != -1 or path.endswith(".yml")):
        yield Problem(shown(path), 0, _misplaced(path, depth))


def _walk_folder(folder: Folder, path: str, depth: int) -> Iterator[Problem]:
    name = path.rpartition("/")[2]
    if depth == -1 and path.endswith(_ENDINGS):
        return  # in the place of a file: reported as one
    if decode(name) is None and depth >= 0:
        yield Problem(shown(path), 0, "is not the folder name of any namespace or resource")
        return
    if depth == 0 and name in folder.volatile:
        yield Problem(shown(path), 0, f"is not read: {name} are not kept in files")
        return
    managed = f"{path}/{MANAGED}"
    if depth == 0 and os.path.lexists(folder.absolute(managed)) and not folder.is_directory(managed):
        yield Problem(shown(managed), 0, "is not a folder")
    for child in _entries(folder, path):
        yield from _walk(folder, child, f"{path}/{child.name}", depth - 1)


def _misplaced(path: str, depth: int) -> str:
    if depth == -1:
        return "is not read: the name of an object's file ends in .yaml"
    return f"is not where an object's file can be ({CLUSTER}/RESOURCE/ or {NAMESPACES}/NAMESPACE/RESOURCE/)"
