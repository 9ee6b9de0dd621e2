"""Commands that read let the controllers do what is due: what they write then, and when they write
nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubepy.controlplane import MANAGER_LOCK, manager_lock
from kubepy.controlplane.open import open_cluster
from kubepy.storage import FolderError
from kubepy.storage.folder import locks, reader
from tests.cli.conftest import Kubepy, run

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
READY = ("get", "deploy", "web", "-o", "jsonpath={.status.readyReplicas}")


@pytest.fixture
def web(folder: Path) -> Kubepy:
    """A function that runs a command in a cluster whose controllers have yet to see a
    Deployment."""
    assert run("init", "--nodes=2").status == 0
    assert run("apply", "-f", "-", stdin=WEB).status == 0
    return run


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of objects, by their paths."""
    return {str(path): path.read_bytes() for path in (folder / "state").rglob("*.yaml")}


@pytest.mark.parametrize(
    "words",
    [
        ("get", "pods"),
        ("get", "pods", "-A", "-o", "name"),
        ("describe", "deploy", "web"),
        ("events",),
        ("get", "--raw", "/api/v1/namespaces/default/pods"),
        ("get", "-f", "web.yaml"),
        ("rollout", "history", "deploy/web"),
        ("label", "pods", "--all", "a=b"),
        ("delete", "pods", "-l", "app=web"),
        ("set", "image", "deploy/web", "web=web:2"),
        ("cluster-info", "dump"),
        ("scale", "deploy/web", "--current-replicas=2", "--replicas=3"),
        ("rollout", "status", "deploy/web", "--watch=false"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_command_that_reads_finds_work_of_controllers_done(
    web: Kubepy, folder: Path, words: tuple[str, ...]
) -> None:
    (folder / "web.yaml").write_text(WEB)
    assert web(*words).status == 0
    assert web(*READY, "--reconcile=never").out == "2"


def test_read_that_finds_nothing_due_writes_nothing(web: Kubepy, folder: Path) -> None:
    assert web(*READY).out == "2"
    before, index = content(folder), (folder / "state/.kubepy/index.db").stat()
    for words in (("get", "pods"), ("describe", "pods"), ("get", "all", "-A"), ("events",)):
        assert web(*words).status == 0
    after = (folder / "state/.kubepy/index.db").stat()
    assert content(folder) == before
    assert (after.st_mtime_ns, after.st_size) == (index.st_mtime_ns, index.st_size)


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "-f", "web.yaml"),
        ("fsck",),
        ("__complete", "get", "pods", ""),
        ("delete", "deploy", "web", "--dry-run=client"),
        ("label", "deploy", "web", "a=b", "--dry-run=server"),
        ("scale", "deploy/web", "--replicas=5", "--dry-run=client"),
        ("apply", "-f", "web.yaml", "--dry-run=server"),
        ("apply", "-f", "web.yaml", "--server-side", "--dry-run=server"),
        ("set", "image", "deploy/web", "web=web:2", "--dry-run=client"),
        ("config", "view"),
        ("explain", "pods"),
        ("drain", "node-1", "--dry-run=client"),
        ("rollout", "restart", "deploy/web", "--dry-run=client"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_command_that_never_writes_leaves_work_undone(
    web: Kubepy, folder: Path, words: tuple[str, ...]
) -> None:
    (folder / "web.yaml").write_text(WEB)
    before = content(folder)
    web(*words)
    assert content(folder) == before


@pytest.mark.parametrize("way", ["flag", "environment", "settings"])
def test_reconcile_never_leaves_work_to_controller(
    web: Kubepy, folder: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "environment":
        monkeypatch.setenv("KUBEPY_RECONCILE", "never")
    if way == "settings":
        (folder / "state/kubepy.yaml").write_text("formatVersion: 1\nreconcile: never\n")
    flags = ("--reconcile=never",) if way == "flag" else ()
    before = content(folder)
    assert web("get", "pods", *flags).err == "No resources found in default namespace.\n"
    assert content(folder) == before
    assert web(*READY, "--reconcile=auto").out == "2"


def test_wrong_reconcile_setting_is_error_that_names_field(web: Kubepy, folder: Path) -> None:
    (folder / "state/kubepy.yaml").write_text("formatVersion: 1\nreconcile: sometimes\n")
    assert (
        web("get", "pods").err
        == 'error: kubepy.yaml: reconcile: "sometimes" is not one of auto, never\n'
    )
    (folder / "state/kubepy.yaml").write_text("formatVersion: 1\nreconciles: never\n")
    assert web("get", "pods").err.startswith(
        "error: kubepy.yaml: reconciles: unknown setting: must be one of clock, "
    )


@contextmanager
def held(folder: Path, name: str) -> Iterator[None]:
    """Hold a lock of the state folder in another thread, as another process would."""
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        lock = locks.Lock(str(folder / "state/.kubepy" / name))
        lock.acquire(5.0)
        taken.set()
        release.wait(20)
        lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(5)
    try:
        yield
    finally:
        release.set()
        thread.join()


@pytest.mark.parametrize("name", [locks.LOCK, MANAGER_LOCK])
def test_read_beside_holder_of_lock_shows_what_stands(web: Kubepy, folder: Path, name: str) -> None:
    before = content(folder)
    with held(folder, name):
        shown = web("get", "pods")
    assert (shown.out, shown.status) == ("", 0)
    assert content(folder) == before
    assert web(*READY).out == "2"


@pytest.mark.parametrize(
    "words", [("delete", "pod", "web", "--ignore-not-found"), ("get", "deploy", "web")]
)
def test_command_beside_manager_does_not_look_at_all_files(
    web: Kubepy, folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(folder, MANAGER_LOCK):
        monkeypatch.setattr(reader.Reader, "look_for_all", None)
        monkeypatch.setattr(reader.Reader, "look_for", None)
        assert web(*words).status == 0


@pytest.mark.parametrize("name", ["index.lock", "MERGE_HEAD", "rebase-merge", "rebase-apply"])
def test_read_amid_work_of_git_writes_nothing(web: Kubepy, folder: Path, name: str) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    under_way = folder / ".git" / name
    under_way.touch()
    before = content(folder)
    assert web("get", "pods").out == ""
    assert content(folder) == before
    under_way.unlink()
    assert web(*READY).out == "2"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_is_read_as_it_is(web: Kubepy, folder: Path) -> None:
    folders = [folder / "state", *(path for path in (folder / "state").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    try:
        shown = web("get", "deploy", "-o", "name")
    finally:
        for path in folders:
            path.chmod(0o700)
    assert (shown.out, shown.err, shown.status) == ("deployment.apps/web\n", "", 0)


def test_failure_of_controllers_to_write_is_told(
    web: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise FolderError("state: No space left on device")

    monkeypatch.setattr("kubepy.controlplane.manager.Manager.run_until_settled", fail)
    shown = web("get", "deploy", "-o", "name")
    assert (shown.out, shown.status) == ("deployment.apps/web\n", 0)
    assert shown.err == "note: the controllers could not work: state: No space left on device\n"


def test_read_does_not_skip_delay_that_cluster_takes(web: Kubepy) -> None:
    web("create", "ns", "lab")
    web("delete", "ns", "lab", "--wait=false")
    for _ in range(2):
        assert web("get", "ns", "lab", "-o", "jsonpath={.status.phase}").out == "Terminating"


def test_first_apply_leaves_work_to_reads_and_second_finds_it_done(folder: Path) -> None:
    assert run("init", "--nodes=2").status == 0
    run("apply", "-f", "-", stdin=WEB)
    assert run("get", "rs", "-o", "name", "--reconcile=never").out == ""
    run("apply", "-f", "-", stdin=WEB.replace("web:1", "web:2"))
    assert len(run("get", "rs", "-o", "name").out.split()) == 2
    assert run("rollout", "undo", "deploy/web").status == 0


def test_watch_shows_what_controllers_do_meanwhile(web: Kubepy) -> None:
    web("get", "pods")
    shown: list[str] = []

    def watch() -> None:
        shown.extend(web("get", "pods", "-o", "name", "-w", "--request-timeout=4s").out.split())

    thread = threading.Thread(target=watch)
    thread.start()
    time.sleep(0.5)
    web("scale", "deploy/web", "--replicas=5")
    thread.join()
    assert len(set(shown)) == 5


def test_controller_watch_waits_for_burst_of_other_command(web: Kubepy, folder: Path) -> None:
    cluster = open_cluster(folder / "state")
    script = "from kubepy.cli.program import run; run()"
    with manager_lock(cluster) as is_lost:
        assert is_lost is not None
        process = subprocess.Popen(
            [sys.executable, "-c", script, "controller", "--watch"],
            text=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
    cluster.close()
    try:
        deadline = time.monotonic() + 20
        while "--watch" not in str(cluster.store.holder(MANAGER_LOCK)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_must_exist_refuses_to_make_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = (
        'error: no cluster in "state": make one with "kubepy init", or name another folder with '
        "--state or "
        "$KUBEPY_STATE\n"
    )
    assert run("create", "ns", "x", "--must-exist") == ("", message, 1)
    monkeypatch.setenv("KUBEPY_MUST_EXIST", "1")
    for words in (
        ("create", "ns", "x"),
        ("create", "ns", "x", "--dry-run=server"),
        ("run", "a", "--image=b"),
    ):
        assert run(*words) == ("", message, 1)
    assert not (folder / "state").exists()
    assert run("init").status == 0
    assert run("create", "ns", "x").status == 0


def test_watch_shows_pods_before_they_run_and_while_they_terminate(web: Kubepy) -> None:
    web("get", "pods")
    shown: list[str] = []

    def watch() -> None:
        shown.extend(
            web("get", "pods", "-w", "--no-headers", "--request-timeout=4s").out.splitlines()
        )

    thread = threading.Thread(target=watch)
    thread.start()
    time.sleep(0.5)
    web("set", "image", "deploy/web", "web=web:2", "--reconcile=never")
    thread.join()
    assert {line.split()[2] for line in shown} >= {"Running", "Pending", "Terminating"}


def test_watch_ends_when_its_reader_is_gone(web: Kubepy) -> None:
    web("get", "pods")
    script = f"{sys.executable} -m kubepy get pods -w --reconcile=never | grep -m1 Running"
    done = subprocess.run(
        ["timeout", "20", "bash", "-c", script], text=True, capture_output=True, check=True
    )
    assert "1/1" in done.stdout


def test_controllers_that_never_rest_do_not_keep_read_waiting(
    web: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubepy.controlplane.manager.READ_WRITES", 0)
    assert web("get", "deploy", "-o", "name").out == "deployment.apps/web\n"
    assert web(*READY, "--reconcile=never").out == ""


def test_wait_in_folder_that_cannot_be_locked_looks_on(
    web: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    web("get", "pods")

    def refuse(*_: object) -> None:
        raise FolderError(
            "state/.kubepy belongs to another user: Permission denied"
        ) from PermissionError(13, "x")

    monkeypatch.setattr("kubepy.storage.folder.store.FolderStore.hold", refuse)
    assert (
        web("wait", "deploy/web", "--for=condition=Available").out
        == "deployment.apps/web condition met\n"
    )
    waited = web("wait", "deploy/web", "--for=jsonpath={.spec.replicas}=7", "--timeout=1s")
    assert waited.err == (
        "no controller is running (state/.kubepy belongs to another user: Permission denied): "
        "waiting for another process to run one\n"
        "error: timed out waiting for the condition on deployments/web\n"
    )


def test_note_about_pod_names_command_that_helps(folder: Path) -> None:
    assert run("init", "--state=lab", "--nodes=2").status == 0
    run("delete", "node", "node-1", "--state=lab")
    resources = '{"requests":{"cpu":"64"},"limits":{"cpu":"64","example.com/gpu":"2"}}'
    run(
        "run",
        "big",
        "--image=x",
        "--state=lab",
        f'--overrides={{"spec":{{"containers":[{{"name":"big","image":"x",'
        f'"resources":{resources}}}]}}}}',
    )
    note = run("controller", "--once", "-q", "--state=lab").err
    assert note.startswith(
        "note: pod default/big is Pending: 0/1 nodes are available: 1 Insufficient cpu"
    )
    node, _, command = note.partition(": make another with echo '")[2].partition("' | kubepy ")
    assert run(*command.split(), stdin=node).out == "node/node-1 created\n"
    assert (
        run("get", "pod", "big", "--state=lab", "-o", "jsonpath={.spec.nodeName}").out == "node-1"
    )
