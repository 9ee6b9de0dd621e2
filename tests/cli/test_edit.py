"""edit: the editor is a script, and its changes are applied or refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kubepy.cli.runtime.editing import editor_command as command
from kubepy.cli.runtime.editing import without_comment_lines
from tests.cli.conftest import Done, Kubepy

MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint}\ndata: {color: blue}\n"


@pytest.fixture
def paint(kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Kubepy:
    (folder / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    (folder / "cm.yaml").write_text(MANIFEST)
    kubepy("apply", "-f", "cm.yaml")
    return kubepy


def left_over(folder: Path) -> list[str]:
    return os.listdir(folder / "tmp")


def test_change_is_patched_and_file_removed(
    paint: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/color..blue/color:\\ red/")
    assert paint("edit", "cm", "paint", "--output-patch") == Done(
        'Patch: {"data":{"color":"red"}}\nconfigmap/paint edited\n', "", 0
    )
    assert paint("edit", "cm", "paint") == Done("", "Edit cancelled, no changes made.\n", 0)
    assert left_over(folder) == []


def test_file_is_opened_again_with_what_was_wrong(
    paint: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = folder / "editor.sh"
    script.write_text(
        'cp "$1" "$0.$(ls "$0".* 2>/dev/null | wc -l)"\n'
        'grep -q labels "$1" || echo "  labels: {a: \'!\'}" >> "$1"\n'
    )
    monkeypatch.setenv("KUBE_EDITOR", f"sh {script}")
    done = paint("edit", "cm", "paint")
    assert done.err.startswith(
        'error: configmaps "paint" is invalid\nA copy of your changes has been stored to "'
    )
    assert (
        '# configmaps "paint" was not valid:\n# * metadata.labels: Invalid value: "!"'
        in (folder / "editor.sh.1").read_text()
    )
    assert len(left_over(folder)) == 1


def test_object_that_is_gone_meanwhile(
    paint: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = folder / "editor.sh"
    script.write_text(
        'rm state/namespaces/default/configmaps/paint.yaml\nsed -i s/blue/red/ "$1"\n'
    )
    monkeypatch.setenv("KUBE_EDITOR", f"sh {script}")
    done = paint("edit", "cm", "paint")
    kept = folder / "tmp" / left_over(folder)[0]
    assert done == Done(
        "",
        'error: configmaps "paint" could not be found on the server\n'
        f'The edits you made on deleted resources have been saved to "{kept}"\n',
        1,
    )


def test_edit_of_comments_only_is_cancelled(
    paint: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBE_EDITOR", "truncate -s0")
    done = paint("edit", "cm", "paint")
    assert done.err.startswith('error: configmaps "paint" is invalid\n')
    assert done.err.endswith("\nerror: Edit cancelled, no valid changes were saved.\n")


@pytest.mark.parametrize(
    ("editor", "error"),
    [
        ("false", 'error: there was a problem with the editor "false"\n'),
        ("/no/such", 'error: unable to launch the editor "/no/such"\n'),
    ],
)
def test_editor_that_fails(
    paint: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch, editor: str, error: str
) -> None:
    monkeypatch.setenv("KUBE_EDITOR", editor)
    assert paint("edit", "cm", "paint") == Done("", error, 1)
    assert left_over(folder) == []


def test_edit_last_applied_changes_nothing_but_annotation(
    paint: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/blue/green/")
    assert paint("apply", "edit-last-applied", "cm", "paint").out == "configmap/paint edited\n"
    assert "color: green" in paint("apply", "view-last-applied", "cm/paint").out
    assert paint("get", "cm", "paint", "-o", "jsonpath={.data}").out == '{"color":"blue"}'


def test_create_edit_creates_what_editor_made(
    paint: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/paint/glaze/")
    assert paint("create", "--edit", "-f", "cm.yaml").out == "configmap/glaze created\n"


def test_editor_is_called_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/zsh")
    calls = []
    for editor in ("vim", "code -w", 'my "editor" -x'):
        monkeypatch.setenv("KUBE_EDITOR", editor)
        calls.append(command("/f")[0])
    assert calls == [["vim", "/f"], ["code", "-w", "/f"], ["/bin/zsh", "-c", 'my "editor" -x "/f"']]


def test_lines_that_are_comments_go() -> None:
    assert without_comment_lines("# a\nb: 1\n  # c\n#!x\n") == "b: 1\n#!x\n"


# --- what comes back ------------------------------------------------------------------------------


def test_saved_configuration_holds_managers_too(
    kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubepy("create", "cm", "paint", "--from-literal=color=blue")
    monkeypatch.setenv("EDITOR", "sed -i s/blue/red/")
    assert kubepy("edit", "cm", "paint", "--save-config").out == "configmap/paint edited\n"
    saved = json.loads(kubepy("apply", "view-last-applied", "cm", "paint", "-o", "json").out)
    assert [entry["manager"] for entry in saved["metadata"]["managedFields"]] == ["kubectl-create"]


@pytest.mark.parametrize(
    ("editor", "error"),
    [
        ('sh -c "exit 3"', 'there was a problem with the editor "/bin/bash -c sh -c \\"exit 3\\""'),
        ("no-such-editor -x", 'unable to launch the editor "no-such-editor -x"'),
    ],
)
def test_editor_that_fails_is_named_quoted(
    kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch, editor: str, error: str
) -> None:
    kubepy("create", "cm", "paint")
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("EDITOR", editor)
    assert kubepy("edit", "cm", "paint") == Done("", f"error: {error}\n", 1)


def test_object_of_another_uid_was_not_there_before(
    kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubepy("create", "cm", "paint")
    monkeypatch.setenv("EDITOR", "sed -i -e s/uid:.*/uid:\\ other/ -e /Timestamp/d -e /resourceV/d")
    done = kubepy("edit", "cm", "paint")
    assert done.err.splitlines()[1] == (
        "error: no original object found for "
        '&unstructured.Unstructured{Object:map[string]interface {}{"apiVersion":"v1'
        '", "kind":"ConfigMap", "metadata":map[string]interface {}{"name":"paint", '
        '"namespace":"default", "uid":"other"'
        "}}}"
    )


def test_edit_reads_first_document_only(
    kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubepy("create", "cm", "paint")
    (folder / "more.sh").write_text("printf -- '---\\nkind: ConfigMap\\n' >> $1\n")
    monkeypatch.setenv("EDITOR", "sh more.sh")
    assert kubepy("edit", "cm", "paint") == Done("", "Edit cancelled, no changes made.\n", 0)


def test_edit_of_several_objects_validates_a_list(
    kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        kubepy("create", "cm", name, "--from-literal=color=blue")
    monkeypatch.setenv("EDITOR", "sed -i /metadata/!s/data:/dta:/")
    done = kubepy("edit", "cm", "one", "two")
    assert done.err.splitlines()[0] == 'error: configmaps "one" is invalid'
    assert (
        kubepy("edit", "cm", "one", "two", "--validate=ignore").out
        == "configmap/one edited\nconfigmap/two edited\n"
    )
