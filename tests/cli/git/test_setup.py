"""``kubepy git setup`` and git's behaviour after it: attributes, configuration, diffs, intent only,
refresh, resolve."""

from __future__ import annotations

import io
import os
import re
import subprocess
from pathlib import Path

import pytest

from kubepy.cli.errors import CliError
from kubepy.cli.git.intent import FilterProcess
from tests.cli.conftest import Kubepy
from tests.cli.git.conftest import Repository
from tests.cli.git.test_branches import check_cluster, check_no_lie, merge

AGENT = "namespaces/default/daemonsets.apps/agent"
ATTRIBUTES = (
    "/cluster/**/*.yaml merge=kubepy diff=kubepy\n/namespaces/**/*.yaml merge=kubepy diff=kubepy\n"
)


@pytest.fixture
def cluster(kubepy: Kubepy) -> Kubepy:
    """Create a cluster in ./state of a new repository."""
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    return kubepy


def test_setup_outside_repository_fails(kubepy: Kubepy) -> None:
    done = kubepy("git", "setup")
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith("error: not a git repository")


def test_setup_without_cluster_fails(bare: Kubepy) -> None:
    assert 'no cluster in "state"' in bare("git", "setup").err


def test_setup_without_git_fails(cluster: Kubepy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert cluster("git", "setup").err == "error: git is not installed, or not on the PATH\n"


def test_second_setup_changes_nothing(cluster: Kubepy, folder: Path) -> None:
    first = cluster("git", "setup")
    assert "state/.gitattributes: written" in first.out
    assert "merge.kubepy.driver" in first.out
    before = (folder / "state/.gitattributes").read_text(), (folder / ".git/config").read_text()
    assert before[0] == ATTRIBUTES
    second = cluster("git", "setup")
    assert second.out == f"state/.gitattributes: unchanged\n{folder}/.git/config: unchanged\n"
    assert (
        (folder / "state/.gitattributes").read_text(),
        (folder / ".git/config").read_text(),
    ) == before


def test_setup_keeps_other_attributes_and_configuration(cluster: Kubepy, folder: Path) -> None:
    (folder / "state/.gitattributes").write_text("*.txt text")
    subprocess.run(["git", "config", "merge.renames", "true"], check=True)
    cluster("git", "setup")
    assert (folder / "state/.gitattributes").read_text() == "*.txt text\n" + ATTRIBUTES
    assert "renames = true" in (folder / ".git/config").read_text()


def test_setup_refuses_attributes_that_git_would_not_read(cluster: Kubepy, folder: Path) -> None:
    (folder / "state/.gitattributes").symlink_to("elsewhere")
    assert cluster("git", "setup").err == (
        "error: state/.gitattributes is a symbolic link, which git does not follow\n"
    )


def test_setup_in_linked_worktree_serves_all_worktrees(repository: Repository) -> None:
    repository.git("config", "--remove-section", "merge.kubepy")
    linked = Repository(repository.folder.parent / "linked")
    repository.git("worktree", "add", "-q", str(linked.folder))
    linked.kubepy("git", "setup")
    assert "kubepy git merge-file" in repository.git("config", "merge.kubepy.driver")


def test_setup_in_submodule_configures_submodule(repository: Repository, tmp_path: Path) -> None:
    outer = Repository(tmp_path / "outer")
    subprocess.run(["git", "init", "-q", str(outer.folder)], check=True)
    outer.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository.folder), "lab"
    )
    lab = Repository(outer.folder / "lab")
    lab.kubepy("git", "setup")
    assert "kubepy git merge-file" in lab.git("config", "--local", "merge.kubepy.driver")
    assert outer.run_git("config", "--local", "merge.kubepy.driver").returncode == 1


def test_state_folder_that_is_repository_merges(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lab")
    repository.state = repository.folder
    repository.kubepy("init", "--nodes=0")
    repository.git("init", "-q", "-b", "main")
    repository.kubepy("git", "setup")
    repository.kubepy("create", "cm", "x", "--from-literal=a=1")
    repository.commit()
    repository.branch("ours", lambda: repository.play("label cm x one=1"))
    repository.branch("theirs", lambda: repository.play("label cm x two=2"))
    merge(repository, "ours", "theirs")
    assert repository.object("namespaces/default/configmaps/x")["metadata"]["labels"] == {
        "one": "1",
        "two": "2",
    }


# --- diff -----------------------------------------------------------------------------------------


def test_diff_names_section_of_each_hunk(repository: Repository) -> None:
    repository.play("set image ds/agent agent=agent:2\ncontroller --once")
    diff = repository.git("diff", "-U0", "--", f"state/{AGENT}.yaml")
    assert re.search(r"^@@ .* @@ template:\n-.*agent:1\n\+.*agent:2$", diff, re.M), diff
    assert re.search(r"^@@ .* @@ status:\n-  observedGeneration: 1\n", diff, re.M), diff


def test_diff_by_field_paths_shows_whole_paths(repository: Repository) -> None:
    repository.kubepy("git", "setup", "--field-paths")
    repository.play(
        "set image ds/agent agent=agent:2\npatch cm settings -p "
        '\'{"data":{"app.conf":"one\\ntwo"}}\''
    )
    diff = repository.git("diff")
    assert '-spec.template.spec.containers[name="agent"].image: agent:1\n' in diff
    assert '+spec.template.spec.containers[name="agent"].image: agent:2\n' in diff
    assert "-data.app.conf| one = 1\n" in diff
    repository.kubepy("git", "setup")
    assert "+      - image: agent:2\n" not in diff
    assert "containers[" not in repository.git("diff")


# --- intent only ----------------------------------------------------------------------------------


@pytest.fixture
def intent(repository: Repository) -> Repository:
    """A clone whose branch main keeps intent only."""
    repository.kubepy("git", "setup", "--intent-only")
    repository.git("rm", "-r", "-q", "--cached", "state")
    repository.commit("intent only")
    return repository


def clone_of(repository: Repository, folder: Path) -> Repository:
    clone = Repository(folder)
    repository.git("clone", "-q", str(repository.folder), str(folder))
    clone.kubepy("git", "setup")
    return clone


def test_intent_only_leaves_out_what_system_writes(intent: Repository) -> None:
    files = intent.git("ls-files").splitlines()
    assert not [
        file
        for file in files
        if re.search("/(pods|replicasets|controllerrevisions|endpoints)", file)
    ]
    kept = "".join(intent.git("show", f"HEAD:{file}") for file in files if file.endswith(".yaml"))
    written = re.compile(
        r"^(?:status| *(?:uid|generation|creationTimestamp|resourceVersion|volumeName"
        r"|.*template.generation|deployment.kubernetes.io.*)):",
        re.M,
    )
    assert written.findall(kept) == []
    assert "finalizers:\n  - kubernetes\n" in kept


def test_intent_only_keeps_comments(intent: Repository) -> None:
    path = intent.state / f"{AGENT}.yaml"
    path.write_text(
        "# the agent\n" + path.read_text().replace("image: agent:1", "image: agent:1 # pinned")
    )
    intent.commit()
    kept = intent.git("show", f"HEAD:state/{AGENT}.yaml")
    assert kept.startswith("# the agent\n")
    assert "image: agent:1 # pinned\n" in kept
    assert "status:" not in kept


def test_clone_of_intent_only_is_completed_by_controllers(
    intent: Repository, tmp_path: Path
) -> None:
    clone = clone_of(intent, tmp_path / "other")
    check_cluster(clone)
    assert (
        clone.kubepy(
            "get",
            "nodes",
            "-o",
            "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}",
        )
        == "True True True"
    )
    assert clone.kubepy("get", "pvc", "data-db-0", "-o", "jsonpath={.status.phase}") == "Bound"
    assert clone.git("diff") == ""
    assert "files refreshed" in clone.kubepy("git", "refresh")
    assert clone.git("status", "--porcelain") == ""
    clone.kubepy("set", "image", "ds/agent", "agent=agent:2")
    clone.kubepy("controller", "--once")
    clone.kubepy("git", "refresh")
    assert clone.git("status", "--porcelain") == f" M state/{AGENT}.yaml\n"
    assert re.findall(r"^[-+] .*", clone.git("diff"), re.M) == [
        "-        image: agent:1",
        "+        image: agent:2",
    ]


def test_branches_of_intent_only_merge_beside_running_cluster(
    intent: Repository, tmp_path: Path
) -> None:
    clone = clone_of(intent, tmp_path / "other")
    clone.git("config", "commit.gpgsign", "false")
    clone.branch(
        "ours",
        lambda: clone.play("set image deploy/web web=web:2\nset image ds/agent agent=agent:2"),
    )
    clone.branch(
        "theirs",
        lambda: clone.play(
            "scale deploy/web --replicas=5\nset env deploy/web COLOUR=red\n"
            "set env ds/agent COLOUR=red\nset image sts/db db=db:2"
        ),
    )
    clone.kubepy("controller", "--once")
    clone.kubepy("git", "refresh")
    merge(clone, "ours", "theirs")
    check_no_lie(clone)
    for cluster in (clone, clone_of(clone, tmp_path / "fresh")):
        check_cluster(cluster)
        assert (
            cluster.kubepy("get", "deploy", "web", "-o", "jsonpath={.spec.replicas} {..image}")
            == "5 web:2"
        )


def test_setup_in_clone_keeps_intent_only_by_default(intent: Repository, tmp_path: Path) -> None:
    clone = clone_of(intent, tmp_path / "other")
    assert "kubepy git filter" in clone.git("config", "filter.kubepy-intent.process")
    clone.kubepy("git", "setup", "--intent-only=false")
    assert clone.run_git("config", "filter.kubepy-intent.process").returncode == 1
    assert (clone.state / ".gitattributes").read_text() == ATTRIBUTES
    assert (clone.state / ".gitignore").read_text() == "/.kubepy/\n"


def test_setup_notes_ignored_files_in_repository(repository: Repository) -> None:
    assert "rm -r -q --cached ." in repository.kubepy("git", "setup", "--intent-only")


def test_refresh_leaves_real_changes_alone(intent: Repository) -> None:
    intent.play("set image ds/agent agent=agent:2\ncreate cm new")
    (intent.state / "namespaces/default/configmaps/settings.yaml").unlink()
    before = intent.git("diff")
    intent.kubepy("git", "refresh")
    assert intent.git("diff") == before
    assert intent.git("diff", "--cached") == ""


def test_file_without_object_is_stored_unchanged(intent: Repository) -> None:
    path = intent.state / "namespaces/default/configmaps/broken.yaml"
    path.write_text("a: [\nstatus: x\n")
    intent.commit()
    assert (
        intent.git("show", "HEAD:state/namespaces/default/configmaps/broken.yaml")
        == path.read_text()
    )


# --- resolve --------------------------------------------------------------------------------------


def test_resolve_without_conflicts_does_nothing(repository: Repository) -> None:
    assert repository.kubepy("git", "resolve") == "nothing to resolve\n"


def test_resolve_settles_renames_of_pods_detected_by_git(repository: Repository) -> None:
    """Resolve in a clone with rename detection: git takes a new pod for an old one, renamed to two
    names."""
    repository.git("config", "--unset", "pull.twohead")
    repository.git("config", "merge.renames", "true")
    repository.branch(
        "ours", lambda: repository.play("set image ds/agent agent=agent:2\ncontroller --once")
    )
    repository.branch("theirs", lambda: repository.play("set env ds/agent A=b\ncontroller --once"))
    repository.git("checkout", "-q", "ours")
    done = repository.run_git("merge", "--no-edit", "theirs")
    if "rename" not in done.stdout:
        pytest.skip("this git found no renames")
    repository.kubepy("git", "resolve")
    repository.git("commit", "-q", "--no-edit")
    check_cluster(repository)


def test_drivers_run_from_any_folder_and_without_environment(repository: Repository) -> None:
    repository.branch("ours", lambda: repository.play("set image ds/agent agent=agent:2"))
    repository.branch("theirs", lambda: repository.play("set env ds/agent A=b"))
    repository.git("checkout", "-q", "ours")
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": os.devnull,
        "GIT_AUTHOR_NAME": "x",
        "GIT_AUTHOR_EMAIL": "x@y",
        "GIT_COMMITTER_NAME": "x",
        "GIT_COMMITTER_EMAIL": "x@y",
    }
    done = subprocess.run(
        ["git", "merge", "-q", "--no-edit", "theirs"],
        cwd=repository.state / "cluster",
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


GREETING = b"0016git-filter-client\n000eversion=2\n00000015capability=clean\n0000"


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (b"garbage", "git's stream is not made of packets"),
        (b"000", "git's stream is not made of packets"),
        (b"0006x", "git's stream is not made of packets"),
        (b"-001", "git's stream is not made of packets"),
        (b"", "this is for git to call"),
        (b"0005x", "this is for git to call"),
        (
            GREETING + b"0012command=clean\n0000",
            "the request command=clean of git names no command or no pathname",
        ),
        (GREETING + b"0005x0000", "the request x of git names no command or no pathname"),
    ],
)
def test_filter_malformed_stream_is_refused(stream: bytes, error: str) -> None:
    with pytest.raises(CliError, match=re.escape(error)):
        FilterProcess(io.BytesIO(stream), io.BytesIO()).serve()
