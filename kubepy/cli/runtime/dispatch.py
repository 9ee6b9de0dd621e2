"""From the words of a command line to the command that runs.

A line that names a command by its own name, and whose flags can be read, runs that command at once.
Any other line is click's: help, flags that are wrong, aliases, unknown words, plugins. Importing
click, with all that it imports, takes a quarter of the time of ``get``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubepy.cli.runtime.command import Command, load
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import FlagSyntaxError, HelpRequested
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli.runtime import clicktree


class Line(NamedTuple):
    """The command that a line names, its path (``("rollout", "undo")``), and the words that are not
    its name."""

    command: Command
    path: tuple[str, ...]
    rest: list[str]


def dispatch(root: Command, words: Sequence[str], factory: Factory) -> None:
    """Run a command line."""
    factory.root = root
    line = plain_line(root, list(words))
    if line is not None:
        try:
            parsed = line.command.read(line.rest)
        except (FlagSyntaxError, HelpRequested):
            pass  # click reads the words again, and says what is wrong
        else:
            line.command.execute(factory, " ".join((root.name, *line.path)), parsed, line.path)
            return
    clicktree.run(root, words, factory)


def plain_line(root: Command, words: list[str]) -> Line | None:
    """Return the command that words name by its own name; None for any other line."""
    line = Line(root, (), words)
    while line.command.entries:
        position = line.command.parser().first_word(line.rest)
        if position is None:
            break
        name = line.rest[position]
        if name not in line.command.entries:
            return None
        line = child_of(line, name, position)
    is_group = line.command.run is None and bool(line.command.entries)
    if is_group or not line.path:
        return None
    return line


def line_of(root: Command, words: list[str]) -> Line:
    """Return the command that words name, by names or aliases."""
    line = Line(root, (), words)
    while line.command.entries:
        position = line.command.parser().first_word(line.rest)
        name = line.command.canonical(line.rest[position]) if position is not None else ""
        if not name or position is None:
            break
        line = child_of(line, name, position)
    return line


def child_of(line: Line, name: str, position: int) -> Line:
    """Return the line of a sub-command, whose name or alias is the word at a position."""
    return Line(
        load(name, line.command.entries[name]),
        (*line.path, name),
        [*line.rest[:position], *line.rest[position + 1 :]],
    )


def root_command(factory: Factory) -> Command:
    """Return ``kubepy`` itself, to which the command that runs belongs."""
    assert isinstance(factory.root, Command)
    return factory.root


def show_help(factory: Factory, options: Options) -> None:
    """Print the help of the command that runs, whose options these are."""
    root = root_command(factory)
    path = options.line.path
    names = path.removeprefix(root.name).split()
    factory.print(line_of(root, names).command.help_text(path))
