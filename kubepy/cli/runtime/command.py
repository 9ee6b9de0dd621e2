"""Commands: a class of options and a function, as commands of click.

A module of the command line declares its options and writes one function::

    class CordonOptions(DryRunOptions, SelectorOptions):
        '''The flags of ``cordon``.'''

    @command("cordon NODE", CordonOptions, examples="  # …\\n  kubepy cordon node-1")
    def cordon(factory: Factory, options: CordonOptions) -> None:
        '''Mark node as unschedulable.'''

click gives the tree of commands and their contexts. Words are read
by :mod:`kubepy.cli.runtime.flags`, as kubectl's cobra and pflag read them: global flags stand
anywhere, and the first words that are no flags name the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import click

from kubepy.cli.errors import FlagError, SilentExit, UsageError
from kubepy.cli.names import KUBEPY, plugin_prefix, program_of, renamed, translated
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested, Parsed, Parser
from kubepy.cli.runtime.options import GLOBAL_FLAGS, CommandLine, GlobalOptions, Options
from kubepy.lazy import NamedTuple
from kubepy.quoting import quote

OptionsT = TypeVar("OptionsT", bound=Options)
LINE, TYPED = (
    "kubepy.line",
    "kubepy.typed",
)  # in click's meta: the Parsed words, and those that named commands so far


class Entry(NamedTuple):
    """A command of the catalogue, which is imported when it is first named.

    :param load: imports the command; None for a group that only shows its commands (``rollout``).
    :param summary: its line in the help.
    :param commands: its sub-commands by name.
    :param help_on_stdout: the group's help goes to stdout, not to stderr.
    :param examples: those of a group; commands bring their own.
    """

    load: Callable[[], Command] | None
    summary: str
    aliases: tuple[str, ...] = ()
    commands: Mapping[str, Entry] = {}
    help_on_stdout: bool = False
    examples: str = ""


class Command(click.Group):
    """A command, its sub-commands, or both (``create -f``, ``create namespace``).

    :param usage: the command with its words, without ``kubepy``: ``cordon NODE``.
    :param run: what it does; None for a group.
    :param options_class: its flags.
    """

    interspersed = (
        True  # flags may stand behind other words; False: the first other word ends them (pflag)
    )
    creates = False  # whether it may make new objects, and so the cluster that is to hold them
    reads = False  # whether it shows what is there, and writes nothing itself
    ticks = False  # whether time goes on when it reads, in a cluster that says so
    flag_error_status = (
        1  # the exit status for flags that cannot be read; others than 1 also change the message
    )
    entries: Mapping[str, Entry] = {}
    help_on_stdout = False

    def __init__(
        self,
        usage: str,
        run: Callable[[Factory, Any], None] | None = None,
        options_class: type[Options] = Options,
        *,
        help: str = "",
        examples: str = "",
    ) -> None:
        super().__init__(
            usage.partition(" ")[0], help=help, add_help_option=False, callback=self._run
        )
        self.usage = usage
        self.run = run
        self.options_class = options_class
        self.flags = options_class.flags
        self.examples = examples

    # --- sub-commands, imported when they are named

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        """Return the sub-command that a word names."""
        name = self.canonical(cmd_name)
        if name:
            return load(name, self.entries[name])
        return None

    def canonical(self, word: str) -> str:
        """Return the name of the sub-command that a name or alias stands for, "" for none."""
        if word in self.entries:
            return word
        return next((name for name, entry in self.entries.items() if word in entry.aliases), "")

    @property
    def listed(self) -> Mapping[str, Entry]:
        """The sub-commands that help, suggestions and completion show."""
        return {name: entry for name, entry in self.entries.items() if entry.summary}

    # --- running

    def parser(self) -> Parser:
        """Return a parser of the command's flags and the global ones."""
        return Parser([*self.flags, *GLOBAL_FLAGS], interspersed=self.interspersed)

    def options_of(self, line: CommandLine, values: Mapping[str, Any]) -> Options:
        """Return the options of a command line that was read by :meth:`parser`."""
        return self.options_class(line, **{flag.name: values[flag.name] for flag in self.flags})

    def global_options_of(self, values: Mapping[str, Any]) -> GlobalOptions:
        """Return the global options; those that this command's own flags stand for have their
        defaults."""
        own = {flag.long for flag in self.flags}
        return GlobalOptions(
            **{flag.name: values[flag.name] for flag in GLOBAL_FLAGS if flag.long not in own}
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the sub-command that the words name, or read them as this command's own."""
        parser = self.parser()
        position = parser.first_word(args) if self.entries else None
        child = self.get_command(ctx, args[position]) if position is not None else None
        if child is not None and position is not None:
            ctx.params = {"child": child, "words": [*args[:position], *args[position + 1 :]]}
            ctx.meta.setdefault(TYPED, []).append(args[position])
            return []

        try:
            ctx.meta[LINE] = parsed = parser.parse(args)
            ctx.params = parsed.values
        except HelpRequested:
            ctx.params = {}
        except FlagSyntaxError as error:
            message = self.options_class.explain(str(error))
            if self.flag_error_status == 1:
                raise FlagError(ctx.command_path, message) from None
            ctx.obj.say(f"error: {UsageError(ctx.command_path, message)}")
            raise SilentExit(self.flag_error_status) from None

        return []

    def invoke(self, ctx: click.Context) -> None:
        if child := ctx.params.get("child"):
            with child.make_context(child.name, ctx.params["words"], parent=ctx) as inner:
                child.invoke(inner)
        elif LINE in ctx.meta:
            ctx.invoke(self._run, **ctx.params)
        else:
            show_help(ctx.obj)

    def _run(self, **values: Any) -> None:
        """Run the command; ``values`` are those of its flags and of the global ones."""
        ctx = click.get_current_context()
        factory: Factory = ctx.obj
        parsed: Parsed = ctx.meta[LINE]
        line = CommandLine(
            ctx.command_path, parsed.args, parsed.dash, parsed.flags_set, ctx.meta.get(TYPED, ())
        )
        options = self.options_of(line, values)
        for flag in self.flags:
            if flag.deprecated and options.changed(flag.long):
                factory.say(f"Flag --{flag.long} has been deprecated, {flag.deprecated}")
        factory.use(self.global_options_of(values), may_create=self.creates)
        factory.reads = self.reads
        factory.passes_time = self.ticks
        factory.chunk_size = getattr(options, "chunk_size", 0)
        (self.run or self._run_group)(factory, options)
        factory.finish()

    def _run_group(self, factory: Factory, options: Options) -> None:
        """Show a group's help, or raise CliError for words that name none of its commands; either
        fails."""
        if options.args:
            options.usage_error(f"unknown command {quote(' '.join(options.args))}")
        if self.help_on_stdout:
            show_help(factory)
        else:
            factory.say(self.help_text(options.line.path))
        raise SilentExit(1)

    # --- help

    def get_help(self, ctx: click.Context) -> str:
        return self.help_text(ctx.command_path)

    def help_text(self, path: str) -> str:
        """Return the text of ``--help`` (kubectl's order of things)."""
        import textwrap

        program = program_of(path)
        prefix = path.rpartition(" ")[0] or path
        usage = f"{path} SUBCOMMAND" if self.run is None else f"{prefix} {self.usage}"
        examples = textwrap.indent(textwrap.dedent(self.examples).strip("\n"), "  ")
        width = max((len(name) for name in self.entries), default=0)
        commands = "\n".join(
            f"  {name:<{width}}  {translated(entry.summary)}"
            for name, entry in sorted(self.entries.items())
        )
        parts = [
            translated(description(self.help or "")),
            f"Examples:\n{examples}" if examples else "",
            f"Available Commands:\n{commands}" if commands else "",
            options_text("Options:", self.flags),
        ]
        text = renamed("\n\n".join(part for part in parts if part), program)
        text = text.replace(f" {plugin_prefix(KUBEPY)}", f" {plugin_prefix(program)}")
        return (
            f"{text}\n\nUsage:\n  {usage} "
            f"[options]\n\n{footer(program, path if self.entries else '')}"
        )


def show_help(factory: Factory) -> None:
    """Print the help of the command that runs."""
    factory.print(click.get_current_context().get_help())


def root_command() -> Command:
    """Return ``kubepy`` itself, to which the command that runs belongs."""
    root = click.get_current_context().find_root().command
    assert isinstance(root, Command)
    return root


def reading(command: Command) -> Command:
    """Mark a command as one that shows what is there, and writes nothing itself."""
    command.reads = True
    return command


def ticking(command: Command) -> Command:
    """Mark a command as one that reads, and with which time goes on in a cluster that says so."""
    command.reads = command.ticks = True
    return command


class Line(NamedTuple):
    """The command that a line names, its path (``("rollout", "undo")``), and the words that are not
    its name."""

    command: Command
    path: tuple[str, ...]
    rest: list[str]


def line_of(words: list[str]) -> Line:
    """Return the command that words name."""
    line = Line(root_command(), (), words)
    while line.command.entries:
        position = line.command.parser().first_word(line.rest)
        name = line.command.canonical(line.rest[position]) if position is not None else ""
        if not name or position is None:
            break
        line = Line(
            load(name, line.command.entries[name]),
            (*line.path, name),
            [*line.rest[:position], *line.rest[position + 1 :]],
        )
    return line


def load(name: str, entry: Entry) -> Command:
    """Import a command."""
    if entry.load:
        loaded = entry.load()
    else:
        loaded = Command(name, help=entry.summary, examples=entry.examples)
        loaded.help_on_stdout = entry.help_on_stdout
    loaded.entries = entry.commands
    return loaded


def command(
    usage: str,
    options_class: type[OptionsT],
    *,
    examples: str = "",
    creates: bool = False,
    flag_error_status: int = 1,
    interspersed: bool = True,
) -> Callable[[Callable[[Factory, OptionsT], None]], Command]:
    """Make a command of a function, whose docstring is the description. See :class:`Command`."""

    def decorate(run: Callable[[Factory, OptionsT], None]) -> Command:
        decorated = Command(
            usage, run, options_class, help=(run.__doc__ or "").strip(), examples=examples
        )
        decorated.creates = creates
        decorated.interspersed = interspersed
        decorated.flag_error_status = flag_error_status
        return decorated

    return decorate


def walk(entries: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Yield every command of a catalogue, groups before their own: ``("rollout undo", entry)``."""
    for name, entry in entries.items():
        yield name, entry
        for inner, inner_entry in walk(entry.commands):
            yield f"{name} {inner}", inner_entry


# --- the parts of --help --------------------------------------------------------------------------


def description(text: str) -> str:
    import textwrap

    return textwrap.dedent(f"    {text}").strip()


def options_text(title: str, flags: Iterable[Flag], *, all_flags: bool = False) -> str:
    """Return ``title`` and, for each flag in order of name, its default and its help; "" without
    flags to show.

    :param all_flags: show hidden ones as well.
    """
    import textwrap

    parts = []
    for flag in sorted(flags, key=lambda flag: flag.long):
        if flag.deprecated or (flag.hidden and not all_flags):
            continue
        short = f"-{flag.short}, " if flag.short else ""
        text = textwrap.fill(flag.help, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
        parts.append(
            f"    {short}--{flag.long}={flag.default_text}:" + (f"\n{text}" if text else "")
        )
    if parts:
        return f"{title}\n" + "\n\n".join(parts)
    return ""


def footer(program: str, group: str) -> str:
    """Point to further help; ``group`` is the path of a command that has sub-commands, else ""."""
    more = (
        f'Use "{program} options" for a list of global command-line options (applies to all '
        f"commands)."
    )
    if group:
        return f'Use "{group} <command> --help" for more information about a given command.\n{more}'
    return more
