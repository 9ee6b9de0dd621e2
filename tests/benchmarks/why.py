"""Measure `kubepy why` about a DaemonSet and a Deployment of 1000 pods whose new image cannot be pulled.

    python tests/benchmarks/why.py [PODS]

The time is that of the whole command: the verdict on a fork, and remedies tried on others. It is counted in CPU
seconds, the best of three runs, which a busy machine changes little. Prints the times; exits 1 when one is above the
limit, or an answer is wrong.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from kubepy import Cluster

LIMIT = 1.0
RUNS = 3
PODS_PER_NODE = 50
BROKEN = {"spec": {"template": {"metadata": {"annotations": {"kubepy.dev/outcome": "image-pull-backoff"}}}}}
LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make_stuck(folder: str, kind: str, pods: int) -> None:
    """Make a workload that is rolled out, and give it an image that cannot be pulled."""
    nodes = pods if kind == "DaemonSet" else pods // PODS_PER_NODE
    spec = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    with Cluster.create(folder, nodes=nodes, clock="2026-01-01T00:00:00Z", seed=7) as cluster:
        cluster.client.create({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"},
                               "spec": spec if kind == "DaemonSet" else {**spec, "replicas": pods}})
        cluster.settle()
        cluster.client.patch(f"{kind}/web", BROKEN)
        cluster.settle(0)


def ask(folder: str, kind: str) -> float:
    """Ask why, check the answer, and return the CPU seconds that it took."""
    binary = str(Path(sys.executable).with_name("kubepy"))
    start = children_seconds()
    command = [binary, "--state", folder, "why", f"{kind}/web", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = children_seconds() - start
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["state"], answer["cause"]) == (2, "stuck", "image-pull"), answer
    assert answer["remedies"][0]["proven"], answer
    return seconds


def main() -> int:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    slowest = 0.0
    for kind in ("DaemonSet", "Deployment"):
        with tempfile.TemporaryDirectory() as folder:
            make_stuck(f"{folder}/state", kind, pods)
            seconds = min(ask(f"{folder}/state", kind) for _ in range(RUNS))
        print(f"{kind:<12}{seconds:6.2f} s for {pods} pods, limit {LIMIT}")
        slowest = max(slowest, seconds)
    return 0 if slowest <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
