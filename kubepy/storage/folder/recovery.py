"""Recover: finish the commit of a process that died, and put back what a power cut undid.

A killed process leaves PENDING rows. A power cut can also undo file operations whose folder entries
were not yet on disk, so after a new start of the machine (another boot id) the files of PENDING and
WRITTEN rows are verified once: one that is missing, or an older version that came back, is replaced
again; a removed one that came back is removed again. Any other content is an edit from outside, and
stays. The file of a DURABLE row is the truth, with two exceptions: an empty file is restored, and
the file of a deleted object that came back (inode, size, time and content) is removed. All of this
is for the holder of the lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum, auto

from kubepy.storage.folder import index, replacing
from kubepy.storage.folder.commit_files import (
    rescue,
    settle_managers,
    stage,
    stage_managers,
    temporary_path,
    tidy,
)
from kubepy.storage.folder.compare import digest_of, managers_path
from kubepy.storage.folder.database import DURABLE, NO_FILE, WRITTEN, Database, Row, Stamp, Version
from kubepy.storage.folder.files import MANAGED, StateFolder, UnreadableError
from kubepy.storage.folder.manifest import recorded_managers
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, SUFFIX, encode, parent_of, path_of
from kubepy.storage.folder.scan import find_obstacle, scan_objects


class FileState(Enum):
    """The content of a row's file, compared with the row."""

    MISSING = auto()
    EMPTY = auto()
    AS_RECORDED = auto()
    OLDER = auto()  # a version that the row replaced or removed
    OTHER = auto()  # an edit from outside


class Recovery:
    """Brings the files of a folder to what the rows of its index say."""

    def __init__(self, database: Database, folder: StateFolder, boot: str | None) -> None:
        self.database = database
        self.folder = folder
        self.boot = boot

    def run(self, *, unclean: bool) -> None:
        """Finish what was left. ``unclean``: the last holder of the lock died with it."""
        rebooted = self.database.value("internal", "boot") != (self.boot or "")
        rows = list(self._doubtful_rows()) if rebooted else self.database.pending()
        finished = [self._finish(row, rebooted) for row in rows]
        if unclean or rebooted:
            remove_leftovers(self.folder)  # but those of PENDING rows, which may hold edits
        if not rows and not rebooted:
            return
        tidy(self.folder, rows)
        if rebooted:
            self.folder.sync_all()
        with self.database.write(durable=rebooted):
            self.database.put(finished)
            self.database.set_value("internal", "boot", self.boot or "")

    def _doubtful_rows(self) -> Iterator[Row]:
        """Yield the rows whose files a power cut may have changed, in key order."""
        sizes = {
            (listing.directory.resource, listing.directory.namespace, name): status.st_size
            for listing in scan_objects(self.folder).listings
            for name, status in listing.files.items()
        }
        for row in sorted(self.database.row_summaries(), key=lambda row: row.key):
            size = sizes.get((row.resource, row.namespace, encode(row.name) + SUFFIX))
            is_doubtful = (
                row.state != DURABLE or size == 0 or (size is not None and row.json is None)
            )
            if is_doubtful and row.expires is None and (full := self.database.row(row.key)):
                yield full

    def _finish(self, row: Row, rebooted: bool) -> Row:
        """Bring the files of a row to what it says; return the row as it is then. A file behind an
        obstacle waits."""
        path = path_of(row.key)
        if any(find_obstacle(self.folder, file) for file in (path, managers_path(row.key))):
            return row
        rescue(self.folder, row)
        file_state, stamp, digest = self._examine(row)
        finished = row
        if row.json is None:
            if file_state is FileState.OLDER or (rebooted and file_state is FileState.EMPTY):
                replacing.remove(self.folder, temporary_path(row, parent_of(path)), path, digest)
        elif (
            rebooted
            if file_state is FileState.EMPTY
            else row.state != DURABLE and file_state in (FileState.MISSING, FileState.OLDER)
        ):
            # The versions that a power cut may bring back stay in ``replaces``.
            finished = self._write(row, file_state, digest)._replace(
                racy=1, replaces=row.replaces or NO_FILE
            )
        elif file_state is FileState.AS_RECORDED and stamp:
            finished = row._replace(**stamp._asdict(), racy=1)

        if file_state is not FileState.OTHER:
            finished = finished._replace(managers=self._finish_managers(finished))
        if rebooted or row.state == DURABLE:
            return finished._replace(state=DURABLE, replaces="")
        return finished._replace(state=WRITTEN)

    def _write(self, row: Row, present: FileState, digest: bytes) -> Row:
        """Write the file of a row, unless somebody has edited it since; return the row with the new
        file's stamp.

        :param present: what is there, whose content has the digest.
        """
        path = path_of(row.key)
        self.folder.make_directory(parent_of(path))
        assert row.json is not None
        staged = stage(self.folder, row, json.loads(row.json), sync=True)
        if present is FileState.MISSING:
            is_placed = replacing.create(self.folder, staged.temporary, path)
        else:
            is_placed = replacing.replace(
                self.folder, staged.temporary, path, digest, staged.row.digest
            )
        stamp = self.folder.stamp(path) if is_placed else None
        return staged.row._replace(ctime_ns=stamp.ctime_ns) if stamp else staged.row

    def _examine(self, row: Row) -> tuple[FileState, Stamp | None, bytes]:
        """Compare the file of a row with it; return its stamp and the digest of its content as
        well."""
        try:
            data, stamp, _ = self.folder.read(path_of(row.key))
        except FileNotFoundError:
            return FileState.MISSING, None, b""
        except UnreadableError:
            return FileState.OTHER, self.folder.stamp(path_of(row.key)), b""
        digest = digest_of(data)
        older = row.replaced() if row.json is not None else [row.version, *row.replaced()]
        if row.json is not None and digest == row.digest:
            return FileState.AS_RECORDED, stamp, digest
        if Version(stamp.mtime_ns, stamp.size, stamp.inode, digest) in older:
            return FileState.OLDER, stamp, digest
        return (FileState.OTHER if data else FileState.EMPTY), stamp, digest

    def _finish_managers(self, row: Row) -> str:
        """Bring the file of managers to what the row says; return its stamp."""
        path = managers_path(row.key)
        data = recorded_managers(row.json) if row.json is not None else None
        try:
            present = (
                self.folder.read(path)[0] if self.folder.is_directory(parent_of(path)) else None
            )
        except (FileNotFoundError, UnreadableError):
            present = None
        if data is not None and present == data:
            return str(self.folder.stamp(path) or "")
        return settle_managers(self.folder, row, stage_managers(self.folder, row, data, sync=True))


def remove_leftovers(folder: StateFolder) -> None:
    """Remove temporary files and empty folders of a process that died."""
    index.remove_leftovers(folder.root)
    for listing in scan_objects(folder).listings:
        for path in (f"{listing.directory.path}/{MANAGED}", listing.directory.path):
            if folder.is_directory(path):
                folder.remove_temporaries(path)
                folder.remove_empty(path)
    for parent in (CLUSTER, NAMESPACES):
        for path in folder.subfolders(parent):
            folder.remove_empty(path)
        folder.remove_empty(parent)
