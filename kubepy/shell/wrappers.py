"""Programs that run another program in their place: ``env``, ``nohup``, ``nice``, ``timeout``; and
one that takes time, as a script.

Only forms that the model knows whole are taken apart here; others are left to the utility of the
name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from kubepy.lazy import lazy_imports
from kubepy.shell.builtins import BadUsage, sleep_seconds
from kubepy.shell.processes import SIGNALS
from kubepy.shell.words import IN_ROOT

with lazy_imports():
    from kubepy.shell.utilities import agnhost

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
TERM = SIGNALS["TERM"]


class WrappedCommand(NamedTuple):
    """The command that a program runs in its place.

    :ivar variables: what its environment has besides.
    :ivar unset: the variables that it does not get; None: it gets none but ``variables``.
    :ivar seconds: after so many it gets ``signal``; None: it takes its time.
    """

    argv: list[str]
    variables: Mapping[str, str] = {}
    unset: tuple[str, ...] | None = ()
    seconds: float | None = None
    signal: int = TERM


def wrapped_command(name: str, args: list[str]) -> WrappedCommand | None:
    """Return the command that a program runs in its place, None where it is a plain call."""
    if name == "env":
        return _of_env(args)
    if name in ("nohup", "setsid") and args and not args[0].startswith("-"):
        return WrappedCommand(list(args))
    if name == "nice":
        return _of_nice(args)
    if name == "timeout":
        return _of_timeout(args)
    if name in IN_ROOT and args[:1] == ["mounttest"]:
        return _of_mounttest(args[1:])
    return None


def _of_mounttest(args: list[str]) -> WrappedCommand | None:
    script = agnhost.loop_script(args)
    return WrappedCommand(["sh", "-c", script]) if script else None


def _of_env(args: list[str]) -> WrappedCommand | None:
    words = list(args)
    unset: list[str] = []
    is_empty = False
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-i", "-", "--ignore-environment"):
            is_empty = True
        elif option in ("-u", "--unset") and words:
            unset.append(words.pop(0))
        elif option == "--":
            break
        else:
            return None
    variables: dict[str, str] = {}
    while words and ASSIGNMENT.match(words[0]):
        variable, _, value = words.pop(0).partition("=")
        variables[variable] = value
    if not words:
        return None
    return WrappedCommand(words, variables, None if is_empty else tuple(unset))


def _of_nice(args: list[str]) -> WrappedCommand | None:
    words = list(args)
    if words[:1] == ["-n"]:
        words = words[2:]
    elif words and re.fullmatch(r"-n?-?\d+", words[0]):
        words = words[1:]
    if not words or words[0].startswith("-"):
        return None
    return WrappedCommand(words)


def _of_timeout(args: list[str]) -> WrappedCommand | None:
    words = list(args)
    signal = TERM
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-s", "--signal") and words:
            name = words.pop(0).upper().removeprefix("SIG")
            signal = int(name) if name.isdigit() else SIGNALS.get(name, 0)
        elif option == "-t" and words:
            words = [words[0], *words[1:]]  # busybox: the time as an option
        elif option not in ("--foreground", "--preserve-status", "-v"):
            return None
    if len(words) < 2 or not signal:
        return None
    try:
        seconds = sleep_seconds(words[:1])
    except BadUsage:
        return None
    return WrappedCommand(words[1:], seconds=seconds, signal=signal)
