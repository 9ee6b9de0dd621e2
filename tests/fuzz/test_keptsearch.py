"""A search that was interrupted goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kubepy.cli.parallel.runmaker import RunMaker, Task
from kubepy.controlplane.images import ClusterImage
from kubepy.fuzz import keptsearch
from kubepy.fuzz.cases import FuzzCase
from kubepy.fuzz.keptsearch import KeptSearch, record_data, record_of, search_digest
from kubepy.fuzz.run import RunRecord
from kubepy.fuzz.session import FuzzFiles, FuzzSession, new_case
from kubepy.fuzz.workers import task_of
from kubepy.runtime.oracle import RunName
from tests.cli.parallel.test_runmaker import CHECKS, OPERATOR

SEEDS = range(60)


class Interrupted(RunMaker):
    """Is interrupted when it has made so many runs."""

    def __init__(self, case: Task[RunRecord], most: int) -> None:
        super().__init__(case)
        self._left = most

    def run_many(self, names: Sequence[RunName]) -> Iterator[RunRecord]:
        for record in super().run_many(names):
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            yield record


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(keptsearch, "BETWEEN_WRITES", 0.0)
    return tmp_path / "cache" / "kubepy" / "fuzz"


@pytest.fixture
def case(tmp_path: Path) -> FuzzCase:
    operator, checks = tmp_path / "operator.py", tmp_path / "checks.yaml"
    operator.write_text(OPERATOR)
    checks.write_text(CHECKS)
    return new_case(FuzzFiles(str(operator), [str(checks)]), None)


@pytest.fixture
def said() -> list[str]:
    return []


def interrupt(case: FuzzCase, most: int, said: list[str], *, resumes: bool = False) -> None:
    """Make so many runs of a search, then interrupt it."""

    def make_runs() -> None:
        with KeptSearch(case, SEEDS, said.append, resumes=resumes) as kept:
            run_many = kept.kept_by(Interrupted(task_of(case), most).run_many, lambda count: None)
            list(run_many([RunName(seed) for seed in SEEDS]))

    with pytest.raises(KeyboardInterrupt):
        make_runs()


def search(case: FuzzCase, said: list[str], *, resumes: bool) -> tuple[object, int]:
    """Return the report of a search, and how many runs were made for it."""
    made: list[RunName] = []
    with KeptSearch(case, SEEDS, said.append, resumes=resumes) as kept:
        session = FuzzSession(kept.case)
        run_many = RunMaker.run_many

        def noted(self: RunMaker, names: Sequence[RunName]) -> Iterator[RunRecord]:
            made.extend(names)
            return run_many(self, names)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunMaker, "run_many", noted)
            report = session.search(SEEDS, kept=kept)
    return report, len(made)


@pytest.mark.parametrize("most", [0, 1, 10, 23])
def test_resumed_search_has_the_report_of_an_uninterrupted_one(
    case: FuzzCase, cache: Path, said: list[str], most: int
) -> None:
    expected, runs = search(case, [], resumes=False)
    assert not expected
    interrupt(case, most, said)
    assert said == [f"note: ended after {most} runs; --resume goes on with them"]
    report, made = search(case, said, resumes=True)
    assert report == expected
    assert made == runs - most
    assert said[1:] == [f"note: {most} runs are made already: the search goes on"]
    assert not list(cache.iterdir())


def test_search_may_be_interrupted_again_and_again(case: FuzzCase, said: list[str]) -> None:
    expected, runs = search(case, [], resumes=False)
    interrupt(case, 5, said)
    interrupt(case, 4, said, resumes=True)
    assert said[-1] == "note: ended after 9 runs; --resume goes on with them"
    assert search(case, said, resumes=True) == (expected, runs - 9)


def test_line_that_was_cut_off_is_written_again(
    case: FuzzCase, cache: Path, said: list[str]
) -> None:
    expected, runs = search(case, [], resumes=False)
    interrupt(case, 10, said)
    (path,) = cache.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    interrupt(case, 3, said, resumes=True)
    assert search(case, said, resumes=True) == (expected, runs - 12)


def test_search_without_resume_begins_anew(case: FuzzCase, cache: Path, said: list[str]) -> None:
    interrupt(case, 10, said)
    interrupt(case, 4, said)
    assert said[-1] == "note: ended after 4 runs; --resume goes on with them"
    (path,) = cache.iterdir()
    assert len(path.read_text().splitlines()) == 5


def test_nothing_to_resume_is_said(case: FuzzCase, said: list[str]) -> None:
    search(case, said, resumes=True)
    assert said == ["note: there is nothing to resume: the search begins anew"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"writes":', b'"writes":1', "line 2 is damaged"),
        (b'"run":"1"', b'"run":"7"', "line 3 is damaged"),
        (b'["', b"[1,", "line 1 is damaged"),
        (b"\n[", b"\n\n[", "line 2 is damaged"),
    ],
)
def test_damaged_file_is_ignored(
    case: FuzzCase, cache: Path, said: list[str], old: bytes, new: bytes, problem: str
) -> None:
    expected = search(case, [], resumes=False)
    interrupt(case, 10, said)
    (path,) = cache.iterdir()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    assert search(case, said, resumes=True) == expected
    assert said[1:] == [f"note: {path}: {problem}: the search begins anew"]
    assert not path.exists()


def test_file_of_another_version_is_ignored(
    case: FuzzCase, cache: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(keptsearch, "__version__", "0.0.1")
        interrupt(case, 10, said)
    (path,) = cache.iterdir()
    _, made = search(case, said, resumes=True)
    assert made >= len(SEEDS)
    assert said[1:] == [f"note: {path}: was written by kubepy 0.0.1: the search begins anew"]


def test_empty_file_is_ignored(case: FuzzCase, cache: Path, said: list[str]) -> None:
    interrupt(case, 10, said)
    (path,) = cache.iterdir()
    path.write_text("")
    search(case, said, resumes=True)
    assert said[1:] == [f"note: {path}: is empty: the search begins anew"]


def test_same_search_at_the_same_time_keeps_nothing(
    case: FuzzCase, cache: Path, said: list[str]
) -> None:
    interrupt(case, 2, [])
    with KeptSearch(case, SEEDS, said.append, resumes=True):
        for resumes in (False, True):
            _, made = search(case, said, resumes=resumes)
            assert made >= len(SEEDS)
        (path,) = cache.iterdir()
    assert said[1:] == [
        f"note: {path}: the same search is under way: this search cannot be resumed",
        f"note: {path}: the same search is under way: this one begins anew",
    ]


def test_cache_that_cannot_be_written_is_said_once(
    case: FuzzCase, tmp_path: Path, said: list[str]
) -> None:
    (tmp_path / "cache").write_text("")
    expected, _ = search(case, said, resumes=False)
    assert not expected
    assert len(said) == 1
    assert said[0].endswith(": Not a directory: this search cannot be resumed")


def test_short_search_writes_nothing(
    case: FuzzCase, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptsearch, "BETWEEN_WRITES", 3600.0)
    search(case, [], resumes=False)
    assert not cache.exists()


def test_record_comes_out_of_its_line_as_it_was(case: FuzzCase) -> None:
    records = list(RunMaker(task_of(case)).run_many([RunName(seed) for seed in SEEDS]))
    assert any(record.violation for record in records)
    for record in records:
        assert record_of(record_data(record)) == record
        failed = record._replace(failed="get pods: no", settled=False, violation=None)
        assert record_of(record_data(failed)) == failed


def test_digest_tells_searches_apart_and_not_moments(case: FuzzCase) -> None:
    image = ClusterImage(b"one", "2026-01-01T00:00:00Z", "digest")
    begun = case._replace(image=image)
    later = case._replace(image=image._replace(archive=b"two", moment="2026-01-02T00:00:00Z"))
    other = case._replace(image=image._replace(digest="other"))
    assert search_digest(begun, SEEDS) == search_digest(later, SEEDS)
    digests = {
        search_digest(case, SEEDS),
        search_digest(begun, SEEDS),
        search_digest(other, SEEDS),
        search_digest(begun, range(25)),
        search_digest(begun._replace(duration=1.0), SEEDS),
    }
    assert len(digests) == 5


def test_search_goes_on_from_the_moment_of_its_beginning(
    case: FuzzCase, cache: Path, said: list[str]
) -> None:
    image = ClusterImage(b"", "2026-01-01T00:00:00Z", "digest")
    begun = case._replace(image=image)
    with (
        pytest.raises(KeyboardInterrupt),
        KeptSearch(begun, SEEDS, said.append, resumes=False),
    ):
        raise KeyboardInterrupt
    later = case._replace(image=image._replace(moment="2026-01-02T00:00:00Z"))
    with KeptSearch(later, SEEDS, said.append, resumes=True) as kept:
        assert kept.case == begun
