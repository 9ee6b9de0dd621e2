from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubepy.api.clock import parse_time
from kubepy.apiserver.cluster import LocalCluster
from kubepy.runtime.events import BURST, FOUND_SINGLY, Recorder, StoredEvents

NOW = "2026-11-20T10:00:00Z"


@pytest.fixture
def about(cluster: LocalCluster) -> dict[str, Any]:
    return cluster.client.create("configmaps", {"metadata": {"name": "cm"}}, namespace="default")


def events(cluster: LocalCluster) -> list[dict[str, Any]]:
    return cluster.client.list("events").items


def told(cluster: LocalCluster) -> list[tuple[str, int]]:
    return sorted((event["message"], event["count"]) for event in events(cluster))


def test_event_names_object_component_and_time(
    cluster: LocalCluster, about: dict[str, Any]
) -> None:
    Recorder(cluster.client, "tester").event(
        about, "Normal", "Made", "it is made", field_path="data"
    )
    [event] = events(cluster)
    metadata = event["metadata"]
    nanoseconds = int(parse_time(NOW).timestamp()) * 10**9
    assert metadata["name"] == f"cm.{nanoseconds:x}"
    assert event == {
        "apiVersion": "v1",
        "count": 1,
        "eventTime": None,
        "firstTimestamp": NOW,
        "involvedObject": {
            "apiVersion": "v1",
            "fieldPath": "data",
            "kind": "ConfigMap",
            "name": "cm",
            "namespace": "default",
            "resourceVersion": about["metadata"]["resourceVersion"],
            "uid": about["metadata"]["uid"],
        },
        "kind": "Event",
        "lastTimestamp": NOW,
        "message": "it is made",
        "metadata": {
            "creationTimestamp": NOW,
            "name": metadata["name"],
            "namespace": "default",
            "resourceVersion": metadata["resourceVersion"],
            "uid": metadata["uid"],
        },
        "reason": "Made",
        "reportingComponent": "tester",
        "reportingInstance": "",
        "source": {"component": "tester"},
        "type": "Normal",
    }


def test_event_about_cluster_scoped_object_is_in_default(cluster: LocalCluster) -> None:
    node = cluster.client.create("nodes", {"metadata": {"name": "n"}})
    Recorder(cluster.client, "tester").event(node, "Normal", "Seen", "there")
    assert events(cluster)[0]["metadata"]["namespace"] == "default"


def test_events_about_two_parts_of_an_object_are_counted_apart(
    cluster: LocalCluster, about: dict[str, Any]
) -> None:
    recorder = Recorder(cluster.client, "tester")
    for part in ("first", "second", "first"):
        recorder.event(about, "Normal", "Made", "it is made", field_path=part)
    counts = {event["involvedObject"]["fieldPath"]: event["count"] for event in events(cluster)}
    assert counts == {"first": 2, "second": 1}


def test_events_about_parts_are_counted_on_by_the_next_process(
    cluster: LocalCluster, about: dict[str, Any]
) -> None:
    Recorder(cluster.client, "tester").event(about, "Normal", "Made", "one", field_path="first")
    cluster.client.event_memories.clear()
    recorder = Recorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Made", "one", field_path="first")
    recorder.event(about, "Normal", "Made", "one", field_path="second")
    counts = {event["involvedObject"]["fieldPath"]: event["count"] for event in events(cluster)}
    assert counts == {"first": 2, "second": 1}


def test_event_that_comes_again_is_counted(cluster: LocalCluster, about: dict[str, Any]) -> None:
    recorder = Recorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Made", "one")
    cluster.clock.own = parse_time(NOW) + timedelta(seconds=5)
    recorder.event(about, "Normal", "Made", "one")
    recorder.event(about, "Normal", "Made", "other")
    assert told(cluster) == [("one", 2), ("other", 1)]
    counted = next(event for event in events(cluster) if event["count"] == 2)
    assert (counted["firstTimestamp"], counted["lastTimestamp"]) == (NOW, "2026-11-20T10:00:05Z")


def test_counting_goes_on_in_next_process(cluster: LocalCluster, about: dict[str, Any]) -> None:
    for _ in range(3):
        Recorder(cluster.client, "tester").event(about, "Normal", "Made", "one")
    Recorder(cluster.client, "another").event(about, "Normal", "Made", "one")
    assert told(cluster) == [("one", 1), ("one", 3)]


def test_counting_goes_on_for_each_object_after_checkpoint(cluster: LocalCluster) -> None:
    names = ["cm", "cm.a", *(f"cm-{number}" for number in range(FOUND_SINGLY))]
    made = [
        cluster.client.create("configmaps", {"metadata": {"name": name}}, namespace="default")
        for name in names
    ]
    for _ in range(2):
        memory = cluster.client.event_memories.get("tester")
        cluster.client.event_memories.clear()
        recorder = Recorder(cluster.client, "tester")
        cluster.client.event_memories["tester"].recall(
            memory and memory.remember(cluster.clock.now())
        )
        for obj in made:
            recorder.event(obj, "Normal", "Made", "one")
            recorder.event(obj, "Normal", "Made", "one")
    assert sorted(
        (event["involvedObject"]["name"], event["count"]) for event in events(cluster)
    ) == sorted((name, 4) for name in names)


def test_unwritten_count_stays_when_the_whole_namespace_is_read(
    cluster: LocalCluster, about: dict[str, Any]
) -> None:
    role = {"metadata": {"name": "system:x"}, "rules": []}
    unnameable = cluster.client.create("roles.rbac.authorization.k8s.io", role, namespace="default")
    recorder = Recorder(cluster.client, "tester")
    cluster.client.event_memories["tester"].recall(None)
    for _ in range(BURST + 5):
        recorder.event(about, "Normal", "Made", "again")
    recorder.event(unnameable, "Normal", "Made", "an event without the object's name")
    cluster.clock.own = parse_time(NOW) + timedelta(seconds=300)
    recorder.event(about, "Normal", "Made", "again")
    assert ("again", BURST + 6) in told(cluster)


def test_stored_event_is_taken_once(cluster: LocalCluster, about: dict[str, Any]) -> None:
    other = cluster.client.create(
        "configmaps", {"metadata": {"name": "other"}}, namespace="default"
    )
    for obj in (about, other):
        Recorder(cluster.client, "tester").event(obj, "Normal", "Made", "one")
    stored = StoredEvents(is_recalled=True)
    with cluster.client.transaction() as transaction:
        taken = [
            event["involvedObject"]["name"]
            for name in ("cm", "cm", "system:x", "other", "system:x")
            for event in stored.take(cluster.client, transaction, "default", name)
        ]
    assert taken == ["cm", "other"]


def test_tenth_of_many_similar_events_combines_them(
    cluster: LocalCluster, about: dict[str, Any]
) -> None:
    recorder = Recorder(cluster.client, "tester")
    for number in range(12):
        recorder.event(about, "Normal", "Made", f"{number:02}")
    assert told(cluster) == [
        ("(combined from similar events): 11", 3),
        *((f"{number:02}", 1) for number in range(9)),
    ]


def test_component_is_silent_about_what_it_has_said_too_much_of(
    cluster: LocalCluster, about: dict[str, Any]
) -> None:
    recorder = Recorder(cluster.client, "tester")
    for _ in range(BURST + 5):
        recorder.event(about, "Normal", "Made", "again")
    assert told(cluster) == [("again", BURST)]
    recorder.event(about, "Warning", "Broke", "a warning has its own allowance")
    cluster.clock.own = parse_time(NOW) + timedelta(seconds=300)
    recorder.event(about, "Normal", "Made", "again")
    assert ("again", BURST + 6) in told(cluster)
    assert len(events(cluster)) == 2


def test_event_in_namespace_that_goes_is_dropped(cluster: LocalCluster) -> None:
    cluster.client.create("namespaces", {"metadata": {"name": "attic"}})
    obj = cluster.client.create("configmaps", {"metadata": {"name": "cm"}}, namespace="attic")
    cluster.client.delete("namespaces", "attic")
    Recorder(cluster.client, "tester").event(obj, "Normal", "Made", "late")
    assert events(cluster) == []


def test_event_lasts_hour(cluster: LocalCluster, about: dict[str, Any]) -> None:
    Recorder(cluster.client, "tester").event(about, "Normal", "Made", "one")
    cluster.clock.own = parse_time(NOW) + timedelta(seconds=3601)
    assert events(cluster) == []
