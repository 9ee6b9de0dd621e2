"""``.kubepy/index.db``: rows of objects, journal and change log in one SQLite database.

A row of ``objects`` is an object's newest committed state, and the stamp and digest of its file.
``state`` says how far the file has followed:

    PENDING   committed here, the file not yet replaced; the row is the truth
    WRITTEN   the file is replaced, but its folder entry may be lost if the machine stops: verified after the next boot
    DURABLE   the file is known to be on disk; from then on the file is the truth

``replaces`` lists the versions of the file that a power cut may bring back: the one that a PENDING
row replaces first (``-`` when there was none), then those before it that are not known to be gone
(:class:`Version`). A DURABLE row has none. ``managers`` is the stamp of the object's file of
managers, "" without one. ``checksum`` is over what makes the object (:func:`checksum`).

A row without ``json`` is a tombstone: the file is to be removed, or was and might come back with a
lost power supply.
"""  # noqa: E501

from __future__ import annotations

import os
import sqlite3
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.lazy import lazy_imports
from kubepy.storage.errors import FolderError
from kubepy.storage.folder.paths import SUFFIX, encode
from kubepy.storage.model import Key, LogEntry, Problem

with lazy_imports():
    from kubepy.storage import timeline
    from kubepy.storage.folder import indexsql

if TYPE_CHECKING:
    from kubepy.storage.indexes import FieldIndex
    from kubepy.storage.timeline import TimelineEntry

DURABLE = 0
WRITTEN = 1
PENDING = 2

MAX_REVISION = 2**62
BUSY_SECONDS = 10.0  # how long SQLite waits for another process that writes
SCHEMA_VERSION = 4
# Made when it is first needed: indexes of earlier versions have none.
TIMELINE_SCHEMA = """
CREATE TABLE IF NOT EXISTS timeline (
    number INTEGER PRIMARY KEY,  -- in the order of the writes, without gaps
    revision INTEGER NOT NULL,
    at INTEGER NOT NULL,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    views TEXT NOT NULL,
    note TEXT NOT NULL,
    is_outside INTEGER NOT NULL
);
"""
SCHEMA = (
    """
CREATE TABLE objects (
    id INTEGER PRIMARY KEY,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    ctime_ns INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL DEFAULT x'',
    racy INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL DEFAULT 0,
    replaces TEXT NOT NULL DEFAULT '',
    managers TEXT NOT NULL DEFAULT '',
    canonical INTEGER NOT NULL DEFAULT 0,
    expires REAL,
    checksum INTEGER NOT NULL,
    json TEXT,  -- the last column: what lies behind a long one is slow to reach
    UNIQUE (resource, namespace, name)
);
CREATE INDEX unsettled ON objects (state) WHERE state > 0;
CREATE INDEX tombstones ON objects (revision) WHERE json IS NULL;
CREATE INDEX expiring ON objects (expires, resource, namespace, name) WHERE expires IS NOT NULL;
CREATE INDEX racy ON objects (resource, namespace) WHERE racy > 0;
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
    ctime_ns INTEGER NOT NULL,
    line INTEGER NOT NULL,
    why TEXT NOT NULL,
    keeps_object INTEGER NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 0), ('compacted', 0);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE internal (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
"""  # noqa: E501
    + TIMELINE_SCHEMA
)


class DamagedError(Exception):
    """The index holds something that kubepy never writes; it must be rebuilt."""


# The errors of SQLite for a file that is no database, is cut short, or lacks a table, a column or a
# key.
_DAMAGE = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_NOTADB,
    }
)


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error says that the index is no sound database, so that making it anew
    helps."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # an error of Python's module itself
        return "Could not decode to UTF-8" in str(error)
    return code == sqlite3.SQLITE_IOERR_SHORT_READ or (code & 0xFF) in _DAMAGE


class Stamp(NamedTuple):
    """The times, size and inode of a file. Nobody can set the change time, so an edit shows in
    it."""

    mtime_ns: int
    size: int
    inode: int
    ctime_ns: int

    def __str__(self) -> str:
        return f"{self.mtime_ns}:{self.size}:{self.inode}:{self.ctime_ns}"


class Version(NamedTuple):
    """A version of a file that a power cut may bring back: its stamp without the change time (which
    moves when the file is removed), and the digest of its content."""

    mtime_ns: int
    size: int
    inode: int
    digest: bytes

    def __str__(self) -> str:
        return f"{self.mtime_ns}:{self.size}:{self.inode}:{self.digest.hex()}"

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read what ``str`` wrote. Raises ValueError."""
        mtime_ns, size, inode, digest = text.split(":")
        return cls(int(mtime_ns), int(size), int(inode), bytes.fromhex(digest))


KnownProblems = dict[str, tuple[Stamp, Problem]]  # by path
Place = tuple[str, str]  # a resource and a namespace


class Row(NamedTuple):
    """One row of ``objects``.

    :ivar racy: 1 if the file was so new when read or written that an edit may hide behind the same
        stamp.
    :ivar canonical: 1 if kubepy wrote the file, in canonical form; 0 if somebody else may have
        given it another form.
    """

    resource: str
    namespace: str
    name: str
    revision: int
    json: str | None
    mtime_ns: int = 0
    size: int = 0
    inode: int = 0
    ctime_ns: int = 0
    digest: bytes = b""
    racy: int = 0
    state: int = DURABLE
    replaces: str = ""
    managers: str = ""
    canonical: int = 0
    expires: float | None = None

    @property
    def key(self) -> Key:
        return Key(self.resource, self.namespace, self.name)

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.mtime_ns, self.size, self.inode, self.ctime_ns)

    @property
    def version(self) -> Version:
        return Version(self.mtime_ns, self.size, self.inode, self.digest)

    def replaced(self) -> list[Version]:
        """Return the versions of the file that a power cut may bring back, newest first."""
        return [Version.parse(text) for text in self.replaces.split() if text != NO_FILE]


NO_FILE = "-"  # in ``replaces``: there was no file


def checksum(row: Row) -> int:
    """Return the checksum of a row's key, revision and JSON. The stamp and digest are compared with
    the file anyway."""
    head = f"{row.resource}/{row.namespace}/{row.name}/{row.revision}/{row.expires}"
    return zlib.crc32((row.json or "").encode(), zlib.crc32(head.encode()))


def _sound_row(columns: Iterable[Any], stored_checksum: int) -> Row:
    """Return the row of these columns. Raises DamagedError for one whose checksum or type of a
    column is wrong."""
    row = Row._make(columns)
    is_sound = type(row.digest) is bytes and isinstance(row.expires, float | None)
    if stored_checksum != checksum(row) or not is_sound:
        raise DamagedError(f"the row of {row.resource} {row.name} has another checksum")
    return row


COLUMNS = ", ".join(Row._fields)
# Comparing with files needs no JSON; "" keeps a live row apart from a tombstone.
COLUMNS_WITHOUT_JSON = COLUMNS.replace("json", "CASE WHEN json IS NULL THEN NULL ELSE '' END")
_ROW_OF_KEY = f"""
SELECT {COLUMNS}, checksum FROM objects WHERE resource = ? AND namespace = ? AND name = ?
"""
_WRITTEN_COLUMNS = (*Row._fields, "checksum")
_UPSERT = f"""
INSERT INTO objects ({", ".join(_WRITTEN_COLUMNS)}) VALUES ({", ".join("?" * len(_WRITTEN_COLUMNS))})
ON CONFLICT (resource, namespace, name) DO UPDATE SET
{", ".join(f"{column} = excluded.{column}" for column in _WRITTEN_COLUMNS[3:])}
"""  # noqa: E501


# SQLite's index is entered once for each resource.
_RESOURCES = """
WITH RECURSIVE steps (step) AS (
    SELECT min(resource) FROM objects
    UNION ALL SELECT (SELECT min(resource) FROM objects WHERE resource > step) FROM steps WHERE step IS NOT NULL
)
SELECT step FROM steps WHERE EXISTS (SELECT 1 FROM objects WHERE resource = step AND json IS NOT NULL)
"""  # noqa: E501

SUM = (
    "files:"  # in ``internal``, before a place: the sum of its files' hashes, as its rows have them
)
SUMS = "sums"  # the counter that follows "revision" as long as all that write keep the sums
_SUM_MASK = 2**64 - 1


def file_hash(name: str, stamp: tuple[int, int, int, int]) -> int:
    """Return a hash of a file's name and stamp; it is the same in every process of one Python."""
    return hash((zlib.crc32(name.encode("utf-8", "surrogatepass")), *stamp))


def managers_hash(name: str, stamp: str) -> int:
    """Return a hash of the name and the stamp of a file of managers, 0 without one."""
    text = f"{name} {stamp}".encode("utf-8", "surrogatepass")
    return hash((zlib.crc32(text), zlib.adler32(text))) if stamp else 0


def row_hash(row: Row) -> int:
    """Return the hashes of a row's file and its file of managers, 0 for a row without a file."""
    if row.json is None or row.expires is not None:
        return 0
    name = encode(row.name) + SUFFIX
    return file_hash(name, (row.mtime_ns, row.size, row.inode, row.ctime_ns)) + managers_hash(
        name, row.managers
    )


def sum_of(hashes: Iterable[int]) -> int:
    """Return the sum of the hashes of a folder's files."""
    return sum(hashes) & _SUM_MASK


def sum_of_rows(rows: Iterable[Row]) -> int | None:
    """Return the sum of the hashes of one place's files, None where a commit is under way."""
    rows = list(rows)
    return None if any(row.state == PENDING for row in rows) else sum_of(map(row_hash, rows))


class Database:
    """A connection to the index; its methods are the queries. A statement outside :meth:`write`
    commits on its own."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.in_memory = path == ":memory:"
        self.connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )  # threads of a Python program take turns
        try:  # KiB at most; SQLite's own limit is below our usual size
            self.connection.execute("PRAGMA cache_size = -65536")
        except sqlite3.Error:
            self.connection.close()
            raise
        self.identity = None if self.in_memory else identity(path)
        self._indexes: set[str] = set()  # the names of those that were there at the last look
        self._has_made_indexes = False

    def create(self, revision: int = 0) -> None:
        """Make the tables. ``revision``: the newest one of those that cannot be told any more."""
        self.connection.executescript(
            f"PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {SCHEMA} UPDATE counters SET value = "
            f"{revision}; "
            f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )

    def new_connection(self) -> Database:
        """Return another connection, which any thread may use; to an index in memory it is a
        copy."""
        copy = Database(self.path)
        copy.connection.execute("PRAGMA cache_size = -8192")
        if self.in_memory:
            self.connection.backup(copy.connection)
        return copy

    def is_current(self) -> bool:
        """Return whether this is a database of this version. Raises sqlite3.DatabaseError when it
        is none at all."""
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        return bool(version == SCHEMA_VERSION)

    def is_replaced(self) -> bool:
        """Return whether the file at the path is another one now, or none."""
        return not self.in_memory and identity(self.path) != self.identity

    def close(self) -> None:
        self.connection.close()

    # --- transactions ---

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads in the block see one committed state."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("COMMIT")

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[None]:
        """Run the block as one transaction; ``durable``: it is on disk (one fsync) when the block
        is left."""
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    # --- objects ---

    def row(self, key: Key) -> Row | None:
        """Return the row of a key. Raises DamagedError."""
        rows = self.rows_of([key])
        return rows[0] if rows else None

    def rows_of(self, keys: Iterable[Key]) -> list[Row]:
        """Return the rows of some keys, in their order. Raises DamagedError."""
        # Each is looked up alone: for a list of names SQLite makes a table first, which takes
        # longer than the look-ups.
        rows: list[Row] = []
        for key in keys:
            found = self.connection.execute(_ROW_OF_KEY, key).fetchone()
            if found is not None:
                *columns, stored = found
                rows.append(_sound_row(columns, stored))
        return rows

    def require_absent(self, keys: Iterable[Key]) -> None:
        """Read through all rows, past SQLite's index of keys. Raises DamagedError where there is a
        row of a key which the look-up by that key has not found."""
        missing = set(keys)
        if missing and any(
            missing & {Key(*names)}
            for names in self.connection.execute(
                "SELECT resource, namespace, name FROM objects NOT INDEXED"
            )
        ):
            raise DamagedError("a row cannot be looked up by its key")

    def row_summaries(self, resource: str | None = None, namespace: str | None = None) -> list[Row]:
        """Return the rows of a resource (None: of all) in a namespace (None: in all), tombstones
        included, in no order; ``json`` is "" where there is some."""
        where, values = _place(resource, namespace)
        return [
            Row._make(columns)
            for columns in self.connection.execute(
                f"SELECT {COLUMNS_WITHOUT_JSON} FROM objects WHERE {where}", values
            )
        ]

    def racy_summaries(self) -> list[Row]:
        """Return the rows that are racy as :meth:`row_summaries` does."""
        return [
            Row._make(columns)
            for columns in self.connection.execute(
                f"SELECT {COLUMNS_WITHOUT_JSON} FROM objects WHERE racy > 0"
            )
        ]

    def has_objects(self, resource: str, namespace: str, now: float = 0.0) -> bool:
        """Return whether there are objects of a resource in a namespace whose time is not over."""
        return (
            self.connection.execute(
                "SELECT 1 FROM objects WHERE resource = ? AND namespace = ? AND json IS NOT NULL "
                "AND (expires IS NULL OR expires > ?) LIMIT 1",
                (resource, namespace, now),
            ).fetchone()
            is not None
        )

    def rows(self, resource: str | None = None, namespace: str | None = None) -> list[Row]:
        """Return the rows of a resource (None: of all) in a namespace (None: in all), tombstones
        included, in key order. Raises DamagedError."""
        return self._select(*_place(resource, namespace))

    def pending(self) -> list[Row]:
        """Return the rows that are PENDING, in key order. Raises DamagedError."""
        return self._select(f"state > 0 AND state = {PENDING} AND expires IS NULL")

    def unsynced(self) -> list[tuple[Key, int]]:
        """Return the keys and revisions of the rows that are WRITTEN, in no order."""
        selected = self.connection.execute(
            f"SELECT resource, namespace, name, revision FROM objects WHERE state > 0 AND state = "
            f"{WRITTEN}"
        )
        return [(Key(*key), revision) for *key, revision in selected]

    def make_indexes(self, indexes: Iterable[FieldIndex]) -> None:
        """Make the missing ones of those that SQLite can compute, from the rows, and that of racy
        rows, unless another process writes now."""
        if self._has_made_indexes:
            return
        present = self._index_names()
        statements = []
        if "racy" not in present:  # made by an earlier version
            statements.append(
                "CREATE INDEX IF NOT EXISTS racy ON objects (resource, namespace) WHERE racy > 0"
            )
        for index in indexes:
            expression = indexsql.expression_of(index)
            if expression and f"link_{index.name}" not in present:
                statements.append(
                    f"CREATE INDEX IF NOT EXISTS link_{index.name} ON objects "
                    f"({expression}, resource, namespace, name) "
                    f"WHERE {indexsql.condition_of(index)}"
                )

        def make() -> None:
            for statement in statements:
                self.connection.execute(statement)
            self._has_made_indexes = True

        if statements and self.in_memory:
            make()
        elif statements:
            self.try_to_write(make)
        else:
            self._has_made_indexes = True

    def has_index(self, index: FieldIndex) -> bool:
        """Return whether SQLite has an index of the rows."""
        name = f"link_{index.name}"
        if name not in self._indexes:
            self._indexes = self._index_names()
        return name in self._indexes

    def found(
        self,
        index: FieldIndex,
        values: Collection[str],
        resource: str | None = None,
        namespace: str | None = None,
    ) -> list[Row]:
        """Return the live rows that an index finds by any of some values (of one resource, in one
        namespace), in key order. Raises DamagedError."""
        if not values:
            return []
        return self._select(*self._found_rows(index, values, resource, namespace))

    def _found_rows(
        self,
        index: FieldIndex,
        values: Collection[str],
        resource: str | None,
        namespace: str | None,
    ) -> tuple[str, tuple[str, ...], str]:
        """Return the condition of the rows that an index finds, its values, and the table."""
        chosen, place = _place(resource, namespace)
        marks = ", ".join("?" * len(values))
        is_found = (
            f"{indexsql.expression_of(index)} IN ({marks}) AND {indexsql.condition_of(index)}"
        )
        return f"{is_found} AND {chosen}", (*values, *place), _indexed_by(index)

    def parts(
        self,
        paths: Iterable[str],
        resource: str,
        namespace: str | None,
        index: FieldIndex | None,
        value: str,
    ) -> list[tuple[Row, str]]:
        """Return the live rows of a resource (that an index finds) in key order, each with the JSON
        of a list of the values at some paths. Raises DamagedError."""
        where, values, table = (
            self._found_rows(index, [value], resource, namespace)
            if index
            else (*_place(resource, namespace), "objects")
        )
        places = ", ".join(
            f"'$.{path}'" for path in ("metadata.name", *paths)
        )  # of one alone there would be no list
        return [
            (_sound_row(columns, stored), text)
            for *columns, text, stored in self.connection.execute(
                f"SELECT {COLUMNS}, json_extract(json, {places}), checksum FROM {table} WHERE "
                f"{where} AND json IS NOT NULL "
                "ORDER BY resource, namespace, name",
                values,
            )
        ]

    def index_counts(self, index: FieldIndex) -> dict[str, int]:
        """Return the values by which an index finds live rows, each with the number of these."""
        return dict(
            self.connection.execute(
                f"SELECT {indexsql.expression_of(index)}, count(*) "
                f"FROM {_indexed_by(index)} WHERE {indexsql.condition_of(index)} GROUP BY 1"
            )
        )

    def _index_names(self) -> set[str]:
        return {
            name
            for (name,) in self.connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'index'"
            )
        }

    def keys(self, resource: str, namespace: str | None = None, prefix: str = "") -> list[Key]:
        """Return the keys of the live rows of a resource (in one namespace) whose names begin so,
        in key order."""
        chosen, place = _place(resource, namespace)
        end = f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}" if prefix else chr(0x10FFFF)
        selected = self.connection.execute(
            f"SELECT resource, namespace, name FROM objects WHERE {chosen} AND name >= ? AND name "
            "< ? AND json IS NOT NULL ORDER BY resource, namespace, name",
            (*place, prefix, end),
        )
        return list(map(Key._make, selected))

    def count(self, resource: str) -> int:
        """Return the number of live rows of a resource, from indexes alone."""
        (count,) = self.connection.execute(
            "SELECT (SELECT count(*) FROM objects WHERE resource = ?1) - "
            "(SELECT count(*) FROM objects INDEXED BY tombstones WHERE json IS NULL AND resource "
            "= ?1)",
            (resource,),
        ).fetchone()
        return int(count)

    def expired(self, now: float, after: tuple[float, Key], limit: int) -> list[tuple[float, Key]]:
        """Return the times and keys of the first rows, after one, whose time is over, in the order
        of both."""
        selected = self.connection.execute(
            "SELECT expires, resource, namespace, name FROM objects WHERE expires BETWEEN ? AND ? "
            "AND (expires, resource, namespace, name) > (?, ?, ?, ?) "
            "ORDER BY expires, resource, namespace, name LIMIT ?",
            (after[0], now, after[0], *after[1], limit),
        )
        return [(expires, Key(*key)) for expires, *key in selected]

    def next_expiry(self, now: float) -> float | None:
        """Return the first time after a moment at which the time of a row is over, None where there
        is none."""
        (first,) = self.connection.execute(
            "SELECT min(expires) FROM objects WHERE expires > ?", (now,)
        ).fetchone()
        return None if first is None else float(first)

    def _select(
        self, where: str, values: tuple[str | float, ...] = (), table: str = "objects"
    ) -> list[Row]:
        """Return rows in key order. Raises DamagedError for one whose checksum or type of a column
        is wrong."""
        return [
            _sound_row(columns, stored)
            for *columns, stored in self.connection.execute(
                f"SELECT {COLUMNS}, checksum FROM {table} WHERE {where} ORDER BY resource, "
                f"namespace, name",
                values,
            )
        ]

    def put(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self.connection.executemany(_UPSERT, ((*row, checksum(row)) for row in rows))
        self.forget_sums(rows)

    def remove(self, keys: Iterable[Key]) -> None:
        keys = list(keys)
        self.connection.executemany(
            "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", keys
        )
        self.forget_sums(keys)

    def restamp(self, row: Row) -> None:
        """Store the stamp and digest of a row's file; the object in it is the same."""
        self.connection.execute(
            "UPDATE objects SET mtime_ns = ?, size = ?, inode = ?, ctime_ns = ?, digest = ?, racy "
            "= ?, managers = ?, "
            "canonical = ? WHERE resource = ? AND namespace = ? AND name = ?",
            (*row.stamp, row.digest, row.racy, row.managers, row.canonical, *row.key),
        )
        self.forget_sums([row])

    def mark_compared(self, rows: Iterable[Row]) -> None:
        """Mark rows that are as they were as not racy any more; their stamps, and so the sums, are
        the same."""
        self.connection.executemany(
            "UPDATE objects SET racy = 0 WHERE resource = ? AND namespace = ? AND name = ? AND "
            "revision = ? "
            "AND ctime_ns = ? AND digest = ?",
            ((*row[:4], row.ctime_ns, row.digest) for row in rows),
        )

    def restamp_all(self, rows: Iterable[Row]) -> None:
        """Store the stamps of many rows' files, in an index that no connection has read yet; they
        are WRITTEN."""
        self.connection.executemany(
            f"UPDATE objects SET mtime_ns = ?, size = ?, inode = ?, ctime_ns = ?, racy = ?, "
            f"managers = ?, "
            f"state = {WRITTEN}, replaces = '' WHERE resource = ? AND namespace = ? AND name = ?",
            ((*row.stamp, row.racy, row.managers, *row[:3]) for row in rows),
        )

    def mark_written(self, rows: Iterable[Row]) -> None:
        """Mark PENDING rows WRITTEN, with the change time of their files, whether an edit may hide
        behind it, and the stamps of their managers' files."""
        rows = list(rows)
        self.connection.executemany(
            f"UPDATE objects SET state = {WRITTEN}, ctime_ns = ?, racy = ?, managers = ? "
            "WHERE resource = ? AND namespace = ? AND name = ?",
            ((row.ctime_ns, row.racy, row.managers, *row[:3]) for row in rows),
        )
        self.forget_sums(rows)

    def mark_durable(self, written: Iterable[tuple[Key, int]]) -> None:
        """Mark rows DURABLE that are still WRITTEN at the same revision."""
        written = list(written)
        self.connection.executemany(
            f"UPDATE objects SET state = {DURABLE}, replaces = '' WHERE resource = ? AND "
            f"namespace = ? AND name = ? "
            f"AND revision = ? AND state = {WRITTEN}",
            ((*key, revision) for key, revision in written),
        )

    def places(self, resource: str | None = None, namespace: str | None = None) -> list[Place]:
        """Return the resources and namespaces that there are rows of, in order; of one resource, in
        one namespace. Raises DamagedError."""
        if resource is not None and namespace is not None:
            return [(resource, namespace)]
        place, places = (resource or "", ""), []
        if (
            resource is not None
            and self.connection.execute(
                "SELECT 1 FROM objects WHERE resource = ? AND namespace = '' LIMIT 1", (resource,)
            ).fetchone()
        ):
            places.append(place)

        while (
            found
            := self.connection.execute(  # each time SQLite's index is entered at the next place
                "SELECT resource, namespace FROM objects WHERE (resource, namespace) > (?, ?) "
                "ORDER BY resource, namespace LIMIT 1",
                place,
            ).fetchone()
        ):
            if not found > place:
                raise DamagedError("the places of rows are out of order")
            place = found
            if resource not in (None, place[0]):
                break
            places.append(place)

        return places

    def resources(self) -> list[str]:
        """Return the resources that there are live rows of, in order."""
        return [name for (name,) in self.connection.execute(_RESOURCES)]

    # --- sums of files ---

    def sums(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the sums of places that are known: of the hashes of their files, as the rows have
        them. Raises DamagedError."""
        if self._sums_revision() != self.counter(
            "revision"
        ):  # a version of kubepy that keeps none has written
            return {}
        return {
            place: int(value)
            for place in places
            if (value := self.value("internal", SUM + "/".join(place))) is not None
        }

    def lacks_sums(self, sums: Mapping[Place, int]) -> bool:
        """Return whether the index does not have all of some sums."""
        return bool(sums) and self.sums(sums) != sums

    def sums_to_change(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the sums of places that can be kept up to date by what is added and removed."""
        places = set(places)
        return {
            **{place: 0 for place in places if not self.has_objects(*place)},
            **self.sums(places),
        }

    def put_sums(self, sums: Mapping[Place, int]) -> None:
        """Store sums, in the transaction that stores the last of the rows that they are of."""
        revision = self.counter("revision")
        if self._sums_revision() != revision:
            self.connection.execute(
                "DELETE FROM internal WHERE name >= ? AND name < ?", (SUM, SUM + chr(0x10FFFF))
            )
            self.connection.execute(
                "INSERT OR REPLACE INTO counters VALUES (?, ?)", (SUMS, revision)
            )
        for place, value in sums.items():
            self.set_value("internal", SUM + "/".join(place), str(value))

    def _sums_revision(self) -> int | None:
        row = self.connection.execute(
            "SELECT value FROM counters WHERE name = ?", (SUMS,)
        ).fetchone()
        return None if row is None else int(row[0])

    def forget_sums(self, rows: Iterable[Row | Key | Place]) -> None:
        """Forget the sums of the places of rows that change, or of places."""
        names = {f"{SUM}{resource}/{namespace}" for resource, namespace, *_ in rows}
        self.connection.executemany(
            "DELETE FROM internal WHERE name = ?", ((name,) for name in names)
        )

    def expiring(self) -> list[tuple[float, Key]]:
        """Return the keys of the rows that expire, and the times at which they do, in no order."""
        selected = self.connection.execute(
            "SELECT expires, resource, namespace, name FROM objects WHERE expires IS NOT NULL"
        )
        return [(expires, Key(*key)) for expires, *key in selected]

    def tombstone_rows(self) -> list[Row]:
        """Return the tombstones, in no order."""
        return [
            Row._make(columns)
            for columns in self.connection.execute(
                f"SELECT {COLUMNS} FROM objects WHERE json IS NULL"
            )
        ]

    def tombstones(self) -> int:
        """Return the number of tombstones."""
        (count,) = self.connection.execute(
            "SELECT count(*) FROM objects WHERE json IS NULL"
        ).fetchone()
        return int(count)

    def remove_tombstones(self) -> None:
        """Remove all tombstones, from an index that no connection has read yet."""
        self.connection.execute("DELETE FROM objects WHERE json IS NULL")

    # --- change log ---

    def log(self, entries: Iterable[LogEntry]) -> None:
        self.connection.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)", entries)

    def check_log(self) -> None:
        """Check that the counters and the change log agree. Raises DamagedError."""
        (newest,) = self.connection.execute("SELECT max(revision) FROM changes").fetchone()
        compacted, revision = self.counter("compacted"), self.counter("revision")
        if not 0 <= compacted <= revision < MAX_REVISION or (newest or 0) > revision:
            raise DamagedError(
                f"the change log reaches from {compacted} to {newest}, the counter is {revision}"
            )

    def entries(self, since: int) -> list[LogEntry]:
        """Return the entries of the change log after a revision, oldest first."""
        selected = self.connection.execute(
            "SELECT * FROM changes WHERE revision > ? ORDER BY revision", (since,)
        )
        return list(map(LogEntry._make, selected))

    def compact(self, until: int) -> None:
        """Forget the changes up to a revision."""
        self.connection.execute("DELETE FROM changes WHERE revision <= ?", (until,))
        self.set_counter("compacted", until)

    # --- timeline ---

    def add_to_timeline(self, entries: list[TimelineEntry], keep: float) -> None:
        """Add entries, and remove the oldest that are not kept. ``keep``: as a
        TimelineRecorder's."""
        if not entries:
            return
        self.connection.execute(TIMELINE_SCHEMA)
        self.connection.executemany(
            "INSERT INTO timeline VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    entry.revision,
                    entry.at,
                    *entry.key,
                    timeline.to_text(entry),
                    entry.note,
                    int(entry.is_outside),
                )
                for entry in entries
            ),
        )
        (first, last, oldest) = self.connection.execute(
            "SELECT number, (SELECT max(number) FROM timeline), at FROM timeline ORDER BY number "
            "LIMIT 1"
        ).fetchone()
        newest = entries[-1].at
        if timeline.is_overlong(oldest, newest, last - first + 1, keep):
            until = self._last_cut(newest - timeline.microseconds(keep), timeline.longest(keep))
            self.connection.execute("DELETE FROM timeline WHERE number <= ?", (until,))

    def timeline(self, since: int, length: float, after: int = 0) -> list[TimelineEntry]:
        """Return the entries after the last that is older than a time, at most so many, and those
        of them after a revision, in the order of the writes. Raises DamagedError."""
        if not self._has_timeline():
            return []
        selected = self.connection.execute(
            "SELECT * FROM timeline WHERE number > ? AND revision > ? ORDER BY number",
            (self._last_cut(since, length), after),
        )
        try:
            return [
                timeline.TimelineEntry(
                    revision, at, Key(*key), *timeline.from_text(views), note, bool(is_outside)
                )
                for _, revision, at, *key, views, note, is_outside in selected
            ]
        except (TypeError, ValueError) as error:
            raise DamagedError(f"the timeline cannot be read: {error}") from error

    def _has_timeline(self) -> bool:
        return (
            self.connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'timeline'"
            ).fetchone()
            is not None
        )

    def _last_cut(self, since: int, length: float) -> int:
        """Return the number of the last entry that is older than a time, or before the newest so
        many."""
        older, newest = self.connection.execute(
            "SELECT coalesce(max(CASE WHEN at < ? THEN number END), 0), coalesce(max(number), 0) "
            "FROM timeline",
            (since,),
        ).fetchone()
        return int(max(older, newest - length))

    # --- problems ---

    def problems(self) -> KnownProblems:
        """Return the problem files by path, each with the stamp at which it was read."""
        selected = self.connection.execute("SELECT * FROM problems ORDER BY path")
        return {
            path: (Stamp(*stamp), Problem(path, line, reason, bool(keeps)))
            for path, *stamp, line, reason, keeps in selected
        }

    def put_problem(self, problem: Problem, stamp: Stamp) -> None:
        values = problem.path, *stamp, *problem[1:]
        self.connection.execute(
            f"INSERT OR REPLACE INTO problems VALUES ({', '.join('?' * len(values))})", values
        )

    def remove_problem(self, path: str) -> None:
        self.connection.execute("DELETE FROM problems WHERE path = ?", (path,))

    # --- counters and small values ---

    def is_built(self) -> bool:
        """Return whether the index began with its cluster or has read the files once; a new one has
        yet to."""
        return self.value("internal", "built") is not None

    def set_built(self) -> None:
        self.set_value("internal", "built", "yes")

    def counter(self, name: str) -> int:
        (value,) = self.connection.execute(
            "SELECT value FROM counters WHERE name = ?", (name,)
        ).fetchone()
        return int(value)

    def set_counter(self, name: str, value: int) -> None:
        if name == "revision":
            self.connection.execute(
                "UPDATE counters SET value = ?1 WHERE name = ?2 AND value = "
                "(SELECT value FROM counters WHERE name = 'revision')",
                (value, SUMS),
            )
        self.connection.execute("UPDATE counters SET value = ? WHERE name = ?", (value, name))

    def value(self, table: str, name: str) -> str | None:
        """Return a value of the table ``meta`` (the store's users') or ``internal`` (its own).
        Raises DamagedError."""
        row = self.connection.execute(
            f"SELECT value, checksum FROM {table} WHERE name = ?", (name,)
        ).fetchone()
        if row is None:
            return None
        value, expected = row
        if not isinstance(value, str) or zlib.crc32(f"{name}={value}".encode()) != expected:
            raise DamagedError(f"the value of {name} has another checksum")
        return value

    def names(self, table: str) -> list[str]:
        """Return the names of the values of a table."""
        return [name for (name,) in self.connection.execute(f"SELECT name FROM {table}").fetchall()]

    def try_to_write(self, write: Callable[[], None]) -> None:
        """Write what is only there to save time, unless another process writes now or this one
        cannot write here."""
        if self.in_memory:
            return
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            with self.write(durable=False):
                write()
        except sqlite3.OperationalError as error:
            if is_damage(error):
                raise
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")

    def set_value(self, table: str, name: str, value: str | None) -> None:
        if value is None:
            self.connection.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
        else:
            row = (name, value, zlib.crc32(f"{name}={value}".encode()))
            self.connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", row)


def _place(resource: str | None, namespace: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the condition for the rows of a resource (None: of all) in a namespace (None: in all),
    and its values."""
    columns = {"resource": resource, "namespace": namespace}
    values = {column: value for column, value in columns.items() if value is not None}
    return " AND ".join(f"{column} = ?" for column in values) or "TRUE", tuple(values.values())


def _indexed_by(index: FieldIndex) -> str:
    return f"objects INDEXED BY link_{index.name}"


def identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path, None when there is none. Raises
    FolderError for a symlink."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(status.st_mode):
        raise FolderError(f"{path} is a symbolic link")
    return status.st_dev, status.st_ino


def remove_files(path: str) -> None:
    """Remove a database and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        try:
            os.unlink(path + suffix)
        except FileNotFoundError:
            continue
