"""``cp`` in containers that are fakes, and ``run`` that attaches to one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy
from tests.kubelet import fakemachine
from tests.kubelet.fakemachine import FakeContainers

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: nginx}, {name: d, image: nginx}]}
"""
DEFAULTED = 'Defaulted container "c" out of: c, d\n'


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> FakeContainers:
    return fakemachine.install(monkeypatch)


@pytest.fixture
def kubepy(bare: Kubepy, containers: FakeContainers) -> Kubepy:
    bare("init", "--nodes=1", "--clock=2026-01-01T00:00:00Z")
    assert bare("apply", "-f", "-", stdin=POD).status == 0
    assert bare("controller", "--once", "-q").status == 0
    return bare


# --- cp -------------------------------------------------------------------------------------------


def test_cp_into_pod_writes_file(kubepy: Kubepy, containers: FakeContainers, folder: Path) -> None:
    (folder / "here").write_bytes(b"\0content")
    assert kubepy("cp", "here", "web:/srv/there", "-c", "d") == Done("", "", 0)
    assert containers.machine("web", "d").files == {"/srv/there": b"\0content"}


def test_cp_into_folder_of_pod_keeps_name(
    kubepy: Kubepy, containers: FakeContainers, folder: Path
) -> None:
    (folder / "site" / "sub").mkdir(parents=True)
    (folder / "site" / "sub" / "index.html").write_text("hi")
    assert kubepy("cp", "site", "default/web:/tmp") == Done("", DEFAULTED, 0)
    assert containers.machine("web", "c").files == {"/tmp/site/sub/index.html": b"hi"}


def test_cp_from_pod_writes_files(kubepy: Kubepy, containers: FakeContainers, folder: Path) -> None:
    files = containers.machine("web", "c").files
    files |= {"/data/a": b"1", "/data/sub/b": b"2"}
    assert kubepy("cp", "-c", "c", "web:/data", "copied") == Done("", "", 0)
    assert (folder / "copied" / "a").read_bytes() == b"1"
    assert (folder / "copied" / "sub" / "b").read_bytes() == b"2"
    assert kubepy("cp", "-c", "c", "web:/data/a", "one") == Done("", "", 0)
    assert (folder / "one").read_bytes() == b"1"


def test_cp_of_missing_file_fails_as_tar(kubepy: Kubepy) -> None:
    assert kubepy("cp", "-c", "c", "web:/none", "x") == Done(
        "",
        "tar: none: Cannot stat: No such file or directory\ncommand terminated with exit code 2\n",
        2,
    )


def test_cp_of_member_outside_of_target_is_skipped(
    kubepy: Kubepy, containers: FakeContainers, folder: Path
) -> None:
    containers.machine("web", "c").files |= {"/data/../../evil": b"1", "/data/ok": b"2"}
    done = kubepy("cp", "-c", "c", "web:/data", "copied")
    assert done.err == ('warning: file "../evil" is outside target destination, skipping\n')
    assert (folder / "copied" / "ok").read_bytes() == b"2"
    assert not (folder.parent / "evil").exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("a", "source and destination are required"),
        ("a b", "one of src or dest must be a remote file specification"),
        ("x:/a y:/b", "one of src or dest must be a local file specification"),
        ("x: b", "filepath can not be empty"),
        (":a b", "filespec must match the canonical format: [[namespace/]pod:]file/path"),
        ("a/b/c:d b", "filespec must match the canonical format: [[namespace/]pod:]file/path"),
        ("none web:/x", "none doesn't exist in local filesystem"),
    ],
)
def test_cp_of_wrong_specification_is_error(kubepy: Kubepy, words: str, error: str) -> None:
    assert kubepy("cp", *words.split()) == Done("", f"error: {error}\n", 1)


# --- run ------------------------------------------------------------------------------------------

PROMPT = (
    "All commands and output from this session will be recorded in container logs, including "
    "credentials and sensitive information passed through the command prompt.\n"
    "If you don't see a command prompt, try pressing enter.\n"
)
RUN = ("run", "job", "--image=i", "--restart=Never", "-i", "--rm")


def test_run_attached_prints_log_and_removes_pod(kubepy: Kubepy) -> None:
    done = kubepy(
        *RUN, "--annotations=kubepy.dev/runs-for=5s", "--annotations=kubepy.dev/log=hello"
    )
    assert done == Done('hello\npod "job" deleted from default namespace\n', PROMPT, 0)
    assert kubepy("get", "pod", "job").status == 1


def test_run_attached_ends_as_container(kubepy: Kubepy) -> None:
    done = kubepy(
        *RUN,
        "-q",
        "--annotations=kubepy.dev/runs-for=5s",
        "--annotations=kubepy.dev/exit-code=7",
    )
    assert (done.out, done.status) == ("", 7)
    assert done.err.startswith("pod default/job terminated (Error)\n")


def test_run_of_pod_that_ends_at_once_prints_its_log(kubepy: Kubepy) -> None:
    done = kubepy(
        *RUN, "--annotations=kubepy.dev/outcome=succeeded", "--annotations=kubepy.dev/log=hello"
    )
    assert done == Done('hello\npod "job" deleted from default namespace\n', "", 0)


def test_run_attached_gives_up_on_pod_that_does_not_run(kubepy: Kubepy) -> None:
    done = kubepy(*RUN, "--annotations=kubepy.dev/outcome=image-pull-backoff")
    assert done == Done(
        'pod "job" deleted from default namespace\n',
        "error: timed out waiting for the condition\n",
        1,
    )
