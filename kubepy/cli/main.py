"""``kubepy`` and its commands, imported when they are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import click

from kubepy.cli.commands import COMMANDS, GROUPS
from kubepy.cli.errors import UnprefixedError, guarded
from kubepy.cli.runtime.command import Invocation, Verb
from kubepy.cli.runtime.flags import Parser
from kubepy.cli.runtime.session import GLOBAL_FLAGS, Session
from kubepy.quoting import quote

PROGRAM = "kubepy"


def main(words: Sequence[str], *, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
         stderr: IO[str] | None = None) -> int:
    """Run one command line (without the program's name); returns the exit status."""
    session = Session(stdin, stdout, stderr)
    root = root_command()

    def execute() -> None:
        try:
            with root.make_context(PROGRAM, list(words), obj=session) as context:
                root.invoke(context)
        finally:
            session.close()

    return guarded(execute, session.say)


class Root(Verb):
    """``kubepy`` itself, whose help shows the commands in groups; a word that names no command may name a plugin."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        position = Parser(GLOBAL_FLAGS).first_word(args)
        if position is not None and not self.canonical(args[position]):
            _run_plugin(args)
            raise _unknown_command(args[position])
        if args[:1] == ["create"] and _names_no_generator(args[1:]):
            _run_plugin(args, least=2)
        return super().parse_args(ctx, args)

    def help_text(self, path: str) -> str:
        from kubepy.cli.runtime.help import overview

        return overview(self, GROUPS)


ABOUT = """A Kubernetes cluster that is a folder of YAML files, with kubectl's commands."""


def root_command() -> Root:
    return Root(PROGRAM, PROGRAM, _run_root, help=ABOUT, entries=COMMANDS)


def _run_root(session: Session, given: Invocation) -> None:
    """No command was named."""
    given.show_help(session)


def _names_no_generator(words: list[str]) -> bool:
    return bool(words) and not words[0].startswith("-") and words[0] not in COMMANDS["create"].commands


def _run_plugin(words: list[str], least: int = 1) -> None:
    """Become the plugin that the words name; returns if there is none."""
    from kubepy.cli.plugins import lookup

    if plugin := lookup.find(words, least):
        lookup.run(plugin)


def _unknown_command(word: str) -> UnprefixedError:
    """What might have been meant is told with it (cobra's legacyArgs)."""
    message = f'error: unknown command {quote(word)} for "{PROGRAM}"'
    if found := suggestions(word):
        message += "\n\nDid you mean this?\n" + "\n".join(f"\t{name}" for name in found)
    return UnprefixedError(message)


_MEANT_BY = {"delete": ("rm", "remove"), "describe": ("inspect",), "get": ("list", "ls")}  # cobra's SuggestFor

_EDITS = {"git": 1}  # kubectl has no such command, and means "get" by most of what is two edits away


def suggestions(word: str) -> list[str]:
    """The commands whose names are like a word: two edits away at most, or beginning with it; or that it stands for."""
    return [name for name, entry in COMMANDS.items()
            if entry.summary and (edit_distance(word.lower(), name) <= _EDITS.get(name, 2)
                                  or name.startswith(word.lower())
                                  or word.lower() in _MEANT_BY.get(name, ()))]


def edit_distance(one: str, other: str) -> int:
    """Levenshtein's."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]

