"""The commands as click has them: a tree of groups, made of the declarations when a line needs it.

click's contexts hold the path of a command and what was found in the words. The words are read as
pflag reads them (see :mod:`kubepy.cli.runtime.flags`), and help looks like kubectl's. A program
that works with commands of click gets kubepy as ``ClickCommand(Root())``; a Factory is the
context's ``obj``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from kubepy.cli.errors import FlagError, SilentExit, UsageError
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested

# In click's meta: the Parsed words, and those that named commands so far.
LINE = "kubepy.line"
TYPED = "kubepy.typed"


def run(root: Command, words: Sequence[str], factory: Factory) -> None:
    """Run a command line in contexts of click."""
    command = ClickCommand(root)
    with command.make_context(root.name, list(words), obj=factory) as context:
        command.invoke(context)


def click_option(flag: Flag) -> click.Option:
    """Return a flag as click's option, whose value is the text."""
    names = [flag.name, f"--{flag.long}", *([f"-{flag.short}"] if flag.short else [])]
    option = click.Option(
        names,
        type=click.UNPROCESSED,
        multiple=flag.repeated,
        help=flag.help,
        hidden=flag.hidden,
    )
    option.default = flag.default  # the value as it is read, whose type click need not know
    return option


class ClickCommand(click.Group):
    """A command with its sub-commands, which are made when they are named."""

    def __init__(self, declaration: Command) -> None:
        super().__init__(
            declaration.name,
            help=declaration.help,
            params=[click_option(flag) for flag in declaration.flags],
            add_help_option=False,
        )
        self.declaration = declaration

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.declaration.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> ClickCommand | None:
        child = self.declaration.child(cmd_name)
        if child is None:
            return None
        return ClickCommand(child)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the sub-command that the words name, or read them as this command's own."""
        self.declaration.reject(ctx.obj, args)
        position = self.declaration.parser().first_word(args) if self.declaration.entries else None
        child = self.get_command(ctx, args[position]) if position is not None else None
        if child is not None and position is not None:
            ctx.params = {"child": child, "words": [*args[:position], *args[position + 1 :]]}
            ctx.meta.setdefault(TYPED, []).append(args[position])
            return []

        try:
            ctx.meta[LINE] = parsed = self.declaration.read(args)
            ctx.params = parsed.values
        except HelpRequested:
            ctx.params = {}
        except FlagSyntaxError as error:
            message = self.declaration.options_class.explain(str(error))
            if self.declaration.flag_error_status == 1:
                raise FlagError(ctx.command_path, message) from None
            ctx.obj.say(f"error: {UsageError(ctx.command_path, message)}")
            raise SilentExit(self.declaration.flag_error_status) from None

        return []

    def invoke(self, ctx: click.Context) -> Any:
        child = ctx.params.get("child")
        if isinstance(child, ClickCommand):
            with child.make_context(child.name, ctx.params["words"], parent=ctx) as inner:
                return child.invoke(inner)
        if LINE not in ctx.meta:
            ctx.obj.print(self.get_help(ctx))
            return None
        typed = ctx.meta.get(TYPED, ())
        return self.declaration.execute(ctx.obj, ctx.command_path, ctx.meta[LINE], typed)

    def get_help(self, ctx: click.Context) -> str:
        return self.declaration.help_text(ctx.command_path)
