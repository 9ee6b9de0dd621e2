"""events: oldest first, of one object, of one type."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kubepy.api.clock import parse_time
from kubepy.cli.describers.writer import event_age
from kubepy.cli.events import event_time
from kubepy.controlplane.open import open_cluster
from tests.cli.conftest import Done, Kubepy

NOW = datetime(2026, 11, 20, 10, 10, tzinfo=UTC)


@pytest.fixture
def eventful(kubepy: Kubepy, folder: Path) -> Kubepy:
    """Two pods, one of them with warnings."""
    cluster = open_cluster(folder / "state")
    happened = (
        ("b", "Pod", "Normal", 1),
        ("a", "Pod", "Warning", 2),
        ("d", "DaemonSet", "Normal", 3),
    )
    for name, kind, type_, second in happened:
        cluster.client.create(
            "events",
            {
                "metadata": {"name": f"{name}.{second}"},
                "type": type_,
                "reason": "Because",
                "message": f"of {name} ",
                "involvedObject": {
                    "kind": kind,
                    "apiVersion": "v1" if kind == "Pod" else "apps/v1",
                    "name": name,
                    "namespace": "default",
                },
                "lastTimestamp": f"2026-11-20T10:00:0{second}Z",
                "source": {"component": "me"},
            },
            namespace="default",
        )
    cluster.close()
    return kubepy


def subjects(done: Done) -> list[str]:
    return [line.split()[3] for line in done.out.splitlines()]


def test_events_come_in_order_of_time(eventful: Kubepy) -> None:
    done = eventful("events")
    assert done.out.splitlines()[0].split() == [
        "LAST",
        "SEEN",
        "TYPE",
        "REASON",
        "OBJECT",
        "MESSAGE",
    ]
    assert subjects(eventful("events", "--no-headers")) == ["Pod/b", "Pod/a", "DaemonSet/d"]
    assert "   of b\n" in done.out


def test_events_of_one_object_and_type(eventful: Kubepy) -> None:
    assert subjects(eventful("events", "--for", "pod/a", "--no-headers")) == ["Pod/a"]
    assert subjects(eventful("events", "--for", "ds/d", "--no-headers")) == ["DaemonSet/d"]
    assert subjects(eventful("events", "--types=warning", "--no-headers")) == ["Pod/a"]
    names = eventful("events", "-A", "-o", "jsonpath={.items[*].metadata.name}", "--types=Normal")
    assert names.out == "b.1 d.3"


def test_names_of_list_of_events_are_not_printed(eventful: Kubepy) -> None:
    assert eventful("events", "-o", "name") == Done("", "", 0)


def test_message_of_several_lines_ends_columns_above_it(eventful: Kubepy) -> None:
    eventful("patch", "event", "a.2", "-p", '{"message": "of a\\nand more"}')
    lines = eventful("events", "--no-headers").out.splitlines()
    assert [line.split("Normal")[-1].split("Warning")[-1] for line in lines] == [
        "    Because   Pod/b   of b",
        "   Because   Pod/a   of a",
        "and more",
        "    Because   DaemonSet/d   of d",
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--types=Odd"], "error: valid --types are Normal or Warning\n"),
        (["--for", "pod"], "error: --for must be in resource/name form\n"),
        (
            ["--for", "a/b/c"],
            "error: arguments in resource/name form may not have more than one slash\n",
        ),
        (["--for", "foo/b"], 'the server doesn\'t have a resource type "foo"\n'),
        (
            ["--for", "foo.apps/b"],
            'the server doesn\'t have a resource type "foo" in group "apps"\n',
        ),
    ],
)
def test_events_refuses_invalid_flags(kubepy: Kubepy, words: list[str], error: str) -> None:
    assert kubepy("events", *words) == Done("", error, 1)


def test_events_without_events_says_so(kubepy: Kubepy) -> None:
    assert kubepy("events", "-n", "kube-public") == Done(
        "", "No events found in kube-public namespace.\n", 0
    )


def test_age_and_time_of_events() -> None:
    first, last = "2026-11-20T10:00:00Z", "2026-11-20T10:09:30Z"
    assert (
        event_age({"firstTimestamp": first, "lastTimestamp": last, "count": 3}, NOW)
        == "30s (x3 over 10m)"
    )
    assert (
        event_age({"eventTime": first, "series": {"count": 2, "lastObservedTime": last}}, NOW)
        == "30s (x2 over 10m)"
    )
    assert event_age({"firstTimestamp": first, "count": 1}, NOW) == "10m"
    assert event_age({}, NOW) == "<unknown>"
    assert event_time({"eventTime": first, "lastTimestamp": last}) == parse_time(last)
    assert event_time({"eventTime": "2026-11-20T10:09:30.5Z"}) > parse_time(last) > event_time({})


def test_describe_shows_events_without_last_time_first(kubepy: Kubepy, folder: Path) -> None:
    """Describe a pod with events of the scheduler, whose times are in another field: they come
    first, as in kubectl."""
    cluster = open_cluster(folder / "state")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    uid = cluster.client.create("pods", pod, namespace="default")["metadata"]["uid"]
    about = {"kind": "Pod", "apiVersion": "v1", "name": "p", "namespace": "default", "uid": uid}
    common = {
        "involvedObject": about,
        "type": "Normal",
        "message": "said",
        "reportingComponent": "tester",
        "reportingInstance": "tester-1",
    }
    cluster.client.create(
        "events",
        {
            **common,
            "metadata": {"name": "p.1"},
            "reason": "Earlier",
            "firstTimestamp": "2026-11-20T10:00:00Z",
            "lastTimestamp": "2026-11-20T10:00:00Z",
        },
        namespace="default",
    )
    cluster.client.create(
        "events",
        {
            **common,
            "metadata": {"name": "p.2"},
            "reason": "Later",
            "action": "Doing",
            "eventTime": "2026-11-20T10:00:09.000000Z",
        },
        namespace="default",
    )
    cluster.close()
    shown = (
        kubepy("describe", "pod", "p", "--reconcile=never")
        .out.partition("Events:")[2]
        .splitlines()[3:]
    )
    assert [line.split()[1] for line in shown] == ["Later", "Earlier"]
