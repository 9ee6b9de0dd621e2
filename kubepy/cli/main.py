"""``kubepy`` and its commands, imported when they are named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

import click

from kubepy.cli.commands import COMMANDS, GROUPS
from kubepy.cli.errors import UnprefixedError, guarded
from kubepy.cli.runtime.command import Command, description, footer, show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Parser
from kubepy.cli.runtime.options import GLOBAL_FLAGS, Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.cli import kuberc, plugins

PROGRAM = "kubepy"
ABOUT = """A Kubernetes cluster that is a folder of YAML files, with kubectl's commands."""


def main(words: Sequence[str], *, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
         stderr: IO[str] | None = None) -> int:
    """Run one command line (without the program's name); returns the exit status."""
    factory = Factory(stdin, stdout, stderr)
    root = Root()

    def execute() -> None:
        try:
            with root.make_context(PROGRAM, with_preferences(root, list(words), factory), obj=factory) as context:
                root.invoke(context)
        finally:
            factory.close()

    return guarded(execute, factory.say)


def with_preferences(root: Root, words: list[str], factory: Factory) -> list[str]:
    """Return a command line with the aliases and defaults of a file of preferences (kuberc).

    The file is the one that --kuberc or $KUBERC names, or the user's own, which counts under the name of kubectl.
    """
    if os.environ.get("KUBECTL_KUBERC", "").lower() == "false" or not (
            any(word.startswith("--kuberc") for word in words) or os.environ.get("KUBERC")
            or (getattr(factory, "program", "") == "kubectl" and os.path.exists(os.path.expanduser("~/.kube/kuberc")))):
        return words
    return kuberc.applied(root, words, factory)


class Root(Command):
    """``kubepy`` itself, whose help shows the commands in groups; a word that names no command may name a plugin."""

    entries = COMMANDS

    def __init__(self) -> None:
        super().__init__(PROGRAM, _without_command, help=ABOUT)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        position = Parser(GLOBAL_FLAGS).first_word(args)
        if position is not None and not self.canonical(args[position]):
            _run_plugin(args)
            word = args[position]
            message = f'error: unknown command {quote(word)} for "{PROGRAM}"'  # as cobra's legacyArgs
            if names := suggestions(word):
                message += "\n\nDid you mean this?\n" + "\n".join(f"\t{name}" for name in names)
            raise UnprefixedError(message)
        if args[:1] == ["create"] and args[1:] and not args[1].startswith("-") \
                and args[1] not in COMMANDS["create"].commands:
            _run_plugin(args, least=2)
        return super().parse_args(ctx, args)

    def help_text(self, path: str) -> str:
        parts = [description(ABOUT)]
        for title, names in GROUPS.items():
            parts.append(f"{title}:\n" + "\n".join(f"  {name:<15} {COMMANDS[name].summary}" for name in names))
        return "\n\n".join([*parts, f"Usage:\n  {PROGRAM} [flags] [options]", footer(PROGRAM, PROGRAM)])


def _without_command(factory: Factory, options: Options) -> None:
    """Show the overview for a command line that names no command."""
    show_help(factory)


def _run_plugin(words: list[str], least: int = 1) -> None:
    """Become the plugin that the words name; return if there is none."""
    if plugin := plugins.find(words, least):
        plugins.run(plugin)


_SUGGEST_FOR = {"delete": ("rm", "remove"), "describe": ("inspect",), "get": ("list", "ls")}  # cobra's SuggestFor
# The largest edit distance at which a command is suggested. kubectl has no "git", which is two edits away from "get".
_EDITS = {"git": 1}


def suggestions(word: str) -> list[str]:
    """Return the commands whose names are two edits away at most or begin with the word, and those it stands for."""
    return [name for name, entry in COMMANDS.items()
            if entry.summary and (edit_distance(word.lower(), name) <= _EDITS.get(name, 2)
                                  or name.startswith(word.lower())
                                  or word.lower() in _SUGGEST_FOR.get(name, ()))]


def edit_distance(word: str, other: str) -> int:
    """Return Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(word, 1):
        previous, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]
