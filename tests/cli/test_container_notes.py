"""Notes on stderr about what is not known, or not acted on, of containers."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kubepy.cli.main import main
from tests.cli.conftest import Kubepy

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: pair}
spec:
  selector: {matchLabels: {app: pair}}
  template:
    metadata: {labels: {app: pair}}
    spec:
      containers:
      - {name: one, image: "acme/one:1"}
      - {name: two, image: "acme/two:1", readinessProbe: {exec: {command: [is-ready]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "acme/import:1"}
"""
HINT = "(kubelet.rules can say more)"
ALL = (
    'note: nothing is known of the images "acme/one:1" and "acme/two:1": their containers just run '
    f"{HINT}\n"
    'note: nothing is known of image "acme/import:1": its containers end with 0 after a moment '
    f"{HINT}\n"
    f'note: nothing is known of program "is-ready": its probes and hooks succeed {HINT}\n'
)


class TerminalText(io.StringIO):
    """The text of a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def modelled(kubepy: Kubepy, folder: Path) -> Kubepy:
    """A function that runs a command in a cluster that models containers."""
    (folder / "state" / "kubepy.yaml").write_text(
        "formatVersion: 1\nkubelet: {containers: modelled}\n"
    )
    (folder / "pair.yaml").write_text(MANIFEST)
    return kubepy


def on_terminal(*words: str) -> str:
    err = TerminalText()
    assert main(words, stdin=io.StringIO(), stdout=io.StringIO(), stderr=err) == 0
    return err.getvalue()


def test_unknown_program_of_known_image_is_said_once(modelled: Kubepy) -> None:
    done = modelled("create", "job", "j", "--image=busybox", "--", "frob")
    assert done.err == (
        'note: nothing is known of program "frob": its containers end with 0 after a moment '
        f"{HINT}\n"
    )
    assert modelled("label", "job", "j", "a=b").err == ""


def test_unknown_images_are_not_said_to_programs(modelled: Kubepy) -> None:
    assert modelled("apply", "-f", "pair.yaml").err == ""


def test_notes_all_says_unknown_images_of_all_documents_in_lines(
    modelled: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEPY_NOTES", "all")
    assert modelled("apply", "-f", "pair.yaml").err == ALL
    assert modelled("apply", "-f", "pair.yaml").err == ""  # unchanged
    assert modelled("scale", "deploy/pair", "--replicas=2").err == ""
    assert modelled("patch", "deploy/pair", "-p", '{"spec":{"replicas":1}}').err == ""


def test_terminal_is_told_unknown_images_in_its_width(modelled: Kubepy) -> None:
    text = on_terminal("apply", "-f", "pair.yaml")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == " ".join(ALL.splitlines())


def test_notes_none_says_nothing(modelled: Kubepy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEPY_NOTES", "none")
    assert on_terminal("apply", "-f", "pair.yaml") == ""
    assert modelled("create", "job", "j", "--image=busybox", "--", "frob").err == ""


def test_doubtful_tag_is_said_by_command_and_object(modelled: Kubepy) -> None:
    assert modelled("create", "deployment", "web", "--image=nginx").err == ""
    done = modelled("set", "image", "deploy/web", "nginx=grafana/grafana:no-such-tag")
    assert done.err == (
        'note: nothing tells here whether image "grafana/grafana:no-such-tag" exists: it is '
        'pulled all the same ("pull: fails" in kubelet.rules says otherwise)\n'
    )
    modelled("run", "typo", "--image=grafana/grafana:typo")
    image = "grafana/grafana:typo"
    doubt = f'container "typo": nothing tells whether the image "{image}" exists: it is pulled'
    assert f"{doubt} all the same\n" in modelled("describe", "pod", "typo").out


def test_dry_run_says_nothing(modelled: Kubepy) -> None:
    words = ("create", "job", "j", "--image=busybox", "--dry-run=server", "--", "frob")
    assert modelled(*words).err == ""


def test_notes_of_objects_before_error_are_said(modelled: Kubepy) -> None:
    manifest = modelled("run", "a", "--image=busybox", "--dry-run=client", "-o=yaml", "--", "frob")
    done = modelled("create", "-f", "-", stdin=f"{manifest.out}---\n{manifest.out}")
    assert done.status == 1
    assert 'nothing is known of program "frob"' in done.err


def test_simple_cluster_says_that_commands_of_jobs_are_not_acted_on(simple: Kubepy) -> None:
    done = simple("create", "job", "j", "--image=busybox", "--", "false")
    assert done.err == (
        "note: commands are not acted on: containers of Jobs end with 0 after a moment "
        '("kubelet: {containers: modelled}" in kubepy.yaml acts on them)\n'
    )


def test_simple_cluster_says_on_terminal_that_commands_are_not_acted_on(simple: Kubepy) -> None:
    words = ("run", "loop", "--image=busybox", "--command", "--", "false")
    assert " ".join(on_terminal(*words).split()) == (
        "note: commands are not acted on: containers just run "
        '("kubelet: {containers: modelled}" in kubepy.yaml acts on them)'
    )
    assert (
        'note: container "loop": commands are not acted on in this cluster\n'
        in simple("why", "pod/loop").out
    )
