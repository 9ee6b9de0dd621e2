"""A store that writes one object a commit: conflicts and ends between any two objects, a change log
that is compacted, commits that nobody hears of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from kubepy.api.clock import later
from kubepy.api.errors import Conflict
from kubepy.api.meta import uid_of
from kubepy.apiserver.cluster import VOLATILE, LocalCluster
from kubepy.apiserver.fault_settings import parse_faults
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.furnishing import add_first_node
from kubepy.controlplane.open import new_memory_store
from kubepy.runtime.checkpoint import settled_checkpoint
from kubepy.storage import CompactedError, ConflictError, Key
from kubepy.storage.model import CommittedChanges, in_full

from .conftest import config_map, create, key, names, told
from .strange import BatchEndedError, StrangeStore, conflict_at, end_before

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}
NAMES = ["a", "b", "c"]


def write_three(store: StrangeStore) -> None:
    """Create the ConfigMaps that are not there."""
    with store.transaction() as transaction:
        for name in NAMES:
            if transaction.get(key(name)) is None:
                transaction.create(key(name), config_map(name))
        store.set_values({"position": "3"})


@pytest.mark.parametrize("number", range(3))
def test_conflict_at_any_object_leaves_those_before_it(number: int) -> None:
    store = StrangeStore()
    store.before_object = conflict_at(number)
    with pytest.raises(ConflictError):
        write_three(store)
    assert names(store.list("configmaps").objects) == NAMES[:number]
    assert store.revision == number
    assert store.meta("position") is None
    store.before_object = lambda key, number: None
    write_three(store)
    assert told(store, 0) == [(1, "ADDED", "a"), (2, "ADDED", "b"), (3, "ADDED", "c")]
    assert store.meta("position") == "3"


@pytest.mark.parametrize("number", range(3))
def test_batch_that_ends_between_two_objects_goes_on_with_the_rest(number: int) -> None:
    store = StrangeStore()
    store.before_object = end_before(number)
    with pytest.raises(BatchEndedError):
        write_three(store)
    assert names(store.list("configmaps").objects) == NAMES[:number]
    store.before_object = lambda key, number: None
    write_three(store)
    assert names(store.list("configmaps").objects) == NAMES


def test_log_in_parts_is_put_together() -> None:
    store = StrangeStore()
    write_three(store)
    part = store.changes(0)
    assert (part.revision, len(part.changes), part.has_more) == (1, 1, True)
    assert [change.key.name for change in in_full(store.changes, 0).changes] == NAMES
    assert not store.changes(2).has_more


def test_objects_get_the_versions_of_a_commit_before_which_others_wrote() -> None:
    store = StrangeStore()
    store.others = 7
    with store.transaction() as transaction:
        made = transaction.create(key("a"), config_map("a"))
        transaction.create(key("b"), config_map("b"))
        changed = transaction.update(
            key("a"), config_map("a", "2"), expected=made["metadata"]["resourceVersion"]
        )
        other = transaction.get(key("b"))
    assert [changed, other] == store.list("configmaps").objects
    assert told(store, 0) == [(9, "ADDED", "b"), (10, "ADDED", "a")]
    assert transaction.revision == store.revision == 10


@pytest.mark.parametrize("revision", range(1, 4))
def test_compacted_log_gives_only_what_came_after(revision: int) -> None:
    store = StrangeStore()
    write_three(store)
    store.compact(revision)
    with pytest.raises(CompactedError):
        store.changes(revision - 1)
    assert [name for _, _, name in told(store, revision)] == NAMES[revision:]


@pytest.mark.parametrize("missed", range(1, 7))
def test_listener_that_misses_a_commit_finds_it_in_the_log(missed: int) -> None:
    store = StrangeStore()
    store.is_missed = lambda revision: revision == missed
    heard: list[tuple[int, str]] = []
    seen = 0

    def hear(commit: CommittedChanges) -> None:
        nonlocal seen
        between = in_full(store.changes, seen).changes if commit.base > seen else []
        for change in [*between, *commit.changes]:
            if change.revision > seen:
                heard.append((change.revision, change.key.name))
                seen = change.revision

    store.watch(hear)
    write_three(store)
    create(store, *(config_map(name) for name in "def"))
    create(store, config_map("last"))
    assert heard == [(number, name) for number, name in enumerate([*"abcdef", "last"], 1)]


def strange_cluster() -> LocalCluster:
    """Make a cluster over the strange store, with a node and a Deployment that nobody has met."""
    store = StrangeStore(
        {"clock": "2026-01-01T00:00:00Z", "seed": 1, "bootstrap": "minimal"}, volatile=VOLATILE
    )
    cluster = LocalCluster(store, new_memory_store)
    cluster.bootstrap()
    add_first_node(cluster.client)
    cluster.client.create("deployments.apps", DEPLOYMENT, namespace="default")
    return cluster


def settle(cluster: LocalCluster) -> None:
    with manager_lock(cluster):
        build_manager(cluster).run_until_settled()


def content(cluster: LocalCluster) -> dict[str, object]:
    """Return what the Deployment has come to."""
    deployment = cluster.client.get("deployments.apps", "web", namespace="default")
    pods = cluster.client.list("pods").items
    return {
        "replicas": deployment["status"].get("availableReplicas"),
        "sets": len(cluster.client.list("replicasets.apps").items),
        "pods": sorted(pod["status"]["phase"] for pod in pods),
    }


def test_controllers_converge_where_others_are_given_revisions() -> None:
    usual, strange = strange_cluster(), strange_cluster()
    assert isinstance(strange.store, StrangeStore)
    strange.store.others = 5
    for cluster in (usual, strange):
        settle(cluster)
        cluster.client.delete("deployments.apps", "web", namespace="default")
        cluster.client.create("deployments.apps", DEPLOYMENT, namespace="default")
        settle(cluster)
    assert content(strange) == content(usual)
    uids = [
        {uid_of(pod) for pod in cluster.client.list("pods").items} for cluster in (usual, strange)
    ]
    assert uids[0] == uids[1]


@pytest.mark.parametrize("number", [*range(12), 15, 20, 25, 30])
@pytest.mark.parametrize("failure", [conflict_at, end_before])
def test_controllers_that_are_cut_between_two_objects_converge(
    failure: Callable[[int], Callable[[Key, int], None]], number: int
) -> None:
    cluster = strange_cluster()
    store = cluster.store
    assert isinstance(store, StrangeStore)
    store.before_object = failure(number)
    with suppress(BatchEndedError, Conflict):
        settle(cluster)
    store.before_object = lambda key, number: None
    settle(cluster)
    assert content(cluster) == {"replicas": 3, "sets": 1, "pods": ["Running"] * 3}


def test_count_of_an_object_is_committed_with_it() -> None:
    cluster = strange_cluster()
    store = cluster.store
    assert isinstance(store, StrangeStore)

    def make(name: str) -> str:
        body = {"metadata": {"name": name}}
        return uid_of(cluster.client.create("configmaps", body, namespace="default"))

    store.before_object = end_before(1)
    with suppress(BatchEndedError), cluster.client.batch():
        first = make("a")
        make("b")
    store.before_object = lambda key, number: None
    assert store.get(Key("configmaps", "default", "b")) is None
    cluster.client.delete("configmaps", "a", namespace="default")
    assert make("a") != first


def test_checkpoint_where_others_are_given_revisions_is_of_the_commit() -> None:
    cluster = strange_cluster()
    assert isinstance(cluster.store, StrangeStore)
    cluster.store.others = 5
    settle(cluster)
    checkpoint = settled_checkpoint(cluster)
    assert checkpoint is not None
    assert checkpoint.revision == cluster.store.revision
    revision = cluster.store.revision
    settle(cluster)
    assert cluster.store.revision == revision


def test_batch_that_webhooks_divide_hears_of_no_write_of_its_own() -> None:
    cluster = strange_cluster()
    assert isinstance(cluster.store, StrangeStore)
    cluster.store.others = 5
    with cluster.client.batch() as batch:
        cluster.client.create("configmaps", config_map("a"), namespace="default")
        with batch.suspend():
            pass
        assert [(part.is_own, len(part.events)) for part in batch.drain_parts()] == [(True, 1)]


@pytest.mark.parametrize("others", [0, 5])
def test_faulty_controllers_converge_where_others_are_given_revisions(others: int) -> None:
    cluster = strange_cluster()
    store = cluster.store
    assert isinstance(store, StrangeStore)
    faults = {
        "seed": 3,
        "lateEvents": {"rate": 0.5, "delay": "1s..5s"},
        "restarts": {"rate": 0.2},
        "conflicts": {"rate": 0.2},
    }
    cluster = cluster.with_faults(parse_faults("faults", faults))
    store.others = others
    with manager_lock(cluster):
        build_manager(cluster).advance(later(cluster.clock.now(), 600.0))
    assert content(cluster) == {"replicas": 3, "sets": 1, "pods": ["Running"] * 3}


def test_request_whose_commit_met_a_conflict_is_carried_out_again() -> None:
    cluster = strange_cluster()
    store = cluster.store
    assert isinstance(store, StrangeStore)
    conflicts = [0]

    def meet(key: Key, number: int) -> None:
        conflicts[0] += 1
        if conflicts[0] < 5:
            raise ConflictError(f"{key.place} was changed by somebody else")

    store.before_object = meet
    made = cluster.client.create("configmaps", config_map("a"), namespace="default")
    assert conflicts[0] == 5
    assert store.get(key("a")) == made
    store.before_object = conflict_at(0)
    with pytest.raises(Conflict):
        cluster.client.create("configmaps", config_map("b"), namespace="default")
    stale = {**config_map("a"), "metadata": {"name": "a", "resourceVersion": "1"}}
    with pytest.raises(Conflict):
        cluster.client.update("configmaps", stale, namespace="default")


def test_custom_resource_in_another_version_has_the_version_of_the_commit() -> None:
    cluster = strange_cluster()
    assert isinstance(cluster.store, StrangeStore)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in ("v1", "v2")
    ]
    spec = {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": versions,
    }
    definition = {"metadata": {"name": "things.example.org"}, "spec": spec}
    cluster.client.create("customresourcedefinitions.apiextensions.k8s.io", definition)
    settle(cluster)
    thing = {"apiVersion": "example.org/v2", "kind": "Thing", "metadata": {"name": "a"}}
    cluster.store.others = 5
    with cluster.client.batch():
        made = cluster.client.create("things.example.org", thing, namespace="default")
    stored = cluster.store.get(Key("things.example.org", "default", "a"))
    assert stored is not None
    assert made["apiVersion"] == "example.org/v2"
    assert stored["apiVersion"] == "example.org/v1"
    assert made["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
