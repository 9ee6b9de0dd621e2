"""Disturb the real controllers.

    python -m tests.fuzz                                  all scenarios, for an hour on this machine's cores
    python -m tests.fuzz job-indexed drain --minutes 5    two of them
    python -m tests.fuzz job-indexed --seeds 0..99        these seeds of one, and no others
    python -m tests.fuzz --mutations                      each mistake of mutations.py: is it found?
    python -m tests.fuzz --mutations cronjob --seeds 0..9 those whose name has a word

Prints runs and violations of each scenario; exits 1 when a check was violated, or a mistake was not found.
"""  # noqa: E501

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from kubepy.cli.plan_seeds import parse_seeds

from .mutations import MUTATIONS, Mutation, install

MINUTES = 60.0
BATCH = 32  # seeds of a scenario in a row
MUTATION_SEEDS = range(300)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="scenarios, or words of mistakes")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--seeds", type=parse_seeds, default=None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--mutation", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    seeds = options.seeds
    if options.mutation is not None:
        return find_here(MUTATIONS[options.mutation], seeds or MUTATION_SEEDS)
    if options.mutations:
        return find_mutations(options.names, seeds or MUTATION_SEEDS)
    return disturb(options.names, seeds, options.minutes, options.jobs)


def disturb(names: Sequence[str], seeds: range | None, minutes: float, jobs: int) -> int:
    """Run scenarios until the time is over, each with BATCH seeds more in its turn; or with given
    seeds. A scenario of which a check was violated is left out from there on."""
    from kubepy.fuzz.session import FuzzSession
    from kubepy.fuzz.text import report_text

    from .scenarios import all_scenarios

    end = time.monotonic() + 60 * minutes
    waiting = {
        scenario.name: FuzzSession(scenario.case())
        for scenario in all_scenarios()
        if not names or scenario.name in names
    }
    violated = []
    begin = 0
    while waiting and (begin == 0 or (seeds is None and time.monotonic() < end)):
        for name, session in list(waiting.items()):
            if seeds is None and begin and time.monotonic() >= end:
                break
            report = session.search(seeds or range(begin, begin + BATCH), jobs)
            print(f"{name}: {report.runs} runs, {report.states} states", flush=True)
            if not report:
                print("\n".join(report_text(report, "")), flush=True)
                violated.append(name)
                del waiting[name]
        begin += BATCH
    print(f"violated: {', '.join(violated) or 'nothing'}")
    return int(bool(violated))


def find_mutations(words: Sequence[str], seeds: range) -> int:
    """Look for the mistakes whose names have one of the words, each in a process of its own."""
    missed = 0
    chosen = [
        number
        for number, mutation in enumerate(MUTATIONS)
        if not words or any(word in mutation.name for word in words)
    ]
    for number in chosen:
        span = f"{seeds.start}..{seeds.stop - 1}"
        command = [sys.executable, "-m", "tests.fuzz", f"--mutation={number}", f"--seeds={span}"]
        missed += subprocess.run(command, check=False).returncode != 0
    print(f"found {len(chosen) - missed} of {len(chosen)}")
    return int(missed > 0)


def find_here(mutation: Mutation, seeds: range) -> int:
    """Make a mistake in this process, and print what finds it; return 1 where nothing does."""
    install(mutation)
    from kubepy.fuzz.cases import World
    from kubepy.fuzz.run import run_once
    from kubepy.runtime.oracle import RunName

    from .scenarios import all_scenarios

    cases = {
        scenario.name: scenario.case()
        for scenario in all_scenarios()
        if scenario.name in mutation.scenarios
    }
    for name in mutation.scenarios:
        world = World(cases[name])
        for seed in seeds:
            violation = run_once(world, RunName(seed)).violation
            if violation is not None:
                print(f"{mutation.name}: {violation.check} ({name}, seed {seed})")
                return 0
    print(f"{mutation.name}: not found")
    return 1


if __name__ == "__main__":
    sys.exit(main())
