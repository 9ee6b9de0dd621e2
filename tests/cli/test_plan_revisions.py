"""``kubepy plan --from REV --to REV``, with real git repositories."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Kubepy

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "{image}"}}]}}
"""
CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}\n"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
IN_MEMORY = ("--state", "memory:", "plan")


def git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def commit(folder: Path) -> Callable[..., str]:
    """A function that commits files, and removes those that are None; the working directory is the
    repository."""
    git("init", "--quiet", "--initial-branch=main")

    def make(files: dict[str, str | None]) -> str:
        for name, text in files.items():
            path = folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        git("add", "-A")
        git("commit", "--quiet", "--message", "a change")
        return git("rev-parse", "HEAD")

    return make


Commit = Callable[[dict[str, str | None]], str]


def document_of(kubepy: Kubepy, *words: str) -> dict[str, Any]:
    done = kubepy(*IN_MEMORY, "-o", "json", *words)
    assert done.out, done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def actions(document: dict[str, Any]) -> dict[str, str]:
    """Return what happens to each object that the command writes."""
    return {
        f"{change['object']['resource']}/{change['object']['name']}": change["action"]
        for change in document["changes"]
    }


# --- what is planned ------------------------------------------------------------------------------


def test_only_the_second_step_is_planned(bare: Kubepy, commit: Commit) -> None:
    base = commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1"), "deploy/c.yaml": CONFIG})
    head = commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:2"), "deploy/c.yaml": None})
    document = document_of(bare, "--from", base, "--to", head, "-f", "deploy")
    assert document["command"] == ["apply", "-f", "deploy"]
    assert (document["from"], document["to"]) == (base[:10], head[:10])
    assert actions(document) == {
        "deployments.apps/web": "changed",
        "configmaps/settings": "deleted",
    }
    [web] = document["workloads"]
    assert web["minAvailable"] == 3  # it was there
    assert document["harm"] == []


def test_default_of_to_is_the_working_tree_with_files_that_git_does_not_know(
    bare: Kubepy, commit: Commit, folder: Path
) -> None:
    commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1")})
    (folder / "deploy/new.yaml").write_text(CONFIG)
    done = bare(*IN_MEMORY, "--from", "HEAD", "-f", "deploy/")
    assert done.out.startswith("configmap/settings created\ndeployment.apps/web unchanged\n")
    assert "+ configmap settings created\n" in done.out
    assert done.status == 0


def test_working_tree_and_repository_stay_as_they_are(
    bare: Kubepy, commit: Commit, folder: Path
) -> None:
    base = commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1")})
    commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:2")})
    (folder / "deploy/web.yaml").write_text("in the middle of an edit: [")
    git("add", "-A")
    (folder / "deploy/web.yaml").write_text("further on: [")

    def snapshot() -> tuple[dict[str, bytes], str]:
        files = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return files, git("worktree", "list")

    before = snapshot()
    assert bare(*IN_MEMORY, "--from", base, "--to", "main", "-f", "deploy").status == 0
    assert snapshot() == before


def test_path_is_sought_from_the_working_directory(
    bare: Kubepy, commit: Commit, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit({"a/deploy/web.yaml": DEPLOYMENT.format(image="web:1")})
    monkeypatch.chdir(folder / "a/deploy")
    for path in (".", "../deploy", "web.yaml", "*.yaml", str(folder / "a/deploy")):
        done = bare(*IN_MEMORY, "--from", "main", "--to", "main", "-f", path)
        assert done.out.startswith("deployment.apps/web unchanged\n"), (path, done)


def test_kustomization_takes_files_from_other_folders_of_its_revision(
    bare: Kubepy, commit: Commit
) -> None:
    base = commit(
        {
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "base/web.yaml": DEPLOYMENT.format(image="web:1"),
            "overlays/production/kustomization.yaml": "resources: [../../base]\nnamePrefix: p-\n",
        }
    )
    commit({"base/web.yaml": DEPLOYMENT.format(image="web:2")})
    document = document_of(bare, "--from", base, "-k", "overlays/production")
    assert actions(document) == {"deployments.apps/p-web": "changed"}
    assert "+      - image: web:2\n" in document["changes"][0]["diff"]


def test_objects_whose_definition_is_in_a_later_file_are_applied(
    bare: Kubepy, commit: Commit
) -> None:
    thing = "{{apiVersion: example.org/v1, kind: Thing, metadata: {{name: a}}, size: {}}}\n"
    base = commit({"deploy/a.yaml": thing.format(1), "deploy/b.yaml": DEFINITION})
    head = commit({"deploy/a.yaml": thing.format(2)})
    document = document_of(bare, "--from", base, "--to", head, "-f", "deploy")
    assert actions(document) == {"things.example.org/a": "changed"}
    gone = commit({"deploy/a.yaml": None, "deploy/b.yaml": None, "deploy/c.yaml": CONFIG})
    document = document_of(bare, "--from", base, "--to", gone, "-f", "deploy")
    assert actions(document) == {
        "configmaps/settings": "created",
        "things.example.org/a": "deleted",
        "customresourcedefinitions.apiextensions.k8s.io/things.example.org": "deleted",
    }


def test_namespace_in_a_later_file_is_no_error(bare: Kubepy, commit: Commit) -> None:
    inside = CONFIG.replace("{name: settings}", "{name: settings, namespace: shop}")
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"
    base = commit({"deploy/a.yaml": inside, "deploy/b.yaml": namespace})
    done = bare(*IN_MEMORY, "--from", base, "--to", base, "-f", "deploy")
    assert done.out.startswith("configmap/settings unchanged\nnamespace/shop unchanged\n"), done


def test_pruned_objects_are_not_hurt_and_others_are(bare: Kubepy, commit: Commit) -> None:
    service = (
        "{apiVersion: v1, kind: Service, metadata: {name: web}, "
        "spec: {selector: {app: web}, ports: [{port: 80}]}}\n"
    )
    base = commit({"d/web.yaml": DEPLOYMENT.format(image="web:1"), "d/service.yaml": service})
    commit({"d/web.yaml": None})
    document = document_of(bare, "--from", base, "-f", "d")
    assert [harm["kind"] for harm in document["harm"]] == ["unreachable"]


# --- the cluster in use ---------------------------------------------------------------------------


def test_objects_of_the_cluster_in_use_make_way_and_others_stay(
    kubepy: Kubepy, commit: Commit, folder: Path
) -> None:
    assert kubepy("create", "deployment", "web", "--image=other:9").status == 0
    assert kubepy("create", "configmap", "settings", "--from-literal=kept=yes").status == 0
    assert kubepy("create", "configmap", "mine").status == 0
    kubepy("patch", "configmap", "settings", "-p", '{"metadata": {"finalizers": ["a.b/c"]}}')
    before = kubepy("get", "deployments,configmaps", "-o", "yaml").out
    base = commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1"), "deploy/c.yaml": CONFIG})
    commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:2")})
    done = kubepy("plan", "-o", "json", "--from", base, "-f", "deploy")
    document = json.loads(done.out)
    assert actions(document) == {"deployments.apps/web": "changed"}
    assert "-      - image: web:1\n" in document["changes"][0]["diff"]
    assert kubepy("get", "deployments,configmaps", "-o", "yaml").out == before


def test_namespace_of_the_manifests_keeps_what_they_do_not_name(
    kubepy: Kubepy, commit: Commit
) -> None:
    kubepy("create", "namespace", "shop")
    kubepy("create", "secret", "generic", "password", "-n", "shop")
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"
    base = commit({"deploy/n.yaml": namespace})
    labelled = namespace.replace("name: shop", "name: shop, labels: {a: b}")
    commit({"deploy/n.yaml": labelled})
    document = json.loads(kubepy("plan", "-o", "json", "--from", base, "-f", "deploy").out)
    assert actions(document) == {"namespaces/shop": "changed"}
    # Deleting it in the second step takes the Secret with it, and the plan knows of it.
    (Path("deploy") / "n.yaml").write_text(CONFIG)
    document = json.loads(kubepy("plan", "-o", "json", "--from", base, "-f", "deploy").out)
    assert actions(document)["namespaces/shop"] == "deleted"


def test_output_is_the_same_each_time_in_memory(bare: Kubepy, commit: Commit) -> None:
    base = commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1")})
    commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:2")})
    words = (*IN_MEMORY, "--from", base, "-f", "deploy", "-o")
    for form in ("text", "json", "markdown", "html", "svg"):
        assert bare(*words, form).out == bare(*words, form).out


def test_memory_takes_any_command_of_plan_and_no_other_command(bare: Kubepy, folder: Path) -> None:
    assert "on node-" in bare(*IN_MEMORY, "create", "deployment", "web", "--image=web:1").out
    done = bare("--state", "memory:", "get", "pods")
    assert "is no state folder" in done.err
    assert list(folder.iterdir()) == []


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--from", "nope", "-f", "deploy"), 'there is no revision "nope" in the repository'),
        (("--from", "", "-f", "deploy"), 'there is no revision ""'),
        (("--from=--output=x", "-f", "deploy"), 'there is no revision "--output=x"'),
        (("--from", "main:deploy", "-f", "deploy"), 'there is no revision "main:deploy"'),
        (("--from", "main", "--to", "", "-f", "deploy"), 'there is no revision ""'),
        (("--from", "main", "-f", "nope"), 'neither main nor the working tree has "nope"'),
        (("--from", "main", "-f", "-"), 'paths in a git repository, not "-"'),
        (("--from", "main", "-f", "https://a/b"), 'paths in a git repository, not "https://a/b"'),
        (("--from", "main", "-f", "/"), "not a git repository"),
        (("--from", "main"), "must specify one of -f and -k"),
        (("--from", "main", "-f", "deploy", "-k", "deploy"), "only one of -f or -k"),
        (("--from", "main", "-f", "deploy", "drain", "node-1"), "a command or --from, not both"),
        (("--to", "main"), "--to goes with --from"),
        (("-f", "deploy"), "go with --from"),
        (("--from", "main", "-k", "deploy"), "in directory 'main:deploy'"),
        (("--from", "broken", "-f", "deploy"), "broken: the manifests cannot be applied: "),
        (("--from", "main", "--to", "broken", "-f", "deploy"), "error: broken: the manifests"),
    ],
)
def test_wrong_words_are_one_line(
    bare: Kubepy, commit: Commit, words: tuple[str, ...], reason: str
) -> None:
    commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1")})
    git("checkout", "--quiet", "-b", "broken")
    commit({"deploy/a.yaml": "kind: Nothing\napiVersion: a/v1\nmetadata: {name: a}\n"})
    git("checkout", "--quiet", "main")
    done = bare(*IN_MEMORY, *words)
    assert done.status == 1
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert reason in done.err
    assert "kubepy-plan-" not in done.err


def test_warnings_name_the_revision_and_no_temporary_folder(bare: Kubepy, commit: Commit) -> None:
    kustomization = "resources: [c.yaml]\npatchesJson6902: []\ncommonLabels: {a: b}\n"
    base = commit({"deploy/kustomization.yaml": kustomization, "deploy/c.yaml": CONFIG})
    done = bare(*IN_MEMORY, "--from", base, "--to", "main", "-k", "deploy")
    assert "commonLabels" in done.err
    assert "kubepy-plan-" not in done.err + done.out


def test_outside_of_a_repository_is_one_line(bare: Kubepy, folder: Path) -> None:
    (folder / "a.yaml").write_text(CONFIG)
    done = bare(*IN_MEMORY, "--from", "main", "-f", "a.yaml")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "not a git repository" in done.err


def test_path_of_one_revision_alone_is_all_new_or_all_pruned(bare: Kubepy, commit: Commit) -> None:
    base = commit({"README": "words"})
    commit({"deploy/c.yaml": CONFIG})
    done = bare(*IN_MEMORY, "--from", base, "-f", "deploy")
    assert done.err == f"note: {base[:10]} has no deploy\n"
    assert "+ configmap settings created\n" in done.out
    done = bare(*IN_MEMORY, "--from", "main", "--to", base, "-f", "deploy")
    assert done.out.startswith("configmap/settings pruned\n\n- configmap settings deleted\n")


def test_path_that_one_revision_lacks_is_new_beside_the_others(
    bare: Kubepy, commit: Commit
) -> None:
    base = commit({"a.yaml": CONFIG})
    commit({"b.yaml": CONFIG.replace("settings", "more")})
    done = bare(*IN_MEMORY, "--from", base, "-f", "a.yaml", "-f", "b.yaml")
    assert (done.err, done.status) == (f"note: {base[:10]} has no b.yaml\n", 0)
    assert "+ configmap more created\n" in done.out


def test_no_folder_is_left(
    bare: Kubepy, commit: Commit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path.parent / f"{tmp_path.name}-temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    base = commit({"deploy/c.yaml": CONFIG})
    assert bare(*IN_MEMORY, "--from", base, "--to", base, "-f", "deploy").status == 0
    assert bare(*IN_MEMORY, "--from", base, "--to", "nope", "-f", "deploy").status == 1
    assert list(temporary.iterdir()) == []


# --- hostile repositories -------------------------------------------------------------------------


def test_links_out_of_the_repository_are_left_out(
    bare: Kubepy, commit: Commit, folder: Path
) -> None:
    outside = folder.parent / "outside.yaml"
    outside.write_text(CONFIG)
    (folder / "deploy/deep").mkdir(parents=True)
    os.symlink(outside, folder / "deploy/absolute.yaml")
    os.symlink("../../outside.yaml", folder / "deploy/relative.yaml")
    os.symlink("..", folder / "deploy/deep/up")
    os.symlink("deep/up/../../outside.yaml", folder / "deploy/winding.yaml")
    os.symlink("web.yaml", folder / "deploy/inside.yaml")
    base = commit({"deploy/web.yaml": DEPLOYMENT.format(image="web:1")})
    done = bare(*IN_MEMORY, "--from", base, "--to", base, "-f", "deploy")
    assert done.err.count(" leads out of the repository, and is left out") == 3, done.err
    assert "settings" not in done.out


def test_no_file_is_written_through_a_link_of_the_revision(
    bare: Kubepy, commit: Commit, folder: Path
) -> None:
    """A tree that git itself never makes: a link and a folder of one name."""
    commit({"web.yaml": CONFIG})
    outside = folder.parent / "outside"
    outside.mkdir()

    def git(*words: str, text: str = "") -> str:
        command = ["git", "-C", str(folder), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    target = git("hash-object", "-w", "--stdin", text=str(outside))
    inner = git("mktree", text=f"120000 blob {target}\tb\n")
    tree = git("mktree", text=f"120000 blob {target}\ta\n040000 tree {inner}\ta\n")
    author = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    hostile = git(*author, "commit-tree", "-m", "x", tree)
    done = bare(*IN_MEMORY, "--from", hostile, "-f", "web.yaml")
    assert done.status == 1
    assert "internal error" not in done.err
    assert list(outside.iterdir()) == []


def test_filters_and_hooks_of_the_repository_do_not_run(
    bare: Kubepy, commit: Commit, folder: Path
) -> None:
    git("config", "filter.bad.smudge", "touch owned; cat")
    hook = folder / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch owned\n")
    hook.chmod(0o755)
    base = commit({"deploy/c.yaml": CONFIG, ".gitattributes": "*.yaml filter=bad export-ignore\n"})
    done = bare(*IN_MEMORY, "--from", base, "--to", base, "-f", "deploy")
    assert done.out.startswith("configmap/settings unchanged\n"), done
    assert not list(folder.rglob("owned"))


# --- the changes as text --------------------------------------------------------------------------


def test_text_shows_the_first_lines_that_differ_and_counts_the_others(
    bare: Kubepy, commit: Commit
) -> None:
    names = [f"c-{number:02}" for number in range(20)]

    def manifest(name: str, value: str, lines: int = 1) -> str:
        data = ", ".join(f"k{number}: {value}" for number in range(lines))
        return f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{{data}}}}}"

    old = [manifest(name, "a") for name in names]
    base = commit({"c.yaml": "\n---\n".join([manifest("many", "a", 20), *old])})
    new = [manifest(name, "b") for name in names[:16]]
    added = [manifest(f"new-{number}", "b") for number in range(3)]
    commit({"c.yaml": "\n---\n".join([manifest("many", "b", 20), *new, *added])})
    lines = bare(*IN_MEMORY, "--from", base, "-f", "c.yaml").out.splitlines()
    start = lines.index("~ configmap many changed")
    assert lines[start + 9] == "    ... and 32 more lines"
    assert lines[start + 10 : start + 13] == [
        "~ configmap c-00 changed",
        "    - k0: a",
        "    + k0: b",
    ]
    assert lines[start + 10 + 3 * 11 :][:4] == [
        "... and 5 more objects changed",
        "+ 3 objects created",
        "- 4 objects deleted",
        "",
    ]


def test_changes_name_the_namespace_where_there_are_several(bare: Kubepy, commit: Commit) -> None:
    inside = CONFIG.replace("name: settings", "name: settings, namespace: kube-system")
    base = commit({"a.yaml": CONFIG, "b.yaml": inside})
    commit({"a.yaml": CONFIG.replace("a: b", "a: c"), "b.yaml": inside.replace("a: b", "a: d")})
    out = bare(*IN_MEMORY, "--from", base, "-f", ".").out
    assert "~ configmap default/settings changed\n" in out
    assert "~ configmap kube-system/settings changed\n" in out
