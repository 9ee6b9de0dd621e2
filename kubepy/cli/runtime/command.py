"""What a verb is: flags, arguments and a function, as a command of click.

A verb file declares one command and writes one function::

    @verb("cordon", "cordon NODE", flags=[selector_flag()], examples="  # …\\n  kubepy cordon node-1")
    def cordon(session: Session, given: Invocation) -> None:
        '''Mark node as unschedulable.'''

click gives the tree of commands and their contexts. Words are read by :mod:`kubepy.cli.runtime.flags`, as kubectl's
cobra and pflag read them: global flags stand anywhere, and the first words that are no flags name the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import click

from kubepy.cli.errors import CliError, FlagError, SilentExit, UsageError
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested, Parser
from kubepy.cli.runtime.session import GLOBAL_FLAGS, Session
from kubepy.quoting import quote


class Entry(NamedTuple):
    """A command that has not been imported: ``module:attribute``, its line in the help, its aliases.

    A group without a module of its own (``rollout``) has ``target`` "" and only shows its commands, on stderr unless
    ``help_on_stdout``; ``examples`` are its own.
    """

    target: str
    summary: str
    aliases: tuple[str, ...] = ()
    commands: Mapping[str, Entry] = {}
    help_on_stdout: bool = False
    examples: str = ""


class Invocation:
    """One parsed command line: ``args``, ``dash``, ``flags`` as they were given (see Parsed), and every flag's value by
    its name (``given.dry_run``). ``path`` is the command by its names, ``typed`` as the line named it."""

    def __init__(self, command: Verb, path: str, args: list[str], dash: int, values: dict[str, Any],
                 flags: list[tuple[str, str]], typed: Sequence[str] = ()) -> None:
        self._verb = command
        self.path = path
        self.typed = typed
        self.args = args
        self.dash = dash
        self.flags = flags
        self._values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def changed(self, flag: str) -> bool:
        """Whether the flag (``dry-run``) was given, whatever its value."""
        return any(name == flag for name, _ in self.flags)

    def flag(self, name: str, default: Any = None) -> Any:
        """A flag that not every command has."""
        return self._values.get(name.replace("-", "_"), default)

    def everywhere(self, name: str) -> str:
        """A text that every command takes; "" where the command has a flag of that name for something else."""
        own = any(flag.name == name for flag in self._verb.flags)
        return "" if own else self._values[name]

    def show_help(self, session: Session) -> None:
        """Print the command's help, as some do for a wrong number of words."""
        self._verb.show_help(session, self.path)

    def usage_error(self, message: str) -> NoReturn:
        """Raise ``error: message`` with a pointer to this command's help (``UsageErrorf``)."""
        raise UsageError(self.path, message)

    def require(self, *flags: str) -> None:
        """Raise unless these flags were given (cobra's MarkFlagRequired)."""
        missing = [f'"{flag}"' for flag in flags if not self.changed(flag)]
        if missing:
            raise CliError(f"required flag(s) {', '.join(missing)} not set")


Run = Callable[[Session, Invocation], None]
TYPED = "kubepy.typed"  # in click's meta: the words that have named commands so far


class Verb(click.Group):
    """A command, its sub-commands, or both (``create -f``, ``create namespace``).

    ``creates``: it may make new objects, and so the cluster that is to hold them. ``help_on_stdout``: see Entry.
    ``failed``: its exit status when its flags cannot be read; one of its own comes with a pointer to its help.
    """

    def __init__(self, name: str, usage: str, run: Run | None, *, flags: Sequence[Flag] = (), examples: str = "",
                 help: str = "", creates: bool = False, entries: Mapping[str, Entry] | None = None,
                 help_on_stdout: bool = False, failed: int = 1) -> None:
        super().__init__(name, help=help, add_help_option=False)
        self.usage = usage
        self.run = run
        self.flags = tuple(flags)
        self.examples = examples
        self.creates = creates
        self.entries = entries or {}
        self.help_on_stdout = help_on_stdout
        self.failed = failed

    # --- sub-commands, imported when they are asked for

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Verb | None:
        """The sub-command that a word names."""
        name = self.canonical(cmd_name)
        return load(name, self.entries[name]) if name else None

    def canonical(self, word: str) -> str:
        """The name of the sub-command that a word names, "" for none."""
        if word in self.entries:
            return word
        return next((name for name, entry in self.entries.items() if word in entry.aliases), "")

    # --- running

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the sub-command that the words name, or read them as this command's own."""
        parser = Parser([*self.flags, *GLOBAL_FLAGS])
        position = parser.first_word(args) if self.entries else None
        child = self.get_command(ctx, args[position]) if position is not None else None
        if child is not None and position is not None:
            ctx.params = {"child": child, "words": [*args[:position], *args[position + 1:]]}
            ctx.meta.setdefault(TYPED, []).append(args[position])
            return []
        try:
            ctx.params = {"given": Invocation(self, ctx.command_path, *parser.parse(args), ctx.meta.get(TYPED, ()))}
        except HelpRequested:
            ctx.params = {}
        except FlagSyntaxError as error:
            raise self._flag_error(ctx, str(error)) from None
        return []

    def _flag_error(self, ctx: click.Context, message: str) -> Exception:
        if self.failed == 1:
            return FlagError(ctx.command_path, message)
        ctx.obj.say(f"error: {UsageError(ctx.command_path, message)}")
        return SilentExit(self.failed)

    def invoke(self, ctx: click.Context) -> None:
        if child := ctx.params.get("child"):
            with child.make_context(child.name, ctx.params["words"], parent=ctx) as inner:
                child.invoke(inner)
        elif given := ctx.params.get("given"):
            self._run(ctx.obj, given)
        else:
            self.show_help(ctx.obj, ctx.command_path)

    def _run(self, session: Session, given: Invocation) -> None:
        self._warn_of_deprecated(session, given)
        session.take(given, may_create=self.creates)
        (self.run or self._run_group)(session, given)
        session.finish()

    def _run_group(self, session: Session, given: Invocation) -> None:
        """A group on its own: its help, or an error for words that name none of its commands; never a success."""
        if given.args:
            given.usage_error(f'unknown command {quote(" ".join(given.args))}')
        if self.help_on_stdout:
            self.show_help(session, given.path)
        else:
            session.say(self.help_text(given.path))
        raise SilentExit(1)

    def _warn_of_deprecated(self, session: Session, given: Invocation) -> None:
        for flag in self.flags:
            if flag.deprecated and given.changed(flag.name):
                session.say(f"Flag --{flag.name} has been deprecated, {flag.deprecated}")

    def show_help(self, session: Session, path: str) -> None:
        session.print(self.help_text(path))

    def help_text(self, path: str) -> str:
        from kubepy.cli.runtime.help import help_text

        return help_text(self, path)


def load(name: str, entry: Entry) -> Verb:
    """Import a command."""
    if not entry.target:
        return Verb(name, name, None, help=entry.summary, entries=entry.commands, examples=entry.examples,
                    help_on_stdout=entry.help_on_stdout)
    from importlib import import_module

    module_name, _, attribute = entry.target.partition(":")
    command = getattr(import_module(module_name), attribute)
    assert isinstance(command, Verb)
    command.entries = entry.commands
    return command


def verb(name: str, usage: str, *, flags: Sequence[Flag] = (), examples: str = "",
         creates: bool = False, failed: int = 1) -> Callable[[Run], Verb]:
    """Make a command of a function, whose docstring is the description. ``usage`` leaves ``kubepy`` out."""

    def decorate(run: Run) -> Verb:
        import_help = (run.__doc__ or "").strip()
        return Verb(name, usage, run, flags=flags, examples=examples, help=import_help, creates=creates,
                    failed=failed)

    return decorate


def walk(entries: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Every command of a catalogue, groups before their own: ``("rollout undo", entry)``."""
    for name, entry in entries.items():
        yield name, entry
        for inner, one in walk(entry.commands):
            yield f"{name} {inner}", one
