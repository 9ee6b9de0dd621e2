"""Watches: what they begin with, the events of selectors, bookmarks, errors in the stream, and
their end."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api import protobuf
from kubepy.apiserver.server import ADMINISTRATOR
from kubepy.controlplane.open import make_cluster
from kubepy.server import encodings, watch, watchcache
from kubepy.server.messages import HttpRequest
from kubepy.server.requestinfo import parse_request_info

from .conftest import Api, Stream

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH_LIST = (
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels or {}},
        "data": data,
    }


def create(
    api: Api, name: str, labels: dict[str, str] | None = None, path: str = CONFIG_MAPS, **data: str
) -> str:
    """Create a ConfigMap; return its resourceVersion."""
    answer = api.post(path, config_map(name, labels, **data))
    assert answer.status == 201
    return str(answer.json()["metadata"]["resourceVersion"])


def newest(api: Api) -> str:
    return str(api.get(CONFIG_MAPS).json()["metadata"]["resourceVersion"])


def told(stream: Stream, count: int) -> list[tuple[str, str]]:
    """Return the types and names of the next events."""
    events = [stream.event() for _ in range(count)]
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


# --- the beginning of a watch


@pytest.mark.parametrize("query", ["watch=1", "watch=true&resourceVersion=0"])
def test_watch_without_revision_begins_with_objects_that_are_there(api: Api, query: str) -> None:
    create(api, "a")
    create(api, "b")
    stream = api.stream(f"{CONFIG_MAPS}?{query}")
    assert told(stream, 2) == [("ADDED", "a"), ("ADDED", "b")]
    create(api, "c")
    assert told(stream, 1) == [("ADDED", "c")]


def test_watch_from_revision_has_what_follows_it(api: Api) -> None:
    create(api, "a")
    since = create(api, "b")
    create(api, "c")
    api.patch(f"{CONFIG_MAPS}/c", {"data": {"k": "v"}})
    api.delete(f"{CONFIG_MAPS}/a")
    stream = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
    assert told(stream, 3) == [("ADDED", "c"), ("MODIFIED", "c"), ("DELETED", "a")]


def test_watch_without_initial_events_begins_now(api: Api) -> None:
    create(api, "a")
    stream = api.stream(
        f"{CONFIG_MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    )
    create(api, "b")
    assert told(stream, 1) == [("ADDED", "b")]


def test_watch_list_ends_its_initial_events_with_bookmark(api: Api) -> None:
    revision = create(api, "a")
    stream = api.stream(f"{CONFIG_MAPS}?{WATCH_LIST}")
    assert told(stream, 1) == [("ADDED", "a")]
    bookmark = stream.event()
    assert bookmark == {
        "type": "BOOKMARK",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": revision,
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        },
    }


def test_watch_list_without_bookmarks_has_no_closing_one(api: Api) -> None:
    create(api, "a")
    stream = api.stream(
        f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    )
    create(api, "b")
    assert told(stream, 2) == [("ADDED", "a"), ("ADDED", "b")]


def test_deletion_has_its_own_revision(api: Api) -> None:
    since = create(api, "a")
    api.delete(f"{CONFIG_MAPS}/a")
    event = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}").event()
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["resourceVersion"] == newest(api)


# --- the objects of a watch


def test_object_that_begins_or_ceases_to_match_is_added_or_deleted(api: Api) -> None:
    create(api, "a", {"app": "x"})
    create(api, "b")
    stream = api.stream(f"{CONFIG_MAPS}?watch=1&labelSelector=app%3Dx")
    assert told(stream, 1) == [("ADDED", "a")]
    api.patch(f"{CONFIG_MAPS}/b", {"metadata": {"labels": {"app": "x"}}})
    api.patch(f"{CONFIG_MAPS}/b", {"data": {"k": "v"}})
    answer = api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "y"}}})
    api.delete(f"{CONFIG_MAPS}/a")
    api.delete(f"{CONFIG_MAPS}/b")
    assert told(stream, 2) == [("ADDED", "b"), ("MODIFIED", "b")]
    deleted = stream.event()
    assert deleted["type"] == "DELETED"
    assert deleted["object"]["metadata"]["labels"] == {"app": "x"}
    assert (
        deleted["object"]["metadata"]["resourceVersion"]
        == answer.json()["metadata"]["resourceVersion"]
    )
    assert told(stream, 1) == [("DELETED", "b")]


@pytest.mark.parametrize(
    "path",
    [
        f"{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Db",
        "/api/v1/watch/namespaces/default/configmaps/b",
        f"{CONFIG_MAPS}/b?watch=1".replace(
            f"{CONFIG_MAPS}/", "/api/v1/watch/namespaces/default/configmaps/"
        ),
    ],
)
def test_watch_of_one_object_leaves_out_others(api: Api, path: str) -> None:
    stream = api.stream(path)
    for name in "abc":
        create(api, name)
    api.delete(f"{CONFIG_MAPS}/b")
    assert told(stream, 2) == [("ADDED", "b"), ("DELETED", "b")]


def test_watch_of_namespace_leaves_out_others(api: Api) -> None:
    api.post(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
    )
    stream = api.stream("/api/v1/watch/namespaces/other/configmaps")
    everywhere = api.stream("/api/v1/watch/configmaps")
    create(api, "a")
    create(api, "b", path="/api/v1/namespaces/other/configmaps")
    assert told(stream, 1) == [("ADDED", "b")]
    assert told(everywhere, 2) == [("ADDED", "a"), ("ADDED", "b")]


def test_event_is_in_version_of_request(api: Api) -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "maxReplicas": 3,
        },
    }
    path = "namespaces/default/horizontalpodautoscalers"
    old = api.stream(f"/apis/autoscaling/v1/{path}?watch=1")
    new = api.stream(f"/apis/autoscaling/v2/{path}?watch=1")
    assert api.post(f"/apis/autoscaling/v2/{path}", autoscaler).status == 201
    assert old.event()["object"]["apiVersion"] == "autoscaling/v1"
    assert new.event()["object"]["apiVersion"] == "autoscaling/v2"


def test_namespace_brings_its_implied_objects(api: Api) -> None:
    stream = api.stream(
        "/api/v1/serviceaccounts?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    )
    api.post(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
    )
    event = stream.event()
    assert (event["type"], event["object"]["metadata"]["namespace"]) == ("ADDED", "other")
    api.patch(
        "/api/v1/namespaces/other/serviceaccounts/default", {"metadata": {"labels": {"a": "b"}}}
    )
    assert told(stream, 1) == [("MODIFIED", "default")]


def test_definition_brings_and_takes_its_api_service(api: Api) -> None:
    stream = api.stream(
        "/apis/apiregistration.k8s.io/v1/apiservices?watch=1&sendInitialEvents=false"
        "&resourceVersionMatch=NotOlderThan"
    )
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "shirts", "singular": "shirt", "kind": "Shirt"}
    group = "stable.example.com"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shirts.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.post(path, definition)
    assert told(stream, 1) == [("ADDED", f"v1.{group}")]
    api.delete(f"{path}/shirts.{group}")
    api.patch(f"{path}/shirts.{group}", {"metadata": {"finalizers": None}})
    assert told(stream, 1) == [("DELETED", f"v1.{group}")]


def test_tables_have_their_columns_in_first_event_only(api: Api) -> None:
    create(api, "a", k="v")
    create(api, "b")
    stream = api.stream(f"{CONFIG_MAPS}?watch=1", {"accept": TABLE})
    first, second = stream.event(), stream.event()
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == [
        "Name",
        "Data",
        "Age",
    ]
    assert first["object"]["rows"][0]["cells"][:2] == ["a", 1]
    assert second["object"]["kind"] == "Table"
    assert second["object"]["columnDefinitions"] is None


def test_metadata_alone(api: Api) -> None:
    create(api, "a", k="v")
    event = api.stream(f"{CONFIG_MAPS}?{WATCH_LIST}", {"accept": PARTIAL}).event()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


# --- refusals, errors in the stream


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            422,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            "watch=1&sendInitialEvents=true",
            422,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        (
            "watch=1&resourceVersion=x",
            400,
            'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
        ),
        ("watch=1&fieldSelector=data.k%3D1", 400, '"data.k" is not a known field selector'),
        ("watch=1&timeoutSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
def test_watch_that_is_not_understood_is_refused(
    api: Api, query: str, code: int, message: str
) -> None:
    answer = api.get(f"{CONFIG_MAPS}?{query}")
    assert answer.status == code
    assert message in answer.json()["message"]


def test_revision_that_is_yet_to_come_is_error_of_initial_events(api: Api) -> None:
    stream = api.stream(f"{CONFIG_MAPS}?{WATCH_LIST}&resourceVersion=99999999")
    event = stream.event()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        504,
        "Timeout",
    )
    assert "Too large resource version: 99999999" in event["object"]["message"]
    assert stream.event() is None


def test_watchers_list_again_after_index_was_removed(api: Api) -> None:
    since = create(api, "a")
    stream = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
    shutil.rmtree(api.folder / ".kubepy")
    event = stream.event()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )
    assert stream.event() is None
    late = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
    assert late.event()["object"]["code"] == 410
    listed = api.get(CONFIG_MAPS).json()
    again = api.stream(
        f"{CONFIG_MAPS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}"
    )
    create(api, "b")
    assert told(again, 1) == [("ADDED", "b")]


# --- changes by others


def test_edits_of_files_are_events(api: Api) -> None:
    create(api, "a", k="v")
    create(api, "b", k="v")
    files = api.folder / "namespaces" / "default" / "configmaps"
    stream = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={newest(api)}")
    (files / "a.yaml").write_text((files / "a.yaml").read_text().replace("k: v", "k: w"))
    event = stream.event()
    assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"k": "w"})
    (files / "b.yaml").unlink()
    assert told(stream, 1) == [("DELETED", "b")]


def test_commits_of_other_processes_are_events(api: Api) -> None:
    stream = api.stream(f"{CONFIG_MAPS}?watch=1")
    api.cluster.client.create("configmaps", config_map("a"), namespace="default")
    assert told(stream, 1) == [("ADDED", "a")]


def test_watch_goes_on_after_restart_of_server(
    new_api: Callable[..., Api], new_folder: Callable[[], Path]
) -> None:
    folder = new_folder()
    first = new_api(folder)
    since = create(first, "a")
    create(first, "b")
    create(first, "gone")
    first.delete(f"{CONFIG_MAPS}/gone")
    first.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    second = new_api(folder)
    stream = second.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
    assert told(stream, 2) == [("ADDED", "b"), ("MODIFIED", "a")]
    create(first, "c")
    assert told(stream, 1) == [("ADDED", "c")]


def test_selector_whose_matches_are_forgotten_after_restart_is_expired(
    new_api: Callable[..., Api], new_folder: Callable[[], Path]
) -> None:
    folder = new_folder()
    first = new_api(folder)
    since = create(first, "a", {"app": "x"})
    first.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    second = new_api(folder)
    stream = second.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}&labelSelector=app%3Dx")
    assert stream.event()["object"]["code"] == 410


# --- bookmarks and the end


def test_watch_ends_at_its_timeout_after_last_bookmark(api: Api) -> None:
    query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={newest(api)}"
    stream = api.stream(f"{CONFIG_MAPS}?{query}")
    create(api, "a", path="/api/v1/namespaces/kube-system/configmaps")
    bookmark = stream.event()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["resourceVersion"] == newest(api)
    assert stream.event() is None


def test_channel_of_clients_that_have_gone_is_forgotten(api: Api) -> None:
    streams = [api.stream(f"{CONFIG_MAPS}?watch=1") for _ in range(3)]
    watches = api.application.watch_cache.watches
    assert len(watches._channels) == 1
    for stream in streams:
        stream.close()
    assert not watches._channels


# --- custom resources, protobuf

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
            for name in ("v1", "v2")
        ],
    },
}


def test_custom_resource_is_in_version_of_request_and_goes_with_its_definition(api: Api) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.post(definitions, DEFINITION).status == 201
    path = "/apis/example.org/{}/namespaces/default/lamps"
    streams = [
        api.stream(f"{path.format(version)}?watch=1&allowWatchBookmarks=true")
        for version in ("v1", "v2")
    ]
    lamp = {"apiVersion": "example.org/v2", "kind": "Lamp", "metadata": {"name": "a"}, "watts": 5}
    assert api.post(path.format("v2"), lamp).status == 201
    for version, stream in zip(("v1", "v2"), streams, strict=True):
        assert stream.event()["type"] == "BOOKMARK"
        event = stream.event()
        assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", f"example.org/{version}")
        assert event["object"]["watts"] == 5
    listed = api.get(path.format("v1")).json()
    assert [item["apiVersion"] for item in listed["items"]] == ["example.org/v1"]
    assert listed["kind"] == "LampList"
    api.delete(f"{path.format('v1')}/a")
    for stream in streams:
        assert told(stream, 1) == [("DELETED", "a")]
    api.delete(f"{definitions}/lamps.example.org")
    api.patch(f"{definitions}/lamps.example.org", {"metadata": {"finalizers": None}})
    for stream in streams:
        assert stream.event() is None
    assert api.get(f"{path.format('v1')}?watch=1").status == 404


def test_protobuf_events_have_their_length_before_them(api: Api) -> None:
    since = create(api, "a", k="v")
    create(api, "b", k="w")
    accept = {"accept": "application/vnd.kubernetes.protobuf"}
    stream = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}", accept)
    piece = stream.next()
    assert piece is not None
    assert int.from_bytes(piece[:4], "big") == len(piece) - 4
    assert stream.headers["content-type"] == "application/vnd.kubernetes.protobuf;stream=watch"
    assert b"\x0a\x05ADDED" in piece
    event = protobuf.decode(piece[piece.index(b"k8s\0") :])
    assert (event["kind"], event["metadata"]["name"], event["data"]) == (
        "ConfigMap",
        "b",
        {"k": "w"},
    )


def test_yaml_is_no_stream(api: Api) -> None:
    answer = api.get(f"{CONFIG_MAPS}?watch=1", {"accept": "application/yaml"})
    assert answer.status == 406
    assert b"application/json;stream=watch" in answer.body


def test_watch_begins_while_a_file_cannot_be_read(api: Api, new_api: Callable[[Path], Api]) -> None:
    create(api, "a")
    create(api, "b")
    [path] = api.folder.rglob("b.yaml")
    text = path.read_text()
    path.write_text("{" + text)
    other = new_api(api.folder)
    assert [item["metadata"]["name"] for item in other.get(CONFIG_MAPS).json()["items"]] == ["a"]
    stream = other.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={newest(other)}")
    path.write_text(text + "\n")
    create(other, "c")
    assert told(stream, 1)[0][1] in ("b", "c")
    assert {item["metadata"]["name"] for item in other.get(CONFIG_MAPS).json()["items"]} == {
        "a",
        "b",
        "c",
    }


def test_event_of_write_is_encoded_with_its_answer(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = "?watch=1&allowWatchBookmarks=true&labelSelector=app%3Dweb"
    paths = (f"{CONFIG_MAPS}?{WATCH_LIST}", f"{CONFIG_MAPS}{labelled}")
    streams = [api.stream(path) for path in paths]
    for stream in streams:
        assert stream.event()["type"] == "BOOKMARK"
    is_answered = threading.Event()
    encoded: list[str] = []
    encode_events, encode_object = watch.encode_events, encodings.encode_object

    def encode_later(*arguments: Any) -> Any:
        assert is_answered.wait(20)
        return encode_events(*arguments)

    def note(context: Any, view: Any, obj: Any) -> bytes:
        encoded.append(obj["metadata"]["name"])
        return encode_object(context, view, obj)

    monkeypatch.setattr(watch, "encode_events", encode_later)
    monkeypatch.setattr(encodings, "encode_object", note)
    answers = [
        api.post(CONFIG_MAPS, config_map("a", {"app": "web"}, key="1")),
        api.put(f"{CONFIG_MAPS}/a", config_map("a", {"app": "web"}, key="2")),
        api.patch(f"{CONFIG_MAPS}/a", {"data": {"key": "3"}}),
    ]
    is_answered.set()
    for stream in streams:
        for answer in answers:
            assert stream.event()["object"] == answer.json()
    assert encoded == []


def test_answer_to_write_that_removes_object_is_no_event(api: Api) -> None:
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    api.post(CONFIG_MAPS, held)
    stream = api.stream(f"{CONFIG_MAPS}?watch=1")
    assert told(stream, 1) == [("ADDED", "a")]
    api.delete(f"{CONFIG_MAPS}/a")
    going = stream.event()["object"]
    assert going["metadata"]["finalizers"] == ["example.org/hold"]
    answer = api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
    assert "finalizers" not in answer.json()["metadata"]
    assert told(stream, 1) == [("DELETED", "a")]
    since = int(going["metadata"]["resourceVersion"]) - 1
    later = api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
    assert later.event()["object"] == going


def test_watch_that_is_too_slow_ends_without_error(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchcache, "MAX_EVENTS", 20)
    monkeypatch.setattr(watch, "MAX_FRAMES", 20)
    request = HttpRequest(
        "GET", CONFIG_MAPS, {"watch": ["1"], "resourceVersion": [newest(api)]}, {}
    )
    info = parse_request_info(request)
    answer = api.run(watch.watch(api.application, request, info, ADMINISTRATOR))
    first = asyncio.run_coroutine_threadsafe(anext(answer.pieces), api.loop)
    create(api, "object-0")
    assert b"object-0" in first.result(20)
    for number in range(1, 60):
        create(api, f"object-{number}")
    with pytest.raises(StopAsyncIteration):
        api.run(anext(answer.pieces))
    assert not api.application.watch_cache.watches._channels


def test_event_whose_time_is_over_is_deleted(new_api: Callable[..., Api], tmp_path: Path) -> None:
    make_cluster(tmp_path / "state", {"clock": "2026-01-01T00:00:00Z"}).close()
    api = new_api(tmp_path / "state")
    event = {
        "metadata": {"name": "a", "namespace": "default"},
        "reason": "Test",
        "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
    }
    assert api.post("/api/v1/namespaces/default/events", event).status == 201
    streams = [
        api.stream(f"/{path}/namespaces/default/events?watch=1")
        for path in ("api/v1", "apis/events.k8s.io/v1")
    ]
    for stream in streams:
        assert told(stream, 1) == [("ADDED", "a")]
    api.cluster.client.move_time_to(api.cluster.clock.now() + timedelta(seconds=3601))
    for stream in streams:
        assert told(stream, 1) == [("DELETED", "a")]
    assert api.get("/api/v1/namespaces/default/events").json()["items"] == []
