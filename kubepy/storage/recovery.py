"""Finishing what a process that died left undone, and what a machine that stopped may have lost.

A killed process leaves PENDING rows. A power loss can also undo file operations that were done but not yet on disk, so
after a new start of the machine (another boot id) every file that was WRITTEN before is verified once: one that is
missing, older than its row or unreadable is written anew, a removed one that came back is removed again. A file that is
newer and sound was edited from outside, and stays. All of this is for the holder of the lock.
"""

from __future__ import annotations

from kubepy.storage.compare import digest_of, managers_path, read_managers
from kubepy.storage.database import DURABLE, PENDING, WRITTEN, Database, Row, Stamp
from kubepy.storage.folder import MANAGED, Folder, UnreadableError
from kubepy.storage.journal import Staged, settle, settle_managers, stage, tidy
from kubepy.storage.keys import path_of
from kubepy.storage.manifest import ContentError, managers_of, parse
from kubepy.storage.survey import obstacle_before, survey


class Recovery:
    def __init__(self, database: Database, folder: Folder, boot: str | None) -> None:
        self.database = database
        self.folder = folder
        self.boot = boot
        self.sync = boot is None

    def run(self, *, unclean: bool) -> None:
        """``unclean``: the last holder of the lock died with it."""
        rebooted = self.database.value("internal", "boot") != (self.boot or "")
        if unclean or rebooted:
            remove_leftovers(self.folder)
        rows = self.database.unsettled((PENDING, WRITTEN) if rebooted else (PENDING,))
        if rows or rebooted:
            self._finish(rows, rebooted)

    def _finish(self, rows: list[Row], rebooted: bool) -> None:
        finished = [self._finish_one(row, number, rebooted) for number, row in enumerate(rows)]
        tidy(self.folder, rows, sync=self.sync)
        with self.database.write(durable=False):
            self.database.put(row for row in finished if row is not None)
            self.database.remove(row.key for row, kept in zip(rows, finished, strict=True) if kept is None)
            self.database.set_value("internal", "boot", self.boot or "")

    def _finish_one(self, row: Row, number: int, rebooted: bool) -> Row | None:
        """What the row is afterwards; None: a tombstone that is not needed any more. What cannot be reached waits."""
        if any(obstacle_before(self.folder, path) for path in (path_of(row.key), managers_path(row.key))):
            return row
        if row.json is None:
            return self._finish_removal(row, rebooted)
        settled = row._replace(state=DURABLE if rebooted or self.sync else WRITTEN, replaces="")
        if not self._must_write(row, rebooted):
            self._repair_managers(row)
            return settled
        return self._write(row, number)

    def _finish_removal(self, row: Row, rebooted: bool) -> Row | None:
        stamp = self.folder.stamp(path_of(row.key))
        settle(self.folder, Staged(row, ""), sync=self.sync)
        is_needed = not rebooted or stamp == row.stamp
        return row._replace(state=WRITTEN) if is_needed else None

    def _must_write(self, row: Row, rebooted: bool) -> bool:
        stamp = self.folder.stamp(path_of(row.key))
        if stamp is None or str(stamp) == row.replaces:
            return True
        return rebooted and not self._is_sound(row, stamp)

    def _is_sound(self, row: Row, stamp: Stamp) -> bool:
        """Whether a file is what the row says, or a newer edit from outside."""
        try:
            data, _, _ = self.folder.read(path_of(row.key))
        except (FileNotFoundError, UnreadableError):
            return False
        return digest_of(data) == row.digest or (stamp.mtime_ns > row.mtime_ns and _is_readable(data))

    def _write(self, row: Row, number: int) -> Row:
        path = path_of(row.key)
        self.folder.make_directory(path.rpartition("/")[0])
        current = self.folder.stamp(path)
        staged = stage(self.folder, row._replace(replaces=str(current) if current else ""), number, sync=self.sync)
        settle(self.folder, staged, sync=self.sync)
        return staged.row._replace(state=DURABLE if self.sync else WRITTEN, replaces="")

    def _repair_managers(self, row: Row) -> None:
        wanted = managers_of(row.json) if row.json else None
        if (wanted is None) != (read_managers(self.folder, row.key) is None):
            settle_managers(self.folder, row, sync=self.sync)


def remove_leftovers(folder: Folder) -> None:
    """Remove temporary files and empty folders of a process that died."""
    for listing in survey(folder).listings:
        path = listing.directory.path
        for one in (f"{path}/{MANAGED}", path):
            if folder.is_directory(one):
                folder.remove_temporaries(one)
                folder.remove_empty(one)


def _is_readable(data: bytes) -> bool:
    try:
        parse(data)
    except ContentError:
        return False
    return True
