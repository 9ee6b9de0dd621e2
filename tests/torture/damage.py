"""A damaged index: with any content of ``.kubepy/index.db`` and of files beside it, commands work
and show the files.

A point ``17/get`` is the 18th damage of its kind, at a place given by the seed, and the first
command after it.
"""

from __future__ import annotations

import os
import pickle
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from .checks import Lost, attempt
from .deaths import in_child
from .reference import run_step
from .runner import Outcome, Point, Section, outcome
from .scenarios import RUNNING, SERVER_SIDE, command, kubepy
from .scratch import Image, capture, restore
from .views import Objects, difference, in_files, look, open_cluster

INDEX = ".kubepy/index.db"
PAGE = 4096
TOUCHED = {"configmaps/default/touched", "configmaps/default/new"}
FIRST = {
    "get": ("get", "all,cm,secrets,nodes,events", "-A"),
    "fsck": ("fsck",),
    "label": ("label", "cm", "touched", "a=b", "--overwrite"),
    "create": ("create", "cm", "new"),
    "controller": ("controller", "--once"),
    "apply": ("apply", "--server-side", "-f", "-"),
}
READ = ("get", "cm", "touched", "-o", "yaml")
STEPS = (
    *RUNNING,
    command("apply", "--server-side", "-f", "-", stdin=SERVER_SIDE),
    command("create", "cm", "touched", "--from-literal=a=b"),
    command("create", "cm", "deleted"),
    command("create", "secret", "generic", "password", "--from-literal=a=b"),
    command("controller", "--once"),
    command("delete", "cm", "deleted"),
)


class Base(NamedTuple):
    """An undamaged folder: closed, and while a process has the index open (with its log)."""

    closed: Image
    opened: Image
    objects: Objects


Damage = Callable[[Path, random.Random, int], None]


# --- bytes ---


def _flip(path: Path, chance: random.Random, number: int) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(1 << number % 8):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _flip_header(path: Path, chance: random.Random, number: int) -> None:
    """Change bytes of the database's header (the first 100) and of its schema's root page."""
    data = bytearray(path.read_bytes())
    for _ in range(1 + number % 4):
        data[chance.randrange(300)] = chance.randrange(256)
    path.write_bytes(data)


def _pages(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data[start : start + PAGE] for start in range(0, len(data), PAGE)]


def _zero_page(path: Path, chance: random.Random, number: int) -> None:
    pages = _pages(path)
    pages[number % len(pages)] = bytes(PAGE)
    path.write_bytes(b"".join(pages))


def _random_page(path: Path, chance: random.Random, number: int) -> None:
    pages = _pages(path)
    pages[number % len(pages)] = chance.randbytes(PAGE)
    path.write_bytes(b"".join(pages))


def _swap_pages(path: Path, chance: random.Random, number: int) -> None:
    pages = _pages(path)
    one, other = chance.sample(range(1, len(pages)), 2)
    pages[one], pages[other] = pages[other], pages[one]
    path.write_bytes(b"".join(pages))


def _copy_page(path: Path, chance: random.Random, number: int) -> None:
    pages = _pages(path)
    one, other = chance.sample(range(1, len(pages)), 2)
    pages[one] = pages[other]
    path.write_bytes(b"".join(pages))


def _cut(path: Path, chance: random.Random, number: int) -> None:
    data = path.read_bytes()
    ends = (0, 1, 16, 99, 100, 512, PAGE, PAGE + 1, len(data) - 1, len(data) - PAGE)
    path.write_bytes(data[: ends[number] if number < len(ends) else chance.randrange(len(data))])


def _replace(path: Path, chance: random.Random, number: int) -> None:
    """Replace the index by something else."""
    kinds: list[Callable[[], object]] = [
        lambda: path.write_bytes(chance.randbytes(10_000)),
        lambda: path.write_text("not a database\n" * 500),
        lambda: path.write_bytes(path.read_bytes() + chance.randbytes(5000)),
        lambda: path.unlink(),
        lambda: path.write_bytes(path.read_bytes()[:16] + bytes(len(path.read_bytes()) - 16)),
        lambda: _foreign(path),
        lambda: (path.unlink(), os.mkfifo(path)),
        lambda: path.write_bytes(b"SQLite format 3\0"),
    ]
    kinds[number % len(kinds)]()


def _foreign(path: Path) -> None:
    """Replace the index by another program's database."""
    path.unlink()
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE objects (a); INSERT INTO objects VALUES (1); PRAGMA user_version = 3"
    )
    connection.close()


def _beside(path: Path, chance: random.Random, number: int) -> None:
    """Write files beside the index that SQLite reads."""
    suffix = ("-wal", "-shm", "-journal")[number % 3]
    target = path.with_name(path.name + suffix)
    kind = number // 3 % 4
    size = target.stat().st_size if target.exists() else 40_000
    target.write_bytes([b"", bytes(size), chance.randbytes(size), b"x" * 10][kind])


def _log(path: Path, chance: random.Random, number: int) -> None:
    """Damage the log of transactions that are not in the database yet."""
    target = path.with_name(path.name + "-wal")
    data = bytearray(target.read_bytes())
    kind = number % 4
    if kind == 0:
        data = data[: chance.randrange(len(data))]
    elif kind == 1:
        for _ in range(16):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == 2:
        data = bytearray(32) + data[32:]
    else:
        target.unlink()
        return
    target.write_bytes(data)


def _log_and_index(path: Path, chance: random.Random, number: int) -> None:
    _log(path, chance, number)
    _flip(path, chance, number)


# --- damaged contents of the database ---

GARBAGE = (
    "NULL",
    "x'ff00fe'",
    "'x'",
    "''",
    str(2**63 - 1),
    str(-(2**63)),
    "-1",
    "0",
    "1e308",
    "9e999",
    "CAST(x'fffe80' AS TEXT)",
    "'é\\u0000'",
    "zeroblob(70000)",
    "7.5",
)
JSONS = (
    "'{'",
    "'[]'",
    "'null'",
    "'{}'",
    "'7'",
    "'{\"metadata\": 7}'",
    "'{\"metadata\": {}}'",
    '\'{"metadata": {"name": 7}}\'',
    "replace(hex(zeroblob(50000)), '00', '[')",
    "replace(json, ':', ': ')",
    "replace(json, 'a', 'b')",
    "replace(json, '1', '2')",
    "substr(json, 1, 40)",
    "json || 'x'",
    "CAST(json AS BLOB)",
    '\'{"metadata": {"name": "x"}, "a": \' || replace(hex(zeroblob(2600)), \'00\', \'11\') || '
    "'}'",
    '\'{"a": NaN, "metadata": {}}\'',
    "json || char(0)",
)


def _typed(path: Path, chance: random.Random, number: int) -> None:
    """Write garbage in one column, of one row or of all."""
    with _unchecked(path) as connection:
        places = [
            (table, column)
            for table in _tables(connection)
            for column in _columns(connection, table)
        ]
        table, column = places[number % len(places)]
        row = (
            f"WHERE rowid IN (SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET "
            f"{chance.randrange(5)})"
        )
        is_one = number // len(places) % 2 == 0 and _has_rowid(connection, table)
        _try(
            connection,
            f"UPDATE OR REPLACE {table} SET {column} = {chance.choice(GARBAGE)} "
            f"{row if is_one else ''}",
        )


def _json(path: Path, chance: random.Random, number: int) -> None:
    """Replace an object's JSON by other JSON."""
    with _unchecked(path) as connection:
        table = "objects" if number // len(JSONS) % 3 else "changes"
        where = "json IS NOT NULL ORDER BY rowid LIMIT 1 OFFSET " + str(chance.randrange(8))
        _try(
            connection,
            f"UPDATE {table} SET json = {JSONS[number % len(JSONS)]} WHERE rowid IN "
            f"(SELECT rowid FROM {table} WHERE {where})",
        )


def _rows(path: Path, chance: random.Random, number: int) -> None:
    """Remove, duplicate or rename rows, columns and tables."""
    with _unchecked(path) as connection:
        tables = _tables(connection)
        table = tables[number % len(tables)]
        statements = [
            f"DELETE FROM {table}",
            f"DELETE FROM {table} WHERE (random() & 1) = 0",
            f"DROP TABLE {table}",
            f"ALTER TABLE {table} RENAME TO {table}_of_old",
            f"ALTER TABLE {table} ADD COLUMN more TEXT",
            f"ALTER TABLE {table} RENAME COLUMN {_columns(connection, table)[-1]} TO other",
            f"CREATE TABLE copy AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE copy "
            f"RENAME TO {table}; "
            f"INSERT INTO {table} SELECT * FROM {table}",
            f"CREATE TABLE copy AS SELECT * FROM {table}; DROP TABLE {table}; "
            f"CREATE VIEW {table} AS SELECT * FROM copy",
        ]
        for statement in statements[number // len(tables) % len(statements)].split("; "):
            _try(connection, statement)


def _known_columns(path: Path, chance: random.Random, number: int) -> None:
    """Write values that are valid for a row, but wrong for this one."""
    statements = (
        "UPDATE objects SET name = 'nobody' WHERE name = 'touched'",
        "UPDATE objects SET namespace = '../..' WHERE name = 'touched'",
        "UPDATE objects SET name = '' WHERE name = 'touched'",
        "UPDATE objects SET name = '/etc/passwd' WHERE name = 'touched'",
        "UPDATE objects SET resource = 'secrets' WHERE name = 'touched'",
        "UPDATE objects SET json = (SELECT json FROM objects WHERE name = 'web') WHERE name = "
        "'touched'",
        "UPDATE objects SET json = NULL WHERE name = 'touched'",
        "UPDATE objects SET revision = 1",
        "UPDATE objects SET revision = revision + 1000000",
        "UPDATE objects SET state = 2",
        "UPDATE objects SET state = 1",
        "UPDATE objects SET state = 77",
        "UPDATE objects SET state = 2, json = NULL WHERE name = 'touched'",
        "UPDATE objects SET digest = zeroblob(16)",
        "UPDATE objects SET digest = ''",
        "UPDATE objects SET replaces = '1:2:3'",
        "UPDATE objects SET replaces = 'x', state = 2",
        "UPDATE objects SET expires = 1e18 WHERE name = 'touched'",
        "UPDATE objects SET expires = 0 WHERE name = 'touched'",
        "UPDATE objects SET expires = 'never'",
        "UPDATE objects SET racy = 1",
        "UPDATE counters SET value = 0",
        "UPDATE counters SET value = -5 WHERE name = 'revision'",
        "UPDATE counters SET value = 9223372036854775807",
        "UPDATE counters SET value = value + 1000000 WHERE name = 'compacted'",
        "UPDATE meta SET value = 'x'",
        "UPDATE meta SET value = '{}'",
        "UPDATE meta SET value = ''",
        "UPDATE internal SET value = 'x'",
        "UPDATE internal SET value = ''",
        "UPDATE internal SET value = '[]'",
        "DELETE FROM internal",
        "UPDATE changes SET type = 'LOST'",
        "UPDATE changes SET revision = revision + 1000000",
        "UPDATE changes SET type = 'DELETED', json = NULL",
        "INSERT INTO changes SELECT revision + 100000, type, resource, namespace, name, json FROM "
        "changes",
        "INSERT INTO problems SELECT 'namespaces/default/configmaps/touched.yaml', mtime_ns, "
        "size, inode, 1, 'is bad' "
        "FROM objects WHERE name = 'touched'",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 99",
        "PRAGMA user_version = -1",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA application_id = 7",
        "DROP INDEX unsettled",
        "CREATE UNIQUE INDEX one ON objects (resource)",
    )
    with _unchecked(path) as connection:
        _try(connection, statements[number % len(statements)])


@contextmanager
def _unchecked(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection to which no constraint applies."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
        "replace(replace(sql, 'NOT NULL', ''), 'STRICT', '') WHERE type = 'table'"
    )
    connection.close()
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
            "ORDER BY name"
        )
    ]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _has_rowid(connection: sqlite3.Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 1")
    except sqlite3.OperationalError:
        return False
    return True


def _try(connection: sqlite3.Connection, statement: str) -> None:
    """Execute a statement; do nothing if a constraint or another version of the schema forbids
    it."""
    try:
        connection.execute(statement)
    except sqlite3.Error:
        return


# Each damage, the number of its points, and whether the index has a log.
KINDS: dict[str, tuple[Damage, int, bool]] = {
    "flip": (_flip, 64, False),
    "flip-header": (_flip_header, 32, False),
    "zero-page": (_zero_page, 40, False),
    "random-page": (_random_page, 40, False),
    "swap-pages": (_swap_pages, 32, False),
    "copy-page": (_copy_page, 16, False),
    "cut": (_cut, 24, False),
    "replace": (_replace, 8, False),
    "beside": (_beside, 12, False),
    "beside-open": (_beside, 12, True),
    "log": (_log, 16, True),
    "log-and-index": (_log_and_index, 12, True),
    "typed": (_typed, 200, False),
    "json": (_json, 3 * len(JSONS), False),
    "rows": (_rows, 64, False),
    "columns": (_known_columns, 44, False),
}


# --- running a point ---


def share(scratch: Path) -> None:
    """Make the folder whose index will be damaged."""
    folder = scratch / "base"
    for step in STEPS:
        run_step(step, folder)
    opened = _opened(folder)
    view = look(open_cluster, folder)
    assert view is not None
    assert not view.problems
    (scratch / "base.image").write_bytes(
        pickle.dumps(Base(capture(folder), opened, in_files(view.objects)))
    )


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    firsts = list(FIRST)
    return [
        Point(name, f"{number}/{firsts[(number + seed) % len(firsts)]}")
        for number in range(KINDS[name][1])
    ]


def _opened(folder: Path) -> Image:
    """Return the folder while another process has the index open, so that its log still exists."""
    reader = sqlite3.connect(folder / INDEX)
    reader.execute("SELECT count(*) FROM objects").fetchall()
    run_step(command("label", "cm", "touched", "more=labels"), folder)
    run_step(command("create", "cm", "late"), folder)
    image = capture(folder)
    reader.close()
    return image


@lru_cache(maxsize=1)
def _base(scratch: Path) -> Base:
    base: Base = pickle.loads((scratch / "base.image").read_bytes())
    return base


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    damage, _, is_open = KINDS[point.scenario]
    base = _base(place.parent)
    text, _, first = point.name.partition("/")
    state = folder / "state"
    restore(base.opened if is_open else base.closed, state)
    if not is_open:  # keep the copy's stamps, so that only the damage is new
        look(open_cluster, state)
    damage(state / INDEX, random.Random(f"{seed} {point.scenario} {text}"), int(text))

    def judge(report: int) -> None:
        os.write(report, pickle.dumps(list(_losses(state, first, base.objects))))

    status, said = in_child(judge)
    losses = (
        pickle.loads(said)
        if status == 0
        else [f"the process ended with {status}: {said.decode()[-300:]}"]
    )
    return outcome(point, [loss.replace(f"{state}/", "") for loss in losses])


def _losses(state: Path, first: str, expected: Objects) -> Iterator[str]:
    warned = 0
    for words in (FIRST[first], FIRST["get"], FIRST["label"], FIRST["controller"], READ):
        try:
            done = kubepy(state, *words, stdin=SERVER_SIDE)
        except BaseException as error:
            yield f"{' '.join(words)} raises {type(error).__name__}: {error}"
            continue
        said = done.err.strip()
        if done.status not in ((0, 1) if words[0] == "fsck" else (0,)) or "internal error" in said:
            yield f"{' '.join(words)} ended with {done.status} and says {said[:300]!r}"
        warned += (
            0 if words[0] == "fsck" else len(said.splitlines())
        )  # fsck reports the damage, and how to repair it
    if warned > 1:
        yield f"{warned} lines of warnings"
    yield from _compared(state, expected)
    yield from _mended(state)


def _compared(state: Path, expected: Objects) -> Iterator[str]:
    try:
        view = attempt("a reader", lambda: look(open_cluster, state))
    except Lost as lost:
        yield str(lost)
        return
    assert view is not None
    held = {key: obj for key, obj in in_files(view.objects).items() if key not in TOUCHED}
    wanted = {key: obj for key, obj in expected.items() if key not in TOUCHED}
    if told := difference(wanted, held):
        yield f"the objects are not those of the files: {told}"
    yield from view.problems


def _mended(state: Path) -> Iterator[str]:
    first = kubepy(state, "fsck")
    if first.status == 0:
        return
    repaired = kubepy(state, "fsck", "--repair")
    if repaired.status:
        yield f"fsck --repair ended with {repaired.status}: {repaired} after {first}"
    elif (again := kubepy(state, "fsck")).status:
        yield f"fsck after fsck --repair: {again}"


SECTION = Section("damage", tuple(KINDS), set_up, run, minutes=3, share=share)
