"""Measure a DaemonSet on 1,000 nodes beside a real control plane, both on etcd.

    KUBE_APISERVER=… KUBE_CONTROLLER_MANAGER=… KUBE_SCHEDULER=… \\
        python tests/benchmarks/control_plane.py

Each begins with 1,000 Ready nodes and with processes that have nothing to do. The control plane is
done when all pods are bound, since it has no kubelets; kubepy when they are available. Prints wall
and CPU seconds of each process, and the ratios. Runs alternate.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kubepy.controlplane.open import open_cluster
from tests.benchmarks.measuring import KUBEPY, launch
from tests.etcd import EtcdServer
from tests.kubeapiserver import TOKEN, KubeApiServer

FASTER = ("--kube-api-qps=5000", "--kube-api-burst=10000")
QUIET_SECONDS, QUIET_CPU = 3.0, 0.3
PATIENCE = 600.0
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
        },
    },
}
Processes = Mapping[str, int]
Times = dict[str, float]


def cpu_of_all(pid: int) -> float:
    """Return the CPU seconds of a process, those of threads that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_times(processes: Processes) -> Times:
    return {name: cpu_of_all(pid) for name, pid in processes.items()}


def wait_for_quiet(processes: Processes) -> None:
    """Wait until the processes hardly do anything."""
    end = time.monotonic() + PATIENCE
    before = sum(cpu_times(processes).values())
    while time.monotonic() < end:
        time.sleep(QUIET_SECONDS)
        now = sum(cpu_times(processes).values())
        if now - before < QUIET_CPU * QUIET_SECONDS:
            return
        before = now
    raise AssertionError("the processes never come to rest")


def measure(
    processes: Processes, begin: Callable[[], object], is_done: Callable[[], bool]
) -> Times:
    """Return the CPU seconds of each process, and the seconds, from the begin until it is done."""
    wait_for_quiet(processes)
    before = cpu_times(processes)
    start = time.perf_counter()
    begin()
    while not is_done():
        assert time.perf_counter() - start < PATIENCE, "it never gets done"
        time.sleep(0.25)
    wall = time.perf_counter() - start
    after = cpu_times(processes)
    times = {name: after[name] - before[name] for name in processes}
    return {"wall": wall, "CPU": sum(times.values()), **times}


# --- the control plane ----------------------------------------------------------------------------


def node(number: int) -> dict[str, Any]:
    """Return a Ready node."""
    name = f"node-{number}"
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    }


def kubeconfig_of(server: KubeApiServer) -> Path:
    url = f"https://127.0.0.1:{server.port}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = server.folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


@contextmanager
def component(name: str, folder: Path, *flags: str) -> Iterator[int]:
    """Run a component of the control plane; give its process."""
    path = program_of(name)
    assert path is not None
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen([path, *flags], stdout=log, stderr=log)
    try:
        yield process.pid
        assert process.poll() is None, f"{name} has ended"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def program_of(name: str) -> str | None:
    return shutil.which(os.environ.get(name.upper().replace("-", "_"), name))


def measure_control_plane(folder: Path, nodes: int, flags: Sequence[str] = ()) -> Times:
    """Return what kube-controller-manager, kube-scheduler, kube-apiserver and etcd take until the
    pods are bound."""
    with ExitStack() as stack:
        etcd = stack.enter_context(EtcdServer(folder / "etcd"))
        server = stack.enter_context(KubeApiServer(folder / "kube-apiserver", etcd))
        with ThreadPoolExecutor(8) as threads:
            requests = (server.send, ["POST"] * nodes, ["/api/v1/nodes"] * nodes)
            list(threads.map(*requests, map(node, range(nodes))))
        config = f"--kubeconfig={kubeconfig_of(server)}"
        key = f"--service-account-private-key-file={server.folder / 'serviceaccounts.key'}"
        # Nobody renews the leases of the nodes
        grace = "--node-monitor-grace-period=2h"
        manager = component("kube-controller-manager", folder, config, key, grace, *flags)
        scheduler = component("kube-scheduler", folder, config, *flags)
        processes = {
            "etcd": etcd.pid,
            "kube-apiserver": server.pid,
            "kube-controller-manager": stack.enter_context(manager),
            "kube-scheduler": stack.enter_context(scheduler),
        }
        unbound = "/api/v1/pods?fieldSelector=spec.nodeName%3D&resourceVersion=0&limit=1"

        def is_done() -> bool:
            status = server.get(f"{DAEMON_SETS}/agent").get("status", {})
            is_created = status.get("currentNumberScheduled") == nodes
            return is_created and not server.get(unbound)["items"]

        return measure(processes, lambda: server.send("POST", DAEMON_SETS, DAEMON_SET), is_done)


# --- kubepy ---------------------------------------------------------------------------------------


def measure_kubepy(folder: Path, nodes: int) -> Times:
    """Return what the manager and etcd take until the pods are available."""
    with EtcdServer(folder / "etcd") as etcd:
        address = etcd.address()
        launch(KUBEPY, "--state", address, "init", f"--nodes={nodes}")
        command = [KUBEPY, "--state", address, "controller", "--watch", "-q"]
        manager = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        cluster = open_cluster(address)
        client = cluster.client
        try:

            def is_done() -> bool:
                daemon_set = client.get("daemonsets.apps", "agent", namespace="default")
                return bool(daemon_set["status"].get("numberAvailable") == nodes)

            return measure(
                {"etcd": etcd.pid, "kubepy": manager.pid},
                lambda: client.create("daemonsets.apps", DAEMON_SET, namespace="default"),
                is_done,
            )
        finally:
            cluster.close()
            manager.terminate()
            manager.wait(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        if program_of(name) is None:
            print(f"there is no {name} here: {name.upper().replace('-', '_')} names it")
            return 1
    works: dict[str, Callable[[Path], Times]] = {
        "kubepy": lambda folder: measure_kubepy(folder, options.nodes),
        "control plane": lambda folder: measure_control_plane(folder, options.nodes),
        f"control plane {' '.join(FASTER)}": lambda folder: measure_control_plane(
            folder, options.nodes, FASTER
        ),
    }
    best: dict[str, Times] = {}
    for _ in range(options.rounds):
        for name, work in works.items():
            with tempfile.TemporaryDirectory(prefix="kubepy-bench-") as folder:
                times = work(Path(folder))
            shown = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in times.items())
            print(f"{name}: {shown}", flush=True)
            if name not in best or times["CPU"] < best[name]["CPU"]:
                best[name] = times
    ours = best.pop("kubepy")
    for name, times in best.items():
        for part in ("CPU", "wall"):
            print(f"kubepy / {name}: {part} {ours[part] / times[part]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
