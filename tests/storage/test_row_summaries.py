"""Row summaries cached by a connection equal the rows, whichever connection writes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from kubepy.storage.folder.database import PENDING, Database, Row
from tests.storage.conftest import key


@pytest.fixture
def databases(tmp_path: Path) -> list[Database]:
    """Two connections to one index, as two processes have them."""
    path = str(tmp_path / "index.db")
    Database(path).create()
    return [Database(path), Database(path)]


def rows_of(database: Database) -> list[Row]:
    return [row._replace(json=row.json and "") for row in database.rows()]


def write(database: Database, chance: Random) -> None:
    """Write a few random changes in one transaction, which may be rolled back."""
    with database.write(durable=False):
        for _ in range(chance.randint(1, 3)):
            one = key(chance.choice("abcd"))
            number = chance.randint(1, 99)
            match chance.choice(["put", "bury", "remove", "restamp", "settle"]):
                case "put":
                    database.put([Row(*one, number, "{}", number, state=PENDING, replaces="x")])
                case "bury":
                    database.put([Row(*one, number, None, state=PENDING)])
                case "remove":
                    database.remove([one])
                case "restamp":
                    stamped = Row(*one, 1, "", number, number, number, number, b"digest", managers=str(number))
                    database.restamp(stamped._replace(racy=chance.randint(0, 1)))
                case "settle":
                    if row := database.row(one):
                        database.mark_written([row._replace(ctime_ns=number, managers="m")])
                        database.mark_durable([(one, row.revision + chance.randint(0, 1))])
        if chance.random() < 0.2:
            raise InterruptedError


@pytest.mark.parametrize("seed", range(20))
def test_row_summaries_are_rows_without_json(databases: list[Database], seed: int) -> None:
    chance = Random(seed)
    for _ in range(40):
        with suppress(InterruptedError):
            write(chance.choice(databases), chance)
        for one in databases:
            if chance.random() < 0.6:
                assert sorted(one.row_summaries()) == rows_of(one)


def test_rows_are_read_once_as_long_as_nobody_else_writes(databases: list[Database]) -> None:
    mine, others = databases
    statements: list[str] = []
    mine.connection.set_trace_callback(statements.append)

    def reads() -> int:
        mine.row_summaries()
        return sum("FROM objects" in one for one in statements)

    assert reads() == reads() == 1
    mine.put([Row(*key("a"), 1, "{}")])
    assert reads() == 1
    others.put([Row(*key("b"), 2, "{}")])
    assert reads() == reads() == 2
