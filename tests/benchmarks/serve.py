"""Measure `kubepy serve`: start, requests, and informers on many objects.

    python tests/benchmarks/serve.py

Prints each figure with its limit; exits 1 when one is above it. Clients are processes of their own,
with TLS, as real ones are: some parse what they get, the many only count events. Where others keep
the machine busy the limits of time are as many times longer as processes that only calculate take
longer, which is measured beside.
"""

import base64
import http.client
import json
import multiprocessing
import re
import selectors
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kubepy.controlplane.open import copy_cluster, make_cluster, open_cluster
from kubepy.storage import yaml

PODS = 1_000
CONFIG_MAPS = 10_000
READY_LIMIT = 0.7  # seconds from the start of the process to its line, with 1,000 pods
READY_MEMORY_LIMIT = 100.0  # MB then
PARSERS, PARSERS_LIMIT = 10, 5.0  # watchers that parse, and seconds until all are synced
COUNTERS, COUNTERS_LIMIT = 100, 10.0  # watchers that count
CHANGE_LIMIT = 0.3  # seconds until all have heard of a change
MEMORY_LIMIT = 250.0  # MB
CHANGES = 10
REQUESTS = 200
CORES = 4
WATCH = (
    "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=true&"
    "resourceVersionMatch=NotOlderThan"
    "&allowWatchBookmarks=true"
)
EVENT, END = b'{"type":"', b'"k8s.io/initial-events-end":"true"'
READY = re.compile(r"https?://\S+")


class Server:
    """A server as a process."""

    def __init__(self, state: Path, *flags: str) -> None:
        kubeconfig = state.parent / f"{state.name}.kubeconfig"
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "kubepy",
                "--state",
                str(state),
                "serve",
                "--port=0",
                f"--write-kubeconfig={kubeconfig}",
                *flags,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.ready_seconds = time.perf_counter() - start
        assert READY.search(line), line
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        [document] = yaml.load_all(kubeconfig.read_text())
        config: Any = document.object
        cluster = config["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        self.address = Address(
            str(url.hostname),
            int(url.port or 0),
            base64.b64decode(cluster["certificate-authority-data"]).decode(),
            config["users"][0]["user"]["token"],
        )

    def memory(self, field: str = "VmRSS") -> float:
        """Return the memory of the process in MB, with ``VmHWM`` the most that it has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return (
            next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field))
            / 1024
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


class Address(NamedTuple):
    host: str
    port: int
    ca: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self.host, self.port, context=ssl.create_default_context(cadata=self.ca)
        )

    def watch(self) -> ssl.SSLSocket:
        """Begin a watch."""
        plain = socket.create_connection((self.host, self.port))
        stream = ssl.create_default_context(cadata=self.ca).wrap_socket(
            plain, server_hostname=self.host
        )
        lines = (
            f"GET {WATCH} HTTP/1.1",
            f"Host: {self.host}",
            f"Authorization: Bearer {self.token}",
            "",
            "",
        )
        stream.sendall("\r\n".join(lines).encode())
        return stream


# --- clients --------------------------------------------------------------------------------------


def parse(address: Address, pipe: Connection) -> None:
    """Keep the objects of a watch as an informer does; tell when it is synced, and of each later
    event."""
    connection = address.connect()
    connection.request("GET", WATCH, headers=address.headers)
    response = connection.getresponse()
    objects = {}
    is_synced = False
    while line := response.readline():
        event = json.loads(line)
        if event["type"] == "BOOKMARK":
            if not is_synced:
                is_synced = True
                pipe.send((time.time(), len(objects)))
            continue
        objects[event["object"]["metadata"]["name"]] = event["object"]
        if is_synced:
            pipe.send((time.time(), 1))


def count(address: Address, pipe: Connection, number: int) -> None:
    """Count the events of many watches; tell when all are synced, and when all have had each later
    event."""
    chosen = selectors.DefaultSelector()
    for _ in range(number):
        stream = address.watch()
        stream.setblocking(False)
        chosen.register(stream, selectors.EVENT_READ, [0, b"", False])
    synced = later = total = 0
    while True:
        for key, _ in chosen.select():
            state = key.data
            try:
                data = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
            except ssl.SSLWantReadError:
                continue
            if not data:
                chosen.unregister(key.fileobj)
                continue
            text = state[1] + data
            found = text.count(EVENT, max(len(state[1]) - len(EVENT) + 1, 0))
            if state[2]:
                later += found
            else:
                state[0] += found
            if not state[2] and END in text:
                state[2] = True
                total += state[0] - 1
                synced += 1
                if synced == number:
                    pipe.send((time.time(), total))
            state[1] = text[1 - len(END) :]
            if found and later >= number:
                later -= number
                pipe.send((time.time(), number))


class Clients:
    """Processes that watch."""

    def __init__(self, target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> None:
        self._pipes, self._processes = [], []
        self.began = time.time()
        for values in arguments:
            ours, theirs = multiprocessing.Pipe()
            address, *rest = values
            process = multiprocessing.Process(
                target=target, args=(address, theirs, *rest), daemon=True
            )
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def wait(self) -> tuple[float, int]:
        """Return when the last client had what it waits for, and how many events all have had
        together."""
        told = []
        for pipe in self._pipes:
            assert pipe.poll(60), "a client is not synced"
            told.append(pipe.recv())
        return max(moment for moment, _ in told), sum(events for _, events in told)

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
            process.join()


def calculate(pipe: Connection) -> None:
    """Calculate for a while; tell how many times as long that took as it would on a machine with
    nothing else to do."""
    text = json.dumps({"metadata": {"name": "a"}, "data": {"key": "x" * 300}})
    start, began = time.perf_counter(), time.process_time()
    while time.process_time() - began < 0.5:
        json.loads(text)
    pipe.send((time.perf_counter() - start) / (time.process_time() - began))


def busyness() -> float:
    """Return how many times as long everything takes because the machine has other things to do."""
    pipes = [multiprocessing.Pipe() for _ in range(CORES)]
    processes = [multiprocessing.Process(target=calculate, args=(theirs,)) for _, theirs in pipes]
    for process in processes:
        process.start()
    factor = statistics.median(ours.recv() for ours, _ in pipes)
    for process in processes:
        process.join()
    print(
        f"the machine takes {factor:.2f} times as long as it would with nothing else to do",
        flush=True,
    )
    return max(float(factor), 1.0)


# --- measurements ---------------------------------------------------------------------------------


def report(what: str, value: float, limit: float, unit: str = "s") -> bool:
    print(f"{what:60} {value:8.2f} {unit} (limit {limit:g})", flush=True)
    return value <= limit


def fill(state: Path, pods: int, config_maps: int) -> None:
    cluster = make_cluster(state, {"seed": 1})
    with cluster.client.joined():
        for number in range(pods):
            spec = {"containers": [{"name": "main", "image": "nginx:1.27"}]}
            pod = {"metadata": {"name": f"pod-{number:05}", "labels": {"app": "web"}}, "spec": spec}
            cluster.client.create("pods", pod, namespace="default")
        for number in range(config_maps):
            config_map = {"metadata": {"name": f"config-{number:05}"}, "data": {"key": "x" * 300}}
            cluster.client.create("configmaps", config_map, namespace="default")
    cluster.close()


def measure_start(state: Path) -> list[bool]:
    seconds, megabytes, factor = [], [], busyness()
    for _ in range(5):
        server = Server(state, "--controllers=off")
        seconds.append(server.ready_seconds)
        megabytes.append(server.memory())
        server.stop()
    return [
        report(f"ready with {PODS} pods", statistics.median(seconds), READY_LIMIT * factor),
        report("memory then", statistics.median(megabytes), READY_MEMORY_LIMIT, "MB"),
    ]


def measure_requests(state: Path) -> None:
    """Print the requests per second of one client."""
    server = Server(state, "--controllers=off")
    connection, address = server.address.connect(), server.address
    path = "/api/v1/namespaces/default"

    def send(
        method: str, url: str, body: Any = None, content_type: str = "application/json"
    ) -> None:
        headers = {**address.headers, "Content-Type": content_type}
        connection.request(method, url, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        assert response.status < 300, response.read()
        response.read()

    def rate(what: str, number: int, request: Callable[[int], None]) -> None:
        request(0)
        start = time.perf_counter()
        for index in range(1, number + 1):
            request(index)
        print(f"{what:60} {number / (time.perf_counter() - start):8.0f} requests/s", flush=True)

    rate("get", REQUESTS, lambda index: send("GET", f"{path}/pods/pod-00500"))
    rate(f"list {PODS} pods", REQUESTS // 10, lambda index: send("GET", f"{path}/pods"))
    rate(
        "create",
        REQUESTS,
        lambda index: send(
            "POST",
            f"{path}/configmaps",
            {"metadata": {"name": f"new-{index}"}, "data": {"key": "x" * 300}},
        ),
    )
    rate(
        "patch",
        REQUESTS,
        lambda index: send(
            "PATCH",
            f"{path}/configmaps/new-1",
            {"data": {"key": str(index)}},
            "application/merge-patch+json",
        ),
    )
    connection.close()
    server.stop()


def measure_informers(
    server: Server, what: str, watchers: int, limit: float, clients: Clients
) -> list[bool]:
    synced, events = clients.wait()
    factor = busyness()
    assert events == watchers * CONFIG_MAPS, events
    holds = [
        report(
            f"{watchers} watchers that {what}: {CONFIG_MAPS} ConfigMaps",
            synced - clients.began,
            limit * factor,
        )
    ]
    connection, delays = server.address.connect(), []
    for index in range(CHANGES):
        body = json.dumps({"data": {"key": f"changed {index}"}})
        start = time.time()
        connection.request(
            "PATCH",
            f"/api/v1/namespaces/default/configmaps/config-{index:05}",
            body,
            {**server.address.headers, "Content-Type": "application/merge-patch+json"},
        )
        connection.getresponse().read()
        delays.append(clients.wait()[0] - start)
    holds.append(
        report("  a change reaches all of them", statistics.median(delays), CHANGE_LIMIT * factor)
    )
    holds.append(report("  most memory of the server", server.memory("VmHWM"), MEMORY_LIMIT, "MB"))
    connection.close()
    return holds


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        fill(base / "pods", PODS, 0)
        holds = measure_start(base / "pods")
        measure_requests(base / "pods")
        fill(base / "maps", 0, CONFIG_MAPS)
        maps = open_cluster(base / "maps")
        copy_cluster(maps, base / "more")  # with its index: `cp -r` would have each file read again
        maps.close()
        for state, what, watchers, limit in (
            (base / "maps", "parse", PARSERS, PARSERS_LIMIT),
            (base / "more", "count", COUNTERS, COUNTERS_LIMIT),
        ):
            server = Server(state, "--controllers=off")
            arguments = (
                [(server.address,)] * watchers
                if what == "parse"
                else [(server.address, watchers // 2)] * 2
            )
            clients = Clients(parse if what == "parse" else count, arguments)
            try:
                holds += measure_informers(server, what, watchers, limit, clients)
            finally:
                clients.stop()
                server.stop()
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
