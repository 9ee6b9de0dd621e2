"""Compare the cost of replacing one pod in a rolling update of a large StatefulSet with that in a
small one.

    python tests/benchmarks/statefulset_update.py [PODS]

Each step of an update looks at the whole set, but should read only the changed objects. Prints the
time per pod in both sets and their ratio; exits 1 when the ratio is above the limit.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 3.0
SMALL = 100
MANIFEST = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: {replicas}
  serviceName: db
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: c, image: "db:1"}}]}}
"""


def seconds_per_pod(replicas: int) -> float:
    binary = str(Path(sys.executable).with_name("kubepy"))
    with tempfile.TemporaryDirectory() as folder:
        kubepy = [binary, "--state", f"{folder}/state"]
        subprocess.run([*kubepy, "init", "--nodes", "10"], check=True, stdout=subprocess.DEVNULL)
        manifest = MANIFEST.format(replicas=replicas)
        subprocess.run(
            [*kubepy, "apply", "-f", "-"],
            input=manifest,
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        subprocess.run([*kubepy, "controller", "--once", "-q"], check=True)
        subprocess.run(
            [*kubepy, "set", "image", "sts/db", "c=db:2"], check=True, stdout=subprocess.DEVNULL
        )
        update, idle = seconds_of_a_run(kubepy), seconds_of_a_run(kubepy)
        shown = subprocess.run(
            [*kubepy, "get", "sts", "db", "-o", "jsonpath={.status.updatedReplicas}"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert shown == str(replicas), f"{shown} of {replicas} pods are updated"
    return (update - idle) / replicas


def seconds_of_a_run(kubepy: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([*kubepy, "controller", "--once", "-q"], check=True)
    return time.perf_counter() - start


def main() -> int:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    small, large = seconds_per_pod(SMALL), seconds_per_pod(pods)
    print(f"a pod of {SMALL:4}  {small * 1000:6.1f} ms")
    print(f"a pod of {pods:4}  {large * 1000:6.1f} ms")
    print(f"ratio {large / small:.2f}, limit {LIMIT}")
    return 0 if large / small <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
