"""Processes, clusters of a size, and the yardstick, with which the table is measured."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

KUBEPY = str(Path(sys.executable).with_name("kubepy"))
PODS_OF_Y = 1000

# Starts a command from a process smaller than any that is measured: the most memory of a process
# that was never more than the one that started it could not be told from it. Prints CPU seconds,
# seconds, kilobytes and the exit status.
LAUNCHER = """
import os, sys, time
start = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
cpu, seconds = usage.ru_utime + usage.ru_stime, time.perf_counter() - start
os.write(int(sys.argv[1]), repr((cpu, seconds, usage.ru_maxrss, os.waitstatus_to_exitcode(status))).encode())
"""  # noqa: E501

# The yardstick Y: libyaml writes each pod to a file, and one sync; few pods several times, of which
# the best counts. Prints CPU seconds, seconds and the number of pods.
WRITER = """
import json, os, sys, time, yaml
pods = json.load(open(sys.argv[1]))["items"][:int(sys.argv[3])]
os.makedirs(sys.argv[2], exist_ok=True)
times = []
for _ in range(max(1, 500 // len(pods))):
    began, start = time.process_time(), time.perf_counter()
    for number, pod in enumerate(pods):
        with open(os.path.join(sys.argv[2], f"{number}.yaml"), "w") as file:
            yaml.dump(pod, file, Dumper=yaml.CSafeDumper)
    os.sync()
    times.append((time.process_time() - began, time.perf_counter() - start, len(pods)))
print(min(times))
"""

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent-{number}, namespace: default}}
spec:
  selector: {{matchLabels: {{app: agent-{number}}}}}
  updateStrategy: {{rollingUpdate: {{maxUnavailable: 10%}}}}
  template:
    metadata: {{labels: {{app: agent-{number}}}}}
    spec: {{containers: [{{name: agent, image: "agent:1"}}]}}
"""


class Run(NamedTuple):
    """A process that has ended, or a part of the life of one."""

    cpu: float
    wall: float
    megabytes: float = 0.0


class Size(NamedTuple):
    """A cluster of DaemonSets, each with a pod on every node.

    :ivar containers: ``simple``, which the figures before v0.5 are about, or ``modelled``, as those
        of new clusters are: kubelets record what they do as events then.
    """

    nodes: int
    daemon_sets: int = 1
    containers: str = "simple"

    @property
    def pods(self) -> int:
        return self.nodes * self.daemon_sets

    @property
    def objects(self) -> str:
        """The number of nodes and pods."""
        return f"{self.nodes + self.pods:,}"

    def __str__(self) -> str:
        return f"{self.nodes}x{self.daemon_sets}-{self.containers}"


def launch(
    *command: str, state: Path | None = None, stdin: str | None = None, containers: str = ""
) -> Run:
    """Run a command to its end; its output goes to /dev/null. Raises when it fails.

    :param containers: how they live in a cluster that the command makes; "": as in new ones.
    """
    read, write = os.pipe()
    environment = {**os.environ, **({"KUBEPY_STATE": str(state)} if state else {})}
    if containers:
        environment["KUBEPY_CONTAINERS"] = containers
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(write), *command]
    with subprocess.Popen(
        launcher,
        pass_fds=[write],
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
    ) as process:
        process.communicate(stdin)
    os.close(write)
    with open(read) as pipe:
        cpu, wall, kilobytes, status = ast.literal_eval(pipe.read())
    if status:
        raise RuntimeError(f"{' '.join(command)}: exit status {status}")
    return Run(cpu, wall, kilobytes / 1024)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Watcher:
    """``kubepy controller --watch`` beside other commands; ready when it has nothing to do any
    more."""

    def __init__(self, state: Path) -> None:
        self._process = subprocess.Popen(
            [KUBEPY, "--state", str(state), "controller", "--watch", "-q"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> "Watcher":
        self.rest()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def rest(self, at_least: float = 3.0, at_most: float = 60.0) -> None:
        """Wait until it hardly does anything for three times half a second."""
        quiet, before, start = 0, 0.0, time.monotonic()
        while (
            quiet < 3 or time.monotonic() - start < at_least
        ) and time.monotonic() - start < at_most:
            time.sleep(0.5)
            assert self._process.poll() is None, "controller --watch has ended"
            now = cpu_of(self._process.pid)
            quiet = quiet + 1 if now - before < 0.2 else 0
            before = now

    def idle(self, seconds: float) -> Run:
        """Return what it does in a time in which nothing changes."""
        before, start = cpu_of(self._process.pid), time.perf_counter()
        time.sleep(seconds)
        return Run(cpu_of(self._process.pid) - before, time.perf_counter() - start)


@dataclass
class Clusters:
    """State folders of the sizes that are asked for, made at the first use.

    :param scratch: a folder for what the measurements change.
    :param kept: a folder in which clusters are left for the next run; without it they are made in
        scratch.
    """

    scratch: Path
    kept: Path | None = None
    working: dict[Size, Path] = field(default_factory=dict)
    runs: list[tuple[Size, Run]] = field(default_factory=list)

    def unsettled(self, size: Size) -> Path:
        """Return a cluster whose controllers have not seen the DaemonSets yet; only for copies."""
        folder = (self.kept or self.scratch) / f"unsettled-{size}"
        if not folder.exists():
            say("making", size.nodes, "nodes")
            making = folder.with_name(f"{folder.name}.part")
            launch("rm", "-rf", str(making))
            launch(
                KUBEPY,
                "init",
                f"--nodes={size.nodes}",
                state=making,
                containers=size.containers,
            )
            manifests = "---".join(
                DAEMON_SET.format(number=number) for number in range(size.daemon_sets)
            )
            launch(KUBEPY, "create", "-f", "-", state=making, stdin=manifests)
            making.rename(folder)
        return folder

    def make(self, size: Size) -> tuple[Run, Path]:
        """Make all pods of a size in a new folder; return what that took."""
        folder = self.scratch / f"made-{size}-{len(self.runs)}"
        launch(KUBEPY, "fork", str(folder), state=self.unsettled(size))
        say("making", size.pods, "pods")
        run = launch(KUBEPY, "controller", "--once", "-q", state=folder)
        available = subprocess.run(
            [
                KUBEPY,
                "--state",
                str(folder),
                "get",
                "ds",
                "-o",
                "jsonpath={.items[*].status.numberAvailable}",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert available == " ".join([str(size.nodes)] * size.daemon_sets), (
            f"available: {available}"
        )
        self.runs.append((size, run))
        return run, folder

    def settled(self, size: Size) -> Path:
        """Return a cluster of a size in which nothing is left to do, to read and to change."""
        if size not in self.working:
            self.working[size] = self._copy_of_kept(size) if self.kept else self.make(size)[1]
        return self.working[size]

    def _copy_of_kept(self, size: Size) -> Path:
        assert self.kept is not None
        kept, copy = self.kept / f"settled-{size}", self.scratch / f"settled-{size}"
        if not kept.exists():
            launch(KUBEPY, "fork", str(kept), state=self.make(size)[1])
        launch(KUBEPY, "fork", str(copy), state=kept)
        launch(KUBEPY, "controller", "--once", "-q", state=copy)
        return copy

    def drop(self, folder: Path) -> None:
        """Check a folder, and remove it unless other measurements use it."""
        self.check(folder)
        if folder not in self.working.values():
            launch("rm", "-rf", str(folder))

    def check(self, *folders: Path) -> None:
        """Run ``kubepy fsck`` in folders; raises when it finds a problem."""
        for folder in folders:
            launch(KUBEPY, "fsck", state=folder)


@dataclass
class Bench:
    """The clusters and the yardstick that rows are measured with.

    :param rounds: how many runs of a work there are, of which the best counts.
    :param clock: ``cpu`` or ``wall``, the seconds that are compared.
    :param pods: the file with the pods that the yardstick writes.
    :param later: what one row measures for another, by that row's name.
    """

    clusters: Clusters
    base: Size
    rounds: int = 3
    clock: str = "cpu"
    pods: Path | None = None
    later: dict[str, Run] = field(default_factory=dict)

    def y(self) -> Run:
        """Let libyaml write the pods of the base cluster; returns the time of 1000 pods."""
        if self.pods is None:
            folder, self.pods = (
                self.clusters.settled(self.base),
                self.clusters.scratch / "pods.json",
            )
            with open(self.pods, "w") as file:
                subprocess.run(
                    [KUBEPY, "--state", str(folder), "get", "pods", "-o", "json"],
                    stdout=file,
                    check=True,
                )
        written = self.clusters.scratch / "libyaml"
        printed = subprocess.run(
            [sys.executable, "-c", WRITER, str(self.pods), str(written), str(PODS_OF_Y)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        cpu, wall, pods = ast.literal_eval(printed)
        return Run(cpu * PODS_OF_Y / pods, wall * PODS_OF_Y / pods)

    def alternate(self, *works: Callable[[], Run], rounds: int = 0) -> list[Run]:
        """Return the best of several runs of each work; the runs alternate, so that others slow all
        of them alike."""
        runs = [[work() for work in works] for _ in range(rounds or self.rounds)]
        return [
            Run(*(min(values) for values in zip(*column, strict=True)))
            for column in zip(*runs, strict=True)
        ]

    def seconds(self, run: Run) -> float:
        return run.wall if self.clock == "wall" else run.cpu

    def kubepy(self, size: Size, *words: str) -> Callable[[], Run]:
        """Return a work: a command in a settled cluster."""
        return lambda: launch(KUBEPY, *words, state=self.clusters.settled(size))


def say(doing: str, number: int, what: str) -> None:
    """Say on stderr what takes long."""
    if number >= 1000:
        print(
            f"{time.strftime('%H:%M:%S')} {doing} {number:,} {what} ...",
            file=sys.stderr,
            flush=True,
        )
