"""Compare the cost of a plan with that of doing what it plans: a DaemonSet's update on 1000 nodes.

    python tests/benchmarks/plan.py [NODES]

Both are counted in CPU seconds, the best of three runs. Doing it: `set image`,
`controller --until-settled` on a copy of the cluster. A plan of a Deployment with half as many
replicas has a limit in seconds, on a machine on which `kubepy version` takes a tenth of a second: a
slower machine gets more. Prints all; exits 1 when one is above its limit.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RATIO, SECONDS = 1.3, 2.0
RUNS = 3
START_UP = 0.1  # CPU seconds of `kubepy version` on the machine that SECONDS is about
BINARY = str(Path(sys.executable).with_name("kubepy"))
MANIFEST = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 10%}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1"}]}
"""


def cpu_seconds(*words: str, stdin: str = "") -> float:
    """Run kubepy, and return the CPU seconds that it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([BINARY, *words], input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def new_cluster(folder: str, nodes: int) -> list[str]:
    state = f"--state={folder}/state"
    cpu_seconds(state, "init", f"--nodes={nodes}", "--clock=2026-01-01T00:00:00Z", "--seed=7")
    cpu_seconds(
        state,
        "annotate",
        "nodes",
        "--all",
        "kubepy.dev/ready-after=2s..9s",
        "kubepy.dev/stops-after=1s..3s",
    )
    return [state]


def daemon_set(nodes: int) -> tuple[float, float]:
    """Return the CPU seconds of the plan, and of doing it."""
    with tempfile.TemporaryDirectory() as folder:
        state = new_cluster(folder, nodes)
        cpu_seconds(*state, "apply", "-f", "-", stdin=MANIFEST)
        cpu_seconds(*state, "controller", "--until-settled", "-q")
        command = ("set", "image", "ds/agent", "agent=agent:2")
        planned = min(cpu_seconds(*state, "plan", *command) for _ in range(RUNS))
        done = []
        for number in range(RUNS):
            cpu_seconds(*state, "fork", f"{folder}/{number}")
            copy = f"--state={folder}/{number}"
            done.append(
                cpu_seconds(copy, *command)
                + cpu_seconds(copy, "controller", "--until-settled", "-q")
            )
        return planned, min(done)


def deployment(replicas: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        state = new_cluster(folder, 10)
        cpu_seconds(
            *state, "create", "deployment", "web", "--image=web:1", f"--replicas={replicas}"
        )
        cpu_seconds(*state, "controller", "--until-settled", "-q")
        return min(
            cpu_seconds(*state, "plan", "set", "image", "deploy/web", "web=web:2")
            for _ in range(RUNS)
        )


def main() -> int:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    planned, done = daemon_set(nodes)
    print(f"plan of a DaemonSet on {nodes} nodes  {planned:6.2f} s")
    print(f"doing it                          {done:6.2f} s")
    print(f"ratio {planned / done:.2f}, limit {RATIO}")
    limit = SECONDS * max(min(cpu_seconds("version") for _ in range(RUNS)) / START_UP, 1.0)
    replicas = nodes // 2
    large = deployment(replicas)
    print(f"plan of a Deployment of {replicas}  {large:6.2f} s, limit {limit:.2f} s")
    return 0 if planned / done <= RATIO and large <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
