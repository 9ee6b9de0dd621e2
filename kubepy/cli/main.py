"""The console entry: ``kubepy`` and its commands, imported when they are named."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO

from kubepy.cli.commands import COMMANDS
from kubepy.cli.runtime.command import Invocation, Verb
from kubepy.cli.runtime.errors import UnprefixedError, guarded
from kubepy.cli.runtime.session import Session

PROGRAM = "kubepy"


def run() -> int:
    """The ``kubepy`` program: its exit status. Never shows a traceback."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has left: nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def main(words: Sequence[str], *, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
         stderr: IO[str] | None = None) -> int:
    """Run one command line (without the program's name); returns the exit status."""
    session = Session(stdin, stdout, stderr)
    root = Root(PROGRAM, PROGRAM, _run_root, help=_ABOUT, entries=COMMANDS)
    line = list(words)
    if line[:1] == ["help"]:
        line = [*line[1:], "--help"]

    def execute() -> None:
        with root.make_context(PROGRAM, line, obj=session) as context:
            root.invoke(context)

    try:
        return guarded(execute, session.say)
    finally:
        session.close()


class Root(Verb):
    """``kubepy`` itself, whose help shows the commands in groups."""

    def show_help(self, session: Session, path: str) -> None:
        session.print(_overview())


_ABOUT = """A Kubernetes cluster that is a folder of YAML files, with kubectl's commands."""


def _run_root(session: Session, given: Invocation) -> None:
    """No command was named: the help, or what might have been meant (cobra's legacyArgs)."""
    if not given.args:
        session.print(_overview())
        return
    word = given.args[0]
    message = f'error: unknown command "{word}" for "{PROGRAM}"'
    if found := suggestions(word):
        message += "\n\nDid you mean this?\n" + "\n".join(f"\t{name}" for name in found)
    raise UnprefixedError(message)


def suggestions(word: str) -> list[str]:
    """The commands whose names are like a word: two edits away at most, or beginning with it."""
    return [name for name, entry in COMMANDS.items()
            if entry.summary and (edit_distance(word.lower(), name) <= 2 or name.startswith(word.lower()))]


def edit_distance(one: str, other: str) -> int:
    """Levenshtein's."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]


def _overview() -> str:
    from kubepy.cli.commands import GROUPS
    from kubepy.cli.runtime.help import is_available

    parts = [_ABOUT]
    for title, names in GROUPS.items():
        lines = [f"  {name:<15} {COMMANDS[name].summary}" for name in names
                 if is_available(COMMANDS[name])]
        parts.append(f"{title}:\n" + "\n".join(lines))
    parts.append(f"Usage:\n  {PROGRAM} [flags] [options]")
    parts.append(f'Use "{PROGRAM} COMMAND --help" for more information about a command.\n'
                 f'Use "{PROGRAM} options" for a list of global command-line options (applies to all commands).')
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(run())
