"""Time (of the CPU) a new cluster in memory, the first of the process with all that it imports, and
the setup of a test with the fixture.

    python tests/benchmarks/python_api.py

Prints the times; exits 1 when one is above its limit.
"""

import contextlib
import io
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kubepy import Cluster

FIRST_MS = 200.0
CLUSTER_MS = 5.0
FIXTURE_MS = 20.0
CLUSTERS, TESTS = 200, 100
TEST = f"""
import pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_cluster(kubepy, number):
    assert len(kubepy.client.list("nodes")) == 1
"""


class Recorder:
    """A plugin that notes how long the setup of each test takes."""

    def __init__(self) -> None:
        self.milliseconds: list[float] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup":
            self.milliseconds.append(report.duration * 1000)


def cluster_times(**options: int) -> list[float]:
    times = []
    for _ in range(CLUSTERS):
        start = time.process_time()
        Cluster.temporary(**options)
        times.append((time.process_time() - start) * 1000)
    return times


def fixture_times() -> list[float]:
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder, "test_clusters.py")
        path.write_text(TEST)
        assert (
            pytest.main(
                ["-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(path)],
                plugins=[recorder],
            )
            == 0
        )
    return recorder.milliseconds


def main() -> int:
    one, three, fixture = cluster_times(), cluster_times(nodes=3), fixture_times()
    rows = [
        ("a new cluster in memory", one, CLUSTER_MS),
        ("one with other settings", three, CLUSTER_MS),
        ("the setup of a test", fixture, FIXTURE_MS),
    ]
    for name, times, limit in rows:
        print(
            f"{name:<25} first {times[0]:6.2f} ms   median {statistics.median(times):6.2f} ms   "
            f"limit {limit:g} ms"
        )
    is_within = all(statistics.median(times) <= limit for _, times, limit in rows)
    return 0 if is_within and one[0] <= FIRST_MS else 1


if __name__ == "__main__":
    sys.exit(main())
