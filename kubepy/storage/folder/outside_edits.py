"""Record the edits of other programs to the files: each becomes a revision and an entry of the change log.

The files of objects themselves are left as they are.
"""

from __future__ import annotations

import json
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
    find_known_problem,
    problems_of,
)
from kubepy.storage.folder.database import PENDING, Database, KnownProblems, Row
from kubepy.storage.folder.paths import parent_of, path_of
from kubepy.storage.folder.scan import scan_objects
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Key, LogEntry

if TYPE_CHECKING:
    from kubepy.storage.timeline import TimelineEntry, TimelineRecorder


class OutsideEdits:
    """Brings the index to what the files say. For the holder of the lock, or for an index in memory.

    :param now: the cluster's time in seconds, from which a rebuilt index counts its revisions on.
    :param recorder: makes the entries of the timeline.
    """

    def __init__(self, database: Database, examiner: Examiner, now: float,
                 recorder: TimelineRecorder | None = None) -> None:
        self._database = database
        self._examiner = examiner
        self._folder = examiner.folder
        self._now = now
        self._recorder = recorder
        self._timeline: list[TimelineEntry] = []
        self._revision = 0  # the last one that was given

    def record(self, *, same_boot: bool) -> bool:
        """Record all edits; return whether there are PENDING rows now: files that were removed and are written again.

        ``same_boot``: the machine was not started anew since the index was last recovered.
        """
        problems = self._database.problems()
        known = KnownState(problems, same_boot=same_boot, refresh=True)
        rows = self._database.row_summaries()
        scan = scan_objects(self._folder)
        outcomes: list[Outcome] = [*problems_of(scan.obstacles, rows)]
        differences = compare(rows, scan, self._folder, known)
        for difference in sorted(differences, key=lambda difference: difference.path):
            outcome: Outcome | None = find_known_problem(difference, known)
            if outcome is None:
                row = self._database.row(difference.row.key) if difference.row else None
                outcome = self._examiner.examine(difference._replace(row=row))
            if outcome is not None:
                outcomes.append(outcome)
        problem_paths = {outcome.problem.path for outcome in outcomes if isinstance(outcome, InvalidFile)}
        known_problems = set(problems.values())
        new_outcomes = [outcome for outcome in outcomes if not isinstance(outcome, InvalidFile)
                        or (outcome.stamp, outcome.problem) not in known_problems]
        is_rebuild = not self._database.is_built()
        if new_outcomes or is_rebuild or problems.keys() - problem_paths:
            self._record(new_outcomes, problems, problem_paths, is_rebuild=is_rebuild)
        return any(isinstance(outcome, Retained) for outcome in new_outcomes)

    def _record(self, outcomes: list[Outcome], problems: KnownProblems, problem_paths: set[str], *,
                is_rebuild: bool) -> None:
        """Write outcomes to the index. ``problems``: those before; ``problem_paths``: of those there are now."""
        with self._database.write():
            left_out = {path for path, (_, problem) in problems.items() if not problem.keeps_object}
            self._revision = self._database.counter("revision")
            if is_rebuild:
                if not self._database.in_memory:
                    self._folder.sync_all()  # the rows of a new index count as DURABLE
                # A new index begins beyond what the one before can have reached, so that a resource version from then
                # is never taken for one of now. Milliseconds go by faster than revisions.
                self._revision = max(self._revision + 1, len(outcomes), int(self._now * 1000))
                self._database.set_counter("compacted", self._revision)
                self._database.set_built()
            for outcome in sorted(outcomes, key=_order):
                self._record_one(outcome, left_out)
            for path in problems.keys() - problem_paths:
                self._database.remove_problem(path)
            self._database.set_counter("revision", self._revision)
            if self._recorder is not None and not is_rebuild:  # without an index the former contents are unknown
                self._database.add_to_timeline(self._timeline, self._recorder.keep)

    def _record_one(self, outcome: Outcome, left_out: set[str]) -> None:
        """Write one outcome. ``left_out``: the paths of objects that lists have left out because of their files; their
        watchers must hear of it when such an object is back."""
        if isinstance(outcome, InvalidFile):
            self._database.put_problem(outcome.problem, outcome.stamp)
            if outcome.problem.keeps_object and outcome.row and outcome.problem.path in left_out:
                self._put(outcome.row, MODIFIED)
        elif isinstance(outcome, Removed):
            row = outcome.row
            self._database.remove([row.key])
            self._database.log([LogEntry(self._next_revision(), DELETED, *row.key, row.json)])
            self._note(row.key, row.json, None)
            if row.managers and not self._database.in_memory:  # the managers go with their object
                settle_managers(self._folder, row, "")
                self._folder.remove_empty_managed(parent_of(path_of(row.key)))
        elif isinstance(outcome, Retained):
            self._put(outcome.row._replace(json=outcome.json, state=PENDING, replaces=""), MODIFIED)
            self._note(outcome.row.key, outcome.row.json, outcome.json)
        elif isinstance(outcome, Edited):
            self._put_edited(outcome)
        else:
            known = outcome.row
            row = known._replace(**outcome.stamp._asdict(), digest=outcome.digest, racy=int(outcome.racy),
                                 managers=outcome.managers,
                                 canonical=known.canonical if outcome.digest == known.digest else 0)
            if path_of(row.key) in left_out:
                self._put(row, MODIFIED)
            else:
                self._database.restamp(row)

    def _put_edited(self, edited: Edited) -> None:
        """Record an edit. Another object in the place of one, as `git checkout` leaves it, is a deletion and an
        addition: whatever depends on the first has lost it."""
        old = edited.row
        is_new = old is None
        if old is not None and _uid_in(old.json) != _uid_in(edited.json):
            is_new = True
            self._database.log([LogEntry(self._next_revision(), DELETED, *old.key, old.json)])
            self._note(old.key, old.json, None)
        row = Row(*edited.key, 0, edited.json, *edited.stamp, edited.digest, int(edited.racy),
                  managers=edited.managers)
        self._put(row, ADDED if is_new else MODIFIED)
        self._note(edited.key, None if is_new or old is None else old.json, edited.json)

    def _note(self, key: Key, old: str | None, new: str | None) -> None:
        """Note the change of an object on the timeline."""
        if self._recorder is not None and key.resource in self._recorder.resources:
            before, after = (json.loads(text) if text is not None else None for text in (old, new))
            now = self._recorder.edit_time()
            self._timeline += self._recorder.entries(key, self._revision, now, before, after, is_outside=True)

    def _put(self, row: Row, change_type: str) -> None:
        """Store a row at the next revision, and log the change."""
        row = row._replace(revision=self._next_revision())
        self._database.put([row])
        self._database.log([LogEntry(row.revision, change_type, *row.key, None)])

    def _next_revision(self) -> int:
        self._revision += 1
        return self._revision


def _uid_in(text: str | None) -> object:
    return json.loads(text)["metadata"].get("uid") if text else None


def _order(outcome: Outcome) -> tuple[Key, str]:
    """Put problems first, by path; then the others, by key."""
    if isinstance(outcome, InvalidFile):
        return Key("", "", ""), outcome.problem.path
    return (outcome.key if isinstance(outcome, Edited) else outcome.row.key), ""
