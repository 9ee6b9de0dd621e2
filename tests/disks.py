"""A disk of a few MiB that is really full, for tests of root: nobody else may mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BLOCK = 4096


class SmallDisk:
    """A file system in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Write until there is no room for another page."""
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with suppress(OSError):
            while os.write(descriptor, bytes(BLOCK)):
                pass
        os.close(descriptor)

    def clear(self) -> None:
        """Make room again."""
        self._filler.unlink()


@contextmanager
def small_disk(path: Path, megabytes: int = 8) -> Iterator[SmallDisk]:
    """Mount one for the length of a block; where that is not allowed the test is skipped."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
