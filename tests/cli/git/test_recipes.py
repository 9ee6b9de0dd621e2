"""The two ways to keep a cluster in git, from end to end, with no command of kubepy between a read
and git.

Everything, with ``reconcile: never``: reads change no file, and a checked-out state counts as
settled if it was. Intent only: reads run the controllers, which write status into files, and git
calls none of them modified.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.controlplane.open import open_cluster
from kubepy.storage.folder.gitindex import compare_by_content, entries
from tests.cli.git.conftest import PROGRAM, Repository
from tests.copies import copy_with_index

WEB = "namespaces/default/deployments.apps/web"
IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"
OBSERVED = "jsonpath={.metadata.generation}/{.status.observedGeneration}"
BREAKING = "4"  # the commit whose pods crash
CRASHING = '{"spec":{"template":{"metadata":{"annotations":{"kubepy.dev/outcome":"crash-loop"}}}}}'
READS = (
    "get deploy",
    "get pods -o yaml",
    "describe deploy web",
    "rollout status deploy/web --timeout=20s",
    "rollout history deploy/web",
    "why deploy/web",
    "plan",
    "timeline",
    "get nodes,pods -A -o wide",
)


class Lab(Repository):
    """A repository with a commit for each of six images, of which ``BREAKING`` has pods that
    crash."""

    def __init__(self, folder: Path, *, intent_only: bool) -> None:
        super().__init__(folder)
        self.kubepy("init", "--nodes=2")
        if not intent_only:
            with (self.state / "kubepy.yaml").open("a") as file:
                file.write("reconcile: never\n")
        self.kubepy("create", "deployment", "web", "--image=web:1", "--replicas=2")
        self.kubepy("create", "configmap", "notes", "--from-literal=text=first")
        self.git("init", "-q", "-b", "main")
        self.kubepy("git", "setup", *(["--intent-only"] if intent_only else []))
        self.settle_and_commit("1")

    def settle_and_commit(self, message: str) -> None:
        self.kubepy("controller", "--once")
        self.commit(message)

    def write_history(self) -> None:
        for number in "23456":
            if number == BREAKING:
                self.kubepy("patch", "deploy", "web", "-p", CRASHING)
            self.kubepy("set", "image", "deploy/web", f"web=web:{number}")
            self.settle_and_commit(number)
            self.git("tag", number)

    def image(self) -> str:
        return self.kubepy("get", "deploy", "web", "-o", IMAGE)

    def is_clean(self) -> bool:
        return self.git("status", "--porcelain") == ""

    def bisect(self, script: str) -> str:
        """Let git bisect the whole history with a script, and return the message of the first bad
        commit."""
        self.git("bisect", "start", "main", self.git("rev-list", "--max-parents=0", "main").strip())
        path = {
            **os.environ,
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
        }
        done = subprocess.run(
            ["git", "bisect", "run", "sh", "-c", script],
            cwd=self.folder,
            text=True,
            env=path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = self.git("log", "-1", "--format=%s", "refs/bisect/bad").strip()
        self.git("bisect", "reset")
        return found


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lab]:
    made = {
        way: Lab(tmp_path_factory.mktemp(way), intent_only=way == "intent")
        for way in ("everything", "intent")
    }
    for lab in made.values():
        lab.write_history()
    return made


@pytest.fixture(params=["everything", "intent"])
def lab(request: pytest.FixtureRequest, labs: dict[str, Lab], tmp_path: Path) -> Lab:
    """A copy of a repository, with the index of its cluster."""
    copy = Lab.__new__(Lab)
    copy_with_index(labs[request.param].folder, tmp_path / "copy")
    Repository.__init__(copy, tmp_path / "copy")
    return copy


def test_reads_leave_working_tree_clean(lab: Lab) -> None:
    for read in READS:
        lab.run_git("checkout", "-q", "3")
        lab.kubepy(*read.split())
        assert lab.is_clean(), read
        lab.git("checkout", "-q", "main")
        assert lab.is_clean(), read


def test_every_commit_is_checked_out_after_reads(lab: Lab) -> None:
    for number in ("2", "5", "3", "6", "4"):
        lab.git("checkout", "-q", number)
        assert lab.image() == f"web:{number}"
        lab.kubepy("get", "pods", "-A")
        assert lab.is_clean()


def test_bisect_finds_commit_whose_rollout_does_not_finish(lab: Lab) -> None:
    assert lab.bisect("kubepy rollout status deploy/web --timeout=2s") == BREAKING
    lab.git("checkout", "-q", "3")


def test_bisect_finds_commit_whose_pods_crash(lab: Lab) -> None:
    script = (
        "kubepy rollout status deploy/web --timeout=2s; ! kubepy get pods | grep -E 'Crash|Error'"
    )
    assert lab.bisect(script) == BREAKING
    assert lab.is_clean()


def test_merge_after_reads_takes_both_changes(lab: Lab) -> None:
    lab.git("checkout", "-q", "-b", "text", "3")
    lab.kubepy("patch", "cm", "notes", "-p", '{"data":{"text":"second"}}')
    lab.settle_and_commit("text")
    lab.git("checkout", "-q", "-b", "size", "3")
    lab.kubepy("scale", "deploy/web", "--replicas=3")
    lab.settle_and_commit("size")
    lab.kubepy("get", "deploy")
    lab.git("merge", "-q", "-m", "both", "text")
    assert lab.kubepy("get", "cm", "notes", "-o", "jsonpath={.data.text}") == "second"
    assert lab.kubepy("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    assert lab.is_clean()


def test_stash_after_reads_puts_change_aside_and_back(lab: Lab) -> None:
    lab.git("checkout", "-q", "3")
    assert lab.image() == "web:3"
    lab.kubepy("set", "image", "deploy/web", "web=web:9")
    lab.kubepy("get", "deploy")
    lab.git("stash", "-q")
    assert lab.image() == "web:3"
    assert lab.is_clean()
    lab.git("stash", "pop", "-q")
    assert lab.image() == "web:9"
    assert [
        line[3:]
        for line in lab.git("status", "--porcelain").splitlines()
        if "replicasets" not in line
    ] == [f"state/{WEB}.yaml"]


def test_rebase_after_reads_moves_commit(lab: Lab) -> None:
    lab.git("checkout", "-q", "-b", "topic", "2")
    lab.kubepy("patch", "cm", "notes", "-p", '{"data":{"text":"second"}}')
    lab.settle_and_commit("topic")
    lab.kubepy("get", "deploy")
    lab.git("rebase", "-q", "3", "--exec", f"{PROGRAM} get deploy")
    assert lab.image() == "web:3"
    assert lab.kubepy("get", "cm", "notes", "-o", "jsonpath={.data.text}") == "second"
    assert lab.is_clean()


def test_worktree_beside_has_cluster_of_its_own(lab: Lab) -> None:
    lab.image()
    lab.git("worktree", "add", "-q", str(lab.folder / "beside"), "3")
    beside = Repository(lab.folder / "beside")
    for number in ("3", "2", "3"):
        beside.git("checkout", "-q", number)
        assert beside.kubepy("get", "deploy", "web", "-o", IMAGE) == f"web:{number}"
        beside.kubepy("get", "pods")
        assert beside.git("status", "--porcelain") == ""
    assert lab.image() == "web:6"


# --- everything -----------------------------------------------------------------------------------


@pytest.fixture
def everything(labs: dict[str, Lab], tmp_path: Path, request: pytest.FixtureRequest) -> Lab:
    copy = Lab.__new__(Lab)
    copy_with_index(labs["everything"].folder, tmp_path / "copy")
    Repository.__init__(copy, tmp_path / "copy")
    return copy


def test_checked_out_state_that_was_settled_counts_as_observed(everything: Lab) -> None:
    for number in ("2", "3", "2"):
        everything.git("checkout", "-q", number)
        generation, _, observed = everything.kubepy(
            "get", "deploy", "web", "-o", OBSERVED
        ).partition("/")
        assert generation == observed
        status = everything.kubepy("rollout", "status", "deploy/web", "--watch=false")
        assert status == 'deployment "web" successfully rolled out\n'
        assert everything.kubepy("controller", "--once") == ""
        assert everything.is_clean()


@pytest.mark.parametrize(
    "change",
    [
        lambda lab: lab.git("checkout", "-q", "2", "--", f"state/{WEB}.yaml"),
        lambda lab: lab.git(
            "checkout",
            "-q",
            "2",
            "--",
            "state/namespaces/default/deployments.apps",
            "state/namespaces/default/replicasets.apps",
        ),
        lambda lab: (lab.state / f"{WEB}.yaml").write_text(
            (lab.state / f"{WEB}.yaml").read_text().replace("web:3", "web:2")
        ),
    ],
    ids=["file of another commit", "without its pods", "edit"],
)
def test_workload_whose_pods_are_others_counts_as_not_observed(
    everything: Lab, change: Callable[[Lab], object]
) -> None:
    everything.git("checkout", "-q", "3")
    everything.image()
    change(everything)
    status = everything.kubepy("rollout", "status", "deploy/web", "--watch=false")
    assert status == "Waiting for deployment spec update to be observed...\n"
    everything.kubepy("controller", "--once")
    assert (
        everything.kubepy("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
        == "web:2 web:2"
    )


def test_checked_out_state_that_was_not_settled_counts_as_not_observed(everything: Lab) -> None:
    everything.git("checkout", "-q", "-b", "early", "3")
    everything.kubepy("scale", "deploy/web", "--replicas=5")
    everything.commit("early")
    everything.git("checkout", "-q", "2")
    everything.image()
    everything.git("checkout", "-q", "early")
    status = everything.kubepy("rollout", "status", "deploy/web", "--watch=false")
    assert status == "Waiting for deployment spec update to be observed...\n"


def test_command_that_writes_first_finds_checked_out_state_settled(everything: Lab) -> None:
    everything.git("checkout", "-q", "2")
    everything.kubepy("label", "configmap", "notes", "a=b")
    generation, _, observed = everything.kubepy("get", "deploy", "web", "-o", OBSERVED).partition(
        "/"
    )
    assert generation == observed
    assert everything.git("status", "--porcelain").count("\n") == 1


def test_checked_out_state_of_folder_that_cannot_be_written_is_read(everything: Lab) -> None:
    everything.git("checkout", "-q", "2")
    with open_cluster(everything.state).store.transaction():  # another process has the lock
        assert everything.image() == "web:2"
    assert everything.image() == "web:2"


# --- the index of git -----------------------------------------------------------------------------


@pytest.fixture
def intent(labs: dict[str, Lab], tmp_path: Path) -> Lab:
    copy = Lab.__new__(Lab)
    copy_with_index(labs["intent"].folder, tmp_path / "copy")
    Repository.__init__(copy, tmp_path / "copy")
    copy.git("checkout", "-q", "3")
    return copy


@pytest.mark.parametrize("form", ["2", "4", "extended"])
def test_index_of_each_version_is_read(intent: Lab, form: str) -> None:
    if form == "extended":  # version 3: an entry has flags that the others have not
        (intent.folder / "added").write_text("")
        intent.git("add", "-N", "added")
    else:
        intent.git("update-index", "--index-version", form)
    listed = intent.git("ls-files", "-z").split("\0")[:-1]
    index = (intent.folder / ".git/index").read_bytes()
    assert [entry.path.decode() for entry in entries(index, 20)] == listed
    intent.kubepy("get", "pods")
    assert intent.git("status", "--porcelain") == (" A added\n" if form == "extended" else "")
    intent.git("checkout", "-q", "2")
    intent.git("fsck")


def test_index_with_digests_of_other_length_is_read(tmp_path: Path) -> None:
    lab = Repository(tmp_path)
    lab.git("init", "-q", "--object-format=sha256", "-b", "main")
    lab.kubepy("init")
    lab.kubepy("create", "deployment", "web", "--image=web:1")
    lab.kubepy("git", "setup", "--intent-only")
    lab.commit()
    lab.kubepy("get", "pods")
    assert lab.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: b"",
        lambda text: text[:40],
        lambda text: text[:-1] + b"x",
        lambda text: b"DIRC\0\0\0\2\xff\xff\xff\xff" + bytes(60),
    ],
)
def test_damaged_index_is_left_as_it_is(intent: Lab, damage: Callable[[bytes], bytes]) -> None:
    index = intent.folder / ".git/index"
    index.write_bytes(damaged := damage(index.read_bytes()))
    intent.kubepy("get", "pods")
    assert index.read_bytes() == damaged
    assert not (intent.folder / ".git/index.lock").exists()


def test_index_that_git_has_locked_is_left_to_it(intent: Lab) -> None:
    lock = intent.folder / ".git/index.lock"
    lock.write_text("of git")
    before = (intent.folder / ".git/index").read_bytes()
    intent.kubepy("label", "deploy", "web", "a=b")
    assert (lock.read_text(), (intent.folder / ".git/index").read_bytes()) == ("of git", before)
    lock.unlink()
    intent.kubepy("label", "deploy", "web", "a-")
    assert intent.is_clean()


def test_index_of_a_hook_is_left_alone(intent: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (intent.folder / ".git/index").read_bytes()
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index.lock")
    intent.kubepy("label", "deploy", "web", "a=b")
    assert (intent.folder / ".git/index").read_bytes() == before


def test_no_git_runs_and_no_hook_of_the_repository(
    intent: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave what the configuration of a repository names alone: it may be a stranger's."""
    hook = intent.folder / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    intent.git("config", "core.fsmonitor", str(hook))
    monkeypatch.setenv("PATH", "/nowhere")
    intent.kubepy("get", "pods")
    assert not (intent.folder / "ran").exists()
    assert not (intent.state / "ran").exists()


def test_changed_intent_shows_and_is_committed(intent: Lab) -> None:
    intent.kubepy("get", "pods")
    intent.kubepy("set", "image", "deploy/web", "web=web:9")
    intent.kubepy("get", "pods")
    assert intent.git("status", "--porcelain") == f" M state/{WEB}.yaml\n"
    assert intent.git("diff", "--stat").count("\n") == 2
    intent.git("commit", "-q", "-a", "-m", "nine")
    assert intent.is_clean()


def test_repository_that_keeps_everything_has_its_index_left_alone(everything: Lab) -> None:
    before = (everything.folder / ".git/index").read_bytes()
    everything.kubepy("controller", "--once")
    everything.kubepy("label", "deploy", "web", "a=b")
    compare_by_content(str(everything.state))
    assert (everything.folder / ".git/index").read_bytes() == before
