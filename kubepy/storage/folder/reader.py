"""Looking at a folder: the rows of the index at one revision, corrected by the files that differ from them.

No look waits for a writer. Where a file differs, the lock is taken if it is free at once, to take the edit in for good;
else the edit is shown from memory.

The files are looked at first, the rows are read after that. A commit is recorded before its files are replaced, so what
a commit has done to the files that were looked at stands in the rows. A file that differs from its row all the same was
either changed by a commit since (then it is, by now, as the row says, or the row is another one), or it was edited from
outside. Another process may take in such an edit at this very moment; then the newer row with the stamp that was seen
holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from kubepy.storage.folder.access import Access
from kubepy.storage.folder.compare import (
    Difference,
    Edited,
    Gone,
    Known,
    Outcome,
    Refused,
    Retained,
    compare,
    examine,
    is_settled,
    key_of_path,
    known_problem,
    refusals,
)
from kubepy.storage.folder.database import Database, Row
from kubepy.storage.folder.manifest import ContentError
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.scan import Survey, survey, survey_of
from kubepy.storage.model import Key, Problem

MAX_PICTURES = 10  # of a folder in which others are busy

RowsOf = Callable[[Database], list[Row]]


class Look(NamedTuple):
    """Live rows by key, and the files and folders among those looked at that cannot be read as objects, by path."""

    revision: int
    rows: dict[Key, Row]
    problems: list[Problem]


class Verdict(Enum):
    """How a file that was looked at came to differ from its row."""

    EDITED = auto()  # from outside, and nobody has taken it in yet
    TAKEN_IN = auto()  # from outside; the row that it has by now holds it
    COMMITTED = auto()  # the row is newer than the look
    OVERTAKEN = auto()  # more happened than can be told: look again


class _Picture(NamedTuple):
    """One snapshot compared with the files. ``taken_in``: rows newer than the snapshot that hold edits from outside."""

    revision: int
    rows: list[Row]
    known: Known
    differences: list[Difference]
    taken_in: list[Row]
    obstacles: list[Refused]


class Reader:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._folder = access.folder

    def look(self) -> Look:
        """Everything there is; the rows are without their JSON."""
        return self._look(lambda database: database.outlines(), lambda: survey(self._folder))

    def look_for(self, resource: str, namespace: str | None) -> Look:
        """All objects of a resource in a namespace (None: in all)."""
        return self._look(lambda database: database.rows(resource, namespace),
                          lambda: survey(self._folder, resource, namespace))

    def look_at(self, key: Key) -> Look:
        """One object."""
        return self._look(lambda database: [row] if (row := database.row(key)) else [],
                          lambda: survey_of(self._folder, key))

    def _look(self, rows_of: RowsOf, find: Callable[[], Survey]) -> Look:
        picture = self._picture(rows_of, find)
        if self._is_behind(picture) and self._access.try_catch_up():
            picture = self._picture(rows_of, find)
        return self._resolve(picture)

    def _picture(self, rows_of: RowsOf, find: Callable[[], Survey]) -> _Picture:
        """Take pictures until one is not overtaken by another process; the last of a few is good enough."""
        for _ in range(MAX_PICTURES):
            picture, is_overtaken = self._try_picture(rows_of, find)
            if not is_overtaken:
                break
        return picture

    def _try_picture(self, rows_of: RowsOf, find: Callable[[], Survey]) -> tuple[_Picture, bool]:
        database = self._access.database()
        found = find()
        with database.snapshot():
            revision = database.counter("revision")
            rows = rows_of(database)
            known = Known(database.problems(), self._access.is_same_boot(database))
        judged = [(one, self._judge(one, database)) for one in compare(rows, found, self._folder, known)]
        differences = [difference for difference, verdict in judged if verdict is Verdict.EDITED]
        taken_in = [row for one, verdict in judged if verdict is Verdict.TAKEN_IN and (row := self._row_now(one))]
        picture = _Picture(revision, rows, known, differences, taken_in, refusals(found.obstacles, rows))
        return picture, any(verdict is Verdict.OVERTAKEN for _, verdict in judged)

    def _row_now(self, difference: Difference) -> Row | None:
        key = difference.row.key if difference.row else _key(difference)
        return self._access.database().row(key) if key else None

    def _judge(self, difference: Difference, database: Database) -> Verdict:
        """Tell how a difference between a file that was looked at and a row that was read after that came about."""
        row, found = difference.row, difference.found
        now = self._row_now(difference)
        is_same_row = (now is None or now.json is None) if row is None else (
            now is not None and (now.revision, now.stamp) == (row.revision, row.stamp))
        if is_same_row:
            is_as_row_says = row is not None and self._folder.stamp(path_of(row.key)) == row.stamp and \
                not (found and found.stamp == row.stamp)
            return Verdict.COMMITTED if is_as_row_says else Verdict.EDITED
        if now is not None and now.json is not None and found is not None and now.stamp == found.stamp:
            return Verdict.TAKEN_IN
        return Verdict.OVERTAKEN

    def _is_behind(self, picture: _Picture) -> bool:
        """Whether there is something to finish or to take in."""
        if any(known_problem(one, picture.known) is None for one in picture.differences):
            return True
        if any(one.problem.path not in picture.known.problems for one in picture.obstacles):
            return True
        return not picture.known.same_boot or any(not is_settled(row, picture.known) for row in picture.rows)

    def _resolve(self, picture: _Picture) -> Look:
        rows = {row.key: row for row in picture.rows if row.json is not None}
        rows.update((row.key, row) for row in picture.taken_in)
        problems = [one.problem for one in picture.obstacles]
        for difference in picture.differences:
            outcome = known_problem(difference, picture.known) or self._examine(difference)
            if outcome is not None:
                _apply(outcome, rows, problems, picture.revision)
        return Look(picture.revision, rows, sorted(problems))

    def _examine(self, difference: Difference) -> Outcome | None:
        if difference.row and not difference.row.json:
            full = self._access.database().row(difference.row.key)
            difference = difference._replace(row=full)
        return examine(difference, self._folder, self._access.admit, self._access.retain)


def _key(difference: Difference) -> Key | None:
    assert difference.found is not None
    try:
        return key_of_path(difference.found)
    except ContentError:
        return None


def _apply(outcome: Outcome, rows: dict[Key, Row], problems: list[Problem], revision: int) -> None:
    """Correct the rows of a look by what a file turned out to be."""
    if isinstance(outcome, Edited):
        known = outcome.row.revision if outcome.row else revision
        rows[outcome.key] = Row(*outcome.key, known, outcome.json)
    elif isinstance(outcome, Gone):
        rows.pop(outcome.row.key, None)
    elif isinstance(outcome, Retained):
        rows[outcome.row.key] = Row(*outcome.row.key, outcome.row.revision, outcome.json)
    elif isinstance(outcome, Refused):
        problems.append(outcome.problem)
        if outcome.row and not outcome.problem.keeps_object:
            rows.pop(outcome.row.key, None)
