"""Copies of state folders that count as made here."""

import shutil
from pathlib import Path

from kubepy.storage.folder import origin


def copy_with_index(source: Path, target: Path) -> Path:
    """Copy a state folder, or one with a ``state`` in it, with its ``.kubepy/``, and trust the
    copy."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    for folder in (target, target / "state"):
        if (folder / origin.OWN).exists():
            origin.trust(str(folder))
    return target
