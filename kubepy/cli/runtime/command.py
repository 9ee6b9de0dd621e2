"""Commands: a class of options and a function.

A module of the command line declares its options and writes one function::

    class CordonOptions(DryRunOptions, SelectorOptions):
        '''The flags of ``cordon``.'''

    @command("cordon NODE", CordonOptions, examples="  # …\\n  kubepy cordon node-1")
    def cordon(factory: Factory, options: CordonOptions) -> None:
        '''Mark node as unschedulable.'''

Words are read by :mod:`kubepy.cli.runtime.flags`, as kubectl's cobra and pflag read them: global
flags stand anywhere, and the first words that are no flags name the command.
:mod:`kubepy.cli.runtime.dispatch` finds the command that a line names, and
:mod:`kubepy.cli.runtime.clicktree` makes click's commands of these descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kubepy.cli.errors import SilentExit
from kubepy.cli.names import KUBEPY, OWN_COMMANDS, plugin_prefix, program_of, renamed, translated
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, Parsed, Parser
from kubepy.cli.runtime.options import GLOBAL_FLAGS, CommandLine, GlobalOptions, Options
from kubepy.quoting import quote

OptionsT = TypeVar("OptionsT", bound=Options)


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


class Command:
    """A command, its sub-commands, or both (``create -f``, ``create namespace``).

    :param usage: the command with its words, without ``kubepy``: ``cordon NODE``.
    :param run: what it does; None for a group.
    :param options_class: its flags.
    """

    interspersed = (
        True  # flags may stand behind other words; False: the first other word ends them (pflag)
    )
    creates = False  # whether it may make new objects, and so the cluster that is to hold them
    brings_containers = False  # whether it may give pods other containers
    reads = False  # whether it shows what is there, and writes nothing itself
    ticks = False  # whether time goes on when it reads, in a cluster that says so
    may_be_in_memory = False  # whether it takes "--state memory:", and has something to show of it
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
        self.name = usage.partition(" ")[0]
        self.usage = usage
        self.help = help
        self.run = run
        self.options_class = options_class
        self.flags = options_class.flags
        self.examples = examples

    # --- sub-commands, imported when they are named

    def child(self, word: str) -> Command | None:
        """Return the sub-command that a name or alias stands for."""
        name = self.canonical(word)
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

    def reject(self, factory: Factory, words: list[str]) -> None:
        """Raise CliError for words that name no command; the root's may name a plugin."""

    def read(self, words: Sequence[str]) -> Parsed:
        """Read words as this command's own. Raises FlagSyntaxError, HelpRequested."""
        return self.parser().parse(words)

    def execute(
        self, factory: Factory, path: str, parsed: Parsed, typed: Sequence[str] = ()
    ) -> None:
        """Run the command for words that were read; ``path`` and ``typed``: see CommandLine."""
        line = CommandLine(path, parsed.args, parsed.dash, parsed.flags_set, typed)
        options = self.options_of(line, parsed.values)
        for flag in self.flags:
            if flag.deprecated and options.changed(flag.long):
                factory.say(f"Flag --{flag.long} has been deprecated, {flag.deprecated}")
        factory.may_be_in_memory = self.may_be_in_memory
        factory.use(self.global_options_of(parsed.values), may_create=self.creates)
        factory.reads = self.reads
        factory.passes_time = self.ticks
        factory.brings_containers = self.creates or self.brings_containers
        factory.chunk_size = getattr(options, "chunk_size", 0)
        (self.run or self._run_group)(factory, options)
        factory.finish()

    def _run_group(self, factory: Factory, options: Options) -> None:
        """Show a group's help, or raise CliError for words that name none of its commands; either
        fails."""
        if options.args:
            options.usage_error(f"unknown command {quote(' '.join(options.args))}")
        if self.help_on_stdout:
            factory.print(self.help_text(options.line.path))
        else:
            factory.say(self.help_text(options.line.path))
        raise SilentExit(1)

    # --- help

    def help_text(self, path: str) -> str:
        """Return the text of ``--help``: in kubectl's order of things, which begins with what the
        command does; that of a command which kubectl does not have begins with examples."""
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
        beginning = [
            translated(description(self.help or "")),
            f"Examples:\n{examples}" if examples else "",
        ]
        if not set(OWN_COMMANDS).isdisjoint(path.split()):
            beginning.reverse()
        parts = [
            *beginning,
            f"Available Commands:\n{commands}" if commands else "",
            options_text("Options:", self.flags),
        ]
        text = renamed("\n\n".join(part for part in parts if part), program)
        text = text.replace(f" {plugin_prefix(KUBEPY)}", f" {plugin_prefix(program)}")
        return (
            f"{text}\n\nUsage:\n  {usage} "
            f"[options]\n\n{footer(program, path if self.entries else '')}"
        )


def reading(command: Command) -> Command:
    """Mark a command as one that shows what is there, and writes nothing itself."""
    command.reads = True
    return command


def in_memory(command: Command) -> Command:
    """Mark a command as one that may work on a cluster that is gone with it."""
    command.may_be_in_memory = True
    return command


def bringing(command: Command) -> Command:
    """Mark a command as one that may give pods other containers, of which there may be something to
    say. Commands that create objects need no mark."""
    command.brings_containers = True
    return command


def ticking(command: Command) -> Command:
    """Mark a command as one that reads, and with which time goes on in a cluster that says so."""
    command.reads = command.ticks = True
    return command


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
