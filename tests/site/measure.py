"""Measure the figures of docs/compare.md that a machine without containers can: print a line each.

Run ``python -m tests.site.measure`` on an idle machine; the first run compiles.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kubepy import Cluster

RUNS = 9
KUBEPY = str(Path(sys.executable).parent / "kubepy")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}


def median_ms(run: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median of how many milliseconds a call takes, after one that does not count."""
    run()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def new_cluster() -> Cluster:
    return Cluster.temporary(nodes=3, seed=1)


def deployment_until_available() -> None:
    with new_cluster() as cluster:
        cluster.run("create deployment web --image=nginx --replicas=3", check=True)
        assert cluster.settle()
        assert cluster.client.get("deploy/web")["status"]["availableReplicas"] == 3


def rollout_with_slow_pods() -> None:
    """Roll out where each pod takes 30 s to be ready, in the cluster's own time."""
    settings = {"kubelet": {"readyAfter": "30s"}}
    with Cluster.temporary(nodes=3, seed=1, settings=settings) as cluster:
        cluster.run("create deployment web --image=nginx --replicas=3", check=True)
        cluster.settle()
        cluster.run("set image deploy/web nginx=nginx:2", check=True)
        assert cluster.settle()


def create_config_maps(count: int = 200) -> float:
    """Return the milliseconds that the creation of one object takes."""
    with new_cluster() as cluster:
        create = lambda: cluster.client.create(CONFIG_MAP)  # noqa: E731
        return median_ms(create, count)


def command(*words: str) -> Callable[[], object]:
    return lambda: subprocess.run([KUBEPY, *words], check=True, capture_output=True)


def main() -> None:
    print(f"a cluster in memory, made and gone: {median_ms(lambda: new_cluster().close()):.1f} ms")
    print(f"an object created: {create_config_maps():.2f} ms")
    print(f"a Deployment, 3 pods available: {median_ms(deployment_until_available):.0f} ms")
    print(f"a rollout, pods ready after 30 s each: {median_ms(rollout_with_slow_pods):.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        state = f"--state={folder}/state"
        subprocess.run([KUBEPY, state, "init", "--nodes=3"], check=True, capture_output=True)
        print(f"kubepy get nodes, a process: {median_ms(command(state, 'get', 'nodes')):.0f} ms")


if __name__ == "__main__":
    main()
