"""A running cluster as a source: which requests are made of it, and by which program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.importing.errors import SourceError
from kubepy.importing.live import LiveSource, files_of_cluster, find_kubectl
from tests.cli.conftest import Done, run
from tests.importing.conftest import kubepy
from tests.server.conftest import ServerProcess

SECONDS = 60
# Answers as kubectl v1.36 prints them, and notes each request.
FAKE = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *--namespaced=false*) echo "nodes no v1 false Node create,delete,get,list" ;;
  *--namespaced=true*)
    echo "pods po v1 true Pod create,get,list all"
    echo "events ev events.k8s.io/v1 true Event get,list"
    echo "pods metrics.k8s.io/v1beta1 true PodMetrics get,list"
    echo "secrets v1 true Secret create,get,list"
    echo "deployments deploy apps/v1 true Deployment create,get,list all" ;;
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
    pauses: list[float] = []
    files = list(files_of_cluster(source, lambda *progress: None, pauses.append))
    unread = [file.problem for file in files if file.problem]
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


@pytest.mark.parametrize(
    "kinds",
    [
        ("po", "Deployment"),
        ("pods", "deployments.apps"),
        ("PODS", "deploy.apps"),
        ("pod.v1.", "deployments.v1.apps"),
        ("all",),
    ],
)
def test_kinds_are_those_that_the_user_names(fake: str, log: Path, kinds: tuple[str, ...]) -> None:
    assert asked(LiveSource(fake, kinds=kinds), log)[0] == ["get pods", "get deployments.apps"]


@pytest.mark.parametrize(
    ("kinds", "unknown"),
    [
        (("things",), "things"),
        (("pods", "deploymnets"), "deploymnets"),
        (("a", "po", "b", "pods.metrics.k8s.io"), "a, b, pods.metrics.k8s.io"),
    ],
)
def test_unknown_kind_is_an_error(
    fake: str, log: Path, kinds: tuple[str, ...], unknown: str
) -> None:
    with pytest.raises(SourceError) as error:
        asked(LiveSource(fake, kinds=kinds), log)
    assert str(error.value) == f"the current context: has no {unknown} that could be imported"
    assert len(log.read_text().splitlines()) == 2  # discovery alone


def test_kind_that_incomplete_discovery_leaves_out_is_an_error_that_says_so(
    running: RunningCluster,
) -> None:
    (running.folder / "stale").write_text("error: the list of server APIs is not complete\n")
    done = running.bring("--into", str(running.state), "--kinds=pods,widgets")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "error: context staging: has no widgets that could be imported, or discovery does not tell "
        "of it: the list of server APIs is not complete\n"
    )


def test_list_of_resources_that_is_none_is_an_error(running: RunningCluster) -> None:
    (running.folder / "cluster").write_text("welcome to kubectl\n")
    done = running.bring("--into", str(running.state))
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "error: context staging: kubectl api-resources does not list resources: "
        "welcome to kubectl\n"
    )


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


# --- requests that fail ---------------------------------------------------------------------------

# Answers with the files in a folder; a request without one fails, as for a server that is too busy.
SERVING = """#!/bin/sh
case "$*" in
  *--namespaced=false*) file=cluster ;;
  *--namespaced=true*) file=namespaced ;;
  *) file="$2.json" ;;
esac
if [ -f "{folder}/$file" ]; then cat "{folder}/$file"; else
  echo "Error from server (TooManyRequests): try later" >&2; exit 1; fi
if [ "$1" = api-resources ] && [ -f "{folder}/stale" ]; then
  cat "{folder}/stale" >&2; exit 1; fi
"""
SERVED = {
    "nodes": "nodes no v1 false Node list",
    "customresourcedefinitions.apiextensions.k8s.io": "customresourcedefinitions crd "
    "apiextensions.k8s.io/v1 false CustomResourceDefinition list",
    "pods": "pods po v1 true Pod list all",
    "configmaps": "configmaps cm v1 true ConfigMap list",
    "secrets": "secrets v1 true Secret list",
    "deployments.apps": "deployments deploy apps/v1 true Deployment list all",
    "replicasets.apps": "replicasets rs apps/v1 true ReplicaSet list all",
    "things.example.org": "things example.org/v1 true Thing list",
}


class RunningCluster:
    """A cluster in a folder, which a program that behaves as kubectl asks."""

    def __init__(self, world: Path, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "new"
        self.program = folder / "kubectl"
        self.program.write_text(SERVING.format(folder=folder))
        self.program.chmod(0o755)
        self.discover(*SERVED)
        for name in SERVED:
            self.file_of(name).write_text(kubepy(world, "get", name, "-A", "-o", "json").out)

    def discover(self, *names: str) -> None:
        """Let discovery know some resources only."""
        rows = [SERVED[name] for name in names]
        for name, word in (("cluster", " false "), ("namespaced", " true ")):
            lines = [row for row in rows if word in row]
            (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def file_of(self, name: str) -> Path:
        """Return the file with the answer to the request for a resource."""
        return self.folder / f"{name}.json"

    def bring(self, *words: str) -> Done:
        """Import into the place of the state."""
        source = ("--context=staging", f"--kubectl={self.program}")
        return run("--state", str(self.state), "import", *source, *words)

    def bring_later_state(self) -> Done:
        return self.bring("--into", str(self.state))


@pytest.fixture
def running(world: Path, tmp_path: Path) -> RunningCluster:
    """A running cluster that was imported once."""
    cluster = RunningCluster(world, tmp_path)
    assert cluster.bring().status == 0
    return cluster


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a cluster's objects, and its settings."""
    paths = [path for path in folder.rglob("*.yaml") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("failing", SERVED)
def test_objects_of_a_failed_request_stay(running: RunningCluster, failing: str) -> None:
    before = contents(running.state)
    answer = running.file_of(failing).read_text()
    running.file_of(failing).unlink()
    for _ in range(2):
        done = running.bring_later_state()
        assert done.status == 0, done.err
        assert f"  {failing}: Error from server (TooManyRequests): try later\n" in done.out
        assert done.out.endswith("0 removed\nwhat could not be read stays as it was\n")
        assert contents(running.state) == before
    running.file_of(failing).write_text(answer)
    assert "0 created, 0 changed, 0 removed" in running.bring_later_state().out
    assert contents(running.state) == before


@pytest.mark.parametrize("answer", ["", "<html>", '{"apiVersion": "v1", "items": ['])
def test_objects_of_an_answer_that_is_none_stay(running: RunningCluster, answer: str) -> None:
    before = contents(running.state)
    running.file_of("configmaps").write_text(answer)
    assert running.bring_later_state().status == 0
    assert contents(running.state) == before


def test_recording_goes_on_when_a_request_fails(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningCluster(world, tmp_path)
    files: list[int] = []

    def wait(seconds: float) -> None:
        files.append(len(contents(running.state)))
        if len(files) == 3:
            raise KeyboardInterrupt
        running.file_of("secrets").unlink(missing_ok=True)

    monkeypatch.setattr("kubepy.cli.importing.time.sleep", wait)
    done = running.bring("--record=30s")
    assert done.out.count(" 0 removed\n") == 2
    warning = (
        "Warning: could not be read, and stays as it was: secrets: Error from server "
        "(TooManyRequests): try later\n"
    )
    assert done.err.count(warning) == 2
    assert len(set(files)) == 1


def test_objects_of_a_request_that_was_answered_are_removed(running: RunningCluster) -> None:
    running.file_of("secrets").unlink()
    config_maps = running.file_of("configmaps")
    config_maps.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    before = contents(running.state).keys()
    assert running.bring_later_state().status == 0
    gone = before - contents(running.state).keys()
    assert "namespaces/shop/configmaps/settings.yaml" in gone
    assert {path.split("/")[-2] for path in gone} == {"configmaps"}


def test_resources_that_incomplete_discovery_leaves_out_stay(running: RunningCluster) -> None:
    before = contents(running.state)
    reason = "unable to retrieve the complete list of server APIs: example.org/v1: stale"
    (running.folder / "stale").write_text(f"error: {reason}\n")
    running.discover(*(name for name in SERVED if name != "things.example.org"))
    done = running.bring_later_state()
    assert done.status == 0
    assert f"  not all resources are known: {reason}\n" in done.out
    assert contents(running.state) == before
