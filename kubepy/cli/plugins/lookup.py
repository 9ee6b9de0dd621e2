"""Which program of the PATH a command line names, and running it in this one's place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from kubepy.cli.errors import UnprefixedError

PREFIX = "kubepy-"


class Plugin(NamedTuple):
    """A program, and the words of the line that are its own."""

    path: str
    args: list[str]


def find(words: Sequence[str], least: int = 1) -> Plugin | None:
    """The plugin that the line's first words name, the longest name first; ``least``: how many words a name must hold.

    Raises UnprefixedError for a line that begins with a flag.
    """
    named = _leading_words(words)
    if not named:
        raise UnprefixedError(f"Error: flags cannot be placed before plugin name: {words[0]}")
    for count in range(len(named), least - 1, -1):
        if path := shutil.which(PREFIX + "-".join(named[:count])):
            return Plugin(path, list(words[count:]))
    return None


def _leading_words(words: Sequence[str]) -> list[str]:
    """The words before the first flag, as they stand in the name of a plugin: it parts them with dashes."""
    found: list[str] = []
    for word in words:
        if word.startswith("-"):
            break
        found.append(word.replace("-", "_"))
    return found


def names_on_path() -> list[str]:
    """The first word of each plugin's command."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isdir(folder)]
    return [name.removeprefix(PREFIX).split("-")[0].replace("_", "-") for folder in folders
            for name in os.listdir(folder) if name.startswith(PREFIX)]


def run(plugin: Plugin) -> NoReturn:
    """Become the plugin."""
    os.execv(plugin.path, [plugin.path, *plugin.args])
