"""``kubepy __complete LINE``: which command the line names, which flags and words it has, what could come next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import click

from kubepy.cli.completion.words import flag_values, positional
from kubepy.cli.errors import is_expected
from kubepy.cli.runtime.command import Command, Entry, load, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested
from kubepy.cli.runtime.options import GLOBAL_FLAGS, CommandLine
from kubepy.cli.runtime.verbs import Invocation


class _Complete(Command):
    """Takes one argument, the command line so far, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params = {"line": args[0] if args else ""}
        return []

    def invoke(self, ctx: click.Context) -> None:
        try:
            found = candidates(ctx.obj, split(ctx.params["line"]))
        except Exception as error:
            if not is_expected(error):
                raise
            return
        for word in found:
            ctx.obj.print(word)


complete = _Complete("__complete LINE")


def split(line: str) -> list[str]:
    """The words of an unfinished line without the program's name; the last one is what is being typed, maybe ""."""
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        return []
    return [*words[1:], ""] if line.endswith((" ", "\t")) else words[1:]


class Line(NamedTuple):
    """The command that a line names (``("rollout", "undo")``), and the words that are not its name."""

    command: Command
    path: tuple[str, ...]
    rest: list[str]


def candidates(factory: Factory, words: list[str]) -> list[str]:
    """What the last word could become, sorted."""
    if not words:
        return []
    *before, word = words
    found = _after(factory, _command_of(before), word)
    return sorted({one for one in found if one.startswith(word)})


def _command_of(words: list[str]) -> Line:
    line = Line(root_command(), (), words)
    while line.command.entries:
        at = line.command.parser().first_word(line.rest)
        name = line.command.canonical(line.rest[at]) if at is not None else ""
        if not name or at is None:
            break
        line = Line(load(name, line.command.entries[name]), (*line.path, name),
                    [*line.rest[:at], *line.rest[at + 1:]])
    return line


def _after(factory: Factory, line: Line, word: str) -> Iterable[str]:
    flags = {flag.long: flag for flag in [*GLOBAL_FLAGS, *line.command.flags]}
    flag = _unfinished(flags, line.rest)
    try:
        parsed = line.command.parser().parse(line.rest if flag is None else line.rest[:-1])
    except (FlagSyntaxError, HelpRequested):
        return []
    path = " ".join(("kubepy", *line.path))
    given = line.command.options_of(CommandLine(path, parsed.args, parsed.dash, parsed.given), parsed.values)
    factory.use(line.command.global_options_of(parsed.values), may_create=False)
    if flag is not None:
        return _ended_by_commas(flag_values(factory, line.path, flag, given), word)
    if word.startswith("--") and "=" in word:
        name, _, value = word.partition("=")
        wanted = flags.get(name[2:])
        values = _ended_by_commas(flag_values(factory, line.path, wanted, given), value) if wanted else []
        return [f"{name}={one}" for one in values]
    if word.startswith("-"):
        return [f"--{one.long}" + ("" if one.no_value is not None else "=") for one in flags.values()
                if not one.hidden and not one.deprecated]
    if given.line.dash != -1:
        return []
    return [*_commands(line, given), *positional(factory, line.path, given, word)]


def _unfinished(flags: Mapping[str, Flag], words: list[str]) -> Flag | None:
    """The flag that the last word is and whose value comes next."""
    last = words[-1] if words else ""
    if "--" in words or not last.startswith("-"):
        return None
    if last.startswith("--"):
        flag = flags.get(last[2:])
    else:
        flag = next((one for one in flags.values() if one.short and one.short == last[-1:]), None)
    return flag if flag is not None and flag.no_value is None else None


def _ended_by_commas(values: Iterable[str], word: str) -> list[str]:
    """Values for the last part of a list: ``a,b,`` stays before each."""
    before, comma, _ = word.rpartition(",")
    return [before + comma + value for value in values]


def _commands(line: Line, given: Invocation) -> Iterable[str]:
    """The commands that a group has; at the beginning also the plugins."""
    if given.args:
        return []
    names: list[str] = [name for name, entry in line.command.entries.items() if _is_shown(entry)]
    if line.path:
        return names
    from kubepy.cli.plugins.lookup import names_on_path

    return [*names, *names_on_path()]


def _is_shown(entry: Entry) -> bool:
    return bool(entry.summary) and not entry.summary.startswith("Not supported")
