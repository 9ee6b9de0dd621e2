"""Compare the cost of a DaemonSet's rollout with 30 minutes of minReadySeconds with that of one
without.

    python tests/benchmarks/min_ready_seconds.py [NODES]

Both are rollouts in waves of a tenth of the nodes, in the cluster's own time, counted in CPU
seconds, the best of three runs. Prints both and their ratio; exits 1 when that is above the limit.
"""

import sys
import tempfile
import time
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

from kubepy.controlplane import build_manager
from kubepy.controlplane.open import make_cluster

LIMIT = 1.3
RUNS = 3
MIN_READY_SECONDS = 1800
WAVES = 10


def daemon_set(min_ready_seconds: int) -> dict:
    labels = {"app": "agent"}
    spec = {
        "selector": {"matchLabels": labels},
        "minReadySeconds": min_ready_seconds,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": f"{100 // WAVES}%"},
        },
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "agent:1"}]},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": spec,
    }


def roll_out(folder: Path, nodes: int, min_ready_seconds: int) -> float:
    """Return the CPU seconds of the rollout of a second template."""
    cluster = make_cluster(folder, {"clock": "2026-01-01T00:00:00Z", "seed": 1})
    client = cluster.client
    for number in range(nodes):
        client.create(
            "nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number:04}"}}
        )
    client.create("daemonsets.apps", daemon_set(min_ready_seconds), namespace="default")
    build_manager(cluster).advance(settled=True)
    changed = deepcopy(client.get("daemonsets.apps", "agent", namespace="default"))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "agent:2"
    client.update("daemonsets.apps", changed, namespace="default")
    begin, start = cluster.clock.now(), time.process_time()
    build_manager(cluster).advance(settled=True)
    seconds = time.process_time() - start
    status = client.get("daemonsets.apps", "agent", namespace="default")["status"]
    assert status["updatedNumberScheduled"] == status["numberAvailable"] == nodes, status
    assert cluster.clock.now() - begin == timedelta(seconds=WAVES * min_ready_seconds), (
        cluster.clock.now() - begin
    )
    cluster.close()
    return seconds


def main() -> int:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    waits: list[float] = []
    plain: list[float] = []
    for run in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            waits.append(roll_out(Path(folder, f"waits-{run}"), nodes, MIN_READY_SECONDS))
            plain.append(roll_out(Path(folder, f"plain-{run}"), nodes, 0))
    print(f"with minReadySeconds: {MIN_READY_SECONDS}  {min(waits):6.2f} s for {nodes} nodes")
    print(f"without                     {min(plain):6.2f} s")
    print(f"ratio {min(waits) / min(plain):.2f}, limit {LIMIT}")
    return 0 if min(waits) / min(plain) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
