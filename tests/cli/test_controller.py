"""``kubepy controller`` as a process, and commands that wait."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kubepy.controlplane.running import is_git_at_work
from tests.forkserver import ForkServer
from tests.waiting import eventually

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels:
      app: agent
  template:
    metadata:
      labels:
        app: agent
    spec:
      containers:
      - name: c
        image: agent:1
"""
STUCK = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: held
  finalizers:
  - example.com/hold
"""
LONE = """
apiVersion: v1
kind: Pod
metadata: {name: lone, labels: {app: lone}}
spec: {nodeName: node-1, containers: [{name: c, image: nginx}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {app: lone}}}
"""
FLEETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.sea.example.org}
spec:
  group: sea.example.org
  scope: Namespaced
  names: {plural: fleets, kind: Fleet}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
FLEET = "{apiVersion: sea.example.org/v1, kind: Fleet, metadata: {name: armada}}"
FLEET_GONE = [
    "fleet.sea.example.org/armada deleted",
    "customresourcedefinition.apiextensions.k8s.io/fleets.sea.example.org deleted",
]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kubepy(tmp_path: Path, fork_server: ForkServer) -> Run:
    def run(*words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "KUBEPY_STATE": str(tmp_path / "state"), **environment}
        return subprocess.run(
            [fork_server.program, *words],
            input=stdin,
            env=env,
            text=True,
            capture_output=True,
            timeout=60,
        )

    return run


PROGRAM = "import sys; from kubepy.cli.program import run; sys.exit(run())"


@contextmanager
def watching(tmp_path: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "KUBEPY_STATE": str(tmp_path / "state")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "controller", "--watch", *flags],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def without_hashes(text: str) -> list[str]:
    return [re.sub(r"agent-\w+", "agent-…", line) for line in text.splitlines()]


def test_once_says_what_changed_and_then_nothing(kubepy):
    kubepy("init", "--nodes=2")
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    first = kubepy("controller", "--once")
    assert (first.returncode, first.stderr) == (0, "")
    assert without_hashes(first.stdout)[-4:] == [
        "controllerrevision.apps/agent-… created",
        "pod/agent-… created",
        "pod/agent-… created",
        "daemonset.apps/agent configured",
    ]
    second = kubepy("controller", "--once")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def make_fleet(kubepy: Run) -> None:
    kubepy("init", "--nodes=0")
    for text in (FLEETS, FLEET):
        assert kubepy("create", "-f", "-", stdin=text).returncode == 0


def test_once_names_custom_objects_whose_definition_went_with_them(kubepy: Run) -> None:
    make_fleet(kubepy)
    kubepy("delete", "crd", "fleets.sea.example.org", "--wait=false")
    done = kubepy("controller", "--once")
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, FLEET_GONE, "")


def test_watch_names_custom_objects_whose_definition_went_with_them(
    kubepy: Run, tmp_path: Path
) -> None:
    make_fleet(kubepy)
    with watching(tmp_path) as process:
        eventually((tmp_path / "state/.kubepy/manager.lock.holder").exists)
        done = kubepy("delete", "crd", "fleets.sea.example.org", "--timeout=20s")
        assert (done.returncode, done.stderr) == (0, "")
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[-2:] == FLEET_GONE


def test_watch_lives_through_definition_whose_file_goes_and_comes_back(
    kubepy: Run, tmp_path: Path
) -> None:
    make_fleet(kubepy)
    file = (
        tmp_path
        / "state/cluster/customresourcedefinitions.apiextensions.k8s.io/fleets.sea.example.org.yaml"
    )
    text = file.read_text()
    with watching(tmp_path) as process:
        eventually((tmp_path / "state/.kubepy/manager.lock.holder").exists)
        file.unlink()
        eventually(lambda: "doesn't have a resource type" in kubepy("get", "fleets").stderr)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        eventually(
            lambda: kubepy("get", "fleets", "-o", "name").stdout == "fleet.sea.example.org/armada\n"
        )
        kubepy("delete", "crd", "fleets.sea.example.org", "--timeout=20s")
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
        folder = tmp_path / "state/namespaces/default/fleets.sea.example.org"
        told = (
            f"Warning: {folder}: is not read: there is no CustomResourceDefinition "
            f'"fleets.sea.example.org" '
            f"(armada.yaml)\nnote: {folder}: is in order again\n"
        )
        assert process.returncode == 0
        assert errors in ("", told)  # it may have looked only before and afterwards
    assert output.splitlines()[-2:] == FLEET_GONE


def test_quiet_says_nothing(kubepy):
    kubepy("init", "--nodes=1")
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    done = kubepy("controller", "--once", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_due_work_is_listed_on_stderr_each_time(kubepy):
    kubepy("create", "-f", "-", stdin="apiVersion: v1\nkind: Namespace\nmetadata:\n  name: lab\n")
    kubepy("create", "-n", "lab", "-f", "-", stdin=STUCK)
    kubepy("delete", "namespace", "lab", "--wait=false")
    for _ in range(2):
        done = kubepy("controller", "--once", "-q")
        assert done.returncode == 0
        assert re.fullmatch(
            r"due at \S+Z  in \ds  namespace-controller  namespaces/lab\n", done.stderr
        )


def test_failed_sync_is_reported_with_its_retry_time(kubepy):
    kubepy("init", "--nodes=1")
    kubepy("create", "quota", "few", "--hard=pods=1")
    kubepy("create", "deployment", "web", "--image=nginx", "--replicas=2")
    done = kubepy("controller", "--once", "-q")
    assert done.returncode == 0
    [line] = [line for line in done.stderr.splitlines() if "replicaset-controller" in line]
    assert line.endswith(
        "is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
    )
    assert re.search(r'  replicasets\.apps/web-\S+ in default  since pods "web-', line)


def test_due_work_of_several_keys_is_in_columns(kubepy):
    for name in ("lab", "workshop"):
        kubepy(
            "create",
            "-f",
            "-",
            stdin=f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n",
        )
        kubepy("create", "-n", name, "-f", "-", stdin=STUCK)
        kubepy("delete", "namespace", name, "--wait=false")
    lines = kubepy("controller", "--once", "-q").stderr.splitlines()
    assert sorted(line.split()[-1] for line in lines) == ["namespaces/lab", "namespaces/workshop"]
    assert len({line.index("namespaces/") for line in lines}) == 1


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--once", "--watch"),
        ("--once", "--for=1m"),
        ("--once=false",),
        ("--until=2030-01-01T00:00:00Z", "--until-settled"),
    ],
)
def test_controller_requires_exactly_one_way_to_run(kubepy, flags):
    done = kubepy("controller", *flags)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: give one of --once, --watch, --for, --until and --until-settled"
    )


def test_reading_folder_that_is_not_there_is_error(kubepy):
    done = kubepy("controller", "--once")
    assert done.returncode == 1
    assert "no cluster in" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_watch_works_until_signal(kubepy, tmp_path, number, status):
    kubepy("init", "--nodes=2")
    with watching(tmp_path) as process:
        kubepy("apply", "-f", "-", stdin=DAEMON_SET)
        eventually(
            lambda: (
                "2"
                in kubepy(
                    "get",
                    "ds",
                    "agent",
                    "-o",
                    "jsonpath={.status.numberAvailable}",
                    "--reconcile=never",
                ).stdout
            )
        )
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
        assert process.returncode == status
    assert errors == ""
    assert "daemonset.apps/agent configured" in output


def test_second_watch_says_who_holds_folder(kubepy, tmp_path):
    kubepy("init", "--nodes=0")
    with watching(tmp_path) as process:
        eventually((tmp_path / "state/.kubepy/manager.lock.holder").exists)
        second = kubepy("controller", "--watch")
        assert second.returncode == 1
        assert re.search(
            rf"are run by process {process.pid} \(.*controller --watch\) already", second.stderr
        )


def test_once_beside_watch_waits_until_that_one_is_quiet(kubepy, tmp_path):
    kubepy("init", "--nodes=2")
    with watching(tmp_path):
        eventually((tmp_path / "state/.kubepy/manager.lock.holder").exists)
        kubepy("apply", "-f", "-", stdin=DAEMON_SET)
        once = kubepy("controller", "--once")
        assert (once.returncode, once.stdout, once.stderr) == (0, "", "")
        assert (
            kubepy("get", "ds", "agent", "-o", "jsonpath={.status.numberAvailable}").stdout == "2"
        )


def test_commands_that_wait_run_controllers_themselves(kubepy):
    kubepy("init", "--nodes=2")
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    done = kubepy("rollout", "status", "ds/agent", "--timeout=30s")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        'daemon set "agent" successfully rolled out',
    )


def test_never_reconciling_says_that_no_controller_runs(kubepy):
    kubepy("init", "--nodes=2")
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    done = kubepy("rollout", "status", "ds/agent", "--timeout=1s", "--reconcile=never")
    assert done.returncode == 1
    assert done.stderr.count("no controller is running") == 1
    assert kubepy("get", "pods", "--reconcile=never").stdout == ""


def test_waiting_command_ends_at_its_timeout(kubepy):
    kubepy("create", "-f", "-", stdin=STUCK)
    start = time.monotonic()
    done = kubepy("delete", "configmap", "held", "--timeout=1s")
    assert done.returncode == 1
    assert "timed out waiting for the condition" in done.stderr
    assert 1 <= time.monotonic() - start < 10


def test_watch_whose_folder_of_locks_is_removed_takes_its_lock_again(
    kubepy: Run, tmp_path: Path
) -> None:
    assert kubepy("init", "--nodes", "1").returncode == 0
    with watching(tmp_path, "-q") as first:
        holder = tmp_path / "state/.kubepy/manager.lock.holder"
        eventually(holder.exists)
        shutil.rmtree(holder.parent)
        eventually(holder.exists)
        second = kubepy("controller", "--watch")
        assert (second.returncode, f"are run by process {first.pid}" in second.stderr) == (1, True)
        assert kubepy("apply", "-f", "-", stdin=DAEMON_SET).returncode == 0
        assert kubepy("rollout", "status", "ds/agent", "--timeout=20s").returncode == 0
        first.terminate()
        assert first.wait(20) == 0
    assert kubepy("fsck").returncode == 0


def test_signal_at_very_start_shows_no_traceback(kubepy: Run, tmp_path: Path) -> None:
    """Send the signal before the command line is loaded."""
    code = (
        "import signal, sys, builtins; real = builtins.__import__\n"
        "def interrupted(name, *rest, **more):\n"
        "    if name == 'kubepy.cli.main': signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = interrupted\n"
        "from kubepy.cli.program import run; sys.exit(run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "get", "pods"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.fixture(autouse=True)
def _interrupts_count() -> Iterator[None]:
    """Restore SIGINT: a shell's background processes ignore it, and the processes started by tests
    would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


PROMPTLY = 20  # seconds, on a busy machine


@contextmanager
def started(tmp_path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the background while the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "KUBEPY_STATE": str(tmp_path / "state")},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def is_sound(kubepy: Run) -> bool:
    return kubepy("fsck").stdout.endswith(": no problems\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_that_is_interrupted_finishes_its_transaction(kubepy, tmp_path, number, status):
    kubepy("init", "--nodes=60")
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    with started(tmp_path, "controller", "--once") as process:
        eventually((tmp_path / "state/.kubepy/lock.holder").exists)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PROMPTLY)
        assert process.returncode == status
    assert "Traceback" not in errors
    assert is_sound(kubepy)
    kubepy("controller", "--once", "-q")
    assert kubepy("get", "ds", "agent", "-o", "jsonpath={.status.numberAvailable}").stdout == "60"


WAITING = [
    ("rollout", "status", "ds/agent"),
    ("wait", "ds/agent", "--for=jsonpath={.status.numberAvailable}=1000"),
    ("wait", "pod/none", "--for=create"),
    ("delete", "cm", "held"),
    ("drain", "node-1", "--ignore-daemonsets", "--force"),
]


def test_commands_that_wait_end_at_once_when_interrupted(kubepy, tmp_path):
    kubepy("init", "--nodes=2")
    kubepy("apply", "-f", "-", stdin=f"{STUCK}---{DAEMON_SET}")
    kubepy("annotate", "node", "--all", "kubepy.dev/pod-outcome=not-ready")
    kubepy("create", "-f", "-", stdin=LONE)
    kubepy("create", "-f", "-", stdin=BUDGET)
    kubepy("controller", "--once", "-q")
    with ExitStack() as stack:
        processes = [stack.enter_context(started(tmp_path, *words)) for words in WAITING]
        time.sleep(1.5)
        for words, process in zip(WAITING, processes, strict=True):
            assert process.poll() is None, (words, process.communicate())
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PROMPTLY)
            assert (process.returncode, "Traceback" in errors) == (130, False), (words, errors)
    assert is_sound(kubepy)


def test_waiting_commands_share_the_work_when_some_are_killed(kubepy, tmp_path):
    kubepy("init", "--nodes=20")
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    status = ("rollout", "status", "ds/agent")
    with ExitStack() as stack:
        processes = [stack.enter_context(started(tmp_path, *status)) for _ in range(6)]
        for delay, victim in ((0.3, 0), (0.3, 3), (0.2, 4)):
            time.sleep(delay)
            processes[victim].kill()
        for survivor in (1, 2, 5):
            output, errors = processes[survivor].communicate(timeout=60)
            assert (processes[survivor].returncode, errors) == (0, "")
            assert output.endswith('daemon set "agent" successfully rolled out\n')
    assert is_sound(kubepy)
    assert kubepy("get", "pods", "-o", "name").stdout.count("pod/agent-") == 20


@pytest.mark.parametrize("flags", [("--once",), ("--once", "--quiet-for=1m"), ("--watch",)])
def test_folder_that_vanishes_ends_run_with_one_line(kubepy, tmp_path, flags):
    kubepy("init", "--nodes=1")
    kubepy(
        "run", "slow", "--image=nginx", "--annotations=kubepy.dev/ready-after=50s"
    )  # --quiet-for waits for it
    with started(tmp_path, "controller", *flags) as process:
        if flags != ("--once",):
            eventually((tmp_path / "state/.kubepy/manager.lock.holder").exists)
            time.sleep(0.5)
        (tmp_path / "state").rename(
            tmp_path / "gone"
        )  # shown at once: a folder half removed would cause more messages
        _, errors = process.communicate(timeout=PROMPTLY)
    assert process.returncode in ((0, 1) if flags == ("--once",) else (1,))
    assert "Traceback" not in errors
    assert [line for line in errors.splitlines() if line.startswith("error: ")][1:] == []


@pytest.mark.parametrize("is_linked", [False, True])
def test_watch_waits_while_git_holds_its_index(
    tmp_path: Path, kubepy: Run, is_linked: bool
) -> None:
    """Hold git's lock: a merge writes file after file, and a pod that changes between two files
    would end it half way."""
    git_directory = tmp_path / ("elsewhere" if is_linked else ".git")
    git_directory.mkdir()
    if is_linked:
        (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    kubepy("init", "--nodes=2")
    lock = git_directory / "index.lock"
    lock.touch()
    kubepy("apply", "-f", "-", stdin=DAEMON_SET)
    with watching(tmp_path):
        time.sleep(2)  # long enough for watch to have made pods without the lock
        assert kubepy("get", "pods", "-o", "name").stdout == ""
        lock.unlink()
        eventually(lambda: len(kubepy("get", "pods", "-o", "name").stdout.splitlines()) == 2)


def test_lock_that_killed_git_left_behind_stops_no_watch(tmp_path: Path) -> None:
    lock = tmp_path / ".git/index.lock"
    assert not is_git_at_work(str(tmp_path))
    lock.parent.mkdir()
    lock.touch()
    assert is_git_at_work(str(tmp_path / "state"))
    os.utime(lock, (1, 1))
    assert not is_git_at_work(str(tmp_path / "state"))


def test_repeating_work_is_not_waited_for(kubepy: Run) -> None:
    kubepy("init")
    kubepy(
        "apply",
        "-f",
        "-",
        stdin="""
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}
""",
    )
    for _ in range(2):
        done = kubepy("controller", "--once", "-q", "--quiet-for=1h")
        assert done.returncode == 0
        assert "horizontal-pod-autoscaler-controller" in done.stderr
