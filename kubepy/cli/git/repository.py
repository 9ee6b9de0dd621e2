"""Run git, and edit the attributes and ignore files that it reads in a state folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress

from kubepy.cli.errors import CliError

NO_GIT = "git is not installed, or not on the PATH"


class Repository:
    """The repository that a state folder lies in. Raises CliError when there is none, or no git."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.root = self.run("rev-parse", "--show-toplevel").rstrip("\n")
        if not self.root:
            raise CliError(f'"{folder}" is not in the working tree of a git repository')

    def run(self, *words: str, expected: Collection[int] = (0,), stdin: str = "") -> str:
        """Run a git command in the state folder, and return its output. Raises CliError with git's
        message."""
        completed = run_git(["-C", self.folder, *words], stdin)
        if completed.returncode not in expected:
            lines = os.fsdecode(completed.stderr).splitlines()
            problem = lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else ""
            raise CliError(
                problem or f"git {words[0]} failed with exit status {completed.returncode}"
            )
        return os.fsdecode(completed.stdout)

    def configuration_file(self) -> str:
        """Return the path of the repository's own configuration, which its linked worktrees
        share."""
        common = self.run("rev-parse", "--path-format=absolute", "--git-common-dir").rstrip("\n")
        return os.path.join(common, "config")

    def setting(self, name: str) -> str | None:
        """Return a value of the repository's own configuration."""
        value = self.run("config", "--local", "--get", name, expected=(0, 1))
        if value:
            return value.removesuffix("\n")
        return None

    def set(self, name: str, value: str) -> None:
        self.run("config", "--local", name, value)

    def unset(self, name: str) -> None:
        """Remove a setting, if it is there."""
        self.run("config", "--local", "--unset-all", name, expected=(0, 5))


def run_git(words: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run git. Raises CliError when there is none."""
    try:
        return subprocess.run(
            ["git", *words], input=os.fsencode(stdin), capture_output=True, check=False
        )
    except FileNotFoundError:
        raise CliError(NO_GIT) from None


def write_lines(path: str, lines: Sequence[str], own: Collection[str]) -> bool:
    """Make a file hold ``lines``, and none of the other lines in ``own``, which this program wrote
    before.

    All other lines of the file stay. An empty file is removed. Return whether the file changed.
    """
    if os.path.islink(path):
        raise CliError(f"{path} is a symbolic link, which git does not follow")
    old: list[str] = []
    with (
        suppress(FileNotFoundError),
        open(path, encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        old = file.read().splitlines(keepends=True)

    kept = [line for line in old if line.rstrip("\r\n") not in own or line.rstrip("\r\n") in lines]
    present = {line.rstrip("\r\n") for line in kept}
    missing = [f"{line}\n" for line in lines if line not in present]
    if missing and kept and not kept[-1].endswith("\n"):
        kept[-1] += "\n"
    new = kept + missing
    if new == old:
        return False
    if not new:
        os.unlink(path)
        return True
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write("".join(new))
    os.replace(temporary, path)
    return True
