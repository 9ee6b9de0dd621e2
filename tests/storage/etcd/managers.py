"""``kubepy controller --watch`` as processes on one etcd, an observer that hears of every revision,
and a way to cut a process off.

    python -m tests.storage.etcd.managers ADDRESS

runs one manager. With each write of objects it writes, in the same transaction, which process it
is: so etcd's history says who has written what.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.controlplane import MANAGER_LOCK
from kubepy.storage.etcd.address import Address, parse_address
from kubepy.storage.etcd.client import (
    Compare,
    Delete,
    EtcdClient,
    Operation,
    PendingTxn,
    Put,
    TxnResult,
)
from kubepy.storage.etcd.errors import UnreachableError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.notices import KeyEvent
from kubepy.storage.etcd.ownkeys import OwnKeys

Object = dict[str, Any]
PROJECT = Path(__file__).parents[3]
DAEMON_SET = "agent"


# --- a manager


def writer_key(prefix: str) -> bytes:
    """Return the key that says who has written last."""
    return f"{prefix}/writer".encode()


def sign_writes(address: Address) -> None:
    """Let every transaction of this process that writes objects say so."""
    registry = EtcdKeys(address.prefix).registry
    signature = Put(writer_key(address.prefix), str(os.getpid()).encode())
    txn, submit = EtcdClient.txn, EtcdClient.submit

    def signed(operations: Sequence[Operation]) -> Sequence[Operation]:
        writes = [each for each in operations if isinstance(each, Put | Delete)]
        if any(write.key.startswith(registry) for write in writes):
            return [*operations, signature]
        return operations

    def signed_txn(
        self: EtcdClient,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> TxnResult:
        return txn(self, compares, signed(success), failure)

    def signed_submit(
        self: EtcdClient,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> PendingTxn:
        return submit(self, compares, signed(success), failure)

    EtcdClient.txn = signed_txn  # type: ignore[method-assign]
    EtcdClient.submit = signed_submit  # type: ignore[method-assign]


def main(address: str) -> None:
    from kubepy.cli.program import run

    sign_writes(parse_address(address))
    sys.argv = ["kubepy", "--state", address, "controller", "--watch", "-q"]
    run()


class Managers:
    """Processes of managers on one cluster, all of which are ended with the block.

    :param log: the file of what they say.
    """

    def __init__(self, log: Path) -> None:
        self._log = open(log, "a", encoding="utf-8")  # noqa: SIM115
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, address: str) -> int:
        """Start a manager; return its process."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.etcd.managers", address],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._processes[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> None:
        process = self._processes.pop(pid)
        process.kill()
        process.wait()

    def ended(self) -> list[int]:
        """Return the processes that have ended by themselves."""
        return [pid for pid, process in self._processes.items() if process.poll() is not None]

    def __enter__(self) -> Managers:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._processes):
            self.kill(pid)
        self._log.close()


# --- the observer


class PodState(NamedTuple):
    node: str
    image: str
    is_available: bool


class Observer(threading.Thread):
    """Hears of every revision of a cluster from its first one on, and checks what must hold at
    each: never are more nodes without an available pod than the rolling update may take down, and
    only who holds the election writes.

    :param nodes: how many there are.
    :param most: how many of them may be without an available pod, once all had one.
    :ivar wrong: what did not hold, in words.
    :ivar worst: the most nodes without an available pod.
    :ivar takeovers: the processes that have held the election, in their order.
    :ivar writes: the number of revisions in which each has written objects.
    """

    def __init__(self, address: Address, nodes: int, most: int) -> None:
        super().__init__(name="observer", daemon=True)
        self._client = EtcdClient(address)
        self._prefix = address.prefix
        self._keys = EtcdKeys(address.prefix)
        self._lock_key = OwnKeys(address.prefix).lock(MANAGER_LOCK)
        self._writer_key = writer_key(address.prefix)
        self._nodes = nodes
        self._most = most
        self._pods: dict[str, PodState] = {}
        self._available: Counter[str] = Counter()  # pods of each node
        self._is_armed = False
        self._is_over = threading.Event()
        self._changed = threading.Condition()
        self.holder = 0
        self.revision = 0
        self.status: Object = {}
        self.wrong: list[str] = []
        self.worst = 0
        self.takeovers: list[int] = []
        self.writes: Counter[int] = Counter()

    def run(self) -> None:
        start = f"{self._prefix}/".encode()
        end = f"{self._prefix}0".encode()
        watch = self._client.watch(start, end, start_revision=1)
        while not self._is_over.is_set():
            try:
                batch = watch.next_batch(0.2)
            except UnreachableError:
                continue
            if batch is not None:
                self._take_batch(batch.events)
        watch.close()
        self._client.close()

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def wait_for(self, condition: Callable[[], bool], seconds: float, text: str) -> None:
        """Wait until a condition holds after some revision. Raises AssertionError."""
        with self._changed:
            reached = self._changed.wait_for(condition, seconds)
        assert reached, (
            f"{text}: not within {seconds:g} s; held by {self.holder}, "
            f"{self.images()}, {self.without_pod()} without pod, {self.status}, {self.wrong}"
        )

    def images(self) -> dict[str, int]:
        """Return on how many nodes there is an available pod of each image."""
        return dict(Counter(pod.image for pod in self._pods.values() if pod.is_available))

    def without_pod(self) -> int:
        """Return the number of nodes without an available pod."""
        return self._nodes - sum(1 for number in self._available.values() if number > 0)

    def is_rolled_out(self, image: str) -> bool:
        """Tell whether all pods are of an image, and the DaemonSet says so."""
        counts = ("updatedNumberScheduled", "numberAvailable", "desiredNumberScheduled")
        return (
            self.images() == {image: self._nodes}
            and len(self._pods) == self._nodes
            and all(self.status.get(name) == self._nodes for name in counts)
        )

    def _take_batch(self, events: Sequence[KeyEvent]) -> None:
        with self._changed:
            first = 0
            while first < len(events):
                revision = events[first].kv.mod_revision
                last = first
                while last < len(events) and events[last].kv.mod_revision == revision:
                    last += 1
                self._take_revision(revision, events[first:last])
                first = last
            self._changed.notify_all()

    def _take_revision(self, revision: int, events: Sequence[KeyEvent]) -> None:
        if revision <= self.revision:
            self.wrong.append(f"revision {revision} comes after {self.revision}")
        self.revision = revision
        for event in events:
            if event.kv.key == self._lock_key:
                self._take_election(revision, event)
        for event in events:
            if event.kv.key == self._writer_key:
                self._take_writer(revision, int(event.kv.value))
            elif (key := self._keys.parse(event.kv.key)) is not None:
                if key.resource == "pods":
                    self._take_pod(key.name, event)
                elif key.resource == "daemonsets.apps" and not event.is_delete:
                    self.status = json.loads(event.kv.value).get("status") or {}
        missing = self.without_pod()
        self._is_armed = self._is_armed or missing == 0
        if self._is_armed:
            self.worst = max(self.worst, missing)
            if missing > self._most:
                self.wrong.append(f"{missing} nodes have no available pod at {revision}")

    def _take_election(self, revision: int, event: KeyEvent) -> None:
        if event.is_delete:
            self.holder = 0
            return
        if self.holder:
            self.wrong.append(f"the election changes hands at {revision} without being given up")
        match = re.match(rb"process (\d+) ", event.kv.value)
        assert match is not None
        self.holder = int(match[1])
        self.takeovers.append(self.holder)

    def _take_writer(self, revision: int, writer: int) -> None:
        self.writes[writer] += 1
        if writer != self.holder:
            self.wrong.append(f"{writer} writes at {revision}, when {self.holder} is elected")

    def _take_pod(self, name: str, event: KeyEvent) -> None:
        before = self._pods.pop(name, None)
        if before is not None and before.is_available:
            self._available[before.node] -= 1
        if event.is_delete:
            return
        pod = json.loads(event.kv.value)
        conditions = (pod.get("status") or {}).get("conditions") or ()
        is_ready = ("Ready", "True") in {(each["type"], each["status"]) for each in conditions}
        is_leaving = "deletionTimestamp" in pod["metadata"]
        spec = pod["spec"]
        node = spec.get("nodeName", "")
        state = PodState(node, spec["containers"][0]["image"], is_ready and not is_leaving)
        self._pods[name] = state
        if state.is_available:
            self._available[node] += 1


# --- cutting off


class Proxy(threading.Thread):
    """Passes bytes between clients and a server, until it is told to hold them back: then it takes
    them, and passes them on later, as a network does that was jammed.

    :ivar port: where clients connect.
    """

    def __init__(self, port: int) -> None:
        super().__init__(name="proxy", daemon=True)
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._others: dict[socket.socket, socket.socket] = {}
        self._held: list[tuple[socket.socket, bytes]] = []
        self._is_holding = threading.Event()
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.is_set():
            if not self._is_holding.is_set():
                self._release()
            for key, _ in self._selector.select(0.02):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._pass(key.fileobj)
        for end in [*self._others, self._listener]:
            end.close()
        self._selector.close()

    def hold(self) -> None:
        self._is_holding.set()

    def release(self) -> None:
        self._is_holding.clear()

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._target))
        self._others[client], self._others[server] = server, client
        for end in (client, server):
            self._selector.register(end, selectors.EVENT_READ)

    def _pass(self, end: socket.socket) -> None:
        if end not in self._others:
            return
        try:
            data = end.recv(1 << 16)
        except OSError:
            data = b""
        self._held.append((end, data))
        if not data:
            self._selector.unregister(end)
        if not self._is_holding.is_set():
            self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for end, data in held:
            other = self._others.get(end)
            if other is None:
                continue
            if data:
                with suppress(OSError):  # the other end is gone: it says so itself
                    other.sendall(data)
            else:
                self._close(end, other)

    def _close(self, *ends: socket.socket) -> None:
        for end in ends:
            self._others.pop(end, None)
            with suppress(KeyError):
                self._selector.unregister(end)
            end.close()


@contextmanager
def observed(address: str, nodes: int, most: int) -> Iterator[Observer]:
    """Let an observer look on during a block."""
    observer = Observer(parse_address(address, {}), nodes, most)
    observer.start()
    try:
        yield observer
    finally:
        observer.stop()


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds. Raises AssertionError."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s"
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
