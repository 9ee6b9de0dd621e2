"""The index of the git repository around a state folder: which of its files git is to compare by
content.

Where a repository keeps intent only, the file of an object has more in it than what is committed:
status and whatever else the system writes. Git would find that the filter makes the two equal; but
it compares sizes first, calls a file of another size modified, and refuses to check out, merge or
bisect over it. An entry of the index whose size is 0 stands for a file that git has to compare by
content (its "racy" entries are such; ``ie_modified`` in ``read-cache.c``). So the sizes of files
that have another size now are set to 0, after each command that wrote.

The index is changed as git changes it: under ``index.lock``, whole, by a rename. No git is run:
that would carry out what the configuration of the repository says. The format is in
gitformat-index(5).
"""

from __future__ import annotations

import os
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from kubepy import system
from kubepy.storage.folder.files import read_file
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, SUFFIX

if TYPE_CHECKING:
    import hashlib

ATTRIBUTES, FILTER = ".gitattributes", b"filter=kubepy-intent"
LONGEST_ATTRIBUTES = 1 << 20
PATIENCE, POLL = 0.2, 0.01  # seconds in which a git that holds the lock should be done

_HEADER = struct.Struct(">4sII")  # signature, version, number of entries
_SIGNATURE, _VERSIONS = b"DIRC", (2, 3, 4)
_SIZE_AT, _NAME_AT = 36, 40  # of an entry: its file's size, the name of its object
_EXTENDED = 0x4000  # in its flags: two more bytes follow
_SPLIT = b"link"  # the extension of an index whose entries are in another file; it comes first


class Worktree(NamedTuple):
    """The working tree of a repository, and the directory in which git keeps its index."""

    root: str
    directory: str


class TrackedFile(NamedTuple):
    """A file in the index. ``at``: where its entry begins."""

    at: int
    path: bytes
    size: int


class IndexFormatError(Exception):
    """An index cannot be read: it is none, or of a form that is not known here."""


def find_worktree(folder: str) -> Worktree | None:
    """Return the working tree around a folder, without running git."""
    path = os.path.join(folder, ".git")
    if not os.path.lexists(path):
        parent = os.path.dirname(folder)
        return find_worktree(parent) if parent != folder else None
    if os.path.isdir(path):
        return Worktree(folder, path)
    try:
        text = os.fsdecode(read_file(path))  # of a linked worktree, or a submodule
    except OSError:
        return None
    return Worktree(folder, os.path.join(folder, text.removeprefix("gitdir:").strip()))


def keeps_intent_only(folder: str) -> bool:
    """Return whether the attributes in a state folder say that a repository keeps intent only."""
    try:
        lines = read_file(os.path.join(folder, ATTRIBUTES), LONGEST_ATTRIBUTES).splitlines()
    except OSError:
        return False
    return any(FILTER in line.split() and not line.startswith(b"#") for line in lines)


def compare_by_content(folder: str) -> None:
    """Let git compare by content the files of a state folder whose size is not the one in its
    index.

    Nothing is done where git holds the lock of its index for longer: the next command that writes
    makes up for it. A process that git has started with an index of its own leaves it alone.
    """
    folder = os.path.realpath(folder)
    if "GIT_INDEX_FILE" in os.environ or not keeps_intent_only(folder):
        return
    worktree = find_worktree(folder)
    index = os.path.join(worktree.directory, "index") if worktree else ""
    if worktree is None or not os.path.isfile(index):
        return
    with _locked(f"{index}.lock") as lock:
        if lock is None:
            return
        with open(index, "rb") as file:
            content, mode = file.read(), os.fstat(file.fileno()).st_mode
        try:
            new = without_sizes(content, worktree.root, folder)
        except (
            IndexFormatError
        ):  # of a newer git, or split: such files count as modified until they are added again
            return
        if new is None:
            return
        system.set_mode(lock, stat.S_IMODE(mode))
        with os.fdopen(os.dup(lock), "wb") as file:
            file.write(new)
        system.replace(f"{index}.lock", index)


@contextmanager
def _locked(path: str) -> Iterator[int | None]:
    """Hold a lock file of git; the block gets its descriptor, None where git keeps it. The block
    may rename it."""
    descriptor = _open_lock(path)
    if descriptor is None:
        yield None
        return
    own = os.fstat(descriptor).st_ino
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            if os.stat(path).st_ino == own:
                os.unlink(path)


def _open_lock(path: str) -> int | None:
    """Make a lock file of git, and wait for a git that has it now, at most PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(path, system.WRITE_NEW, 0o666)
        except FileExistsError:
            if time.monotonic() >= deadline:
                return None
        except OSError:  # a directory that only others may write
            return None
        time.sleep(POLL)


# --- the format -----------------------------------------------------------------------------------


def without_sizes(index: bytes, root: str, folder: str) -> bytes | None:
    """Return the content of an index in which files of objects have the size 0 where it is not
    theirs now.

    None where that changes nothing. Raises IndexFormatError.

    :param root: that of the working tree.
    :param folder: the state folder in it.
    """
    name_size = size_of_names(index)
    prefix = os.fsencode(os.path.relpath(folder, root))
    places = tuple(
        os.path.normpath(os.path.join(prefix, os.fsencode(place))) + b"/"
        for place in (CLUSTER, NAMESPACES)
    )
    base, suffix, content = os.fsencode(root), SUFFIX.encode(), bytearray(index)
    changed = False
    for entry in entries(index, name_size):
        if not entry.size or not entry.path.startswith(places) or not entry.path.endswith(suffix):
            continue
        with suppress(OSError):  # it is gone, which git sees
            if os.lstat(os.path.join(base, entry.path)).st_size & 0xFFFFFFFF != entry.size:
                content[entry.at + _SIZE_AT : entry.at + _NAME_AT] = bytes(4)
                changed = True

    if not changed:
        return None
    if any(index[-name_size:]):  # index.skipHash: no digest
        content[-name_size:] = _digests()[name_size](bytes(content[:-name_size])).digest()
    return bytes(content)


def _digests() -> dict[int, Callable[[bytes], hashlib._Hash]]:
    """Return the functions that git names objects by, by the length of their digests."""
    import hashlib  # loads OpenSSL, for which few commands have a use

    return {32: hashlib.sha256, 20: hashlib.sha1}


def size_of_names(index: bytes) -> int:
    """Return the length of the names of objects, which is that of the digest at the end. Raises
    IndexFormatError."""
    for size, digest in _digests().items():
        if index[-size:] == digest(index[:-size]).digest() or not any(index[-size:]):
            return size
    raise IndexFormatError("it has no digest of its content")


def entries(index: bytes, name_size: int) -> Iterator[TrackedFile]:
    """Yield the files in an index. Raises IndexFormatError."""
    if len(index) < _HEADER.size + name_size:
        raise IndexFormatError("it is too short")
    signature, version, count = _HEADER.unpack_from(index)
    if signature != _SIGNATURE or version not in _VERSIONS:
        raise IndexFormatError(f"it has the version {version}")
    at, path = _HEADER.size, b""
    try:
        for _ in range(count):
            begin = at + _NAME_AT + name_size + 2
            if struct.unpack_from(">H", index, begin - 2)[0] & _EXTENDED:
                begin += 2
            kept = 0
            if version == 4:  # the path begins as the one before, but for so many bytes
                dropped, begin = _varint(index, begin)
                kept = len(path) - dropped
            end = index.index(b"\0", begin)
            path = path[:kept] + index[begin:end]
            yield TrackedFile(at, path, struct.unpack_from(">I", index, at + _SIZE_AT)[0])
            at = end + 1 if version == 4 else at + ((end - at) // 8 + 1) * 8
    except (struct.error, ValueError, IndexError) as error:
        raise IndexFormatError("it ends within a file") from error

    if index[at : at + 4] == _SPLIT:
        raise IndexFormatError("it is split")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in git's offset encoding; return it, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
