"""The table: the rows, how each is measured, and what it is to reach."""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measuring import KUBEPY, Bench, Run, Size, Watcher, launch, say

KUBECTL = shutil.which("kubectl")


class Figure(NamedTuple):
    """A measured value in the unit of its row, and the seconds of the work and of its yardstick."""

    value: float
    seconds: float = 0.0
    yardstick: float = 0.0


class Sizes(NamedTuple):
    """The clusters of a form of the table."""

    small: Size
    base: Size
    wide: Size
    middle: Size
    large: Size


FULL = Sizes(Size(100), Size(1000), Size(1000, 5), Size(2000, 4), Size(5000, 5))
SHORT = Sizes(Size(20), Size(150), Size(150, 3), Size(250, 4), Size(250, 4))
FEW = Size(7)  # 30 objects with the events, classes and accounts


@dataclass(frozen=True)
class Row:
    """A line of the table.

    :param work: with ``{base}`` and so on for the number of pods or objects of the sizes.
    :param unit: of the value; ``Y`` or ``×`` what it is compared with.
    :param short: that it belongs to the short form, too.
    :param slack: how many times the recorded value it may become before the short form fails.
    """

    name: str
    work: str
    unit: str
    aim: float
    measure: Callable[[Bench, Sizes], Figure]
    short: bool = True
    slack: float = 4 / 3

    def title(self, sizes: Sizes) -> str:
        counts = {f"{name}_pods": f"{size.pods:,}" for name, size in sizes._asdict().items()}
        objects = {f"{name}_objects": size.objects for name, size in sizes._asdict().items()}
        return self.work.format(**counts, **objects, nodes=f"{sizes.base.nodes:,}")


def against_y(bench: Bench, work: Callable[[], Run], rounds: int = 0) -> Figure:
    ours, y = bench.alternate(work, bench.y, rounds=rounds)
    return ratio(bench, ours, y)


def ratio(bench: Bench, ours: Run, yardstick: Run) -> Figure:
    seconds, theirs = bench.seconds(ours), bench.seconds(yardstick)
    return Figure(seconds / theirs, seconds, theirs)


def read(size: str, *words: str) -> Callable[[Bench, Sizes], Figure]:
    """Return the measurement of a command that reads a cluster of a size."""
    return lambda bench, sizes: against_y(bench, bench.kubepy(getattr(sizes, size), *words))


# --- writing --------------------------------------------------------------------------------------


def make(bench: Bench, size: Size) -> Run:
    """Make all pods of a cluster, check it, remove it."""
    run, folder = bench.clusters.make(size)
    bench.clusters.drop(folder)
    return run


def update(bench: Bench, size: Size) -> Run:
    """Update the first DaemonSet of a settled cluster to an image that it has not had."""
    state = bench.clusters.settled(size)
    launch(KUBEPY, "set", "image", "ds/agent-0", f"agent=agent:{time.time_ns()}", state=state)
    say("updating", size.nodes, "pods")
    run = launch(KUBEPY, "controller", "--once", "-q", state=state)
    updated = subprocess.run(
        [
            KUBEPY,
            "--state",
            str(state),
            "get",
            "ds",
            "agent-0",
            "-o",
            "jsonpath={.status.updatedNumberScheduled}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert updated == str(size.nodes), f"{updated} of {size.nodes} pods are updated"
    bench.clusters.check(state)
    return run


def measure_make(bench: Bench, sizes: Sizes) -> Figure:
    return against_y(bench, lambda: make(bench, sizes.base))


def measure_update(bench: Bench, sizes: Sizes) -> Figure:
    return against_y(bench, lambda: update(bench, sizes.base))


def measure_make_modelled(bench: Bench, sizes: Sizes) -> Figure:
    return against_y(bench, lambda: make(bench, sizes.base._replace(containers="modelled")))


def measure_update_modelled(bench: Bench, sizes: Sizes) -> Figure:
    return against_y(bench, lambda: update(bench, sizes.base._replace(containers="modelled")))


def per_pod(
    work: Callable[[Bench, Size], Run], pods: Callable[[Size], int]
) -> Callable[[Bench, Sizes], Figure]:
    """Return the measurement of the cost of a pod in the large cluster against that in the base
    cluster."""

    def measure(bench: Bench, sizes: Sizes) -> Figure:
        [small] = bench.alternate(lambda: work(bench, sizes.base))
        [large] = bench.alternate(
            lambda: work(bench, sizes.large), rounds=1 if sizes is FULL else 2
        )
        figure = ratio(bench, large, small)
        return figure._replace(value=figure.value * pods(sizes.base) / pods(sizes.large))

    return measure


def memory(name: str) -> Callable[[Bench, Sizes], Figure]:
    """Return the measurement of the most memory of the controllers while they make a cluster."""

    def measure(bench: Bench, sizes: Sizes) -> Figure:
        size = getattr(sizes, name)
        if size not in dict(bench.clusters.runs):
            make(bench, size)
        return Figure(dict(bench.clusters.runs)[size].megabytes)

    return measure


# --- commands -------------------------------------------------------------------------------------


def measure_start(bench: Bench, sizes: Sizes) -> Figure:
    """Compare seconds, not CPU seconds: kubectl works in several threads."""
    assert KUBECTL, "no kubectl on the PATH to compare with"
    get = bench.kubepy(FEW, "get", "ds", "agent-0")
    kubectl: Callable[[], Run] = lambda: launch(str(KUBECTL), "version", "--client")  # noqa: E731
    bench.alternate(get, kubectl, rounds=2)
    return ratio(
        replace(bench, clock="wall"),
        *bench.alternate(get, kubectl, rounds=31 if sizes is FULL else 15),
    )


def measure_get_memory(bench: Bench, sizes: Sizes) -> Figure:
    [run] = bench.alternate(bench.kubepy(sizes.base, "get", "ds", "agent-0"), rounds=5)
    return Figure(run.megabytes)


def label(size: str) -> Callable[[Bench, Sizes], Figure]:
    """Return the measurement of ``label`` in a cluster of a size against that in one of 30 objects.

    The controllers run in between: a command that reads after a change lets them catch up with it
    first.
    """

    def work(bench: Bench, size: Size) -> Callable[[], Run]:
        state = bench.clusters.settled(size)

        def settle_and_label() -> Run:
            launch(KUBEPY, "controller", "--once", "-q", state=state)
            return launch(
                KUBEPY,
                "label",
                "ds",
                "agent-0",
                f"at=t{time.time_ns()}",
                "--overwrite",
                state=state,
            )

        return settle_and_label

    def measure(bench: Bench, sizes: Sizes) -> Figure:
        large, few = work(bench, getattr(sizes, size)), work(bench, FEW)
        figure = ratio(bench, *bench.alternate(large, few, rounds=max(bench.rounds, 5)))
        bench.clusters.check(
            bench.clusters.settled(getattr(sizes, size)), bench.clusters.settled(FEW)
        )
        return figure

    return measure


def idle_once(size: str) -> Callable[[Bench, Sizes], Figure]:
    def measure(bench: Bench, sizes: Sizes) -> Figure:
        work = bench.kubepy(getattr(sizes, size), "controller", "--once", "-q")
        work()
        return against_y(bench, work)

    return measure


def pods_of(state: Path) -> set[str]:
    names = os.listdir(state / "namespaces" / "default" / "pods")
    return {name for name in names if name.endswith(".yaml") and not name.startswith(".")}


def measure_delete(bench: Bench, sizes: Sizes) -> Figure:
    """Delete a pod of the large cluster; keep what the controllers then need for the row
    ``delete-once``."""
    state, afterwards = bench.clusters.settled(sizes.large), []

    def delete() -> Run:
        run = launch(
            KUBEPY, "delete", "pod", min(pods_of(state)).removesuffix(".yaml"), state=state
        )
        afterwards.append(launch(KUBEPY, "controller", "--once", "-q", state=state))
        assert len(pods_of(state)) == sizes.large.pods, "the pod has no replacement"
        return run

    figure = against_y(bench, delete)
    bench.later["delete-once"] = min(afterwards, key=bench.seconds)
    bench.clusters.check(state)
    return figure


def measure_once_after_delete(bench: Bench, sizes: Sizes) -> Figure:
    if "delete-once" not in bench.later:
        measure_delete(bench, sizes)
    [y] = bench.alternate(bench.y)
    return ratio(bench, bench.later.pop("delete-once"), y)


# --- watching -------------------------------------------------------------------------------------


def replace_a_pod(state: Path) -> float:
    """Delete a pod; return the seconds from the start of the command until the replacement is
    bound."""
    pods, before = state / "namespaces" / "default" / "pods", pods_of(state)
    command = [KUBEPY, "--state", str(state), "delete", "pod", min(before).removesuffix(".yaml")]
    changed, listed, start = pods.stat().st_mtime_ns, 0.0, time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL):
        while (seconds := time.perf_counter() - start) < 60:
            # Listing 25,000 names takes as long as a commit; two changes may leave the same time.
            if changed != (changed := pods.stat().st_mtime_ns) or seconds > listed + 0.1:
                listed = seconds
                for name in pods_of(state) - before:
                    if "nodeName: " in (pods / name).read_text():
                        return seconds
            time.sleep(0.003)
    raise AssertionError("no replacement after a minute")


def latency(bench: Bench, size: Size) -> float:
    """Return the median of the seconds until a deleted pod is replaced beside
    ``controller --watch``."""
    state = bench.clusters.settled(size)
    with Watcher(state) as watcher:
        seconds = []
        for _ in range(5):
            seconds.append(replace_a_pod(state))
            watcher.rest(1)
    bench.clusters.check(state)
    return statistics.median(seconds)


def measure_latency(bench: Bench, sizes: Sizes) -> Figure:
    seconds = latency(bench, sizes.large)
    return Figure(seconds, seconds)


def measure_flatness(bench: Bench, sizes: Sizes) -> Figure:
    small, large = latency(bench, sizes.small), latency(bench, sizes.large)
    return Figure(large / small, large, small)


def measure_idle_watch(bench: Bench, sizes: Sizes) -> Figure:
    seconds = 20.0 if sizes is FULL else 8.0
    with Watcher(bench.clusters.settled(sizes.middle)) as watcher:
        run = watcher.idle(seconds)
    return Figure(100 * run.cpu / run.wall, run.cpu)


ONCE = "`controller --once`"
ROWS = (
    Row(
        "make", "DaemonSet over {nodes} nodes until all pods are available", "Y", 1.0, measure_make
    ),
    Row("update", "rolling update of it at 10 %", "Y", 1.6, measure_update),
    Row(
        "make-modelled",
        "the DaemonSet where containers are modelled, with the kubelets' events",
        "Y",
        1.0,
        measure_make_modelled,
    ),
    Row("update-modelled", "rolling update of that", "Y", 1.6, measure_update_modelled),
    Row("get", "`get pods`, {base_pods}", "Y", 0.17, read("base", "get", "pods")),
    Row("get-wide", "`get pods`, {wide_pods}", "Y", 0.7, read("wide", "get", "pods"), short=False),
    Row("get-large", "`get pods`, {large_pods}", "Y", 3.6, read("large", "get", "pods")),
    Row(
        "yaml",
        "`get pods -o yaml`, {base_pods}",
        "Y",
        0.27,
        read("base", "get", "pods", "-o", "yaml"),
    ),
    Row(
        "yaml-large",
        "`get pods -o yaml`, {large_pods}",
        "Y",
        5.7,
        read("large", "get", "pods", "-o", "yaml"),
        short=False,
    ),
    Row(
        "json",
        "`get pods -o json`, {base_pods}",
        "Y",
        0.21,
        read("base", "get", "pods", "-o", "json"),
    ),
    Row(
        "json-large",
        "`get pods -o json`, {large_pods}",
        "Y",
        4.3,
        read("large", "get", "pods", "-o", "json"),
        short=False,
    ),
    Row("start", "`get ds x`", "× `kubectl version --client`", 1.2, measure_start),
    Row(
        "label-middle",
        "`label ds x`, {middle_objects} objects",
        "× with 30",
        1.2,
        label("middle"),
        short=False,
    ),
    Row("label-large", "`label ds x`, {large_objects} objects", "× with 30", 1.2, label("large")),
    Row(
        "idle-middle",
        f"{ONCE}, nothing to do, {{middle_objects}} objects",
        "Y",
        0.21,
        idle_once("middle"),
        short=False,
    ),
    Row(
        "idle-large",
        f"{ONCE}, nothing to do, {{large_objects}} objects",
        "Y",
        0.36,
        idle_once("large"),
    ),
    Row("delete", "one pod deleted among {large_pods}", "Y", 0.71, measure_delete),
    Row("delete-once", f"then {ONCE}", "Y", 1.0, measure_once_after_delete),
    Row(
        "latency",
        "the same beside `--watch`, until its replacement is bound",
        "s",
        0.2,
        measure_latency,
        short=False,
    ),
    Row("latency-flat", "the same", "× among {small_pods}", 1.5, measure_flatness, short=False),
    Row(
        "idle-watch",
        "`controller --watch`, nothing to do, {middle_objects} objects",
        "% of a core",
        0.5,
        measure_idle_watch,
        slack=3,
    ),
    Row(
        "made-per-pod",
        "a pod of {large_pods} made",
        "× of {base_pods}",
        1.15,
        per_pod(make, lambda size: size.pods),
    ),
    Row(
        "updated-per-pod",
        "a pod updated in one of the DaemonSets of {large_pods}",
        "× of {base_pods}",
        1.15,
        per_pod(update, lambda size: size.nodes),
    ),
    Row("memory", "memory, {base_pods} pods made", "MB", 90, memory("base")),
    Row("memory-large", "memory, {large_pods} pods made", "MB", 500, memory("large"), short=False),
    Row("memory-get", "memory, `get ds x`", "MB", 16, measure_get_memory),
)
