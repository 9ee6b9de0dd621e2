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

from kubepy.apiserver.cluster import object_links
from kubepy.storage import Key
from kubepy.storage.folder.linksql import expression_of
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.links import LinkKind, RecordedView, link_values
from kubepy.storage.memory import MemoryStore
from kubepy.storage.model import to_json
from kubepy.storage.store import Store
from tests.stores import changes, disagreements, fork_of

from .conftest import Object, config_map, create, file_of, key

KINDS = [
    "folder",
    "memory",
    "fork of a folder",
    "fork of a memory store",
    "fork of a folder without indexes",
]


def connect(store: Store) -> Store:
    store.connect(lambda: 0.0, links=object_links)
    return store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with some pods; a fork was made when half of them were there."""
    origin: Store = MemoryStore()
    if "folder" in request.param:
        FolderStore.initialize(tmp_path / "state", {})
        origin = FolderStore(tmp_path / "state")
    write_pods(connect(origin), 0)
    if request.param == "fork of a folder":
        origin.view().refresh()  # makes the indexes
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


def assert_links_hold(view: RecordedView) -> None:
    """Compare every link with a look at all objects."""
    objects = [
        entry
        for resource in {resource for resource, _ in view.places()}
        for entry in view.list(resource)
    ]
    expected: dict[tuple[str, str], set[Key]] = {}
    for place, obj in objects:
        for value in link_values(object_links(), place, obj, to_json(obj)):
            expected.setdefault(value, set()).add(place)
    assert expected
    for link in object_links():
        for text in ("", "a", "b", "c", "n1", "n2", "1", "Pending", "uid-pod-3", "uid-pod-7"):
            linked = view.linked(link.name, text)
            assert [place for place, _ in linked] == sorted(expected.get((link.name, text), ()))
            assert all(obj == view.get(place) for place, obj in linked)
            assert view.linked(link.name, text, "pods", "default") == [
                entry
                for entry in linked
                if entry[0].resource == "pods" and entry[0].namespace == "default"
            ]
    for link in object_links():
        counts = view.counts(link.name)
        texts = sorted(text for name, text in expected if name == link.name)
        assert all(counts[text] >= len(expected[link.name, text]) for text in texts)
        assert sorted(
            view.linked_all(link.name, texts, "pods"), key=lambda entry: entry[0]
        ) == sorted(
            (entry for text in texts for entry in view.linked(link.name, text, "pods")),
            key=lambda entry: entry[0],
        )
    paths = ("metadata.labels", "metadata.name", "spec.nodeName", "status.phase", "data.none")
    whole = view.linked("node", "n1", "pods")
    for entries, parts in (
        (view.list("pods"), view.parts(paths, "pods")),
        (whole, view.parts(paths, "pods", None, "node", "n1")),
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
        assert view.names("pods", "default", prefix) == [
            key.name for key, _ in view.list("pods", "default") if key.name.startswith(prefix)
        ]


def test_links_find_what_look_at_all_objects_finds(store: Store) -> None:
    view = store.view()
    view.refresh()
    assert_links_hold(view)
    write_pods(store, 2)
    view.refresh()
    assert_links_hold(view)
    view.release()


def test_view_stays_at_its_revision_until_refreshed(store: Store) -> None:
    view = store.view()
    view.refresh()
    revision, before = view.revision, view.list("pods")
    create(store, pod("new", ("a",), node="n1"), resource="pods")
    assert (view.revision, view.list("pods")) == (revision, before)
    assert view.get(Key("pods", "default", "new")) is None
    view.refresh()
    assert view.revision == revision + 1
    assert view.get(Key("pods", "default", "new")) == store.get(Key("pods", "default", "new"))
    view.release()


def test_keys_are_those_of_objects_in_order(store: Store) -> None:
    create(store, pod("x", namespace="another"), resource="pods")
    view = store.view()
    view.refresh()
    keys = [place for place, _ in view.list("pods")]
    assert view.keys("pods") == keys
    assert view.keys("pods", 3) == keys[:3]
    assert view.get_all([*keys[:2], Key("pods", "default", "absent")]) == view.list("pods")[:2]
    view.release()


def test_edit_of_file_shows_in_links_when_it_is_recorded(tmp_path: Path) -> None:
    FolderStore.initialize(tmp_path, {})
    store = FolderStore(tmp_path)
    connect(store)
    create(
        store,
        {**config_map("a"), "metadata": {"name": "a", "namespace": "default", "uid": "first"}},
    )
    view = store.view()
    view.refresh()
    file = file_of(tmp_path, "a")
    file.write_text(file.read_text().replace("first", "second"))
    view.refresh()
    assert [place for place, _ in view.linked("uid", "first")] == [key("a")]
    changes(store, 0)  # looks at the files
    view.refresh()
    assert view.linked("uid", "first") == []
    assert [place for place, _ in view.linked("uid", "second")] == [key("a")]
    file.unlink()
    changes(store, 0)
    view.refresh()
    assert view.linked("uid", "second") == []
    view.release()
    store.close()


def test_view_goes_on_with_rebuilt_index(tmp_path: Path) -> None:
    FolderStore.initialize(tmp_path, {})
    store = FolderStore(tmp_path)
    connect(store)
    write_pods(store, 0)
    view = store.view()
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
    store.view().refresh()
    store.copy_to(str(tmp_path / "copy"))
    store.close()
    with sqlite3.connect(tmp_path / "copy" / ".kubepy" / "index.db") as index:
        index.execute("DROP INDEX link_owner")
    index.close()
    copy = FolderStore(tmp_path / "copy")
    view = connect(copy).view()
    view.refresh()
    assert_links_hold(view)
    view.release()
    copy.close()


@pytest.mark.parametrize("link", object_links(), ids=lambda link: link.name)
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
        assert (value if isinstance(value, str) else None) == link.value_of(obj, text) or (
            link.kind is LinkKind.TEXT and value in ("[]", "{}", "[{}]", '{"a":1}')
        )


@pytest.fixture
def query() -> Iterator[Callable[[Any, str], Any]]:
    """A function that lets SQLite compute the value of a link."""
    connection = sqlite3.connect(":memory:")
    yield lambda link, text: connection.execute(
        f"SELECT {expression_of(link)} FROM (SELECT ? AS json)", (text,)
    ).fetchone()[0]
    connection.close()
