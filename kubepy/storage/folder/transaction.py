"""The transaction of a state folder: what the index holds, and what the files do not let be
written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from math import inf

from kubepy.storage.errors import FolderError
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.commit_files import Commit, ObjectWrite
from kubepy.storage.folder.compare import doubt_problems, hides_folder
from kubepy.storage.folder.database import DamagedError, Database, Row
from kubepy.storage.folder.manifest import Decoder
from kubepy.storage.folder.outside_edits import ObservedEdits
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.scan import Extent, Obstacle, Obstacles
from kubepy.storage.folder.settings import SettingsEdit
from kubepy.storage.frozen import thawed
from kubepy.storage.model import Key, Object, Problem
from kubepy.storage.transaction import BufferedTransaction, Expiry, LogEntries, TransactionEntry


class FolderTransaction(BufferedTransaction[Row]):
    """Changes to a state folder. Edits from outside are looked for in what the transaction reads,
    unless all were recorded when it began; each counts as a write before the first read of its
    object.

    :param access: has the folder's lock.
    :param is_refreshed: all edits are recorded.
    """

    def __init__(
        self,
        access: Access,
        decoder: Decoder,
        volatile: Mapping[str, float],
        now: Callable[[], float],
        *,
        is_refreshed: bool,
    ) -> None:
        self._access = access
        self._database = access.opened()
        self._folder = access.folder
        self._decoder = decoder
        self._know_problems(problem for _, problem in self._database.problems().values())
        self._tombstones: dict[Key, Row] = {}
        self._is_refreshed = is_refreshed
        self._searched: set[Extent] = set()
        self._edits: list[ObservedEdits] = []
        self._edited: dict[Key, Row | None] = {}  # the rows after these edits
        super().__init__(self._database.counter("revision"), volatile, now, access.recorder())

    def _know_problems(self, problems: Iterable[Problem]) -> None:
        self._problems = {problem.path: problem for problem in problems}
        self._obstacles = Obstacles(
            Obstacle(problem.path, problem.reason)
            for problem in self._problems.values()
            if hides_folder(problem)
        )

    def database(self) -> Database:
        """Return the index, which is another one after damage to it has shown.

        An index that was rebuilt begins beyond the revisions of the old one, so this transaction's
        writes get new revisions then.
        """
        database = self._access.opened()
        if database is self._database:
            return database
        self._database = database
        self._edits.clear()  # they are in the new index
        self._edited.clear()
        self.renumber(database.counter("revision"))
        self.timeline = [entry._replace(revision=self._revision) for entry in self.timeline]
        return database

    def write_history(self, database: Database) -> None:
        """Write the entries of the timeline to the index, and the edits from outside of what was
        read."""
        for edits in self._edits:
            self._access.outside_edits().write(edits, overwritten=self._touched)
        if self._problems:
            doubt_problems(database, (Key(*entry[2:5]) for entry in self.log()))
        if self.timeline and self._recorder is not None:
            database.add_to_timeline(self.timeline, self._recorder.keep)

    # --- what is stored ---

    def load(self, key: Key) -> Row | None:
        if not self._is_refreshed:
            self._search(Extent(*key))
        if key in self._edited:
            return self._edited[key]
        try:
            row = self._existing_row(key)
        except (DamagedError, sqlite3.Error, TypeError, ValueError):
            row = self._access.run(lambda: self._existing_row(key))
        return self._note_tombstone(row)

    def load_together(self, keys: Collection[Key]) -> Iterable[tuple[Key, Row]]:
        if not self._is_refreshed:  # edits of each count before it is read
            return []
        with suppress(
            DamagedError, sqlite3.Error, TypeError, ValueError
        ):  # that shows again when one is loaded alone
            return [(row.key, row) for row in self.database().rows_of(keys) if row.json is not None]
        return []

    def _existing_row(self, key: Key) -> Row | None:
        """Return the row of a key. Raises DamagedError where there is one that cannot be looked
        up."""
        database = self.database()
        row = database.row(key)
        if (
            row is None
            and key.resource not in self._volatile
            and self._folder.stamp(path_of(key)) is not None
        ):
            database.require_absent([key])
        return row

    def load_all(self, resource: str, namespace: str | None) -> Iterable[Row]:
        self._search(Extent(resource, namespace))
        rows = self._access.run(lambda: self.database().rows(resource, namespace))
        edited = [
            row
            for key, row in self._edited.items()
            if row and key.resource == resource and namespace in (None, key.namespace)
        ]
        return [
            row
            for row in [*(row for row in rows if row.key not in self._edited), *edited]
            if self._note_tombstone(row)
        ]

    def _search(self, extent: Extent) -> None:
        """Take in the edits from outside of an extent that is read for the first time. Raises
        FolderError."""
        if (
            self._is_refreshed
            or extent.resource in self._volatile
            or not self._searched.isdisjoint(
                (Extent(extent.resource), extent._replace(name=None), extent)
            )
        ):
            return

        self._searched.add(extent)
        edits = self._access.run(
            lambda: self._access.outside_edits().observe(
                (extent,), self._revision, lambda key: key in self._entries or key in self._edited
            )
        )
        if edits is not None:
            self._take_in(edits)

    def _take_in(self, edits: ObservedEdits) -> None:
        self.database()
        self._revision = edits.revision
        self.timeline += edits.timeline
        self._know_problems(
            [
                *(problem for path, problem in self._problems.items() if path not in edits.solved),
                *(outcome.problem for outcome in edits.problems),
            ]
        )
        for key in edits.retained:  # the file is written again like that of any object that changes
            kept, known = edits.rows.pop(key), self._database.row(key)
            assert known is not None
            assert kept.json is not None
            entry = self._remember(key, known)
            entry.revision = kept.revision
            entry.set(thawed(self._decoder.object(key, kept.json, kept.revision)), kept.json)
            self._touched[key] = None
            self._tombstones[key] = known._replace(json=None)
            edits.log = [logged for logged in edits.log if Key(*logged[2:5]) != key]

        self._edited.update({**dict.fromkeys(edits.removed), **edits.restamped, **edits.rows})
        self._edits.append(edits)

    def _note_tombstone(self, row: Row | None) -> Row | None:
        """Keep the tombstone of an object that may be made again."""
        if row and row.json is None:
            self._tombstones[row.key] = row
        return row

    def load_expired(self, now: float, after: Expiry, limit: int) -> Iterable[Expiry]:
        return self._access.run(lambda: self.database().expired(now, after, limit))

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
        """Refuse a key whose file cannot be an object, or that is behind an obstacle. Raises
        FolderError."""
        if not self._is_refreshed:
            self._search(Extent(*key))
        if not self._problems:
            return
        if obstacle := self._obstacles.before(key.resource, key.namespace):
            raise FolderError(f"{self._folder.absolute(obstacle.path)}: {obstacle.reason}")
        problem = self._problems.get(path_of(key))
        if problem and not (reading and problem.keeps_object):
            raise FolderError(self._folder.absolute(str(problem)))

    # --- committing ---

    def is_empty(self) -> bool:
        return not self._edits and super().is_empty()

    def makes_room(self) -> bool:
        """Return whether the transaction takes next to no room on the disk: objects are deleted, or
        are on their way to that, and no file is added; or no object is written at all."""
        changes = list(self.changed())
        with_files = [change for change in changes if change.expires is None]
        if any(change.before is None for change in with_files):
            return False
        return not changes or any(
            change.object is None or "deletionTimestamp" in change.object["metadata"]
            for change in with_files
        )

    def log(self) -> LogEntries:
        return sorted([*super().log(), *(entry for edits in self._edits for entry in edits.log)])

    def to_commit(self, meta: Mapping[str, str | None], settings: SettingsEdit | None) -> Commit:
        """Return the writes as one commit, with values of the table ``meta`` and a change of
        ``kubepy.yaml``."""
        writes = [
            ObjectWrite(change.key, self._tombstones.get(change.key) or change.before, *change[2:])
            for change in self.changed()
        ]
        places = {
            key[:2]
            for edits in self._edits
            for key in (*edits.rows, *edits.restamped, *edits.removed, *edits.retained)
        }
        return Commit(
            writes,
            self.log(),
            self._revision,
            meta,
            settings,
            self.write_history,
            frozenset(places),
        )
