"""``delete``: confirmation, objects left out, order of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

GONE = 'Error from server (NotFound): {}configmaps "{}" not found\n'
QUESTION = (
    "You are about to delete the following {} resource(s):\n{}Do you want to continue? (y/N): "
)


@pytest.fixture
def three(kubepy: Kubepy) -> Kubepy:
    for name in ("a", "b", "c"):
        kubepy("create", "configmap", name)
    return kubepy


@pytest.mark.parametrize("answer", ["y\n", "Y\n", " y \n", "y"])
def test_asking_first_deletes_on_yes(three: Kubepy, answer: str) -> None:
    assert three("delete", "cm", "a", "b", "-i", stdin=answer) == Done(
        QUESTION.format(2, "configmap/a\nconfigmap/b\n")
        + 'configmap "a" deleted from default namespace\n'
        'configmap "b" deleted from default namespace\n',
        "",
        0,
    )


@pytest.mark.parametrize("answer", ["n\n", "yes\n", "\n", ""])
def test_asking_first_deletes_nothing_on_anything_else(three: Kubepy, answer: str) -> None:
    assert three("delete", "cm", "a", "-i", stdin=answer) == Done(
        QUESTION.format(1, "configmap/a\n") + "deletion is cancelled\n", "", 0
    )


def test_asking_first_leaves_out_what_is_not_there_when_told_to(three: Kubepy) -> None:
    assert three("delete", "cm", "none", "-i", "--ignore-not-found", stdin="y\n") == Done(
        QUESTION.format(1, "configmap/none\n"), "", 0
    )


def test_files_that_cannot_be_read_are_reported_after_objects_of_others(
    three: Kubepy, folder: Path
) -> None:
    (folder / "files").mkdir()
    (folder / "files" / "a.yaml").write_text("{apiVersion: v1, metadata: {name: a}}")
    (folder / "files" / "b.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: none}}"
    )
    (folder / "files" / "c.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
    )
    assert three("delete", "-f", "./files/") == Done(
        'configmap "c" deleted from default namespace\n',
        GONE.format('error when deleting "files/b.yaml": ', "none")
        + 'unable to decode "files/a.yaml": Object '
        '\'Kind\' is missing in \'{"apiVersion":"v1","metadata":{"name":"a"}}\'\n',
        1,
    )
