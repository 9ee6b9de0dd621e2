"""Finishing what a process that died left undone, and what a machine that stopped may have lost.

A killed process leaves PENDING rows. A power loss can also undo file operations whose folder entries were not yet on
disk, so after a new start of the machine (another boot id) the files of PENDING and WRITTEN rows are verified once: one
that is missing, or an older version that came back, is replaced again; a removed one that came back is removed again.
Any other content is an edit from outside, and stays. The file of a DURABLE row is the truth, with two exceptions: an
empty file is restored, and the file of a deleted object that came back (inode, size, time and content) is removed. All
of this is for the holder of the lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from kubepy.storage.folder import index
from kubepy.storage.folder.commit_files import settle_managers, stage, stage_managers, tidy
from kubepy.storage.folder.compare import digest_of, managers_path
from kubepy.storage.folder.database import DURABLE, NO_FILE, WRITTEN, Database, Row, Stamp, Version
from kubepy.storage.folder.files import MANAGED, Folder, UnreadableError
from kubepy.storage.folder.manifest import managers_of
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, SUFFIX, encode, path_of
from kubepy.storage.folder.scan import obstacle_before, survey


class Content(Enum):
    """What the file of a row holds."""

    MISSING = auto()
    EMPTY = auto()
    WANTED = auto()  # what the row says
    OLDER = auto()  # a version that the row replaced or removed
    OTHER = auto()  # an edit from outside


class Recovery:
    def __init__(self, database: Database, folder: Folder, boot: str | None) -> None:
        self.database = database
        self.folder = folder
        self.boot = boot

    def run(self, *, unclean: bool) -> None:
        """``unclean``: the last holder of the lock died with it."""
        rebooted = self.database.value("internal", "boot") != (self.boot or "")
        if unclean or rebooted:
            remove_leftovers(self.folder)
        rows = list(self._doubtful()) if rebooted else self.database.pending()
        if rows or rebooted:
            self._finish(rows, rebooted)

    def _doubtful(self) -> Iterator[Row]:
        """The rows whose files a power cut may have changed, in key order."""
        sizes = {(listing.directory.resource, listing.directory.namespace, file): stat.st_size
                 for listing in survey(self.folder).listings for file, stat in listing.files.items()}
        for row in sorted(self.database.outlines(), key=lambda row: row.key):
            size = sizes.get((row.resource, row.namespace, encode(row.name) + SUFFIX))
            is_in_doubt = row.state != DURABLE or size == 0 or (size is not None and row.json is None)
            if is_in_doubt and row.expires is None and (full := self.database.row(row.key)):
                yield full

    def _finish(self, rows: list[Row], rebooted: bool) -> None:
        finished = [self._finish_one(row, number, rebooted) for number, row in enumerate(rows)]
        tidy(self.folder, rows)
        if rebooted:
            self.folder.sync_all()
        with self.database.write(durable=rebooted):
            self.database.put(finished)
            self.database.set_value("internal", "boot", self.boot or "")

    def _finish_one(self, row: Row, number: int, rebooted: bool) -> Row:
        """Bring the files of a row to what it says; returns the row as it is then. What cannot be reached waits."""
        if any(obstacle_before(self.folder, path) for path in (path_of(row.key), managers_path(row.key))):
            return row
        content, stamp = self._examine(row)
        finished = row
        if row.json is None:
            if content is Content.OLDER or (rebooted and content is Content.EMPTY):
                self.folder.remove(path_of(row.key))
        elif self._must_write(row, content, rebooted):
            finished = self._write(row, number, stamp)
        elif content is Content.WANTED and stamp:
            finished = row._replace(**stamp._asdict())
        if content is not Content.OTHER:
            finished = finished._replace(managers=self._repair_managers(finished, number))
        if rebooted or row.state == DURABLE:
            return finished._replace(state=DURABLE, replaces="")
        return finished._replace(state=WRITTEN)

    def _must_write(self, row: Row, content: Content, rebooted: bool) -> bool:
        if content is Content.EMPTY:
            return rebooted
        return row.state != DURABLE and content in (Content.MISSING, Content.OLDER)

    def _examine(self, row: Row) -> tuple[Content, Stamp | None]:
        try:
            data, stamp, _ = self.folder.read(path_of(row.key))
        except FileNotFoundError:
            return Content.MISSING, None
        except UnreadableError:
            return Content.OTHER, self.folder.stamp(path_of(row.key))
        digest = digest_of(data)
        older = row.replaced() if row.json is not None else [row.version, *row.replaced()]
        if row.json is not None and digest == row.digest:
            return Content.WANTED, stamp
        if Version(stamp.mtime_ns, stamp.size, stamp.inode, digest) in older:
            return Content.OLDER, stamp
        return (Content.OTHER if data else Content.EMPTY), stamp

    def _write(self, row: Row, number: int, current: Stamp | None) -> Row:
        """Replace the file of a row; the versions that a power cut may bring back stay in ``replaces``."""
        path = path_of(row.key)
        self.folder.make_directory(path.rpartition("/")[0])
        staged = stage(self.folder, row, number, sync=True)
        self.folder.replace(staged.temporary, path)
        stamp = self.folder.stamp(path)
        older = row.replaces or NO_FILE
        return staged.row._replace(ctime_ns=stamp.ctime_ns if stamp else 0, replaces=older)

    def _repair_managers(self, row: Row, number: int) -> str:
        """Bring the file of managers to what the row says; returns its stamp."""
        path = managers_path(row.key)
        wanted = managers_of(row.json) if row.json is not None else None
        try:
            present = self.folder.read(path)[0] if self.folder.is_directory(path.rpartition("/")[0]) else None
        except (FileNotFoundError, UnreadableError):
            present = None
        if wanted is not None and present == wanted:
            return str(self.folder.stamp(path) or "")
        return settle_managers(self.folder, row, stage_managers(self.folder, row, number, sync=True))


def remove_leftovers(folder: Folder) -> None:
    """Remove temporary files and empty folders of a process that died."""
    index.remove_leftovers(folder.root)
    for listing in survey(folder).listings:
        path = listing.directory.path
        for one in (f"{path}/{MANAGED}", path):
            if folder.is_directory(one):
                folder.remove_temporaries(one)
                folder.remove_empty(one)
    for parent in (CLUSTER, NAMESPACES):
        for path in folder.subfolders(parent):
            folder.remove_empty(path)
        folder.remove_empty(parent)
