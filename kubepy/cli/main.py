"""``kubepy`` and its commands, imported when they are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from kubepy import KUBERNETES_VERSION, __version__
from kubepy.cli.commands import COMMANDS, GROUPS, OWN_GROUP
from kubepy.cli.errors import UnprefixedError, guarded
from kubepy.cli.names import KUBECTL, KUBEPY, renamed, suggestions, translated
from kubepy.cli.runtime.command import Command, Entry, description, footer, options_text
from kubepy.cli.runtime.dispatch import dispatch, show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Parser, bool_flag
from kubepy.cli.runtime.options import GLOBAL_FLAGS, Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

with lazy_imports():
    from kubepy.cli import kuberc, plugins

ABOUT = """A Kubernetes cluster that is a folder of YAML files, with kubectl's commands."""
ABOUT_KUBECTL = """kubectl works on a Kubernetes cluster, which is a folder of YAML files here."""


class RootOptions(Options):
    """The flags of ``kubepy`` without a command."""

    version: bool = bool_flag(
        "version", help="Print the versions of kubepy and of the Kubernetes that it is."
    )


def main(
    words: Sequence[str],
    *,
    program: str = KUBEPY,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
    stderr: IO[str] | None = None,
    open_cluster: LocalCluster | None = None,
) -> int:
    """Run one command line (without the program's name); returns the exit status.

    :param open_cluster: the cluster to work on, in place of that of a folder; then neither the
        user's own file of preferences nor plugins count.
    """
    factory = Factory(stdin, stdout, stderr, open_cluster)
    factory.program = program
    factory.words = words
    factory.main = main
    root = Root(program)

    def execute() -> None:
        try:
            dispatch(root, with_preferences(root, list(words), factory), factory)
        except Exception:
            if factory.fault_run is not None:
                factory.fault_run.failed()
            raise
        finally:
            factory.close()

    return guarded(execute, factory.say)


def with_preferences(root: Root, words: list[str], factory: Factory) -> list[str]:
    """Return a command line with the aliases and defaults of a file of preferences (kuberc)."""
    if factory.has_preferences(words):
        return kuberc.applied(root, words, factory)
    return words


class Root(Command):
    """``kubepy`` itself, whose help shows the commands in groups; a word that names no command may
    name a plugin.

    Called by the name of ``kubectl`` it has the same commands, but lists only kubectl's.
    """

    entries = COMMANDS

    def __init__(self, program: str = KUBEPY) -> None:
        self.is_kubectl = program == KUBECTL
        super().__init__(
            program,
            _without_command,
            Options if self.is_kubectl else RootOptions,
            help=ABOUT_KUBECTL if self.is_kubectl else ABOUT,
        )
        self.name = program  # of two words as a plugin

    def reject(self, factory: Factory, words: list[str]) -> None:
        """Run the plugin that the words name, or raise CliError for words that name no command."""
        position = Parser(GLOBAL_FLAGS).first_word(words)
        if position is not None and not self.canonical(words[position]):
            self._run_plugin(factory, words)
            word = words[position]
            message = (
                f'error: unknown command {quote(word)} for "{self.name}"'  # as cobra's legacyArgs
            )
            if names := suggestions(word, self.listed):
                message += "\n\nDid you mean this?\n" + "\n".join(f"\t{name}" for name in names)
            raise UnprefixedError(message)

        if (
            words[:1] == ["create"]
            and words[1:]
            and not words[1].startswith("-")
            and words[1] not in COMMANDS["create"].commands
        ):
            self._run_plugin(factory, words, least=2)

    @property
    def listed(self) -> Mapping[str, Entry]:
        hidden = GROUPS[OWN_GROUP] if self.is_kubectl else ()
        return {name: entry for name, entry in super().listed.items() if name not in hidden}

    def help_text(self, path: str) -> str:
        sections = {
            title: [
                (name, translated(COMMANDS[name].summary)) for name in names if name in self.listed
            ]
            for title, names in GROUPS.items()
        }
        sections["Subcommands provided by plugins"] = [
            (name, plugins.ABOUT.format(name)) for name in plugins.names_on_path(path)
        ]
        parts = [
            f"{title}:\n" + "\n".join(f"  {name:<15} {summary}" for name, summary in commands)
            for title, commands in sections.items()
            if commands
        ]
        if self.flags:
            parts.append(options_text("Options:", self.flags))
        text = renamed("\n\n".join([description(self.help or ""), *parts]), path)
        return f"{text}\n\nUsage:\n  {path} [flags] [options]\n\n{footer(path, path)}"

    def _run_plugin(self, factory: Factory, words: list[str], least: int = 1) -> None:
        """Become the plugin that the words name; return if there is none, or the process is another
        program's."""
        if not factory.open_cluster and (plugin := plugins.find(words, least, self.name)):
            plugins.run(plugin)


def _without_command(factory: Factory, options: Options) -> None:
    """Show the overview for a command line that names no command."""
    if isinstance(options, RootOptions) and options.version:
        factory.print(f"{KUBEPY} {__version__} (Kubernetes {KUBERNETES_VERSION})")
        return
    show_help(factory, options)
