"""Files with a formatting of their own: it survives commits and recovery, and the index knows of
it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.storage import FolderError
from kubepy.storage.folder.files import MAX_SIZE
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump

from .conftest import config_map, create, file_of, key
from .test_faults import run_killed

WRITTEN = """\
# of the door
kind: ConfigMap
apiVersion: v1
metadata: {name: paint}  # no more
data:
  a: '1'  # colour
"""
MERGED = WRITTEN.replace("{name: paint}", "{name: paint, namespace: default}")


def update(folder: Path, value: str) -> None:
    store = FolderStore(folder)
    with store.transaction() as transaction:
        transaction.update(key("paint"), config_map("paint", value))
    store.close()


@pytest.fixture
def paint(folder: Path, store: FolderStore) -> Path:
    """A file that was written by hand, and that the index knows."""
    path = file_of(folder, "paint")
    path.parent.mkdir(parents=True)
    path.write_text(WRITTEN)
    assert store.get(key("paint")) is not None
    return path


def test_edited_file_written_again_keeps_its_form(paint: Path, folder: Path) -> None:
    for value in ("2", "3"):
        update(folder, value)
        assert paint.read_text() == MERGED.replace("'1'", f"'{value}'")


@pytest.mark.parametrize("after", range(5, 60, 3))
def test_edited_file_keeps_its_form_when_writer_is_killed(
    paint: Path, folder: Path, tmp_path: Path, after: int
) -> None:
    update(folder, "0")
    run_killed(after, lambda: update(folder, "2"))
    store = FolderStore(folder)
    create(store, config_map("next"))  # the next holder of the lock finishes the commit
    obj = store.get(key("paint"))
    assert obj is not None
    assert paint.read_text() == MERGED.replace("'1'", f"'{obj['data']['a']}'")
    store.close()


def test_canonical_file_after_rebuild_is_canonical(
    folder: Path, open_store: Callable[..., FolderStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_store()
    create(first, config_map("paint"))
    first.close()
    shutil.rmtree(folder / ".kubepy")
    update(folder, "2")
    monkeypatch.setattr("kubepy.storage.folder.commit_files.to_edited_file", None)
    update(folder, "3")
    assert file_of(folder, "paint").read_text() == dump(config_map("paint", "3"))
    with sqlite3.connect(folder / ".kubepy" / "index.db") as connection:
        assert connection.execute("SELECT canonical FROM objects").fetchall() == [(1,)]


def test_touched_file_stays_canonical(folder: Path, store: FolderStore) -> None:
    create(store, config_map("paint"))
    file_of(folder, "paint").touch()
    update(folder, "2")
    assert file_of(folder, "paint").read_text() == dump(config_map("paint", "2"))


def test_object_created_again_is_written_in_canonical_form(
    paint: Path, folder: Path, store: FolderStore
) -> None:
    with store.transaction() as transaction:
        transaction.delete(key("paint"))
    create(store, config_map("paint"))
    assert paint.read_text() == dump(config_map("paint"))


def test_edited_file_that_would_grow_too_large_is_refused(
    paint: Path, folder: Path, store: FolderStore
) -> None:
    comment = f"# {'x' * (MAX_SIZE - 1000)}\n"
    paint.write_text(comment + WRITTEN)
    with pytest.raises(FolderError, match="would be larger than 3 MiB"):
        update(folder, "x" * 2000)
    assert paint.read_text() == comment + WRITTEN
