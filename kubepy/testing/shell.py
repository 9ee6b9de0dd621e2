"""The commands of a transcript: run in this process on one cluster, or by bash, which calls back for them.

A line of plain words that begins with kubectl, kubepy, settle or sleep runs at once. Any other line goes to bash, with
a folder at the head of its PATH in which these names are programs. Each sends its words, its environment and its
standard input through a socket to this process, which runs the command and answers with what it prints.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from kubepy.cli.clock import parse_span
from kubepy.cluster import Cluster, CommandResult

COMMANDS = ("kubectl", "kubepy", "settle", "sleep")
STEP_SECONDS = 120.0  # of real time, after which a line is stopped
POLL_SECONDS = 0.02
MAX_SOCKET_PATH = 100
# What bash leaves as it is: letters and signs, and words in quotes in which nothing is expanded.
_PLAIN = re.compile(r"""(?:[\w\s@%+:,./^=-]|'[^']*'|"[^"$`\\!]*")*""", re.ASCII)
_CALL_BACK = f"""#!{sys.executable} -IS
import json, os, socket, sys
reads = any(word == "-" or word.endswith("=-") or word == "-f-" for word in sys.argv[1:])
own = "/proc/%d/fd/" % os.getpid()
words = [word.replace("/dev/stdin", own + "0").replace("/dev/fd/", own) for word in sys.argv[1:]]
call = {{"words": [os.path.basename(sys.argv[0]), *words], "folder": os.getcwd(), "environment": dict(os.environ),
        "stdin": sys.stdin.buffer.read().decode("utf-8", "replace") if reads else ""}}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "socket"))
    connection.sendall(json.dumps(call).encode())
    connection.shutdown(socket.SHUT_WR)
    answer = json.loads(b"".join(iter(lambda: connection.recv(65536), b"")) or b"{{}}")
for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
    try:
        stream.buffer.write(answer.get(name, "").encode("utf-8", "surrogateescape"))
        stream.buffer.flush()
    except BrokenPipeError:
        os._exit(141)
sys.exit(answer.get("status", 1))
"""


class StepTimeoutError(BaseException):
    """A line takes longer than STEP_SECONDS. No command takes it for an error of its own."""


class Shell:
    """Runs command lines on a cluster, in a folder that is the process's working directory meanwhile."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._environment = {**os.environ, "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}
        for name in [name for name in self._environment if name.startswith(("KUBE", "KUBECTL_"))]:
            del self._environment[name]
        if cluster.folder:
            self._environment["KUBEPY_STATE"] = cluster.folder

    def run(self, line: str) -> CommandResult:
        """Run a line of a transcript. Raises StepTimeoutError."""
        words = plain_words(line)
        with time_limit(STEP_SECONDS):
            if words and words[0] in COMMANDS:
                with surroundings(str(self._folder), self._environment):
                    return self._run_command(words)
            return self._run_in_bash(line)

    def _run_command(self, words: list[str], stdin: str = "") -> CommandResult:
        """Run one of COMMANDS."""
        name, *args = words
        if name in ("kubectl", "kubepy"):
            return self._cluster.run(words, stdin=stdin)
        if len(args) > 1 or (name == "sleep" and not args):
            return CommandResult("", f"usage: {name} {'[LIMIT]' if name == 'settle' else 'SECONDS'}\n", 2)
        duration = f"{args[0]}s" if args and re.fullmatch(r"\d*\.?\d+", args[0]) else "".join(args)
        try:
            if name == "settle":
                self._cluster.settle(*([duration] if args else []))
            elif self._cluster.clock is not None:
                self._cluster.advance(duration)
            else:
                time.sleep(parse_span(duration))
        except ValueError as error:
            return CommandResult("", f"{name}: {error}\n", 2)
        return CommandResult("", "", 0)

    def _run_in_bash(self, line: str) -> CommandResult:
        with _call_back_folder() as folder, socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(folder, "socket"))
            server.listen(16)
            server.settimeout(POLL_SECONDS)
            environment = {**self._environment, "PATH": f"{folder}:{self._environment.get('PATH', os.defpath)}"}
            with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
                process = subprocess.Popen(["bash", "-c", line], cwd=self._folder, env=environment, stdout=stdout,
                                           stderr=stderr, stdin=subprocess.DEVNULL, start_new_session=True)
                try:
                    status = self._answer_until_end(process, server)
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                texts = []
                for file in (stdout, stderr):
                    file.seek(0)
                    texts.append(file.read().decode(errors="replace"))
        return CommandResult(texts[0], texts[1], status)

    def _answer_until_end(self, process: subprocess.Popen[bytes], server: socket.socket) -> int:
        """Run the commands that a process of bash calls back for, until it ends; return its exit status."""
        while (status := process.poll()) is None:
            with suppress(TimeoutError):
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(None)
                    self._answer(connection)
        return status if status >= 0 else 128 - status

    def _answer(self, connection: socket.socket) -> None:
        call: dict[str, Any] = json.loads(b"".join(iter(lambda: connection.recv(65536), b"")))
        with surroundings(call["folder"], call["environment"]):
            result = self._run_command(call["words"], call["stdin"])
        answer = {"stdout": result.stdout, "stderr": result.stderr, "status": result.status}
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(json.dumps(answer).encode())


def plain_words(line: str) -> list[str]:
    """Return the words of a line in which a shell would expand nothing; [] for any other line."""
    if not _PLAIN.fullmatch(line) or "\n" in line:
        return []
    words = shlex.split(line)
    return [] if words and "=" in words[0] else words


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise StepTimeoutError in a block that takes longer; only the main thread can be stopped."""
    def stop(number: int, frame: FrameType | None) -> None:
        raise StepTimeoutError

    if current_thread() is not main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # of a limit that pytest has for the test
    start = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - start), 0.001) if left else 0.0)
        signal.signal(signal.SIGALRM, handler)


@contextmanager
def surroundings(folder: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Run a block in a working directory and an environment, and bring back those that were there before."""
    own_folder, own_environment = os.getcwd(), dict(os.environ)
    try:
        os.chdir(folder)
        _replace_environment(environment)
        yield
    finally:
        _replace_environment(own_environment)
        os.chdir(own_folder)


def _replace_environment(environment: Mapping[str, str]) -> None:
    if os.environ != environment:
        zone = os.environ.get("TZ")
        os.environ.clear()
        os.environ.update(environment)
        if zone != os.environ.get("TZ"):
            time.tzset()


@contextmanager
def _call_back_folder() -> Iterator[str]:
    """Make a folder with COMMANDS as programs that call back through the socket in it."""
    folder = tempfile.mkdtemp(prefix="kubepy-")
    if len(folder) > MAX_SOCKET_PATH - len("/socket"):
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="kubepy-", dir="/tmp")
    try:
        program = Path(folder, COMMANDS[0])
        program.write_text(_CALL_BACK, encoding="utf-8")
        program.chmod(0o700)
        for name in COMMANDS[1:]:
            os.symlink(COMMANDS[0], os.path.join(folder, name))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
