"""diff and apply --prune."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kubepy.cli.diff import command_words as command
from kubepy.cli.diff import masked
from tests.cli.conftest import Done, Kubepy

MANIFEST = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, labels: {set: a}}\ndata: "
    "{color: blue}\n"
)


@pytest.fixture
def pair(kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Kubepy:
    """Apply two config maps from the folder ``set``."""
    (folder / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    monkeypatch.delenv("KUBECTL_EXTERNAL_DIFF", raising=False)
    (folder / "set").mkdir()
    for name in ("one", "two"):
        (folder / "set" / f"{name}.yaml").write_text(MANIFEST.replace("NAME", name))
    kubepy("apply", "-f", "set")
    return kubepy


def changes(done: Done) -> list[str]:
    return re.findall(r"^[-+] .*", done.out, re.MULTILINE)


def test_diff_without_difference_exits_0_and_leaves_no_files(pair: Kubepy, folder: Path) -> None:
    assert pair("diff", "-f", "set") == Done("", "", 0)
    assert os.listdir(folder / "tmp") == []


def test_difference_is_status_1_and_changes_nothing(pair: Kubepy, folder: Path) -> None:
    (folder / "set" / "two.yaml").write_text(MANIFEST.replace("NAME", "two").replace("blue", "red"))
    done = pair("diff", "-f", "set")
    assert (done.status, done.err, changes(done)) == (1, "", ["-  color: blue", "+  color: red"])
    assert pair("get", "cm", "two", "-o", "jsonpath={.data.color}").out == "blue"
    assert os.listdir(folder / "tmp") == []


def test_diff_with_prune_shows_pruned_objects_as_removed(pair: Kubepy) -> None:
    done = pair(
        "diff",
        "-f",
        "set/one.yaml",
        "--prune",
        "-l",
        "set=a",
        "--prune-allowlist=core/v1/ConfigMap",
    )
    assert done.status == 1
    assert "v1.ConfigMap.default.two" in done.out
    assert all(line.startswith("-") for line in done.out.splitlines()[4:])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-f", "absent"], 'error: the path "absent" does not exist\n'),
        (
            ["-f", "set", "--force-conflicts"],
            "error: --force-conflicts only works with --server-side\n",
        ),
        (
            ["-f", "set", "--all"],
            "error: unknown flag: --all\nSee 'kubepy diff -h' for help and examples\n",
        ),
        (["set"], "error: Unexpected args: [set]\nSee 'kubepy diff -h' for help and examples\n"),
    ],
)
def test_trouble_is_status_2(pair: Kubepy, words: list[str], error: str) -> None:
    assert pair("diff", *words) == Done("", error, 2)


def test_manifest_of_older_version_is_no_conflict(pair: Kubepy, folder: Path) -> None:
    (folder / "old.yaml").write_text(pair("get", "cm", "one", "-o", "yaml").out)
    pair("patch", "cm", "one", "-p", '{"data": {"color": "red"}}')
    done = pair("diff", "-f", "old.yaml")
    assert (done.status, done.err, changes(done)[:2]) == (
        1,
        "",
        ["-  color: red", "+  color: blue"],
    )


def test_conflict_on_server_is_told_once_more(pair: Kubepy, folder: Path) -> None:
    (folder / "set" / "one.yaml").write_text(MANIFEST.replace("NAME", "one").replace("blue", "red"))
    done = pair("diff", "-f", "set", "--server-side", "--field-manager=other")
    log, error = done.err.splitlines()
    assert log.endswith(
        "diff.go:723] Object (/v1, Kind=ConfigMap: one) keeps changing, diffing without lock"
    )
    assert error.startswith("Error from server (Conflict): Apply failed with 1 conflict")
    assert (done.out, done.status) == ("", 2)


def test_diff_with_prune_shows_managers_of_pruned_objects(pair: Kubepy) -> None:
    done = pair(
        "diff",
        "-f",
        "set/one.yaml",
        "--prune",
        "-l",
        "set=a",
        "--prune-allowlist=core/v1/ConfigMap",
    )
    assert "-      f:data:\n-        .: {}\n-        f:color: {}\n" in done.out


def test_external_program_that_is_not_there(pair: Kubepy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_EXTERNAL_DIFF", "no-such-diff")
    assert pair("diff", "-f", "set") == Done(
        "", 'error: failed to run "no-such-diff": executable file not found in $PATH\n', 2
    )


def test_external_diff_gets_plain_words_only() -> None:
    assert command("diff -u1 ; $(x) --color=always", "a", "b") == [
        "diff",
        "a",
        "b",
        "-u1",
        "--color=always",
    ]
    assert command("", "a", "b") == ["diff", "-u", "-N", "a", "b"]


def test_values_of_secrets_show_only_whether_they_differ() -> None:
    before, after = (
        {"data": {"a": "1", "b": "2", "c": "3"}},
        {"data": {"a": "1", "b": "9", "d": "4"}},
    )
    assert masked(before, after) == (
        {"data": {"a": "***", "b": "*** (before)", "c": "***"}},
        {"data": {"a": "***", "b": "*** (after)", "d": "***"}},
    )
    assert masked(None, {"kind": "Secret"}) == (None, {"kind": "Secret"})


def test_prune_deletes_what_was_applied_and_is_no_more_in_files(pair: Kubepy) -> None:
    pair("create", "cm", "stray")
    pair("label", "cm", "stray", "set=a")
    done = pair(
        "apply",
        "-f",
        "set/one.yaml",
        "--prune",
        "-l",
        "set=a",
        "--prune-allowlist=core/v1/ConfigMap",
    )
    assert done == Done("configmap/one unchanged\nconfigmap/two pruned\n", "", 0)
    assert pair("get", "cm", "-o", "name").out == "configmap/one\nconfigmap/stray\n"
    assert "Endpoints is deprecated" in pair("apply", "-f", "set/one.yaml", "--prune", "--all").err


def test_file_that_fails_prunes_nothing(pair: Kubepy, folder: Path) -> None:
    (folder / "set" / "two.yaml").write_text(
        "kind: Nonsense\napiVersion: v1\nmetadata: {name: x}\n"
    )
    assert pair("apply", "-f", "set", "--prune", "--all").status == 1
    assert pair("get", "cm", "-o", "name").out == "configmap/one\nconfigmap/two\n"


def test_unknown_fields_are_warned_of(pair: Kubepy, folder: Path) -> None:
    for name in ("one", "three"):
        (folder / "odd.yaml").write_text(MANIFEST.replace("NAME", name) + "colour: red\n")
        assert pair("diff", "-f", "odd.yaml").err == 'Warning: unknown field "colour"\n', name
