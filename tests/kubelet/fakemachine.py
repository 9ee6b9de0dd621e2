"""Containers for tests of what looks inside them: a few programs, kept in this process."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from kubepy.kubelet import inside
from kubepy.kubelet.inside import CannotConnect, CannotStart, PodReply, PodRequest


class FakeExit(NamedTuple):
    code: int


class FakeOutput(NamedTuple):
    stream: str
    data: bytes


class FakeProcess:
    """A program: ``echo``, ``fail``, ``cat``, ``sleep``, ``wait``, ``tar``, ``test``; others are
    unknown."""

    def __init__(self, argv: Sequence[str], stdin: bytes | None, now: datetime) -> None:
        self.argv = list(argv)
        self.input = stdin or b""
        self.has_all = stdin is not None
        self.output: list[FakeOutput] = []
        self.end: int | None = None
        self.ends_at: datetime | None = None
        if argv[0] == "sleep":
            self.ends_at = now + timedelta(seconds=float(argv[1]))


class FakeMachine:
    """The processes of a container."""

    def __init__(self) -> None:
        self.now = datetime.min.replace(tzinfo=UTC)
        self.files: dict[str, bytes] = {}
        self.folders = {"/tmp"}
        self.unknowns: list[str] = []
        self.signals: list[tuple[int, int]] = []
        self.processes: list[FakeProcess] = [FakeProcess(["wait"], None, self.now)]

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = b"",
        tty: bool = False,
        unknown_ends: float | None = None,
    ) -> int:
        if argv[0] == "missing":
            raise CannotStart(127, 'exec: "missing": executable file not found in $PATH')
        self.processes.append(FakeProcess(argv, stdin, self.now))
        self.run(self.now)
        return len(self.processes)

    def write_stdin(self, pid: int, data: bytes | None) -> None:
        process = self.processes[pid - 1]
        process.has_all = process.has_all or data is None
        process.input += data or b""
        self.run(self.now)

    def run(self, until: datetime) -> None:
        self.now = until
        for process in self.processes:
            if process.end is None:
                self._advance(process)

    def _advance(self, process: FakeProcess) -> None:
        name, *args = process.argv
        if name == "echo":
            self._print(process, " ".join(args).encode() + b"\n")
            process.end = 0
        elif name == "fail":
            self._print(process, b"failed\n", "stderr")
            process.end = int(args[0])
        elif name == "cat":
            self._print(process, process.input)
            process.input = b""
            if process.has_all:
                process.end = 0
        elif name == "sleep":
            if process.ends_at is not None and self.now >= process.ends_at:
                process.end = 0
        elif name == "tar":
            self._tar(process, args)
        elif name == "test":
            process.end = int(args[1] not in self.folders)
        elif name != "wait":
            self.unknowns.append(name)
            process.end = 0

    def _print(self, process: FakeProcess, data: bytes, stream: str = "stdout") -> None:
        if data:
            process.output.append(FakeOutput(stream, data))

    def _tar(self, process: FakeProcess, args: list[str]) -> None:
        """``tar cf - PATH``, ``tar -xmf - [-C DIR]``."""
        if args[0] == "cf":
            self._pack(process, args[2])
        elif process.has_all:
            place = args[args.index("-C") + 1] if "-C" in args else ""
            with tarfile.open(fileobj=io.BytesIO(process.input)) as archive:
                for member in archive.getmembers():
                    content = archive.extractfile(member)
                    if content is not None:
                        self.files[f"{place}/{member.name}"] = content.read()
            process.end = 0

    def _pack(self, process: FakeProcess, path: str) -> None:
        found = {
            name: data
            for name, data in self.files.items()
            if name == path or name.startswith(f"{path}/")
        }
        if not found:
            text = f"tar: {path.lstrip('/')}: Cannot stat: No such file or directory\n"
            self._print(process, text.encode(), "stderr")
            process.end = 2
            return
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, data in found.items():
                member = tarfile.TarInfo(name.lstrip("/"))
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        self._print(process, buffer.getvalue())
        process.end = 0

    def next_time(self) -> datetime | None:
        times = [process.ends_at for process in self.processes if process.end is None]
        return min((moment for moment in times if moment is not None), default=None)

    def exit_of(self, pid: int) -> FakeExit | None:
        end = self.processes[pid - 1].end
        return None if end is None else FakeExit(end)

    def signal(self, pid: int, number: int) -> None:
        self.signals.append((pid, number))
        self.processes[pid - 1].end = 128 + number

    def take_output(self, pid: int) -> list[FakeOutput]:
        process = self.processes[pid - 1]
        output, process.output = process.output, []
        return output

    def waits_for_input(self, pid: int) -> bool:
        process = self.processes[pid - 1]
        return process.argv[0] in ("cat", "tar") and process.end is None


class FakeBox:
    def __init__(self, machine: FakeMachine) -> None:
        self.machine = machine
        self.changes = 0

    def changed(self) -> None:
        self.changes += 1


class FakeContainers:
    """All containers of a test, by pod and name; they listen on port 80."""

    def __init__(self) -> None:
        self.machines: dict[tuple[str, str], FakeMachine] = {}
        self.requests: list[PodRequest] = []

    def machine(self, pod: str, container: str) -> FakeMachine:
        return self.machines.setdefault((pod, container), FakeMachine())

    @contextmanager
    def open_container(self, client: Any, pod: Any, name: str) -> Iterator[FakeBox]:
        yield FakeBox(self.machine(pod["metadata"]["name"], name))

    def connect_to_pod(self, client: Any, pod: Any, port: int) -> None:
        if port != 80:
            raise CannotConnect("connection refused")

    def http_to_pod(self, client: Any, pod: Any, port: int, request: PodRequest) -> PodReply:
        self.connect_to_pod(client, pod, port)
        self.requests.append(request)
        text = f"{request.method} {request.target} at {pod['metadata']['name']}\n"
        return PodReply(200, "OK", {"content-type": "text/plain"}, text.encode())


def install(monkeypatch: pytest.MonkeyPatch) -> FakeContainers:
    """Let the containers of all clusters of this process be fakes."""
    containers = FakeContainers()
    monkeypatch.setattr(inside, "open_container", containers.open_container)
    monkeypatch.setattr(inside, "runs_containers", lambda client: True)
    monkeypatch.setattr(inside, "connect_to_pod", containers.connect_to_pod)
    monkeypatch.setattr(inside, "http_to_pod", containers.http_to_pod)
    return containers
