"""Informers that read what they are asked for answer as those that have read everything, whenever
they are asked."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.watch import WatchEvent
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane.open import make_cluster
from kubepy.runtime.informers import PODS, Index, Informers, Query, owned_by
from kubepy.storage import Key
from kubepy.storage.view import RecordedView

Object = dict[str, Any]
UIDS, NODES, NAMES = ("a", "b", "c"), ("n1", "n2"), [f"pod-{number}" for number in range(8)]


def draw_pod(draw: random.Random, name: str) -> Object:
    owners = draw.sample(UIDS, draw.choice([0, 0, 1, 1, 2]))
    references = [
        {"uid": uid, "kind": "X", "name": uid, "apiVersion": "v1", "controller": number == 0}
        for number, uid in enumerate(owners)
    ]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"{name} {draw.random()}",
            **({"ownerReferences": references} if references else {}),
        },
        "spec": {"nodeName": draw.choice(["", *NODES])},
        "status": {"phase": draw.choice(["Running", "Failed"])},
    }


class Pair:
    """Informers that follow a view, and others that were given everything."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.store = cluster.store
        self.view: RecordedView = RecordedView(self.store)
        self.view.refresh()
        self.lazy, self.full = Informers(), Informers()
        self.owned: list[Index[Any, None]] = []
        self.failed: list[Index[Any, None]] = []
        self.in_part: list[Index[Any, str]] = []
        for informers in (self.lazy, self.full):
            self.owned.append(
                informers.add_index(
                    PODS,
                    lambda pod: (
                        ((pod["metadata"].get("ownerReferences") or [{}])[0].get("uid", "")),
                        None,
                    ),
                    lambda uid: owned_by(uid, PODS),
                )
            )
            self.failed.append(
                informers.add_index(
                    PODS,
                    lambda pod: ("", None) if pod["status"]["phase"] == "Failed" else None,
                    lambda _: (Query(PODS, None, "phase", "Failed"),),
                )
            )
            self.in_part.append(
                informers.add_index(
                    PODS,
                    lambda pod: (
                        ((pod["metadata"].get("ownerReferences") or [{}])[0].get("uid", "")),
                        f"{pod['metadata']['uid']} on {pod['spec'].get('nodeName')}",
                    ),
                    lambda uid: owned_by(uid, PODS),
                    ("metadata.uid", "metadata.ownerReferences", "spec.nodeName"),
                )
            )
        self.lazy.follow(self.view, lambda resource: True)
        for key, obj in self.view.read(lambda state: state.objects(PODS)):
            self.full.observe(WatchEvent(key, None, obj))

    def write(self, draw: random.Random) -> list[WatchEvent]:
        """Change some pods in one transaction; return the events."""
        events = []
        with self.store.transaction() as transaction:
            for name in draw.sample(NAMES, 3):
                key = Key(PODS, "default", name)
                old, new = transaction.get(key), draw_pod(draw, name)
                if old is None:
                    events.append(WatchEvent(key, None, transaction.create(key, new)))
                elif draw.random() < 0.4:
                    events.append(WatchEvent(key, transaction.delete(key), None))
                else:
                    events.append(WatchEvent(key, old, transaction.update(key, new)))
        return events

    def ask(self, draw: random.Random) -> None:
        """Ask both something, and compare."""
        questions = [
            lambda informers, at: informers.get(PODS, "default", name),
            lambda informers, at: informers.dependents(uid, draw_resource),
            lambda informers, at: informers.has_dependents(uid),
            lambda informers, at: informers.pods_on(node),
            lambda informers, at: (
                not informers.has_fewer_on(node, most) or len(self.full.pods_on(node)) < most
            ),
            lambda informers, at: informers.read_ahead(
                [Key(PODS, "default", name) for name in names]
            ),
            lambda informers, at: informers.load(
                *(Query(PODS, None, "node", node) for node in NODES)
            ),
            lambda informers, at: informers.orphans(PODS, "default"),
            lambda informers, at: informers.count(PODS),
            lambda informers, at: informers.key_of(uid_of_pod),
            lambda informers, at: sorted(self.owned[at].group(uid)) if uid else None,
            lambda informers, at: sorted(self.in_part[at].group(uid).items()) if uid else None,
            lambda informers, at: sorted(self.failed[at].group("")),
            lambda informers, at: informers.list(PODS, draw_namespace) if is_rare else None,
        ]
        names, most = draw.sample(NAMES, 3), draw.randrange(12)
        name, uid, node = draw.choice(NAMES), draw.choice(UIDS), draw.choice(NODES)
        draw_resource, draw_namespace = (
            draw.choice([None, PODS]),
            draw.choice([None, "default", "other"]),
        )
        is_rare = draw.random() < 0.1  # what lists everything leaves nothing to be read
        known = self.full.get(PODS, "default", draw.choice(NAMES))
        uid_of_pod = known["metadata"]["uid"] if known else "none"
        question = draw.choice(questions)
        assert question(self.lazy, 0) == question(self.full, 1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_informers_that_read_on_demand_answer_as_full_ones(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # count at every lookup
        monkeypatch.setattr("kubepy.runtime.informers.LOOKUPS_TO_COUNT_AT", 1)
    draw = random.Random(seed)
    cluster = (
        make_cluster("memory:")
        if kind == "memory"
        else make_cluster(tmp_path / "state", {"bootstrap": "minimal"})
    )
    pair = Pair(cluster)
    for _ in range(2):
        pair.write(draw)
    pair = Pair(cluster)
    for _ in range(6):
        events = pair.write(draw)  # as another process, while the view stays
        for _ in range(draw.randrange(4)):
            pair.ask(draw)
        for event in events:
            pair.lazy.get(*event.key)  # as the manager does before it has them observe a change
            for informers in (pair.lazy, pair.full):
                informers.observe(event)
            for _ in range(draw.randrange(3)):
                pair.ask(draw)
        pair.view.refresh()  # when the batch is committed
    pair.view.release()
    pair.lazy.follow(pair.view, lambda resource: True)
    pair.view.refresh()
    pair.lazy.read_everything()
    assert dict(pair.lazy.known(PODS)) == dict(pair.full.known())
    cluster.close()


def test_informers_read_only_what_they_are_asked_for() -> None:
    cluster = make_cluster("memory:")
    with cluster.store.transaction() as transaction:
        for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")):
            pod = {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"nodeName": node},
            }
            transaction.create(Key(PODS, "default", name), pod)
    view, informers = RecordedView(cluster.store), Informers()
    view.refresh()
    informers.follow(view, lambda resource: resource == PODS)
    assert [key.name for key in informers.pods_on("n1")] == ["a", "b"]
    assert [key.name for key, _ in informers.known()] == ["a", "b"]
    assert informers.count(PODS) == 3
    assert informers.get("namespaces", "", "default") is None  # not watched
    assert not informers.is_known(Key(PODS, "default", "c"))


def test_informers_that_know_all_objects_look_none_up() -> None:
    cluster = make_cluster("memory:")
    names = [f"pod-{number:02}" for number in range(40)]
    with cluster.store.transaction() as transaction:
        for name in names:
            pod = {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"nodeName": name},
            }
            transaction.create(Key(PODS, "default", name), pod)
    view, informers = RecordedView(cluster.store), Informers()
    view.refresh()
    informers.follow(view, lambda resource: resource == PODS)
    for name in names:
        informers.get(PODS, "default", name)
    for name in names[:16]:
        assert [key.name for key in informers.pods_on(name)] == [name]
    view.release()  # nothing can be read any more
    assert [key.name for name in names for key in informers.pods_on(name)] == names
    assert [obj["metadata"]["name"] for obj in informers.list(PODS)] == names


def test_index_that_is_asked_late_has_what_was_observed_before() -> None:
    informers = Informers()
    by_node = informers.add_index(PODS, lambda pod: (pod["spec"].get("nodeName", ""), None))
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "n1"), ("c", "n2")):
        key = Key(PODS, "default", name)
        pod: Object = {"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node}}
        informers.observe(WatchEvent(key, informers.get(*key), pod))
    assert sorted(key.name for key in by_node.group("n2")) == ["b", "c"]
    informers.observe(WatchEvent(key, pod, None))
    assert [key.name for key in by_node.group("n2")] == ["b"]
    assert informers.get(*key) is None


def test_changes_of_one_object_between_two_questions_leave_its_last_state() -> None:
    informers = Informers()
    key = Key(PODS, "default", "a")
    assert informers.pods_on("n1") == []
    for node in ("n1", "n2", "n1", None, "n2"):
        new: Object | None = None
        if node is not None:
            new = {"metadata": {"name": "a", "uid": "a"}, "spec": {"nodeName": node}}
        informers.observe(WatchEvent(key, informers.get(*key), new))
    assert informers.pods_on("n1") == []
    assert informers.pods_on("n2") == [key]
    assert informers.count(PODS) == 1
    informers.observe(WatchEvent(key, informers.get(*key), None))
    assert informers.pods_on("n2") == []
    assert informers.key_of("a") is None
    assert informers.list(PODS) == []
