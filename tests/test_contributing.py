"""CONTRIBUTING.md holds: its files and changes, applied to a copy of the tree, give the output
shown there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).parents[1]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text()
# sections with examples; a store is added by its contract, and has none
SECTIONS = dict(re.findall(r"^## (Add a (?!store)\w+)\n(.*?)(?=^## )", TEXT, re.M | re.S))
PROGRAM = "import sys; sys.argv[0] = 'kubepy'\nfrom kubepy.cli.program import run\nrun()\n"
AGE = re.compile(r"\b\d+s\b")


class Block(NamedTuple):
    """A fenced block: its language and its lines."""

    language: str
    text: str


def blocks(section: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```", section, re.M | re.S)]


def write_file(tree: Path, text: str) -> None:
    """Write a new file; its first line is its path as a comment."""
    first, _, rest = text.partition("\n")
    path = tree / first.removeprefix("# ")
    assert not path.exists(), f"{first} is there already"
    path.write_text(rest)


def apply_diff(tree: Path, text: str) -> None:
    """Apply the hunks of a diff of one file; the lines of each hunk must be found exactly once."""
    header, *hunks = re.split(r"^@@\n", text, flags=re.M)
    path = tree / header.strip().removeprefix("--- ")
    content = path.read_text()
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert content.count(old) == 1, f"{path.name}: not found once:\n{old}"
        content = content.replace(old, new)
    path.write_text(content)


def run(tree: Path, folder: Path, command: str) -> str:
    """Run a command of the changed copy in a shell; return its output on both streams."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin" / "kubepy"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(tree),
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout


def test_contributing_works_through_command_controller_kind_and_field() -> None:
    assert list(SECTIONS) == ["Add a command", "Add a controller", "Add a kind", "Add a field"]


@pytest.mark.parametrize("title", SECTIONS)
def test_contributing_walk_gives_its_output(title: str, tmp_path: Path) -> None:
    tree, folder = tmp_path / "tree", tmp_path / "work"
    shutil.copytree(
        PROJECT / "kubepy", tree / "kubepy", ignore=shutil.ignore_patterns("__pycache__")
    )
    folder.mkdir()
    shown = 0
    for block in blocks(SECTIONS[title]):
        if block.language == "python":
            write_file(tree, block.text)
        elif block.language == "diff":
            apply_diff(tree, block.text)
        elif block.language == "yaml":
            first, _, rest = block.text.partition("\n")
            (folder / first.removeprefix("# ")).write_text(rest)
        elif block.language == "console":
            for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
                shown += 1
                assert AGE.sub("AGE", run(tree, folder, command)) == AGE.sub("AGE", output), command
    assert shown
