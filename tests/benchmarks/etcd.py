"""Measure clusters in etcd: beside the same ones in a folder, and what etcd itself bears.

    python tests/benchmarks/etcd.py [daemonset] [get] [writes]

Prints each figure, with its limit where it has one; exits 1 when one is above it. Runs in etcd and
in the folder alternate, and the best of each counts. Where others keep the machine busy the limit
of a ratio of seconds is as many times higher as processes that only calculate take longer: two
processes that take turns wait twice. etcd writes without fsync, unless it says
otherwise; ``ETCD=path`` takes another one than that on the PATH.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kubepy.storage.etcd.client import EtcdClient, Put
from tests.benchmarks.measuring import KUBEPY, Bench, Clusters, Run, Size, cpu_of, launch
from tests.benchmarks.serve import busyness
from tests.etcd import EtcdServer, fresh_prefix, program, version

SIZE = Size(nodes=1_000)
DAEMON_SET_ROUNDS, GET_ROUNDS = 3, 20
DAEMON_SET_LIMIT = 3.0  # times what it takes in a folder
GET_LIMIT = 1.3  # times the CPU time
PARTS = ("daemonset", "get", "writes")
WRITES = 3_000
VALUE_SIZES = (500, 2_000, 20_000)  # bytes; a pod of a controller has some 2,000
UNDER_WAY = (1, 8, 64)


def report(what: str, value: float, unit: str, limit: float | None = None) -> bool:
    """Print a figure; tell whether it is within its limit."""
    text = f"{what:66} {value:9.2f} {unit}"
    print(text if limit is None else f"{text} (limit {limit:g})", flush=True)
    return limit is None or value <= limit


def compare(what: str, folder: Run, etcd: Run, cpu_limit: float, wall_limit: float | None) -> bool:
    """Print what a work takes in both; tell whether the ratios are within their limits."""
    report(f"{what}, in a folder: CPU", folder.cpu, "s")
    report(f"{what}, in etcd: CPU of kubepy", etcd.cpu, "s")
    has_cpu = report("  times the folder's", etcd.cpu / folder.cpu, "", cpu_limit)
    report(f"{what}, in a folder: wall", folder.wall, "s")
    report(f"{what}, in etcd: wall", etcd.wall, "s")
    has_wall = report("  times the folder's", etcd.wall / folder.wall, "", wall_limit)
    return has_cpu and has_wall


class Places:
    """The same clusters in folders and in etcd.

    :ivar server_cpu: CPU seconds of etcd in each run of a work.
    """

    def __init__(self, bench: Bench, server: EtcdServer) -> None:
        self.bench = bench
        self.server = server
        self.server_cpu: list[float] = []

    def copy_to_etcd(self, folder: Path) -> str:
        address = self.server.address(fresh_prefix())
        launch(KUBEPY, "fork", str(folder), address)
        return address

    def make_in_folder(self) -> Run:
        """Let the controllers make all pods in a new folder."""
        run, folder = self.bench.clusters.make(SIZE)
        self.bench.clusters.drop(folder)
        return run

    def make_in_etcd(self) -> Run:
        """Let the controllers make all pods in etcd, below a new prefix."""
        address = self.copy_to_etcd(self.bench.clusters.unsettled(SIZE))
        before = cpu_of(self.server.pid)
        run = launch(KUBEPY, "--state", address, "controller", "--once", "-q")
        self.server_cpu.append(cpu_of(self.server.pid) - before)
        return run


def measure_daemon_set(places: Places) -> bool:
    """The DaemonSet on 1,000 nodes until all pods are available."""
    runs = places.bench.alternate(
        places.make_in_folder, places.make_in_etcd, rounds=DAEMON_SET_ROUNDS
    )
    what = f"DaemonSet on {SIZE.nodes:,} nodes"
    holds = compare(what, *runs, DAEMON_SET_LIMIT, DAEMON_SET_LIMIT * busyness())
    report(f"{what}, in etcd: CPU of etcd", min(places.server_cpu), "s")
    return holds


def measure_get(places: Places) -> bool:
    """`get` of one object in a settled cluster."""
    folder = places.bench.clusters.settled(SIZE)
    address = places.copy_to_etcd(folder)
    words = ("get", "ds", "agent-0")

    def get(state: str) -> Callable[[], Run]:
        return lambda: launch(KUBEPY, "--state", state, *words)

    runs = places.bench.alternate(get(str(folder)), get(address), rounds=GET_ROUNDS)
    return compare("get of one object", *runs, GET_LIMIT, None)


def measure_writes(server: EtcdServer, what: str) -> None:
    """Print the writes that etcd does in a second, as kubepy sends them."""
    with closing(server.client()) as client:
        for size in VALUE_SIZES:
            for number in UNDER_WAY:
                number_of_writes = WRITES if number > 1 else WRITES // 3
                before, start = cpu_of(server.pid), time.perf_counter()
                write(client, number_of_writes, size, number)
                seconds = time.perf_counter() - start
                cpu = cpu_of(server.pid) - before
                label = f"{what}: {size:,} bytes, {number} under way"
                report(label, number_of_writes / seconds, "writes/s")
                report("  CPU of etcd", cpu / number_of_writes * 1e6, "µs a write")


def write(client: EtcdClient, writes: int, size: int, number: int) -> None:
    """Write keys, so many under way at a time."""
    value = bytes(size)
    pending = []
    for index in range(writes):
        pending.append(client.submit([], [Put(f"/writes/{index % 1000}".encode(), value)]))
        if len(pending) >= number:
            pending.pop(0).result()
    for transaction in pending:
        transaction.result()


@contextmanager
def etcd(folder: Path, *, is_synced: bool = False) -> Iterator[EtcdServer]:
    with EtcdServer(
        folder, is_synced=is_synced, flags=["--quota-backend-bytes=8000000000"]
    ) as server:
        yield server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)} (default: all)")
    parts = parser.parse_args().parts or PARTS
    if unknown := set(parts).difference(PARTS):
        parser.error(f"no part named {', '.join(sorted(unknown))}")
    path = program()
    if path is None:
        print("there is no etcd here: `make etcd` installs Debian's etcd-server")
        return 1
    print(f"etcd {version(path)}", flush=True)
    holds = []
    with tempfile.TemporaryDirectory(prefix="kubepy-bench-") as name:
        scratch = Path(name)
        with etcd(scratch / "etcd") as server:
            places = Places(Bench(Clusters(scratch), SIZE), server)
            if "daemonset" in parts:
                holds.append(measure_daemon_set(places))
            if "get" in parts:
                holds.append(measure_get(places))
            if "writes" in parts:
                measure_writes(server, "etcd without fsync")
        if "writes" in parts:
            with etcd(scratch / "synced", is_synced=True) as server:
                measure_writes(server, "etcd with fsync")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
