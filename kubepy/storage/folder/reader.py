"""Read objects and changes: the rows of the index at one revision, corrected by the files that
differ from them.

No reader waits for a writer. Where a file differs, the lock is taken if it is free at once, to
record the edit; else the edit is shown from memory.

The files are scanned first, the rows are read after that. A commit is recorded before its files are
replaced, so the effects of a commit on the files that were scanned stand in the rows. A file that
differs from its row all the same was either changed by a commit since (then it is, by now, as the
row says, or the row is another one), or it was edited from outside. Another process may record such
an edit at this very moment; then the newer row, with the stamp of the scan, holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import CompactedError
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.compare import (
    Difference,
    Edited,
    InvalidFile,
    KnownState,
    Outcome,
    Removed,
    Retained,
    Unchanged,
    compare,
    doubted_extents,
    find_known_problem,
    is_settled,
    key_of_file,
    problems_of,
)
from kubepy.storage.folder.database import DamagedError, Database, Place, Row
from kubepy.storage.folder.manifest import ContentError
from kubepy.storage.folder.paths import SUFFIX, encode, path_of
from kubepy.storage.folder.scan import (
    EVERYTHING,
    Extent,
    Extents,
    FolderScan,
    extent_at,
    find_unchanged,
    leave_out,
    read_summaries,
    scan_extents,
    sums_of,
    without_overlaps,
)
from kubepy.storage.model import (
    DELETED,
    Change,
    ChangesSince,
    CoalescedEntry,
    Key,
    Problem,
    coalesce,
)

with lazy_imports():
    from kubepy.storage.folder import directories

MAX_COMPARISONS = 10  # of a folder in which other processes are busy

ReadRows = Callable[[Database], list[Row]]


class FolderView(NamedTuple):
    """Live rows by key, and the files and folders among those scanned that cannot be read as
    objects, by path.

    A view of everything has only the rows of some places: those in which something differs.

    :ivar unrecorded: the keys of objects that are not as the index has them, or are left out
        because of their files.
    :ivar places: the places of all rows that were read.
    :ivar sums: of the files in these places, if all is recorded.
    :ivar is_recorded: all that is in the files stands in the index.
    """

    revision: int
    rows: dict[Key, Row]
    problems: list[Problem]
    unrecorded: set[Key]
    places: frozenset[Place]
    sums: dict[Place, int]
    is_recorded: bool


class DifferenceCause(Enum):
    """The reason why a file that was scanned differs from its row."""

    EDITED = auto()  # from outside, and no process has recorded it yet
    RECORDED = auto()  # from outside; the row that it has by now holds the edit
    COMMITTED = auto()  # the row is newer than the scan
    OVERTAKEN = auto()  # more happened than can be told: scan again


class _Comparison(NamedTuple):
    """One snapshot compared with the files. ``recorded``: rows newer than the snapshot that hold
    edits from outside. ``sums``: of the files of the folders whose rows were compared, as the rows
    have them."""

    revision: int
    rows: list[Row]
    known: KnownState
    differences: list[Difference]
    recorded: list[Row]
    obstacles: list[InvalidFile]
    sums: dict[Place, int]
    extents: Extents

    def solved(self) -> bool:
        """Return whether there is a known problem no more."""
        if not self.known.problems:
            return False
        present = {printable(difference.path) for difference in self.differences}
        present.update(obstacle.problem.path for obstacle in self.obstacles)
        return any(
            path not in present and any(extent.has(path) for extent in self.extents)
            for path in self.known.problems
        )


class Reader:
    """Reads the objects of a folder as they are in its files.

    :ivar problems: those that the last look at everything has met; None before the first.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._folder = access.folder
        self.problems: list[Problem] | None = None

    def view_all(self) -> FolderView:
        """View everything there is; the rows are without their JSON."""
        view = self._view(EVERYTHING)
        self.problems = view.problems
        return view

    def recorded_revision(self) -> int | None:
        """Return the newest revision if the index has all that is in the files, None if something
        differs."""
        comparison = self._compare_with_newest(EVERYTHING)
        return None if comparison.differences or comparison.recorded else comparison.revision

    def view_list(self, resource: str, namespace: str | None) -> FolderView:
        """View all objects of a resource in a namespace (None: in all)."""
        return self._view(
            (Extent(resource, namespace),), lambda database: database.rows(resource, namespace)
        )

    def view_summaries(self, resource: str, namespace: str | None) -> FolderView:
        """View all objects of a resource in a namespace (None: in all); the rows are without their
        JSON."""
        return self._view((Extent(resource, namespace),))

    def view_object(self, key: Key) -> FolderView:
        """View one object."""
        return self._view((Extent(*key),))

    def look_watched(self) -> bool:
        """Record the edits of the files that the watch of the folder names; return False where
        there is none, or it cannot name them."""
        if self._access.watch is None:
            return False
        database = self._access.database()
        if (extents := self._access.unseen()) == EVERYTHING:
            return False
        if database.pending():
            self._access.try_catch_up(())  # the process that began that commit may be dead
        is_recorded = True
        if extents:
            comparison = self._compare_with_newest(extents)
            is_recorded = self._is_recorded(comparison)
        self._access.note_look(is_recorded=is_recorded)
        self.problems = sorted(
            problem for _, problem in self._access.database().problems().values()
        )
        return True

    def look_for_all(self) -> None:
        """Record all edits from outside. The sums of the files are remembered, for the next
        time."""
        if self.look_watched():
            return
        view, database = self.view_all(), self._access.database()
        self._access.note_look(is_recorded=view.is_recorded)
        if database.lacks_sums(view.sums):

            def remember() -> None:
                if database.counter("revision") == view.revision:
                    database.put_sums(view.sums)

            database.try_to_write(remember)

    def look_for(self, keys: Iterable[Key]) -> None:
        """Record edits from outside of some objects, and those that show in the times of the
        folders: files that were added, removed or replaced. The folders are remembered as they were
        found, for the next time.

        The edit of a file in place changes no time of a folder: it is seen where its object is
        read.
        """
        database = self._access.database()
        changed: Extents = EVERYTHING
        if self._access.is_same_boot(database) and not database.in_memory:
            changed = directories.find_changed(database, self._folder)
        if changed:
            times = directories.times_now(self._folder, changed)
            comparison = self._compare_with_newest(changed)
            if self._is_recorded(comparison):
                directories.remember(self._access.database(), times, changed)
        if changed != EVERYTHING:
            for extent in doubted_extents(database):
                self._compare_with_newest((extent,))
            for key in keys:
                self._compare_with_newest((Extent(*key),))

    def look_at(self, paths: Iterable[str]) -> None:
        """Record what has become of some files."""
        extents = {extent_at(path) for path in paths}
        self._compare_with_newest(
            EVERYTHING if Extent() in extents else tuple(without_overlaps(extents))
        )

    def _view(self, extents: Extents, read_rows: ReadRows | None = None) -> FolderView:
        comparison = self._compare_with_newest(extents, read_rows)
        rows = {row.key: row for row in comparison.rows if row.json is not None}
        rows.update((row.key, row) for row in comparison.recorded)
        problems = [obstacle.problem for obstacle in comparison.obstacles]
        unrecorded: set[Key] = set()
        for difference in comparison.differences:
            outcome: Outcome | None = find_known_problem(difference, comparison.known)
            if outcome is None:
                if difference.row and not difference.row.json:
                    difference = difference._replace(
                        row=self._access.database().row(difference.row.key)
                    )
                outcome = self._access.examiner.examine(difference)
            if outcome is not None:
                _apply(outcome, rows, problems, comparison.revision)
                unrecorded.update(_changed_keys(outcome))

        places = frozenset(row[:2] for row in comparison.rows)
        is_recorded = self._is_recorded(comparison)
        return FolderView(
            comparison.revision,
            rows,
            sorted(problems),
            unrecorded,
            places,
            comparison.sums if is_recorded else {},
            is_recorded,
        )

    def _compare_with_newest(
        self, extents: Extents, read_rows: ReadRows | None = None
    ) -> _Comparison:
        """Compare files and rows; where something is to be recorded and can be, once more after
        that."""
        comparison = self._compare(extents, read_rows)
        if self._is_behind(comparison) and self._access.try_catch_up(extents):
            return self._compare(extents, read_rows)
        return comparison

    def _compare(self, extents: Extents, read_rows: ReadRows | None) -> _Comparison:
        """Compare files and rows until no other process overtakes; the last of a few times is good
        enough."""
        for _ in range(MAX_COMPARISONS):
            database = self._access.database()
            folder_scan = scan_extents(self._folder, extents)
            with database.snapshot():
                revision = database.counter("revision")
                known = KnownState(database.problems(), self._access.is_same_boot(database))
                unchanged = (
                    find_unchanged(database, folder_scan) if known.same_boot else frozenset()
                )
                rows = (
                    read_rows(database)
                    if read_rows
                    else read_summaries(database, self._folder, extents, unchanged)
                )
                if read_rows:
                    unchanged = _confirm(unchanged, rows, folder_scan)
            compared, folder_scan = leave_out(unchanged, rows, folder_scan)
            causes = [
                (difference, self._find_cause(difference))
                for difference in compare(compared, folder_scan, self._folder, known)
            ]
            differences = [
                difference for difference, cause in causes if cause is DifferenceCause.EDITED
            ]
            recorded = [
                row
                for difference, cause in causes
                if cause is DifferenceCause.RECORDED and (row := self._current_row(difference))
            ]
            comparison = _Comparison(
                revision,
                rows,
                known,
                differences,
                recorded,
                problems_of(folder_scan, rows),
                sums_of(compared, folder_scan),
                extents,
            )
            if all(cause is not DifferenceCause.OVERTAKEN for _, cause in causes):
                break

        return comparison

    def _find_cause(self, difference: Difference) -> DifferenceCause:
        """Find out why a file that was scanned differs from a row that was read after that."""
        _, file, row = difference
        current = self._current_row(difference)
        is_same_row = (
            (current is None or current.json is None)
            if row is None
            else (
                current is not None
                and (current.revision, current.stamp) == (row.revision, row.stamp)
            )
        )
        if is_same_row:
            is_as_row_says = (
                row is not None
                and self._folder.stamp(path_of(row.key)) == row.stamp
                and not (file and file.stamp == row.stamp)
            )
            return DifferenceCause.COMMITTED if is_as_row_says else DifferenceCause.EDITED

        if (
            current is not None
            and current.json is not None
            and file is not None
            and current.stamp == file.stamp
        ):
            return DifferenceCause.RECORDED

        return DifferenceCause.OVERTAKEN

    def _current_row(self, difference: Difference) -> Row | None:
        """Return the row that the file of a difference has by now, None where only the object can
        tell its key."""
        if difference.row:
            return self._access.database().row(difference.row.key)
        assert difference.file is not None
        try:
            key = key_of_file(difference.file)
        except ContentError:
            return None
        return self._access.database().row(key) if key else None

    def _is_recorded(self, comparison: _Comparison) -> bool:
        """Return whether the index has all that was found."""
        return not comparison.recorded and not self._is_behind(comparison)

    def _is_behind(self, comparison: _Comparison) -> bool:
        """Return whether there is a commit to finish or an edit to record."""
        known = comparison.known
        if any(
            find_known_problem(difference, known) is None for difference in comparison.differences
        ):
            return True
        if comparison.solved() or any(
            obstacle.problem.path not in known.problems for obstacle in comparison.obstacles
        ):
            return True
        return not known.same_boot or any(not is_settled(row, known) for row in comparison.rows)


def _confirm(
    unchanged: frozenset[Place], rows: Iterable[Row], scan: FolderScan
) -> frozenset[Place]:
    """Return the places without differences of which the index has given a row for each file, as a
    sound one does."""
    if not unchanged:
        return unchanged
    files: dict[Place, set[str]] = {}
    for row in rows:
        if row.json is not None:
            files.setdefault(row[:2], set()).add(encode(row.name) + SUFFIX)
    return frozenset(
        listing.place
        for listing in scan.listings
        if listing.place in unchanged and listing.files.keys() == files.get(listing.place, set())
    )


def _apply(outcome: Outcome, rows: dict[Key, Row], problems: list[Problem], revision: int) -> None:
    """Correct the rows of a view by what a file turned out to be."""
    if isinstance(outcome, Edited):
        known_revision = outcome.row.revision if outcome.row else revision
        rows[outcome.key] = Row(*outcome.key, known_revision, outcome.json)
    elif isinstance(outcome, Removed):
        rows.pop(outcome.row.key, None)
    elif isinstance(outcome, Retained):
        rows[outcome.row.key] = Row(*outcome.row.key, outcome.row.revision, outcome.json)
    elif isinstance(outcome, InvalidFile):
        problems.append(outcome.problem)
        if outcome.row and not outcome.problem.keeps_object:
            rows.pop(outcome.row.key, None)


def _changed_keys(outcome: Outcome) -> set[Key]:
    """Return the keys of the objects that an outcome changes in a view."""
    if isinstance(outcome, Edited):
        return {outcome.key}
    return {outcome.row.key} if outcome.row and not isinstance(outcome, Unchanged) else set()


# --- the change log ---


def read_changes(database: Database, since: int) -> ChangesSince:
    """Return the changes that lead from a revision to the newest one.

    Raises CompactedError for a revision that the change log does not reach: one that is forgotten,
    or one yet to come, which is of an index before this one was rebuilt. Raises DamagedError for an
    entry beyond the counter, and for one that holds no object.
    """
    with database.snapshot():
        compacted, revision = database.counter("compacted"), database.counter("revision")
        if not compacted <= since <= revision:
            raise CompactedError(
                f"the change log reaches from revision {compacted} to {revision}, not to {since}"
            )
        entries = coalesce(database.entries(since))
        if entries and max(entry.revision for entry in entries) > revision:
            raise DamagedError("an entry of the change log is beyond the counter")
        changes = [
            change for entry in entries if (change := _change_of(database, entry)) is not None
        ]
    return ChangesSince(revision, changes)


def _change_of(database: Database, entry: CoalescedEntry) -> Change | None:
    """Return the change that entries of the log have become; None where the object is another one
    by now, whose own entries follow. Raises DamagedError."""
    if entry.type == DELETED:
        assert entry.last is not None
        change = Change(entry.revision, DELETED, entry.key, entry.last, former_json=entry.former)
    else:
        row = database.row(entry.key)
        if row is None or row.json is None:
            return None
        change = Change(row.revision, entry.type, entry.key, row.json, row.expires, entry.former)
    try:
        _ = change.object, change.former  # a damaged text shows here, not where it is used
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(str(error)) from error
    return change
