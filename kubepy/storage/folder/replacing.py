"""Give a file another content, or remove it, without losing what somebody else writes at the same
moment.

Between a last look at a file and a rename there is always a moment, in which an editor may write.
So nothing is overwritten: the new file and the present one exchange their names, or the file that
is to be removed gets another name. Only then is it looked at, when nobody can find it any more. If
it is what it was expected to be, it is removed; if not, it gets its name back, and the edit counts.
Who has it open for writing at that moment is waited for.

Where the system or the file system has no such renames (:mod:`renames`), the last look comes before
the rename.

A process that dies half way leaves the file under the temporary name, and :func:`rescue` gives it
its name back. The temporary name of an object's file has the revision of the row that is committed,
so it is never mistaken for a file that was staged for another commit.
"""

from __future__ import annotations

import os
import stat
import time

from kubepy import system
from kubepy.lazy import lazy_imports
from kubepy.storage.folder.compare import digest_of
from kubepy.storage.folder.files import MAX_SIZE, StateFolder, UnreadableError
from kubepy.storage.folder.paths import parent_of

with lazy_imports():
    from kubepy.storage.folder import renames

WRITER_SECONDS = 0.1  # how long a file is waited for that somebody has open for writing
WRITER_PAUSE = 0.001
MAX_EXCHANGES = 100  # with somebody who replaces the file again and again


# --- what a commit does ---


def replace(
    folder: StateFolder, temporary: str, path: str, expected: bytes, content: bytes
) -> bool:
    """Put the file at ``temporary`` in the place of one whose content has the digest ``expected``.

    :param content: the digest of the file at ``temporary``.
    :return: False where the file is another one by now, or gone: it stays so, and that at
        ``temporary`` is removed.

    Raises OSError.
    """
    try:
        renames.renameat2(folder.absolute(temporary), folder.absolute(path), renames.EXCHANGE)
    except renames.UnsupportedRename:
        return _replace_after_look(folder, temporary, path, expected)
    except FileNotFoundError:
        folder.remove(temporary)
        return False
    if _was_left_as(folder, temporary, expected):
        folder.remove(temporary)
        return True
    _put_back(folder, temporary, path, content)
    return False


def create(folder: StateFolder, temporary: str, path: str) -> bool:
    """Give a file its name unless there is one of this name by now; then it is removed, and the
    answer is False.

    Raises OSError.
    """
    try:
        renames.renameat2(folder.absolute(temporary), folder.absolute(path), renames.NO_REPLACE)
    except FileExistsError:
        folder.remove(temporary)
        return False
    except renames.UnsupportedRename:
        if folder.stamp(path) is not None:
            folder.remove(temporary)
            return False
        folder.rename_into_place(temporary, path)
    return True


def remove(folder: StateFolder, temporary: str, path: str, expected: bytes) -> bool:
    """Remove a file whose content has the digest ``expected``; return False for another one, which
    stays.

    :param temporary: the name that it has meanwhile.

    Raises OSError.
    """
    try:
        renames.renameat2(folder.absolute(path), folder.absolute(temporary), renames.NO_REPLACE)
    except FileNotFoundError:
        return True
    except renames.UnsupportedRename:
        if digest_at(folder, path) != expected:
            return False
        folder.remove(path)
        return True
    if _was_left_as(folder, temporary, expected):
        folder.remove(temporary)
        return True
    _bring_back(folder, temporary, path)
    return False


def rescue(
    folder: StateFolder,
    temporary: str,
    path: str,
    content: bytes | None,
    versions: frozenset[bytes],
) -> None:
    """Remove what a process has left under a temporary name; an edit that it had in hand gets its
    name back.

    :param content: the digest of what was to be put at ``path``; None: nothing, the file was to be
        removed.
    :param versions: the digests of what the file may have had before.

    Raises OSError.
    """
    if folder.stamp(temporary) is None:
        return
    digest = digest_at(folder, temporary)
    is_edit = digest != content and digest not in versions
    if is_edit and content is None and folder.stamp(path) is None:
        _bring_back(folder, temporary, path)
    elif is_edit and content is not None and digest_at(folder, path) == content:
        _put_back(folder, temporary, path, content)
    elif not folder.is_directory(temporary):
        folder.remove(temporary)


# --- steps ---


def digest_at(folder: StateFolder, path: str) -> bytes:
    """Return the digest of a file's content, "" for one that is not there or cannot be read."""
    try:
        return digest_of(folder.read(path)[0])
    except (FileNotFoundError, UnreadableError):
        return b""


def _replace_after_look(folder: StateFolder, temporary: str, path: str, expected: bytes) -> bool:
    if digest_at(folder, path) != expected:
        folder.remove(temporary)
        return False
    folder.rename_into_place(temporary, path)
    return True


def _was_left_as(folder: StateFolder, path: str, expected: bytes) -> bool:
    """Return whether a file that nobody can find any more has the expected content, when nobody
    writes to it either."""
    end = time.monotonic() + WRITER_SECONDS
    while True:
        is_being_written, digest = _look(folder, path)
        if digest != expected:
            return False
        if not is_being_written or time.monotonic() > end:
            return True
        time.sleep(WRITER_PAUSE)


def _look(folder: StateFolder, path: str) -> tuple[bool, bytes]:
    """Return whether somebody has a file open for writing, and the digest of its content, "" for no
    regular file."""
    try:
        descriptor = os.open(folder.absolute(path), system.READ | system.READ_AT_ONCE)
    except OSError:
        return False, b""

    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False, b""
        is_being_written = system.is_being_written(descriptor)
        data = b""
        while len(data) <= MAX_SIZE and (part := os.read(descriptor, MAX_SIZE + 1)):
            data += part
    finally:
        os.close(descriptor)

    return is_being_written, digest_of(data)


def _put_back(folder: StateFolder, temporary: str, path: str, placed: bytes) -> None:
    """Give an edited file its name again, in the place of the one with the digest ``placed``.

    If somebody has edited that one too, the last edit counts: it has come out then, and is put back
    in its turn.
    """
    for _ in range(MAX_EXCHANGES):
        edited = digest_at(folder, temporary)
        try:
            renames.renameat2(folder.absolute(temporary), folder.absolute(path), renames.EXCHANGE)
        except FileNotFoundError:
            break  # it was removed since: that was the last edit
        if digest_at(folder, temporary) == placed:
            break
        placed = edited
    if not folder.is_directory(temporary):
        folder.remove(temporary)
    folder.sync_directories([parent_of(path)])


def _bring_back(folder: StateFolder, temporary: str, path: str) -> None:
    """Give an edited file its name again, unless there is another one of that name by now."""
    create(folder, temporary, path)
    folder.sync_directories([parent_of(path)])
