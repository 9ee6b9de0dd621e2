"""Temporary files and folders with a number in their names (Go: ``os.CreateTemp``, ``os.MkdirTemp``)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator


def create_folder(prefix: str) -> str:
    """A new folder that only this user can read; its path. Raises OSError."""
    for path in _paths(prefix, ""):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def create_file(prefix: str, suffix: str, text: str) -> str:
    """A new file that only this user can read; its path. Raises OSError."""
    for path in _paths(prefix, suffix):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return path
    raise AssertionError("unreachable")


def _paths(prefix: str, suffix: str) -> Iterator[str]:
    """Names to try: the process and a counter, since nothing here is to be left to chance."""
    number = os.getpid() * 1000
    while True:
        yield os.path.join(tempfile.gettempdir(), f"{prefix}{number}{suffix}")
        number += 1
