"""The processes that run command lines, as the server sees them: it starts them, waits for their
answers for so long and no longer, and keeps some of their forks."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import kubepy
from kubepy import system
from kubepy.cli.errors import CliError
from kubepy.cli.mcp.messages import (
    HEAD,
    Call,
    CommandOutput,
    Message,
    ServedCluster,
    decode,
    encode,
    length_of,
)
from kubepy.cli.mcp.permitted import RefusedError

MAX_FORKS = 8  # that are kept at a time
MAX_WORKERS = 4  # that work at a time
END_SECONDS = 2.0  # how long a process may take to end by itself
PROGRAM = "kubepy.cli.program"
# Variables that a worker needs: for its place in time, for messages, for the user's keys and etcd.
VARIABLES = ("HOME", "LANG", "TZ", "XDG_STATE_HOME")
PREFIXES = ("KUBEPY_ETCD_", "KUBEPY_CONTAINERS", "KUBEPY_NOTES", "KUBEPY_TRUST")


class WorkerProcess:
    """One process, with a folder of its own for the files of a call."""

    def __init__(self, process: asyncio.subprocess.Process, folder: str) -> None:
        """Private: use :meth:`start`."""
        self._process = process
        self._folder = folder
        self.lock = asyncio.Lock()  # who has it may call

    @classmethod
    async def start(cls, served: ServedCluster) -> WorkerProcess:
        """Start a process that opens or forks the cluster. Raises CliError where it cannot."""
        folder = tempfile.mkdtemp(prefix="kubepy-mcp-")
        for name in ("files", "tmp"):
            os.mkdir(os.path.join(folder, name))
        # -P: nothing is imported from the working directory, in which files of callers lie.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            PROGRAM,
            "__mcp",
            folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(folder),
            cwd=folder,
            start_new_session=True,
        )
        worker = cls(process, folder)
        try:
            answer = await worker.ask(served._asdict())
        except BaseException:
            worker.kill()
            raise
        if "error" in answer:
            worker.kill()
            raise CliError(answer["error"].removeprefix("error: "))
        return worker

    async def call(self, call: Call, files: Mapping[str, str]) -> list[CommandOutput]:
        """Run command lines with these files, by their names. Raises RefusedError, CliError."""
        self._write(files)
        answer = await self.ask(call._asdict())
        if "refused" in answer:
            raise RefusedError(answer["refused"])
        return [CommandOutput(**result) for result in answer["results"]]

    async def ask(self, message: Message) -> Message:
        """Send a message, and return the answer. Raises CliError."""
        reader, writer = self._process.stdout, self._process.stdin
        assert reader is not None
        assert writer is not None
        try:
            writer.write(encode(message))
            await writer.drain()
            head = await reader.readexactly(HEAD)
            return decode(await reader.readexactly(length_of(head)))
        except (OSError, ValueError, asyncio.IncompleteReadError):
            raise CliError(await self._end()) from None

    async def _end(self) -> str:
        """Return the reason why the process has ended."""
        try:
            status = await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            return "the process that ran the command does not answer"
        if system.is_end_by_cpu_limit(status):
            return "the command needed more time of the CPU than this server gives it"
        return f"the process that ran the command has ended (status {status})"

    def _write(self, files: Mapping[str, str]) -> None:
        """Write the files of a call, in place of those of the last one."""
        root = os.path.join(self._folder, "files")
        for entry in os.scandir(root):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        for name, text in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(text)

    async def stop(self) -> None:
        """Let the process end by itself. One that does not is left to :meth:`kill`."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), END_SECONDS)

    def kill(self) -> None:
        """End the process now, and remove its folder."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class Workers:
    """The processes of a server.

    :param served: the cluster.
    :param seconds: how long a call may take.
    """

    def __init__(self, served: ServedCluster, seconds: float) -> None:
        self._served = served
        self.seconds = seconds
        self._forks: dict[str, WorkerProcess] = {}
        self._live: set[WorkerProcess] = set()
        self._count = 0
        self._coming = 0  # forks that will be kept once their first call has ended
        self._turns = asyncio.Semaphore(MAX_WORKERS)

    async def run(
        self, call: Call, files: Mapping[str, str], fork: str = ""
    ) -> list[CommandOutput]:
        """Run command lines on a fork that is kept, or on a new one that is dropped. Raises
        RefusedError, CliError."""
        if fork:
            # Who waits for a fork takes no turn meanwhile, and has all of its time afterwards.
            async with self._kept(fork).lock, self._turn():
                return await self._run_on_kept(fork, call, files)
        async with self._turn():
            worker = await self._begin(writes=False)
            try:
                return await worker.call(call, files)
            finally:
                self._kill(worker)

    async def run_and_keep(
        self, call: Call, files: Mapping[str, str]
    ) -> tuple[str, list[CommandOutput]]:
        """Run command lines on a new fork, and keep it; returns its id with the results. Raises
        RefusedError, CliError."""
        if len(self._forks) + self._coming >= MAX_FORKS:
            kept = ", ".join(self._forks) or "them"
            raise RefusedError(
                f"{MAX_FORKS} forks are kept, which is as many as there may be: drop one of {kept}"
            )
        self._count += 1
        fork = f"fork-{self._count}"
        self._coming += 1
        try:
            async with self._turn():
                worker = await self._begin(writes=False)
                try:
                    results = await worker.call(call, files)
                except BaseException:
                    self._kill(worker)
                    raise
        finally:
            self._coming -= 1
        self._forks[fork] = worker
        return fork, results

    async def write(self, call: Call, files: Mapping[str, str]) -> list[CommandOutput]:
        """Run command lines on the cluster itself. Raises RefusedError, CliError."""
        async with self._turn():
            worker = await self._begin(writes=True)
            try:
                results = await worker.call(call, files)
                await worker.stop()
                return results
            finally:
                self._kill(worker)

    def drop(self, fork: str) -> None:
        """Drop a fork that is kept. Raises RefusedError."""
        self._kill(self._kept(fork))
        self._forks.pop(fork, None)

    def close(self) -> None:
        """End all processes."""
        for worker in list(self._live):
            self._kill(worker)
        self._forks.clear()

    async def _begin(self, *, writes: bool) -> WorkerProcess:
        """Start a process on the cluster, or on a new fork of it. Raises CliError."""
        worker = await WorkerProcess.start(self._served._replace(writes=writes))
        self._live.add(worker)
        return worker

    def _kill(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._live.discard(worker)

    def _kept(self, fork: str) -> WorkerProcess:
        worker = self._forks.get(fork)
        if worker is None:
            kept = ", ".join(self._forks) or "none"
            raise RefusedError(f"there is no fork {fork!r}; those that are kept: {kept}")
        return worker

    async def _run_on_kept(
        self, fork: str, call: Call, files: Mapping[str, str]
    ) -> list[CommandOutput]:
        """Run command lines on a fork; one whose process does not answer is gone with it. Raises
        RefusedError where the fork has been dropped meanwhile."""
        worker = self._kept(fork)
        try:
            return await worker.call(call, files)
        except RefusedError:
            raise
        except BaseException:
            self._kill(worker)
            self._forks.pop(fork, None)
            raise

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and bound its time. Raises CliError when that is over."""
        async with self._turns:
            try:
                async with asyncio.timeout(self.seconds):
                    yield
            except TimeoutError:
                raise CliError(
                    f"this took longer than {self.seconds:g} seconds and was ended; a fork that "
                    "was kept is gone with it"
                ) from None


def environment(folder: str) -> dict[str, str]:
    """Return the environment of a worker: no programs, no preferences, no keys but those of etcd.

    :param folder: its own.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(kubepy.__file__)))
    kept: dict[str, Any] = {
        name: value
        for name, value in os.environ.items()
        if name in VARIABLES or name.startswith(PREFIXES)
    }
    return {
        "LANG": "C.UTF-8",
        **kept,
        "KUBECTL_KUBERC": "false",
        "PYTHONPATH": package,
        "TMPDIR": os.path.join(folder, "tmp"),
    }
