"""Manifests: which files are read, what is in them, and how their errors name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

INVALID = 'error validating "STDIN": error validating data'
ADVICE = "if you choose to ignore these errors, turn validation off with --validate=false"


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def created(kubepy: Kubepy, *words: str, stdin: str = "") -> list[str]:
    done = kubepy("create", "--dry-run=client", "-o", "name", *words, stdin=stdin)
    assert (done.err, done.status) == ("", 0)
    return [line.removeprefix("configmap/") for line in done.out.splitlines()]


@pytest.fixture
def manifests(folder: Path) -> Path:
    for name in ("b.yaml", "a.yml", "notes.txt", "deep/c.yaml"):
        path = folder / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(config_map(path.stem))
    return folder / "set"


def test_a_folder_means_its_manifests_by_name(bare: Kubepy, manifests: Path) -> None:
    assert created(bare, "-f", "set") == ["a", "b"]
    assert created(bare, "-f", "set", "-R") == ["a", "b", "c"]


def test_a_file_that_is_named_is_read_whatever_it_is_called(bare: Kubepy, manifests: Path) -> None:
    assert created(bare, "-f", "set/notes.txt,set/b.yaml") == ["notes", "b"]
    assert created(bare, "-f", "set/*.y*") == ["a", "b"]


def test_lists_are_taken_apart_and_typed_ones_tell_the_kind(bare: Kubepy) -> None:
    typed = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: one}\n- metadata: {name: two}\n"
    assert created(bare, "-f", "-", stdin=typed) == ["one", "two"]


def test_json_documents_follow_each_other(bare: Kubepy) -> None:
    objects = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "xy"]
    stream = "\n".join(json.dumps(obj) for obj in objects)
    assert created(bare, "-f", "-", stdin=stream) == ["x", "y"]


def test_what_is_no_json_may_still_be_yaml(bare: Kubepy) -> None:
    assert created(bare, "-f", "-", stdin='{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x",}}') == [
        "x"]


@pytest.mark.parametrize(("text", "why"), [
    ('{"apiVersion": "v1"', "error parsing STDIN: unexpected EOF"),
    ("a: b: c\n", "error parsing STDIN: error converting YAML to JSON: yaml: mapping values are not allowed in this "
     "context"),
    ("just words\n", f"{INVALID}: invalid object to validate; {ADVICE}"),
    ("kind: ConfigMap\n", f"{INVALID}: apiVersion not set; {ADVICE}"),
    ("apiVersion: v1\nkind: Thing\nmetadata: {name: x}\n",
     'resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for kind "Thing" in version '
     '"v1"\nensure CRDs are installed first'),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {on: yes}}\n",
     'unable to decode "STDIN": json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type '
     "string"),
    ("# nothing\n", "no objects passed to create"),
])
def test_what_cannot_be_an_object_is_said_in_kubectls_words(bare: Kubepy, text: str, why: str) -> None:
    assert bare("create", "-f", "-", "--dry-run=client", stdin=text) == Done("", f"error: {why}\n", 1)


def test_the_namespace_of_a_manifest_must_be_that_of_the_flag(bare: Kubepy) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: south}\n"
    done = bare("create", "-f", "-", "-n", "north", "--dry-run=client", stdin=text)
    assert done == Done("", 'error: the namespace from the provided object "south" does not match the namespace '
                        "\"north\". You must pass '--namespace=south' to perform this operation.\n", 1)


def test_a_selector_filters_what_files_hold(bare: Kubepy) -> None:
    text = config_map("plain") + "---\n" + config_map("chosen").replace("chosen", "chosen, labels: {a: b}")
    assert created(bare, "-f", "-", "-l", "a=b", stdin=text) == ["chosen"]


def test_a_file_that_is_missing_stops_everything(kubepy: Kubepy, manifests: Path) -> None:
    assert kubepy("apply", "-f", "set/b.yaml", "-f", "absent.yaml") == Done(
        "", 'error: the path "absent.yaml" does not exist\n', 1)
    assert kubepy("get", "cm", "b").status == 1


def test_an_item_of_a_list_that_does_not_say_what_it_is_keeps_all_of_it_out(kubepy: Kubepy) -> None:
    text = ("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
            "- {metadata: {name: b}}\n")
    assert kubepy("create", "-f", "-", stdin=text) == Done(
        "", 'error: error validating "STDIN": error validating data: [apiVersion not set, kind not set]; if you choose '
        "to ignore these errors, turn validation off with --validate=false\n", 1)
