"""An etcd of the tests' own: on free ports, with its data in a temporary folder, without fsync.

``ETCD=path`` takes another program than the one on the PATH. ``LONG_ETCD_TESTS=1``, as `make
test-etcd` sets it, runs the tests that take long, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from types import TracebackType

import pytest

from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient
from kubepy.storage.etcd.errors import EtcdError, UnreachableError
from kubepy.storage.etcd.maintenance import ServerStatus
from kubepy.storage.etcd.wire import number_field
from tests.processes import ServerProgram

START_TIMEOUT = 30.0
_MOVE_LEADER = "/etcdserverpb.Maintenance/MoveLeader"

_prefixes = count(1)


@cache
def program() -> str | None:
    """Return the path of etcd; None where there is none."""
    return shutil.which(os.environ.get("ETCD", "etcd"))


def require_etcd() -> str:
    """Return the path of etcd; skip the test where there is none."""
    path = program()
    if path is None:
        pytest.skip("there is no etcd here: `make test-etcd` installs Debian's etcd-server")
    return path


def require_long_tests() -> str:
    """Return the path of etcd; skip the test where the long ones are not wanted."""
    path = require_etcd()
    if not os.environ.get("LONG_ETCD_TESTS"):
        pytest.skip("takes long: `make test-etcd` runs it")
    return path


@cache
def version(path: str) -> str:
    """Return what an etcd says its version is: ``3.4.23``."""
    run = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()[0].rpartition(" ")[2]


def require_flag(flag: str) -> None:
    """Skip the test where an etcd lacks a flag: one that others have built may."""
    path = require_etcd()
    if flag not in _help(path):
        pytest.skip(f"this etcd has no {flag}")


@cache
def _help(path: str) -> str:
    run = subprocess.run([path, "--help"], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


@cache
def _flags(path: str, is_synced: bool) -> Sequence[str]:
    """The flags that only some versions have."""
    text = _help(path)
    flags = ["--unsafe-no-fsync"] if "--unsafe-no-fsync" in text and not is_synced else []
    return (*flags, "--logger=zap") if "--logger" in text else flags


def free_ports(number: int) -> list[int]:
    """Return ports that are free at this moment."""
    sockets = [socket.socket() for _ in range(number)]
    for probe in sockets:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in sockets]
    for probe in sockets:
        probe.close()
    return ports


class EtcdServer(ServerProgram):
    """One member, which can be killed, stopped for a while, and started again on its data.

    :param is_synced: write with fsync, as an operator's does.
    :ivar port: for clients.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "member",
        ports: tuple[int, int] | None = None,
        cluster: str = "",
        flags: Sequence[str] = (),
        scheme: str = "http",
        is_synced: bool = False,
    ) -> None:
        super().__init__(folder)
        self.name = name
        self.port, self.peer_port = ports or free_ports(2)
        self._cluster = cluster or f"{name}=http://127.0.0.1:{self.peer_port}"
        self._extra_flags = flags
        self._scheme = scheme
        self._is_synced = is_synced

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def address(self, prefix: str = "") -> str:
        """Return what ``--state`` takes."""
        return f"etcd://{self.endpoint}{prefix}"

    def client(self, timeout: float = 5.0) -> EtcdClient:
        return EtcdClient(parse_address(self.address(), {}), timeout)

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it answers."""
        path = require_etcd()
        client_url = f"{self._scheme}://{self.endpoint}"
        peer_url = f"http://127.0.0.1:{self.peer_port}"
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            path,
            f"--name={self.name}",
            f"--data-dir={self.folder / 'data'}",
            f"--listen-client-urls={client_url}",
            f"--advertise-client-urls={client_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster={self._cluster}",
            *_flags(path, self._is_synced),
            *self._extra_flags,
        ]
        self._run(command, {**os.environ, "ETCD_UNSUPPORTED_ARCH": os.uname().machine})
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until it answers."""
        end = time.monotonic() + START_TIMEOUT
        while True:
            with socket.socket() as probe:
                is_up = probe.connect_ex(("127.0.0.1", self.port)) == 0
            if is_up and (self._scheme == "https" or self._answers()):
                return
            self._check_start(is_late=time.monotonic() > end)
            time.sleep(0.02)

    def _answers(self) -> bool:
        client = self.client(1.0)
        try:
            client.get(b"x")
        except UnreachableError:
            return False
        except EtcdError:  # it wants a user
            return True
        finally:
            client.close()
        return True

    def restart(self) -> None:
        """Kill it and start it again, at the same ports."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Let it answer nothing, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        while any(_state(task) != "T" for task in tasks.iterdir()):
            time.sleep(0.001)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def _state(task: Path) -> str:
    """Return the letter for what a thread does; "T": it is stopped."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


class EtcdCluster:
    """Several members.

    :ivar members: in the order of the endpoints.
    """

    def __init__(self, folder: Path, size: int = 3) -> None:
        require_flag("-initial-cluster-state")
        ports = free_ports(2 * size)
        names = [f"m{number}" for number in range(size)]
        pairs = [(ports[2 * number], ports[2 * number + 1]) for number in range(size)]
        cluster = ",".join(
            f"{name}=http://127.0.0.1:{peer}" for name, (_, peer) in zip(names, pairs, strict=True)
        )
        self.members = [
            EtcdServer(folder / name, name=name, ports=pair, cluster=cluster)
            for name, pair in zip(names, pairs, strict=True)
        ]

    def address(self, prefix: str = "") -> str:
        """Return what ``--state`` takes, with all endpoints."""
        return f"etcd://{','.join(member.endpoint for member in self.members)}{prefix}"

    def client(self, timeout: float = 5.0) -> EtcdClient:
        return EtcdClient(parse_address(self.address(), {}), timeout)

    def leader(self) -> EtcdServer:
        """Wait until a member leads, and return it."""
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            for member in self.members:
                status = _status(member)
                if status is not None and status.leader == status.member:
                    return member
            time.sleep(0.05)
        raise AssertionError("no member leads")

    def move_leader(self) -> None:
        """Let the leader hand over to another member."""
        leader = self.leader()
        others = (_status(member) for member in self.members if member is not leader)
        target = next(status.member for status in others if status is not None)
        client = leader.client()
        try:
            request = number_field(1, target)
            client._session.ask(_MOVE_LEADER, request, bytes, is_read=False)
        finally:
            client.close()

    def restart(self) -> None:
        """Kill all members, and start them again."""
        for member in self.members:
            member.kill()
        self.start()

    def start(self) -> None:
        for member in self.members:
            member.start(wait=False)
        for member in self.members:
            member.wait()

    def __enter__(self) -> EtcdCluster:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for member in self.members:
            member.kill()


def _status(member: EtcdServer) -> ServerStatus | None:
    """Return what a member says of itself; None where it does not answer."""
    client = member.client(1.0)
    try:
        return client.status()
    except EtcdError:
        return None
    finally:
        client.close()


def fresh_prefix() -> str:
    """Return a prefix that no other test has."""
    return f"/t{os.getpid()}-{next(_prefixes)}"


@pytest.fixture(scope="session")
def etcd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """An etcd for tests that leave it running, each below a prefix of its own."""
    require_etcd()
    with EtcdServer(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def etcd_address(etcd_server: EtcdServer) -> str:
    """A state in etcd with nothing in it: what ``--state`` takes."""
    return etcd_server.address(fresh_prefix())


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """An etcd of this test alone, to be killed and stopped."""
    require_etcd()
    with EtcdServer(tmp_path / "etcd") as server:
        yield server
