"""The text of ``--help``: what a command does, examples, its flags, how it is called (kubectl's order of things)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kubepy.cli.runtime.flags import Flag, go_duration

if TYPE_CHECKING:
    from kubepy.cli.runtime.command import Verb


def help_text(command: Verb, path: str) -> str:
    parts = [_description(command), _examples(command), _commands(command), options_text("Options:", command.flags),
             _usage(command, path), _footer(command, path)]
    return "\n\n".join(part for part in parts if part)


def overview(root: Verb, groups: Mapping[str, Sequence[str]]) -> str:
    """The help of ``kubepy`` itself: every command, in ``groups`` of names by title."""
    parts = [_description(root)]
    for title, names in groups.items():
        parts.append(f"{title}:\n" + "\n".join(f"  {name:<15} {root.entries[name].summary}" for name in names))
    parts.append(f"Usage:\n  {root.name} [flags] [options]")
    parts.append(f'Use "{root.name} COMMAND --help" for more information about a command.\n{_more(str(root.name))}')
    return "\n\n".join(parts)


def _description(command: Verb) -> str:
    return textwrap.dedent(f"    {command.help or ''}").strip()


def _examples(command: Verb) -> str:
    if not command.examples:
        return ""
    return "Examples:\n" + textwrap.indent(textwrap.dedent(command.examples).strip("\n"), "  ")


def _commands(command: Verb) -> str:
    if not command.entries:
        return ""
    width = max(len(name) for name in command.entries)
    lines = [f"  {name:<{width}}  {entry.summary}" for name, entry in sorted(command.entries.items())]
    return "Available Commands:\n" + "\n".join(lines)


def options_text(title: str, flags: tuple[Flag, ...]) -> str:
    """``title`` and, for each flag in order of name, its default and what it does."""
    shown = sorted((flag for flag in flags if not flag.hidden and not flag.deprecated), key=lambda flag: flag.name)
    if not shown:
        return ""
    return "\n\n".join([title, *(_option(flag) for flag in shown)]).replace(f"{title}\n\n", f"{title}\n", 1)


def _option(flag: Flag) -> str:
    head = f"-{flag.short}, " if flag.short else ""
    text = textwrap.fill(flag.help, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f"    {head}--{flag.name}={default_text(flag)}:" + (f"\n{text}" if flag.help else "")


def default_text(flag: Flag) -> str:
    """A default as Go prints it: ``false``, ``''``, ``[a,b]``, ``1m0s``."""
    if isinstance(flag.default, bool):
        return str(flag.default).lower()
    if isinstance(flag.default, list):
        return f"[{','.join(flag.default)}]"
    if isinstance(flag.default, float):
        return go_duration(flag.default)
    return f"'{flag.default}'" if isinstance(flag.default, str) else str(flag.default)


def _usage(command: Verb, path: str) -> str:
    if command.run is None:
        return f"Usage:\n  {path} COMMAND [options]"
    prefix = path.rpartition(" ")[0] or path
    return f"Usage:\n  {prefix} {command.usage} [options]"


def _footer(command: Verb, path: str) -> str:
    more = _more(path.partition(" ")[0])
    return f'Use "{path} COMMAND --help" for more information about a command.\n{more}' if command.entries else more


def _more(program: str) -> str:
    return f'Use "{program} options" for a list of global command-line options (applies to all commands).'
