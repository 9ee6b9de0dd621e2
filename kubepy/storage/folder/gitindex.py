"""The index of the git repository around a state folder, read without running git, which would carry out what the
configuration of the repository says. The format is in gitformat-index(5)."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator

from kubepy.lazy import NamedTuple

_HEADER = struct.Struct(">4sII")  # signature, version, number of entries
_SIGNATURE, _VERSIONS = b"DIRC", (2, 3, 4)
_SIZE_AT, _NAME_AT = 36, 40  # of an entry: its file's size, the name of its object
_EXTENDED = 0x4000  # in its flags: two more bytes follow
_SPLIT = b"link"  # the extension of an index whose entries are in another file; it comes first
_DIGESTS = {32: hashlib.sha256, 20: hashlib.sha1}  # by their lengths


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
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # of a linked worktree, or a submodule
            return Worktree(folder, os.path.join(folder, file.read().removeprefix("gitdir:").strip()))
    except OSError:
        return None


# --- the format ---------------------------------------------------------------------------------------------------


def size_of_names(index: bytes) -> int:
    """Return the length of the names of objects, which is that of the digest at the end. Raises IndexFormatError."""
    for size, digest in _DIGESTS.items():
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
    if index[at:at + 4] == _SPLIT:
        raise IndexFormatError("it is split")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in git's offset encoding; return it, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
