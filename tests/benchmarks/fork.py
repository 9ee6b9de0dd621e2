"""Measure forks: in memory, and of a state folder beside `cp -r` of it; and a fresh cluster in
memory.

    python tests/benchmarks/fork.py

Prints each figure with its limit; exits 1 when one is above it. Runs of `kubepy fork` and `cp -r`
alternate, so that a noisy machine slows both alike, and the medians are compared.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane.open import copy_cluster, make_cluster, open_cluster
from kubepy.storage import Key

SIZES = (1_000, 10_000)
MEMORY_LIMIT = 20.0  # milliseconds for the smaller; the larger may take twice as long
FRESH_LIMIT = 5.0  # milliseconds
COPY_LIMIT = 1.5  # times cp -r
ROUNDS = 7


def milliseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1000


def median(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    return statistics.median(milliseconds(run) for _ in range(rounds))


def fill(cluster: LocalCluster, pods: int) -> None:
    tolerations = [
        {"key": f"node.kubernetes.io/{number}", "operator": "Exists"} for number in range(6)
    ]
    spec = {
        "containers": [{"name": "main", "image": "nginx:1.27"}],
        "tolerations": tolerations,
        "nodeName": "node-1",
    }
    with cluster.client.joined():
        for number in range(pods):
            pod = {
                "metadata": {"name": f"pod-{number:05}", "labels": {"app": "web"}},
                "spec": dict(spec),
            }
            cluster.client.create("pods", pod, namespace="default")


def report(what: str, value: float, limit: float, unit: str = "ms") -> bool:
    print(f"{what:44} {value:8.2f} {unit} (limit {limit:g})")
    return value <= limit


def fork_and_write(cluster: LocalCluster) -> None:
    """Fork a cluster, and read and write a little in the fork."""
    fork = cluster.fork()
    fork.store.get(Key("pods", "default", "pod-00500"))
    fork.client.create("configmaps", {"metadata": {"name": "a"}}, namespace="default")


def open_and_copy(state: Path, copy: Path) -> None:
    cluster = open_cluster(state)
    copy_cluster(cluster, copy)
    cluster.close()


def compare_with_cp(state: Path, base: Path) -> float:
    """Return how many times as long as `cp -r` a copy of a folder takes."""
    ours, theirs = [], []
    copy = base / "copy"
    for _ in range(ROUNDS):
        theirs.append(milliseconds(lambda: subprocess.run(["cp", "-r", state, copy], check=True)))
        shutil.rmtree(copy)
        ours.append(milliseconds(lambda: open_and_copy(state, copy)))
        shutil.rmtree(copy)
    print(f"cp -r {statistics.median(theirs):.0f} ms, kubepy fork {statistics.median(ours):.0f} ms")
    return statistics.median(ours) / statistics.median(theirs)


def measure(size: int, limit: float, base: Path) -> list[bool]:
    """Measure forks of a cluster of so many pods; return what holds."""
    state = base / f"state-{size}"
    cluster = make_cluster(state, {})
    fill(cluster, size)
    in_memory = cluster.fork()
    in_memory.client.list("pods")
    holds = [
        report(f"fork in memory of {size} pods", median(in_memory.fork), limit),
        report(
            f"fork in memory of {size} pods, and a write",
            median(lambda: fork_and_write(in_memory)),
            limit,
        ),
    ]
    # Its files are looked at, which takes the system most of that time.
    print(f"fork in memory of a folder of {size} pods        {median(cluster.fork):8.2f} ms")
    cluster.close()
    return [
        *holds,
        report(
            f"copy of a folder of {size} pods",
            compare_with_cp(state, base),
            COPY_LIMIT,
            "times cp -r",
        ),
    ]


def main() -> int:
    make_cluster("memory:")  # what is imported at first use
    holds = [
        report("fresh cluster in memory", median(lambda: make_cluster("memory:")), FRESH_LIMIT)
    ]
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for number, size in enumerate(SIZES):
            holds += measure(size, MEMORY_LIMIT * (number + 1), base)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
