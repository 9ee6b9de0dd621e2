"""Events of events.k8s.io: their fields, and repeated events that become a series."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubepy.api.clock import parse_time
from kubepy.apiserver.cluster import LocalCluster
from kubepy.runtime.event_series import SeriesRecorder

NOW = "2026-11-20T10:00:00Z"
MICRO = "2026-11-20T10:00:00.000000Z"

Object = dict[str, Any]


@pytest.fixture
def about(cluster: LocalCluster) -> Object:
    return cluster.client.create("configmaps", {"metadata": {"name": "cm"}}, namespace="default")


def later(cluster: LocalCluster, seconds: float) -> None:
    cluster.clock.own = cluster.clock.now() + timedelta(seconds=seconds)


def told(cluster: LocalCluster) -> list[tuple[str, int]]:
    events = cluster.client.list("events").items
    return [(one["message"], (one.get("series") or {"count": 1})["count"]) for one in events]


def reference(obj: Object) -> Object:
    meta = obj["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        **{key: meta[key] for key in ("name", "namespace", "uid")},
        "resourceVersion": meta["resourceVersion"],
    }


def test_event_has_action_and_one_time_and_no_count(cluster: LocalCluster, about: Object) -> None:
    other = cluster.client.create(
        "configmaps", {"metadata": {"name": "other"}}, namespace="default"
    )
    SeriesRecorder(cluster.client, "tester").event(
        about, "Normal", "Moved", "Moving", "it moved", related=other
    )
    [event] = cluster.client.list("events").items
    meta = event["metadata"]
    assert meta["name"] == f"cm.{int(parse_time(NOW).timestamp()) * 10**9:x}"
    assert event == {
        "action": "Moving",
        "apiVersion": "v1",
        "eventTime": MICRO,
        "firstTimestamp": None,
        "involvedObject": reference(about),
        "kind": "Event",
        "lastTimestamp": None,
        "message": "it moved",
        "metadata": {
            "creationTimestamp": NOW,
            "name": meta["name"],
            "namespace": "default",
            "resourceVersion": meta["resourceVersion"],
            "uid": meta["uid"],
        },
        "reason": "Moved",
        "related": reference(other),
        "reportingComponent": "tester",
        "reportingInstance": "tester-kubepy",
        "source": {},
        "type": "Normal",
    }


def test_repeated_event_is_a_series_with_the_first_message(
    cluster: LocalCluster, about: Object
) -> None:
    recorder = SeriesRecorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    later(cluster, 5)
    recorder.event(about, "Normal", "Moved", "Moving", "two")
    [event] = cluster.client.list("events").items
    assert (event["message"], event["series"]) == (
        "one", {"count": 2, "lastObservedTime": "2026-11-20T10:00:05.000000Z"})  # fmt: skip


def test_series_that_goes_on_is_not_written_again(cluster: LocalCluster, about: Object) -> None:
    recorder = SeriesRecorder(cluster.client, "tester")
    for _ in range(3):
        recorder.event(about, "Normal", "Moved", "Moving", "one")
    before = cluster.client.list("events").items
    later(cluster, 1)
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == [("one", 2)]
    assert cluster.client.list("events").items == before


def test_object_that_changed_is_new_subject(cluster: LocalCluster, about: Object) -> None:
    recorder = SeriesRecorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    changed = cluster.client.update(
        "configmaps", {**about, "data": {"a": "b"}}, namespace="default"
    )
    recorder.event(changed, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == [("one", 1), ("one", 1)]


@pytest.mark.parametrize("other", [("Warning", "Moved", "Moving"), ("Normal", "Left", "Moving"),
                                   ("Normal", "Moved", "Leaving")])  # fmt: skip
def test_event_of_another_type_reason_or_action_is_separate(
    cluster: LocalCluster, about: Object, other: tuple[str, str, str]
) -> None:
    recorder = SeriesRecorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    recorder.event(about, *other, "one")
    assert told(cluster) == [("one", 1), ("one", 1)]


@pytest.mark.parametrize(
    ("silence", "found"), [(360, [("one", 2)]), (361, [("one", 1), ("one", 1)])]
)
def test_series_ends_after_six_minutes_of_silence(
    cluster: LocalCluster, about: Object, silence: int, found: list[tuple[str, int]]
) -> None:
    recorder = SeriesRecorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    later(cluster, silence)
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == found


def test_second_process_goes_on_with_the_series(cluster: LocalCluster, about: Object) -> None:
    SeriesRecorder(cluster.client, "tester").event(about, "Normal", "Moved", "Moving", "one")
    SeriesRecorder(cluster.client, "tester").event(about, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == [("one", 2)]
    SeriesRecorder(cluster.client, "tester").event(about, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == [("one", 2)]


def test_event_that_was_deleted_is_not_made_series_of(cluster: LocalCluster, about: Object) -> None:
    recorder = SeriesRecorder(cluster.client, "tester")
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    [event] = cluster.client.list("events").items
    cluster.client.delete("events", event["metadata"]["name"], namespace="default")
    recorder.event(about, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == [("one", 2)]


def test_long_note_is_cut_to_what_api_takes(cluster: LocalCluster, about: Object) -> None:
    SeriesRecorder(cluster.client, "tester").event(about, "Normal", "Moved", "Moving", "x" * 1025)
    assert told(cluster) == [("x" * 1020 + " ...", 1)]


def test_events_of_namespace_that_is_gone_are_dropped(cluster: LocalCluster, about: Object) -> None:
    lost = {**about, "metadata": {**about["metadata"], "namespace": "gone"}}
    SeriesRecorder(cluster.client, "tester").event(lost, "Normal", "Moved", "Moving", "one")
    assert told(cluster) == []
