"""``-o kyaml``: all strings in double quotes, indentation without meaning, and the same values for
any YAML reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.cli.runtime.kyaml import dump
from kubepy.storage.yaml import load_all
from tests.cli.conftest import Kubepy
from tests.storage.test_yaml_dump import TEXT


def is_kept_by_upstream(text: str) -> bool:
    """Tell whether upstream's writer keeps a text: at the start of a line it escapes a carriage
    return and the like twice."""
    return "\n" not in text or not any(
        line[:1].isspace() and line[0] not in " \t" for line in text.split("\n")
    )


LINES = TEXT.filter(is_kept_by_upstream)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), LINES)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(TEXT.filter(lambda text: "<<" not in text), inner, max_size=4),
    ),
)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_kyaml_output_reads_back_the_same(value: Any) -> None:
    assert [document.object for document in load_all(dump({"value": value}))] == [{"value": value}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ([], "[]"),
        ([1, 2.5, 1e30, None, True, []], "[\n  1,\n  2.5,\n  1e+30,\n  null,\n  true,\n  [],\n]"),
        ([[1], [{}]], "[[\n  1,\n], [{}]]"),
        ([{"a": 1}, {"b": 2}], "[{\n  a: 1,\n}, {\n  b: 2,\n}]"),
        ("", '""'),
        ('say "hi" \\', r'"say \"hi\" \\"'),
        ("tab\tbell\aescape\x1bnbsp\xa0", '"tab\tbell\\aescape\\enbsp\\_"'),
        ("\x00\x01\u200b\ufeff\U000e0001", r'"\0\x01\u200b\ufeff\U000e0001"'),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_values(value: Any, text: str) -> None:
    assert dump(value) == f"---\n{text}\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("one\ntwo", '"\\\n   one\\n\\\n   two\\\n  "'),
        ("one\n", '"\\\n   one\\n\\\n  "'),
        ("  deep\nless\n\n", '"\\\n  \\  deep\\n\\\n   less\\n\\\n   \\n\\\n  "'),
        ("\n", '"\\\n   \\n\\\n  "'),
    ],
    ids=repr,
)
def test_string_of_several_lines_has_line_for_each(value: str, text: str) -> None:
    assert dump(value) == f"---\n{text}\n"


@pytest.mark.parametrize(
    "key",
    [
        "name",
        "_",
        "a-b",
        "app.kubernetes.io/name",
        "żółw",
        "x1",
        "1x",
        "inform",
        "0b2",
        "2024-02-30",
        "0xffffffffffffffff",
        "1e400",
    ],
)
def test_keys_that_stand_without_quotes(key: str) -> None:
    assert dump({key: 1}) == f"---\n{{\n  {key}: 1,\n}}\n"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "-a",
        "a-",
        ".a",
        "a b",
        "a:b",
        "y",
        "NO",
        "tRUE",
        "Null",
        "f",
        "inf",
        "i_nf",
        "NaN",
        "1",
        "1_000",
        "017",
        "0x1F",
        "0b11",
        "0o7",
        "1e5",
        "1.5",
        "0x1p-2",
        "a@b",
        "2024-1-31",
    ],
)
def test_keys_that_need_quotes(key: str) -> None:
    assert dump({key: 1}) == f'---\n{{\n  "{key}": 1,\n}}\n'


def test_key_is_never_broken() -> None:
    assert dump({"one\ntwo\tthree": 1}) == '---\n{\n  "one\\ntwo\\tthree": 1,\n}\n'


# --- commands -------------------------------------------------------------------------------------


def test_generated_resources_are_in_order_of_their_type(kubepy: Kubepy) -> None:
    made = kubepy("create", "cm", "a", "--from-literal=z=1", "--dry-run=client", "-o", "kyaml").out
    assert (
        made
        == '---\n{\n  kind: "ConfigMap",\n  apiVersion: "v1",\n  metadata: {\n    name: "a",\n  '
        "},\n"
        '  data: {\n    z: "1",\n  },\n}\n'
    )


def test_cluster_objects_are_sorted(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a", "--from-literal=z=1")
    lines = kubepy("get", "cm", "a", "-o", "KYAML").out.splitlines()
    assert [
        line.strip().partition(":")[0]
        for line in lines
        if line.startswith("  ") and line[2] not in " }"
    ] == ["apiVersion", "data", "kind", "metadata"]


def test_documents_begin_with_dashes(kubepy: Kubepy, folder: Path) -> None:
    for name in ("a", "b"):
        kubepy("create", "cm", name)
    labelled = kubepy("label", "cm", "a", "b", "x=y", "-o", "kyaml").out
    assert [line for line in labelled.splitlines() if not line.startswith(" ")] == [
        "---",
        "{",
        "}",
    ] * 2


def test_list_is_one_document(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a")
    listed = kubepy("get", "cm", "a", "b", "--ignore-not-found", "-o", "kyaml").out
    assert [document.object["kind"] for document in load_all(listed)] == ["List"]
    assert listed.startswith('---\n{\n  apiVersion: "v1",\n  items: [{\n')


@pytest.mark.parametrize("output", ["kyaml=x", "json=", "=", "kyamls"])
def test_misspelled_output_format_is_refused(kubepy: Kubepy, output: str) -> None:
    kubepy("create", "cm", "a")
    failed = kubepy("label", "cm", "a", "x=y", "-o", output)
    assert failed.err == (
        f'error: unable to match a printer suitable for the output format "{output}", allowed '
        f"formats are: go-template,"
        "go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,"
        "templatefile,yaml\n"
    )


@pytest.mark.parametrize("style", ["json", "JSON", "Yaml", "KYAML", "Name"])
def test_case_of_format_does_not_matter(kubepy: Kubepy, style: str) -> None:
    kubepy("create", "cm", "a")
    assert kubepy("get", "cm", "a", "-o", style) == kubepy("get", "cm", "a", "-o", style.lower())


def test_edited_object_may_be_kyaml(
    kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubepy("create", "cm", "a", "--from-literal=colour=red")
    editor = folder / "editor.sh"
    editor.write_text('#!/bin/sh\ncp "$1" seen; sed -i "s/red/blue/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))
    assert kubepy("edit", "cm", "a", "-o", "kyaml").out.endswith("}\n")
    seen = (folder / "seen").read_text()
    assert seen.startswith("# Please edit the object below.")
    assert '\n---\n{\n  apiVersion: "v1",\n' in seen
    assert json.loads(kubepy("get", "cm", "a", "-o", "jsonpath={.data}").out) == {"colour": "blue"}
