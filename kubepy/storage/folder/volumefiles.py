"""The contents of volumes, as files in ``volumes/`` beside the objects.

To a store the content of a volume is a small value, ``volume/NAME``: the JSON of a tree. A node of
a tree has ``k`` (``d`` for a directory, ``l`` for a link, none for a file), ``m`` (mode), ``t``
(time of modification), ``u`` (user and group), ``l`` (target of a link), ``s`` or ``b`` (content as
text or base64), ``c`` (the entries of a directory by their names); the tree has ``root``,
``version`` and ``limit``. A state folder keeps it as files that can be read, edited and compared::

    volumes/NAME/files/…        the files of the volume
    volumes/NAME/volume.json    all that files do not tell: modes, times, links, empty directories,
                                and the contents of files whose names cannot be on every disk

The files are the truth: a file that is not in ``volume.json`` is one of the volume all the same,
and one that is only there is not. They are written as any program writes files: what was newest may
be lost when the power fails. Nothing of ``volume.json`` is ever taken for a path on the disk,
and no link is made or followed.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from kubepy.quoting import printable
from kubepy.storage.errors import FolderError
from kubepy.storage.folder.files import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    StateFolder,
    UnreadableError,
)
from kubepy.storage.folder.paths import decode, encode, parent_of
from kubepy.storage.model import VOLUME_PREFIX

VOLUMES = "volumes"
MANIFEST, FILES = "volume.json", "files"
LONGEST_PATH = 900  # below the folder of a volume
CONTENTS = ("c", "s", "b")  # fields of a node
NEW_ROOT: Mapping[str, Any] = {"k": "d", "m": 0o777}

_PLAIN = re.compile(r"[A-Za-z0-9_+=@,.-][A-Za-z0-9_+=@,. ~#-]{0,180}").fullmatch
_RESERVED = re.compile(
    r"\.{1,2}|\.git.*|\.kubepy.*|\.managed|.*[. ]|(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?",
    re.IGNORECASE,
).fullmatch

Node = dict[str, Any]


def names(folder: StateFolder) -> list[str]:
    """Return the names of the small values that are the contents of volumes."""
    found = []
    places = folder.subfolders(VOLUMES) if folder.is_directory(VOLUMES) else []
    for place in sorted(places):
        _, _, component = place.rpartition("/")
        volume = decode(component)
        if volume is None:  # too long for a folder
            manifest = _read_manifest(folder, place) or {}
            volume = manifest.get("volume")
        if not volume:
            continue
        name = f"{VOLUME_PREFIX}{volume}"
        if _place_of(name) == place:
            found.append(name)
    return found


# --- reading --------------------------------------------------------------------------------------


def read(folder: StateFolder, name: str) -> str | None:
    """Return the content of a volume as JSON, None where there is none. Raises FolderError."""
    place = _place_of(name)
    directory = f"{place}/{FILES}"
    if not folder.is_inside(directory):
        return None
    manifest = _read_manifest(folder, place)
    if manifest is None and not folder.is_directory(directory):
        return None
    paths = [path for path, is_file in _all_entries(folder, directory) if is_file]
    contents = {}
    for path in paths:
        contents[path] = _content(folder, f"{directory}/{path}")

    manifest = manifest or {}
    entries: dict[str, Node] = manifest.get("entries") or {}
    own_entry = entries.get("", {})
    root: Node = {**NEW_ROOT, **own_entry}
    differences = 0
    for path, entry in sorted(entries.items()):
        node = dict(entry)
        digest = node.pop("sum", None)
        data = contents.pop(path, None)
        if digest is not None and data is None:
            differences += 1  # somebody has removed the file
            continue
        if data is not None:
            _set_content(node, data)
            present_digest = crc32(data)
            if present_digest != digest:
                differences += present_digest
        if path:
            _put(root, path, node)
    for path, data in sorted(contents.items()):
        differences += crc32(data) + 1
        node = {}
        _set_content(node, data)
        _put(root, path, node)

    version = manifest.get("version", 0)
    tree: Node = {"root": root, "version": version + differences}
    limit = manifest.get("limit")
    if limit is not None:
        tree["limit"] = limit
    return json.dumps(tree, separators=(",", ":"))


def _read_manifest(folder: StateFolder, place: str) -> Node | None:
    path = f"{place}/{MANIFEST}"
    try:
        data, _, _ = folder.read(path)
        manifest = json.loads(data)
        if not isinstance(manifest, dict) or not isinstance(manifest.get("entries", {}), dict):
            raise UnreadableError("is not the description of a volume")
    except FileNotFoundError:
        return None
    except (UnreadableError, ValueError, RecursionError) as error:
        raise FolderError(printable(f"{folder.absolute(path)}: {error}")) from None
    return manifest


def _content(folder: StateFolder, path: str) -> bytes:
    try:
        data, _, _ = folder.read(path)
    except FileNotFoundError:
        return b""  # removed at this moment
    except UnreadableError as error:
        raise FolderError(printable(f"{folder.absolute(path)}: {error}")) from None
    return data


def _set_content(node: Node, data: bytes) -> None:
    if not data:
        return
    try:
        node["s"] = data.decode("utf-8")
    except UnicodeDecodeError:
        node["b"] = base64.b64encode(data).decode("ascii")


def _put(root: Node, path: str, node: Node) -> None:
    """Put a node at a path; directories on the way are made, also in the place of what is not
    one."""
    *parents, name = path.split("/")
    directory = root
    for parent in parents:
        children = directory.setdefault("c", {})
        child = children.get(parent)
        if child is None or child.get("k") != "d":
            child = {"k": "d"}
            children[parent] = child
        directory = child
    directory.setdefault("c", {})[name] = node


def _all_entries(
    folder: StateFolder, directory: str, prefix: str = ""
) -> Iterator[tuple[str, bool]]:
    """Yield the files and folders in the folder of a volume, what is in a folder before itself: no
    links, and nothing whose name no file of a volume has on the disk."""
    place = f"{directory}/{prefix}".rstrip("/")
    if not folder.is_directory(place):
        return
    absolute = folder.absolute(place)
    with os.scandir(absolute) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{prefix}{entry.name}"
        if not is_plain(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _all_entries(folder, directory, f"{path}/")
            yield path, False
        elif entry.is_file(follow_symlinks=False):
            yield path, True


# --- writing --------------------------------------------------------------------------------------


def write(folder: StateFolder, name: str, value: str | None) -> None:
    """Write the content of a volume; None removes it. Raises FolderError."""
    place = _place_of(name)
    try:
        if value is not None:
            folder.make_directory(place)
            _write(folder, place, name.removeprefix(VOLUME_PREFIX), json.loads(value))
        elif folder.is_inside(f"{place}/{FILES}"):
            _remove(folder, place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FolderError(
            printable(f"{folder.absolute(place)}: cannot be written: {reason}")
        ) from error


def _write(folder: StateFolder, place: str, volume: str, tree: Node) -> None:
    directory = f"{place}/{FILES}"
    entries: dict[str, Node] = {}
    contents: dict[str, bytes] = {}
    _lay_out(tree["root"], "", True, entries, contents)
    folders = {parent for path in contents for parent in _parents_of(path)}
    present_entries = list(_all_entries(folder, directory))
    for path, is_file in present_entries:
        place_on_disk = f"{directory}/{path}"
        if is_file and path not in contents:
            folder.remove(place_on_disk)
        elif not is_file and path not in folders:
            _remove_folder(folder, place_on_disk)
    for path, data in contents.items():
        file = f"{directory}/{path}"
        try:
            present, _, _ = folder.read(file)
        except (FileNotFoundError, UnreadableError):
            present = None
        if present != data:
            _replace(folder, file, data)

    manifest: Node = {"volume": volume}
    manifest["version"] = tree.get("version", 0)
    limit = tree.get("limit")
    if limit is not None:
        manifest["limit"] = limit
    manifest["entries"] = entries
    text = json.dumps(manifest, indent=1)
    _replace(folder, f"{place}/{MANIFEST}", f"{text}\n".encode())


def _lay_out(
    node: Node, path: str, is_on_disk: bool, entries: dict[str, Node], contents: dict[str, bytes]
) -> None:
    """Divide a node, and what is in it, into what the manifest has and contents of files."""
    entry = dict(node)
    for field in CONTENTS:
        entry.pop(field, None)
    kind = node.get("k", "f")
    is_file = kind == "f"
    if is_file and is_on_disk:
        data = _data_of(node)
        contents[path] = data
        entry["sum"] = crc32(data)
    elif is_file:
        entry = dict(node)
    entries[path] = entry

    taken: set[str] = set()
    children = node.get("c") or {}
    for name, child in sorted(children.items()):
        inner = f"{path}/{name}" if path else name
        folded_name = name.lower()
        is_told_apart = folded_name not in taken
        taken.add(folded_name)
        is_short = len(inner) <= LONGEST_PATH
        is_possible = is_on_disk and is_told_apart and is_short and is_plain(name)
        _lay_out(child, inner, is_possible, entries, contents)


def is_plain(name: str) -> bool:
    """Tell whether every disk, and git, can have a file of this name."""
    if not _PLAIN(name):
        return False
    return not _RESERVED(name)


def _data_of(node: Node) -> bytes:
    if "b" in node:
        return base64.b64decode(node["b"])
    text: str = node.get("s", "")
    return text.encode("utf-8")


def _replace(folder: StateFolder, path: str, data: bytes) -> None:
    directory, _, name = path.rpartition("/")
    folder.make_directory(directory)
    number = crc32(name.encode())
    temporary_name = f"{TEMPORARY_PREFIX}{number:08x}{TEMPORARY_SUFFIX}"
    temporary = f"{directory}/{temporary_name}"
    folder.write_temporary(temporary, data, 0o666)
    folder.rename_into_place(temporary, path)


def _remove(folder: StateFolder, place: str) -> None:
    directory = f"{place}/{FILES}"
    for path, is_file in list(_all_entries(folder, directory)):
        if is_file:
            folder.remove(f"{directory}/{path}")
        else:
            _remove_folder(folder, f"{directory}/{path}")
    _remove_folder(folder, directory)
    folder.remove(f"{place}/{MANIFEST}")
    folder.remove_temporaries(place)
    folder.remove_empty(place)


def _remove_folder(folder: StateFolder, path: str) -> None:
    """Remove a folder, unless something is in it that is no file of the volume."""
    folder.remove_temporaries(path)
    try:
        os.rmdir(folder.absolute(path))
    except OSError:
        return


def _parents_of(path: str) -> Iterator[str]:
    while path := parent_of(path):
        yield path


def _place_of(name: str) -> str:
    """Return the folder of a volume, relative to the state folder."""
    volume = name.removeprefix(VOLUME_PREFIX)
    component = encode(volume)
    return f"{VOLUMES}/{component}"


# --- checking -------------------------------------------------------------------------------------


def check(folder: StateFolder) -> Iterator[str]:
    """Yield what is wrong with the contents of volumes, a line each."""
    if os.path.lexists(folder.absolute(VOLUMES)) and not folder.is_directory(VOLUMES):
        yield f"{VOLUMES}: is not a folder: no content of a volume is read"
        return
    for name in names(folder):
        try:
            read(folder, name)
        except FolderError as error:
            yield str(error).removeprefix(folder.absolute(""))
