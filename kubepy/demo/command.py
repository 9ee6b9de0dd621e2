"""``kubepy demo``: a lesson; broken clusters to repair, and how far they are."""

from __future__ import annotations

import os
import shlex
import tempfile
import textwrap

from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.plan_seeds import parse_seeds
from kubepy.cli.runtime.command import Command, command, reading
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, int_flag, string_flag, typed_flag
from kubepy.cli.runtime.options import Options, output_flag
from kubepy.cli.runtime.output import document
from kubepy.demo.drawing import draw_one
from kubepy.demo.grading import BROKEN, HOLDS, Grade, grade
from kubepy.demo.lesson import WORKLOADS, Lesson
from kubepy.demo.scenarios import (
    Scenario,
    ScenarioFile,
    read_scenario,
    read_shipped,
    shipped_names,
)
from kubepy.demo.stage import STATE, STATE_VARIABLE, LessonStage, is_attended
from kubepy.demo.verification import verify
from kubepy.demo.workspace import Challenge, make_challenge, read_challenge
from kubepy.quoting import printable, quote
from kubepy.terminal import WIDTH, Colour, Painter

NOT_REPAIRED = 2  # the exit status
FORMATS = ("text", "json")
COLOURS = {HOLDS: Colour.GREEN, BROKEN: Colour.RED}


# --- the lesson -----------------------------------------------------------------------------------


class DemoOptions(Options):
    """The flags of ``demo``."""

    no_wait: bool = bool_flag(
        "no-wait", help="Do not wait for a key between steps. So it is in a pipe."
    )
    folder: str = string_flag(
        "folder", help="A new folder for the cluster of the lesson. Default, a temporary one."
    )


def run_demo(factory: Factory, options: DemoOptions) -> None:
    """Show in a terminal what is rare here, step by step: a rollout, what the controllers decide and why, one that fails, what helps, a week in a second, a fork.

    The lesson is about a Deployment, unless another kind is named. It works in a cluster of its own, in a temporary folder,
    which stays there. Every command that it shows can be typed. Enter or the space bar goes on, q ends it."""  # noqa: E501
    kinds = ", ".join(WORKLOADS)
    if len(options.args) > 1:
        options.usage_error(f"one kind of workload is taken: {kinds}")
    kind = options.args[0] if options.args else "deployment"
    if kind not in WORKLOADS:
        options.usage_error(
            f"{quote(printable(kind))} is no lesson: must be one of {kinds}, or a command: "
            "challenge, grade, hint, verify"
        )
    _refuse_open_cluster(factory)
    folder = _lesson_folder(options.folder)
    stage = LessonStage(factory, folder, waits=not options.no_wait and is_attended(factory))
    Lesson(stage, WORKLOADS[kind]).play()


# With its type, which the catalogue of commands, in the same circle, would not know.
demo: Command = command(
    "demo [deployment | daemonset | statefulset]",
    DemoOptions,
    examples="""
# The lesson, about a Deployment
kubepy demo

# About a DaemonSet or a StatefulSet
kubepy demo daemonset

# In a script, and in a folder that one knows
kubepy demo --no-wait --folder=lesson

# Broken clusters to repair
kubepy demo challenge
""",
)(run_demo)


def _refuse_open_cluster(factory: Factory) -> None:
    """Raise CliError where the command line works on a cluster that a program has opened, or names
    one."""
    if factory.open_cluster:
        raise CliError("demo makes a cluster of its own in a folder, and this one is open already")
    if factory.options.state:
        raise CliError("--state names a cluster: demo makes one of its own")


def _lesson_folder(folder: str) -> str:
    """Return the folder of a lesson, which is made. Raises CliError where it is not new."""
    if not folder:
        return tempfile.mkdtemp(prefix="kubepy-demo-")
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise CliError(f"--folder={folder}: is there already")
    os.makedirs(folder, exist_ok=True)
    return folder


# --- challenges -----------------------------------------------------------------------------------


class ChallengeOptions(Options):
    """The flags of ``demo challenge``."""

    seed: int = int_flag(
        "seed", default=1, help="What is drawn: names, numbers, which fault it is."
    )
    from_: str = string_flag("from", help="A file of a challenge, in place of a name.")


def run_challenge(factory: Factory, options: ChallengeOptions) -> None:
    """Make a broken cluster in a new folder, and tell its story. Repair it with ordinary commands: "kubepy demo grade" says how far it is.

    Without a name all challenges are listed; with --seed alone, one is drawn. The folder is NAME-SEED, unless another one
    is named. The same name and seed are the same cluster."""  # noqa: E501
    _refuse_open_cluster(factory)
    args = list(options.args)
    if options.from_:
        file = read_scenario(options.from_)
    elif args:
        file = read_shipped(args.pop(0))
    elif options.changed("seed"):
        names = shipped_names()
        file = read_shipped(draw_one(names, options.seed))
    else:
        _list_challenges(factory)
        return
    if len(args) > 1:
        options.usage_error("too many words: a name and a folder are taken")
    folder = args[0] if args else f"{file.name}-{options.seed}"
    scenario = make_challenge(file, options.seed, folder)
    _tell(factory, scenario, folder)


challenge: Command = command(
    "challenge [NAME] [FOLDER]",
    ChallengeOptions,
    examples="""
# All challenges
kubepy demo challenge

# The one about a quota; another seed is another cluster
kubepy demo challenge quota
kubepy demo challenge quota --seed=7

# One of your own, in a folder of that name
kubepy demo challenge --from=disk-full.yaml lab
""",
)(run_challenge)


def _list_challenges(factory: Factory) -> None:
    factory.print(f"{'NAME':<12}TITLE")
    for name in shipped_names():
        scenario = read_shipped(name).drawn(1)
        factory.print(f"{name:<12}{scenario.title}")


def _tell(factory: Factory, scenario: Scenario, folder: str) -> None:
    """Tell the story of a challenge, and how to go on."""
    paint = Painter(factory.stdout)
    factory.print(paint(printable(scenario.title), Colour.BOLD))
    factory.print()
    for paragraph in scenario.story.split("\n\n"):
        words = " ".join(paragraph.split())
        factory.print(textwrap.fill(words, WIDTH, break_on_hyphens=False) + "\n")
    factory.print("The cluster has a time of its own: kubepy clock advance 1m moves it.")
    factory.print()
    factory.print(f"  cd {shlex.quote(folder)}")
    if os.environ.get(STATE_VARIABLE):
        factory.print(f"  export {STATE_VARIABLE}={STATE}")
    factory.print("  kubepy get pods -A")
    factory.print("  kubepy demo grade        # is it repaired?")
    if scenario.hints:
        factory.print("  kubepy demo hint         # where to look")


# --- grades and hints -----------------------------------------------------------------------------


class GradeOptions(Options):
    """The flags of ``demo grade``."""

    output: str = output_flag("text, json", "text")


def run_grade(factory: Factory, options: GradeOptions) -> None:
    """Say whether the cluster of a challenge is repaired: which checks hold, which do not yet, and which the repair has broken.

    The checks are judged on a fork on which time goes on; the cluster itself is not changed. The exit status is 0 when it is
    repaired, 2 when it is not, 1 for an error."""  # noqa: E501
    options.require_no_args()
    if options.output not in FORMATS:
        raise CliError(
            f"unable to match a printer suitable for the output format {quote(options.output)}, "
            f"allowed formats are: {','.join(FORMATS)}"
        )
    begun = _challenge_of(factory)
    scenario = begun.scenario()
    factory.catch_up()
    judged = grade(factory.cluster, scenario)
    if options.output == "json":
        factory.print(document("json", _grade_document(begun, judged), typed=True), end="")
    else:
        _show_grade(factory, begun, scenario, judged)
    if not judged.repaired:
        raise SilentExit(NOT_REPAIRED)


grade_: Command = reading(
    command(
        "grade",
        GradeOptions,
        examples="""
# In the folder of a challenge
kubepy demo grade

# For a program
kubepy demo grade -o json
""",
    )(run_grade)
)


def _challenge_of(factory: Factory) -> Challenge:
    """Return the challenge of the cluster in use. Raises CliError, FolderError where it is none."""
    factory.require_folder()
    return read_challenge(factory.folder)


def _grade_document(begun: Challenge, judged: Grade) -> dict[str, object]:
    return {
        "kind": "Grade",
        "challenge": begun.file.name,
        "seed": begun.seed,
        "repaired": judged.repaired,
        "checks": [
            {"name": standing.name, "state": standing.state, "message": standing.message}
            for standing in judged.standings
        ],
    }


def _show_grade(factory: Factory, begun: Challenge, scenario: Scenario, judged: Grade) -> None:
    paint = Painter(factory.stdout)
    head = f"challenge {begun.file.name}, seed {begun.seed}: {scenario.title}"
    factory.print(printable(head))
    factory.print()
    for standing in judged.standings:
        state = paint(f"{standing.state:<7}", COLOURS.get(standing.state, Colour.YELLOW))
        lines = textwrap.wrap(printable(standing.name), WIDTH - 11, break_on_hyphens=False)
        factory.print(f"  {state}  {lines[0]}")
        for line in lines[1:]:
            factory.print(f"{'':11}{line}")
    factory.print()
    factory.print(_verdict(judged))


def _verdict(judged: Grade) -> str:
    """Return the last line of a judgement."""
    count = len(judged.standings)
    if judged.repaired:
        return "Repaired: all checks hold."
    if judged.broken:
        broken = len(judged.broken)
        what = "a check that held" if broken == 1 else f"{broken} checks that held"
        return f"Wrong: this repair has broken {what} in the beginning."
    holding = len(judged.names(HOLDS))
    verb = "holds" if holding == 1 else "hold"
    return f"Not repaired yet: {holding} of {count} checks {verb}."


class HintOptions(Options):
    """The flags of ``demo hint``: none of its own."""


def run_hint(factory: Factory, options: HintOptions) -> None:
    """Print a hint for the challenge in use: the first, or that of a number."""
    if len(options.args) > 1:
        options.usage_error("one number is taken")
    hints = _challenge_of(factory).scenario().hints
    if not hints:
        raise CliError("this challenge has no hints")
    word = options.args[0] if options.args else "1"
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 4 else 0
    if not 1 <= number <= len(hints):
        raise CliError(f"{printable(word)}: must be a number from 1 to {len(hints)}")
    head = f"{number} of {len(hints)}: "
    words = " ".join(hints[number - 1].split())
    factory.print(textwrap.fill(printable(f"{head}{words}"), WIDTH, break_on_hyphens=False))


hint: Command = reading(
    command(
        "hint [NUMBER]",
        HintOptions,
        examples="""
# Where to look first
kubepy demo hint

# The second one
kubepy demo hint 2
""",
    )(run_hint)
)


# --- for authors ----------------------------------------------------------------------------------


class VerifyOptions(Options):
    """The flags of ``demo verify``."""

    seeds: range | None = typed_flag(
        "seeds", None, parse_seeds, help="The seeds to try. Default, 1..5."
    )


def run_verify(factory: Factory, options: VerifyOptions) -> None:
    """Check the file of a challenge: it is broken in the beginning, its solution repairs it, and each of its mistakes is told.

    The exit status is 0 if all is well, 1 if not."""  # noqa: E501
    if len(options.args) != 1:
        options.usage_error("one file is taken, or the name of a challenge")
    [word] = options.args
    file: ScenarioFile = read_shipped(word) if word in shipped_names() else read_scenario(word)
    seeds = range(1, 6) if options.seeds is None else options.seeds
    problems: list[str] = []
    for count, seed in enumerate(seeds):
        factory.progress.show("trying seeds", count, len(seeds))
        problems += verify(file, [seed])
    factory.progress.clear()
    for problem in problems:
        factory.print(printable(f"{file.path}: {problem}"))
    if problems:
        raise SilentExit(1)
    factory.print(printable(f"{file.path}: no problems with {len(seeds)} seeds"))


verify_: Command = command(
    "verify FILE",
    VerifyOptions,
    examples="""
# A challenge of your own, with five seeds
kubepy demo verify disk-full.yaml

# One of those that are shipped, with a hundred
kubepy demo verify quota --seeds=1..100
""",
)(run_verify)
