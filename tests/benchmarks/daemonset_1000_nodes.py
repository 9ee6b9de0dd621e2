"""How long `controller --once` takes to make a DaemonSet available on 1000 nodes, against libyaml writing those pods.

    python tests/benchmarks/daemonset_1000_nodes.py [NODES]

The yardstick is PyYAML's CSafeDumper writing the same pods to one file each. Prints both times and their ratio; exits 1
when the ratio is above the limit.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

LIMIT = 4.0
MANIFEST = Path(__file__).parents[2] / "manifests" / "nginx-ds.yaml"


def write_with_libyaml(pods: list[dict], folder: Path) -> float:
    start = time.perf_counter()
    for pod in pods:
        with open(folder / f"{pod['metadata']['name']}.yaml", "w") as file:
            yaml.dump(pod, file, Dumper=yaml.CSafeDumper)
    return time.perf_counter() - start


def main() -> int:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    binary = str(Path(sys.executable).with_name("kubepy"))
    with tempfile.TemporaryDirectory() as folder:
        kubepy = [binary, "--state", f"{folder}/state"]
        subprocess.run([*kubepy, "init", "--nodes", str(nodes)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*kubepy, "apply", "-f", str(MANIFEST)], check=True, stdout=subprocess.DEVNULL)
        start = time.perf_counter()
        subprocess.run([*kubepy, "controller", "--once", "-q"], check=True)
        ours = time.perf_counter() - start
        shown = subprocess.run([*kubepy, "get", "ds", "nginx-ds", "-o", "jsonpath={.status.numberAvailable}"],
                               check=True, capture_output=True, text=True).stdout
        assert shown == str(nodes), f"{shown} of {nodes} pods are available"
        listed = subprocess.run([*kubepy, "get", "pods", "-o", "json"], check=True, capture_output=True, text=True)
        scratch = Path(folder, "libyaml")
        scratch.mkdir()
        theirs = write_with_libyaml(json.loads(listed.stdout)["items"], scratch)
    print(f"kubepy controller --once  {ours:6.2f} s for {nodes} pods")
    print(f"libyaml writing them      {theirs:6.2f} s")
    print(f"ratio {ours / theirs:.2f}, limit {LIMIT}")
    return 0 if ours / theirs <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
