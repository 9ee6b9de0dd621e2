"""Transcripts of violations: tests (``*.kubepy.txt``) that fail until the bug is mended."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.values.goformat import format_duration
from kubepy.controlplane.disturbance import ALTERNATIVES
from kubepy.fuzz.cases import DEFAULT_DURATION, FuzzCase
from kubepy.fuzz.run import RunStep

if TYPE_CHECKING:
    from kubepy.fuzz.reporting import FoundViolation

WIDTH = 100
DISTURBED = " !! "  # in lines about disturbances
MOST_DISTURBED = 4  # of these, where the middle of a story is left out
MOST_STEPS = 18  # lines about what happens; the first ones, and the last ones
DEEPER = 9  # columns of a moment, by which a line is indented below it
MOST_NAMES = 6  # of objects that are written together
ACCOUNTS = "system:serviceaccount:"


class ReplayLine(NamedTuple):
    """The command line that asks for a run again.

    :ivar words: the flags that say what a run is about.
    :ivar commands: the words of each command.
    :ivar nodes: of the fresh cluster on which runs begin; None: they begin on another one.
    """

    words: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    nodes: int | None = 3

    @classmethod
    def of(cls, case: FuzzCase, others: Sequence[str] = ()) -> ReplayLine:
        """Return the replay of a case.

        :param others: further flags.
        """
        words: list[str] = []
        if case.operator is not None:
            words.append(f"--operator={case.operator.path}")
        for source in case.checks:
            words.append(f"--check={source.path}")
        if case.faults is not None:
            faults_path, *_ = case.faults
            words.append(f"--faults={faults_path}")
        if case.duration != DEFAULT_DURATION:
            duration = format_duration(case.duration)
            words.append(f"--for={duration}")
        if case.operator is not None and case.disturbs_all:
            words.append("--disturb=all")
        words += others
        nodes = case.nodes if case.image is None else None
        return cls(tuple(words), case.commands, nodes)

    def line(self, replay: str, left_out: Sequence[int] = ()) -> str:
        """Return the command line that repeats a run."""
        words = ["kubepy", "fuzz", *self.words, f"--seed={replay}"]
        separator = "--"
        for number, command in enumerate(self.commands):
            if number in left_out:
                continue
            words += [separator, *command]
            separator = ";"
        return shlex.join(words)


def transcript_of(found: FoundViolation, replay: ReplayLine) -> str:
    """Return the transcript of a violation: a comment about what happens, and a command that prints
    what it should when the bug is mended."""
    said = f"{found.check}: {found.violation.message}"
    at = format_duration(found.at)
    when = f"It is violated {at} after the beginning of the run {found.replay}:"
    lines = [*_comment(said), *_comment(when), "#"]
    for step in _steps(found.steps):
        lines += _comment(step, " " * DEEPER)
    lines.append("#")
    if replay.nodes is not None:
        lines.append(f"# kubepy: nodes={replay.nodes}")
    else:
        lines.append(
            "# It begins with a copy of the cluster with which it was found, and repeats there."
        )
    command = replay.line(found.replay, found.left_out)
    lines.append(f"$ {command}")
    lines.append(held_line(found.replay))
    return "\n".join(lines) + "\n"


def held_line(replay: str) -> str:
    """Return what is printed of a run in which all checks hold."""
    return f"run {replay}: all checks hold"


def _comment(text: str, indent: str = "") -> list[str]:
    """Return a text as lines of a comment.

    :param indent: of all lines but the first.
    """
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="# ",
        subsequent_indent=f"# {indent}",
        break_on_hyphens=False,
    )


def _steps(steps: Sequence[RunStep]) -> Iterator[str]:
    """Yield lines about steps; long stories without their middle."""
    shown = list(_merged(steps))
    if len(shown) <= MOST_STEPS:
        yield from shown
        return
    begin = MOST_STEPS // 3
    end = len(shown) - (MOST_STEPS - begin)
    yield from shown[:begin]
    yield from _middle(shown[begin:end])
    yield from shown[end:]


def _middle(shown: Sequence[str]) -> Iterator[str]:
    """Yield the disturbances among some lines, and how many others there are between them."""
    left_out = 0
    kept = 0
    for line in shown:
        if DISTURBED not in line or kept == MOST_DISTURBED:
            left_out += 1
            continue
        if left_out:
            yield _more(left_out)
        yield line
        left_out = 0
        kept += 1
    if left_out:
        yield _more(left_out)


def _more(count: int) -> str:
    return "… 1 more step …" if count == 1 else f"… {count} more steps …"


def _merged(steps: Sequence[RunStep]) -> Iterator[str]:
    """Yield a line for each step; writes of the same user to the same kind right behind each other
    share one."""
    last: tuple[float, str, str, str] | None = None
    names: list[str] = []
    for step in steps:
        resource, _, name = step.words.partition(" ")
        is_write = step.what not in ALTERNATIVES and step.what != "command"
        kind = (step.at, step.who, step.what, resource) if is_write else None
        if kind is not None and kind == last:
            names.append(name)
            continue
        if last is not None:
            yield _line(*last, names)
        last, names = kind, [name]
        if kind is None:
            yield _plain(step)
    if last is not None:
        yield _line(*last, names)


def _line(at: float, who: str, what: str, resource: str, names: Sequence[str]) -> str:
    moment = _moment(at)
    user = _user(who)
    unique = list(dict.fromkeys(names))
    named = ", ".join(unique[:MOST_NAMES])
    more = len(unique) - MOST_NAMES
    if more > 0:
        named += f" and {more} more"
    return f"{moment} {user}: {what} {resource} {named}"


def _plain(step: RunStep) -> str:
    moment = _moment(step.at)
    if step.what == "command":
        user = _user(step.who)
        return f"{moment} {user}: $ {step.words}"
    return f"{moment} !! {step.words}"


def _moment(at: float) -> str:
    return f"{format_duration(at):<8}"


def _user(name: str) -> str:
    """Return the short name of a user: the controller of a service account, the node of a
    kubelet."""
    if name.startswith(ACCOUNTS):
        _, _, controller = name.rpartition(":")
        return controller
    return name.removeprefix("system:node:").removeprefix("system:")
