"""Lists at a revision, and lists in chunks."""

from __future__ import annotations

import base64
import json
import shutil
import time
from typing import Any

import pytest

from kubepy.server import watchcache
from kubepy.storage.folder.store import FolderStore

from .conftest import Answer, Api
from .test_watch import CONFIG_MAPS, config_map, create, newest


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def token(**values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


@pytest.fixture
def full(api: Api) -> Api:
    """A server with the ConfigMaps a to e."""
    for name in "abcde":
        create(api, name, {"app": name} if name in "ace" else None)
    return api


def test_chunks_are_of_one_snapshot(full: Api) -> None:
    first = full.get(f"{CONFIG_MAPS}?limit=2")
    meta = first.json()["metadata"]
    assert names(first) == ["a", "b"]
    assert meta["remainingItemCount"] == 3
    create(full, "bb")
    full.delete(f"{CONFIG_MAPS}/c")
    full.patch(f"{CONFIG_MAPS}/d", {"data": {"k": "later"}})
    second = full.get(f"{CONFIG_MAPS}?limit=2&continue={meta['continue']}")
    assert names(second) == ["c", "d"]
    assert "data" not in second.json()["items"][1]
    assert second.json()["metadata"]["resourceVersion"] == meta["resourceVersion"]
    assert second.json()["metadata"]["remainingItemCount"] == 1
    third = full.get(f"{CONFIG_MAPS}?limit=2&continue={second.json()['metadata']['continue']}")
    assert names(third) == ["e"]
    assert third.json()["metadata"] == {"resourceVersion": meta["resourceVersion"]}


def test_files_are_looked_at_for_the_first_chunk_only(
    full: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look_in = FolderStore.look_in

    def note(store: FolderStore, resource: str, namespace: str | None = None) -> Any:
        looks.append(resource)
        return look_in(store, resource, namespace)

    monkeypatch.setattr(FolderStore, "look_in", note)
    meta = full.get(f"{CONFIG_MAPS}?limit=2").json()["metadata"]
    assert names(full.get(f"{CONFIG_MAPS}?limit=2&continue={meta['continue']}")) == ["c", "d"]
    assert looks == ["configmaps"]
    full.get(f"{CONFIG_MAPS}?limit=2")
    assert looks == ["configmaps", "configmaps"]


def test_chunk_of_all_namespaces_goes_on_after_namespace_and_name(full: Api) -> None:
    create(full, "a", path="/api/v1/namespaces/kube-system/configmaps")
    collected, query = [], "limit=4"
    while query:
        answer = full.get(f"/api/v1/configmaps?{query}")
        collected += names(answer)
        continued = answer.json()["metadata"].get("continue")
        query = f"limit=1&continue={continued}" if continued else ""
    assert collected == ["a", "b", "c", "d", "e", "a"]


def test_chunks_of_selectors_do_not_say_how_many_remain(full: Api) -> None:
    answer = full.get(f"{CONFIG_MAPS}?limit=2&labelSelector=app")
    assert names(answer) == ["a", "c"]
    meta = answer.json()["metadata"]
    assert "remainingItemCount" not in meta
    assert names(
        full.get(f"{CONFIG_MAPS}?limit=2&labelSelector=app&continue={meta['continue']}")
    ) == ["e"]


def test_limit_means_nothing_for_any_revision(full: Api) -> None:
    assert len(names(full.get(f"{CONFIG_MAPS}?limit=2&resourceVersion=0"))) == 5


def test_list_at_exact_revision(full: Api) -> None:
    revision = newest(full)
    full.delete(f"{CONFIG_MAPS}/a")
    for query in (
        f"resourceVersion={revision}&resourceVersionMatch=Exact",
        f"resourceVersion={revision}&limit=10",
    ):
        answer = full.get(f"{CONFIG_MAPS}?{query}")
        assert names(answer) == ["a", "b", "c", "d", "e"]
        assert answer.json()["metadata"]["resourceVersion"] == revision
    answer = full.get(f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=NotOlderThan")
    assert names(answer) == ["b", "c", "d", "e"]


def test_list_not_older_than_revision_yet_to_come_times_out(full: Api) -> None:
    answer = full.get(f"{CONFIG_MAPS}?resourceVersion=99999999")
    assert answer.status == 504
    assert answer.json()["details"]["retryAfterSeconds"] == 1
    assert answer.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert (
        f"Too large resource version: 99999999, current: {newest(full)}" in answer.json()["message"]
    )


def test_expired_token_comes_with_one_that_goes_on_with_present_objects(full: Api) -> None:
    continued = full.get(f"{CONFIG_MAPS}?limit=2").json()["metadata"]["continue"]
    shutil.rmtree(full.folder / ".kubepy")
    full.get(CONFIG_MAPS)
    answer = full.get(f"{CONFIG_MAPS}?limit=2&continue={continued}")
    assert answer.status == 410
    status = answer.json()
    assert status["reason"] == "Expired"
    assert "use the continue token in this response" in status["message"]
    assert names(full.get(f"{CONFIG_MAPS}?continue={status['metadata']['continue']}")) == [
        "c",
        "d",
        "e",
    ]


def test_exact_revision_that_is_forgotten_is_expired(
    full: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchcache, "MAX_EVENTS", 3)
    revision = newest(full)
    for name in "fghi":
        create(full, name)
    answer = full.get(f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert answer.status == 410
    assert answer.json()["message"] == "The resourceVersion for the provided list is too old."
    assert (
        full.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={revision}").event()["object"]["code"]
        == 410
    )


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            "resourceVersion=x",
            400,
            'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: '
            'parsing "x": invalid syntax',
        ),
        (
            "resourceVersionMatch=Exact",
            422,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            'is forbidden for resourceVersion "0"',
        ),
        (
            "continue=x*",
            400,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte "
            "1",
        ),
        (
            f"continue={token(v='v2', rv=1, start='a')}",
            400,
            "invalid continue token: continue key is not valid: server "
            "does not recognize this encoded version v2",
        ),
        (
            f"continue={token(v='meta.k8s.io/v1', start='a')}",
            400,
            "incorrect encoded start resourceVersion",
        ),
        (
            f"continue={token(v='meta.k8s.io/v1', rv=1)}",
            400,
            "encoded start key empty (version meta.k8s.io/v1)",
        ),
        (
            f"continue={token(v='meta.k8s.io/v1', rv=1, start='../x')}",
            400,
            "continue key is not valid: ../x",
        ),
        (
            f"continue={token(v='meta.k8s.io/v1', rv=1, start='a')}&resourceVersion=5",
            400,
            "specifying resource version is not allowed when using continue",
        ),
    ],
)
def test_list_that_is_not_understood_is_refused(
    api: Api, query: str, code: int, message: str
) -> None:
    answer = api.get(f"{CONFIG_MAPS}?{query}")
    assert answer.status == code
    assert message in answer.json()["message"]


def test_edited_file_is_in_next_list(full: Api) -> None:
    file = full.folder / "namespaces" / "default" / "configmaps" / "a.yaml"
    file.unlink()
    assert names(full.get(CONFIG_MAPS)) == ["b", "c", "d", "e"]


def test_file_that_cannot_be_object_is_left_out_with_warning(full: Api) -> None:
    file = full.folder / "namespaces" / "default" / "configmaps" / "a.yaml"
    file.write_text("{")
    answer = full.get(CONFIG_MAPS)
    assert names(answer) == ["b", "c", "d", "e"]
    assert "a.yaml" in answer.headers["warning"]


def test_items_of_built_in_kinds_do_not_repeat_their_kind(full: Api) -> None:
    body = full.get(CONFIG_MAPS).json()
    assert body["kind"] == "ConfigMapList"
    assert "kind" not in body["items"][0]
    assert config_map("a")["data"] == {}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fieldSelector=spec.nodeName%3Dn1", ["a"]),
        ("fieldSelector=spec.nodeName!%3Dn1", ["b", "c"]),
        ("fieldSelector=spec.nodeName%3D", ["c"]),
        ("labelSelector=app%3Dn1", ["b"]),
        ("labelSelector=app+in+(n1)", ["b"]),
        ("labelSelector=app+in+(n1,n2)", ["b", "c"]),
        ("labelSelector=app!%3Dn1", ["a", "c"]),
        ("labelSelector=app%3Dn2&fieldSelector=spec.nodeName%3Dn1", []),
        ("labelSelector=app%3D", ["a"]),
    ],
)
def test_selected_pods_have_the_value_in_the_field_that_is_meant(
    api: Api, query: str, expected: list[str]
) -> None:
    path = "/api/v1/namespaces/default/pods"
    for name, app, node in (("a", "", "n1"), ("b", "n1", "n2"), ("c", "n2", "")):
        spec = {
            "containers": [{"name": "c", "image": "n1"}],
            **({"nodeName": node} if node else {}),
        }
        created = api.post(path, {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec})
        assert created.status == 201, created.body
    assert names(api.get(f"{path}?{query}")) == expected


def test_list_of_custom_resources_shows_new_defaults(api: Api) -> None:
    crds, boats = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/x.io/v1/boats"
    properties: dict[str, Any] = {"spec": {"type": "object"}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    crd = {
        "metadata": {"name": "boats.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [version],
        },
    }
    assert api.post(crds, crd).status == 201
    boat = {
        "apiVersion": "x.io/v1",
        "kind": "Boat",
        "metadata": {"name": "ada"},
        "spec": {},
    }
    assert api.post(boats, boat).status == 201
    assert [item["spec"] for item in api.get(boats).json()["items"]] == [{}]

    properties["spec"]["properties"] = {"flag": {"type": "string", "default": "red"}}
    assert api.patch(f"{crds}/boats.x.io", {"spec": crd["spec"]}).status == 200
    assert [item["spec"] for item in api.get(boats).json()["items"]] == [{"flag": "red"}]
    assert api.get(f"{boats}/ada").json()["spec"] == {"flag": "red"}


def test_token_expires_five_minutes_after_a_newer_revision(
    full: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(watchcache.Compaction, "now", lambda self: now)
    first = full.get(f"{CONFIG_MAPS}?limit=2").json()["metadata"]
    page = f"{CONFIG_MAPS}?limit=2&continue={first['continue']}"
    now += 1000  # nothing has changed: the revision is still the newest
    assert full.get(page).status == 200
    create(full, "dd")
    full.get(CONFIG_MAPS)
    now += 295
    assert full.get(page).status == 200
    now += 10
    expired = full.get(page)
    assert (expired.status, expired.json()["reason"]) == (410, "Expired")

    token = expired.json()["metadata"]["continue"]
    going_on = full.get(f"{CONFIG_MAPS}?limit=2&continue={token}")
    assert names(going_on) == ["c", "d"]
    metadata = going_on.json()["metadata"]
    assert metadata["resourceVersion"] == newest(full) != first["resourceVersion"]
    assert metadata["remainingItemCount"] == 2
    last = full.get(f"{CONFIG_MAPS}?limit=2&continue={metadata['continue']}")
    assert names(last) == ["dd", "e"]
    assert last.json()["metadata"] == {"resourceVersion": metadata["resourceVersion"]}
