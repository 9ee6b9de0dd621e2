"""Runs are made by processes, threads, other executors; what comes of them is the same."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from kubepy.cli.parallel import runmaker
from kubepy.cli.parallel.processes import process_pool
from kubepy.cli.parallel.runmaker import RunMaker, Task
from kubepy.clusters import Cluster
from kubepy.controlplane.images import image_of
from kubepy.fuzz import fuzz
from kubepy.fuzz.reporting import FuzzReport
from kubepy.fuzz.run import RunRecord
from kubepy.fuzz.session import WORK, FuzzFiles, new_case
from kubepy.fuzz.workers import run_part, task_of
from kubepy.runtime.oracle import RunName
from kubepy.storage import FolderError
from tests.waiting import eventually

# Creates as many pods as it lacks in what its cache holds: too many where that is old.
OPERATOR = """
def operator(cluster):
    @cluster.controller("worker", watches=["configmaps", "pods"])
    def reconcile(client, key):
        if key.resource != "configmaps":
            return
        wanted = client.get("configmap", key.name, namespace=key.namespace)["data"].get("n")
        pods = client.list("pods", labels={"of": key.name})
        for _ in range(len(pods), int(wanted or 0)):
            client.create({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"generateName": "a-", "namespace": "default", "labels": {"of": "a"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            })

def workload(cluster):
    cluster.client.create({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"},
        "data": {"n": "2"},
    })
    cluster.settle()
    cluster.client.patch("configmap/a", {"data": {"n": "3"}})
"""
CHECKS = """
- name: at most three
  always: pods.filter(p, has(p.metadata.labels) && 'of' in p.metadata.labels).size() <= 3
"""
SEEDS = [RunName(seed) for seed in range(60)]
PROMPT = 60  # seconds, on a busy machine
PATIENCE = 60
LINES = 20  # of a search in whose processes runs are made, if there are any


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    operator, checks = tmp_path / "operator.py", tmp_path / "checks.yaml"
    operator.write_text(OPERATOR)
    checks.write_text(CHECKS)
    return str(operator), str(checks)


@pytest.fixture
def case(files: tuple[str, str]) -> Task[RunRecord]:
    return task_of(new_case(FuzzFiles(files[0], [files[1]]), None))


@pytest.fixture
def records(case: Task[RunRecord]) -> list[RunRecord]:
    return list(RunMaker(case).run_many(SEEDS))


class Backwards(Executor):
    """Does what it is asked for when somebody waits for the first of it: the last comes first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.done: list[int] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = _AsksBack(self._do_all)
        self._waiting.append((future, lambda: function(*args, **kwargs)))
        return future

    def _do_all(self) -> None:
        while self._waiting:
            future, work = self._waiting.pop()
            self.done.append(len(self._waiting))
            future.set_result(work())


class _AsksBack(Future[Any]):
    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__()
        self._before = before

    def result(self, timeout: float | None = None) -> Any:
        self._before()
        return super().result(timeout)


class Loses(Executor):
    """Loses the worker of each call whose number is in a list."""

    def __init__(self, lost: Sequence[int]) -> None:
        self._lost = lost
        self.calls = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.calls in self._lost:
            future.set_exception(BrokenExecutor("lost"))
        else:
            future.set_result(function(*args, **kwargs))
        self.calls += 1
        return future


# --- the same records


def test_some_of_the_runs_are_violated(records: list[RunRecord]) -> None:
    violated = [record for record in records if record.violation is not None]
    assert 0 < len(violated) < len(records)


def test_processes_return_the_same_records(case: Task[RunRecord], records: list[RunRecord]) -> None:
    with process_pool(2, WORK) as pool:
        assert list(RunMaker(case, pool, jobs=2).run_many(SEEDS)) == records


def test_cluster_without_a_seed_has_the_same_records_everywhere(tmp_path: Path) -> None:
    cluster = Cluster.temporary(nodes=1)
    cluster.run("create deployment web --image=web:1 --replicas=2")
    with cluster._open() as local:
        image = image_of(local)
    files = FuzzFiles(checks=["bounds"], commands=[["set", "image", "deploy/web", "web=web:2"]])
    case = task_of(new_case(files, image))
    with process_pool(1, WORK) as pool:
        records = list(RunMaker(case, pool).run_many(SEEDS[:2]))
    assert records == list(RunMaker(case).run_many(SEEDS[:2]))
    assert all(record.writes > 5 for record in records)


def test_threads_return_the_same_records(case: Task[RunRecord], records: list[RunRecord]) -> None:
    with ThreadPoolExecutor(3) as pool:
        assert list(RunMaker(case, pool, jobs=3).run_many(SEEDS)) == records


def test_order_in_which_parts_are_done_does_not_matter(
    case: Task[RunRecord], records: list[RunRecord]
) -> None:
    executor = Backwards()
    assert list(RunMaker(case, executor, jobs=2).run_many(SEEDS)) == records
    assert executor.done == sorted(executor.done, reverse=True)
    assert len(executor.done) > 2


def test_report_does_not_depend_on_executor(files: tuple[str, str]) -> None:
    def report(**settings: Any) -> FuzzReport:
        return fuzz(files[0], [files[1]], seeds=range(60), **settings)

    here = report()
    assert not here
    assert report(executor=Backwards()) == here
    assert report(jobs=2) == here


def test_processes_begin_when_enough_is_left_to_do(
    case: Task[RunRecord], records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def new_executor() -> Executor:
        begun.append(Loses([]))
        return begun[-1]

    few = RunMaker(case, new_executor=new_executor, expected=len(SEEDS))
    monkeypatch.setattr(runmaker, "PAYS", 1e9)
    assert list(few.run_many(SEEDS)) == records
    assert not begun
    many = RunMaker(case, new_executor=new_executor, expected=len(SEEDS))
    monkeypatch.setattr(runmaker, "PAYS", 0.0)
    assert list(many.run_many(SEEDS)) == records
    assert len(begun) == 1


# --- lost workers


@pytest.mark.parametrize("lost", [[0], [2], [0, 1, 2], [0, 3]])
def test_lost_runs_are_made_again(
    case: Task[RunRecord], records: list[RunRecord], lost: Sequence[int]
) -> None:
    executor = Loses(lost)
    assert list(RunMaker(case, executor, jobs=1).run_many(SEEDS)) == records
    assert executor.calls > 3


def test_run_whose_worker_is_always_lost_is_named(case: Task[RunRecord]) -> None:
    with pytest.raises(FolderError, match="run 0: each of 3 processes that made it has ended"):
        list(RunMaker(case, Loses(range(100_000))).run_many(SEEDS))


def ending(tmp_path: Path, condition: str) -> Task[RunRecord]:
    """Return a case whose workload ends its process on a condition."""
    operator = tmp_path / "ending.py"
    operator.write_text(
        "import os\n"
        "def workload(cluster):\n"
        f"    if os.getpid() != {os.getpid()} and {condition}:\n"
        "        os._exit(3)\n"
        "    cluster.client.create({'apiVersion': 'v1', 'kind': 'ConfigMap',\n"
        "        'metadata': {'name': 'a', 'namespace': 'default'}})\n"
    )
    return task_of(new_case(FuzzFiles(str(operator), ["settles"]), None))


def made_by_processes(case: Task[RunRecord]) -> list[RunRecord]:
    with ExitStack() as stack:

        def new_pool() -> Executor:
            return stack.enter_context(process_pool(2, WORK))

        maker = RunMaker(case, new_pool(), new_executor=new_pool, jobs=2)
        return list(maker.run_many(SEEDS[:6]))


def test_killed_process_is_replaced(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    once = f"not os.path.exists({str(mark)!r}) and not os.close(os.open({str(mark)!r}, os.O_CREAT))"
    case = ending(tmp_path, once)
    assert [record.name for record in made_by_processes(case)] == SEEDS[:6]
    assert mark.exists()


def test_run_that_ends_its_processes_is_named(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="run 0: each of 3 processes that made it has ended"):
        made_by_processes(ending(tmp_path, "True"))


def test_broken_executor_of_somebody_else_is_said(tmp_path: Path) -> None:
    case = ending(tmp_path, "True")
    with process_pool(1, WORK) as pool, pytest.raises(FolderError, match="has lost its workers"):
        list(RunMaker(case, pool).run_many(SEEDS[:2]))


# --- errors


def test_error_of_a_worker_is_one_line(tmp_path: Path) -> None:
    operator = tmp_path / "operator.py"
    operator.write_text("def workload(cluster):\n    raise ValueError('no\\nthing')\n")
    case = task_of(new_case(FuzzFiles(str(operator), ["settles"]), None))
    with process_pool(1, WORK) as pool, pytest.raises(FolderError) as raised:
        list(RunMaker(case, pool).run_many(SEEDS))
    assert str(raised.value) == f"{operator}:2: workload: ValueError: no\\nthing"


def test_other_version_is_refused_before_the_case_is_opened() -> None:
    answer = run_part("0.0.1", b"not a case", ["0"])
    assert not answer.records
    assert answer.error.startswith("a worker has kubepy ")
    assert answer.error.endswith("and this is kubepy 0.0.1")


# --- the end


def test_processes_end_with_the_block_whatever_they_do() -> None:
    with process_pool(2, WORK) as pool:
        sleeping = [pool.submit(time.sleep, 600) for _ in range(4)]
        eventually(lambda: all(future.running() for future in sleeping[:2]))
        begun = time.monotonic()
    assert time.monotonic() - begun < PROMPT
    assert all(future.done() for future in sleeping)


@pytest.fixture
def begin_search(
    files: tuple[str, str], tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a search of many seeds as a process in a group of its own; wait until it keeps
    records. The working directory has a file operator.py."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-P", "-m", "kubepy", "fuzz", f"--operator={files[0]}"]
        process = subprocess.Popen(
            [*line, f"--check={files[1]}", "--seeds=0..99999", *words],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=take_interrupts,
        )
        begun.append(process)
        eventually(lambda: process.poll() is not None or kept_lines(tmp_path) > LINES, PATIENCE)
        assert process.poll() is None, process.communicate()
        return process

    yield begin
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def kept_lines(folder: Path) -> int:
    """Return how many lines a search has kept so far."""
    files = (folder / "cache/kubepy/fuzz").glob("*.jsonl")
    return sum(len(file.read_bytes().splitlines()) for file in files)


def take_interrupts() -> None:
    """Let a process end by Ctrl-C, also where this one was started in the background of a script,
    which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_over(group: int) -> bool:
    """Return whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupt_ends_all_processes_without_a_traceback(
    begin_search: Callable[..., subprocess.Popen[str]], jobs: int
) -> None:
    search = begin_search(f"--jobs={jobs}")
    os.killpg(search.pid, signal.SIGINT)
    out, err = search.communicate(timeout=PATIENCE)
    assert search.returncode == 130
    assert not out
    begins, ends = err.splitlines()
    assert begins.startswith("note: each run begins with a fresh cluster")
    assert re.fullmatch(r"note: ended after \d+ runs; --resume goes on with them", ends)
    eventually(lambda: is_over(search.pid), PATIENCE)


def test_processes_end_when_the_search_is_killed(
    begin_search: Callable[..., subprocess.Popen[str]],
) -> None:
    search = begin_search("--jobs=2")
    search.kill()
    search.wait()
    eventually(lambda: is_over(search.pid), PATIENCE)
