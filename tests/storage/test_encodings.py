"""An object is encoded once a write: as JSON for its row, as YAML for its file."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.request import MERGE_PATCH, Patch
from kubepy.controlplane.open import make_cluster
from kubepy.storage import model, yaml
from kubepy.storage.folder.store import FolderStore

from .conftest import config_map, create, key

Count = Callable[[], Any]
APPLIED = [{"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}]


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A context in which encodings and decodings of whole objects are counted."""

    @contextmanager
    def counting() -> Iterator[Counter[str]]:
        counts: Counter[str] = Counter()

        def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def run(value: Any, *args: Any, **options: Any) -> Any:
                if is_object(value):
                    counts[name] += 1
                return function(value, *args, **options)

            return run

        with monkeypatch.context() as patch:
            patch.setattr(model._encoder, "encode", counted("JSON", model._encoder.encode))
            patch.setattr(json, "loads", counted("decoded", json.loads))
            patch.setattr(yaml, "dump", counted("YAML", yaml.dump))
            yield counts

    return counting


def is_object(value: Any) -> bool:
    """Return whether a value, or its JSON, is an object of the API."""
    if isinstance(value, dict):
        return "metadata" in value
    return '"metadata":{' in value


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    FolderStore.initialize(tmp_path / "state", {})
    store = FolderStore(tmp_path / "state", volatile={"events": 3600.0})
    yield store
    store.close()


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("fields", [{}, {"labels": {"a": "b"}}, {"managedFields": APPLIED}])
def test_write_of_an_object_encodes_it_once(
    store: FolderStore, count: Any, fields: dict[str, Any], is_plain: bool
) -> None:
    with count() as counts, store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"), is_plain=is_plain)
    assert counts == {"JSON": 1, "YAML": 1}
    with store.transaction() as transaction:
        transaction.get(key("a"))
        with count() as counts:
            transaction.update(key("a"), config_map("a", "2", **fields), is_plain=is_plain)
    assert counts["JSON"] <= 1
    with count() as counts, store.transaction() as transaction:
        transaction.get(key("a"))
        transaction.update(key("a"), config_map("a", "3", **fields), is_plain=is_plain)
    assert counts == {"JSON": 1, "YAML": 1, "decoded": 1}  # the state before is read


def test_edited_file_is_merged_with_the_object_that_was_written(
    store: FolderStore, count: Any, tmp_path: Path
) -> None:
    create(store, config_map("a"))
    [file] = (tmp_path / "state").rglob("a.yaml")
    file.write_text("# mine\n" + file.read_text())
    before = store.get(key("a"))
    assert before is not None
    with count() as counts, store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
    assert counts["JSON"] == 1
    assert file.read_text().startswith("# mine\n")


def test_values_that_are_no_json_are_written_as_json_has_them(
    store: FolderStore, tmp_path: Path
) -> None:
    spec = {"pair": (1, 2), "map": {3: "x"}, "ordered": OrderedDict(b=1)}
    with store.transaction() as transaction:
        transaction.create(key("a"), {**config_map("a"), "spec": spec})
    [file] = (tmp_path / "state").rglob("a.yaml")
    assert '  map:\n    "3": x\n  ordered:\n    b: 1\n  pair:\n  - 1\n  - 2\n' in file.read_text()


def test_requests_encode_each_object_once(tmp_path: Path, count: Any) -> None:
    cluster = make_cluster(tmp_path / "state", {"clock": "2026-01-01T00:00:00Z", "seed": 1})
    client = cluster.client
    for resource, spec in (("configmaps", {}), ("services", {"ports": [{"port": 80}]})):
        body = {"metadata": {"name": "a"}, **({"spec": spec} if spec else {})}
        with count() as counts:
            made = client.create(resource, body, namespace="default")
        assert (counts["JSON"], counts["YAML"]) == (1, 1)
        changed = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
        with count() as counts:
            client.update(resource, changed)
        assert (counts["JSON"], counts["YAML"]) == (1, 1)
        patch = Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "c"}}})
        with count() as counts:
            client.patch(resource, "a", patch, namespace="default")
        assert (counts["JSON"], counts["YAML"]) == (1, 1)
    cluster.close()
