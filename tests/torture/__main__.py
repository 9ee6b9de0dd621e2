"""Inject faults into storage.

    python -m tests.torture                                       everything, for half an hour on two cores
    python -m tests.torture kill power --minutes 5                two sections
    python -m tests.torture kill --scenario apply --point 37      one point again

Prints points, losses and seconds of each section and in sum; exits 1 when anything was lost.
"""  # noqa: E501

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.etcd import program

from . import (
    damage,
    edits,
    etcd_histories,
    histories,
    kill,
    linear,
    pairs,
    power,
    restart,
    served,
)
from .runner import Options, Report, Section, repeat, run_section, tell

SECTIONS: dict[str, Section] = {
    section.name: section
    for section in (
        kill.SECTION,
        power.SECTION,
        restart.SECTION,
        damage.SECTION,
        edits.SECTION,
        linear.SECTION,
        served.SECTION,
        histories.SECTION,
        pairs.SECTION,
        etcd_histories.SECTION,
    )
}
MINUTES = 28.0
LEAST_SECONDS = 10.0  # the least time of a section, however long those before it took
SAMPLE_SEED = 1
# Part of each section that `make test` runs: so many points of these scenarios (none given: of
# all).
SAMPLE: dict[str, tuple[int, tuple[str, ...]]] = {
    "kill": (
        240,
        (
            "mixed",
            "managed-removed",
            "edits-and-commit",
            "rebuild",
            "init",
            "apply-server-side-changed",
            "set-image",
            "repair",
        ),
    ),
    "power": (
        600,
        (
            "mixed",
            "delete-create",
            "managed-changed",
            "many-deleted",
            "rebuild-and-commit",
            "init",
            "set-image",
        ),
    ),
    "restart": (160, ()),
    "damage": (40, ()),
    "edits": (
        8,
        (
            "rename-and-readers",
            "truncate-and-readers",
            "remove-and-add-and-readers",
            "in-place-and-readers",
        ),
    ),
    "linear": (8, ()),
    "served": (5, ()),
    "histories": (16, ()),
    "pairs": (6, ()),
    "etcd": (2, ("restarted", "members")),
}


def main() -> int:
    os.environ["KUBEPY_TRUST"] = "1"  # folders are copied with their index, which no user does
    options = _arguments()
    chosen = [SECTIONS[name] for name in options.sections or SECTIONS]
    if etcd_histories.SECTION in chosen and program() is None:
        print("there is no etcd here, and so no section etcd: `make etcd` installs it")
        chosen.remove(etcd_histories.SECTION)
    if not chosen:
        return 1
    print(f"seed {options.seed}, {options.jobs} processes", flush=True)
    if options.point:
        reports = [
            repeat(chosen[0], options.scenario, options.point, _settings(options, chosen[0]))
        ]
        tell(reports[0], options.seed)
    else:
        reports = run_all(chosen, options)
    losses = sum(len(report.losses) for report in reports)
    if len(reports) > 1:
        print(
            f"{'sum':8} {sum(report.points for report in reports):7} points {losses:6} losses "
            f"{sum(report.seconds for report in reports):7.0f} s"
        )
    return 1 if losses else 0


def _settings(options: argparse.Namespace, section: Section) -> Options:
    points, scenarios = SAMPLE[section.name] if options.sample else (options.points, ())
    return Options(
        options.seed, options.jobs, points, (options.scenario,) if options.scenario else scenarios
    )


def run_all(sections: list[Section], options: argparse.Namespace) -> list[Report]:
    """Run all sections; each gets its share of the time that is left."""
    start = time.monotonic()
    reports = []
    for number, section in enumerate(sections):
        left = options.minutes * 60 - (time.monotonic() - start)
        shares = sum(other.minutes for other in sections[number:])
        report = run_section(
            section,
            _settings(options, section),
            max(left * section.minutes / shares, LEAST_SECONDS),
        )
        tell(report, options.seed)
        reports.append(report)
    return reports


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--scenario", default="", help="only this one")
    parser.add_argument(
        "--point", default="", help="only this point of the scenario, of one section"
    )
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="chooses points and what is by chance"
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all sections together")
    parser.add_argument("--points", type=int, default=0, help="so many of each section at most")
    parser.add_argument(
        "--sample", action="store_true", help="the few points that `make test` tries"
    )
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time"
    )
    options = parser.parse_args()
    if options.sample:
        options.seed = SAMPLE_SEED
    if unknown := set(options.sections) - SECTIONS.keys():
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    if options.point and (len(options.sections) != 1 or not options.scenario):
        parser.error("--point needs one section and --scenario")
    return options


if __name__ == "__main__":
    sys.exit(main())
