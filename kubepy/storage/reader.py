"""Looking at a folder: the rows of the index at one revision, corrected by the files that differ from them.

No look waits for a writer. Where a file differs, the lock is taken if it is free at once, to take the edit in for good;
else the edit is shown from memory. A file that differs because another process has just committed is no edit: then the
row, read again, is another one, and the snapshot's own state counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.storage.access import Access
from kubepy.storage.compare import (
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
from kubepy.storage.database import Database, Row
from kubepy.storage.keys import Key
from kubepy.storage.manifest import ContentError
from kubepy.storage.model import Problem
from kubepy.storage.survey import Survey, survey, survey_of

RowsOf = Callable[[Database], list[Row]]


class Look(NamedTuple):
    """Live rows by key, and the files and folders among those looked at that cannot be read as objects, by path."""

    revision: int
    rows: dict[Key, Row]
    problems: list[Problem]


class _Picture(NamedTuple):
    """One snapshot compared with the files."""

    revision: int
    rows: list[Row]
    known: Known
    differences: list[Difference]
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
        database = self._access.database()
        with database.snapshot():
            revision = database.counter("revision")
            rows = rows_of(database)
            known = Known(database.problems(), self._access.is_same_boot(database))
        found = find()
        differences = [one for one in compare(rows, found, self._folder, known)
                       if not self._is_explained(one, database)]
        return _Picture(revision, rows, known, differences, refusals(found.obstacles, rows))

    def _is_explained(self, difference: Difference, database: Database) -> bool:
        """Whether a commit after the snapshot made the difference."""
        key = difference.row.key if difference.row else _key(difference)
        if key is None:
            return False
        now = database.row(key)
        if difference.row is None:
            return now is not None and now.json is not None
        return now is None or (now.revision, now.state, now.stamp) != (
            difference.row.revision,
            difference.row.state,
            difference.row.stamp,
        )

    def _is_behind(self, picture: _Picture) -> bool:
        """Whether there is something to finish or to take in."""
        if any(known_problem(one, picture.known) is None for one in picture.differences):
            return True
        if any(one.problem.path not in picture.known.problems for one in picture.obstacles):
            return True
        return any(not is_settled(row, picture.known) for row in picture.rows)

    def _resolve(self, picture: _Picture) -> Look:
        rows = {row.key: row for row in picture.rows if row.json is not None}
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
