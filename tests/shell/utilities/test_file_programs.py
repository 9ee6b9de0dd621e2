"""Programs that change and show files beside those of the machine: the same output and files."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from kubepy.shell.files import FileSystem
from tests.shell.utilities.programs import (
    FOLDER,
    NOW,
    file_system,
    run_model,
    run_real,
)
from tests.shell.utilities.test_text_programs import some_text

TABLE = Path(__file__).with_name("file_commands.txt")
COMMANDS = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
LINKS = {"link": "a", "dir-link": "d", "dangling": "nope"}


def some_files(command: str) -> dict[str, bytes | str]:
    """Return texts that depend on the command alone."""
    chance = random.Random(command)
    texts: dict[str, bytes | str] = {
        name: f"alpha\n{some_text(chance)}" for name in ("a", "b", "d/e", "d/f", "d/sub/g")
    }
    return texts | {"none/": "", "empty": "", ".hidden": "x\n"}


def with_links(files: dict[str, bytes | str]) -> FileSystem:
    """Return a file system with the files, and links between them."""
    box = file_system(files)
    for name, target in LINKS.items():
        box.symlink(target, f"{FOLDER}/{name}", now=NOW)
    return box


def modes(folder: Path) -> dict[str, int]:
    """Return the permissions of all files and directories of the machine below a folder."""
    return {
        str(path.relative_to(folder)): path.stat().st_mode & 0o777
        for path in folder.rglob("*")
        if not path.is_symlink()
    }


def model_modes(box: FileSystem, paths: list[str]) -> dict[str, int]:
    """Return the permissions of files and directories of the model."""
    return {path: box.stat(f"{FOLDER}/{path}").mode for path in paths}


@pytest.mark.parametrize("command", COMMANDS)
def test_file_program_leaves_what_real_one_leaves(command: str, tmp_path: Path) -> None:
    """Run one command over files, directories and links; compare the messages, too."""
    argv = shlex.split(command)
    files = some_files(command)
    for name, target in LINKS.items():
        (tmp_path / name).symlink_to(target)
    stdin = b"from input\n"
    expected = run_real(argv, tmp_path, stdin=stdin, files=files)
    box = with_links(files)
    outcome = run_model(argv, stdin=stdin, files=box)
    assert outcome == expected
    real_modes = modes(tmp_path)
    assert model_modes(box, list(real_modes)) == real_modes
