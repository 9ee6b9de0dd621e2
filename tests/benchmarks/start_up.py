"""Compare the time of `kubepy get ds x` as a whole process with `kubectl version --client` (or Python without kubectl).

    python tests/benchmarks/start_up.py

Prints both medians and their ratio; exits 1 when the ratio is above the limit. Runs alternate, so that a noisy machine
slows both alike.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 1.8
ROUNDS = 21
MANIFEST = Path(__file__).parents[2] / "manifests" / "nginx-ds.yaml"


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    kubepy = str(Path(sys.executable).with_name("kubepy"))
    if (kubectl := shutil.which("kubectl")) is None:
        print("no kubectl on the PATH to compare with")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        state = f"{folder}/state"
        subprocess.run([kubepy, "--state", state, "init", "--nodes", "3"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([kubepy, "--state", state, "apply", "-f", str(MANIFEST)], check=True, stdout=subprocess.DEVNULL)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(seconds([kubepy, "--state", state, "get", "ds", "nginx-ds"]))
            theirs.append(seconds([kubectl, "version", "--client"]))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"kubepy get ds nginx-ds    {statistics.median(ours) * 1000:6.1f} ms (median of {ROUNDS})")
    print(f"kubectl version --client  {statistics.median(theirs) * 1000:6.1f} ms")
    print(f"ratio {ratio:.2f}, limit {LIMIT}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
