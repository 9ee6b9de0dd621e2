"""Play a page of docs as a reader would: its files are written, its commands run one after another
in one empty folder.

A fenced block with ``title="NAME"`` is a file, a program where it begins with ``#!``. A ``console``
block has commands behind ``$``, continued behind ``>``, each with what a terminal shows of it:
standard output and standard error. A line ``...`` stands for any lines, ``...`` in a line for any
text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
STEP = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What differs from run to run even in a cluster with a seed and time of its own.
MASKS = (
    (re.compile(r"\bin \d+\.\d+s\b"), "in <time>"),
    (re.compile(r"\b[0-9a-f]{7,40}\b(?= )"), "<commit>"),
)
SECONDS = 60  # after which a command is stopped


class Step(NamedTuple):
    """A command, and the lines that the page shows of what it prints."""

    command: str
    shown: str


def steps_of(text: str) -> Iterator[Step]:
    for typed, shown in STEP.findall(text):
        yield Step(typed.replace("\n> ", "\n").rstrip("\n"), shown)


def play(page: str, folder: Path, program: str) -> Iterator[tuple[Step, str]]:
    """Write the files of a page and run its commands; yield each with what it has printed.

    :param program: the path of the program that stands for kubepy.
    """
    environment = environment_for(folder, program)
    work = folder / "work"
    work.mkdir()
    for block in BLOCK.finditer(page):
        if block["title"]:
            write_file(work / block["title"], block["text"])
        elif block["language"] == "console":
            for step in steps_of(block["text"]):
                yield step, run(step.command, work, environment)


def environment_for(folder: Path, program: str) -> Mapping[str, str]:
    """Return the environment of a reader who has installed kubepy, and nothing else."""
    programs = os.pathsep.join([str(Path(program).parent), str(Path(sys.executable).parent)])
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "reader",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "reader@localhost",
        "GIT_CONFIG_KEY_2": "init.defaultBranch",
        "GIT_CONFIG_VALUE_2": "main",
    }


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if text.startswith("#!"):
        path.chmod(0o755)


def run(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout


def is_as_shown(shown: str, printed: str) -> bool:
    """Tell whether a command has printed what the page shows."""
    return re.fullmatch(pattern_of(masked(shown)), masked(printed)) is not None


def pattern_of(shown: str) -> str:
    """Return the regular expression of the lines that a page shows."""
    return "".join(pattern_of_line(line) for line in shown.splitlines())


def pattern_of_line(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*"
    return re.escape(line).replace(r"\.\.\.", ".*") + r"\n"


def masked(text: str) -> str:
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip("\n").split("\n") if text.strip())


def filled(page: str, folder: Path, program: str) -> str:
    """Return a page with what its commands print now in place of what is shown; lines of ``...``
    stay if they match."""
    played = iter(list(play(page, folder, program)))

    def with_output(block: re.Match[str]) -> str:
        if block["language"] != "console" or block["title"]:
            return block[0]
        return STEP.sub(step_with_output, block[0])

    def step_with_output(match: re.Match[str]) -> str:
        step, printed = next(played)
        if is_as_shown(step.shown, printed):
            return match[0]
        return f"$ {match[1]}{printed}"

    return BLOCK.sub(with_output, page)


if __name__ == "__main__":  # fill the pages that are named: python -m tests.site.player docs/….md
    import tempfile

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            path = ROOT / name
            kubepy = str(Path(sys.executable).parent / "kubepy")
            path.write_text(filled(path.read_text(), Path(temporary), kubepy))
