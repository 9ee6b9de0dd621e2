"""The files of a revision, written into a folder of their own.

They are read from git's objects: no working tree, index or worktree list changes, and neither hooks
nor filters run. So a file that git keeps elsewhere (LFS) is its pointer.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

from kubepy.cli.errors import CliError
from kubepy.cli.git.repository import NO_GIT, Repository
from kubepy.quoting import printable, quote

LINK_MODE = "120000"
FILE_MODES = ("100644", "100755", "100664")
FORBIDDEN = ("", ".", "..", ".git")  # parts of paths that no tree of git's own making has


class TreeEntry(NamedTuple):
    """A file or a symbolic link of a revision.

    :ivar path: from the root of the repository.
    """

    mode: str
    name: str
    path: str


def commit_of(repository: Repository, revision: str) -> str:
    """Return the hash of the commit that a revision names. Raises CliError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = repository.run(*words, expected=(0, 1, 128)).strip()
    if not revision or not commit:
        raise CliError(
            f"there is no revision {quote(revision)} in the repository {printable(repository.root)}"
        )
    return commit


def write_tree(repository: Repository, commit: str, folder: str) -> list[str]:
    """Write the files of a commit into a folder. Returns the paths of the links that are left out,
    for they lead out of the repository. Raises CliError, OSError.

    Links are made last, when all folders are there, so that nothing is written through one.
    """
    entries = list(entries_of(repository, commit))
    links: list[tuple[str, str]] = []
    for entry, content in contents_of(repository, entries):
        path = os.path.join(folder, entry.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if entry.mode == LINK_MODE:
            links.append((path, os.fsdecode(content)))
            continue
        with open(path, "wb") as file:
            file.write(content)
    for path, target in links:
        os.symlink(target, path)
    return removed_links(folder, [path for path, _ in links])


def removed_links(folder: str, links: Sequence[str]) -> list[str]:
    """Remove the links that lead out of a folder; return their paths in it."""
    root = os.path.realpath(folder)
    leading_out = [
        path for path in links if os.path.commonpath((root, os.path.realpath(path))) != root
    ]
    for path in leading_out:
        os.unlink(path)
    return [os.path.relpath(path, folder) for path in leading_out]


def entries_of(repository: Repository, commit: str) -> Iterator[TreeEntry]:
    """Yield the files and links of a commit; submodules are left out. Raises CliError."""
    listing = repository.run("ls-tree", "-r", "-z", "--full-tree", commit)
    for line in listing.split("\0"):
        about, _, path = line.partition("\t")
        if not path:
            continue
        mode, _, name = about.split(" ")
        if any(part in FORBIDDEN for part in path.split("/")):
            raise CliError(f"{commit[:10]} has a file with the path {quote(path)}")
        if mode == LINK_MODE or mode in FILE_MODES:
            yield TreeEntry(mode, name, path)


def contents_of(
    repository: Repository, entries: Sequence[TreeEntry]
) -> Iterator[tuple[TreeEntry, bytes]]:
    """Yield the content of each file. Raises CliError."""
    command = ["git", "-C", repository.folder, "cat-file", "--batch"]
    with tempfile.TemporaryFile() as names:
        names.write("".join(f"{entry.name}\n" for entry in entries).encode())
        names.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=names,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except FileNotFoundError:
            raise CliError(NO_GIT) from None
        with process:
            assert process.stdout is not None
            for entry in entries:
                yield entry, read_content(process.stdout, entry)


def read_content(stream: IO[bytes], entry: TreeEntry) -> bytes:
    """Read the content of the next file that ``git cat-file --batch`` prints. Raises CliError."""
    head = stream.readline().split()
    if len(head) != 3:
        raise CliError(f"git cannot read {quote(entry.path)} ({entry.name})")
    size = int(head[2])
    content = stream.read(size)
    if len(content) != size or stream.read(1) != b"\n":
        raise CliError(f"git cannot read {quote(entry.path)} ({entry.name})")
    return content
