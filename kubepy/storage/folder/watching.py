"""Watch the folder: the operating system names the files that change, so that nobody need look at
all of them.

Linux alone does this (inotify). Where it is not to be had, where a folder cannot be watched, for
want of watches or of permission, and on file systems that others may change unseen (of a network,
of a virtual machine's host), everything is looked at instead. So it is after the queue of names has
overflowed, and after a folder was moved.

A folder is watched before it is listed, and names are read before files are compared: a change is
seen by the look that follows, or is named after it. A look that could not record everything leaves
its names for the next one. Some changes have no name: by another hard link, or of a file system
mounted in the folder. Now and then everything is looked at.
"""

from __future__ import annotations

import errno
import math
import os
import re
import select
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubepy.storage.folder.files import MANAGED, StateFolder
from kubepy.storage.folder.index import OWN
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, SUFFIX, decode
from kubepy.storage.folder.scan import (
    EVERYTHING,
    MANIFEST_SUFFIXES,
    Extent,
    Extents,
    extent_at,
    extent_of,
)

if TYPE_CHECKING:
    from inotify_simple import Event, INotify

MAX_NAMED = 500  # objects of one folder; of more, all of the folder is looked at
WHOLE_SECONDS = 60.0  # how often everything is looked at all the same …
WHOLE_COST_RATIO = 1000  # … or after so many times as long as that takes
# how long nothing must have happened before it counts as quiet: a commit is written in steps
REST_SECONDS = 0.25
RETRY_SECONDS = 10.0  # how often it is tried again where nothing can be watched
LOCAL = frozenset(
    (
        "bcachefs",
        "btrfs",
        "exfat",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "jfs",
        "overlay",
        "ramfs",
        "reiserfs",
        "tmpfs",
        "vfat",
        "xfs",
        "zfs",
    )
)
# As the kernel defines them (inotify(7)).
MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = (
    0x2,
    0x4,
    0x8,
    0x40,
    0x80,
    0x100,
    0x200,
)
UNMOUNT, Q_OVERFLOW, IGNORED, ONLYDIR, DONT_FOLLOW, ISDIR = (
    0x2000,
    0x4000,
    0x8000,
    1 << 24,
    1 << 25,
    1 << 30,
)
MOUNTS = "/proc/self/mountinfo"


class FolderWatch:
    """The changes to the files of a folder since they were looked at."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._kernel: INotify | None = None
        self._tried = 0.0  # when it was tried last to watch
        self._poll: select.poll | None = None
        self._hears_index = (
            False  # the folder of the index is watched, which commits of other processes change
        )
        self._heard = 0.0  # when something was named last
        self._root: tuple[int, int] | None = None
        self._paths: dict[int, str] = {}  # of the folders, by the number of their watch
        self._pending: set[Extent] = set(EVERYTHING)
        self._due = 0.0  # when everything is to be looked at
        self._asked: float | None = None  # when it was, and nobody has confirmed it yet
        self._begin()

    @property
    def is_sure(self) -> bool:
        """Whether the system names the files."""
        return self._kernel is not None

    def close(self) -> None:
        """Let go of all watches."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None

    def doubt(self) -> None:
        """Let everything be looked at: what was confirmed may not be so in the index that comes."""
        self._pending = set(EVERYTHING)

    def confirm(self) -> None:
        """Note that what :meth:`changed` has returned, or everything, was looked at after that, and
        is recorded."""
        if self._asked is not None:
            now = time.monotonic()
            self._due, self._asked = (
                now + max(WHOLE_SECONDS, WHOLE_COST_RATIO * (now - self._asked)),
                None,
            )
        self._pending.clear()

    def changed(self) -> Extents:
        """Return what may have changed since that was last confirmed."""
        if self._kernel is None and time.monotonic() - self._tried > RETRY_SECONDS:
            self._begin()
        if self._kernel is not None:
            events = list(self._kernel.read(timeout=0))
            if events:
                self._heard = time.monotonic()
            if not self._is_in_place() or not self._take_all(events):
                self._begin()
        now = time.monotonic()
        if self._kernel is None or now >= self._due or not self._pending.isdisjoint(EVERYTHING):
            self._asked = now
            return EVERYTHING
        return self._extents()

    def wait(self, seconds: float) -> bool:
        """Wait until something is named, at most so long; return False, at once, where not
        everything is."""
        if self._kernel is None or not self._hears_index:
            return False
        self._has_events(seconds)
        return True

    def is_quiet(self) -> bool:
        """Return whether neither the files nor the index have changed for a moment, and nothing
        waits to be looked at. It costs next to nothing."""
        now = time.monotonic()
        return (
            self._kernel is not None
            and self._hears_index
            and not self._pending
            and not self._has_events()
            and now - self._heard > REST_SECONDS
            and now < self._due
        )

    def _has_events(self, seconds: float = 0.0) -> bool:
        """Return whether something is named by now, or within some seconds."""
        return self._poll is not None and bool(self._poll.poll(math.ceil(1000 * seconds)))

    def _extents(self) -> Extents:
        """Return the folders and objects that were named, with no folder twice."""
        by_folder: dict[Extent, list[Extent]] = {}
        for extent in self._pending:
            by_folder.setdefault(extent._replace(name=None), []).append(extent)
        extents: list[Extent] = []
        for whole, parts in sorted(by_folder.items()):
            extents += [whole] if whole in parts or len(parts) > MAX_NAMED else sorted(parts)
        return extents

    # --- watches

    def _begin(self) -> None:
        """Watch all folders anew, and let everything be looked at."""
        self.close()
        self.doubt()
        self._heard = time.monotonic()
        self._paths.clear()
        self._tried = time.monotonic()
        try:
            if not sys.platform.startswith("linux") or not is_local(self._folder.root):
                return
            from inotify_simple import INotify

            self._kernel = INotify()
            self._poll = select.poll()
            self._poll.register(self._kernel.fileno(), select.POLLIN)
            self._root = self._identity()
            self._watch("")
            self._hears_index = self._watch(OWN)
            for parent in (CLUSTER, NAMESPACES):
                self._watch_below(parent)
        except (
            ImportError,
            AttributeError,
            OSError,
        ):  # another system, no library, no permission, no more watches
            self.close()

    def _watch_below(self, path: str) -> None:
        """Watch a folder and those in it. Raises OSError."""
        if self._is_other(path) or not self._watch(path):
            return
        if (place := extent_of(path)) is None:
            for inner in self._folder.subfolders(path):
                self._watch_below(inner)
        else:
            self._pending.add(place)
            self._watch(f"{path}/{MANAGED}")

    def _is_other(self, path: str) -> bool:
        """Return whether no object is looked for at a path and below."""
        parent, *names = path.split("/")
        return (
            parent not in (CLUSTER, NAMESPACES)
            or any(name.startswith(".") or decode(name) is None for name in names)
            or ((place := extent_of(path)) is not None and place.resource in self._folder.volatile)
        )

    def _watch(self, path: str) -> bool:
        """Watch a folder, if it is there: the folder above it names it when it comes. Raises
        OSError."""
        assert self._kernel is not None
        mask = (
            MODIFY
            | ATTRIB
            | CLOSE_WRITE
            | MOVED_FROM
            | MOVED_TO
            | CREATE
            | DELETE
            | ONLYDIR
            | (DONT_FOLLOW if path else 0)
        )
        try:
            self._paths[self._kernel.add_watch(self._folder.absolute(path), mask)] = path
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False
            raise

        return True

    def _identity(self) -> tuple[int, int]:
        status = os.stat(self._folder.root)
        return status.st_dev, status.st_ino

    def _is_in_place(self) -> bool:
        """Return whether the folder at the path is the one that is watched."""
        try:
            return self._identity() == self._root
        except OSError:
            return False

    # --- names

    def _take_all(self, events: Iterable[Event]) -> bool:
        """Note what events name; return False where that is not all that has happened."""
        try:
            return all(map(self._take, events))
        except OSError:  # a new folder cannot be watched
            return False

    def _take(self, event: Event) -> bool:
        """Note what an event names; return False where it says no more than that something
        happened."""
        if event.mask & (Q_OVERFLOW | UNMOUNT):
            return False
        path = self._paths.get(event.wd)
        if event.mask & IGNORED:  # the folder was removed
            self._paths.pop(event.wd, None)
            self._hears_index = self._hears_index and path != OWN
            return True

        if path == "" and event.name == OWN:  # it was removed, and is made anew
            self._hears_index = self._watch(OWN)
        if (
            path is None or path == OWN or not event.name
        ):  # of the folder itself, which the folder above it names
            return True

        folder, _, last = path.rpartition("/")
        if last == MANAGED:
            path = folder
        place = extent_of(path)
        if place is not None and last != MANAGED:
            return self._take_in_folder(path, place, event.name, event.mask)
        if place is not None:
            self._pending.add(extent_at(f"{path}/{event.name}"))
            return True
        return self._take_above(f"{path}/{event.name}" if path else event.name, event.mask)

    def _take_in_folder(self, path: str, place: Extent, name: str, mask: int) -> bool:
        """Note a name in a folder of objects."""
        if name == MANAGED:
            if mask & (MOVED_FROM | MOVED_TO):
                return False
            self._watch_below(path)
        elif name.endswith(SUFFIX) and not name.startswith("."):
            self._pending.add(extent_at(f"{path}/{name}"))
        elif not name.startswith(".") and (mask & ISDIR or name.endswith(MANIFEST_SUFFIXES)):
            self._pending.add(place)  # no object's, but the user is to hear of it
        return True

    def _take_above(self, path: str, mask: int) -> bool:
        """Note something in a folder above those of objects."""
        if self._is_other(path):
            parent, *names = path.split("/")
            may_be_stray = bool(mask & ISDIR) or path.endswith(MANIFEST_SUFFIXES)
            return (
                parent not in (CLUSTER, NAMESPACES)
                or names[-1:] == []
                or names[-1][0] == "."
                or not may_be_stray
            )

        place = extent_of(path)
        if mask & ISDIR and mask & CREATE:
            self._watch_below(path)
            return True
        if mask & ISDIR and mask & DELETE and place is not None:
            self._pending.add(place)
            return True
        return False


def is_local(root: str) -> bool:
    """Return whether no other machine can change the files of a folder, as far as can be told."""
    path, best, kind = os.fsencode(os.path.realpath(root)), b"", b""
    with open(MOUNTS, "rb") as file:
        for line in file:
            fields, _, rest = line.partition(b" - ")
            point = re.sub(
                rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), fields.split(b" ")[4]
            )
            if (path == point or path.startswith(os.path.join(point, b""))) and len(point) >= len(
                best
            ):
                best, kind = point, rest.split(b" ")[0]
    return kind.decode() in LOCAL
