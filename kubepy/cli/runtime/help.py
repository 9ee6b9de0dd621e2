"""The text of ``--help``: what a command does, examples, its flags, how it is called (kubectl's order of things)."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from kubepy.cli.runtime.flags import Flag

if TYPE_CHECKING:
    from kubepy.cli.runtime.command import Entry, Verb


def help_text(command: Verb, path: str) -> str:
    parts = [_description(command), _examples(command), _commands(command), options_text("Options:", command.flags),
             _usage(command, path), _footer(command, path)]
    return "\n\n".join(part for part in parts if part)


def _description(command: Verb) -> str:
    return textwrap.dedent(f"    {command.help or ''}").strip()


def _examples(command: Verb) -> str:
    if not command.examples:
        return ""
    return "Examples:\n" + textwrap.indent(textwrap.dedent(command.examples).strip("\n"), "  ")


def _commands(command: Verb) -> str:
    entries = {name: entry for name, entry in command.entries.items() if is_available(entry)}
    if not entries:
        return ""
    width = max(len(name) for name in entries)
    lines = [f"  {name:<{width}}  {entry.summary}" for name, entry in entries.items()]
    return "Available Commands:\n" + "\n".join(lines)


def is_available(entry: Entry) -> bool:
    """Whether a command is part of this version: its module is there, or any command of the group."""
    from importlib.util import find_spec

    if not entry.target:
        return any(is_available(one) for one in entry.commands.values())
    return find_spec(entry.target.partition(":")[0]) is not None


def options_text(title: str, flags: tuple[Flag, ...]) -> str:
    """``title`` and, for each flag in order of name, its default and what it does."""
    shown = sorted((flag for flag in flags if not flag.hidden and not flag.deprecated), key=lambda flag: flag.name)
    if not shown:
        return ""
    return "\n\n".join([title, *(_option(flag) for flag in shown)]).replace(f"{title}\n\n", f"{title}\n", 1)


def _option(flag: Flag) -> str:
    head = f"-{flag.short}, " if flag.short else ""
    text = textwrap.fill(flag.help, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f"    {head}--{flag.name}={_default(flag)}:" + (f"\n{text}" if flag.help else "")


def _default(flag: Flag) -> str:
    if isinstance(flag.default, bool):
        return str(flag.default).lower()
    if isinstance(flag.default, list):
        return f"[{','.join(flag.default)}]"
    if isinstance(flag.default, float):
        return f"{flag.default:g}s"
    return f"'{flag.default}'" if isinstance(flag.default, str) else str(flag.default)


def _usage(command: Verb, path: str) -> str:
    if command.run is None:
        return f"Usage:\n  {path} COMMAND"
    prefix = path.rpartition(" ")[0] or path
    return f"Usage:\n  {prefix} {command.usage} [options]"


def _footer(command: Verb, path: str) -> str:
    program = path.partition(" ")[0]
    more = f'Use "{program} options" for a list of global command-line options (applies to all commands).'
    if command.entries:
        return f'Use "{path} COMMAND --help" for more information about a command.\n{more}'
    return more
