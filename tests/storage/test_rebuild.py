"""``.kubepy/`` may be removed, damaged or unwritable at any time: the files are the truth."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubepy.storage import CompactedError, FolderError, Key, NoClusterError
from kubepy.storage.errors import RemovedIndexError
from kubepy.storage.folder.database import Row, checksum
from kubepy.storage.folder.outside_edits import OutsideEdits
from kubepy.storage.folder.scan import Extents
from kubepy.storage.folder.store import FolderStore
from tests.stores import changes, resources

from .conftest import config_map, create, file_of, key, names

APPLIED = [
    {"manager": "kubectl", "operation": "Apply"},
    {"manager": "other", "operation": "Update"},
]


def test_removed_index_loses_no_object(
    store: FolderStore, folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    create(store, *(config_map(f"n{number}") for number in range(5)))
    create(store, {"kind": "Node", "metadata": {"name": "n"}}, resource="nodes")
    store.close()
    shutil.rmtree(folder / ".kubepy")
    again = open_store()
    assert names(again.list("configmaps").objects) == [f"n{number}" for number in range(5)]
    assert names(again.list("nodes").objects) == ["n"]
    assert again.revision > 6
    assert (
        len({obj["metadata"]["resourceVersion"] for obj in again.list("configmaps").objects}) == 5
    )
    with pytest.raises(CompactedError):
        changes(again, 0)


def test_removed_index_is_made_anew_by_open_store(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    shutil.rmtree(folder / ".kubepy")
    assert names(store.list("configmaps").objects) == ["a"]
    shutil.rmtree(folder / ".kubepy")
    create(store, config_map("b"))
    assert names(store.list("configmaps").objects) == ["a", "b"]


def test_index_without_its_rows_shows_versions_that_nothing_matches(
    store: FolderStore,
    folder: Path,
    open_store: Callable[..., FolderStore],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create(store, config_map("a"))
    other = open_store()
    shutil.rmtree(folder / ".kubepy")
    versions: list[str] = []
    record = OutsideEdits.record

    def record_after_other_reads(edits: OutsideEdits, extents: Extents, *, same_boot: bool) -> bool:
        monkeypatch.undo()
        shown = other.get(key("a"))
        assert shown is not None
        versions.extend((shown["metadata"]["resourceVersion"], str(other.revision)))
        return record(edits, extents, same_boot=same_boot)

    monkeypatch.setattr(OutsideEdits, "record", record_after_other_reads)
    [recorded] = store.list("configmaps").objects
    assert len(versions) == 2
    assert all(
        0 < int(version) < int(recorded["metadata"]["resourceVersion"]) for version in versions
    )
    with pytest.raises(CompactedError):  # its reader lists again
        changes(store, int(versions[1]))


def test_revisions_grow_over_indexes_made_at_one_moment(
    folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    store = open_store(now=lambda: 1e9)
    create(store, *(config_map(f"n{number}") for number in range(5)))
    newest = 0
    for _ in range(3):
        shutil.rmtree(folder / ".kubepy")
        versions = [
            int(obj["metadata"]["resourceVersion"]) for obj in store.list("configmaps").objects
        ]
        assert min(versions) > newest
        newest = max(versions)


def test_transaction_whose_lock_is_removed_commits_nothing(
    store: FolderStore, folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    create(store, config_map("a"))
    with pytest.raises(RemovedIndexError), store.transaction() as transaction:  # noqa: PT012
        transaction.create(key("b"), config_map("b"))
        (folder / ".kubepy" / "lock").unlink()
        create(open_store(), config_map("c"))
    assert names(store.list("configmaps").objects) == ["a", "c"]


def test_transaction_whose_index_is_removed_commits_nothing(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    with pytest.raises(FolderError, match="was removed"), store.transaction() as transaction:  # noqa: PT012
        transaction.create(key("b"), config_map("b"))
        shutil.rmtree(folder / ".kubepy")
    assert names(store.list("configmaps").objects) == ["a"]


def test_deleted_folder_of_open_store_is_named_in_error(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    shutil.rmtree(folder)
    with pytest.raises(NoClusterError, match=f"{folder} is not there"):
        store.get(key("a"))
    with pytest.raises(NoClusterError, match=f"{folder} is not there"):
        create(store, config_map("b"))
    assert not folder.exists()


def zero_a_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(3 * 4096))


def break_a_row(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE objects SET json = '{'")
    connection.close()


def be_of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def be_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def set_counters(path: Path, value: int) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE counters SET value = ?", (value,))
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"no database at all" * 100),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a page lost": zero_a_page,
    "a row broken": break_a_row,
    "another version": be_of_another_version,
    "a counter at its end": lambda path: set_counters(path, 2**63 - 1),
    "a counter that is negative": lambda path: set_counters(path, -5),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("writes_first", [False, True])
def test_damaged_index_is_made_anew(
    folder: Path,
    open_store: Callable[..., FolderStore],
    damage: Callable[[Path], object],
    writes_first: bool,
) -> None:
    store = open_store()
    create(store, config_map("a"))
    store.close()
    damage(folder / ".kubepy/index.db")
    again = open_store()
    if writes_first:
        write_until_made_anew(again)
    assert again.get(key("a"))["data"] == {"a": "1"}  # type: ignore[index]
    assert names(again.list("configmaps").objects) == ["a", "b"][: 1 + writes_first]


def test_stream_reads_file_where_row_holds_no_object(
    folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    store = open_store()
    create(store, config_map("a"), config_map("b"))
    store.close()
    with sqlite3.connect(folder / ".kubepy/index.db") as connection:
        broken = Row(*key("b"), 2, "[]")
        connection.execute(
            "UPDATE objects SET json = '[]', checksum = ? WHERE name = 'b'", (checksum(broken),)
        )
    connection.close()
    objects = open_store().stream("configmaps").objects
    assert [obj["data"] for obj in objects] == [{"a": "1"}, {"a": "1"}]


def write_until_made_anew(store: FolderStore) -> None:
    """Create an object; a transaction that reports the damaged index is run once more."""

    def write() -> None:
        with store.transaction() as transaction:
            transaction.get(key("a"))
            transaction.create(key("b"), config_map("b"))

    try:
        write()
    except FolderError as error:
        if "was damaged" not in str(error):
            raise
        write()


def test_folder_in_place_of_index_is_one_clear_error(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    store.close()
    be_a_folder(folder / ".kubepy/index.db")
    assert names(store.list("configmaps").objects) == ["a"]
    with pytest.raises(FolderError, match=r"index\.db: cannot be made"):
        create(store, config_map("b"))
    (folder / ".kubepy/index.db").rmdir()


def test_link_in_place_of_own_folder_is_put_aside(
    store: FolderStore, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(folder / ".kubepy")
    (folder / ".kubepy").symlink_to(tmp_path / "elsewhere")
    assert store.list("configmaps").objects == []
    create(store, config_map("a"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (folder / ".kubepy.untrusted").is_symlink()
    assert not (folder / ".kubepy").is_symlink()


def test_clone_has_managers_of_server_side_apply(
    store: FolderStore, folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    managers = folder / "namespaces/default/configmaps/.managed"
    create(
        store,
        config_map("a", uid="1", managedFields=APPLIED),
        config_map("b", managedFields=APPLIED[1:]),
    )
    assert [path.name for path in managers.iterdir()] == ["a.yaml"]
    store.close()
    shutil.rmtree(folder / ".kubepy")
    again = open_store()
    assert again.get(key("a"))["metadata"]["managedFields"] == APPLIED  # type: ignore[index]
    assert "managedFields" not in again.get(key("b"))["metadata"]  # type: ignore[index]
    with again.transaction() as transaction:
        transaction.delete(key("a"))
    assert not managers.exists()


@contextmanager
def as_nobody() -> Iterator[None]:
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A cluster that everybody can read."""
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        FolderStore.initialize(Path(base) / "state", {})
        yield Path(base) / "state"


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become somebody who must not write here"
)
@pytest.mark.parametrize("has_index", [False, True])
def test_read_only_folder_can_be_read(
    public_folder: Path, has_index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEPY_TRUST", "1")  # the index is another user's
    store = FolderStore(public_folder)
    create(store, config_map("a"), config_map("b"))
    store.close()
    if has_index:  # an index that the reader must not write
        make_read_only_of_nobody(public_folder / ".kubepy")
    else:
        shutil.rmtree(public_folder / ".kubepy")
    before = contents(public_folder / ".kubepy")
    with as_nobody():
        store = FolderStore(public_folder)
        assert names(store.list("configmaps").objects) == ["a", "b"]
        assert store.get(key("a"))["data"] == {"a": "1"}  # type: ignore[index]
        assert (store.get(key("a")) == config_map("a", resourceVersion="1")) == has_index
        assert resources(store) == ["configmaps"]
        assert (store.problems(), store.check()) == ([], [])
        with pytest.raises(FolderError, match="Permission denied"):
            create(store, config_map("c"))
        os.seteuid(0)
        file_of(public_folder, "b").unlink()
        os.seteuid(65534)
        assert names(store.list("configmaps").objects) == ["a"]
        os.seteuid(0)
        file_of(public_folder, "a").chmod(0)
        os.seteuid(65534)
        problems = FolderStore(public_folder).problems()
        assert [problem.reason for problem in problems] == ["cannot be read: Permission denied"]
        store.close()
    assert contents(public_folder / ".kubepy") == before


def make_read_only_of_nobody(own: Path) -> None:
    for path in (*own.iterdir(), own):
        os.chown(path, 65534, 65534)
        path.chmod(path.stat().st_mode & 0o500)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_other_user_reads_cluster_without_secrets(public_folder: Path) -> None:
    store = FolderStore(public_folder)
    create(store, config_map("a"))
    create(store, config_map("password"), config_map("old"), resource="secrets")
    with store.transaction() as transaction:
        transaction.delete(key("old", resource="secrets"))
    store.close()
    with as_nobody():
        with pytest.raises(PermissionError):
            (public_folder / ".kubepy/index.db").read_bytes()
        store = FolderStore(public_folder)
        assert names(store.list("configmaps").objects) == ["a"]
        secrets = store.list("secrets")
        assert (secrets.objects, [problem.reason for problem in secrets.problems]) == (
            [],
            ["cannot be read: Permission denied"],
        )
        store.close()


def test_public_own_folder_becomes_private(store: FolderStore, folder: Path) -> None:
    (folder / ".kubepy").chmod(0o755)
    create(store, config_map("a"))
    assert stat.S_IMODE((folder / ".kubepy").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / ".kubepy/index.db").stat().st_mode) == 0o600


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*")}


def test_edit_stamped_by_clock_ahead_is_seen(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    path = file_of(folder, "a")
    path.write_text(path.read_text().replace('"1"', '"2"'))
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert store.get(key("a"))["data"] == {"a": "2"}  # type: ignore[index]
    path.write_text(path.read_text().replace('"2"', '"3"'))
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert store.get(Key("configmaps", "default", "a"))["data"] == {"a": "3"}  # type: ignore[index]
