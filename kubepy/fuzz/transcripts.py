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
MOST_STEPS = 20  # lines about what happens; the first ones, and the last ones
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
        words = [f"--operator={case.operator.path}"] if case.operator else []
        words += [f"--check={source.path}" for source in case.checks]
        if case.faults is not None:
            words.append(f"--faults={case.faults[0]}")
        if case.duration != DEFAULT_DURATION:
            words.append(f"--for={format_duration(case.duration)}")
        if case.operator is not None and case.disturbs_all:
            words.append("--disturb=all")
        nodes = case.nodes if case.image is None else None
        return cls((*words, *others), case.commands, nodes)

    def line(self, replay: str, left_out: Sequence[int] = ()) -> str:
        """Return the command line that repeats a run."""
        words = ["kubepy", "fuzz", *self.words, f"--seed={replay}"]
        wanted = [command for number, command in enumerate(self.commands) if number not in left_out]
        for number, command in enumerate(wanted):
            words += [";" if number else "--", *command]
        return shlex.join(words)


def transcript_of(found: FoundViolation, replay: ReplayLine) -> str:
    """Return the transcript of a violation: a comment about what happens, and a command that prints
    what it should when the bug is mended."""
    said = f"{found.check}: {found.violation.message}"
    at = format_duration(found.at)
    lines = [
        *_comment(said),
        *_comment(f"It is violated {at} after the beginning of the run {found.replay}:"),
        "#",
        *(line for step in _steps(found.steps) for line in _comment(step, " " * DEEPER)),
        "#",
    ]
    if replay.nodes is not None:
        lines.append(f"# kubepy: nodes={replay.nodes}")
    else:
        lines.append("# It begins with a copy of the cluster with which it was found.")
    lines += [
        f"$ {replay.line(found.replay, found.left_out)}",
        held_line(found.replay),
    ]
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
    begin, end = MOST_STEPS // 3, MOST_STEPS - MOST_STEPS // 3
    if len(shown) <= MOST_STEPS:
        yield from shown
        return
    yield from shown[:begin]
    yield f"… {len(shown) - begin - end} more steps …"
    yield from shown[-end:]


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
    unique = list(dict.fromkeys(names))
    named = ", ".join(unique[:MOST_NAMES])
    more = f" and {len(unique) - MOST_NAMES} more" if len(unique) > MOST_NAMES else ""
    return f"{_moment(at)} {_user(who)}: {what} {resource} {named}{more}"


def _plain(step: RunStep) -> str:
    if step.what == "command":
        return f"{_moment(step.at)} {_user(step.who)}: $ {step.words}"
    return f"{_moment(step.at)} !! {step.words}"


def _moment(at: float) -> str:
    return f"{format_duration(at) if at else '0s':<8}"


def _user(name: str) -> str:
    """Return the short name of a user: the controller of a service account, the node of a
    kubelet."""
    if name.startswith(ACCOUNTS):
        return name.rpartition(":")[2]
    return name.removeprefix("system:node:").removeprefix("system:")
