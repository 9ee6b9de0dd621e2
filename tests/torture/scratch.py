"""Scratch folders, and fast copies of a state folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

IN_MEMORY = "/dev/shm"
OWN = ".kubepy"


class Item(NamedTuple):
    """A file (``data`` None: a folder) of an image."""

    data: bytes | None
    mode: int
    mtime_ns: int


Image = dict[str, Item]


def scratch_root() -> str:
    """Return a file system in memory if there is one; it only saves time."""
    return (
        IN_MEMORY
        if os.path.isdir(IN_MEMORY) and os.access(IN_MEMORY, os.W_OK)
        else tempfile.gettempdir()
    )


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """Create a folder of this process, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix=f"kubepy-torture-{name}-", dir=scratch_root()))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def capture(folder: Path, *, own: bool = True) -> Image:
    """Return the contents of a folder; ``own``: including ``.kubepy``."""
    image: Image = {}
    if not folder.is_dir():
        return image
    for directory, folders, files in os.walk(folder):
        if not own and OWN in folders:
            folders.remove(OWN)
        place = os.path.relpath(directory, folder)
        for name in (*folders, *files):
            path = os.path.join(directory, name)
            stat = os.lstat(path)
            data = None if name in folders else Path(path).read_bytes()
            image[os.path.normpath(f"{place}/{name}")] = Item(
                data, stat.st_mode & 0o7777, stat.st_mtime_ns
            )
    return image


def restore(image: Image, folder: Path) -> None:
    """Make a folder of an image; parents come before their contents."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, item in sorted(image.items()):
        target = f"{folder}/{path}"
        if item.data is None:
            os.mkdir(target)
        else:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, item.data)
            os.close(descriptor)
            os.chmod(target, item.mode)
            os.utime(target, ns=(item.mtime_ns, item.mtime_ns))


def contents(image: Image) -> tuple[tuple[str, bytes | None], ...]:
    """Return the contents of the files, to be compared."""
    return tuple(sorted((path, item.data) for path, item in image.items() if item.data is not None))
