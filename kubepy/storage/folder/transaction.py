"""The transaction of a state folder: what the index holds, and what the files do not let be written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from math import inf

from kubepy.storage.errors import FolderError
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.commit_files import Commit, ObjectWrite
from kubepy.storage.folder.database import DamagedError, Database, Row
from kubepy.storage.folder.manifest import Decoder
from kubepy.storage.folder.paths import is_folder_path, path_of
from kubepy.storage.folder.reader import read_changes
from kubepy.storage.folder.scan import Obstacle, Obstacles
from kubepy.storage.folder.settings import SettingsEdit
from kubepy.storage.model import Change, Key, Object
from kubepy.storage.transaction import BufferedTransaction, TransactionEntry


class FolderTransaction(BufferedTransaction[Row]):
    """Changes to a state folder.

    :param access: has the folder's lock.
    """

    def __init__(self, access: Access, decoder: Decoder, volatile: Mapping[str, float],
                 now: Callable[[], float]) -> None:
        self._access = access
        self._database = access.opened()
        self._folder = access.folder
        self._decoder = decoder
        problems = [problem for _, problem in self._database.problems().values()]
        self._problems = {problem.path: problem for problem in problems}
        self._obstacles = Obstacles(
            Obstacle(problem.path, problem.reason) for problem in problems if is_folder_path(problem.path))
        self._tombstones: dict[Key, Row] = {}
        super().__init__(self._database.counter("revision"), volatile, now, access.recorder())

    def database(self) -> Database:
        """Return the index, which is another one after damage to it has shown.

        An index that was rebuilt begins beyond the revisions of the old one, so this transaction's writes get new
        revisions then.
        """
        database = self._access.opened()
        if database is self._database:
            return database
        self._database = database
        self._base = self._revision = database.counter("revision")
        for key in self._touched:
            entry = self._entries[key]
            if entry.deleted_at:
                self._revision += 1
                entry.deleted_at = self._revision
            if entry.is_there:
                self._revision += 1
            entry.revision = self._revision
            if entry.object is not None:
                entry.object["metadata"]["resourceVersion"] = str(self._revision)
        self.timeline = [entry._replace(revision=self._revision) for entry in self.timeline]
        return database

    def write_timeline(self, database: Database) -> None:
        """Write the entries of the timeline to the index."""
        if self.timeline and self._recorder is not None:
            database.add_to_timeline(self.timeline, self._recorder.keep)

    def changes(self, since: int) -> list[Change]:
        """Return changes as :meth:`FolderStore.changes` does, as things stood when the transaction began: without its
        own writes."""
        return self._access.run(lambda: read_changes(self.database(), since))

    # --- what is stored ---

    def load(self, key: Key) -> Row | None:
        try:
            row = self._database.existing_row(key)
        except (DamagedError, sqlite3.Error, TypeError, ValueError):
            row = self._access.run(lambda: self.database().existing_row(key))
        return self._note_tombstone(row)

    def load_all(self, resource: str, namespace: str | None) -> Iterable[Row]:
        rows = self._access.run(lambda: self.database().rows(resource, namespace))
        return [row for row in rows if self._note_tombstone(row)]

    def _note_tombstone(self, row: Row | None) -> Row | None:
        """Keep the tombstone of an object that may be made again."""
        if row and row.json is None:
            self._tombstones[row.key] = row
        return row

    def load_expired(self, now: float) -> Iterable[Row]:
        return self._access.run(lambda: self.database().expired(now))

    def next_expiry_after(self, now: float) -> float:
        first = self._access.run(lambda: self.database().next_expiry(now))
        return inf if first is None else first

    def decode(self, key: Key, entry: TransactionEntry[Row]) -> Object:
        assert entry.json is not None
        return self._decoder.object(key, entry.json, entry.revision)

    def is_listed(self, stored: Row) -> bool:
        problem = self._problems.get(path_of(stored.key)) if self._problems else None
        return stored.json is not None and (problem is None or problem.keeps_object)

    def check_access(self, key: Key, *, reading: bool = False) -> None:
        """Refuse a key whose file cannot be an object, or that is behind an obstacle. Raises FolderError."""
        if not self._problems:
            return
        if obstacle := self._obstacles.before(key.resource, key.namespace):
            raise FolderError(f"{self._folder.absolute(obstacle.path)}: {obstacle.reason}")
        problem = self._problems.get(path_of(key))
        if problem and not (reading and problem.keeps_object):
            raise FolderError(self._folder.absolute(str(problem)))

    # --- committing ---

    def to_commit(self, meta: Mapping[str, str | None], settings: SettingsEdit | None) -> Commit:
        """Return the writes as one commit, with values of the table ``meta`` and a change of ``kubepy.yaml``."""
        writes = [ObjectWrite(change.key, change.before or self._tombstones.get(change.key), *change[2:])
                  for change in self.changed()]
        return Commit(writes, self.log(), self._revision, meta, settings, self.write_timeline)
