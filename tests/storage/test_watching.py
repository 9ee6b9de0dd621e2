"""Watching the folder: after any change the next look sees all of it, and looks at no more than
what was named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from kubepy.storage.folder import outside_edits, reader, watching
from kubepy.storage.folder.scan import EVERYTHING, Extents
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.storage.conftest import config_map, create, file_of, key
from tests.storage.test_sums import MANAGERS, differing
from tests.stores import changes, transaction_of

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux names the files that change"
)
A = key("a")


@pytest.fixture
def watched(store: FolderStore) -> Iterator[FolderStore]:
    """A store with some objects that has looked at everything and watches."""
    create(
        store,
        config_map("a"),
        config_map("b", managedFields=MANAGERS),
        config_map("c", namespace="other"),
    )
    create(store, {"metadata": {"name": "node-1"}}, resource="nodes")
    store.watch_files()
    assert store._access.watch is not None
    if not store._access.watch.is_sure:
        pytest.skip("the file system of temporary files cannot be watched")
    changes(store, store.revision)
    return store


@pytest.fixture
def looks(watched: FolderStore, monkeypatch: pytest.MonkeyPatch) -> list[Extents]:
    """The extents that are listed."""
    listed: list[Extents] = []

    def note(real: Callable[..., object]) -> Callable[..., object]:
        return lambda folder, extents: (listed.append(extents), real(folder, extents))[1]

    for module in (reader, outside_edits):
        monkeypatch.setattr(module, "scan_extents", note(module.scan_extents))
    return listed


def changed(store: FolderStore, since: int) -> set[str]:
    return {change.key.name for change in changes(store, since)}


def replace(path: Path, value: str) -> None:
    path.with_name(".new").write_text(
        path.read_text().replace('"1"', f'"{value}"').replace("'1'", f"'{value}'")
    )
    path.with_name(".new").rename(path)


def overwrite(path: Path, value: str) -> None:
    """Edit in place, with the same size, and set the time back."""
    status = path.stat()
    with path.open("r+") as file:
        text = file.read().replace('"1"', f'"{value}"')
        file.seek(0)
        file.write(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_nothing_is_looked_at_where_nothing_has_happened(
    watched: FolderStore, looks: list[Extents]
) -> None:
    for _ in range(3):
        assert changes(watched, watched.revision) == []
        with transaction_of(watched, refresh=True):
            pass
    watched.problems()
    assert looks == []


def test_what_is_named_is_looked_at(
    folder: Path, watched: FolderStore, looks: list[Extents]
) -> None:
    since = watched.revision
    overwrite(file_of(folder, "a"), "2")
    assert changed(watched, since) == {"a"}
    assert {extent.key for extents in looks for extent in extents} == {A}
    replace(file_of(folder, "c", "other"), "3")
    with transaction_of(watched, refresh=True):
        assert [change.key.name for change in watched.changes(since).changes] == ["a", "c"]
    assert EVERYTHING not in looks
    assert (watched.get(A) or {})["data"] == {"a": "2"}


def test_own_writes_are_looked_at_alone(watched: FolderStore, looks: list[Extents]) -> None:
    create(watched, config_map("d"), config_map("e", managedFields=MANAGERS, namespace="new"))
    since = watched.revision
    assert changes(watched, since) == []
    assert EVERYTHING not in looks
    assert changes(watched, since) == []
    assert differing(watched, with_sums=False) == set()


def add_namespace(folder: Path) -> None:
    for name in ("x", "y"):
        (folder / "namespaces/fresh/configmaps").mkdir(parents=True, exist_ok=True)
        file_of(folder, name, "fresh").write_text(dump(config_map(name, namespace="fresh")))


def remove_place(folder: Path) -> None:
    shutil.rmtree(folder / "namespaces/default/configmaps")


def move_place(folder: Path) -> None:
    (folder / "namespaces/other").rename(folder / "namespaces/moved")
    edited = folder / "namespaces/moved/configmaps/c.yaml"
    edited.write_text(edited.read_text().replace("namespace: other", "namespace: moved"))


def replace_folder(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("copy"))
    folder.rename(folder.with_name("old"))
    folder.with_name("copy").rename(folder)
    (folder.with_name("old") / "namespaces/default/configmaps/b.yaml").unlink()
    file_of(folder, "a").unlink()


def remove_index(folder: Path) -> None:
    shutil.rmtree(folder / ".kubepy")
    file_of(folder, "a").unlink()


def edit_managers(folder: Path) -> None:
    path = folder / "namespaces/default/configmaps/.managed/b.yaml"
    path.write_text(path.read_text().replace("manager: me", "manager: us"))


def link_file(folder: Path) -> None:
    file_of(folder, "a").unlink()
    file_of(folder, "a").symlink_to("b.yaml")


def link_place(folder: Path) -> None:
    place = folder / "namespaces/other/configmaps"
    shutil.rmtree(place)
    place.symlink_to("../default/configmaps")


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ("git", "-c", "user.name=me", "-c", "user.email=me@here", *words),
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def check_out(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "cluster", "namespaces")
    git(folder, "commit", "-qm", "first")
    add_namespace(folder)
    file_of(folder, "a").unlink()
    replace(file_of(folder, "c", "other"), "2")
    git(folder, "add", "-A", "cluster", "namespaces")
    git(folder, "commit", "-qm", "second")
    git(folder, "checkout", "-q", "HEAD~1")
    git(folder, "checkout", "-q", "-")


EDITS = (
    add_namespace,
    remove_place,
    move_place,
    replace_folder,
    remove_index,
    edit_managers,
    link_file,
    link_place,
    check_out,
)


@pytest.mark.parametrize("edit", EDITS)
def test_a_look_sees_every_edit(
    folder: Path, watched: FolderStore, edit: Callable[[Path], None]
) -> None:
    edit(folder)
    watched.problems()
    fresh = FolderStore(folder)
    assert {obj["metadata"]["name"]: obj for obj in watched.list("configmaps").objects} == {
        obj["metadata"]["name"]: obj for obj in fresh.list("configmaps").objects
    }
    assert (
        differing(watched, with_sums=False) - {problem.path for problem in fresh.problems()}
        == set()
    )
    assert watched.problems() == fresh.problems()
    fresh.close()
    if edit is link_place:  # as the fixture wants it
        (folder / "namespaces/other/configmaps").unlink()
    if edit is link_file:
        file_of(folder, "a").unlink()


def test_an_overflow_is_a_look_at_everything(
    folder: Path, watched: FolderStore, looks: list[Extents], monkeypatch: pytest.MonkeyPatch
) -> None:
    since, watch = watched.revision, watched._access.watch
    assert watch is not None
    overwrite(file_of(folder, "a"), "2")
    kernel = watch._kernel
    assert kernel is not None
    kernel.read(timeout=0)  # what it says is lost

    class Overflow:
        wd, mask, cookie, name = -1, watching.Q_OVERFLOW, 0, ""

    monkeypatch.setattr(kernel, "read", lambda timeout: [Overflow])
    assert changed(watched, since) == {"a"}
    assert EVERYTHING in looks
    overwrite(file_of(folder, "b"), "2")
    looks.clear()
    assert changed(watched, since) == {"a", "b"}
    assert EVERYTHING not in looks


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ImportError("no library")]
)
def test_without_watches_everything_is_looked_at(
    folder: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(root: str) -> bool:
        raise error

    monkeypatch.setattr(watching, "is_local", refuse)
    create(store, config_map("a"))
    store.watch_files()
    since = store.revision
    for value in "234":
        file_of(folder, "a").write_text(dump(config_map("a", value)))
        assert changed(store, since) == {"a"}
        assert (store.get(A) or {})["data"] == {"a": value}


def test_edits_that_cannot_be_recorded_are_looked_at_again(
    folder: Path, watched: FolderStore
) -> None:
    since = watched.revision
    other = FolderStore(folder)
    with other.transaction() as transaction:
        transaction.create(key("d"), config_map("d"))
        overwrite(file_of(folder, "a"), "2")
        assert changed(watched, since) == set()
    other.close()
    assert changed(watched, since) == {"a", "d"}


def test_commits_of_others_are_seen(
    folder: Path, watched: FolderStore, looks: list[Extents]
) -> None:
    since = watched.revision
    other = FolderStore(folder)
    create(other, config_map("d"))
    other.close()
    assert changed(watched, since) == {"d"}
    assert EVERYTHING not in looks


def test_unseen_changes_are_found_after_a_while(
    folder: Path, tmp_path: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name comes for a file that is written by another of its names."""
    create(store, config_map("a"))
    os.link(file_of(folder, "a"), tmp_path / "another")
    monkeypatch.setattr(watching, "WHOLE_SECONDS", 0.0)
    monkeypatch.setattr(watching, "WHOLE_COST_RATIO", 0.0)
    store.watch_files()
    since = store.revision
    changes(store, since)
    overwrite(tmp_path / "another", "2")
    assert changed(store, since) == {"a"}


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(folder: Path, watched: FolderStore, seed: int) -> None:
    """Whatever happens between two looks, a look leaves no file that differs from its row."""
    random = Random(seed)
    other = FolderStore(folder)
    for step in range(25):
        for _ in range(random.randrange(3)):
            name, namespace = random.choice("abcd"), random.choice(("default", "other", "third"))
            path = file_of(folder, name, namespace)
            choice = random.randrange(5)
            if choice == 0 and path.exists():
                path.unlink()
            elif choice == 1 and path.exists():
                overwrite(path, str(step % 10))
            elif choice == 2:
                shutil.rmtree(path.parent, ignore_errors=True)
            elif choice == 3:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(dump(config_map(name, str(step), namespace)))
            else:
                writer = random.choice((watched, other))
                with transaction_of(writer, refresh=random.random() < 0.5) as transaction:
                    if transaction.get(key(name, namespace)) is None:
                        transaction.create(
                            key(name, namespace), config_map(name, str(step), namespace)
                        )
                    else:
                        transaction.delete(key(name, namespace))
        changes(watched, watched.revision)
        assert differing(watched, with_sums=False) == set()
    other.close()


def test_wait_ends_when_file_or_index_changes(folder: Path, watched: FolderStore) -> None:
    other = FolderStore(folder)
    for change in (
        lambda: overwrite(file_of(folder, "a"), "2"),
        lambda: create(other, config_map("g")),
    ):
        for _ in range(2):  # what a look records changes the index
            changes(watched, watched.revision)
        start = time.monotonic()
        assert watched.wait_for_change(0.02)
        assert time.monotonic() - start >= 0.02
        change()
        start = time.monotonic()
        assert watched.wait_for_change(20.0)
        assert time.monotonic() - start < 10.0
    assert not other.wait_for_change(20.0)  # it has no watch, and does not wait
    other.close()


def test_quiet_is_where_nothing_happens(
    folder: Path, watched: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "REST_SECONDS", 0.0)

    def is_quiet() -> bool:
        changes(watched, watched.revision)
        changes(watched, watched.revision)
        return watched.is_quiet()

    assert is_quiet()
    overwrite(file_of(folder, "a"), "2")
    assert not watched.is_quiet()
    assert is_quiet()
    other = FolderStore(folder, volatile={"events": 3600.0})
    with other.transaction() as transaction:
        transaction.create(key("e", resource="events"), config_map("e"))
    assert not watched.is_quiet()
    assert is_quiet()
    other.set_values(settings={"seed": 5})
    other.close()
    assert not watched.is_quiet()
    assert is_quiet()
    remove_index(folder)
    assert not watched.is_quiet()
    assert is_quiet()
    create(watched, config_map("f"))
    assert not watched.is_quiet()
