"""Write man/: a manual page for kubepy and one for each of its commands. `make man` runs it, a test
compares it.

A page is made of what `--help` prints: the words of a command, its flags and its examples. A
command's sub-commands stand in its own page. Pages show no date and no version, so that they change
only where the help does.

Run `python tools/write_man_pages.py [FOLDER]`.
"""

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kubepy.cli.commands import COMMANDS, GROUPS
from kubepy.cli.main import Root
from kubepy.cli.names import KUBEPY
from kubepy.cli.runtime.command import Command, Entry, description, load
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.options import GLOBAL_FLAGS

FOLDER = Path(__file__).parents[1] / "man"
TITLE = '"" "kubepy" "kubepy manual"'
SUBJECT = "a Kubernetes cluster that is a folder of YAML files"


# --- roff -----------------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Return text as roff shows it literally, without a line that roff takes for a request."""
    text = text.replace("…", "...")  # terminals of ASCII have no such character
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = re.sub(r"^(?=[.'])", r"\&", text, flags=re.MULTILINE)
    return "".join(
        character if character.isascii() else f"\\[u{ord(character):04X}]" for character in text
    )


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a description: filled, but for those with lines that are indented."""
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if re.search(r"^ ", block, re.MULTILINE):
            yield f".PP\n.nf\n{escaped(block)}\n.fi"
        else:
            yield f".PP\n{escaped(' '.join(block.split()))}"


def joined(parts: Iterable[str]) -> str:
    """Return the text of a page; a heading needs no paragraph macro behind it."""
    return re.sub(r"^(\.S[HS] .*)\n\.PP\n", r"\1\n", "\n".join(parts), flags=re.MULTILINE) + "\n"


def preformatted(text: str) -> str:
    return f".PP\n.nf\n.RS 4\n{escaped(text)}\n.RE\n.fi"


def flag_items(flags: Iterable[Flag]) -> Iterator[str]:
    """Yield an item for each flag that `--help` shows, in its order."""
    for flag in sorted(flags, key=lambda flag: flag.long):
        if flag.deprecated or flag.hidden:
            continue
        short = rf"\fB\-{flag.short}\fR, " if flag.short else ""
        name = escaped(f"--{flag.long}")
        yield f".TP\n{short}\\fB{name}\\fR={escaped(flag.default_text)}\n{escaped(flag.help)}"


def command_items(entries: Mapping[str, Entry]) -> Iterator[str]:
    for name, entry in entries.items():
        if entry.summary:
            yield f".TP\n\\fB{escaped(name)}\\fR\n{escaped(entry.summary)}"


# --- pages ----------------------------------------------------------------------------------------


def usage_of(path: str, command: Command) -> str:
    """Return the usage as `--help` ends with it, of a command with its path behind `kubepy`."""
    if command.run is None:
        return f"{KUBEPY} {path} SUBCOMMAND [options]"
    parent = path.rpartition(" ")[0]
    return " ".join(filter(None, [KUBEPY, parent, command.usage, "[options]"]))


def body(path: str, command: Command, heading: str) -> Iterator[str]:
    """Yield description, examples and options of a command, each below a heading."""
    yield heading.format("DESCRIPTION")
    yield from paragraphs(description(command.help))
    if examples := textwrap.dedent(command.examples).strip("\n"):
        yield heading.format("EXAMPLES")
        yield preformatted(examples)
    if flags := list(flag_items(command.flags)):
        yield heading.format("OPTIONS")
        yield from flags


def inner_parts(path: str, entries: Mapping[str, Entry]) -> Iterator[str]:
    """Yield a section for each command below another one, at any depth."""
    for name, entry in entries.items():
        if not entry.summary:
            continue
        inner, command = f"{path} {name}", load(name, entry)
        yield f".SH {escaped(inner.upper())}"
        yield escaped(f"{KUBEPY} {inner}: {entry.summary}.")
        yield f".PP\n\\fB{escaped(usage_of(inner, command))}\\fR"
        yield from body(inner, command, ".SS {}")
        yield from inner_parts(inner, entry.commands)


def page_of_command(name: str, entry: Entry) -> str:
    command = load(name, entry)
    parts = [
        f".TH {KUBEPY.upper()}\\-{escaped(name.upper())} 1 {TITLE}",
        f".SH NAME\n{KUBEPY}\\-{escaped(name)} \\- {escaped(entry.summary)}",
        f".SH SYNOPSIS\n\\fB{escaped(usage_of(name, command))}\\fR",
        *body(name, command, ".SH {}"),
        *inner_parts(name, entry.commands),
        f".SH SEE ALSO\n.BR {KUBEPY} (1)",
    ]
    return joined(parts)


def page_of_program() -> str:
    """Return kubepy(1): all commands in their groups, and the flags that each of them takes."""
    root = Root()
    grouped = {name for names in GROUPS.values() for name in names}
    rest = [name for name, entry in COMMANDS.items() if entry.summary and name not in grouped]
    groups = {**GROUPS, "Other commands, and the list of global flags": rest}
    parts = [
        f".TH {KUBEPY.upper()} 1 {TITLE}",
        f".SH NAME\n{KUBEPY} \\- {SUBJECT}",
        f".SH SYNOPSIS\n\\fB{KUBEPY} COMMAND [options]\\fR",
        ".SH DESCRIPTION",
        *paragraphs(root.help),
        f".PP\nThe manual page of a command is \\fB{KUBEPY}\\-COMMAND\\fR(1).",
        ".SH COMMANDS",
    ]
    for title, names in groups.items():
        parts += [
            f".SS {escaped(title)}",
            *command_items({name: COMMANDS[name] for name in names}),
        ]
    parts += [".SH OPTIONS", *flag_items([*root.flags, *GLOBAL_FLAGS])]
    return joined(parts)


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    texts = {f"{KUBEPY}.1": page_of_program()}
    for name, entry in COMMANDS.items():
        if entry.summary:
            texts[f"{KUBEPY}-{name}.1"] = page_of_command(name, entry)
    return texts


def write(folder: Path) -> None:
    """Write all pages, and remove those of commands that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for path in folder.glob("*.1"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
