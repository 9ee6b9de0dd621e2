"""Objects and logs in the files of a source."""

from __future__ import annotations

import json

import pytest

from kubepy.importing.errors import SourceError
from kubepy.importing.layouts import PodLog
from tests.importing.conftest import file_of, read

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
START = "==== START logs for container c of pod shop/web-1 ====\n"
END = "==== END logs for container c of pod shop/web-1 ====\n"


def names(text: str, path: str = "source.yaml") -> list[tuple[str, str]]:
    content = read(file_of(text, path))
    return [(obj.object["kind"], obj.object["metadata"]["name"]) for obj in content.objects]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [MAP, OTHER]}),
        json.dumps(MAP) + "\n" + json.dumps(OTHER),
        f"{json.dumps(MAP)}\n---\n# between\n---\n{json.dumps(OTHER)}\n",
        json.dumps([MAP, OTHER]),
        json.dumps([{"kind": "List", "items": [MAP]}, OTHER]),
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n"
        "- metadata: {name: b}\n",
    ],
)
def test_documents_and_lists_give_their_objects(text: str) -> None:
    assert names(text) == [("ConfigMap", "a"), ("ConfigMap", "b")]


@pytest.mark.parametrize("text", ["", "# nothing\n", "just text", "- 1\n- 2\n", "a: 1\n", "[]"])
def test_text_without_objects_gives_none(text: str) -> None:
    assert names(text) == []


def test_empty_list_of_a_dump_is_no_object() -> None:
    assert names('{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": null}') == []


def test_custom_kind_that_ends_in_list_is_an_object() -> None:
    text = "{apiVersion: example.org/v1, kind: WhiteList, metadata: {name: a}, items: [x]}"
    assert names(text) == [("WhiteList", "a")]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("bundle/cluster-resources/pods/shop.json", "Pod"),
        ("bundle/cluster-resources/pods/services.json", "Pod"),
        ("bundle/cluster-resources/nodes.json", "Node"),
        ("bundle/cluster-resources/pvcs/shop.json", "PersistentVolumeClaim"),
        ("bundle/cluster-resources/pod-disruption-budgets/shop.json", "PodDisruptionBudget"),
        ("bundle/cluster-resources/storage-classes.json", "StorageClass"),
        ("bundle/cluster-resources/ingress/shop.json", "Ingress"),
    ],
)
def test_array_without_kind_has_that_of_its_folder(path: str, kind: str) -> None:
    assert names('[{"metadata": {"name": "a"}}]', path) == [(kind, "a")]


def test_array_without_namespace_has_that_of_its_file() -> None:
    content = read(file_of('[{"metadata": {"name": "a"}}]', "cluster-resources/pods/shop.json"))
    assert content.objects[0].object["metadata"]["namespace"] == "shop"


def test_array_in_an_unknown_folder_is_left_out() -> None:
    assert names('[{"metadata": {"name": "a"}}]', "host-collectors/cpu.json") == []


@pytest.mark.parametrize("text", ["a: [1", "{", '{"a": 1', "a: b: c", "[1, 2"])
def test_named_file_that_is_no_yaml_is_an_error_with_its_name(text: str) -> None:
    with pytest.raises(SourceError, match=r"^source.yaml: ") as caught:
        read(file_of(text))
    assert "\n" not in str(caught.value)


def test_unreadable_file_of_a_folder_is_listed() -> None:
    content = read(
        file_of("a: [1", "bad.yaml", is_named=False),
        file_of("not: [read", "notes.txt", is_named=False),
        file_of(json.dumps(MAP), "good.yaml", is_named=False),
    )
    assert len(content.objects) == 1
    assert [line.partition(":")[0] for line in content.unread] == ["bad.yaml"]


def test_marked_logs_are_taken_out_of_a_dump() -> None:
    text = f"{json.dumps(MAP)}\n{START}one\n{{two\n{END}{json.dumps(OTHER)}\n"
    content = read(file_of(text))
    assert [obj.object["metadata"]["name"] for obj in content.objects] == ["a", "b"]
    assert content.logs == [PodLog("shop", "web-1", "c", "one\n{two\n")]


@pytest.mark.parametrize(
    ("path", "log"),
    [
        (
            "quay-io/namespaces/shop/pods/web-1/c/c/logs/current.log",
            PodLog("shop", "web-1", "c", "one\n"),
        ),
        (
            "quay-io/namespaces/shop/pods/web-1/c/c/logs/previous.log",
            PodLog("shop", "web-1", "c", "one\n", is_previous=True),
        ),
        ("b/cluster-resources/pods/logs/shop/web-1/c.log", PodLog("shop", "web-1", "c", "one\n")),
        (
            "b/cluster-resources/pods/logs/shop/web-1/c-previous.log",
            PodLog("shop", "web-1", "c", "one\n", is_previous=True),
        ),
    ],
)
def test_log_is_known_by_its_place(path: str, log: PodLog) -> None:
    content = read(file_of("one\n", path, is_named=False))
    assert (content.logs, content.objects, content.unread) == ([log], [], [])


def test_log_of_a_cluster_info_dump_is_known_by_its_marks() -> None:
    content = read(file_of(f"{START}one\n{END}", "dump/shop/web-1/logs.txt", is_named=False))
    assert content.logs == [PodLog("shop", "web-1", "c", "one\n")]


def test_long_log_keeps_its_end() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    content = read(file_of(text, "pods/logs/shop/web-1/c.log", is_named=False))
    log = content.logs[0].text
    assert log.startswith("line ")
    assert log.endswith("line 99999\n")
    assert len(log) <= 256 * 1024
