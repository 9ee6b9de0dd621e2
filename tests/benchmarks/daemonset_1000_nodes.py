"""Compare the cost of making a DaemonSet available on 1000 nodes (`controller --once`) with libyaml writing those pods.

    python tests/benchmarks/daemonset_1000_nodes.py [NODES]

The yardstick is PyYAML's CSafeDumper writing the same pods to one file each. Both are counted in CPU seconds, the best
of three runs, which a busy machine changes little. Prints both and their ratio; exits 1 when that is above the limit.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

LIMIT = 3.0
RUNS = 3
MANIFEST = Path(__file__).parents[2] / "manifests" / "nginx-ds.yaml"


def cpu_seconds(whose: int) -> float:
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def make_available(kubepy: list[str], nodes: int) -> float:
    subprocess.run([*kubepy, "init", "--nodes", str(nodes)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*kubepy, "apply", "-f", str(MANIFEST)], check=True, stdout=subprocess.DEVNULL)
    start = cpu_seconds(resource.RUSAGE_CHILDREN)
    subprocess.run([*kubepy, "controller", "--once", "-q"], check=True)
    return cpu_seconds(resource.RUSAGE_CHILDREN) - start


def write_with_libyaml(pods: list[dict], folder: Path) -> float:
    start = cpu_seconds(resource.RUSAGE_SELF)
    for pod in pods:
        with open(folder / f"{pod['metadata']['name']}.yaml", "w") as file:
            yaml.dump(pod, file, Dumper=yaml.CSafeDumper)
    return cpu_seconds(resource.RUSAGE_SELF) - start


def run(nodes: int) -> tuple[float, float]:
    """Return the CPU seconds of both."""
    binary = str(Path(sys.executable).with_name("kubepy"))
    with tempfile.TemporaryDirectory() as folder:
        kubepy = [binary, "--state", f"{folder}/state"]
        ours = make_available(kubepy, nodes)
        shown = subprocess.run([*kubepy, "get", "ds", "nginx-ds", "-o", "jsonpath={.status.numberAvailable}"],
                               check=True, capture_output=True, text=True).stdout
        assert shown == str(nodes), f"{shown} of {nodes} pods are available"
        listed = subprocess.run([*kubepy, "get", "pods", "-o", "json"], check=True, capture_output=True, text=True)
        scratch = Path(folder, "libyaml")
        scratch.mkdir()
        return ours, write_with_libyaml(json.loads(listed.stdout)["items"], scratch)


def main() -> int:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    ours, theirs = (min(found) for found in zip(*(run(nodes) for _ in range(RUNS)), strict=True))
    print(f"kubepy controller --once  {ours:6.2f} s for {nodes} pods")
    print(f"libyaml writing them      {theirs:6.2f} s")
    print(f"ratio {ours / theirs:.2f}, limit {LIMIT}")
    return 0 if ours / theirs <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
