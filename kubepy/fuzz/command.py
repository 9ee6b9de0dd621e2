"""``kubepy fuzz``: a workload over many seeds, until a check is violated."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy

from kubepy.api.values.goformat import parse_span
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.parallel.runmaker import cores
from kubepy.cli.plan_seeds import parse_seeds, parse_shard
from kubepy.cli.runtime.command import Command, command, reading
from kubepy.cli.runtime.dispatch import line_of, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import (
    FlagSyntaxError,
    HelpRequested,
    bool_flag,
    int_flag,
    string_array_flag,
    string_flag,
    typed_flag,
)
from kubepy.cli.runtime.options import CommandLine, Options, output_flag
from kubepy.cli.runtime.output import document
from kubepy.controlplane.images import image_of
from kubepy.fuzz.cases import DEFAULT_DURATION, FuzzCase
from kubepy.fuzz.keptsearch import KeptSearch
from kubepy.fuzz.reporting import FuzzReport, report_document
from kubepy.fuzz.session import FuzzFiles, FuzzSession, new_case
from kubepy.fuzz.text import report_text
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.cli import plan as plans
    from kubepy.cli.parallel import daskcluster
    from kubepy.fuzz import page as pages

FORMATS = ("text", "json", "html")
VIOLATED = 2  # the exit status
BETWEEN = ";"  # stands between two commands
DEFAULT_SEEDS = range(100)
MOST_SEEDS = 1_000_000


class FuzzOptions(Options):
    """The flags of ``fuzz``."""

    operator: str = string_flag(
        "operator",
        help="A file of Python with operator(cluster), which adds controllers, and "
        "workload(cluster).",
    )
    check: list[str] = string_array_flag(
        "check",
        default=[],
        help="A file of checks, or a built-in one: bounds, settles, owners, no-conflict-storm, "
        "no-internal-error.",
    )
    seeds: range | None = typed_flag(
        "seeds",
        None,
        parse_seeds,
        help="The seeds to try; 0 disturbs nothing. Default, 0..99.",
    )
    seed: str = string_flag(
        "seed", help="Repeat one run: a seed, or what a report calls a replay (17:…)."
    )
    for_: float = typed_flag(
        "for",
        DEFAULT_DURATION,
        parse_span,
        help="How much of the cluster's time a run takes at most (10m, 1h).",
    )
    disturb: str = string_flag(
        "disturb",
        help="Which controllers are disturbed: own (the operator's), or all. Default, own where "
        "there is an operator.",
    )
    jobs: int = int_flag(
        "jobs",
        default=0,
        help="Let at most so many processes share the runs, when they take more than a few "
        "seconds. Default, one for each processor.",
    )
    shard: tuple[int, int] | None = typed_flag(
        "shard",
        None,
        parse_shard,
        help="Try only this part of the seeds: 2/5 is the second of five.",
    )
    on: str = string_flag(
        "on", help="Let a cluster of Dask make the runs: dask://HOST:PORT of its scheduler."
    )
    resume: bool = bool_flag(
        "resume", help="Go on with the same search, which was interrupted, where it was."
    )
    output: str = output_flag("text, json, html", "text")


def run_fuzz(factory: Factory, options: FuzzOptions) -> None:
    """Look for the order of things that breaks a workload.

    The workload, the commands after -- and workload(cluster) of the operator's file, runs again and again, each time on
    a fork of the cluster in its own time, or on a fresh cluster with three nodes where there is none. A seed decides
    what is left open: which controller works next, how late it hears of a change, where it ends and begins anew, which
    write meets a conflict. With seed 0 nothing is disturbed.

    The checks are judged after each write. A run that violates one is made smaller, as far as it still does, and
    printed as a transcript: a test that fails, until the bug is mended. Several commands are separated by ';'.

    The exit status is 0 if all checks hold, 2 if one is violated, 1 for an error."""  # noqa: E501
    if options.output not in FORMATS:
        raise CliError(
            f"unable to match a printer suitable for the output format {quote(options.output)}, "
            f"allowed formats are: {','.join(FORMATS)}"
        )
    if options.changed("jobs") and options.jobs < 1:
        raise CliError("--jobs must be at least 1")
    if options.for_ <= 0:
        raise CliError("--for must be more than 0")
    begun = time.monotonic()
    made = 0
    seeds = seeds_of(options)

    def note(count: int) -> None:
        nonlocal made
        made += count
        factory.progress.show("trying", made, len(seeds))

    case = case_of(factory, options)
    if options.seed:
        session = FuzzSession(case, state_words(factory), note)
        report = session.replay(options.seed)
    else:
        with ExitStack() as stack:
            executor = None
            jobs = options.jobs or cores()
            if options.on:
                executor = daskcluster.DaskExecutor(options.on)
                stack.callback(executor.shutdown, cancel_futures=True)
                jobs = executor.workers
            factory.say(f"note: each run begins with {beginning(factory)}")
            kept = stack.enter_context(KeptSearch(case, seeds, factory.say, resumes=options.resume))
            session = FuzzSession(kept.case, state_words(factory), note)
            report = session.search(seeds, jobs, executor, kept)
    factory.progress.clear()
    show(factory, options, report, session)
    if not options.seed:
        speed = report.runs / max(time.monotonic() - begun, 1e-9)
        shrinking = "" if report else ", with the shrinking of what was found"
        factory.say(f"note: {speed:.0f} runs a second{shrinking}")
    if not report:
        raise SilentExit(VIOLATED)


# With its type, which the catalogue of commands, in the same circle, would not know.
fuzz: Command = reading(
    command(
        "fuzz --check=CHECK [--operator=FILE] [-- COMMAND...]",
        FuzzOptions,
        interspersed=False,
        examples="""
# Does a rolling update ever leave its own bounds, whatever happens to the controllers?
kubepy fuzz --check=bounds -- set image deploy/web web=web:2

# An operator of one's own, with its checks, over 300 seeds in two processes
kubepy fuzz --operator=pools.py --check=checks.yaml --seeds=0..299 --jobs=2

# The run of a report again
kubepy fuzz --operator=pools.py --check=checks.yaml --seed=17:k3fq5zpa
""",
    )(run_fuzz)
)


def case_of(factory: Factory, options: FuzzOptions) -> FuzzCase:
    """Return what is to be run. Raises CliError, FolderError."""
    faults = factory.options.faults
    factory.options = copy(factory.options)
    factory.options.faults = ""
    if factory.options.state or os.environ.get("KUBEPY_STATE"):
        factory.require_cluster()
    image = image_of(factory.cluster) if factory.has_cluster else None
    commands = commands_of(options.args)
    for words in commands:
        if waits_for_ever(factory, words):
            raise CliError(f"fuzz cannot run {quote(' '.join(words))}: {plans.WAITS}")
    files = FuzzFiles(
        options.operator,
        options.check,
        commands,
        options.for_,
        faults,
        options.disturb,
    )
    return new_case(files, image)


def waits_for_ever(factory: Factory, words: Sequence[str]) -> bool:
    """Return whether a command goes on until it is interrupted: a watch, a server."""
    line = line_of(root_command(factory), list(words))
    if not line.path or line.command.run is None:
        return False
    try:
        parsed = line.command.parser().parse(line.rest)
    except (HelpRequested, FlagSyntaxError):
        return False  # the command says so itself
    given = line.command.options_of(
        CommandLine("", parsed.args, parsed.dash, parsed.flags_set), parsed.values
    )
    return plans.refusal(factory, line, given) == plans.WAITS


def commands_of(args: Sequence[str]) -> list[list[str]]:
    """Return the words of each command, without the program's name."""
    words = list(args[1:] if args[:1] == ["--"] else args)
    commands: list[list[str]] = [[]]
    for word in words:
        if word == BETWEEN:
            commands.append([])
        else:
            commands[-1].append(word)
    named = [line[1:] if line[:1] in (["kubepy"], ["kubectl"]) else line for line in commands]
    return [line for line in named if line]


def seeds_of(options: FuzzOptions) -> Sequence[int]:
    """Return the seeds to try. Raises CliError."""
    if options.seed:
        for flag in ("seeds", "shard", "jobs", "on", "resume"):
            if options.changed(flag):
                raise CliError(f"--seed repeats one run: --{flag} is for several")
        return [0]
    seeds = DEFAULT_SEEDS if options.seeds is None else options.seeds
    if len(seeds) > MOST_SEEDS:
        raise CliError(f"--seeds must be at most {MOST_SEEDS} seeds")
    if options.shard is None:
        return seeds
    part, parts = options.shard
    chosen = seeds[part - 1 :: parts]
    if not chosen:
        raise CliError(f"--shard={part}/{parts} has no seed of {len(seeds)}")
    return chosen


def beginning(factory: Factory) -> str:
    """Return with which cluster each run begins, in words."""
    if not factory.has_cluster:
        return "a fresh cluster of three nodes"
    if not factory.place:
        return "a copy of the cluster in memory"
    return f"a copy of the cluster in {quote(factory.shown_place)}"


def state_words(factory: Factory) -> list[str]:
    """Return the flags that name the cluster, as they were given."""
    state = factory.options.state
    return [f"--state={state}"] if state else []


def show(factory: Factory, options: FuzzOptions, report: FuzzReport, session: FuzzSession) -> None:
    """Print a report."""
    if report.raised:
        factory.say(f"note: an exception of the operator: {report.raised}")
    if report.failed:
        factory.say(f"note: in a run this command failed: {report.failed}")
    if options.output == "html":
        factory.print(pages.render_html(report, session.shown_run()), end="")
        return
    if options.output == "json":
        factory.print(document("json", report_document(report), typed=True), end="")
        return
    factory.print("\n".join(report_text(report, options.seed)))
