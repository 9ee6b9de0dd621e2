"""Views of what is recorded, and looking objects up by links, over every store: links find what a
look at all objects finds, whatever wrote them."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.cluster import object_indexes
from kubepy.storage import Key
from kubepy.storage.errors import LostStateError
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.store import EtcdStore
from kubepy.storage.folder.database import Database
from kubepy.storage.folder.indexsql import expression_of
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.indexes import FieldIndex, TextAt, index_values
from kubepy.storage.memory import MemoryStore
from kubepy.storage.state import KeyedObjects, State
from kubepy.storage.store import Store
from kubepy.storage.view import RecordedView
from tests.stores import changes, disagreements, fork_of

from .conftest import Object, config_map, create, file_of, key

KINDS = [
    "folder",
    "memory",
    "etcd",
    "fork of a folder",
    "fork of a memory store",
    "fork of etcd",
    "fork of a folder without indexes",
]


def connect(store: Store) -> Store:
    store.connect(lambda: 0.0, indexes=object_indexes)
    return store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with some pods; a fork was made when half of them were there."""
    origin: Store = MemoryStore()
    if "folder" in request.param:
        FolderStore.initialize(tmp_path / "state", {})
        origin = FolderStore(tmp_path / "state")
    if "etcd" in request.param:
        origin = EtcdStore(parse_address(request.getfixturevalue("etcd_address"), {}))
    write_pods(connect(origin), 0)
    if request.param == "fork of a folder":
        RecordedView(origin).refresh()  # makes the indexes
    store = connect(fork_of(origin)) if "fork" in request.param else origin
    write_pods(store, 1)
    yield store
    assert disagreements(store) == []
    origin.close()


def pod(
    name: str,
    owners: tuple[str, ...] = (),
    node: str = "",
    phase: str = "Running",
    namespace: str = "default",
    **spec: Any,
) -> Object:
    references = [{"uid": owner, "controller": number == 0} for number, owner in enumerate(owners)]
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "ownerReferences": references or None,
    }
    return {
        "metadata": metadata,
        "spec": {"nodeName": node or None, **spec},
        "status": {"phase": phase, "podIP": "1"},
    }


def new_folder_store(folder: Path) -> FolderStore:
    """Make a store in a folder, with the indexes of a cluster."""
    FolderStore.initialize(folder, {})
    store = FolderStore(folder)
    connect(store)
    return store


def write_pods(store: Store, seed: int) -> None:
    """Create, change and delete pods at random."""
    draw = random.Random(seed)
    for _ in range(5):
        with store.transaction() as transaction:
            for _ in range(8):
                name = f"pod-{draw.randrange(20)}"
                place = Key("pods", "default", name)
                owners = tuple(draw.sample(["a", "b", "c"], draw.randrange(3)))
                new = pod(
                    name,
                    owners,
                    draw.choice(["", "n1", "n2"]),
                    draw.choice(["Running", "Pending"]),
                    affinity=draw.choice([None, {"podAffinity": {"x": 1}}]),
                )
                if transaction.get(place) is None:
                    transaction.create(place, new)
                elif draw.random() < 0.3:
                    transaction.delete(place)
                else:
                    transaction.update(place, new)


def assert_links_hold(recorded: RecordedView) -> None:
    """Compare every link with a look at all objects."""
    recorded.read(assert_links_of_state_hold)


def found(state: State, link: str, value: str, *place: str) -> KeyedObjects:
    return state.found(link, [value], *place)


def assert_links_of_state_hold(state: State) -> None:
    objects = [
        entry
        for resource in {resource for resource, _ in state.places()}
        for entry in state.objects(resource)
    ]
    expected: dict[tuple[str, str], set[Key]] = {}
    for place, obj in objects:
        indexes = [index for index in object_indexes() if index.includes(place.resource)]
        for value in index_values(indexes, obj):
            expected.setdefault(value, set()).add(place)
    assert expected
    for link in object_indexes():
        for text in ("", "a", "b", "c", "n1", "n2", "1", "Pending", "uid-pod-3", "uid-pod-7"):
            linked = found(state, link.name, text)
            assert [place for place, _ in linked] == sorted(expected.get((link.name, text), ()))
            assert all([(place, obj)] == state.objects_at([place]) for place, obj in linked)
            assert found(state, link.name, text, "pods", "default") == [
                entry
                for entry in linked
                if entry[0].resource == "pods" and entry[0].namespace == "default"
            ]
    for link in object_indexes():
        counts = state.counts(link.name)
        texts = sorted(text for name, text in expected if name == link.name)
        assert all(counts[text] >= len(expected[link.name, text]) for text in texts)
        assert state.found(link.name, texts, "pods") == sorted(
            (entry for text in texts for entry in found(state, link.name, text, "pods")),
            key=lambda entry: entry[0],
        )
    paths = ("metadata.labels", "metadata.name", "spec.nodeName", "status.phase", "data.none")
    whole = found(state, "node", "n1", "pods")
    for entries, parts in (
        (state.objects("pods"), state.parts(paths, "pods")),
        (whole, state.parts(paths, "pods", None, "node", "n1")),
    ):
        assert [place for place, _ in parts] == [place for place, _ in entries]
        for (_, obj), (_, part) in zip(entries, parts, strict=True):
            assert part == {
                "data": {},
                "metadata": {"labels": obj["metadata"]["labels"], "name": obj["metadata"]["name"]}
                if "labels" in obj["metadata"]
                else {"name": obj["metadata"]["name"]},
                "spec": {"nodeName": obj["spec"]["nodeName"]}
                if obj["spec"].get("nodeName") is not None
                else {},
                "status": {"phase": obj["status"]["phase"]},
            }
    for prefix in ("", "p", "pod-", "pod-1", "x"):
        assert state.keys("pods", "default", prefix) == [
            key for key, _ in state.objects("pods", "default") if key.name.startswith(prefix)
        ]


def test_links_find_what_look_at_all_objects_finds(store: Store) -> None:
    view = RecordedView(store)
    view.refresh()
    assert_links_hold(view)
    write_pods(store, 2)
    view.refresh()
    assert_links_hold(view)
    view.release()


def test_view_stays_at_its_revision_until_refreshed(store: Store) -> None:
    view = RecordedView(store)
    view.refresh()
    revision, before = view.revision, view.read(lambda state: state.objects("pods"))
    create(store, pod("new", ("a",), node="n1"), resource="pods")
    assert (view.revision, view.read(lambda state: state.objects("pods"))) == (revision, before)
    new = Key("pods", "default", "new")
    assert view.read(lambda state: state.objects_at([new])) == []
    view.refresh()
    assert view.revision == revision + 1
    assert view.read(lambda state: state.objects_at([new])) == [(new, store.get(new))]
    view.release()


def test_keys_are_those_of_objects_in_order(store: Store) -> None:
    create(store, pod("x", namespace="another"), resource="pods")
    view = RecordedView(store)
    view.refresh()
    keys = [place for place, _ in view.read(lambda state: state.objects("pods"))]
    assert view.read(lambda state: state.keys("pods")) == keys
    assert view.read(lambda state: state.count("pods")) == len(keys)
    assert (
        view.read(lambda state: state.objects_at([*keys[:2], Key("pods", "default", "absent")]))
        == view.read(lambda state: state.objects("pods"))[:2]
    )
    view.release()


def test_edit_of_file_shows_in_links_when_it_is_recorded(tmp_path: Path) -> None:
    store = new_folder_store(tmp_path)
    create(
        store,
        {**config_map("a"), "metadata": {"name": "a", "namespace": "default", "uid": "first"}},
    )
    view = RecordedView(store)
    view.refresh()
    file = file_of(tmp_path, "a")
    file.write_text(file.read_text().replace("first", "second"))
    view.refresh()
    assert [place for place, _ in view.read(lambda state: found(state, "uid", "first"))] == [
        key("a")
    ]
    changes(store, 0)  # looks at the files
    view.refresh()
    assert view.read(lambda state: found(state, "uid", "first")) == []
    assert [place for place, _ in view.read(lambda state: found(state, "uid", "second"))] == [
        key("a")
    ]
    file.unlink()
    changes(store, 0)
    view.refresh()
    assert view.read(lambda state: found(state, "uid", "second")) == []
    view.release()
    store.close()


def test_view_goes_on_with_rebuilt_index(tmp_path: Path) -> None:
    store = new_folder_store(tmp_path)
    write_pods(store, 0)
    view = RecordedView(store)
    view.refresh()
    view.release()
    for path in (tmp_path / ".kubepy").glob("index.db*"):
        path.unlink()
    changes(store, store.revision)
    view.refresh()
    assert_links_hold(view)
    view.release()
    store.close()


def test_copy_and_missing_index_have_links(tmp_path: Path) -> None:
    """An index that another version has written gets its links from the rows."""
    FolderStore.initialize(tmp_path / "state", {})
    store = FolderStore(tmp_path / "state")
    connect(store)
    write_pods(store, 0)
    RecordedView(store).refresh()
    store.copy_to(str(tmp_path / "copy"))
    store.close()
    with sqlite3.connect(tmp_path / "copy" / ".kubepy" / "index.db") as index:
        index.execute("DROP INDEX link_owner")
    index.close()
    copy = FolderStore(tmp_path / "copy")
    view = RecordedView(connect(copy))
    view.refresh()
    assert_links_hold(view)
    view.release()
    copy.close()


@pytest.mark.parametrize("link", object_indexes(), ids=lambda link: link.name)
def test_value_is_same_in_python_and_sqlite(link: Any, query: Callable[[Any, str], Any]) -> None:
    odd: list[Any] = [None, True, False, 0, 1, 1.5, "", "x", "Running", "'", [], {}, [{}], {"a": 1}]
    objects: list[Object] = [{}, {"metadata": {}}]
    for value in odd:
        reference = {"uid": value, "controller": value}
        objects += [
            {
                "metadata": {"uid": value, "ownerReferences": references},
                "spec": {"nodeName": value},
                "status": {"phase": value, "podIP": value},
            }
            for references in (value, [value], [reference], [{}, reference])
        ]
        objects.append(
            {"spec": {"affinity": {"podAffinity": value}}, "status": {"nominatedNodeName": value}}
        )
    for obj in objects:
        text = json.dumps(obj, separators=(",", ":"))
        value = query(link, text)
        # Only texts are ever looked for.
        assert (value if isinstance(value, str) else None) == next(
            iter(link.values(obj)), None
        ) or (isinstance(link.values, TextAt) and value in ("[]", "{}", "[{}]", '{"a":1}'))


@pytest.fixture
def query() -> Iterator[Callable[[Any, str], Any]]:
    """A function that lets SQLite compute the value of a link."""
    connection = sqlite3.connect(":memory:")
    yield lambda link, text: connection.execute(
        f"SELECT {expression_of(link)} FROM (SELECT ? AS json)", (text,)
    ).fetchone()[0]
    connection.close()


def test_view_that_was_released_reads_newest_state(store: Store) -> None:
    view = RecordedView(store)
    view.refresh()
    create(store, pod("new", ("a",), node="n1"), resource="pods")
    view.release()
    view.refresh()
    assert view.revision == store.revision
    assert view.read(lambda state: state.objects("pods")) == [
        (Key("pods", "default", obj["metadata"]["name"]), obj) for obj in store.list("pods").objects
    ]
    view.release()


def test_state_that_was_let_go_of_is_lost_and_view_goes_on(tmp_path: Path) -> None:
    store = new_folder_store(tmp_path)
    write_pods(store, 0)
    view = RecordedView(store)
    view.refresh()
    state = store.state()
    store._snapshots().let_go()  # as where the disk is full
    assert view.revision == 0
    with pytest.raises(LostStateError):
        state.objects("pods")
    assert_links_hold(view)
    assert view.revision == store.revision
    view.release()
    store.close()


def test_reader_of_fork_leaves_it_what_it_lies_over(tmp_path: Path) -> None:
    store = new_folder_store(tmp_path)
    write_pods(store, 0)
    fork = connect(fork_of(store))
    expected = store.list("pods")
    RecordedView(fork).refresh()
    view = RecordedView(fork)
    view.refresh()
    view.release()
    store.close()
    assert fork.list("pods") == expected
    assert_links_hold(view)


def test_fork_that_was_read_in_full_lies_over_nothing_and_its_links_hold(tmp_path: Path) -> None:
    store = new_folder_store(tmp_path)
    write_pods(store, 0)
    fork = fork_of(store)
    connect(fork)
    write_pods(fork, 1)
    assert fork.state().source is not None
    expected = fork.list("pods")
    fork.read_in_full()
    store.close()
    assert fork.state().source is None
    assert fork.list("pods") == expected
    view = RecordedView(fork)
    view.refresh()
    assert_links_hold(view)
    write_pods(fork, 2)
    view.refresh()
    assert_links_hold(view)


def test_states_of_store_share_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_folder_store(tmp_path)
    write_pods(store, 0)
    opened: list[Database] = []
    new_connection = Database.new_connection

    def note(index: Database) -> Database:
        opened.append(new_connection(index))
        return opened[-1]

    monkeypatch.setattr(Database, "new_connection", note)
    view = RecordedView(store)
    for seed in range(3):
        view.refresh()
        assert_links_hold(view)
        write_pods(store, seed)
    assert len(opened) == 1
    first, second = store.state(), store.state()
    assert len(opened) == 3
    first.close()
    second.close()
    view.release()
    store.close()
    for index in opened:
        with pytest.raises(sqlite3.ProgrammingError):
            index.connection.execute("SELECT 1")


def images_of(pod: Object) -> list[str]:
    return sorted({container["image"] for container in pod["spec"].get("containers", ())})


@pytest.mark.parametrize("kind", ["folder", "memory", "fork of a folder"])
def test_new_index_is_one_function_in_every_store(kind: str, tmp_path: Path) -> None:
    """A function that SQLite does not know, with several values for an object."""
    origin: Store = MemoryStore()
    if kind != "memory":
        FolderStore.initialize(tmp_path / "state", {})
        origin = FolderStore(tmp_path / "state")
    by_image = FieldIndex("image", images_of, ("pods",))
    origin.connect(lambda: 0.0, indexes=lambda: (by_image,))
    for name, *images in (("a", "x"), ("b", "x", "y"), ("c",)):
        containers = [{"image": image} for image in images]
        create(origin, pod(name, containers=containers), resource="pods")
    store = origin
    if kind == "fork of a folder":
        store = fork_of(origin)
        store.connect(lambda: 0.0, indexes=lambda: (by_image,))

    def names(value: str) -> list[str]:
        view = RecordedView(store)
        found_pods = view.read(lambda state: found(state, "image", value, "pods"))
        view.release()
        return [key.name for key, _ in found_pods]

    assert (names("x"), names("y"), names("z")) == (["a", "b"], ["b"], [])
    with store.transaction() as transaction:
        transaction.delete(Key("pods", "default", "a"))
        transaction.create(
            Key("pods", "default", "d"), pod("d", containers=[{"image": "y"}, {"image": "z"}])
        )
    assert (names("x"), names("y"), names("z")) == (["b"], ["b", "d"], ["d"])
    view = RecordedView(store)
    counts = view.read(lambda state: state.counts("image"))
    assert all(counts[image] >= number for image, number in (("x", 1), ("y", 2), ("z", 1)))
    parts = view.read(
        lambda state: state.parts(["metadata.name"], "pods", index="image", value="z")
    )
    assert parts == [(Key("pods", "default", "d"), {"metadata": {"name": "d"}})]
    view.release()
    origin.close()
