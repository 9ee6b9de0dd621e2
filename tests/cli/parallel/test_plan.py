"""The runs of a plan that processes and executors make are those that one process makes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.cli.errors import CliError
from kubepy.cli.main import main
from kubepy.cli.parallel import commandfiles
from kubepy.cli.parallel.commandfiles import CommandFiles, command_files
from kubepy.fuzz import fuzz

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "web:2"}]}
"""
SLOWLY = "5s..20s"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with a folder of manifests."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "web.yaml").write_text(WEB)
    return tmp_path


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster.temporary(nodes=3) as cluster:
        yield cluster


class AnotherMachine(Executor):
    """Works in this process as another machine would: the files of the working directory are gone
    before it begins."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.calls = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        aside = self._folder.with_name(f"{self._folder.name}-aside")
        self._folder.rename(aside)
        self._folder.mkdir()
        future: Future[Any] = Future()
        try:
            with self._monkeypatch.context() as patch:
                patch.chdir("/")
                patch.setattr(commandfiles, "_this_process", lambda: ("elsewhere", self.calls))
                future.set_result(function(*args, **kwargs))
        finally:
            self._folder.rmdir()
            aside.rename(self._folder)
        return future


# --- the same plan


def test_plan_of_cluster_in_memory_is_the_same_everywhere(cluster: Cluster) -> None:
    here = cluster.plan("apply -f m", runs=6, ready_after=SLOWLY)
    assert here.runs is not None
    assert here.runs["count"] == 6
    assert cluster.plan("apply -f m", runs=6, jobs=2, ready_after=SLOWLY) == here
    with ThreadPoolExecutor(2) as executor:
        assert cluster.plan("apply -f m", runs=6, executor=executor, ready_after=SLOWLY) == here


def test_other_machine_gets_the_files(
    cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "base").mkdir()
    shutil.move(folder / "m" / "web.yaml", folder / "base")
    (folder / "base" / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    (folder / "m" / "kustomization.yaml").write_text("resources: [../base]\nnameSuffix: -b\n")
    here = cluster.plan("apply -k m", runs=4, ready_after=SLOWLY)
    machine = AnotherMachine(folder, monkeypatch)
    there = cluster.plan("apply -k m", runs=4, ready_after=SLOWLY, executor=machine)
    assert machine.calls == 3
    assert there == here


def test_other_machine_gets_standard_input(
    cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = cluster.plan("apply -f -", stdin=WEB, runs=3, ready_after=SLOWLY)
    machine = AnotherMachine(folder, monkeypatch)
    there = cluster.plan("apply -f -", stdin=WEB, runs=3, ready_after=SLOWLY, executor=machine)
    assert there == here


def test_fuzz_on_other_machine_gets_the_files(
    cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = fuzz(checks=["settles"], commands=["apply -f m"], cluster=cluster, seeds=range(4))
    machine = AnotherMachine(folder, monkeypatch)
    there = fuzz(
        checks=["settles"],
        commands=["apply -f m"],
        cluster=cluster,
        seeds=range(4),
        executor=machine,
    )
    assert machine.calls
    assert not here.failed
    assert there == here


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], ["apply", "-f", "m"]),  # there is no cluster: the command would make one
        (["--state=there"], ["apply", "-n", "team", "-f", "m"]),
        (["--state=there"], ["-n", "team", "scale", "deploy/web", "--replicas=5"]),
        (["--state=there", "-n", "team"], []),  # about what is under way
    ],
)
def test_processes_work_with_the_flags_of_the_line(
    flags: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    there = ["--state=there"]
    assert main([*there, "init", "--nodes=2", "--clock=2026-01-01T00:00:00Z", "--seed=3"]) == 0
    assert main([*there, "create", "namespace", "team"]) == 0
    assert main([*there, "-n", "team", "apply", "-f", "m"]) == 0
    capsys.readouterr()
    said = []
    for jobs in ("1", "2"):
        line = ["plan", *flags, "-o=json", f"--ready-after={SLOWLY}", "--runs=4", f"--jobs={jobs}"]
        assert main([*line, "--", *words]) == 0
        said.append(json.loads(capsys.readouterr().out)["runs"])
    assert said[0] == said[1]
    assert said[0]["finished"] == 4


# --- errors


def test_unknown_setting_is_refused(cluster: Cluster) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'runz'"):
        cluster.plan("apply -f m", runz=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="runs='3': must be a whole number"):
        cluster.plan("apply -f m", runs="3")  # type: ignore[arg-type]


def test_failing_run_is_said_once(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    class Fails(Executor):
        def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            Path("m").rename("gone")
            future: Future[Any] = Future()
            future.set_result(function(*args, **kwargs))
            return future

    with pytest.raises(Exception, match='error: the path "m" does not exist'):
        cluster.plan("apply -f m", runs=2, executor=Fails())


def test_revisions_are_not_for_other_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--on=dask://here:1", "--runs=3", "--from=main", "-f", "m"]) == 1
    assert capsys.readouterr().err == (
        "error: --on is for a command: other machines have no git repository for --from\n"
    )


def test_absolute_path_is_refused(folder: Path) -> None:
    path = str(folder / "m" / "web.yaml")
    for word in (path, f"--filename={path}", str(folder / "m")):
        with pytest.raises(CliError, match="name it by a relative path"):
            command_files({path: b"a"}, ["apply", "-f", word])
    command_files({path: b"a"}, ["apply", "-f", "m/web.yaml", str(folder / "other")])


def test_unpacked_files_are_removed_in_the_end(folder: Path) -> None:
    files = command_files({"m/web.yaml": b"here", "../up.yaml": b"up"}, [])
    shutil.rmtree(folder / "m")
    with CommandFiles(files.folder, files.contents, ("elsewhere", 1)).unpacked():
        place = Path.cwd()
        assert (place / "m" / "web.yaml").read_bytes() == b"here"
        assert (place / ".." / "up.yaml").read_bytes() == b"up"
    assert Path.cwd() == folder
    assert not place.exists()
