"""Measure the CPU seconds that a busy cluster takes for a week of its own time, in a folder and in
memory.

    python tests/benchmarks/seven_days.py [DAYS]

50 CronJobs start every six hours (1,400 Jobs in a week). Of the 500 pods of a Deployment five run
for 30 seconds and crash: the kubelet restarts them after its back-off, which is five minutes for
the most part. Prints the CPU seconds and the number of changes; exits 1 when either is above the
limit.
"""

import sys
import tempfile
import time
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import build_manager
from kubepy.controlplane.open import make_cluster

LIMIT = 60.0
DAYS = 7
NODES, PODS, CRASHING, CRON_JOBS, STARTS_A_DAY = 10, 500, 5, 50, 4
START = "2026-01-01T00:00:00Z"
SETTINGS = {"clock": START, "seed": 1}
CRASHES = {"kubepy.dev/runs-for": "30s", "kubepy.dev/exit-code": "1"}


def template(app: str, **spec: object) -> dict:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], **spec},
    }


def make_busy(cluster: LocalCluster) -> None:
    client = cluster.client
    for number in range(NODES):
        client.create(
            "nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}
        )
    spec = {
        "replicas": PODS,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template("web"),
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": spec,
    }
    client.create("deployments.apps", deployment, namespace="default")
    job = {"spec": {"template": template("report", restartPolicy="Never")}}
    for number in range(CRON_JOBS):
        cron_job = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": f"report-{number}"},
            "spec": {"schedule": f"{number} */6 * * *", "jobTemplate": job},
        }
        client.create("cronjobs.batch", cron_job, namespace="default")
    build_manager(cluster).advance(cluster.clock.now())
    for pod in client.list("pods").items[:CRASHING]:
        crashing = deepcopy(pod)
        crashing["metadata"]["annotations"] = CRASHES
        client.update("pods", crashing, namespace="default")


def live(cluster: LocalCluster, days: float) -> float:
    """Return the CPU seconds of so many days, with those in which the cluster comes to be."""
    start = time.process_time()
    make_busy(cluster)
    build_manager(cluster).advance(cluster.clock.now() + timedelta(days=days))
    seconds = time.process_time() - start
    client = cluster.client
    crashing = [pod for pod in client.list("pods").items if pod["metadata"].get("annotations")]
    restarts = [pod["status"]["containerStatuses"][0]["restartCount"] for pod in crashing]
    assert len(restarts) == CRASHING
    assert min(restarts) > days * 250, restarts
    starts = [
        cron_job["status"]["lastScheduleTime"] for cron_job in client.list("cronjobs.batch").items
    ]
    assert len(starts) == CRON_JOBS
    assert min(starts) >= (cluster.clock.now() - timedelta(hours=6)).isoformat()[:19], starts
    return seconds


def report(where: str, cluster: LocalCluster, days: float) -> float:
    seconds = live(cluster, days)
    print(f"{days:g} days {where}  {seconds:6.2f} s for {cluster.client.revision():,} changes")
    cluster.close()
    return seconds


def main() -> int:
    days = float(sys.argv[1]) if len(sys.argv) > 1 else DAYS
    with tempfile.TemporaryDirectory() as folder:
        on_disk = report("in a folder", make_cluster(Path(folder, "state"), SETTINGS), days)
    in_memory = report("in memory  ", make_cluster("memory:", SETTINGS), days)
    print(f"limit {LIMIT * days / DAYS:.2f}")
    return 0 if max(on_disk, in_memory) <= LIMIT * days / DAYS else 1


if __name__ == "__main__":
    sys.exit(main())
