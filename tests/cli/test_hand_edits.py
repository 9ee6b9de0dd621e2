"""Edits of a workload's file: its pods follow, however it was edited, and ``rollout status`` never
reports on old pods.

The table of cases: kind x way of editing x controllers watching or not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.open import open_cluster
from kubepy.storage import FolderError, LockTimeoutError
from tests.cli.conftest import Kubepy, run
from tests.copies import copy_with_index

KINDS = {
    "plain": "daemonsets.apps",
    "surge": "daemonsets.apps",
    "web": "deployments.apps",
    "db": "statefulsets.apps",
}
TEMPLATE = """
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: c, image: "app:1"}]}
"""
SPECS = {
    "plain": "kind: DaemonSet\nmetadata: {name: plain}\nspec:",
    "surge": "kind: DaemonSet\nmetadata: {name: surge}\nspec:\n"
    "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
    "web": "kind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2",
    "db": "kind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 2\n  serviceName: db",
}
MANIFESTS = "---\n".join(
    f"apiVersion: apps/v1\n{spec}{TEMPLATE.replace('NAME', name)}" for name, spec in SPECS.items()
)
DONE = re.compile("successfully rolled out|rolling update complete|partitioned roll out complete")


class Scene:
    """A cluster at app:3 in a git repository. HEAD~ has app:1; the branch ``other`` continues from
    there with app:2, and so has the same generation."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.workload = f"{KINDS[name]}/{name}"
        self.path = f"state/namespaces/default/{KINDS[name]}/{name}.yaml"
        self.file = folder / self.path
        self.name = name

    def git(self, *words: str) -> None:
        git(self.folder, *words)

    def edited(self) -> str:
        return self.file.read_text().replace("app:3", "app:2")

    def images(self) -> set[str]:
        """Return the images of the pods that are not being deleted."""
        template = (
            "{{range .items}}{{if not .metadata.deletionTimestamp}}"
            "{{(index .spec.containers 0).image}} {{end}}{{end}}"
        )
        done = run(
            "get",
            "pods",
            "-l",
            f"app={self.name}",
            "-o",
            f"go-template={template}",
            "--reconcile=never",
        )
        assert done.status == 0, done.err
        return set(done.out.split())


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all workloads, in the state in which each test begins."""
    folder = tmp_path_factory.mktemp("history")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("KUBEPY_STATE", raising=False)
        patch.delenv("KUBEPY_RECONCILE", raising=False)
        run("init", "--nodes=2")
        run("apply", "-f", "-", stdin=MANIFESTS)
        settle()
        git(folder, "init", "-q", "-b", "main")
        commit(folder, "one")
        git(folder, "checkout", "-q", "-b", "other")
        roll("app:2")
        commit(folder, "two")
        git(folder, "checkout", "-q", "main")
        shutil.rmtree(folder / "state/.kubepy")  # a clone starts from the generation in the file
        roll("app:3")
        commit(folder, "three")
    return folder


def settle() -> None:
    assert run("controller", "--once", "-q").status == 0


def roll(image: str) -> None:
    for name, kind in KINDS.items():
        assert run("set", "image", f"{kind}/{name}", f"c={image}").status == 0
    settle()


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest, history: Path, folder: Path) -> Scene:
    copy_with_index(history, folder)
    found = Scene(folder, request.param)
    assert found.images() == {"app:3"}
    return found


# --- ways of editing a file; each returns the image that it brings --------------------------------


def write_in_place(scene: Scene) -> str:
    text = scene.edited()
    with scene.file.open("r+") as file:
        file.truncate()
        file.write(text)
    return "app:2"


def write_beside_and_rename(scene: Scene) -> str:
    beside = scene.file.with_name(".new.swp")
    beside.write_text(scene.edited())
    beside.replace(scene.file)
    return "app:2"


def sed(scene: Scene) -> str:
    subprocess.run(["sed", "-i", "s/app:3/app:2/", scene.file], check=True)
    return "app:2"


def checkout_older(scene: Scene) -> str:
    scene.git("checkout", "-q", "HEAD~", "--", scene.path)
    return "app:1"


def checkout_other_branch(scene: Scene) -> str:
    scene.git("checkout", "-q", "other", "--", scene.path)
    return "app:2"


def merge(scene: Scene) -> str:
    """Take the other branch's file, which has the same generation."""
    scene.git("merge", "-q", "-s", "ours", "--no-commit", "other")
    scene.git("checkout", "-q", "other", "--", scene.path)
    scene.git("commit", "-qm", "merged")
    return "app:2"


def rebase(scene: Scene) -> str:
    """Rebase a clone with an edit onto the newer history, and pull the result in one step, since
    controllers that watch may write between two commands of git."""
    clone = scene.folder / "clone"
    git(scene.folder, "clone", "-q", ".", str(clone))
    git(clone, "checkout", "-q", "-b", "topic")
    (clone / scene.path).write_text(scene.edited())
    git(clone, "commit", "-qam", "edited by hand")
    git(clone, "checkout", "-q", "main")
    (clone / "notes").write_text("meanwhile\n")
    commit(clone, "four")
    git(clone, "rebase", "-q", "main", "topic")
    scene.git("pull", "-q", "--ff-only", str(clone), "topic")
    return "app:2"


def copy_of_older_version(scene: Scene) -> str:
    older = scene.folder / "older.yaml"
    older.write_bytes(
        subprocess.check_output(["git", "show", f"HEAD~:{scene.path}"], cwd=scene.folder)
    )
    os.utime(older, (1_700_000_000, 1_700_000_000.123456789))
    subprocess.run(["cp", "-p", older, scene.file], check=True)
    return "app:1"


def same_size_and_time(scene: Scene) -> str:
    """Write the file so that size, inode and mtime stay as they were (``touch -r``)."""
    before = scene.file.stat()
    text = scene.edited()
    with scene.file.open("r+") as file:
        file.write(text)
    os.utime(scene.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = scene.file.stat()
    assert (after.st_size, after.st_ino, after.st_mtime_ns) == (
        before.st_size,
        before.st_ino,
        before.st_mtime_ns,
    )
    return "app:2"


WAYS: list[Callable[[Scene], str]] = [
    write_in_place,
    write_beside_and_rename,
    sed,
    checkout_older,
    rebase,
    merge,
    checkout_other_branch,
    copy_of_older_version,
    same_size_and_time,
]


# --- the table ------------------------------------------------------------------------------------


@contextmanager
def watching(folder: Path) -> Iterator[None]:
    """Run the controllers in a thread, as ``controller --watch`` does in its own process."""
    stopped, failures = threading.Event(), []

    def work() -> None:
        cluster = open_cluster(folder / "state")
        with manager_lock(cluster) as is_lost:
            assert is_lost is not None
            build_manager(cluster).run(
                stopped.is_set, transient=(FolderError, LockTimeoutError), failed=failures.append
            )
        cluster.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    assert [error for error in failures if "was edited in the meantime" not in str(error)] == []


def is_claimed_done(scene: Scene) -> bool:
    done = run("rollout", "status", scene.workload, "--watch=false", "--reconcile=never")
    assert done.status == 0, done.err
    return DONE.search(done.out) is not None


@pytest.mark.parametrize("edit", WAYS)
def test_pods_follow_edit_and_rollout_status_waits_for_them(
    scene: Scene, edit: Callable[[Scene], str]
) -> None:
    assert is_claimed_done(scene)
    image = edit(scene)
    assert not is_claimed_done(scene)
    assert scene.images() == {"app:3"}
    settle()
    assert scene.images() == {image}
    assert is_claimed_done(scene)
    assert run("fsck").out == "state: no problems\n"


@pytest.mark.parametrize("edit", WAYS)
def test_rollout_status_right_after_edit_ends_when_pods_are_new(
    scene: Scene, edit: Callable[[Scene], str]
) -> None:
    image = edit(scene)
    done = run("rollout", "status", scene.workload, "--timeout=20s")
    assert done.status == 0, done.err
    assert DONE.search(done.out)
    assert scene.images() == {image}


@pytest.mark.parametrize("edit", WAYS)
def test_pods_follow_edit_while_controllers_watch(
    scene: Scene, edit: Callable[[Scene], str]
) -> None:
    with watching(scene.folder):
        image = edit(scene)
        done = run("rollout", "status", scene.workload, "--timeout=20s")
        images = scene.images()
    assert done.status == 0, done.err
    assert DONE.search(done.out)
    assert images == {image}


@pytest.mark.parametrize("watched", [False, True])
def test_removed_file_takes_pods_along(scene: Scene, watched: bool) -> None:
    scene.file.unlink()
    assert "not found" in run("rollout", "status", scene.workload).err
    if watched:
        with watching(scene.folder):
            deadline = time.monotonic() + 20
            while scene.images() and time.monotonic() < deadline:
                time.sleep(0.02)
    else:
        settle()
    assert scene.images() == set()


@pytest.mark.parametrize("edit", WAYS)
def test_pods_follow_edit_when_index_is_gone(scene: Scene, edit: Callable[[Scene], str]) -> None:
    """Edit without an index, as in a fresh clone: nothing is known of the file's earlier
    content."""
    image = edit(scene)
    shutil.rmtree(scene.folder / "state/.kubepy")
    settle()
    assert scene.images() == {image}
    assert is_claimed_done(scene)


def test_edit_after_edit_without_index_rolls_again(scene: Scene) -> None:
    sed(scene)
    shutil.rmtree(scene.folder / "state/.kubepy")
    settle()
    scene.file.write_text(scene.file.read_text().replace("app:2", "app:4"))
    assert not is_claimed_done(scene)
    settle()
    assert scene.images() == {"app:4"}


def test_status_of_another_branch_is_not_believed(scene: Scene) -> None:
    """Take a file of another branch, whose status reports the rollout of a spec that is still
    pending here."""
    scene.file.write_text(scene.edited())
    assert not is_claimed_done(scene)
    scene.git("checkout", "-q", "other", "--", scene.path)
    assert not is_claimed_done(scene)
    settle()
    assert scene.images() == {"app:2"}
    assert is_claimed_done(scene)


def test_status_of_another_uid_is_not_believed(scene: Scene) -> None:
    scene.file.write_text(
        re.sub(r"(?m)^  uid: .*", "  uid: 11111111-1111-4111-8111-111111111111", scene.edited())
    )
    assert not is_claimed_done(scene)
    settle()
    assert scene.images() == {"app:2"}
    assert is_claimed_done(scene)


# --- other kinds and other edits ------------------------------------------------------------------


def replica_set_manifest() -> str:
    return (
        f"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: rs}}\nspec:\n  replicas: 1"
        f"{TEMPLATE.replace('NAME', 'rs')}"
    )


def names_of_pods(kubepy: Kubepy) -> list[str]:
    return kubepy("get", "pods", "-o", "name").out.split()


def test_edited_replicas_of_replica_set_are_followed(kubepy: Kubepy, folder: Path) -> None:
    kubepy("apply", "-f", "-", stdin=replica_set_manifest())
    settle()
    file = folder / "state/namespaces/default/replicasets.apps/rs.yaml"
    file.write_text(file.read_text().replace("replicas: 1\n  selector", "replicas: 3\n  selector"))
    got = kubepy(
        "get",
        "rs",
        "rs",
        "--reconcile=never",
        "-o",
        "jsonpath={.metadata.generation}/{.status.observedGeneration}",
    )
    assert got.out == "2/1"
    settle()
    assert len(names_of_pods(kubepy)) == 3


def test_edited_parallelism_of_job_is_followed(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "job", "j", "--image=app:1")
    kubepy("patch", "job", "j", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    settle()
    file = folder / "state/namespaces/default/jobs.batch/j.yaml"
    file.write_text(file.read_text().replace("suspend: true", "suspend: false"))
    assert kubepy("get", "job", "j", "-o", "jsonpath={.metadata.generation}").out == "3"
    settle()
    assert len(names_of_pods(kubepy)) == 1


def test_annotation_of_deployment_counts_and_label_does_not(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "deployment", "web", "--image=app:1")
    settle()
    file = folder / "state/namespaces/default/deployments.apps/web.yaml"
    file.write_text(
        file.read_text().replace(
            "  labels:\n    app: web\n", "  labels:\n    app: web\n    a: b\n", 1
        )
    )
    generation = ("get", "deploy", "web", "-o", "jsonpath={.metadata.generation}")
    assert kubepy(*generation).out == "1"
    file.write_text(file.read_text().replace("  annotations:\n", "  annotations:\n    a: b\n", 1))
    assert kubepy(*generation).out == "2"


def test_whole_tree_checked_out_takes_cluster_back_and_forth(scene: Scene) -> None:
    for commit_, image in (("HEAD~", "app:1"), ("other", "app:2"), ("main", "app:3")):
        scene.git("checkout", "-q", "-f", commit_)
        assert run("fsck").out == "state: no problems\n"
        settle()
        assert scene.images() == {image}
        assert is_claimed_done(scene)
        assert run("fsck").out == "state: no problems\n"


def test_rollout_status_in_clone_without_index_waits_for_pods(scene: Scene) -> None:
    sed(scene)
    shutil.rmtree(scene.folder / "state/.kubepy")
    done = run("rollout", "status", scene.workload, "--timeout=20s")
    assert done.status == 0, done.err
    assert scene.images() == {"app:2"}


def test_rollout_status_of_file_that_was_gone_and_is_back_waits_for_pods(scene: Scene) -> None:
    text = scene.edited()
    scene.file.unlink()
    assert run("get", scene.workload).status == 1
    scene.file.write_text(text)
    done = run("rollout", "status", scene.workload, "--timeout=20s")
    assert done.status == 0, done.err
    assert scene.images() == {"app:2"}
