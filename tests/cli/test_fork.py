"""``kubepy fork``: an independent copy of a cluster, which goes on where the original was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage.folder import compare
from kubepy.storage.folder import settings as folder_settings
from kubepy.storage.folder.store import FolderStore
from tests.cli.conftest import Done, Kubepy, run
from tests.stores import fork_of

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {kubepy.dev/ready-after: 30s}
    spec:
      containers: [{name: web, image: "nginx:1"}]
"""


@pytest.fixture
def rollout(folder: Path) -> Path:
    """A cluster with time of its own, in which a rollout is under way."""
    assert run("init", "--nodes=2", "--clock=2026-01-01T00:00:00Z", "--seed=7").status == 0
    assert run("apply", "-f", "-", stdin=DEPLOYMENT).status == 0
    assert run("rollout", "status", "deploy/web").status == 0
    assert run("set", "image", "deploy/web", "web=nginx:2").status == 0
    assert run("clock", "advance", "10s").status == 0
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".kubepy" not in path.parts
    }


def test_rollout_under_way_finishes_in_both_alike(rollout: Path) -> None:
    assert run("fork", "copy") == Done("cluster forked to copy\n", "", 0)
    assert files_of(rollout / "copy") == files_of(rollout / "state")
    ends = [
        (
            run("--state", state, "rollout", "status", "deploy/web"),
            run("--state", state, "clock"),
            run("--state", state, "get", "pods,events", "-o", "yaml"),
            files_of(rollout / state),
        )
        for state in ("copy", "state")
    ]
    assert ends[0] == ends[1]
    assert "successfully rolled out" in ends[0][0].out
    assert run("--state=copy", "fsck") == Done("copy: no problems\n", "", 0)


def test_fork_and_original_do_not_see_each_other(rollout: Path) -> None:
    before = files_of(rollout / "state")
    run("fork", "copy")
    run("--state=copy", "scale", "deploy/web", "--replicas=1")
    run("--state=copy", "rollout", "status", "deploy/web")
    run("--state=copy", "clock", "advance", "1h")
    assert files_of(rollout / "state") == before
    run("delete", "deploy", "web")
    assert (
        run("--state=copy", "get", "deploy", "web", "-o", "jsonpath={.status.readyReplicas}").out
        == "1"
    )


def test_first_get_in_a_fork_parses_no_yaml(rollout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    original = compare.parse

    def parse(data: bytes) -> Any:
        parsed.append(data)
        return original(data)

    for module in (compare, folder_settings):
        monkeypatch.setattr(module, "parse", parse)
    run("fork", "copy")
    parsed.clear()
    assert (
        run("--state=copy", "get", "pods", "-o", "name").out
        == run("get", "pods", "-o", "name").out
        != ""
    )
    assert parsed == []


def test_fork_of_a_fork_of_a_context(rollout: Path) -> None:
    run("config", "set-context", "lab", "--cluster=./state", "--namespace=kube-system")
    assert run("--context=lab", "fork", "one").status == 0
    assert run("--state=one", "fork", "deep/two").out == "cluster forked to deep/two\n"
    assert not (rollout / "one/.kubepy/config").exists()
    assert run("--state=deep/two", "get", "deploy", "-o", "name").out == "deployment.apps/web\n"


def test_git_folder_stays_behind(rollout: Path) -> None:
    subprocess.run(["git", "init", "-q", "state"], check=True)
    assert run("fork", "copy").status == 0
    assert not (rollout / "copy/.git").exists()


USAGE = (
    "error: one or two places are required: kubepy fork [SOURCE] TARGET\n"
    "See 'kubepy fork -h' for help and examples\n"
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), USAGE),
        (("a", "b", "c"), USAGE),
        (
            ("a", "b"),
            'error: no cluster in "a": make one with "kubepy init", or name another folder with '
            "--state or $KUBEPY_STATE\n",
        ),
        (
            ("memory:",),
            'error: "memory:" is no place for a copy: a cluster in memory would be gone with the '
            "command\n",
        ),
        (("",), USAGE),
        (("full",), "error: full is not empty\n"),
        (("state",), "error: state is a cluster already\n"),
        (("state/copy",), "error: state/copy is inside the state folder state\n"),
        (("full/file",), "error: full/file is there already, and is not a folder\n"),
        (("full/file/copy",), "error: full/file/copy: cannot be made: File exists\n"),
    ],
)
def test_fork_that_cannot_be_made_says_why_in_one_line(
    kubepy: Kubepy, folder: Path, words: tuple[str, ...], message: str
) -> None:
    (folder / "full").mkdir()
    (folder / "full/file").touch()
    before = files_of(folder)
    assert kubepy("fork", *words) == Done("", message, 1)
    assert files_of(folder) == before


def test_fork_without_cluster_fails(bare: Kubepy, folder: Path) -> None:
    assert bare("fork", "copy").err.startswith('error: no cluster in "state"')
    assert not (folder / "copy").exists()


HALF_WAY = """
import os, signal, sys
from kubepy.cli.main import main
from kubepy.storage.folder import copying
original, count = copying.copy_file, 0
def copy_file(*paths):
    global count
    count += 1
    if count == 3:
        os.kill(os.getpid(), int(sys.argv[1]))
    return original(*paths)
copying.copy_file = copy_file
sys.exit(main(["fork", "copy"]))
"""


@pytest.mark.parametrize("words", [("create", "configmap", "a"), ("init",), ("apply", "-f", "-")])
def test_half_that_a_killed_fork_left_is_made_no_cluster(
    rollout: Path, words: tuple[str, ...]
) -> None:
    assert subprocess.run([sys.executable, "-c", HALF_WAY, "9"]).returncode == -9
    left = sorted((rollout / "copy").rglob("*"))
    message = (
        "copy is an unfinished copy of a cluster, which a 'kubepy fork' that was killed has left: "
        "remove that "
        "folder, and fork again\n"
    )
    done = run("--state=copy", *words, stdin=DEPLOYMENT)
    assert (done.out, done.err[-len(message) :], done.status) == ("", message, 1)
    assert run("fork", "copy") == Done("", f"error: {message}", 1)
    assert sorted((rollout / "copy").rglob("*")) == left


def test_fork_that_is_terminated_leaves_nothing(rollout: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HALF_WAY, "15"], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 143)
    assert not (rollout / "copy").exists()
    assert run("fork", "copy").status == 0
    assert not (rollout / "copy" / folder_settings.UNFINISHED_FORK).exists()


def test_folders_complete_the_word_after_fork(kubepy: Kubepy) -> None:
    assert kubepy("__complete", "fork", "").out == ":16\n"


WRITER = """
import sys
from kubepy.storage import Key
from kubepy.storage.folder.store import FolderStore
store = FolderStore(sys.argv[1])
for number in range(100000):
    with store.transaction() as transaction:
        for name in ("a", "b"):
            key = Key("configmaps", "default", name)
            obj = {"metadata": {"name": name, "namespace": "default"}, "data": {"n": number}}
            (transaction.update if transaction.get(key) else transaction.create)(key, obj)
        store.set_values(settings={"seed": number})
    print(number, flush=True)
"""


def test_forks_beside_a_writer_are_of_one_moment(folder: Path) -> None:
    FolderStore.initialize(folder / "state", {})
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, "state"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == "0\n"
        store = FolderStore(folder / "state")
        for number in range(8):
            fork = fork_of(store)
            store.copy_to(str(folder / f"copy-{number}"))
            copy = FolderStore(folder / f"copy-{number}")
            for each in (fork, copy):
                values = {obj["data"]["n"] for obj in each.list("configmaps").objects}
                assert values == {each.settings()["seed"]}
            assert copy.check() == []
            copy.close()
        store.close()
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()
