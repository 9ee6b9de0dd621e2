"""``fsck --repair``: what can be put right in a folder without guessing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kubepy.storage.folder import index
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.check import check_index, check_leftovers, check_managers, check_modes, damages
from kubepy.storage.folder.commit_files import settle_managers, stage_managers
from kubepy.storage.folder.database import Row
from kubepy.storage.folder.paths import path_of


def repair(access: Access) -> Iterator[str]:
    """Put right what can be, and say what was done, a line each. For the holder of the lock, with all edits taken in.

    An index that disagrees with itself or with the files is made anew from them; temporary files are removed; files of
    managers are written again from the index, or removed where they belong to no object; Secrets become private. Raises
    FolderError, OSError.
    """
    folder = access.folder
    if any(damages(access.database())) or check_index(access, access.database().rows()):
        access.rebuild()
        yield f"{index.OWN}/{index.INDEX}: rebuilt from the files"
    for path in list(check_leftovers(folder)):
        folder.remove(path)
        yield f"{path}: was left over, removed"
    rows = access.database().rows()
    rows_by_path = {path_of(row.key): row for row in rows if row.json is not None}
    for path, _ in list(check_managers(folder, rows)):
        yield _repair_managers(access, path, rows_by_path)
    for path, _ in list(check_modes(folder, rows)):
        os.chmod(folder.absolute(path), 0o600)
        yield f"{path}: made private (mode 0600)"
    access.take_in()  # the stamps of what was put right


def _repair_managers(access: Access, path: str, rows_by_path: dict[str, Row]) -> str:
    row = rows_by_path.get(path.replace("/.managed/", "/"))
    if access.folder.is_directory(path):
        return f"{path}: is a folder, left as it is: remove it"
    if row is None:
        access.folder.remove(path)
        return f"{path}: belongs to no object, removed"
    settle_managers(access.folder, row, stage_managers(access.folder, row, 0, sync=True))
    return f"{path}: made anew from the index"
