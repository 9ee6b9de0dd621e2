"""The records of a search that is not over, in the user's cache, so that it can be resumed.

The file has a line of JSON for each run, in the order in which the search has asked for them: the
digest of what follows, and the record. States that an earlier line has are left out, as the search
does nothing with them. The search asks for the same runs again, and gets the records from the file
as long as there are some; so the report is that of a search that was not interrupted.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from kubepy import __version__, system
from kubepy.fuzz.cases import FuzzCase
from kubepy.fuzz.checks import Violation
from kubepy.fuzz.run import RunRecord, Seen
from kubepy.lazy import blake2b, lazy_imports
from kubepy.quoting import printable
from kubepy.runtime.oracle import Choice, Point, RunName, parse_run
from kubepy.storage import FolderError, Key

with lazy_imports():
    from kubepy.server.envtest import assets

BETWEEN_WRITES = 1.0  # seconds; a search that takes less writes nothing
KEPT_DAYS = 30
DIGEST_BYTES = 8
RunMany = Callable[[Sequence[RunName]], Iterable[RunRecord]]
Say = Callable[[str], object]


class KeptSearch:
    """A search whose records are kept until it is over. As a context manager it removes them at its
    end, and keeps them when an exception ends it.

    :param say: is told what becomes of the file, in one line.
    :param resumes: go on with what is kept.
    :ivar case: the case as it was when the search began: with a clock that runs, it was earlier.
    """

    def __init__(self, case: FuzzCase, seeds: Sequence[int], say: Say, *, resumes: bool) -> None:
        self.case = case
        self._say = say
        self._folder = os.path.join(assets.cache_folder(), "fuzz")
        self._path = os.path.join(self._folder, f"{search_digest(case, seeds)}.jsonl")
        self._file = -1
        self._length = 0  # of the file, as far as it is good
        self._is_off = False  # the records cannot be kept
        self._count = 0
        self._kept: deque[RunRecord] = deque()
        self._digests: set[int] = set()  # of the states in the file
        self._due = time.monotonic() + BETWEEN_WRITES
        if resumes:
            self._resume()
        moment = self.case.image.moment if self.case.image is not None else ""
        self._lines = [] if self._length else [_line({"kubepy": __version__, "moment": moment})]

    def kept_by(self, run_many: RunMany, made: Callable[[int], object]) -> RunMany:
        """Return what makes runs like ``run_many``, but takes kept ones, and keeps the others.

        :param made: is told how many were taken.
        """

        def run(names: Sequence[RunName]) -> Iterator[RunRecord]:
            taken = min(len(names), len(self._kept))
            for name in names[:taken]:
                record = self._kept.popleft()
                if str(record.name) != str(name):
                    raise FolderError(
                        f"{self._path}: has run {record.name} where run {name} comes next: "
                        "search without --resume"
                    )
                yield record
            made(taken)
            for record in run_many(names[taken:]) if taken < len(names) else ():
                self._keep(record)
                yield record

        return run

    # --- writing

    def _keep(self, record: RunRecord) -> None:
        self._count += 1
        if self._is_off:
            return
        seen = tuple(seen for seen in record.seen if seen.digest not in self._digests)
        self._digests.update(seen.digest for seen in seen)
        self._lines.append(_line(record_data(record._replace(seen=seen))))
        if time.monotonic() >= self._due:
            self._write()
            self._due = time.monotonic() + BETWEEN_WRITES

    def _write(self) -> None:
        """Write what is due. It is written again where an interrupt comes in between."""
        if self._is_off or not self._lines:
            return
        try:
            if self._file < 0:
                self._open(os.O_CREAT)
                os.ftruncate(self._file, 0)
                self._remove_old()
            data = b"".join(self._lines)
            os.lseek(self._file, self._length, os.SEEK_SET)
            if os.write(self._file, data) < len(data):
                raise OSError(0, "no space left on device")
            self._lines, self._length = [], self._length + len(data)
        except OSError as error:
            self._is_off = True
            self._say(f"note: {self._path}: {error.strerror}: this search cannot be resumed")

    def _open(self, flags: int) -> None:
        """Open the file for this search alone. Raises OSError."""
        if flags:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
        file = os.open(self._path, system.UPDATE | flags, 0o600)
        if system.is_locked(file):
            os.close(file)
            raise BlockingIOError(0, "the same search is under way")
        self._file = file

    def _remove_old(self) -> None:
        """Remove the files of searches that nobody has resumed for long."""
        oldest = time.time() - KEPT_DAYS * 86_400
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)

    # --- going on

    def _resume(self) -> None:
        """Take over what is kept, or say why not."""
        try:
            self._open(0)
            self._take_over()
        except FileNotFoundError:
            self._say("note: there is nothing to resume: the search begins anew")
        except BlockingIOError as error:
            self._is_off = True
            self._say(f"note: {self._path}: {error.strerror}: this one begins anew")
        except (OSError, FolderError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            self._kept.clear()
            self._digests.clear()
            self._length = 0
            self._close()
            self._say(printable(f"note: {self._path}: {words}: the search begins anew"))

    def _take_over(self) -> None:
        """Read the file. Raises OSError, and FolderError for one that is of no use."""
        with open(self._path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            del lines[-1]  # the end came while it was written
        if not lines:
            raise FolderError("is empty")
        header, *records = [_data(line, number) for number, line in enumerate(lines, 1)]
        version = header.get("kubepy")
        if version != __version__:
            raise FolderError(printable(f"was written by kubepy {version}"))
        self._kept.extend(map(record_of, records))
        if self.case.image is not None:
            image = self.case.image._replace(moment=header["moment"])
            self.case = self.case._replace(image=image)
        self._count = len(records)
        self._length = sum(map(len, lines))
        self._digests.update(seen.digest for record in self._kept for seen in record.seen)
        self._say(f"note: {len(records)} runs are made already: the search goes on")

    # --- the end

    def _remove(self) -> None:
        """Remove the file while it is locked, where the system removes open files."""
        try:
            os.unlink(self._path)
        except PermissionError:
            self._close()
            os.unlink(self._path)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> KeptSearch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            if self._file >= 0:
                self._remove()
        else:
            self._write()
            if kind is KeyboardInterrupt and not self._is_off:
                self._say(f"note: ended after {self._count} runs; --resume goes on with them")
        self._close()


def search_digest(case: FuzzCase, seeds: Sequence[int]) -> str:
    """Return what tells a search from others, whatever the moment at which it begins."""
    image = case.image.digest if case.image is not None else None
    text = repr((*case._replace(image=None), image, tuple(seeds)))
    return blake2b(text.encode(), 16).hex()


def _line(data: Any) -> bytes:
    text = json.dumps(data, separators=(",", ":"))
    digest = blake2b(text.encode(), DIGEST_BYTES).hex()
    return f'["{digest}",{text}]\n'.encode()


def _data(line: bytes, number: int) -> Any:
    """Return what a line says. Raises FolderError for a damaged one."""
    try:
        _, data = json.loads(line)
    except (ValueError, TypeError):
        data = None
    if not isinstance(data, dict) or _line(data) != line:
        raise FolderError(f"line {number} is damaged")
    return data


def record_data(record: RunRecord) -> dict[str, Any]:
    """Return a record as JSON data, without its steps; its choices only where somebody asks for
    them: those of a violation are made fewer, those before a new state begin a branch."""
    data: dict[str, Any] = {
        "run": str(record.name),
        "writes": record.writes,
        "settled": record.settled,
        "after": record.finished_after,
    }
    if record.violation is not None:
        data["violation"] = list(record.violation)
    if record.violation is not None or record.seen:
        data["choices"] = [list(choice) for choice in record.choices]
        data["seen"] = [list(seen) for seen in record.seen]
    if record.failed:
        data["failed"] = record.failed
    return data


def record_of(data: dict[str, Any]) -> RunRecord:
    """Return the record that a line holds."""
    return RunRecord(
        parse_run(data["run"]),
        _violation_of(data.get("violation")),
        tuple(
            Choice(key, value, purpose, tuple(subject))
            for key, value, purpose, subject in data.get("choices", ())
        ),
        tuple(
            Seen(
                digest, taken, points, tuple(Point(tuple(words), number) for words, number in near)
            )
            for digest, taken, points, near in data.get("seen", ())
        ),
        data["writes"],
        data["settled"],
        data["after"],
        failed=data.get("failed", ""),
    )


def _violation_of(values: list[Any] | None) -> Violation | None:
    if values is None:
        return None
    violation = Violation(*values)
    return violation._replace(key=violation.key and Key(*violation.key))
