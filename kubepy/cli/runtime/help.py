"""The parts of ``--help``: what a command does, examples, its commands and flags."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from kubepy.cli.runtime.flags import Flag


def description(text: str) -> str:
    return textwrap.dedent(f"    {text}").strip()


def examples(text: str) -> str:
    return "Examples:\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "  ") if text else ""


def commands(summaries: Mapping[str, str]) -> str:
    """List the sub-commands of a group in order of name; "" for none."""
    if not summaries:
        return ""
    width = max(len(name) for name in summaries)
    lines = [f"  {name:<{width}}  {summary}" for name, summary in sorted(summaries.items())]
    return "Available Commands:\n" + "\n".join(lines)


def options_text(title: str, flags: Iterable[Flag]) -> str:
    """Return ``title`` and, for each flag in order of name, its default and its help; "" without flags to show."""
    parts = []
    for flag in sorted(flags, key=lambda flag: flag.long):
        if flag.hidden or flag.deprecated:
            continue
        short = f"-{flag.short}, " if flag.short else ""
        text = textwrap.fill(flag.help, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
        parts.append(f"    {short}--{flag.long}={flag.default_text}:" + (f"\n{text}" if text else ""))
    return f"{title}\n" + "\n\n".join(parts) if parts else ""


def overview(program: str, about: str, groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the help of ``kubepy`` itself: the summaries of commands by group and name."""
    parts = [description(about)]
    for title, summaries in groups.items():
        parts.append(f"{title}:\n" + "\n".join(f"  {name:<15} {summary}" for name, summary in summaries.items()))
    parts += [f"Usage:\n  {program} [flags] [options]", footer(program, program)]
    return "\n\n".join(parts)


def footer(program: str, group: str) -> str:
    """Point to further help; ``group`` is the path of a command that has sub-commands, else ""."""
    more = f'Use "{program} options" for a list of global command-line options (applies to all commands).'
    return f'Use "{group} COMMAND --help" for more information about a command.\n{more}' if group else more
