"""A cluster of Dask makes the runs of a fuzz, and of a plan."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy import Cluster
from kubepy.cli.errors import CliError
from kubepy.cli.parallel import daskcluster
from kubepy.cli.parallel.runmaker import RunMaker
from kubepy.fuzz.session import FuzzFiles, new_case
from kubepy.fuzz.workers import task_of
from kubepy.runtime.oracle import RunName
from tests.cli.parallel.test_plan import WEB
from tests.cli.parallel.test_runmaker import CHECKS, OPERATOR

pytest.importorskip("distributed")

SEEDS = [RunName(seed) for seed in range(24)]
HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a scheduler and a worker; return what ``--on`` takes."""
    folder = tmp_path_factory.mktemp("dask")
    port = free_port()
    scheduler = ["scheduler", "--host", HOST, "--port", str(port)]
    worker = ["worker", f"tcp://{HOST}:{port}", "--nthreads", "1", "--no-nanny"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "dask", *words, "--no-dashboard"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in (scheduler, worker)
    ]
    yield f"dask://{HOST}:{port}"
    for process in processes:
        process.kill()
        process.wait()


def test_dask_returns_the_same_records(address: str, tmp_path: Path) -> None:
    operator, checks = tmp_path / "own.py", tmp_path / "checks.yaml"
    operator.write_text(OPERATOR + "#" * daskcluster.LARGE)
    checks.write_text(CHECKS)
    case = task_of(new_case(FuzzFiles(str(operator), [str(checks)]), None))
    executor = daskcluster.DaskExecutor(address)
    try:
        records = list(RunMaker(case, executor, jobs=executor.workers).run_many(SEEDS))
        assert len(executor._sent) == 1
    finally:
        executor.shutdown(cancel_futures=True)
    assert records == list(RunMaker(case).run_many(SEEDS))


def test_dask_makes_the_runs_of_a_plan(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "web.yaml").write_text(WEB)
    with Cluster.temporary(nodes=2) as cluster:
        line = "plan -o json --runs=6 --ready-after=5s..20s"
        here = cluster.run(f"{line} apply -f m", check=True).stdout
        there = cluster.run(f"{line} --on={address} apply -f m", check=True).stdout
    assert there == here


def test_worker_with_another_version_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daskcluster, "__version__", "0.0.1")
    with pytest.raises(CliError, match=r"the worker tcp://\S+ has kubepy \S+; it needs kubepy 0.0"):
        daskcluster.DaskExecutor(address)


def test_worker_without_kubepy_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daskcluster, "VERSION", "__import__('kubepy_that_is_not_there')")
    with pytest.raises(CliError, match=r"the worker tcp://\S+ cannot import kubepy: No module"):
        daskcluster.DaskExecutor(address)


def test_scheduler_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daskcluster, "PATIENCE", 1)
    address = f"dask://{HOST}:{free_port()}"
    with pytest.raises(CliError, match=f"--on={address}: no scheduler of Dask answers there"):
        daskcluster.DaskExecutor(address)


@pytest.mark.parametrize("address", ["tcp://here:1", "dask://", "8786"])
def test_other_address_is_refused(address: str) -> None:
    with pytest.raises(CliError, match="must be dask://HOST:PORT"):
        daskcluster.DaskExecutor(address)
