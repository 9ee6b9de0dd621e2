"""The report of a fuzz: what was violated, by which run, and how it can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_duration
from kubepy.fuzz.checks import Violation
from kubepy.fuzz.run import RunRecord, RunStep


class FoundViolation(NamedTuple):
    """A violated check, with the smallest run that violates it.

    :ivar seed: of the run in which it was found first.
    :ivar replay: the name of the smallest run.
    :ivar disturbances: of the smallest run, one line each.
    :ivar left_out: the numbers of the commands that the smallest run does not need.
    :ivar steps: what happens in it.
    :ivar is_branch: the run in which it was found was a branch of that of the seed.
    :ivar also: the seeds of other runs that violate the same check.
    """

    seed: int
    replay: str
    violation: Violation
    disturbances: tuple[str, ...]
    left_out: tuple[int, ...]
    steps: tuple[RunStep, ...]
    also: tuple[int, ...]
    transcript: str = ""
    is_branch: bool = False

    @property
    def check(self) -> str:
        """The name of the check."""
        return self.violation.check

    @property
    def at(self) -> float:
        """Seconds of the cluster's time from the beginning of the smallest run."""
        return self.violation.at


class FuzzReport(NamedTuple):
    """The outcome of a fuzz.

    :ivar runs: how many were made, branches included and those of shrinking not.
    :ivar states: how many distinct states of what checks read were seen.
    :ivar raised: the first exception of an operator's function; "" for none.
    :ivar failed: the first command that failed in a run, with what it said; "" where none did.
    """

    runs: int
    branches: int
    states: int
    checks: tuple[str, ...]
    violations: tuple[FoundViolation, ...]
    failed: str = ""
    raised: str = ""

    def __bool__(self) -> bool:
        return not self.violations


def report_document(report: FuzzReport) -> Object:
    """Return a report as JSON data."""
    return {
        "kind": "Fuzz",
        "runs": report.runs,
        "branches": report.branches,
        "states": report.states,
        "checks": list(report.checks),
        "violations": [
            {
                "seed": found.seed,
                "replay": found.replay,
                "check": found.check,
                "at": format_duration(found.at),
                "message": found.violation.message,
                "object": found.violation.key and found.violation.key._asdict(),
                "disturbances": list(found.disturbances),
                "also": list(found.also),
                "transcript": found.transcript,
            }
            for found in report.violations
        ],
    }


def first_of_each_check(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return the runs that violate a check by its name, each in their order."""
    by_check: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.violation is not None:
            by_check.setdefault(record.violation.check, []).append(record)
    return by_check
