"""Measure what the search for bad schedules finds in the operators of tests/fuzz/operators.

`python tools/measure_fuzz.py` prints a line for each operator: the first seed that finds its bug,
how many lines the transcript of the smallest run has, whether two replays say the same, and how
often its mended twin was accused, which should be never. `--seeds 0..299` and `--twin-seeds
0..299` say how far to look, names of operators which ones. Exit status 1 when a twin was accused,
or a transcript is too long, or a replay differs.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kubepy.fuzz.cases import FuzzCase, World
from kubepy.fuzz.reporting import FuzzReport, report_document
from kubepy.fuzz.run import RunRecord, run_once
from kubepy.fuzz.session import FuzzFiles, fuzz, new_case
from kubepy.runtime.oracle import RunName

OPERATORS = Path(__file__).resolve().parent.parent / "tests" / "fuzz" / "operators"
MOST_LINES = 40


class Finding(NamedTuple):
    """What the search made of a bug.

    :ivar seed: the first one that finds it; None: none did.
    :ivar lines: of the transcript of the smallest run.
    :ivar disturbances: of the smallest run.
    :ivar is_repeated: two replays have the same report.
    """

    seed: int | None
    check: str = ""
    lines: int = 0
    disturbances: int = 0
    replay: str = ""
    is_repeated: bool = True


def names_of_operators() -> list[str]:
    """Return the folders with a mended operator, and mostly one with a bug, relative to all."""
    folders = (path.parent for path in OPERATORS.rglob("checks.yaml"))
    return sorted(str(folder.relative_to(OPERATORS)) for folder in folders)


def case_of(name: str, variant: str) -> FuzzCase:
    """Return the case of an operator: of its ``bug``, or ``mended``."""
    return new_case(
        FuzzFiles(str(OPERATORS / name / f"{variant}.py"), [str(OPERATORS / name / "checks.yaml")]),
        None,
    )


def runs_of(name: str, variant: str, seeds: range) -> Iterator[RunRecord]:
    """Make the runs of seeds, without branches."""
    world = World(case_of(name, variant))
    for seed in seeds:
        yield run_once(world, RunName(seed))


def find(name: str, seeds: range) -> Finding:
    """Look for the bug of an operator, and shrink and repeat the first run that has it."""
    for record in runs_of(name, "bug", seeds):
        if record.violation is not None:
            return _shrunk(name, record)
    return Finding(None)


def _shrunk(name: str, record: RunRecord) -> Finding:
    seed = record.name.seed
    assert record.violation is not None
    check = record.violation.check
    report = _fuzz(name, range(seed, seed + 1))
    found = next(found for found in report.violations if found.check == check)
    documents = [report_document(_fuzz(name, found.replay)) for _ in range(2)]
    is_repeated = json.dumps(documents[0]) == json.dumps(documents[1])
    is_violated = any(entry["check"] == check for entry in documents[0]["violations"])
    return Finding(
        seed,
        check,
        found.transcript.count("\n"),
        len(found.disturbances),
        found.replay,
        is_repeated and is_violated,
    )


def _fuzz(name: str, seeds: range | str) -> FuzzReport:
    folder = OPERATORS / name
    return fuzz(folder / "bug.py", [folder / "checks.yaml"], seeds=seeds)


def accusations(name: str, seeds: range) -> list[str]:
    """Return the seeds with which a mended twin violates a check, and which one."""
    return [
        f"{record.name}: {record.violation.check}"
        for record in runs_of(name, "mended", seeds)
        if record.violation is not None
    ]


def main(arguments: list[str]) -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Formatter)
    parser.add_argument("names", nargs="*", help="of operators; none: all of them")
    parser.add_argument("--seeds", type=_seeds, default=range(300), metavar="A..B")
    parser.add_argument("--twin-seeds", type=_seeds, default=range(300), metavar="A..B")
    options = parser.parse_args(arguments)
    is_good, count, bugs = True, 0, 0
    names = options.names or names_of_operators()
    for name in names:
        begin = time.monotonic()
        has_bug = (OPERATORS / name / "bug.py").exists()
        finding = find(name, options.seeds) if has_bug else Finding(None)
        accused = accusations(name, options.twin_seeds)
        seconds = time.monotonic() - begin
        bugs += has_bug
        count += finding.seed is not None
        is_good &= finding.lines <= MOST_LINES and finding.is_repeated and not accused
        words = _words(finding) if has_bug else "has no bug"
        print(f"{name:28} {words}, {_twin_words(accused)}, {seconds:.0f}s", flush=True)
    print(f"{count} of {bugs} bugs found")
    return 0 if is_good else 1


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    pass


def _seeds(text: str) -> range:
    match = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is not of the form 0..299")
    return range(int(match[1]), int(match[2]) + 1)


def _words(finding: Finding) -> str:
    if finding.seed is None:
        return "not found"
    repeated = "" if finding.is_repeated else ", NOT the same when repeated"
    return (
        f"seed {finding.seed}: {finding.check}, {finding.disturbances} disturbances, "
        f"{finding.lines} lines{repeated}, {finding.replay}"
    )


def _twin_words(accused: list[str]) -> str:
    return f"twin ACCUSED {len(accused)} times: {accused[:3]}" if accused else "twin fine"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
