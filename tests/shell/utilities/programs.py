"""One program, run by the model and by the machine, over the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kubepy.shell.files import FileSystem, Tree
from kubepy.shell.surroundings import Isolated, Surroundings
from kubepy.shell.utilities import find_utility
from kubepy.shell.utility import Execution

NOW = datetime(2026, 3, 5, 9, 7, 3, 42, tzinfo=UTC)
FOLDER = "/task"
Files = Mapping[str, bytes | str]


class Outcome(NamedTuple):
    """What a program left behind."""

    status: int
    out: bytes
    err: bytes = b""
    files: Mapping[str, bytes] = {}


def file_system(files: Files) -> FileSystem:
    """Return a file system with these files in the working folder; a path that ends in / is one."""
    texts = {f"{FOLDER}/{path}": text for path, text in files.items() if path[-1] != "/"}
    tree = Tree.of(texts, modified=NOW)
    box = FileSystem(tree)
    box.make_dir(FOLDER, parents=True, now=NOW)
    for path in files:
        if path.endswith("/"):
            box.make_dir(f"{FOLDER}/{path.rstrip('/')}", parents=True, now=NOW)
    return box


def invocation(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    files: Files | FileSystem | None = None,
    env: Mapping[str, str] | None = None,
    surroundings: Surroundings | None = None,
) -> Execution:
    """Return a call in the working folder."""
    box = files if isinstance(files, FileSystem) else file_system(files or {})
    return Execution(
        name=argv[0],
        args=list(argv[1:]),
        stdin=stdin,
        env=dict(env or {}),
        cwd=FOLDER,
        files=box,
        now=NOW,
        hostname="web-0",
        surroundings=surroundings or Isolated(),
    )


def run_model(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    files: Files | FileSystem | None = None,
    env: Mapping[str, str] | None = None,
    surroundings: Surroundings | None = None,
) -> Outcome:
    """Run a program of the model."""
    call = invocation(argv, stdin=stdin, files=files, env=env, surroundings=surroundings)
    utility = find_utility(argv[0])
    assert utility is not None
    status = utility(call)
    return Outcome(status, bytes(call.stdout), bytes(call.stderr), contents(call.files))


def contents(box: FileSystem, folder: str = FOLDER) -> dict[str, bytes]:
    """Return the files below a folder by their paths, directories with a / at the end."""
    found: dict[str, bytes] = {}
    for name in box.list(folder):
        path = f"{folder}/{name}"
        relative = path.removeprefix(f"{FOLDER}/")
        if box.is_link(path):
            found[relative] = b"-> " + box.stat(path, follow=False).target.encode()
        elif box.is_dir(path):
            found[f"{relative}/"] = b""
            found |= contents(box, path)
        else:
            found[relative] = box.read(path)
    return found


@cache
def is_compared(program: str) -> bool:
    """Tell whether a machine's program is the one that the model speaks like."""
    versions = {
        "awk": (["awk", "-W", "version"], b"mawk 1.3.4"),
        "curl": (["curl", "-V"], b"curl 7.88"),
    }
    command, expected = versions.get(program, (["cat", "--version"], b"GNU coreutils"))
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return expected in done.stdout + done.stderr


def run_real(
    argv: Sequence[str], folder: Path, *, stdin: bytes = b"", files: Files | None = None
) -> Outcome:
    """Run the machine's program in an empty folder."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"no {argv[0]} on this machine")
    if not is_compared(argv[0]):
        pytest.skip(f"another {argv[0]} than the one that the model speaks like")
    for path, content in (files or {}).items():
        if path.endswith("/"):
            (folder / path).mkdir(parents=True, exist_ok=True)
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        (folder / path).write_bytes(data)
    done = subprocess.run(
        list(argv),
        input=stdin,
        capture_output=True,
        cwd=folder,
        env={"LC_ALL": "C", "TZ": "UTC", "PATH": os.environ["PATH"]},
        timeout=20,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr, real_contents(folder))


def real_contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder of the machine, as :func:`contents` does."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        relative = str(path.relative_to(folder))
        if path.is_symlink():
            found[relative] = b"-> " + os.readlink(path).encode()
        elif path.is_dir():
            found[f"{relative}/"] = b""
        else:
            found[relative] = path.read_bytes()
    return found
