"""Shared objects that raise when they are changed."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.meta import clone
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage import frozen

Object = dict[str, Any]


@pytest.fixture(autouse=True)
def development_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "is_on", True)


def config_map() -> Object:
    return {"metadata": {"name": "a", "finalizers": ["example.com/a"]}, "data": {"k": "v"}}


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda obj: obj["data"].__setitem__("k", "w"),
    "delete": lambda obj: obj["data"].pop("k"),
    "update": lambda obj: obj["metadata"].update(name="b"),
    "default": lambda obj: obj.setdefault("extra", {}),
    "append": lambda obj: obj["metadata"]["finalizers"].append("b"),
    "sort": lambda obj: obj["metadata"]["finalizers"].sort(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("source", ["created", "read", "listed", "read in a batch"])
def test_object_of_store_cannot_be_changed(
    tmp_path: Path, change: Callable[[Any], object], source: str
) -> None:
    cluster = make_cluster(tmp_path / "state", {})
    client = cluster.client
    obj = client.create("configmaps", config_map(), namespace="default")
    if source == "read":
        obj = client.get("configmaps", "a", namespace="default")
    elif source == "listed":
        obj = open_cluster(tmp_path / "state").client.list("configmaps").items[-1]
    elif source == "read in a batch":
        with client.batch():
            obj = client.get("configmaps", "a", namespace="default")
    with pytest.raises(TypeError, match="copy it before you change it"):
        change(obj)
    cluster.close()


def test_copies_of_a_frozen_object_may_be_changed() -> None:
    obj = frozen.shared(config_map())
    for copied in (clone(obj), copy.deepcopy(obj), json.loads(json.dumps(obj)), frozen.thaw(obj)):
        copied["data"]["k"] = "w"
        copied["metadata"]["finalizers"].append("b")
    for shallow in (
        {**obj},
        dict(obj),
        obj.copy(),
        copy.copy(obj),
        pickle.loads(pickle.dumps(obj)),
    ):
        shallow["data"] = {}
    assert obj == config_map()


def test_without_development_mode_objects_are_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "is_on", False)
    obj = config_map()
    assert frozen.shared(obj) is obj
    assert frozen.thawed(obj) is obj
