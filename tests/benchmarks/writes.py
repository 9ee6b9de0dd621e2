"""Measure the writes of a server in memory: CPU of each kind of write, and writes a second.

    python -m tests.benchmarks.writes [--profile FILE] [WRITE...]

The server is the program ``kube-apiserver`` of ``kubepy envtest-assets``, its client a process with
one connection and a client certificate, as an operator in a test has. Prints each figure with its
limit; exits 1 when one is above it. CPU is that of the whole server; where others keep the machine
busy the limits of rates are as much lower as processes that only calculate are slower. WRITE names
the writes to be measured (``python -m tests.benchmarks.writes update``); with ``--profile`` the
server writes to a file what it did, for pstats.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import selectors
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.x509.oid import ExtendedKeyUsageOID

from kubepy.server import certificates
from tests.benchmarks.measuring import cpu_of
from tests.benchmarks.serve import busyness
from tests.server.credentials import needed_flags, new_pair

CPU_LIMIT = 3.0  # milliseconds of a write
RATE_LIMIT = 300.0  # writes a second of one client
WATCHED_RATE_LIMIT = 150.0  # … beside so many watchers
WATCHERS = 50
WRITES = 200  # in a round
ROUNDS = 3  # of which the best counts
WARM_UP = 100
GROUP, KIND, PLURAL = "example.com", "Widget", "widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/{PLURAL}"
JSON, MERGE, JSON_PATCH = (
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
)
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

# The server, which writes what it did when it ends.
PROFILED = """
import cProfile, sys, threading
profiles = []
run = threading.Thread.run
def profiled(thread):
    profile = cProfile.Profile()
    profiles.append(profile)
    profile.runcall(run, thread)
threading.Thread.run = profiled
from kubepy.server.envtest import apiserver
main = cProfile.Profile()
status = main.runcall(apiserver.main, sys.argv[2:])
import pstats
stats = pstats.Stats(main)
for profile in profiles:
    profile.create_stats()
    stats.add(profile)
stats.dump_stats(sys.argv[1])
sys.exit(status)
"""


def _condition(number: int) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "True" if number % 2 else "False",
        "reason": "Reconciled",
        "message": f"reconciled {number} times",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def _definition() -> dict[str, Any]:
    """Return the definition of a custom resource with a structural schema, as controller-gen makes
    them."""
    text = {"type": "string"}
    condition = {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": {**text, "maxLength": 316},
            "status": {**text, "enum": ["True", "False", "Unknown"]},
            "reason": {**text, "minLength": 1, "maxLength": 1024},
            "message": {**text, "maxLength": 32768},
            "lastTransitionTime": {**text, "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    }
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 0},
            "paused": {"type": "boolean", "default": False},
            "image": {**text, "pattern": "^[a-z/:.0-9-]+$"},
            "selector": {"type": "object", "additionalProperties": text},
        },
    }
    status = {
        "type": "object",
        "properties": {
            "ready": {"type": "integer"},
            "conditions": {
                "type": "array",
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }
    schema = {
        "type": "object",
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": KIND, "listKind": f"{KIND}List", "plural": PLURAL},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _config_map(name: str, number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "data": {"key": str(number), "text": "x" * 100},
    }


def _widget(name: str, number: int) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": KIND,
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"size": number, "image": "nginx:1.27", "selector": {"app": "web"}},
    }


class Write(NamedTuple):
    """A kind of write.

    :ivar path: of the collection.
    :ivar body: makes the body of a write, by its number; of a PUT it is merged into the object as
        the server last answered.
    """

    name: str
    method: str
    path: str
    body: Callable[[int], Any]
    content_type: str = JSON
    subresource: str = ""


WRITES_OF = (
    Write("ConfigMap: create", "POST", CONFIG_MAPS, lambda n: _config_map(f"new-{n}", n)),
    Write("ConfigMap: update", "PUT", CONFIG_MAPS, lambda n: {"data": {"key": str(n)}}),
    Write("ConfigMap: merge", "PATCH", CONFIG_MAPS, lambda n: {"data": {"key": str(n)}}, MERGE),
    Write(
        "ConfigMap: json",
        "PATCH",
        CONFIG_MAPS,
        lambda n: [{"op": "replace", "path": "/data/key", "value": str(n)}],
        JSON_PATCH,
    ),
    Write(
        "ConfigMap: strategic",
        "PATCH",
        CONFIG_MAPS,
        lambda n: {"data": {"key": str(n)}},
        STRATEGIC,
    ),
    Write("ConfigMap: apply", "PATCH", CONFIG_MAPS, lambda n: _config_map("applied", n), APPLY),
    Write("Widget: create", "POST", WIDGETS, lambda n: _widget(f"new-{n}", n)),
    Write("Widget: update", "PUT", WIDGETS, lambda n: {"spec": {"size": n}}),
    Write("Widget: merge", "PATCH", WIDGETS, lambda n: {"spec": {"size": n}}, MERGE),
    Write(
        "Widget: json",
        "PATCH",
        WIDGETS,
        lambda n: [{"op": "replace", "path": "/spec/size", "value": n}],
        JSON_PATCH,
    ),
    Write("Widget: apply", "PATCH", WIDGETS, lambda n: _widget("applied", n), APPLY),
    Write(
        "Widget: update status",
        "PUT",
        WIDGETS,
        lambda n: {"status": {"ready": n, "conditions": [_condition(n)]}},
        subresource="/status",
    ),
    Write(
        "Widget: merge status",
        "PATCH",
        WIDGETS,
        lambda n: {"status": {"ready": n, "conditions": [_condition(n)]}},
        MERGE,
        "/status",
    ),
)


# --- the server and its client --------------------------------------------------------------------


class Address(NamedTuple):
    """Where a server is, and with what a client comes.

    :ivar folder: has the certificates.
    """

    port: int
    folder: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.folder / "apiserver.crt"))
        context.load_cert_chain(self.folder / "client.crt", self.folder / "client.key")
        return context

    def connect(self) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context())
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def watch(self, path: str) -> ssl.SSLSocket:
        """Begin a watch."""
        plain = socket.create_connection(("127.0.0.1", self.port))
        stream = self.context().wrap_socket(plain, server_hostname="127.0.0.1")
        stream.sendall(f"GET {path}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return stream


def _make_certificates(folder: Path) -> None:
    """Make the certificates of the server and of an administrator."""
    certificate, key = certificates.self_signed(["127.0.0.1", "localhost"])
    (folder / "apiserver.crt").write_bytes(certificate)
    (folder / "apiserver.key").write_bytes(key)
    ca = new_pair("client-ca")
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    client = new_pair("admin", ca, groups=("system:masters",), usage=usage)
    (folder / "ca.crt").write_bytes(ca.pem())
    (folder / "client.crt").write_bytes(client.pem())
    (folder / "client.key").write_bytes(client.key_pem())


@contextmanager
def serving(folder: Path, profile: str = "") -> Iterator[tuple[int, Address]]:
    """Start a server; the block gets its process id and where it is."""
    _make_certificates(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    program = ["-c", PROFILED, profile] if profile else ["-m", "kubepy.cli.envtest_apiserver"]
    flags = (
        *needed_flags(folder),
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--client-ca-file={folder / 'ca.crt'}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
    )
    process = subprocess.Popen([sys.executable, *program, "api", *flags], stderr=subprocess.DEVNULL)
    address = Address(port, folder)
    end = time.monotonic() + 20
    while True:
        try:
            address.connect().close()
            break
        except OSError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.02)
    try:
        yield process.pid, address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Writer:
    """One client with one connection."""

    def __init__(self, address: Address) -> None:
        self._connection = address.connect()
        self._last: dict[str, Any] = {}
        self._number = 0

    def send(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        headers = {"Content-Type": content_type, "User-Agent": "manager/v0.0.0"}
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        assert response.status < 300, answer
        return answer

    def prepare(self) -> None:
        """Make what is written to later."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self.send("POST", path, _definition())
        while True:
            conditions = self.send("GET", f"{path}/{PLURAL}.{GROUP}").get("status", {})
            if any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in conditions.get("conditions", [])
            ):
                break
            time.sleep(0.02)
        self.send("POST", CONFIG_MAPS, _config_map("written", 0))
        self.send("POST", WIDGETS, _widget("written", 0))

    def write(self, kind: Write, count: int) -> None:
        """Write so many times."""
        for _ in range(count):
            self._number += 1
            body = kind.body(self._number)
            if kind.method == "POST":
                self.send("POST", kind.path, body)
            elif kind.content_type == APPLY:
                path = f"{kind.path}/applied?fieldManager=manager&force=true"
                self.send("PATCH", path, body, APPLY)
            else:
                path = f"{kind.path}/written{kind.subresource}"
                if kind.method == "PUT":
                    body = _merged(self._read(f"{kind.path}/written"), body)
                self._last[f"{kind.path}/written"] = self.send(
                    kind.method, path, body, kind.content_type
                )

    def _read(self, path: str) -> Any:
        if path not in self._last:
            self._last[path] = self.send("GET", path)
        return self._last[path]


def _merged(obj: Any, change: dict[str, Any]) -> dict[str, Any]:
    return {
        **obj,
        **{field: {**obj.get(field, {}), **value} for field, value in change.items()},
    }


def count_events(address: Address, pipe: Connection) -> None:
    """Read watches, half of them of each resource, until the process is ended; count the events
    where the pipe asks for them."""
    selector = selectors.DefaultSelector()
    for number in range(WATCHERS):
        stream = address.watch(WIDGETS if number % 2 else CONFIG_MAPS)
        stream.setblocking(False)
        selector.register(stream, selectors.EVENT_READ)
    pipe.send(None)
    events = 0
    while True:
        for key, _ in selector.select(0.1):
            try:
                events += key.fileobj.recv(1 << 18).count(b'{"type":"')  # type: ignore[union-attr]
            except ssl.SSLWantReadError:
                continue
        if pipe.poll():
            pipe.recv()
            pipe.send(events)
            events = 0


# --- measurements ---------------------------------------------------------------------------------


def report(what: str, value: float, limit: float, unit: str, *, at_least: bool = False) -> bool:
    word = "at least" if at_least else "limit"
    print(f"{what:52} {value:8.2f} {unit} ({word} {limit:.3g})", flush=True)
    return value >= limit if at_least else value <= limit


class Round(NamedTuple):
    """A round of writes: milliseconds of CPU of the server for each, and writes a second."""

    cpu: float
    rate: float


def measure(pid: int, writer: Writer, kind: Write) -> Round:
    """Return the least CPU and the highest rate of several rounds."""
    writer.write(kind, WARM_UP)
    rounds = []
    for _ in range(ROUNDS):
        before, start = cpu_of(pid), time.perf_counter()
        writer.write(kind, WRITES)
        seconds = time.perf_counter() - start
        rounds.append(Round((cpu_of(pid) - before) * 1000 / WRITES, WRITES / seconds))
    return Round(min(one.cpu for one in rounds), max(one.rate for one in rounds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="", metavar="FILE")
    parser.add_argument("writes", nargs="*", metavar="WRITE")
    arguments = parser.parse_args()
    chosen = [
        kind
        for kind in WRITES_OF
        if not arguments.writes or any(word in kind.name for word in arguments.writes)
    ]
    holds = []
    with tempfile.TemporaryDirectory() as name, serving(Path(name), arguments.profile) as server:
        pid, address = server
        writer = Writer(address)
        writer.prepare()
        rates = []
        for kind in chosen:
            result = measure(pid, writer, kind)
            holds.append(report(kind.name, result.cpu, CPU_LIMIT, "ms of CPU"))
            rates.append(result.rate)
        factor = busyness()
        middle = statistics.median(rates)
        holds.append(
            report("writes of one client", middle, RATE_LIMIT / factor, "a second", at_least=True)
        )
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=count_events, args=(address, theirs), daemon=True)
        process.start()
        ours.recv()
        time.sleep(1.0)  # the objects that are there come first
        ours.send(None)
        ours.recv()
        watched = [measure(pid, writer, kind) for kind in chosen]
        time.sleep(2.0)  # the last ones arrive
        ours.send(None)
        expected = len(chosen) * (WARM_UP + ROUNDS * WRITES) * WATCHERS // 2
        events = ours.recv()
        assert events == expected, f"{events} events, not {expected}"
        process.terminate()
        holds.append(
            report(
                f"writes beside {WATCHERS} watchers",
                statistics.median(one.rate for one in watched),
                WATCHED_RATE_LIMIT / factor,
                "a second",
                at_least=True,
            )
        )
        print(f"{'  CPU of each then':52} {statistics.median(o.cpu for o in watched):8.2f} ms")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    os.environ.pop("KUBEPY_STATE", None)
    sys.exit(main())
