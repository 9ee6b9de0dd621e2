"""Taking in what other programs did to the files: it becomes revisions and change log entries like any other change.

The files of objects themselves are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.storage.folder.commit_files import settle_managers
from kubepy.storage.folder.compare import (
    Difference,
    Edited,
    Gone,
    Known,
    Outcome,
    Refused,
    Retain,
    Retained,
    Same,
    compare,
    examine,
    known_problem,
    refusals,
)
from kubepy.storage.folder.database import PENDING, Database, KnownProblems, LogEntry, Row
from kubepy.storage.folder.files import Folder
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.scan import survey
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Admit, Key


class Intake:
    """Brings the index to what the files say. For the holder of the lock, or for an index in memory.

    :param now: the cluster's time in seconds, from which an index made anew counts on.
    """

    def __init__(self, database: Database, folder: Folder, admit: Admit | None, retain: Retain | None,
                 now: float) -> None:
        self.database = database
        self.folder = folder
        self.admit = admit
        self.retain = retain
        self.now = now

    def run(self, *, same_boot: bool) -> bool:
        """Returns whether it left PENDING rows: files that were removed and are to be written again.

        ``same_boot``: the machine was not started anew since the index was last recovered.
        """
        problems = self.database.problems()
        known = Known(problems, same_boot=same_boot, refresh=True)
        rows = self.database.outlines()
        found = survey(self.folder)
        outcomes = [*refusals(found.obstacles, rows), *self._outcomes(compare(rows, found, self.folder, known), known)]
        current = {one.problem.path for one in outcomes if isinstance(one, Refused)}
        news = [one for one in outcomes if not _is_known(one, problems)]
        is_rebuild = not self.database.is_built()
        if news or is_rebuild or problems.keys() - current:
            self._record(news, problems, current, is_rebuild=is_rebuild)
        return any(isinstance(one, Retained) for one in news)

    def _outcomes(self, differences: Iterable[Difference], known: Known) -> list[Outcome]:
        found: list[Outcome] = []
        for difference in sorted(differences, key=lambda one: one.path):
            outcome = known_problem(difference, known) or examine(
                self._with_json(difference), self.folder, self.admit, self.retain)
            if outcome is not None:
                found.append(outcome)
        return found

    def _with_json(self, difference: Difference) -> Difference:
        return difference._replace(row=self.database.row(difference.row.key)) if difference.row else difference

    def _record(self, outcomes: list[Outcome], problems: KnownProblems, current: set[str], *,
                is_rebuild: bool) -> None:
        """``problems``: those before, by path; ``current``: the paths of those there are now."""
        with self.database.write():
            left_out = {path for path, (_, problem) in problems.items() if not problem.keeps_object}
            revision = _Revisions(self.database.counter("revision"))
            if is_rebuild:
                if not self.database.in_memory:
                    self.folder.sync_all()  # the rows of a new index count as DURABLE
                revision.last = self._first_revision(len(outcomes))
                self.database.set_counter("compacted", revision.last)
                self.database.set_built()
            for outcome in sorted(outcomes, key=_order):
                self._record_one(outcome, revision, left_out)
            for path in problems.keys() - current:
                self.database.remove_problem(path)
            self.database.set_counter("revision", revision.last)

    def _first_revision(self, count: int) -> int:
        """Where an index made anew begins: beyond what the one before can have reached, so that a resource version
        from then is never taken for one of now. Milliseconds go by faster than revisions."""
        return max(count, int(self.now * 1000))

    def _record_one(self, outcome: Outcome, revision: _Revisions, left_out: set[str]) -> None:
        if isinstance(outcome, Refused):
            self.database.put_problem(outcome.problem, outcome.stamp)
            if outcome.problem.keeps_object and outcome.row and outcome.problem.path in left_out:
                self._put(outcome.row._replace(revision=revision.next()), MODIFIED)  # it is in lists again
        elif isinstance(outcome, Gone):
            self._remove(outcome.row, revision.next())
        elif isinstance(outcome, Retained):
            self._retain(outcome, revision)
        elif isinstance(outcome, Edited):
            self._take_in(outcome, revision)
        elif path_of(outcome.row.key) in left_out:  # lists have left it out: watchers must hear that it is back
            self._put(_restamped(outcome)._replace(revision=revision.next()), MODIFIED)
        else:
            self.database.restamp(_restamped(outcome))

    def _take_in(self, edited: Edited, revision: _Revisions) -> None:
        """Another object in the place of one, as `git checkout` leaves it, is a deletion and an addition: whatever
        depends on the first has lost it."""
        old = edited.row
        is_another = old is not None and _uid_in(old.json) != _uid_in(edited.json)
        if old is not None and is_another:
            self.database.log([LogEntry(revision.next(), DELETED, *old.key, old.json)])
        self._put(_row_of(edited, revision.next()), MODIFIED if old and not is_another else ADDED)

    def _remove(self, row: Row, revision: int) -> None:
        self.database.remove([row.key])
        self.database.log([LogEntry(revision, DELETED, *row.key, row.json)])
        if row.managers and not self.database.in_memory:  # they are one with their object
            settle_managers(self.folder, row, "")
            self.folder.remove_empty_managed(path_of(row.key).rpartition("/")[0])

    def _retain(self, outcome: Retained, revision: _Revisions) -> None:
        row = outcome.row._replace(json=outcome.json, state=PENDING, replaces="", revision=revision.next())
        self._put(row, MODIFIED)

    def _put(self, row: Row, change_type: str) -> None:
        self.database.put([row])
        self.database.log([LogEntry(row.revision, change_type, *row.key, None)])


def _uid_in(text: str | None) -> object:
    from json import loads

    return loads(text)["metadata"].get("uid") if text else None


class _Revisions:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def _is_known(outcome: Outcome, problems: KnownProblems) -> bool:
    return isinstance(outcome, Refused) and problems.get(outcome.problem.path) == (outcome.stamp, outcome.problem)


def _order(outcome: Outcome) -> tuple[Key, str]:
    if isinstance(outcome, Refused):
        return Key("", "", ""), outcome.problem.path
    return (outcome.key if isinstance(outcome, Edited) else outcome.row.key), ""


def _row_of(edited: Edited, revision: int) -> Row:
    return Row(*edited.key, revision, edited.json, *edited.stamp, edited.digest, int(edited.racy),
               managers=edited.managers)


def _restamped(same: Same) -> Row:
    canonical = same.row.canonical if same.digest == same.row.digest else 0
    return same.row._replace(**same.stamp._asdict(), digest=same.digest, racy=int(same.racy), managers=same.managers,
                             canonical=canonical)
