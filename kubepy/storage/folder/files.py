"""The files of a state folder: read, written beside, renamed into place, removed, synced. Paths are
relative to the folder.

Nothing here follows a symbolic link, and only object files and temporary files of our own are ever
written or removed.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable

from kubepy import system
from kubepy.storage.errors import FolderError
from kubepy.storage.folder.database import Stamp
from kubepy.storage.folder.paths import ancestors_of, parent_of

MAX_SIZE = 3 * 1024 * 1024
TEMPORARY_PREFIX = ".kubepy-"
TEMPORARY_SUFFIX = ".tmp"
MANAGED = ".managed"
PRIVATE = frozenset({"secrets"})  # resources whose files only their owner may read

# A file's times come from the kernel's tick (at most 10 ms) or, on old file systems, from whole
# seconds, so an edit right after a file was read can leave the same. The mtime of our own files is
# set back by more than this: only an edit that sets it back as well can match.
TICK_NS = 20_000_000
COARSE_TICK_NS = 2_100_000_000

SYNC_EACH = 16  # files or folders; more are synced by one syncfs


class UnreadableError(Exception):
    """A file must not or cannot be read as an object; the message is the reason."""


class DeniedError(UnreadableError):
    """The system does not let us read a file now; its stamp will not show when that changes."""


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp in what ``stat`` says of a file."""
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


def read_file(path: str, most: int = -1) -> bytes:
    """Return the content of a file, or its first bytes; a pipe or a device, which might give none
    for ever, is refused. Raises OSError."""
    descriptor = os.open(path, system.READ_LINKED | system.READ_AT_ONCE)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
        return file.read(most)


def is_racy(stamp: Stamp, read_ns: int) -> bool:
    """Return whether an edit after a file was read at ``read_ns`` could leave the same stamp (git:
    racy index).

    Only a change time that is old enough is proof: an edit can set the time of modification back.
    Windows tells when a file was made in its place.
    """
    changed_ns = stamp.mtime_ns if system.IS_WINDOWS else stamp.ctime_ns
    tick_ns = TICK_NS if changed_ns % 1_000_000_000 else COARSE_TICK_NS
    return changed_ns + tick_ns >= read_ns


class StateFolder:
    """The files below a folder.

    :param volatile: resources that are not kept in files; folders of theirs are not read.
    """

    def __init__(self, root: str, volatile: frozenset[str] = frozenset()) -> None:
        self.root = root
        self.volatile = volatile
        self._prefix = os.path.join(root, "")

    def absolute(self, path: str) -> str:
        """Return the whole path of a file."""
        return self._prefix + path

    # --- stamps and folders ---

    def stamp(self, path: str) -> Stamp | None:
        """Return the stamp of whatever is at a path (a link itself, not its target), None when
        nothing is."""
        try:
            return stamp_of(os.lstat(self._prefix + path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_directory(self, path: str) -> bool:
        """Return whether there is a folder, and no link to one, as far as the system lets us
        see."""
        try:
            return stat.S_ISDIR(os.lstat(self._prefix + path).st_mode)
        except OSError:
            return False

    def is_inside(self, path: str) -> bool:
        """Return whether a path leads through real folders only, so that its file belongs to the
        state folder."""
        return all(self.is_directory(part) for part in ancestors_of(path)[:-1])

    def subfolders(self, path: str) -> list[str]:
        """Return the paths of the folders in a folder, as far as it can be read."""
        try:
            with os.scandir(self._prefix + path) as entries:
                return [
                    f"{path}/{entry.name}"
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            return []

    # --- reading ---

    def read(self, path: str) -> tuple[bytes, Stamp, bool]:
        """Return the bytes of an object file, its stamp, and whether the stamp is racy.

        Raises FileNotFoundError, UnreadableError.
        """
        descriptor = self._open_for_reading(path)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError("is not a regular file")
            if status.st_size > MAX_SIZE:
                raise UnreadableError("is larger than 3 MiB")
            read_ns = time.time_ns()
            data = b""
            while part := os.read(descriptor, 1 << 20):
                data += part
                if len(data) > MAX_SIZE:
                    raise UnreadableError("is larger than 3 MiB")
        finally:
            os.close(descriptor)

        stamp = stamp_of(status)
        return data, stamp, is_racy(stamp, read_ns) or len(data) != stamp.size

    def _open_for_reading(self, path: str) -> int:
        try:
            return os.open(self._prefix + path, system.READ | system.READ_AT_ONCE)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except OSError as error:
            if os.path.islink(self._prefix + path):
                raise UnreadableError("is a symbolic link") from None
            raise DeniedError(f"cannot be read: {error.strerror}") from None

    # --- writing ---

    def make_directory(self, path: str) -> None:
        """Make a folder and those above it. Raises FolderError where something else is in the
        way."""
        for part in ancestors_of(path):
            if self.is_directory(part):
                continue
            try:
                os.mkdir(self._prefix + part)
            except FileExistsError:
                kind = "a symbolic link" if os.path.islink(self._prefix + part) else "not a folder"
                raise FolderError(f"{self.absolute(part)} is {kind}") from None
            except OSError as error:
                raise FolderError(
                    f"{self.absolute(part)}: cannot be made: {error.strerror}"
                ) from None

    def write_temporary(self, path: str, data: bytes, mode: int, *, sync: bool = False) -> Stamp:
        """Write a file of our own; return its stamp, of which a rename keeps all but the change
        time."""
        absolute = self._prefix + path
        try:
            descriptor = os.open(absolute, system.WRITE_NEW, mode)
        except FileExistsError:  # left by a process that died
            os.unlink(absolute)
            descriptor = os.open(absolute, system.WRITE_NEW, mode)

        is_failed = False
        try:
            written = os.write(descriptor, data)
            while written < len(data):
                written += os.write(descriptor, data[written:])
            now = time.time_ns()
            system.set_times(descriptor, absolute, (now, now - 2 * TICK_NS))
            if sync or not system.can_sync_all():
                os.fsync(descriptor)
            return stamp_of(os.fstat(descriptor))
        except BaseException:
            is_failed = True
            raise
        finally:
            os.close(descriptor)
            if is_failed:
                os.unlink(absolute)

    def rename_into_place(self, temporary: str, path: str) -> None:
        """Replace a file by the temporary one that was written for it, in one step."""
        system.replace(self._prefix + temporary, self._prefix + path)

    # --- removing ---

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        try:
            os.unlink(self._prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            return

    def remove_empty(self, path: str) -> None:
        """Remove a folder and those above it, as far as they are empty."""
        while path:
            try:
                os.rmdir(self._prefix + path)
            except OSError:  # not empty, or not there: either way nothing is left to do
                return
            path = parent_of(path)

    def remove_empty_managed(self, directory: str) -> None:
        """Remove the folder of managers in a folder of objects, if it is empty."""
        try:
            os.rmdir(f"{self._prefix}{directory}/{MANAGED}")
        except OSError:  # as above
            return

    def remove_temporaries(self, path: str) -> None:
        """Remove the temporary files in a folder, if it is there."""
        for temporary in self.temporaries(path):
            self.remove(temporary)

    def temporaries(self, path: str) -> list[str]:
        """Return the paths of the temporary files in a folder, sorted; a folder of such a name is
        none of ours."""
        names = sorted(os.listdir(self._prefix + path)) if self.is_directory(path) else []
        paths = [
            f"{path}/{name}"
            for name in names
            if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
        ]
        return [temporary for temporary in paths if not self.is_directory(temporary)]

    # --- syncing ---

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Make the entries of folders, and those of the folders above them, durable."""
        directories = {part for path in paths for part in ("", *ancestors_of(path))}
        if len(directories) > SYNC_EACH:
            self.sync_all()
            return
        for path in sorted(directories):
            try:
                system.sync_folder(self.absolute(path), linked=False)
            except (FileNotFoundError, NotADirectoryError):
                continue  # its removal is an entry of the folder above it

    def sync_all(self) -> None:
        """Make everything on the folder's file system durable. Raises OSError."""
        system.sync_all(self.root)
