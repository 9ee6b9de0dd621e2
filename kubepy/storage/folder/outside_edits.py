"""Record the edits of other programs to the files: each becomes a revision and an entry of the
change log.

The files of objects themselves are left as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from kubepy.storage.folder.commit_files import settle_managers
from kubepy.storage.folder.compare import (
    Edited,
    Examiner,
    InvalidFile,
    KnownState,
    Outcome,
    Removed,
    Retained,
    compare,
    doubt_problems,
    doubted_extents,
    find_known_problem,
    problems_of,
)
from kubepy.storage.folder.database import PENDING, Database, KnownProblems, Place, Row
from kubepy.storage.folder.paths import parent_of, path_of
from kubepy.storage.folder.scan import (
    Extents,
    find_unchanged,
    leave_out,
    read_summaries,
    scan_extents,
    sums_of,
)
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Key, LogEntry, former_state

if TYPE_CHECKING:
    from kubepy.storage.timeline import TimelineEntry, TimelineRecorder


class ObservedEdits:
    """Edits from outside as they are to stand in the index, each with its revision.

    :ivar revision: the newest after them.
    :ivar rows: of the objects that are new or changed; ``restamped``: whose files alone have
        changed.
    :ivar removed: the last rows of the objects that are gone.
    :ivar retained: the keys of the objects whose files were removed and are to be written again.
    :ivar solved: the paths of problems that there are no more.
    """

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.rows: dict[Key, Row] = {}
        self.restamped: dict[Key, Row] = {}
        self.removed: dict[Key, Row] = {}
        self.retained: set[Key] = set()
        self.problems: list[InvalidFile] = []
        self.solved: set[str] = set()
        self.log: list[LogEntry] = []
        self.timeline: list[TimelineEntry] = []

    def put(self, row: Row, change_type: str, before: str | None = None) -> None:
        """Store a row at the next revision, and log the change. ``before``: the object as it
        was."""
        self.revision += 1
        self.rows[row.key] = row._replace(revision=self.revision)
        self.log.append(
            LogEntry(self.revision, change_type, *row.key, former_state(before, row.json))
        )

    def delete(self, row: Row) -> None:
        """Log at the next revision that the object of a row is gone."""
        self.revision += 1
        self.log.append(LogEntry(self.revision, DELETED, *row.key, row.json))


class OutsideEdits:
    """Brings the index to what the files say. For the holder of the lock, or for an index in
    memory.

    :param now: the cluster's time in seconds, from which a rebuilt index counts its revisions on.
    :param recorder: makes the entries of the timeline.
    """

    def __init__(
        self,
        database: Database,
        examiner: Examiner,
        now: float,
        recorder: TimelineRecorder | None = None,
    ) -> None:
        self._database = database
        self._examiner = examiner
        self._folder = examiner.folder
        self._now = now
        self._recorder = recorder
        self._sums: dict[Place, int] = {}  # of what was compared last
        self._compared: list[Row] = []  # racy rows that are none any more

    def record(self, extents: Extents, *, same_boot: bool) -> bool:
        """Record all edits of some extents; return whether there are PENDING rows now: files that
        were removed and are written again.

        ``same_boot``: the machine was not started anew since the index was last recovered.
        """
        is_rebuild = not self._database.is_built()
        problems = self._database.problems()
        outcomes, solved = self._find(extents, problems, same_boot)
        if not outcomes and not solved and not is_rebuild:
            if self._compared or self._database.lacks_sums(self._sums):
                with self._database.write(durable=False):
                    self._database.mark_compared(self._compared)
                    self._database.put_sums(self._sums)
            return False

        with self._database.write():
            self._database.mark_compared(self._compared)
            revision = self._database.counter("revision")
            if is_rebuild:
                if not self._database.in_memory:
                    self._folder.sync_all()  # the rows of a new index count as DURABLE
                # A new index begins beyond what the one before can have reached, so that a resource
                # version from then is never taken for one of now. Milliseconds go by faster than
                # revisions.
                revision = max(revision + 1, len(outcomes), int(self._now * 1000))
                self._database.set_counter("compacted", revision)
                self._database.set_built()
            edits = self._number(outcomes, problems, revision)
            edits.solved = solved
            self.write(edits)
            self._database.log(edits.log)
            self._database.set_counter("revision", edits.revision)
            if problems:
                doubt_problems(self._database, (Key(*entry[2:5]) for entry in edits.log))
            if (
                self._recorder is not None and not is_rebuild
            ):  # without an index the former contents are unknown
                self._database.add_to_timeline(edits.timeline, self._recorder.keep)

        is_pending = bool(edits.retained)
        if edits.log and (doubted := doubted_extents(self._database)):
            is_pending |= self.record(doubted, same_boot=same_boot)
        return is_pending

    def observe(
        self, extents: Extents, revision: int, has_read: Callable[[Key], bool]
    ) -> ObservedEdits | None:
        """Return the edits of some extents, numbered from the next revision on; None without any.
        Nothing is written.

        ``has_read``: objects of which a transaction has another state already; their edits are left
        out.
        """
        problems = self._database.problems()
        outcomes, solved = self._find(extents, problems, same_boot=True)
        outcomes = [
            outcome for outcome in outcomes if not (key := _key_of(outcome)) or not has_read(key)
        ]
        if not outcomes and not solved:
            return None
        edits = self._number(outcomes, problems, revision)
        edits.solved = solved
        return edits

    def _find(
        self, extents: Extents, problems: KnownProblems, same_boot: bool
    ) -> tuple[list[Outcome], set[str]]:
        """Compare some extents with their rows; return what is new, and the paths of problems that
        are no more."""
        self._compared = []
        known = KnownState(problems, same_boot=same_boot, compared=self._compared)
        scan = scan_extents(self._folder, extents)
        unchanged = find_unchanged(self._database, scan) if same_boot else frozenset()
        rows = read_summaries(self._database, self._folder, extents, unchanged)
        rows, scan = leave_out(unchanged, rows, scan)
        self._sums = sums_of(rows, scan)
        outcomes: list[Outcome] = [*problems_of(scan, rows)]
        differences = compare(rows, scan, self._folder, known)
        for difference in sorted(differences, key=lambda difference: difference.path):
            outcome: Outcome | None = find_known_problem(difference, known)
            if outcome is None:
                row = self._database.row(difference.row.key) if difference.row else None
                outcome = self._examiner.examine(difference._replace(row=row))
            if outcome is not None:
                outcomes.append(outcome)

        self._database.require_absent(
            [
                outcome.key
                for outcome in outcomes
                if isinstance(outcome, Edited)
                and not outcome.row
                and not self._database.row(outcome.key)
            ]
        )
        known_problems = set(problems.values())
        present = {outcome.problem.path for outcome in outcomes if isinstance(outcome, InvalidFile)}
        solved = {
            path
            for path in problems.keys() - present
            if any(extent.has(path) for extent in extents)
        }
        return [
            outcome
            for outcome in outcomes
            if not isinstance(outcome, InvalidFile)
            or (outcome.stamp, outcome.problem) not in known_problems
        ], solved

    def _number(
        self, outcomes: list[Outcome], problems: KnownProblems, revision: int
    ) -> ObservedEdits:
        """Give outcomes their revisions after one. ``problems``: those before."""
        left_out = {path for path, (_, problem) in problems.items() if not problem.keeps_object}
        edits = ObservedEdits(revision)
        for outcome in sorted(outcomes, key=_order):
            self._add(outcome, left_out, edits)
        return edits

    def _add(self, outcome: Outcome, left_out: set[str], edits: ObservedEdits) -> None:
        """Add one outcome. ``left_out``: the paths of objects that lists have left out because of
        their files; their watchers must hear of it when such an object is back."""
        if isinstance(outcome, InvalidFile):
            edits.problems.append(outcome)
            if outcome.problem.keeps_object and outcome.row and outcome.problem.path in left_out:
                edits.put(outcome.row, MODIFIED)
        elif isinstance(outcome, Removed):
            edits.removed[outcome.row.key] = outcome.row
            edits.delete(outcome.row)
            self._note(edits, outcome.row.key, outcome.row.json, None)
        elif isinstance(outcome, Retained):
            edits.retained.add(outcome.row.key)
            pending = outcome.row._replace(json=outcome.json, state=PENDING, replaces="")
            edits.put(pending, MODIFIED, outcome.row.json)
            self._note(edits, outcome.row.key, outcome.row.json, outcome.json)
        elif isinstance(outcome, Edited):
            self._add_edited(outcome, edits)
        else:
            known = outcome.row
            row = known._replace(
                **outcome.stamp._asdict(),
                digest=outcome.digest,
                racy=int(outcome.racy),
                managers=outcome.managers,
                canonical=known.canonical if outcome.digest == known.digest else 0,
            )
            if path_of(row.key) in left_out:
                edits.put(row, MODIFIED)
            else:
                edits.restamped[row.key] = row

    def _add_edited(self, edited: Edited, edits: ObservedEdits) -> None:
        """Add an edit. Another object in the place of one, as `git checkout` leaves it, is a
        deletion and an addition: whatever depends on the first has lost it."""
        old = edited.row
        is_new = old is None
        if old is not None and _uid_in(old.json) != _uid_in(edited.json):
            is_new = True
            edits.delete(old)
            self._note(edits, old.key, old.json, None)

        row = Row(
            *edited.key,
            0,
            edited.json,
            *edited.stamp,
            edited.digest,
            int(edited.racy),
            managers=edited.managers,
        )
        before = None if is_new or old is None else old.json
        edits.put(row, ADDED if is_new else MODIFIED, before)
        self._note(edits, edited.key, before, edited.json)

    def _note(self, edits: ObservedEdits, key: Key, old: str | None, new: str | None) -> None:
        """Note the change of an object on the timeline."""
        if self._recorder is not None and key.resource in self._recorder.resources:
            before, after = (json.loads(text) if text is not None else None for text in (old, new))
            now = self._recorder.edit_time()
            edits.timeline += self._recorder.entries(
                key, edits.revision, now, before, after, is_outside=True
            )

    def write(self, edits: ObservedEdits, overwritten: Container[Key] = ()) -> None:
        """Write rows and problems to the index, in a transaction of it, but for rows that are
        overwritten anyway."""
        for outcome in edits.problems:
            self._database.put_problem(outcome.problem, outcome.stamp)
        for path in edits.solved:
            self._database.remove_problem(path)
        removed = [row for row in edits.removed.values() if row.key not in overwritten]
        self._database.remove(row.key for row in removed)
        for row in removed:
            if row.managers and not self._database.in_memory:  # the managers go with their object
                settle_managers(self._folder, row, "")
                self._folder.remove_empty_managed(parent_of(path_of(row.key)))
        self._database.put(row for row in edits.rows.values() if row.key not in overwritten)
        for row in edits.restamped.values():
            if row.key not in overwritten:
                self._database.restamp(row)


def _uid_in(text: str | None) -> object:
    return json.loads(text)["metadata"].get("uid") if text else None


def _key_of(outcome: Outcome) -> Key | None:
    """Return the key of the object that an outcome is about, None for a file without one that is
    known."""
    if isinstance(outcome, Edited):
        return outcome.key
    return outcome.row.key if outcome.row else None


def _order(outcome: Outcome) -> tuple[Key, str]:
    """Put problems first, by path; then the others, by key."""
    if isinstance(outcome, InvalidFile):
        return Key("", "", ""), outcome.problem.path
    return (outcome.key if isinstance(outcome, Edited) else outcome.row.key), ""
