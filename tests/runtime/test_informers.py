"""Indexes and listers of the informers."""

from __future__ import annotations

from random import Random

import pytest

from kubepy.api.meta import Object, new_controller_ref
from kubepy.runtime.informers import PODS, REPLICA_SETS, Index, Informers
from kubepy.runtime.reconcile import Key, WatchEvent

OWNER: Object = {"apiVersion": "apps/v1", "kind": "ReplicaSet",
                 "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"}, "spec": {}}


def pod(name: str, node: str = "", owner: Object | None = None) -> Object:
    references = {"ownerReferences": [new_controller_ref(owner)]} if owner is not None else {}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node} if node else {},
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **references}}


def observe(informers: Informers, name: str, obj: Object | None, resource: str = PODS) -> Key:
    key = Key(resource, "default", name)
    informers.observe(WatchEvent(key, informers.get(*key), obj))
    return key


def by_node(obj: Object) -> tuple[str, str] | None:
    node = obj["spec"].get("nodeName")
    return (node, obj["metadata"]["name"]) if node else None


@pytest.mark.parametrize("seed", range(10))
def test_index_after_any_changes_equals_one_of_all_objects(seed: int) -> None:
    chance, informers = Random(seed), Informers()
    index = informers.add_index(PODS, by_node)
    for _ in range(200):
        name = f"p-{chance.randint(0, 9)}"
        obj = pod(name, chance.choice(["", "n-1", "n-2"])) if chance.random() < 0.7 else None
        observe(informers, name, obj)
        if chance.random() < 0.02:
            informers.clear()
        fresh: Index[Object, str] = informers.add_index(PODS, by_node)
        for node in ("n-1", "n-2"):
            assert index.group(node) == fresh.group(node) == {
                Key(PODS, "default", one["metadata"]["name"]): one["metadata"]["name"]
                for one in informers.list(PODS) if one["spec"].get("nodeName") == node}


def test_index_value_of_unchanged_object_is_computed_once() -> None:
    computed: list[str] = []

    def compute(obj: Object) -> tuple[str, str]:
        computed.append(obj["metadata"]["name"])
        return "", obj["metadata"]["name"]

    informers = Informers()
    index = informers.add_index(PODS, compute)
    keys = [observe(informers, name, pod(name)) for name in ("a", "b")]
    assert [index.get(key) for key in keys] == ["a", "b"]
    observe(informers, "a", pod("a", "n-1"))
    assert index.get(keys[0]) == "a"
    assert computed == ["a", "b", "a"]


def test_index_without_value_for_object_has_no_entry() -> None:
    informers = Informers()
    index = informers.add_index(PODS, by_node)
    key = observe(informers, "a", pod("a", "n-1"))
    observe(informers, "a", pod("a"))
    assert index.get(key) is None
    assert index.group("n-1") == {}


def test_lister_controlled_by_leaves_out_objects_of_others() -> None:
    informers = Informers()
    observe(informers, "web", OWNER, REPLICA_SETS)
    other = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "uid-other"}}
    for name, owner in (("a", OWNER), ("b", other), ("c", None)):
        observe(informers, name, pod(name, owner=owner))
    lister = informers.lister(PODS)
    assert [one["metadata"]["name"] for one in lister.controlled_by(OWNER)] == ["a"]


def test_lister_claimable_by_yields_dependents_and_orphans() -> None:
    informers = Informers()
    other = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "uid-other"}}
    for name, owner in (("c", OWNER), ("b", other), ("a", None)):
        observe(informers, name, pod(name, owner=owner))
    assert [one["metadata"]["name"] for one in informers.lister(PODS).claimable_by(OWNER)] == ["a", "c"]
