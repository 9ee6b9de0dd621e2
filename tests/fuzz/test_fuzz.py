"""A fuzz from beginning to end: searches, replays, shrinking, transcripts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.cli.main import main
from kubepy.fuzz import cases, fuzz, patience
from kubepy.fuzz.cases import ChecksSource, FuzzCase, World
from kubepy.fuzz.checks import Violation
from kubepy.fuzz.operators import OperatorSource
from kubepy.fuzz.run import FuzzRun, RunRecord
from kubepy.fuzz.shrinking import Shrinker
from kubepy.runtime.oracle import Choice, RunName
from kubepy.storage import FolderError

PAGE = Path(__file__).parents[2] / "docs" / "fuzz"
OPERATOR = PAGE / "pools.py"
CHECKS = PAGE / "checks.yaml"
MENDED = OPERATOR.read_text().replace(
    """            for _ in range(len(pods), int(pool["data"]["size"])):
                client.create(pod_of(name))
""",
    """            there = {pod["metadata"]["name"] for pod in pods}
            for number in range(int(pool["data"]["size"])):
                pod = pod_of(name)
                del pod["metadata"]["generateName"]
                pod["metadata"]["name"] = f"{name}-{number}"
                if pod["metadata"]["name"] not in there:
                    client.apply(pod)
""",
)


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    assert OPERATOR.read_text() != MENDED
    path = tmp_path / "mended.py"
    path.write_text(MENDED)
    return path


def world_of(operator: str = OPERATOR.read_text(), checks: str = CHECKS.read_text()) -> World:
    case = FuzzCase(
        operator=OperatorSource("pools.py", operator),
        checks=(ChecksSource("checks.yaml", checks),),
        disturbs_all=False,
    )
    return World(case)


def test_bug_is_found_and_shrunk_to_one_disturbance() -> None:
    report = fuzz(OPERATOR, [CHECKS], seeds=range(30))
    assert not report
    [found] = report.violations
    assert found.check == "never too many"
    assert len(found.disturbances) == 1
    assert len(found.transcript.splitlines()) <= 40
    assert report.runs >= 30


def test_replay_repeats_the_violation_to_the_byte(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    [found] = fuzz(OPERATOR, [CHECKS], seeds=range(30)).violations
    printed = []
    for _ in range(2):
        words = [f"--operator={OPERATOR}", f"--check={CHECKS}", f"--seed={found.replay}"]
        assert main(["fuzz", *words]) == 2
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "violated: never too many" in printed[0]
    assert found.disturbances[0].split(" ends ")[0] in printed[0]


def test_mended_twin_is_not_accused(mended: Path) -> None:
    assert fuzz(mended, [CHECKS], seeds=range(60))


def test_seed_zero_disturbs_nothing() -> None:
    record = FuzzRun(world_of(), RunName(0)).go()
    assert record.violation is None
    assert record.choices == ()
    assert record.settled


def test_run_of_given_choices_is_that_of_its_seed() -> None:
    world = world_of()
    for seed in (2, 3, 6, 10, 14):
        record = FuzzRun(world, RunName(seed)).go()
        given = {choice.key: choice.value for choice in record.choices}
        again = FuzzRun(world, RunName(seed, given)).go()
        assert again.choices == record.choices
        assert again.writes == record.writes
        assert again.violation == record.violation


def test_worlds_of_one_case_have_the_same_runs() -> None:
    first, second = world_of(), world_of()
    for seed in range(20):
        assert FuzzRun(first, RunName(seed)).go() == FuzzRun(second, RunName(seed)).go()


def test_shrinking_keeps_what_is_needed() -> None:
    """Of many choices those stay without which the check holds."""
    world = world_of()
    seed = next(s for s in range(64, 400, 2) if is_long(FuzzRun(world, RunName(s)).go()))
    record = FuzzRun(world, RunName(seed)).go()
    smaller = Shrinker(lambda name, left: FuzzRun(world, name).go(), record, 0).shrink()
    assert 1 <= len(smaller.record.choices) < len(record.choices)
    assert smaller.record.violation is not None
    for dropped in smaller.record.choices:
        rest = {choice.key: choice.value for choice in smaller.record.choices if choice != dropped}
        assert FuzzRun(world, RunName(seed, rest)).go().violation is None


def test_shrinking_keeps_the_command_without_which_it_is_violated_anyway() -> None:
    violation = Violation("there at the end", 1.0, "2026-01-01T00:01:00Z", None, 0, "it is not")
    choice = Choice("aaaaaaaa", 1, "late", ("worker", "pods", "default", "a"))

    def attempt(name: RunName, left_out: tuple[int, ...]) -> RunRecord:
        """Make a run of three commands, of which the second makes what must be there."""
        is_disturbed = choice.key in (name.choices or {})
        is_missing = 1 in left_out or is_disturbed
        return RunRecord(name, violation if is_missing else None, (choice,) * is_disturbed)

    record = attempt(RunName(5, {choice.key: 1}), ())
    smaller = Shrinker(attempt, record, 3).shrink()
    assert smaller.record.choices == (choice,)
    assert smaller.left_out == (2, 0)


def is_long(record: RunRecord) -> bool:
    return record.violation is not None and len(record.choices) > 1


def test_memory_of_the_operator_is_lost_when_it_ends() -> None:
    operator = """
seen = []

def operator(cluster):
    count = 0

    @cluster.controller("counter", watches=["configmaps"])
    def reconcile(client, key):
        nonlocal count
        if key.name == "small" and count < 4:
            count += 1
            seen.append(key)
            said = {"data": {"count": str(count), "seen": str(len(seen))}}
            client.patch("configmap/small", said)

def workload(cluster):
    metadata = {"name": "small", "namespace": "default"}
    cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
"""
    world = world_of(operator, "- {name: is there, eventually: configmaps.size() > 0}\n")
    assert counted(world, 0) == (4, "4", "4")  # writes of the ConfigMap behind the first
    ended = {counted(world, seed) for seed in range(1, 20, 2)}
    assert max(ended)[0] > 4
    assert all(count == seen for _, count, seen in ended)  # variables of the module are lost, too


def counted(world: World, seed: int) -> tuple[int, str, str]:
    run = FuzzRun(world, RunName(seed), explains=True)
    record = run.go()
    writes = [step for step in record.steps if step.words == "configmaps default/small"]
    data = run.cluster.client.get("cm/small")["data"]
    return len(writes) - 1, data["count"], data["seen"]


def test_cluster_at_hand_is_only_read(tmp_path: Path) -> None:
    with Cluster.create(tmp_path / "state", nodes=2, clock="2026-01-01T00:00:00Z", seed=1) as own:
        own.run("create deployment web --image=web:1 --replicas=2", check=True)
        own.settle()
        before = own.run("get all -o yaml").stdout
        report = fuzz(
            checks=["settles", "bounds"],
            commands=["set image deploy/web web=web:2", "scale deploy/web --replicas=3"],
            seeds=range(4),
            cluster=own,
        )
        assert report
        assert own.run("get all -o yaml").stdout == before


def test_commands_that_are_not_needed_are_left_out(tmp_path: Path) -> None:
    checks = tmp_path / "checks.yaml"
    checks.write_text("- {name: no pods, never: 'pods.size() > 0'}\n")
    report = fuzz(
        checks=[checks],
        commands=[
            "create configmap a",
            "create deployment web --image=web:1",
            "create configmap b",
        ],
        seeds=range(2),
    )
    [found] = report.violations
    assert found.disturbances == ()
    assert found.left_out == (2, 0)
    assert "-- create deployment web --image=web:1\n" in found.transcript


def test_collection_that_was_there_before_is_judged_when_it_goes(tmp_path: Path) -> None:
    """The namespace controller deletes all objects of a kind with one request."""
    checks = tmp_path / "checks.yaml"
    expression = "configmaps.exists(c, c.metadata.name == 'kept')"
    checks.write_text(f"- name: stays\n  always: {expression}\n")
    with Cluster.temporary() as own:
        own.run("create namespace shop", check=True)
        own.run("create configmap kept -n shop", check=True)
        own.settle()
        commands = ["delete namespace shop --wait=false"]
        report = fuzz(checks=[checks], commands=commands, seeds=range(1), cluster=own)
    [found] = report.violations
    assert found.violation.key == ("configmaps", "shop", "kept")


def test_exceptions_of_operators_are_said_with_each_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raises.py").write_text(
        "def operator(cluster):\n"
        "    @cluster.controller('raises', watches=['nodes'])\n"
        "    def reconcile(client, key):\n"
        "        raise KeyError('a')\n"
    )
    for output in ("text", "json"):
        words = ("--operator=raises.py", "--check=settles", "--seed=0", "-o", output)
        _, out, err = fuzz_line(capsys, *words)
        assert out
        assert "note: an exception of the operator: controller raises: KeyError: 'a'" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def operator(", r"pools\.py:1: "),
        ("x = 1", "has neither"),
        ("def operator(cluster):\n    raise KeyError('a')", r"pools\.py:2: operator: KeyError"),
        ("def workload(cluster):\n    cluster.nothing", r"pools\.py:2: workload: Attribute"),
    ],
)
def test_wrong_operators_are_errors(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pools.py"
    path.write_text(text)
    with pytest.raises(FolderError, match=message):
        fuzz(path, [CHECKS], seeds=range(1))


def test_check_that_cannot_be_evaluated_after_a_write_of_a_controller_is_an_error(
    tmp_path: Path,
) -> None:
    checks = tmp_path / "checks.yaml"
    checks.write_text("- name: ip\n  always: pods.all(p, p.status.podIP != '')\n")
    with pytest.raises(FolderError, match=r"check ip: cannot be evaluated of Pod .*no such key"):
        fuzz(checks=[checks], commands=["create deployment web --image=web:1"], seeds=range(1))


BROKEN = """
def operator(cluster):
    @cluster.controller("broken", watches=["nodes"])
    BODY
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def reconcile(client, key): raise ValueError('x')", "fails undisturbed: .*x"),
        ("async def reconcile(client, key): pass", "must not be async"),
    ],
)
def test_operator_that_cannot_work_is_an_error(body: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN.replace("BODY", body))
    with pytest.raises(FolderError, match=message):
        fuzz(path, ["settles"], seeds=range(1))


@pytest.mark.parametrize("text", ["while 1: 1\n", "def operator(cluster):\n    while 1: 1\n"])
def test_operator_whose_start_has_no_end_is_an_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "LONGEST_START", 0.3)
    path = tmp_path / "endless.py"
    path.write_text(text)
    with pytest.raises(FolderError, match=r"endless\.py:[12]: no end of its start"):
        fuzz(path, ["settles"], ["get nodes"], seeds=range(1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--state=there", "--check=settles", "--", "get", "nodes"], 'no cluster in "there"'),
        (["--check=settles", "--", "get", "pods", "-w"], "it goes on until it is interrupted"),
    ],
)
def test_what_cannot_be_run_is_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = fuzz_line(capsys, *words)
    assert (status, out) == (1, "")
    assert message in err


def test_command_that_fails_undisturbed_is_an_error() -> None:
    with pytest.raises(FolderError, match='doesn\'t have a resource type "podz"'):
        fuzz(checks=["settles"], commands=["get podz"], seeds=range(1))


def test_function_that_never_returns_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LONGEST_CALL", 0.3)
    path = tmp_path / "endless.py"
    path.write_text(
        "def operator(cluster):\n"
        "    @cluster.controller('endless', watches=['nodes'])\n"
        "    def reconcile(client, key):\n"
        "        while True:\n"
        "            pass\n"
    )
    with pytest.raises(FolderError, match=r"run 0: .*endless\.py:[45]: no end after"):
        fuzz(path, ["settles"], seeds=range(1))


def fuzz_line(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["fuzz", *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--check=nope", "--", "get", "pods"), "is no built-in check"),
        (("--check=settles",), "there is no workload"),
        (("--", "get", "pods"), "there is no check"),
        (("--check=settles", "--disturb=own", "--", "get", "pods"), "there is no operator"),
        (("--check=settles", "--disturb=some", "--", "get", "pods"), "must be own or all"),
        (("--check=settles", "--seed=x", "--", "get", "pods"), "must be a seed"),
        (("--check=settles", "--seed=1", "--jobs=2", "--", "get", "pods"), "repeats one run"),
        (("--check=settles", "--shard=9/9", "--seeds=0..3", "--", "get", "pods"), "has no seed"),
        (("--check=settles", "-o", "xml", "--", "get", "pods"), "unable to match a printer"),
        (("--check=settles", "--jobs=0", "--", "get", "pods"), "--jobs must be at least 1"),
        (("--check=none.yaml", "--", "get", "pods"), "none.yaml: No such file"),
        (("--check=settles", "--operator=none.py"), "none.py: No such file"),
    ],
)
def test_wrong_flags_are_errors(
    words: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = fuzz_line(capsys, *words)
    assert (status, out) == (1, "")
    assert message in err


def test_report_as_json_and_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (f"--operator={OPERATOR}", f"--check={CHECKS}", "--seeds=0..29")
    status, out, _ = fuzz_line(capsys, *words, "-o", "json")
    report: dict[str, Any] = json.loads(out)
    assert status == 2
    assert report["kind"] == "Fuzz"
    [found] = report["violations"]
    assert found["check"] == "never too many"
    assert found["replay"].startswith(f"{found['seed']}:")
    status, out, _ = fuzz_line(capsys, *words, "-o", "html")
    assert status == 2
    assert "never too many" in out
    assert "<svg" in out


def test_transcript_is_a_test_that_fails_until_the_bug_is_mended(
    mended: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pools.py").write_text(OPERATOR.read_text())
    Path("checks.yaml").write_text(CHECKS.read_text())
    [found] = fuzz("pools.py", ["checks.yaml"], seeds=range(30)).violations
    Path("pools.kubepy.txt").write_text(found.transcript)
    failed = run_pytest(tmp_path)
    assert failed.returncode == 1, failed.stdout
    assert "violated: never too many" in failed.stdout
    Path("pools.py").write_text(mended.read_text())
    passed = run_pytest(tmp_path)
    assert passed.returncode == 0, passed.stdout


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "pools.kubepy.txt"]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
