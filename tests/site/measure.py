"""Measure kubepy's figures in docs/compare.md: print a line each.

``python -m tests.site.measure`` prints CPU time, the least of nine runs, so that what else the
machine does counts little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kubepy import Cluster

RUNS = 9
KUBEPY = str(Path(sys.executable).parent / "kubepy")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def least_ms(run: Callable[[], object], calls: int = 1) -> float:
    """Return the least of how many milliseconds of CPU a call takes, after one that does not count.

    :param calls: how many make one measurement.
    """
    run()
    times = []
    for _ in range(RUNS):
        start = cpu_seconds()
        for _ in range(calls):
            run()
        times.append(1000 * (cpu_seconds() - start) / calls)
    return min(times)


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


def create_config_maps() -> float:
    """Return the milliseconds that the creation of one object takes."""
    with new_cluster() as cluster:
        return least_ms(lambda: cluster.client.create(CONFIG_MAP), calls=200)


def command(*words: str) -> Callable[[], object]:
    return lambda: subprocess.run([KUBEPY, *words], check=True, capture_output=True)


def main() -> None:
    in_memory = least_ms(lambda: new_cluster().close(), calls=200)
    print(f"a cluster in memory, made and gone: {in_memory:.1f} ms")
    print(f"an object created: {create_config_maps():.2f} ms")
    print(f"a Deployment, 3 pods available: {least_ms(deployment_until_available):.0f} ms")
    print(f"a rollout, pods ready after 30 s each: {least_ms(rollout_with_slow_pods):.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        state = f"--state={folder}/state"
        subprocess.run([KUBEPY, state, "init", "--nodes=3"], check=True, capture_output=True)
        print(f"kubepy get nodes, a process: {least_ms(command(state, 'get', 'nodes')):.0f} ms")


if __name__ == "__main__":
    main()
