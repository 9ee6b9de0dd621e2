"""Forks and copies of state folders: independent of their origin whatever happens to it, and as
complete as it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kubepy.controlplane.open import copy_cluster, make_cluster, open_cluster
from kubepy.storage import FolderError
from kubepy.storage.folder import compare, copying, index
from kubepy.storage.folder import settings as folder_settings
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.locks import Lock
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.memory import MemoryStore
from kubepy.storage.store import Store
from tests.stores import changes, disagreements, fork_of

from .conftest import config_map, create, event, file_of, key, names, told
from .test_rebuild import as_nobody, public_folder  # noqa: F401

APPLIED = [{"manager": "kubectl", "operation": "Apply"}]
RESOURCES = ("configmaps", "secrets", "events")


def contents(store: Store) -> dict[str, Any]:
    """Return all that a store holds."""
    return {
        "objects": {resource: store.list(resource).objects for resource in RESOURCES},
        "revision": store.revision,
        "changes": changes(store, 0),
        "meta": store.meta("position"),
        "settings": store.settings(),
    }


def fill(store: Store) -> None:
    create(
        store,
        config_map("a", managedFields=APPLIED),
        config_map("b"),
        config_map("c", namespace="other"),
    )
    create(
        store,
        {"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}},
        resource="secrets",
    )
    create(store, event("e"), resource="events")
    with store.transaction() as transaction:
        transaction.update(key("b"), config_map("b", "2"))
        transaction.create(key("gone"), config_map("gone"))
    with store.transaction() as transaction:
        transaction.delete(key("gone"))
    store.set_values({"position": "7"})
    store.set_values(settings={"clock": "2026-01-01T00:00:00Z", "seed": 7})


@pytest.fixture
def filled(store: FolderStore) -> FolderStore:
    fill(store)
    return store


# --- forks in memory ---


def test_fork_has_everything_of_its_origin(filled: FolderStore) -> None:
    assert contents(fork_of(filled)) == contents(filled)
    assert contents(fork_of(fork_of(filled))) == contents(filled)


def test_fork_takes_edits_from_outside_in_first(filled: FolderStore, folder: Path) -> None:
    path = file_of(folder, "b")
    path.write_text(path.read_text().replace('"2"', '"edited"'))
    file_of(folder, "c", "other").unlink()
    fork = fork_of(filled)
    assert fork.get(key("b"))["data"] == {"a": "edited"}  # type: ignore[index]
    assert fork.get(key("c", "other")) is None
    assert contents(fork) == contents(filled)


@pytest.mark.parametrize("is_read_first", [False, True])
def test_fork_stays_as_it_was_whatever_happens_to_the_folder(
    filled: FolderStore, folder: Path, open_store: Callable[..., FolderStore], is_read_first: bool
) -> None:
    expected = contents(filled)
    fork = fork_of(filled)
    if is_read_first:
        assert contents(fork) == expected
    path = file_of(folder, "b")
    path.write_text(path.read_text().replace('"2"', '"edited"'))
    create(filled, config_map("later"))
    filled.set_values(settings={"seed": 8})
    filled.close()
    shutil.rmtree(folder / ".kubepy")
    assert names(open_store().list("configmaps").objects) == ["a", "b", "later", "c"]
    assert contents(fork) == expected
    assert contents(fork_of(fork)) == expected


def test_fork_of_removed_folder_goes_on(filled: FolderStore, folder: Path) -> None:
    fork = fork_of(filled)
    shutil.rmtree(folder)
    create(fork, config_map("d"))
    assert names(fork.list("configmaps", "default").objects) == ["a", "b", "d"]


def test_fork_beside_a_writer_shows_edits_that_are_not_recorded(
    filled: FolderStore, folder: Path
) -> None:
    since = filled.revision
    lock = Lock(str(folder / ".kubepy/lock"))
    lock.acquire(1)
    path = file_of(folder, "b")
    path.write_text(path.read_text().replace('"2"', '"edited"'))
    file_of(folder, "c", "other").unlink()
    fork = fork_of(filled)
    lock.release()
    assert told(fork, since) == [(since + 1, "MODIFIED", "b"), (since + 2, "DELETED", "c")]
    assert names(fork.list("configmaps").objects) == ["a", "b"]
    assert fork.get(key("b"))["metadata"]["resourceVersion"] == str(since + 1)  # type: ignore[index]


def test_fork_leaves_files_out_that_cannot_be_objects(filled: FolderStore, folder: Path) -> None:
    file_of(folder, "b").write_text("{")
    fork = fork_of(filled)
    assert names(fork.list("configmaps").objects) == ["a", "c"]
    assert fork.get(key("b")) is None
    create(fork, config_map("b"))
    file_of(folder, "b").unlink()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become somebody who must not write here"
)
def test_read_only_folder_is_forked_and_copied(public_folder: Path, tmp_path: Path) -> None:  # noqa: F811
    store = FolderStore(public_folder)
    create(store, config_map("a"), config_map("b"))
    store.close()
    shutil.rmtree(public_folder / ".kubepy")
    copy = public_folder.parent.parent / f"{public_folder.parent.name}-copy"
    copy.mkdir()
    os.chown(copy, 65534, 65534)
    try:
        with as_nobody():
            store = FolderStore(public_folder)
            assert names(fork_of(store).list("configmaps").objects) == ["a", "b"]
            store.copy_to(str(copy))
            store.close()
            store = FolderStore(copy)
            assert names(store.list("configmaps").objects) == ["a", "b"]
            assert disagreements(store) == []
            store.close()
    finally:
        shutil.rmtree(copy)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become somebody who must not write here"
)
def test_folder_of_a_writing_user_with_a_private_index_is_copied_whole(
    public_folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = FolderStore(public_folder)
    create(owner, config_map("a"), config_map("b"))
    assert (public_folder / ".kubepy").stat().st_mode & 0o077 == 0
    copy_all = copying._copy_all
    passes: list[str] = []

    def write_after_first_pass(access: Access, target: str) -> None:
        copy_all(access, target)
        if not passes:
            os.seteuid(0)
            with owner.transaction() as transaction:
                transaction.delete(key("a"))
                transaction.create(key("moved"), config_map("moved"))
            os.seteuid(65534)
        passes.append(target)

    monkeypatch.setattr(copying, "_copy_all", write_after_first_pass)
    with tempfile.TemporaryDirectory() as place:
        os.chown(place, 65534, 65534)
        with as_nobody():
            store = FolderStore(public_folder)
            store.copy_to(f"{place}/copy")
            store.close()
            store = FolderStore(Path(place) / "copy")
            assert names(store.list("configmaps").objects) == ["b", "moved"]
            assert disagreements(store) == []
            store.close()
    assert len(passes) == 2
    owner.close()


# --- copies ---


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The files that were parsed as YAML."""
    texts: list[bytes] = []

    def parse(data: bytes) -> Any:
        texts.append(data)
        return original(data)

    original = compare.parse
    monkeypatch.setattr(compare, "parse", parse)
    monkeypatch.setattr(folder_settings, "parse", parse)
    return texts


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".kubepy" not in path.parts
    }


def test_copy_has_the_same_bytes_and_parses_nothing(
    filled: FolderStore, folder: Path, tmp_path: Path, parsed: list[bytes]
) -> None:
    path = file_of(folder, "b")
    path.write_text("# mine\n" + path.read_text())
    (folder / "README.md").write_text("notes")
    (folder / "notes").mkdir()
    (folder / "notes/empty").touch()
    (folder / ".git").mkdir()
    (folder / "link").symlink_to("README.md")
    file_of(folder, "broken").write_text("{")
    filled.list("configmaps")
    expected = contents(filled)
    copy = tmp_path / "deep/copy"
    filled.copy_to(str(copy))
    assert files_of(copy) == files_of(folder)
    assert sorted(os.listdir(copy)) == sorted({*os.listdir(folder)} - {".git"})
    assert os.readlink(copy / "link") == "README.md"
    assert sorted(os.listdir(copy / ".kubepy")) == ["index.db", "marks", "origin"]
    assert file_of(copy, "s", resource="secrets").stat().st_mode & 0o777 == 0o600
    parsed.clear()
    again = FolderStore(copy, volatile={"events": 3600.0})
    assert contents(again) == expected
    assert parsed == []
    file_of(folder, "broken").unlink()
    file_of(copy, "broken").unlink()
    assert again.check() == []
    create(again, config_map("d"))
    assert filled.get(key("d")) is None
    again.close()


def test_copy_of_memory_store_is_a_folder_with_the_same_history(
    tmp_path: Path, parsed: list[bytes]
) -> None:
    store = MemoryStore(volatile={"events": 3600.0})
    fill(store)
    copying.write_state(store.state(), str(tmp_path / "copy"))
    again = FolderStore(tmp_path / "copy", volatile={"events": 3600.0})
    parsed.clear()
    assert contents(again) == contents(store)
    assert parsed == []
    assert again.check() == []
    assert (tmp_path / "copy/namespaces/default/configmaps/.managed/a.yaml").is_file()
    again.close()


def test_copy_takes_an_edit_that_is_made_meanwhile_for_one(
    filled: FolderStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = copying.copy_file

    def edit_first(origin: str, target: str) -> Any:
        if origin.endswith("/b.yaml"):
            path = file_of(folder, "b")
            path.write_text(path.read_text().replace('"2"', '"edited"'))
        return original(origin, target)

    monkeypatch.setattr(copying, "copy_file", edit_first)
    filled.copy_to(str(tmp_path / "copy"))
    again = FolderStore(tmp_path / "copy", volatile={"events": 3600.0})
    assert again.get(key("b"))["data"] == {"a": "edited"}  # type: ignore[index]
    filled.list("configmaps")
    assert again.revision == filled.revision
    again.close()


def _not_empty(target: Path) -> str:
    target.mkdir()
    (target / "file").touch()
    return "is not empty"


def _a_cluster(target: Path) -> str:
    FolderStore.initialize(target, {})
    return "is a cluster already"


def _a_file(target: Path) -> str:
    target.touch()
    return "is there already, and is not a folder"


def _a_dangling_link(target: Path) -> str:
    target.symlink_to("nowhere")
    return "is there already, and is not a folder"


@pytest.mark.parametrize("occupy", [_not_empty, _a_cluster, _a_file, _a_dangling_link])
def test_copy_to_a_place_that_is_taken_touches_nothing(
    filled: FolderStore, tmp_path: Path, occupy: Callable[[Path], str]
) -> None:
    target = tmp_path / "copy"
    reason = occupy(target)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FolderError, match=f"copy {reason}"):
        filled.copy_to(str(target))
    assert sorted(path for path in tmp_path.rglob("*") if path.name not in ("lock",)) == [
        path for path in before if path.name not in ("lock",)
    ]


def test_copy_into_the_state_folder_itself_is_refused(filled: FolderStore, folder: Path) -> None:
    for target in (folder / "x", folder / "namespaces/y/z"):
        with pytest.raises(FolderError, match="is inside the state folder"):
            filled.copy_to(str(target))
        assert not target.exists()
    with pytest.raises(FolderError, match="is a cluster already"):
        filled.copy_to(str(folder))


@pytest.mark.parametrize("step", ["copy_file", "_new_index", "_copy_settings"])
@pytest.mark.parametrize("exists", [False, True])
def test_copy_that_fails_leaves_nothing(
    filled: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, exists: bool
) -> None:
    calls = []

    def fail(*arguments: Any) -> Any:
        calls.append(arguments)
        if step != "copy_file" or len(calls) > 2:
            raise OSError(28, "No space left on device")
        return original(*arguments)

    original = copying.copy_file
    monkeypatch.setattr(copying, step, fail)
    target = tmp_path / "deep/copy"
    if exists:
        target.mkdir(parents=True)
    with pytest.raises(FolderError, match="No space left on device"):
        filled.copy_to(str(target))
    assert list(target.iterdir()) == [] if exists else not (tmp_path / "deep").exists()


def test_copy_has_no_temporary_files_and_no_tombstones(
    filled: FolderStore, folder: Path, tmp_path: Path
) -> None:
    with filled.transaction() as transaction:
        transaction.delete(key("b"))
    temporary = file_of(folder, "a").with_name(".kubepy-0.tmp")
    temporary.touch()
    filled.copy_to(str(tmp_path / "copy"))
    temporary.unlink()
    assert not list((tmp_path / "copy").rglob("*.tmp"))
    database = index.open_existing(str(tmp_path / "copy"))
    assert database is not None
    assert database.tombstones() == 0
    database.close()


# --- settings in a folder ---


def test_settings_keep_comments_and_order_when_one_changes(
    store: FolderStore, folder: Path
) -> None:
    path = folder / "kubepy.yaml"
    text = (
        '# my cluster\nseed: 7   # lucky\nclock: "2026-01-01T00:00:00Z"   # began\n\n'
        "formatVersion: 1\nnetworking: {}\n"
    )
    path.write_text(text)
    path.chmod(0o640)
    store.set_values(settings={"clock": "2026-01-01T00:00:01Z"})
    assert path.read_text() == text.replace("00:00:00Z", "00:00:01Z")
    store.set_values(settings={"reconcile": "never"})
    assert path.read_text() == text.replace("00:00:00Z", "00:00:01Z") + "reconcile: never\n"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{formatVersion: 1, seed: 7}\n", {"formatVersion": 1, "seed": 8}),
        ("formatVersion: 1\r\nseed: '7'\r\n", {"formatVersion": 1, "seed": 8}),
        ("formatVersion: 1\nseed: >-\n  7\n  8\n", {"formatVersion": 1, "seed": 8}),
        ("formatVersion: 1 # seed: 7\nseed:   7", {"formatVersion": 1, "seed": 8}),
        ("formatVersion: 1\n", {"formatVersion": 1, "seed": 8}),
        ("formatVersion: 1", {"formatVersion": 1, "seed": 8}),
        (
            "---\nformatVersion: 1\nnetworking:\n  serviceSubnet: 10.0.0.0/8\n...\n",
            {"formatVersion": 1, "networking": {"serviceSubnet": "10.0.0.0/8"}, "seed": 8},
        ),
    ],
)
def test_settings_in_any_form_can_be_changed(
    store: FolderStore,
    folder: Path,
    open_store: Callable[..., FolderStore],
    text: str,
    expected: Any,
) -> None:
    (folder / "kubepy.yaml").write_bytes(text.encode())
    store.set_values(settings={"seed": 8})
    assert store.settings() == open_store().settings() == expected
    assert ("\r\n" in text) == (b"\r\n" in (folder / "kubepy.yaml").read_bytes())


def test_settings_edited_by_hand_meanwhile_are_kept(
    store: FolderStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "kubepy.yaml"
    original = folder_settings.SettingsEdit.record

    def edit_then_record(self: Any, database: Any) -> None:
        path.write_text(path.read_text() + "reconcile: never\n")
        monkeypatch.undo()
        original(self, database)

    monkeypatch.setattr(folder_settings.SettingsEdit, "record", edit_then_record)
    store.set_values(settings={"seed": 8})
    assert path.read_text() == "formatVersion: 1\nreconcile: never\nseed: 8\n"
    assert store.settings() == {"formatVersion": 1, "reconcile": "never", "seed": 8}


def test_settings_of_another_process_are_seen(
    store: FolderStore, open_store: Callable[..., FolderStore]
) -> None:
    other = open_store()
    for number in range(5):
        store.set_values(settings={"seed": number})
        assert other.settings()["seed"] == number


# --- clusters ---


def test_cluster_copied_from_memory_goes_on_as_the_original(tmp_path: Path) -> None:
    cluster = make_cluster("memory:", {"clock": "2026-01-01T00:00:00Z", "seed": 7})
    cluster.client.create("configmaps", {"metadata": {"name": "a"}}, namespace="default")
    copy_cluster(cluster, tmp_path / "copy")
    copy, fork = open_cluster(tmp_path / "copy"), cluster.fork()
    made = [
        each.client.create("configmaps", {"metadata": {"generateName": "b-"}}, namespace="default")
        for each in (cluster, copy, fork)
    ]
    assert made[0] == made[1] == made[2]
    assert copy.settings == cluster.settings
    assert disagreements(copy.store) == []
    copy.close()


# --- a model of forks ---

NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["1", "2", "3"])
PLACE = st.integers(0, 20)


class Forks(RuleBasedStateMachine):
    """A folder and forks of forks, each beside a dictionary; what one does shows in its own
    dictionary alone."""

    @initialize()
    def start(self) -> None:
        self.base = Path(tempfile.mkdtemp())
        self.folder = self.base / "state"
        FolderStore.initialize(self.folder, {})
        self.stores: list[Store] = [FolderStore(self.folder), MemoryStore()]
        self.objects: list[dict[str, str]] = [{}, {}]
        self.watched: list[tuple[int, dict[str, str]]] = [(0, {}), (0, {})]
        self.seeds: list[Any] = [None, None]

    @rule(
        place=PLACE,
        changes=st.dictionaries(NAMES, st.none() | VALUES, min_size=1),
        fails=st.booleans(),
    )
    def write(self, place: int, changes: dict[str, str | None], fails: bool) -> None:
        place %= len(self.stores)
        store, objects = self.stores[place], dict(self.objects[place])
        try:
            with store.transaction() as transaction:
                for name, value in changes.items():
                    if value is None and name in objects:
                        transaction.delete(key(name))
                        del objects[name]
                    elif value is not None:
                        (transaction.update if name in objects else transaction.create)(
                            key(name), config_map(name, value)
                        )
                        objects[name] = value
                if fails:
                    raise RuntimeError
            self.objects[place] = objects
        except RuntimeError:
            assert fails

    @rule(place=PLACE, seed=st.integers(0, 3))
    def set_seed(self, place: int, seed: int) -> None:
        place %= len(self.stores)
        self.stores[place].set_values(settings={"seed": seed})
        self.seeds[place] = seed

    @rule(place=PLACE)
    def fork(self, place: int) -> None:
        place %= len(self.stores)
        if len(self.stores) < 10:
            self.stores.append(fork_of(self.stores[place]))
            self.objects.append(dict(self.objects[place]))
            self.watched.append((self.watched[place][0], dict(self.watched[place][1])))
            self.seeds.append(self.seeds[place])

    @rule(name=NAMES, value=VALUES)
    def edit_file(self, name: str, value: str) -> None:
        path = file_of(self.folder, name)
        if path.exists():
            path.write_text(path.read_text().replace(f'"{self.objects[0][name]}"', f'"{value}"'))
            self.objects[0][name] = value

    @rule()
    def open_again(self) -> None:
        self.stores[0].close()
        self.stores[0] = FolderStore(self.folder)

    @rule(place=PLACE)
    def read_one(self, place: int) -> None:
        place %= len(self.stores)
        found = {name: self.stores[place].get(key(name)) for name in "abcd"}
        assert {name: obj["data"]["a"] for name, obj in found.items() if obj} == self.objects[place]

    @rule(place=PLACE)
    def follow_the_changes(self, place: int) -> None:
        place %= len(self.stores)
        since, watched = self.watched[place]
        for change in changes(self.stores[place], since):
            since = change.revision
            if change.type == "DELETED":
                watched.pop(change.key.name, None)  # it may have come and gone since
            else:
                watched[change.key.name] = change.object["data"]["a"]
        self.watched[place] = since, watched
        assert watched == self.objects[place]

    @invariant()
    def each_has_its_own(self) -> None:
        if not hasattr(self, "stores"):
            return
        for store, objects, seed in zip(self.stores, self.objects, self.seeds, strict=True):
            listed = store.list("configmaps").objects
            assert [(obj["metadata"]["name"], obj["data"]["a"]) for obj in listed] == sorted(
                objects.items()
            )
            assert store.settings().get("seed") == seed

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            for store in self.stores:
                store.close()
            shutil.rmtree(self.base)


TestForks = Forks.TestCase
TestForks.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
