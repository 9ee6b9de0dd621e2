"""``kubepy plugin``, and commands that other programs bring: ``kubepy foo bar`` runs
``kubepy-foo-bar`` of the PATH.

Upstream: ``kubectl/pkg/cmd/plugin.go``, ``kubectl/pkg/cmd/plugin/plugin.go``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from kubepy.cli.errors import UnprefixedError, os_error_text
from kubepy.cli.names import KUBEPY, plugin_prefix
from kubepy.cli.runtime.command import Command, Entry, command
from kubepy.cli.runtime.dispatch import root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.options import Options
from kubepy.quoting import quote

ABOUT = "The command {} is a plugin installed by the user"


class PluginCommand(NamedTuple):
    """A program, and the words of the line that are its arguments."""

    path: str
    args: list[str]


def find(words: Sequence[str], least: int = 1, program: str = KUBEPY) -> PluginCommand | None:
    """Return the plugin of a program that the line's first words name, the longest name first.

    :param least: the number of words that a name must hold.
    :raises UnprefixedError: for a line that begins with a flag.
    """
    name: list[str] = []
    for word in words:
        if word.startswith("-"):
            break
        name.append(word.replace("-", "_"))  # dashes separate the words of a plugin's name
    if not name:
        raise UnprefixedError(f"Error: flags cannot be placed before plugin name: {words[0]}")
    for count in range(len(name), least - 1, -1):
        if path := shutil.which(plugin_prefix(program) + "-".join(name[:count])):
            return PluginCommand(path, list(words[count:]))
    return None


def names_on_path(program: str) -> list[str]:
    """Return the first word of each plugin's command, sorted."""
    folders = [
        folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isdir(folder)
    ]
    prefix = plugin_prefix(program)
    return sorted(
        {
            name.removeprefix(prefix).split("-")[0].replace("_", "-")
            for folder in folders
            for name in os.listdir(folder)
            if name.startswith(prefix)
        }
    )


def completions(words: Sequence[str], word: str, program: str) -> tuple[list[str], int]:
    """Return how a plugin completes a word after others, and cobra's directive to the shell.

    The plugin ``kubectl-foo`` has a program ``kubectl_complete-foo`` for that, which gets the words
    that follow its name and prints a candidate a line, maybe with a description, and at the end
    maybe ``:DIRECTIVE``.
    """
    import subprocess

    plugin = find(words, 1, program) if words and not words[0].startswith("-") else None
    if plugin is None:
        return [], 0
    _, dash, name = os.path.basename(plugin.path).partition("-")
    completer = shutil.which(f"{plugin_prefix(program).removesuffix(dash)}_complete{dash}{name}")
    if completer is None:
        return [], 0
    done = subprocess.run(
        [completer, *plugin.args, word], stdout=subprocess.PIPE, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line] if done.returncode == 0 else []
    if lines and lines[-1].startswith(":") and lines[-1][1:].isdecimal():
        return lines[:-1], int(lines[-1][1:])
    return lines, 0


def run(plugin: PluginCommand) -> NoReturn:
    """Replace this process by the plugin's."""
    os.execv(plugin.path, [plugin.path, *plugin.args])


# --- plugin list ----------------------------------------------------------------------------------


class PluginListOptions(Options):
    """The flags of ``plugin list``."""

    name_only: bool = bool_flag(
        "name-only",
        help="If true, display only the binary name of each plugin, rather than its full path.",
    )


@command(
    "list [flags]",
    PluginListOptions,
    examples="""
# Every program on the PATH whose name begins with kubepy-
kubepy plugin list

# Their names only
kubepy plugin list --name-only
""",
)
def list_(factory: Factory, options: PluginListOptions) -> None:
    """List the plugins: the programs on the PATH with names such as kubepy-foo.

    "kubepy foo bar" runs kubepy-foo-bar, or else kubepy-foo, unless kubepy has a command of that name."""  # noqa: E501
    paths: list[str] = []
    for folder in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        if not folder.strip():
            continue
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            factory.say(
                f"Unable to read directory {quote(folder)} from your PATH: "
                f"{os_error_text(error)}. Skipping..."
            )
            continue
        paths += [
            os.path.join(folder, entry.name)
            for entry in entries
            if entry.name.startswith(plugin_prefix(factory.program))
            and not entry.is_dir(follow_symlinks=False)
        ]

    if not paths:
        raise UnprefixedError(f"error: unable to find any {factory.program} plugins in your PATH")
    factory.print("The following compatible plugins are available:\n")
    warnings = 0
    first_paths: dict[str, str] = {}
    for path in paths:
        name = os.path.basename(path)
        factory.print(name if options.name_only else path)
        for warning in _warnings(path, first_paths.get(name), root_command(factory)):
            factory.say(f"  - {warning}")
            warnings += 1
        first_paths.setdefault(name, path)

    if warnings:
        raise UnprefixedError(
            "error: one plugin warning was found"
            if warnings == 1
            else f"error: {warnings} plugin warnings were found"
        )


def _warnings(path: str, shadowed_by: str | None, root: Command) -> Iterator[str]:
    """Yield the reasons why a plugin cannot be run; ``shadowed_by``: an earlier one of the same
    name."""
    name = os.path.basename(path)
    if not os.path.exists(path):
        yield (
            f"error: unable to identify {path} as an executable file: stat {path}: no such file "
            f"or directory"
        )
    elif not os.stat(path).st_mode & 0o111:
        yield f"warning: {path} identified as a {root.name} plugin, but it is not executable"

    if shadowed_by:
        yield f"warning: {path} is overshadowed by a similarly named plugin: {shadowed_by}"
    command_words: list[str] = []
    entries: Mapping[str, Entry] = root.entries
    for word in name.split("-")[1:]:
        command = next(
            (key for key, entry in entries.items() if word == key or word in entry.aliases), None
        )
        if command is None:
            break
        command_words.append(command)
        entries = entries[command].commands

    if command_words:
        command_line = " ".join([root.name, *command_words])
        yield f'warning: {name} overwrites existing command: "{command_line}"'
