"""Measure the timeline: what it costs a reconcile, and how long reading it takes.

    python tests/benchmarks/timeline.py [NODES]

A DaemonSet on 1000 nodes is made available and then updated, with the timeline and without (`keep:
0s`), in a state folder with its own clock. Runs with and without alternate, so that a noisy machine
slows both alike; CPU seconds count, the best of a few runs. Prints each figure with its limit;
exits 1 when one is above it.
"""

import gc
import sys
import tempfile
import time
from pathlib import Path

from kubepy import Cluster
from kubepy.controlplane.open import open_cluster
from kubepy.insight.timeline import read_timeline

COST_LIMIT = 1.05  # times the reconcile without a timeline
READ_LIMIT = 0.3  # seconds, for the timeline of the two rollouts
ROUNDS = 6
MANIFEST = Path(__file__).parents[2] / "manifests" / "nginx-ds.yaml"


def roll_out(folder: str, nodes: int, keep: str) -> float:
    """Return the CPU seconds that the controllers take to make a DaemonSet available and to update
    it."""
    with Cluster.create(
        folder,
        nodes=nodes,
        clock="2026-01-01T00:00:00Z",
        seed=7,
        settings={"timeline": {"keep": keep}},
    ) as cluster:
        seconds = 0.0
        for command in (f"apply -f {MANIFEST}", "set image daemonset/nginx-ds *=nginx:1.29"):
            cluster.run(command, check=True)
            gc.collect()
            start = time.process_time()
            cluster.settle()
            seconds += time.process_time() - start
        daemon_set = cluster.client.get("daemonset/nginx-ds")
        assert (
            daemon_set["status"]["updatedNumberScheduled"]
            == daemon_set["status"]["numberAvailable"]
            == nodes
        )
    return seconds


def read(folder: str, nodes: int) -> float:
    """Return the CPU seconds that a process takes to read the timeline of a cluster which it has
    just opened."""
    cluster = open_cluster(folder)
    gc.collect()
    start = time.process_time()
    timeline = read_timeline(cluster)
    seconds = time.process_time() - start
    assert sum(step.action == "available" for step in timeline.steps) == 2 * nodes
    cluster.close()
    return seconds


def main() -> int:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds: dict[str, list[float]] = {"0s": [], "24h": []}
    readings = []
    for _ in range(ROUNDS):
        for keep, times in seconds.items():
            with tempfile.TemporaryDirectory() as folder:
                times.append(roll_out(f"{folder}/state", nodes, keep))
                if keep != "0s":
                    readings.append(read(f"{folder}/state", nodes))
    without, with_timeline = (min(times) for times in seconds.values())
    ratio = with_timeline / without
    print(
        f"{nodes} nodes: {without:.2f} s without a timeline, {with_timeline:.2f} s with it; ratio "
        f"{ratio:.3f} "
        f"(limit {COST_LIMIT})"
    )
    print(f"reading it: {min(readings):.3f} s (limit {READ_LIMIT})")
    return 0 if ratio <= COST_LIMIT and min(readings) <= READ_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
