"""Running git, and the attributes and ignore files that it reads in a state folder."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Sequence

from kubepy.cli.errors import CliError

LOCK_SECONDS = 60.0  # how old a lock may be before it counts as left behind by a git that was killed
NO_GIT = "git is not installed, or not on the PATH"


class Repository:
    """The repository that a state folder lies in. Raises CliError where there is none, or no git."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.root = self.run("rev-parse", "--show-toplevel").rstrip("\n")
        if not self.root:
            raise CliError(f'"{folder}" is not in the working tree of a git repository')

    def run(self, *words: str, expected: Collection[int] = (0,), stdin: str = "") -> str:
        """The output of a git command run in the state folder. Raises CliError in git's words."""
        done = run_git(["-C", self.folder, *words], stdin)
        if done.returncode not in expected:
            raise CliError(_complaint(done.stderr) or f"git {words[0]} failed with exit status {done.returncode}")
        return os.fsdecode(done.stdout)

    def configuration_file(self) -> str:
        """The path of the repository's own configuration, which all of its linked worktrees share."""
        common = self.run("rev-parse", "--path-format=absolute", "--git-common-dir").rstrip("\n")
        return os.path.join(common, "config")

    def setting(self, name: str) -> str | None:
        """A value of the repository's own configuration."""
        value = self.run("config", "--local", "--get", name, expected=(0, 1))
        return value.removesuffix("\n") if value else None

    def set(self, name: str, value: str) -> None:
        self.run("config", "--local", name, value)

    def unset(self, name: str) -> None:
        """Remove a setting; one that is not there is as good."""
        self.run("config", "--local", "--unset-all", name, expected=(0, 5))


def is_git_at_work(folder: str) -> bool:
    """Tell whether git is changing files of the working tree that a folder lies in: it holds the lock of its index."""
    directory = _git_directory(os.path.realpath(folder))
    if directory is None:
        return False
    try:
        return time.time() - os.stat(os.path.join(directory, "index.lock")).st_mtime < LOCK_SECONDS
    except OSError:
        return False


def _git_directory(folder: str) -> str | None:
    """The directory with the index of the working tree around a folder, without running git; None: none."""
    path = os.path.join(folder, ".git")
    if not os.path.lexists(path):
        parent = os.path.dirname(folder)
        return _git_directory(parent) if parent != folder else None
    if os.path.isdir(path):
        return path
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # of a linked worktree, or a submodule
            return os.path.join(folder, file.read().removeprefix("gitdir:").strip())
    except OSError:
        return None


def run_git(words: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    """Raises CliError when there is no git."""
    try:
        return subprocess.run(["git", *words], input=os.fsencode(stdin), capture_output=True, check=False)
    except FileNotFoundError:
        raise CliError(NO_GIT) from None


def _complaint(stderr: bytes) -> str:
    lines = os.fsdecode(stderr).splitlines()
    return lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else ""


def write_lines(path: str, wanted: Sequence[str], own: Collection[str]) -> bool:
    """Bring a file of lines to hold ``wanted`` and no others of ``own``, which are lines that this program writes.

    The lines of others stay as they are. Returns whether the file changed; one that would be empty is removed.
    """
    old = _read_lines(path)
    kept = [line for line in old if line.rstrip("\r\n") not in own or line.rstrip("\r\n") in wanted]
    present = {line.rstrip("\r\n") for line in kept}
    missing = [f"{line}\n" for line in wanted if line not in present]
    if missing and kept and not kept[-1].endswith("\n"):
        kept[-1] += "\n"
    new = kept + missing
    if new != old:
        _write(path, "".join(new))
    return new != old


def _read_lines(path: str) -> list[str]:
    if os.path.islink(path):
        raise CliError(f"{path} is a symbolic link, which git does not follow")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read().splitlines(keepends=True)
    except FileNotFoundError:
        return []


def _write(path: str, text: str) -> None:
    if not text:
        os.unlink(path)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
    os.replace(temporary, path)
