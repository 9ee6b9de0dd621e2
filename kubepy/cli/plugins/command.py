"""``kubepy plugin``. Upstream: ``kubectl/pkg/cmd/plugin/plugin.go``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from kubepy.cli.errors import UnprefixedError, os_error_text
from kubepy.cli.plugins.lookup import PREFIX
from kubepy.cli.runtime.command import Entry, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import quote


@verb("list", "list [flags]", flags=[
    boolean("name-only", help="If true, display only the binary name of each plugin, rather than its full path."),
], examples="""
# Every program on the PATH whose name begins with kubepy-
kubepy plugin list

# Their names only
kubepy plugin list --name-only
""")
def list_(factory: Factory, given: Invocation) -> None:
    """List the plugins: programs on the PATH whose names begin with "kubepy-".

    "kubepy foo bar" runs kubepy-foo-bar, or else kubepy-foo, unless kubepy has a command of that name."""
    found = list(plugins(factory))
    if not found:
        raise UnprefixedError("error: unable to find any kubepy plugins in your PATH")
    factory.print("The following compatible plugins are available:\n")
    problems = 0
    seen: dict[str, str] = {}
    for path in found:
        name = os.path.basename(path)
        factory.print(name if given.name_only else path)
        for problem in _problems(path, seen.get(name)):
            factory.say(f"  - {problem}")
            problems += 1
        seen.setdefault(name, path)
    if problems:
        raise UnprefixedError("error: one plugin warning was found" if problems == 1
                              else f"error: {problems} plugin warnings were found")


def plugins(factory: Factory) -> Iterator[str]:
    """The paths of what could be plugins, in the order of the PATH."""
    for folder in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        if not folder.strip():
            continue
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            factory.say(f"Unable to read directory {quote(folder)} from your PATH: {os_error_text(error)}. Skipping...")
            continue
        yield from (os.path.join(folder, entry.name) for entry in entries
                    if entry.name.startswith(PREFIX) and not entry.is_dir(follow_symlinks=False))


def _problems(path: str, shadowing: str | None) -> Iterator[str]:
    """Why a plugin cannot be run; ``shadowing``: the one of the same name that comes before it."""
    name = os.path.basename(path)
    if not os.path.exists(path):
        yield f"error: unable to identify {path} as an executable file: stat {path}: no such file or directory"
    elif not os.stat(path).st_mode & 0o111:
        yield f"warning: {path} identified as a kubepy plugin, but it is not executable"
    if shadowing:
        yield f"warning: {path} is overshadowed by a similarly named plugin: {shadowing}"
    if command := _command_named(name.split("-")[1:]):
        yield f'warning: {name} overwrites existing command: "kubepy {command}"'


def _command_named(words: list[str]) -> str:
    """The command of kubepy's own that the words begin with, "" if there is none."""
    entries: Mapping[str, Entry] = root_command().entries
    found: list[str] = []
    for word in words:
        name = next((one for one, entry in entries.items() if word == one or word in entry.aliases), None)
        if name is None:
            break
        found.append(name)
        entries = entries[name].commands
    return " ".join(found)
