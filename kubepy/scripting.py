"""The commands of a transcript, and scripts: run in this process on one cluster, or by bash, which
calls back for them.

A line of plain words that begins with kubectl, kubepy, settle or sleep runs at once. Any other line
goes to bash, with a folder at the head of its PATH in which these names are programs. Each sends
its words, its environment and its standard input through a socket to this process, which runs the
command and answers with what it prints.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Protocol

from kubepy import KUBERNETES_VERSION, system
from kubepy.api.values.goformat import parse_span
from kubepy.lazy import lazy_imports
from kubepy.results import AnsweredRequest, CommandResult, ScriptResult

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.serving import ClusterServer

with lazy_imports():
    from kubepy import klog
    from kubepy.apiserver import roundtrips

COMMANDS = ("kubectl", "kubepy", "settle", "sleep")
STEP_SECONDS = 120.0  # of real time, after which a line is stopped
POLL_SECONDS = 0.02
MAX_SOCKET_PATH = 100
TRIPS_LEVEL = 6  # the verbosity at which a client logs each request in one line
KUBECTL_AGENT = f"kubectl/{KUBERNETES_VERSION}"
OF_TRANSCRIPTS = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}
# What bash leaves as it is: letters and signs, and words in quotes in which nothing is expanded.
_PLAIN = re.compile(r"""(?:[\w\s@%+:,./^=-]|'[^']*'|"[^"$`\\!]*")*""", re.ASCII)
_CALL_BACK = f"""#!{sys.executable} -IS
import json, os, re, socket, sys
home = os.path.dirname(os.path.realpath(sys.argv[0]))
def kept(match):  # what comes through a pipe is read here, as a command of kubepy may have to write it first
    path = os.path.join(home, "input-%d-%s" % (os.getpid(), match[1] or 0))
    try:
        with open(match[0], "rb") as source, open(path, "wb") as target:
            target.write(source.read())
    except OSError:
        return match[0]
    return path
reads = any(word == "-" or word.endswith("=-") or word == "-f-" for word in sys.argv[1:])
words = [re.sub("/dev/(?:stdin|fd/([0-9]+))", kept, word) for word in sys.argv[1:]]
call = {{"words": [os.path.basename(sys.argv[0]), *words], "folder": os.getcwd(), "environment": dict(os.environ),
        "stdin": sys.stdin.buffer.read().decode("utf-8", "replace") if reads else ""}}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.path.join(home, "socket"))
    connection.sendall(json.dumps(call).encode())
    connection.shutdown(socket.SHUT_WR)
    status = 1
    for line in connection.makefile("rb"):
        answer = json.loads(line)
        status = answer.get("status", 1)
        for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
            try:
                stream.buffer.write(answer[name].encode("utf-8", "surrogateescape"))
                stream.buffer.flush()
            except BrokenPipeError:
                os._exit(141)
sys.exit(status)
"""  # noqa: E501


class ScriptCluster(Protocol):
    """A cluster that scripts work on: ``kubepy.Cluster``."""

    _before_pause: Callable[[], object]
    _observed: Callable[[LocalCluster], LocalCluster]

    @property
    def folder(self) -> str: ...
    @property
    def clock(self) -> object: ...
    def settle(self, limit: str = ...) -> bool: ...
    def advance(self, by: str) -> None: ...
    def run(self, command: Sequence[str], *, stdin: str = ...) -> CommandResult: ...
    def _run(
        self, words: list[str], stdin: str, stdout: io.StringIO, stderr: io.StringIO
    ) -> CommandResult: ...


class StepTimeoutError(BaseException):
    """A line takes longer than STEP_SECONDS. No command takes it for an error of its own."""


class CallBack:
    """A command that a program of COMMANDS has called back for, and what it has printed so far."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        self.connection = connection
        self.stdout = io.StringIO()
        self.stderr = io.StringIO()
        self._status: int | None = None

    def receive(self) -> dict[str, Any]:
        """Return what the program asks for. Raises BrokenPipeError if it has ended before."""
        parts = []
        while part := self.connection.recv(65536):
            parts.append(part)
        request: dict[str, Any] = json.loads(b"".join(parts) or b"{}")
        if not request:
            raise BrokenPipeError
        return request

    def end(self, result: CommandResult) -> None:
        """Take the exit status, and what a command printed that has no streams."""
        self._status = result.status
        has_printed = self.stdout.getvalue() or self.stderr.getvalue()
        if not has_printed:
            self.stderr.write(result.stderr)

    def send(self) -> None:
        """Send what was printed since the last time, and the exit status if there is one. Raises
        OSError."""
        texts = {"stdout": self.stdout.getvalue(), "stderr": self.stderr.getvalue()}
        for stream in (self.stdout, self.stderr):
            stream.seek(0)
            stream.truncate()
        answer: dict[str, Any] = {**texts}
        if self._status is not None:
            answer["status"] = self._status
        elif not any(texts.values()):
            return
        line = json.dumps(answer) + "\n"
        self.connection.sendall(line.encode())

    def is_over(self) -> bool:
        """Return whether the program has ended."""
        poll = select.poll()
        poll.register(self.connection, 0)
        return bool(poll.poll(0))


class Shell:
    """Runs command lines on a cluster, in a folder that is the process's working directory
    meanwhile.

    :param environment: besides what names the cluster; None: that of transcripts.
    """

    def __init__(
        self, cluster: ScriptCluster, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self.deadline = math.inf  # by time.monotonic, at which bash is stopped
        self._answers: list[
            CallBack
        ] = []  # commands that have ended, while another waits: it looks before they return
        if environment is None:
            environment = {"HOME": str(folder), **OF_TRANSCRIPTS}
        self.environment = {**environment_for(cluster), **environment}

    def run(self, line: str) -> CommandResult:
        """Run a line of a transcript. Raises StepTimeoutError."""
        words = plain_words(line)
        with time_limit(STEP_SECONDS):
            if words and words[0] in COMMANDS:
                with surroundings(str(self._folder), self.environment):
                    return self._run_command(words)
            return self.run_in_bash(line)

    def _run_command(
        self, words: list[str], stdin: str = "", call: CallBack | None = None
    ) -> CommandResult:
        """Run one of COMMANDS."""
        name, *args = words
        if name in ("kubectl", "kubepy"):
            if call is None:
                return self._cluster.run(words, stdin=stdin)
            return self._cluster._run(words, stdin, call.stdout, call.stderr)

        if len(args) > 1 or (name == "sleep" and not args):
            words_of_usage = "[LIMIT]" if name == "settle" else "SECONDS"
            return CommandResult("", f"usage: {name} {words_of_usage}\n", 2)

        duration = args[0] if args else ""
        if re.fullmatch(r"\d*\.?\d+", duration):
            duration += "s"
        try:
            if name == "settle" and args:
                self._cluster.settle(duration)
            elif name == "settle":
                self._cluster.settle()
            elif self._cluster.clock is not None:
                self._cluster.advance(duration)
            else:
                time.sleep(parse_span(duration))
        except ValueError as error:
            return CommandResult("", f"{name}: {error}\n", 2)

        return CommandResult("", "", 0)

    def run_in_bash(self, line: str) -> CommandResult:
        with _call_back_folder() as folder, system.unix_socket() as server:
            server.bind(os.path.join(folder, "socket"))
            server.listen(16)
            server.settimeout(POLL_SECONDS)
            path = self.environment.get("PATH", os.defpath)
            environment = {**self.environment, "PATH": f"{folder}:{path}"}
            with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
                process = subprocess.Popen(
                    ["bash", "-c", line],
                    cwd=self._folder,
                    env=environment,
                    stdout=stdout,
                    stderr=stderr,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
                try:
                    status = self._answer_until_end(process, server)
                finally:
                    with suppress(ProcessLookupError):
                        system.end_group(process.pid)
                    process.wait()
                texts = []
                for file in (stdout, stderr):
                    file.seek(0)
                    texts.append(file.read().decode(errors="replace"))

        return CommandResult(texts[0], texts[1], status)

    def _answer_until_end(self, process: subprocess.Popen[bytes], server: socket.socket) -> int:
        """Run the commands that a process of bash calls back for, until it ends; return its exit
        status."""
        while (status := process.poll()) is None:
            if time.monotonic() > self.deadline:
                raise TimeoutError
            self._answer(process, server)
            self._return_answers()
        return status if status >= 0 else 128 - status

    def _answer(self, process: subprocess.Popen[bytes], server: socket.socket) -> None:
        """Run the next command. While it waits, further ones are run; it ends when its caller, or
        bash, has ended."""
        try:
            call = CallBack(server.accept()[0])
        except TimeoutError:
            return

        def look() -> None:
            call.send()
            self._return_answers()
            if process.poll() is not None or call.is_over():
                raise BrokenPipeError
            self._answer(process, server)

        before, self._cluster._before_pause = self._cluster._before_pause, look
        try:
            request = call.receive()
            with surroundings(request["folder"], request["environment"]):
                result = self._run_command(request["words"], request["stdin"], call)
            call.end(result)
        except OSError:  # nobody waits for the answer any more
            call.connection.close()
        else:
            self._answers.append(call)
        finally:
            self._cluster._before_pause = before

    def _return_answers(self) -> None:
        while self._answers:
            call = self._answers.pop(0)
            with suppress(OSError), call.connection:
                call.send()


def run_script(
    cluster: ScriptCluster, server: ClusterServer, script: str, folder: str, seconds: float
) -> ScriptResult:
    """Run a script with bash in a folder. Raises TimeoutError."""
    shell = Shell(cluster, Path(folder), {"KUBECONFIG": server.kubeconfig})
    shell.deadline = time.monotonic() + seconds
    first = len(server.requests)
    before = cluster._observed
    cluster._observed = lambda local: recorded(local, server.requests.append)
    try:
        result = shell.run_in_bash(script)
    except TimeoutError:
        raise TimeoutError(f"{script}: no end within {seconds:g} s") from None
    finally:
        cluster._observed = before
    return ScriptResult(result.status, result.stdout, result.stderr, server.requests[first:])


def recorded(local: LocalCluster, record: Callable[[AnsweredRequest], None]) -> LocalCluster:
    """Return an open cluster whose client's requests are recorded, as a server would have had
    them."""

    class TripRecorder(klog.Logger):
        """A log of round trips that keeps them in place of lines."""

        def info(
            self, level: int, place: str, message: str, values: Mapping[str, klog.Value]
        ) -> None:
            path, _, query = str(values["url"]).partition("?")
            code = int(str(values["status"]).partition(" ")[0])
            method = str(values["verb"])
            record(AnsweredRequest(method, path, query, KUBECTL_AGENT, code))

    shared = local.share()
    shared.client = roundtrips.LoggingClient(
        local.client, TripRecorder(TRIPS_LEVEL, lambda line: None, local.clock)
    )
    return shared


def environment_for(cluster: ScriptCluster) -> dict[str, str]:
    """Return this process's environment, with what names a cluster in it replaced."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    if cluster.folder:
        environment["KUBEPY_STATE"] = cluster.folder
    return environment


def plain_words(line: str) -> list[str]:
    """Return the words of a line in which a shell would expand nothing; [] for any other line."""
    if not _PLAIN.fullmatch(line) or "\n" in line:
        return []
    words = shlex.split(line)
    if words and "=" in words[0]:
        return []
    return words


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise StepTimeoutError in a block that takes longer; only the main thread can be stopped."""

    def stop() -> None:
        raise StepTimeoutError

    if current_thread() is not main_thread():
        yield
        return
    with system.alarm(seconds, stop):
        yield


@contextmanager
def surroundings(folder: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Run a block in a working directory and an environment, and bring back those that were there
    before."""
    own_folder = os.getcwd()
    own_environment = dict(os.environ)
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
        if zone != os.environ.get("TZ") and hasattr(time, "tzset"):
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
