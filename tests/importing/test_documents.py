"""Objects and logs in the files of a source."""

from __future__ import annotations

import json

import pytest

from kubepy.importing.errors import SourceError
from kubepy.importing.files import SourceFile
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


@pytest.mark.parametrize("text", ["", "# nothing\n", "- 1\n- 2\n", "a: 1\n", "[]"])
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


CONFIG = """\
apiVersion: v1
items:
- apiVersion: v1
  data:
    text: some words
  kind: ConfigMap
  metadata:
    name: a
- apiVersion: v1
  data:
    other: |
      one
      two
  kind: ConfigMap
  metadata:
    name: b
kind: List
metadata:
  resourceVersion: ""
"""


@pytest.mark.parametrize("length", range(len("apiVersion: v1\n"), CONFIG.index("kind: List") + 8))
def test_list_that_is_cut_is_an_error(length: int) -> None:
    with pytest.raises(SourceError, match=r"^source.yaml: "):
        read(file_of(CONFIG[:length]))


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\ndata:\n  a: one\n",
        "apiVersion: v1\ndata:\n  a: one\nkind: Conf",
        f"{CONFIG}---\n{CONFIG[:120]}",
    ],
)
def test_document_that_is_cut_is_an_error(text: str) -> None:
    with pytest.raises(SourceError, match=r"^source.yaml: is cut: it ends before the "):
        read(file_of(text))


def test_file_of_a_folder_that_is_cut_is_listed_and_nothing_of_it_is_taken() -> None:
    content = read(
        file_of(CONFIG[:120], "cut.yaml", is_named=False),
        file_of(f"{json.dumps(MAP)}\n{{", "cut.json", is_named=False),
    )
    assert content.objects == []
    assert [line.partition(":")[0] for line in content.unread] == ["cut.yaml", "cut.json"]


def test_other_yaml_files_of_a_folder_are_not_cut() -> None:
    content = read(
        file_of("apiVersion: v2\nname: web\n", "Chart.yaml", is_named=False),
        file_of("items: [{a: 1}]\n", "values.yaml", is_named=False),
        file_of("apiVersion: v1\nkind: Config\nusers: []\n", "config.yaml", is_named=False),
    )
    assert content.unread == []


STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "message": "pods is forbidden"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<!DOCTYPE html>\n<html>", "is an HTML page"),
        (
            "Error from server (Forbidden): pods is forbidden: User\nmore",
            "holds no objects: Error from server (Forbidden): pods is forbidden: User",
        ),
        (json.dumps(STATUS), "holds an error: pods is forbidden"),
        ('["nodes is forbidden"]', "holds an error: nodes is forbidden"),
        ("just text", "holds words, and no objects: just text"),
    ],
)
def test_answer_in_the_place_of_objects_is_listed_with_its_reason(text: str, reason: str) -> None:
    content = read(file_of(text, "pods.json", is_named=False))
    assert content.without_objects == [f"pods.json: {reason}"]
    assert (content.objects, content.unread) == ([], [])
    with pytest.raises(SourceError, match=r"^source.yaml: ") as caught:
        read(file_of(text))
    assert str(caught.value) == f"source.yaml: {reason}"


def test_empty_file_is_listed() -> None:
    content = read(file_of("", "pods.json", is_named=False))
    assert content.without_objects == ["pods.json: is empty"]


def test_utf_16_of_powershell_is_read() -> None:
    data = json.dumps(MAP).encode("utf-16")
    content = read(SourceFile("a.json", "a.json", lambda: data, is_named=True))
    assert [obj.object["metadata"]["name"] for obj in content.objects] == ["a"]


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
