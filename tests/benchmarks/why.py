"""Measure `kubepy why` about workloads of 1000 pods in several states: done, on its way, stuck.

    python tests/benchmarks/why.py [PODS]

The time is that of the whole command: the verdict on a fork, and remedies tried on others. It is
counted in CPU seconds, the best of five runs, which a busy machine changes little. Prints the
times; exits 1 when one is above the limit, or an answer is wrong.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from kubepy import Cluster

LIMIT = 1.0
RUNS = 5
PODS_PER_NODE = 50
LABELS = {"app": "web"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


class State(NamedTuple):
    """A state of a workload.

    :ivar change: of the template, after the workload was rolled out.
    :ivar answer: the state and the cause that are expected.
    """

    kind: str
    change: dict[str, Any]
    answer: tuple[str, str]


def annotated(name: str, value: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"kubepy.dev/{name}": value}}}


BROKEN, SLOW = annotated("outcome", "image-pull-backoff"), annotated("ready-after", "20s")
BAD_NAME = {"spec": {"containers": [{"name": "web", "image": "Bad:1"}]}}
STATES = {
    "done": State("Deployment", {}, ("done", "up-to-date")),
    "rollout under way": State("Deployment", SLOW, ("progressing", "not-ready")),
    "rollout, one by one": State("DaemonSet", SLOW, ("progressing", "not-ready")),
    "no valid image name": State("Deployment", BAD_NAME, ("stuck", "invalid-image-name")),
    "no node fits": State(
        "Deployment", {"spec": {"nodeSelector": {"disk": "ssd"}}}, ("stuck", "node-selector")
    ),
    "node is missing": State(
        "StatefulSet", {"spec": {"nodeName": "missing"}}, ("stuck", "dead-node")
    ),
    "image is not there": State("Deployment", BROKEN, ("stuck", "image-pull")),
    "image is not there, DaemonSet": State("DaemonSet", BROKEN, ("stuck", "image-pull")),
}


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make(folder: str, state: State, pods: int) -> None:
    """Make a workload that is rolled out, and change its template."""
    nodes = pods if state.kind == "DaemonSet" else pods // PODS_PER_NODE
    spec = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    if state.kind != "DaemonSet":
        spec["replicas"] = pods
    if state.kind == "StatefulSet":
        spec["podManagementPolicy"] = "Parallel"
    with Cluster.create(folder, nodes=nodes, clock="2026-01-01T00:00:00Z", seed=7) as cluster:
        cluster.client.create(
            {"apiVersion": "apps/v1", "kind": state.kind, "metadata": {"name": "web"}, "spec": spec}
        )
        cluster.settle()
        cluster.client.patch(f"{state.kind}/web", {"spec": {"template": state.change}})
        cluster.advance("5s")


def ask(folder: str, state: State) -> float:
    """Ask why, check the answer, and return the CPU seconds that it took."""
    binary = str(Path(sys.executable).with_name("kubepy"))
    start = children_seconds()
    command = [binary, "--state", folder, "why", f"{state.kind}/web", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = children_seconds() - start
    answer = json.loads(done.stdout)
    assert (answer["state"], answer["cause"]) == state.answer, answer
    assert answer["state"] != "stuck" or answer["remedies"][0]["proven"], answer
    return seconds


def main() -> int:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    slowest = 0.0
    for name, state in STATES.items():
        with tempfile.TemporaryDirectory() as folder:
            make(f"{folder}/state", state, pods)
            seconds = min(ask(f"{folder}/state", state) for _ in range(RUNS))
        print(f"{name:<32}{seconds:6.2f} s for {pods} pods, limit {LIMIT}", flush=True)
        slowest = max(slowest, seconds)
    return 0 if slowest <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
