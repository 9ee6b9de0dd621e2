"""``.kubepy/index.db``: index, journal and change log in one SQLite database.

A row of ``objects`` is an object's newest committed state and what is known of its file. ``state`` says how far that
file is:

    PENDING   committed here, the file not yet replaced; its row is the truth. ``replaces`` is the stamp of the file
              as it was before, so that whoever finishes the work knows it from an edit by somebody else.
    WRITTEN   the file is replaced, but may be lost if the machine stops: verified after the next boot
    DURABLE   the file is known to be on disk

A row without ``json`` is a tombstone: the file is to be removed, or was and might come back with a lost power supply.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kubepy.storage.errors import FolderError
from kubepy.storage.keys import Key
from kubepy.storage.model import Problem

DURABLE = 0
WRITTEN = 1
PENDING = 2

SCHEMA_VERSION = 3
SCHEMA = """
CREATE TABLE objects (
    id INTEGER PRIMARY KEY,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL DEFAULT x'',
    racy INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL DEFAULT 0,
    replaces TEXT NOT NULL DEFAULT '',
    expires REAL,
    json TEXT,  -- the last column: what lies behind a long one is slow to reach
    UNIQUE (resource, namespace, name)
);
CREATE INDEX unsettled ON objects (state) WHERE state > 0;
CREATE INDEX tombstones ON objects (revision) WHERE json IS NULL;
CREATE INDEX expiring ON objects (expires) WHERE expires IS NOT NULL;
CREATE TABLE changes (
    revision INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    json TEXT
);
CREATE TABLE problems (
    path TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    line INTEGER NOT NULL,
    why TEXT NOT NULL,
    keeps_object INTEGER NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 0), ('compacted', 0);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE internal (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class DamagedError(Exception):
    """The index holds something that it cannot hold; it has to be made anew."""


class Stamp(NamedTuple):
    """How a file is known again without reading it."""

    mtime_ns: int
    size: int
    inode: int

    def __str__(self) -> str:
        return f"{self.mtime_ns}:{self.size}:{self.inode}"


KnownProblems = dict[str, tuple[Stamp, Problem]]


class Row(NamedTuple):
    """One row of ``objects``. ``racy``: the file was so new when read that an edit may hide behind the same stamp."""

    resource: str
    namespace: str
    name: str
    revision: int
    json: str | None
    mtime_ns: int = 0
    size: int = 0
    inode: int = 0
    digest: bytes = b""
    racy: int = 0
    state: int = DURABLE
    replaces: str = ""
    expires: float | None = None

    @property
    def key(self) -> Key:
        return Key(self.resource, self.namespace, self.name)

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.mtime_ns, self.size, self.inode)


COLUMNS = ", ".join(Row._fields)
# Comparing with files needs no JSON; "" keeps a live row apart from a tombstone.
COLUMNS_WITHOUT_JSON = COLUMNS.replace("json", "CASE WHEN json IS NULL THEN NULL ELSE '' END")
_UPSERT = f"""
INSERT INTO objects ({COLUMNS}) VALUES ({", ".join("?" * len(Row._fields))})
ON CONFLICT (resource, namespace, name) DO UPDATE SET
{", ".join(f"{column} = excluded.{column}" for column in Row._fields[3:])}
"""


class LogEntry(NamedTuple):
    """One row of ``changes``; ``json`` is the last state of a deleted object, None for the others."""

    revision: int
    type: str
    resource: str
    namespace: str
    name: str
    json: str | None


class Outlines:
    """The rows without their JSON ("" where there is some), as a connection remembers them: a look at a folder in which
    nothing has changed then costs no more than looking at its files.

    They are read again when somebody else has written; what the connection itself writes it tells. After a rollback it
    must :meth:`forget`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: dict[tuple[object, ...], Row] = {}
        self._version: int | None = None

    def all(self) -> list[Row]:
        """In no order."""
        # The version is asked for before the rows: a commit between the two shows in the next version.
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            found = self._connection.execute(f"SELECT {COLUMNS_WITHOUT_JSON} FROM objects")
            self._rows = {row[:3]: Row._make(row) for row in found}
            self._version = version
        return list(self._rows.values())

    def forget(self) -> None:
        self._version = None

    def put(self, rows: Iterable[Row]) -> None:
        self._rows.update((row[:3], row._replace(json=row.json and "")) for row in rows)

    def remove(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._rows.pop(key, None)

    def change(self, key: Key, change: Callable[[Row], Row]) -> None:
        if key in self._rows:
            self._rows[key] = change(self._rows[key])


class Database:
    """A connection to the index; its methods are the queries. Every statement outside ``begin`` is its own."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.in_memory = path == ":memory:"
        self.connection = sqlite3.connect(path, timeout=10.0, isolation_level=None)
        self.connection.execute("PRAGMA cache_size = -65536")  # KiB at most; SQLite's own limit is below our usual size
        self.identity = None if self.in_memory else identity(path)
        self._outlines = Outlines(self.connection)

    def create(self) -> None:
        self.connection.executescript(
            f"PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )

    def is_current(self) -> bool:
        """Whether this is a database of this version. Raises sqlite3.DatabaseError when it is none at all."""
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        return bool(version == SCHEMA_VERSION)

    def is_replaced(self) -> bool:
        """Whether the file at the path is another one now, or gone."""
        return not self.in_memory and identity(self.path) != self.identity

    def close(self) -> None:
        self.connection.close()

    # --- transactions ---

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads in the block see one committed state."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("COMMIT")

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[None]:
        """One transaction; ``durable``: on disk (one fsync) when the block is left."""
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self._outlines.forget()
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    # --- objects ---

    def row(self, key: Key) -> Row | None:
        found = self.connection.execute(
            f"SELECT {COLUMNS} FROM objects WHERE resource = ? AND namespace = ? AND name = ?", key
        ).fetchone()
        return Row._make(found) if found else None

    def outlines(self) -> list[Row]:
        """All rows, tombstones included, in no order; ``json`` is "" where there is some."""
        return self._outlines.all()

    def rows(self, resource: str | None = None, namespace: str | None = None) -> list[Row]:
        """The rows of a resource (None: of all) in a namespace (None: in all), tombstones included, in key order."""
        wanted = {"resource": resource, "namespace": namespace}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(f"{column} = :{column}" for column in given) or "TRUE"
        found = self.connection.execute(
            f"SELECT {COLUMNS} FROM objects WHERE {where} ORDER BY resource, namespace, name", given
        )
        return list(map(Row._make, found))

    def unsettled(self, states: tuple[int, ...]) -> list[Row]:
        """The rows that are PENDING, WRITTEN, or either, in key order."""
        found = self.connection.execute(
            f"SELECT {COLUMNS} FROM objects WHERE state > 0 AND state IN ({', '.join(map(str, states))}) "
            "ORDER BY resource, namespace, name"
        )
        return list(map(Row._make, found))

    def expired(self, now: float) -> list[Row]:
        found = self.connection.execute(
            f"SELECT {COLUMNS} FROM objects WHERE expires IS NOT NULL AND expires <= ? "
            "ORDER BY resource, namespace, name",
            (now,),
        )
        return list(map(Row._make, found))

    def put(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self.connection.executemany(_UPSERT, rows)
        self._outlines.put(rows)

    def remove(self, keys: Iterable[Key]) -> None:
        keys = list(keys)
        self.connection.executemany("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", keys)
        self._outlines.remove(keys)

    def restamp(self, row: Row, stamp: Stamp, digest: bytes, racy: bool) -> None:
        """The file of a settled row is another one with the same object in it."""
        self.connection.execute(
            "UPDATE objects SET mtime_ns = ?, size = ?, inode = ?, digest = ?, racy = ? "
            "WHERE resource = ? AND namespace = ? AND name = ?",
            (*stamp, digest, racy, *row.key),
        )
        self._outlines.change(
            row.key, lambda known: known._replace(**stamp._asdict(), digest=digest, racy=int(racy)))

    def set_state(self, keys: Iterable[Key], state: int) -> None:
        keys = list(keys)
        self.connection.executemany(
            f"UPDATE objects SET state = {state}, replaces = '' WHERE resource = ? AND namespace = ? AND name = ?", keys
        )
        for key in keys:
            self._outlines.change(key, lambda known: known._replace(state=state, replaces=""))

    def tombstones(self) -> int:
        (count,) = self.connection.execute("SELECT count(*) FROM objects WHERE json IS NULL").fetchone()
        return int(count)

    def resources(self) -> list[str]:
        found = self.connection.execute("SELECT DISTINCT resource FROM objects WHERE json IS NOT NULL ORDER BY 1")
        return [resource for (resource,) in found]

    # --- change log ---

    def log(self, entries: Iterable[LogEntry]) -> None:
        self.connection.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)", entries)

    def entries(self, since: int) -> list[LogEntry]:
        found = self.connection.execute("SELECT * FROM changes WHERE revision > ? ORDER BY revision", (since,))
        return list(map(LogEntry._make, found))

    def compact(self, until: int) -> None:
        self.connection.execute("DELETE FROM changes WHERE revision <= ?", (until,))
        self.set_counter("compacted", until)

    # --- problems ---

    def problems(self) -> KnownProblems:
        """Path to the stamp of the file and the problem."""
        found = self.connection.execute("SELECT * FROM problems ORDER BY path")
        return {path: (Stamp(*stamp), Problem(path, line, why, bool(keeps)))
                for path, *stamp, line, why, keeps in found}

    def put_problem(self, problem: Problem, stamp: Stamp) -> None:
        values = problem.path, *stamp, *problem[1:]
        self.connection.execute(f"INSERT OR REPLACE INTO problems VALUES ({', '.join('?' * len(values))})", values)

    def remove_problem(self, path: str) -> None:
        self.connection.execute("DELETE FROM problems WHERE path = ?", (path,))

    # --- counters and small values ---

    def is_built(self) -> bool:
        """Whether the index began with its cluster or has taken in the files once; a new one has yet to."""
        return self.value("internal", "built") is not None

    def set_built(self) -> None:
        self.set_value("internal", "built", "yes")

    def counter(self, name: str) -> int:
        (value,) = self.connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
        return int(value)

    def set_counter(self, name: str, value: int) -> None:
        self.connection.execute("UPDATE counters SET value = ? WHERE name = ?", (value, name))

    def value(self, table: str, name: str) -> str | None:
        """A value of ``meta`` (the users') or ``internal`` (storage's own)."""
        found = self.connection.execute(f"SELECT value FROM {table} WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def set_value(self, table: str, name: str, value: str | None) -> None:
        if value is None:
            self.connection.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
        else:
            self.connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (name, value))


def identity(path: str) -> tuple[int, int] | None:
    """Which file is at a path: device and inode, None when there is none. Raises FolderError for a symlink."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        raise FolderError(f"{path} is a symbolic link")
    return found.st_dev, found.st_ino


def remove_files(path: str) -> None:
    """Remove a database and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        try:
            os.unlink(path + suffix)
        except FileNotFoundError:
            continue


