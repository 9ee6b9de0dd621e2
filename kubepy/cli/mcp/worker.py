"""The process that runs command lines: ``kubepy __mcp FOLDER``.

It opens a cluster, forks it in memory, goes into the sandbox, and then runs what it is sent, with
FOLDER/files as its working directory. The fork lives as long as the process, so that several calls
may work on it. The process ends when its standard input does, and removes FOLDER.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from typing import IO

from kubepy import system
from kubepy.api.clock import format_exact_time
from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.errors import CliError, guarded, text_of
from kubepy.cli.kustomization import files as kustomizations
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
from kubepy.cli.mcp.permitted import (
    CHANGING,
    READING,
    PermittedCommand,
    RefusedError,
    permit,
    read_flags,
)
from kubepy.cli.mcp.sandbox import NO_NETWORK, Sandbox
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.dispatch import line_of, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.kubeconfig import Target
from kubepy.cli.runtime.options import GlobalOptions, Options
from kubepy.controlplane import open as openings
from kubepy.storage import StorageError, homes

ALLOWED = {"read": READING, "plan": READING | CHANGING, "change": READING | CHANGING}
PLAN = "plan"
MAX_STDERR = 4000  # characters of one command
MAX_DOCUMENT = 64 * 1024 * 1024  # characters of a plan's document, before it is made shorter
# What is left out of a plan's document that is too long, the first ones first; the verdict stays.
LONG_FIELDS = (
    "numbers",
    "bounds",
    "steps",
    "why",
    "workloads",
    "notes",
    "contests",
    "runs",
    "harm",
)
# What is left of the environment once the cluster is open: a kustomization can read the rest of it.
KEPT_VARIABLES = ("HOME", "LANG", "TMPDIR", "TZ", "KUBECTL_KUBERC", "KUBEPY_NOTES")


# --- output ---------------------------------------------------------------------------------------


class BoundedText(io.StringIO):
    """A stream that keeps the first characters, and counts the others.

    :param tail: of how many characters of its room the last ones are kept instead of the first.
    :ivar dropped: how many characters have not been kept.
    :ivar dropped_lines: how many of them end a line.
    """

    def __init__(self, room: int, tail: int = 0) -> None:
        super().__init__()
        self._room = room - tail
        self._tail = tail
        self._last = ""  # what may be the last characters
        self.dropped = self.dropped_lines = 0

    def write(self, text: str, /) -> int:
        kept = text[: self._room]
        self._room -= super().write(kept)
        self._last += text[len(kept) :]
        if len(self._last) > 2 * self._tail:
            self._shorten()
        return len(text)

    def _shorten(self) -> None:
        """Drop all but the last characters."""
        place = len(self._last) - self._tail
        if place > 0:
            self._drop(self._last[:place])
            self._last = self._last[place:]

    def _drop(self, text: str) -> None:
        self.dropped += len(text)
        self.dropped_lines += text.count("\n")

    def end(self) -> str:
        """Return what was kept; where something is left out, up to the end of a line, and from the
        beginning of one, with a line between."""
        self._shorten()
        text = self.getvalue()
        if not self.dropped:
            return text + self._last
        if "\n" in text:
            end = text.rindex("\n") + 1
            self._drop(text[end:])  # the beginning of a line
            text = text[:end]
        if not self._tail:
            return text
        begin = self._last.find("\n") + 1
        self._drop(self._last[:begin])
        return f"{text}...\n{self._last[begin:]}"


def shorter_document(text: str, room: int) -> str:
    """Return the JSON document of a plan without its longest parts, until there is room for it or
    only the verdict is left. ``leftOut`` names the parts."""
    document = json.loads(text)
    left_out = []
    shorter = text
    for field in LONG_FIELDS:
        if len(shorter) <= room:
            break
        for part in (document, *document.get("workloads", ())):
            part.pop(field, None)
        left_out.append(field)
        shorter = json.dumps({**document, "leftOut": left_out}, indent=1) + "\n"
    return shorter


# --- command lines --------------------------------------------------------------------------------


class ToolFactory(Factory):
    """The Factory of a command line that a caller has sent: cluster, namespace and user are those
    that the server was started with."""

    def __init__(
        self, worker: Worker, stdin: IO[str], stdout: IO[str], stderr: IO[str], reconcile: str
    ) -> None:
        super().__init__(stdin, stdout, stderr, worker.cluster)
        served = worker.served
        self.program = served.program
        self.root = worker.root
        self.main = worker.main
        self._reconcile = reconcile
        # The place is the open cluster's: its contexts do not count.
        self._target = Target(worker.cluster.folder, served.namespace, "", served.user)

    def use(self, options: GlobalOptions, *, may_create: bool) -> None:
        """Work with the global flags of a command line from now on; no cluster is ever made."""
        options.reconcile = self._reconcile
        super().use(options, may_create=False)


class Worker:
    """A cluster, and the command lines that run on it.

    :param served: which cluster it is, and whose.
    :param folder: that of this process: ``files`` and ``tmp`` are in it.
    :param factory: of the command that this process is.
    """

    def __init__(self, served: ServedCluster, folder: str, factory: Factory) -> None:
        self.served = served
        self.root = root_command(factory)
        self.main = factory.main
        self._folder = folder
        self.cluster = self._open()

    def _open(self) -> LocalCluster:
        """Open the cluster, or fork it, and go into the sandbox. Raises StorageError."""
        served = self.served
        if served.trusts and not openings.is_in_etcd(served.place):
            homes.trust_in_this_process(served.place)
        endpoints = openings.endpoints_of(served.place)
        readable, writable = [], [self._folder]
        if not endpoints:
            readable.append(served.place)
            writable.append(served.place if served.writes else homes.own_path(served.place, ""))
        sandbox = Sandbox(readable, writable, endpoints)
        cluster = openings.open_cluster(served.place)
        cluster.refuse_network(NO_NETWORK)
        kept = {name: value for name in KEPT_VARIABLES if (value := os.environ.get(name))}
        os.environ.clear()
        os.environ.update(kept)
        if not served.writes:
            now = format_exact_time(cluster.clock.now())
            faults = cluster.settings.faults
            cluster = cluster.fork({"clock": now}, is_prediction=True).with_faults(faults)
        kustomizations.confine(os.path.join(self._folder, "files"))
        sandbox.close()
        return cluster

    def answer(self, call: Call) -> Message:
        """Run the command lines of a call. None runs unless all of them are permitted."""
        try:
            steps = [self._step(call, command) for command in call.commands]
        except RefusedError as error:
            return {"refused": str(error)}
        system.limit_cpu(call.seconds)
        results = []
        room = call.room
        for step in steps:
            result = self._run(step, call, room)
            room -= len(result.stdout) + len(result.stderr)
            results.append(result._asdict())
        return {"results": results}

    def _step(self, call: Call, command: str | list[str]) -> PermittedCommand:
        """Return a command line of a call that may run. Raises RefusedError."""
        if call.kind != PLAN:
            return permit(self.root, command, ALLOWED[call.kind], call.files)
        words: list[str] = []
        if command:
            permitted = permit(self.root, command, ALLOWED[PLAN], call.files)
            if permitted.parsed is None:
                return permitted
            words = ["--", *permitted.line.path, *permitted.line.rest]
        line = line_of(self.root, [PLAN, *call.flags, *words])
        return PermittedCommand(line, read_flags(line))

    def _run(self, step: PermittedCommand, call: Call, room: int) -> CommandOutput:
        """Run a command line; its output is kept as far as there is room."""
        room = max(room, 0)
        is_document = call.kind == PLAN and "--output=json" in call.flags
        # The end of a plan has its verdict and its harm.
        tail = room * 2 // 3 if call.kind == PLAN else 0
        stdout = BoundedText(MAX_DOCUMENT) if is_document else BoundedText(room, tail)
        stderr = BoundedText(min(room, MAX_STDERR))
        reconcile = self.served.reconcile if call.kind == "read" or self.served.writes else "auto"
        factory = ToolFactory(self, io.StringIO(call.stdin), stdout, stderr, reconcile)
        status = guarded(partial(execute, factory, step), factory.say)
        kept, said = stdout.end(), stderr.end()
        if is_document and len(kept) > room and not stdout.dropped:
            kept = shorter_document(kept, room)
        dropped = stdout.dropped + stderr.dropped
        return CommandOutput(
            kept, said, status, (stdout.dropped_lines + stderr.dropped_lines, dropped)
        )


def execute(factory: ToolFactory, step: PermittedCommand) -> None:
    """Run a command line with the words that were checked. Raises what the command raises, CliError
    where it needs more memory than there is."""
    line, parsed = step.line, step.parsed
    path = " ".join((factory.program, *line.path))
    try:
        if parsed is None:
            factory.print(line.command.help_text(path))
        else:
            line.command.execute(factory, path, parsed, line.path)
    except MemoryError:
        raise CliError("the command needs more memory than this server gives it") from None
    finally:
        factory.close()


# --- the process ----------------------------------------------------------------------------------


def serve(read: IO[bytes], send: Callable[[Message], None], folder: str, factory: Factory) -> None:
    """Answer messages until there are no more."""
    first = receive(read)
    if first is None:
        return
    try:
        worker = Worker(ServedCluster(**first), folder, factory)
    except (CliError, StorageError, OSError) as error:
        send({"error": text_of(error).strip()})
        return
    send({})
    while (message := receive(read)) is not None:
        send(worker.answer(Call(**message)))
    if worker.served.writes:
        worker.cluster.close()


def receive(read: IO[bytes]) -> Message | None:
    """Return the next message, None at the end of the input."""
    head = read.read(HEAD)
    if len(head) < HEAD:
        return None
    length = length_of(head)
    body = read.read(length)
    return decode(body) if len(body) == length else None


@command("__mcp FOLDER", Options)
def mcp_worker(factory: Factory, options: Options) -> None:
    """Run what ``kubepy mcp`` sends."""
    [folder] = options.args
    # What anything prints by itself must not get between the messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    read = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(os.path.join(folder, "files"))
    tempfile.tempdir = os.path.join(folder, "tmp")

    def send(message: Message) -> None:
        out.write(encode(message))
        out.flush()

    try:
        serve(read, send, folder, factory)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
