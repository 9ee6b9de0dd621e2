"""A running cluster as a source: which requests are made of it, and by which program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.importing.errors import SourceError
from kubepy.importing.live import LiveSource, files_of_cluster, find_kubectl
from tests.cli.conftest import run
from tests.importing.conftest import kubepy
from tests.server.conftest import ServerProcess

SECONDS = 60
# Answers as kubectl v1.36 prints them, and notes each request.
FAKE = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *--namespaced=false*) echo "nodes no v1 false Node create,delete,get,list" ;;
  *--namespaced=true*)
    echo "pods po v1 true Pod create,get,list"
    echo "events ev events.k8s.io/v1 true Event get,list"
    echo "pods metrics.k8s.io/v1beta1 true PodMetrics get,list"
    echo "secrets v1 true Secret create,get,list"
    echo "deployments deploy apps/v1 true Deployment create,get,list" ;;
  "get secrets"*) echo 'Error from server (Forbidden): secrets is forbidden' >&2; exit 1 ;;
  "get "*) echo '{{"apiVersion": "v1", "kind": "List", "items": []}}' ;;
esac
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "requests"


@pytest.fixture
def fake(tmp_path: Path, log: Path) -> str:
    path = tmp_path / "bin" / "kubectl"
    path.parent.mkdir()
    path.write_text(FAKE.format(log=log))
    path.chmod(0o755)
    return str(path)


def asked(source: LiveSource, log: Path) -> tuple[list[str], list[str], list[float]]:
    """Read a source; return the requests after discovery, what could not be read, and the
    pauses."""
    unread: list[str] = []
    pauses: list[float] = []
    list(files_of_cluster(source, unread, lambda *progress: None, pauses.append))
    requests = [line.partition(" --")[0] for line in log.read_text().splitlines()]
    return requests[2:], unread, pauses


def test_each_kind_is_listed_once_with_pauses_between(fake: str, log: Path) -> None:
    requests, unread, pauses = asked(LiveSource(fake, "staging"), log)
    assert requests == ["get nodes", "get pods", "get secrets", "get deployments.apps"]
    assert unread == ["secrets: Error from server (Forbidden): secrets is forbidden"]
    assert pauses == [0.1] * 3
    lines = log.read_text().splitlines()
    assert all("--context=staging" in line for line in lines)
    assert all(line.startswith(("api-resources ", "get ")) for line in lines)
    assert [line for line in lines if "--chunk-size=500" not in line] == lines[:2]


def test_namespace_is_asked_for_where_there_are_namespaces(fake: str, log: Path) -> None:
    asked(LiveSource(fake, namespace="shop"), log)
    nodes, pods = log.read_text().splitlines()[2:4]
    assert "--namespace" not in nodes
    assert "--namespace=shop" in pods
    assert "--all-namespaces" not in pods


@pytest.mark.parametrize("kinds", [("po", "Deployment"), ("pods", "deployments.apps")])
def test_kinds_are_those_that_the_user_names(fake: str, log: Path, kinds: tuple[str, ...]) -> None:
    assert asked(LiveSource(fake, kinds=kinds), log)[0] == ["get pods", "get deployments.apps"]


def test_unknown_kind_is_an_error(fake: str, log: Path) -> None:
    with pytest.raises(SourceError, match="the current context: has no things"):
        asked(LiveSource(fake, kinds=("things",)), log)


def test_kubectl_of_the_path_is_another_program(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own" / "kubectl"
    own.parent.mkdir()
    own.symlink_to(Path(sys.executable).with_name("kubepy"))
    monkeypatch.setenv("PATH", os.pathsep.join((str(own.parent), os.path.dirname(fake))))
    assert find_kubectl() == fake
    monkeypatch.setenv("PATH", str(own.parent))
    with pytest.raises(SourceError, match="no kubectl on the PATH other than kubepy"):
        find_kubectl()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")
def test_running_cluster_is_imported_as_it_is(world: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    kubepy(world, "fork", str(source))
    server = ServerProcess(source)
    try:
        kubectl = ["kubectl", "--kubeconfig", str(server.kubeconfig)]
        words = [*kubectl, "config", "current-context"]
        context = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        words = [*kubectl, "get", "pods,deploy,rs,nodes", "-A", "-o", "yaml"]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        folder = tmp_path / "new"
        done = run(
            *("--state", str(folder), "import", "--context", context),
            *("--kubeconfig", str(server.kubeconfig), "--kinds=pods,deploy,rs,nodes,namespaces"),
        )
        assert (done.status, done.err) == (0, "")
        words = ["get", "pods,deploy,rs,nodes", "-A", "-o", "yaml"]
        assert kubepy(folder, "--reconcile=never", *words).out == printed
    finally:
        server.process.terminate()
        server.process.wait(SECONDS)
