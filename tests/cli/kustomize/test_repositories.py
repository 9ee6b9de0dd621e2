"""Kustomizations in git repositories, and files at HTTP addresses."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from kubepy.cli.kustomization.repositories import RepoSpec, parse_repository
from tests.cli.conftest import Done, Kubepy
from tests.cli.test_urls import Server, server

__all__ = ["server"]

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\n"


@pytest.mark.parametrize(
    ("address", "clone_spec", "path", "ref"),
    [
        ("github.com/org/repo", "https://github.com/org/repo", "", ""),
        ("github.com/org/repo//path/in?ref=v1", "https://github.com/org/repo", "path/in", "v1"),
        (
            "https://github.com/org/repo/path/in?version=v1",
            "https://github.com/org/repo",
            "path/in",
            "v1",
        ),
        (
            "HTTPS://GitHub.com/org/repo.git/path?ref=a&version=b",
            "https://github.com/org/repo.git",
            "path",
            "a",
        ),
        ("git@github.com:org/repo.git//path", "git@github.com:org/repo.git", "path", ""),
        ("ssh://git@github.com/org/repo//path", "git@github.com:org/repo", "path", ""),
        ("github.com:org/repo", "https://github.com/org/repo", "", ""),
        (
            "git::https://gitlab.com/org/repo.git//a?ref=b",
            "https://gitlab.com/org/repo.git",
            "a",
            "b",
        ),
        ("git@gitlab.com:group/sub/repo.git//a", "git@gitlab.com:group/sub/repo.git", "a", ""),
        ("ssh://git@host:7999/group/repo.git/a", "ssh://git@host:7999/group/repo.git", "a", ""),
        (
            "https://user@dev.azure.com/org/project/_git/repo/a/b",
            "https://user@dev.azure.com/org/project/_git/repo",
            "a/b",
            "",
        ),
        ("file:///srv/repo", "file:///srv/repo", "", ""),
        ("file:///srv/repo//a/b?ref=main", "file:///srv/repo", "a/b", "main"),
        ("file:///srv/repo.git/a", "file:///srv/repo.git", "a", ""),
        ("https://host/org/repo/a/b", "https://host/org/repo", "a/b", ""),
    ],
)
def test_address_of_repository_is_split(address: str, clone_spec: str, path: str, ref: str) -> None:
    assert parse_repository(address) == RepoSpec(address, clone_spec, path, ref)


@pytest.mark.parametrize(
    "address",
    [
        "base",
        "../base",
        "/srv/repo",
        "github.com",
        "github.com/org",
        "https://host",
        "https://host/org",
        "org/repo.git",
        "gitlab.com/org/repo",
        "https://github.com/org/repo//../../etc",
        "file://",
        "https://",
    ],
)
def test_path_is_no_repository(address: str) -> None:
    assert parse_repository(address) is None


@pytest.mark.parametrize(
    ("query", "timeout", "submodules"),
    [
        ("timeout=61", 61.0, True),
        ("timeout=1m30s", 90.0, True),
        ("timeout=-3s&submodules=0", 27.0, False),
        ("timeout=x&submodules=maybe", 27.0, True),
        ("submodules=false", 27.0, False),
    ],
)
def test_query_of_address_sets_limits(query: str, timeout: float, submodules: bool) -> None:
    spec = parse_repository(f"github.com/org/repo?{query}")
    assert spec is not None
    assert (spec.timeout, spec.submodules) == (timeout, submodules)


def git(*words: str, folder: Path) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits; clones are made in the folder ``clones``."""
    (folder / "clones").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "clones"))
    repository = folder / "repo"
    for name, content in {
        "base/kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: one-\n",
        "base/cm.yaml": CONFIG_MAP,
        "over/kustomization.yaml": "resources: [../base]\nnameSuffix: -x\n",
        "out/kustomization.yaml": "resources: [../../../repo/base]\n",
        "link/kustomization.yaml": "resources: [secret.yaml]\n",
    }.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(content)
    (repository / "link/secret.yaml").symlink_to("/etc/hostname")
    git("init", "-q", "-b", "main", folder=repository)
    git("add", ".", folder=repository)
    git("commit", "-qm", "one", folder=repository)
    git("tag", "v1", folder=repository)
    (repository / "base/kustomization.yaml").write_text("resources: [cm.yaml]\nnamePrefix: two-\n")
    git("commit", "-qam", "two", folder=repository)
    return repository


def test_base_in_repository_is_cloned_and_removed(
    bare: Kubepy, folder: Path, repository: Path
) -> None:
    write(folder / "a", f"resources: ['file://{repository}//over?ref=v1']\nnamePrefix: my-\n")
    assert (
        bare("kustomize", "a").out
        == "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: my-one-conf-x\n"
    )
    assert os.listdir(folder / "clones") == []


def write(folder: Path, settings: str) -> None:
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(settings)


def test_repository_is_built_and_applied(kubepy: Kubepy, folder: Path, repository: Path) -> None:
    assert kubepy("apply", "-k", f"file://{repository}//over") == Done(
        "configmap/two-conf-x created\n", "", 0
    )
    assert kubepy("delete", "-k", f"file://{repository}//over").status == 0
    assert kubepy("kustomize", f"file://{repository}//base?ref=v1").out.endswith(
        "  name: one-conf\n"
    )
    assert os.listdir(folder / "clones") == []


@pytest.mark.parametrize(
    ("address", "error"),
    [
        (
            "file://DIR/repo//none",
            "evalsymlink failure on 'CLONE/none' : lstat CLONE/none: no such file or directory",
        ),
        (
            "file://DIR/repo//base/cm.yaml",
            "'CLONE/base/cm.yaml' refers to file 'cm.yaml'; expecting directory",
        ),
        (
            "file://DIR/repo//link",
            "security; file 'CLONE/link/secret.yaml' is not in or below 'CLONE/link'",
        ),
        (
            "file://DIR/repo//out",
            "security; bases in kustomizations found in cloned git repos must be within the repo",
        ),
        ("file://DIR/repo//base?ref=none", "fatal: couldn't find remote ref none"),
        (
            "file://DIR/none.git",
            "failed to run 'GIT fetch --depth=1 file://DIR/none.git HEAD': fatal: ",
        ),
        (
            "file://DIR/repo//base?ref=--upload-pack=x",
            'the ref "--upload-pack=x" of \'file://DIR/repo//base?ref='
            "--upload-pack=x' would be an option of git",
        ),
    ],
)
def test_repository_without_kustomization_is_refused(
    bare: Kubepy, folder: Path, repository: Path, address: str, error: str
) -> None:
    done = bare("kustomize", address.replace("DIR", str(folder)))
    clone = f"{folder}/clones/kustomize-{os.getpid() * 1000}"
    assert (done.out, done.status) == ("", 1)
    expected = (
        error.replace("CLONE", clone)
        .replace("DIR", str(folder))
        .replace("GIT", shutil.which("git") or "git")
    )
    assert expected in done.err
    assert os.listdir(folder / "clones") == []


def test_repositories_that_lead_to_each_other_are_a_cycle(
    bare: Kubepy, folder: Path, repository: Path
) -> None:
    address = f"file://{repository}//loop"
    write(repository / "loop", f"resources: ['{address}']\n")
    git("add", ".", folder=repository)
    git("commit", "-qm", "loop", folder=repository)
    assert (
        f"cycle detected: URI '{address}' referenced by previous URI '{address}'"
        in bare("kustomize", address).err
    )


def test_submodules_are_cloned_unless_told_otherwise(
    bare: Kubepy, folder: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COUNT", "1"), ("KEY_0", "protocol.file.allow"), ("VALUE_0", "always")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    whole = folder / "whole"
    write(whole, "resources: [inner/base]\n")
    git("init", "-q", folder=whole)
    git("submodule", "add", "-q", f"file://{repository}", "inner", folder=whole)
    git("add", ".", folder=whole)
    git("commit", "-qm", "whole", folder=whole)
    assert bare("kustomize", f"file://{whole}").out.endswith("  name: two-conf\n")
    assert bare("kustomize", f"file://{whole}?submodules=false").status == 1


def test_missing_git_and_slow_git_are_errors(
    bare: Kubepy, folder: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = folder / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    assert bare("kustomize", f"file://{repository}").err == (
        "error: no 'git' program on path: exec: \"git\": executable file not found in $PATH\n"
    )
    (programs / "git").write_text("#!/bin/sh\nexec /bin/sleep 20\n")
    (programs / "git").chmod(0o755)
    assert bare("kustomize", f"file://{repository}?timeout=100ms").err == (
        f"error: hit 100ms timeout running '{programs}/git init'\n"
    )


def test_resources_and_patches_at_http_addresses_are_read(
    bare: Kubepy, folder: Path, server: Server
) -> None:
    write(
        folder / "a",
        f"resources: ['{server.url}/cm.yaml']\nnamePrefix: my-\n"
        f"configMapGenerator: [{{name: m, files: ['x={server.url}/bad']}}]\n"
        "generatorOptions: {disableNameSuffixHash: true}\n",
    )
    assert bare("kustomize", "a").out == (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: my-a\n---\napiVersion: v1\ndata:\n  "
        "x: 'a: ['\n"
        "kind: ConfigMap\nmetadata:\n  name: my-m\n"
    )


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/404", "accumulating resources from 'URL/404': HTTP Error: status code 404 (Not Found)"),
        ("/404/repo", "URL is a git repository"),
    ],
)
def test_http_errors_are_reported(
    bare: Kubepy, folder: Path, server: Server, path: str, error: str
) -> None:
    write(folder / "a", f"resources: ['{server.url}{path}']\n")
    done = bare("kustomize", "a")
    assert error.replace("URL/", f"{server.url}/") in done.err
    assert (done.out, done.status) == ("", 1)
    assert server.asked[0] == path
