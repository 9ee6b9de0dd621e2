"""Transactions: changes that are gathered in memory and become visible together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from kubepy.storage.errors import ConflictError, ExistsError, FolderError, MissingError
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.commit_files import Commit, ObjectWrite
from kubepy.storage.folder.database import DamagedError, Database, LogEntry, Row
from kubepy.storage.folder.manifest import Decoder, to_json
from kubepy.storage.folder.paths import is_folder_path, path_of
from kubepy.storage.folder.reader import read_changes
from kubepy.storage.folder.scan import Obstacle, Obstacles
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Change, Key, Object, Objects

Changes = list[Change]
Writes = list[ObjectWrite]
LogEntries = list[LogEntry]


class _Entry:
    """One object as the transaction sees it: its row before, and its state now (``json`` None: not there)."""

    __slots__ = ("before", "deleted_at", "json", "object", "revision")

    def __init__(self, before: Row | None) -> None:
        self.before = before if before and before.json is not None else None
        self.json = before.json if before else None
        self.revision = before.revision if before else 0
        self.object: Object | None = None
        self.deleted_at = 0  # the revision at which the object before was deleted, if it was


class FolderTransaction:
    """Changes that become visible together. Reads see the transaction's own writes.

    Objects that come out are shared: never change one. Objects that go in belong to the transaction from then on.

    :param access: has the folder's lock.
    :param volatile: resources that are kept in the index alone, and for how many seconds.
    """

    def __init__(self, access: Access, decoder: Decoder, volatile: Mapping[str, float]) -> None:
        self._access = access
        self._database = access.opened()
        self._folder = access.folder
        self._decoder = decoder
        self._volatile = volatile
        self._now = access.now()
        problems = [problem for _, problem in self._database.problems().values()]
        self._problems = {problem.path: problem for problem in problems}
        self._obstacles = Obstacles(
            Obstacle(problem.path, problem.reason) for problem in problems if is_folder_path(problem.path))
        self._revision = self._database.counter("revision")
        self._entries: dict[Key, _Entry] = {}
        self._tombstones: dict[Key, Row] = {}
        self._listed: set[tuple[str, str | None]] = set()
        self._keys: dict[str, set[Key]] = {}  # of the objects there are, by resource, as far as loaded
        self._lists: dict[tuple[str, str | None], Objects] = {}
        self._touched: dict[Key, None] = {}

    def database(self) -> Database:
        """Return the index, which is another one after damage to it has shown.

        An index that was rebuilt begins beyond the revisions of the old one, so this transaction's writes get new
        revisions then.
        """
        database = self._access.opened()
        if database is self._database:
            return database
        self._database = database
        self._revision = database.counter("revision")
        for key in self._touched:
            entry = self._entries[key]
            if entry.deleted_at:
                self._revision += 1
                entry.deleted_at = self._revision
            if entry.json is not None:
                self._revision += 1
            entry.revision = self._revision
            if entry.object is not None:
                entry.object["metadata"]["resourceVersion"] = str(self._revision)
        return database

    @property
    def revision(self) -> int:
        """The newest revision: the store's at the start, then that of each write."""
        return self._revision

    # --- reading ---

    def changes(self, since: int) -> Changes:
        """Return changes as :meth:`FolderStore.changes` does, as things stood when the transaction began: without its
        own writes."""
        return self._access.run(lambda: read_changes(self.database(), since))

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none. Raises FolderError where the object's file cannot be one."""
        self._check_file(key, reading=True)
        return self._object(key, self._entry(key))

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        """Return all objects of a resource (in one namespace, or None: everywhere), in key order."""
        objects = self._lists.get((resource, namespace))
        if objects is None:
            if (resource, namespace) not in self._listed and (resource, None) not in self._listed:
                for row in self._access.run(lambda: self.database().rows(resource, namespace)):
                    if row.key not in self._entries:
                        self._remember(row.key, row)
                self._listed.add((resource, namespace))
            keys = [key for key in self._keys.get(resource, ()) if namespace is None or key.namespace == namespace]
            objects = [obj for key in sorted(keys) if (obj := self._object(key, self._entry(key))) is not None]
            self._lists[resource, namespace] = objects
        return objects[:]

    def _entry(self, key: Key) -> _Entry:
        if entry := self._entries.get(key):
            return entry
        try:
            row = self._database.existing_row(key)
        except (DamagedError, sqlite3.Error, TypeError, ValueError):
            row = self._access.run(lambda: self.database().existing_row(key))
        return self._remember(key, row)

    def _remember(self, key: Key, row: Row | None) -> _Entry:
        if row and row.expires is not None and row.expires <= self._now:
            row = None
        if row and row.json is None:
            self._tombstones[key] = row
        entry = self._entries[key] = _Entry(row)
        problem = self._problems.get(path_of(key)) if self._problems else None
        is_left_out = problem is not None and not problem.keeps_object
        if entry.json is not None and not is_left_out:
            self._keys.setdefault(key.resource, set()).add(key)
        return entry

    def _object(self, key: Key, entry: _Entry) -> Object | None:
        if entry.object is None and entry.json is not None:
            entry.object = self._decoder.object(key, entry.json, entry.revision)
        return entry.object

    def _check_file(self, key: Key, *, reading: bool = False) -> None:
        if not self._problems:
            return
        if obstacle := self._obstacles.before(key.resource, key.namespace):
            raise FolderError(f"{self._folder.absolute(obstacle.path)}: {obstacle.reason}")
        problem = self._problems.get(path_of(key))
        if problem and not (reading and problem.keeps_object):
            raise FolderError(self._folder.absolute(str(problem)))

    # --- writing ---

    def create(self, key: Key, obj: Object) -> Object:
        """Store a new object; return it with its resourceVersion. Raises ExistsError, FolderError, ValueError."""
        self._check_file(key)
        entry = self._entry(key)
        if entry.json is not None:
            raise ExistsError(f"{_describe(key)} is there already")
        return self._put(key, entry, obj, _encode(key, obj))

    def update(self, key: Key, obj: Object, *, expected: str | None = None) -> Object:
        """Replace an object; with ``expected``, only if it has that resourceVersion.

        One that changes nothing writes nothing and returns what is there. Raises MissingError, ConflictError,
        FolderError, ValueError.
        """
        entry = self._existing(key, expected)
        text = _encode(key, obj)
        if text == entry.json:
            current = self._object(key, entry)
            assert current is not None
            return current
        return self._put(key, entry, obj, text)

    def delete(self, key: Key, *, expected: str | None = None) -> Object:
        """Remove an object; return its last state. Raises MissingError, ConflictError, FolderError."""
        entry = self._existing(key, expected)
        last = self._object(key, entry)
        assert last is not None
        self._touch(key, entry)
        if entry.before and not entry.deleted_at:
            entry.deleted_at = self._revision
        entry.json = entry.object = None
        self._keys[key.resource].discard(key)
        return last

    def _existing(self, key: Key, expected: str | None) -> _Entry:
        self._check_file(key)
        entry = self._entry(key)
        if entry.json is None:
            raise MissingError(f"{_describe(key)} is not there")
        if expected is not None and expected != str(entry.revision):
            raise ConflictError(f"{_describe(key)} has resourceVersion {entry.revision}, not {expected}")
        return entry

    def _put(self, key: Key, entry: _Entry, obj: Object, text: str) -> Object:
        self._touch(key, entry)
        entry.json = text
        entry.object = obj
        obj["metadata"]["resourceVersion"] = str(self._revision)
        self._keys.setdefault(key.resource, set()).add(key)
        return obj

    def _touch(self, key: Key, entry: _Entry) -> None:
        """Give an entry that changes the next revision."""
        self._revision += 1
        entry.revision = self._revision
        self._touched[key] = None
        self._lists.pop((key.resource, None), None)
        self._lists.pop((key.resource, key.namespace), None)

    # --- committing ---

    def is_empty(self) -> bool:
        """Return whether there is nothing to commit."""
        return not self._writes()

    def to_commit(self, expired: Iterable[Row]) -> Commit:
        """Return the writes, and the removal of ``expired`` objects, as one commit."""
        for row in expired:
            if row.key not in self._touched:
                entry = self._entries[row.key] = _Entry(row)
                self._touch(row.key, entry)
                entry.deleted_at, entry.json = self._revision, None
        log: LogEntries = []
        for key in self._touched:
            entry = self._entries[key]
            if entry.before and entry.deleted_at:
                log.append(LogEntry(entry.deleted_at, DELETED, *key, entry.before.json))
            if entry.json is not None:
                is_new = entry.before is None or entry.deleted_at
                log.append(LogEntry(entry.revision, ADDED if is_new else MODIFIED, *key, None))
        return Commit(self._writes(), log, self._revision)

    def _writes(self) -> Writes:
        """Return the writes in key order, without objects that were made and deleted within the transaction."""
        writes: Writes = []
        for key in sorted(self._touched):
            entry = self._entries[key]
            if entry.json is None and entry.before is None:
                continue
            seconds = self._volatile.get(key.resource)
            expires = None if seconds is None else self._now + seconds
            before = entry.before or self._tombstones.get(key)
            writes.append(ObjectWrite(key, before, entry.json, entry.revision, expires))
        return writes


def _encode(key: Key, obj: Object) -> str:
    """Return the JSON of an object that is to be stored under a key. Raises ValueError where it cannot be."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != key.name:
        raise ValueError(f"the object of {_describe(key)} must carry its name")
    if (metadata.get("namespace") or "") != key.namespace:
        raise ValueError(f"the object of {_describe(key)} must carry its namespace")
    return to_json(obj)


def _describe(key: Key) -> str:
    return f'{key.resource} "{f"{key.namespace}/" if key.namespace else ""}{key.name}"'
