"""Draw docs/pictures/timeline.svg. `make docs` does so, a test compares it.

The cluster is in memory, with time and random numbers of its own, so the bytes are always the same.
"""

from pathlib import Path

from kubepy import Cluster

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "timeline.svg"
KUBELET = {"readyAfter": "2s..8s", "stopsAfter": "1s..3s"}
CHANGE = "set image deploy/web web=web:2"
ADVANCE = "clock advance 10s"
DRAW = "timeline deploy/web --since=10s -o svg"


def cluster() -> Cluster:
    """Return the cluster of the first screen of README.md: a Deployment with four pods on three
    nodes."""
    made = Cluster.temporary(nodes=3, seed=7, settings={"kubelet": KUBELET})
    made.run("create deployment web --image=web:1 --replicas=4", check=True)
    made.settle()
    made.advance("5m")
    return made


def picture() -> str:
    drawn = cluster()
    for command in (CHANGE, ADVANCE):
        drawn.run(command, check=True)
    return drawn.run(DRAW, check=True).stdout


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture())
