"""The processes of one container.

A machine is deterministic: what its processes do follows from their commands, the files, the
moment and what the surroundings answer. Everything that it holds has a JSON form, so that it goes
on in another program where this one has left it. Nothing runs by itself: :meth:`Machine.run` does
what is due up to a moment.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.lazy import blake2b
from kubepy.shell.builtins import SIGNAL_NAMES
from kubepy.shell.files import FileError, FileSystem
from kubepy.shell.interpreter import Interpreter
from kubepy.shell.parser import parse
from kubepy.shell.processes import (
    IGNORED,
    KILL,
    PIPE,
    PIPE_BEGIN,
    PIPE_END,
    SINK,
    SOURCE,
    TERM,
    Block,
    Handle,
    Pipe,
    Process,
    Shell,
)
from kubepy.shell.programs import Programs, StartError
from kubepy.shell.surroundings import Isolated, Surroundings
from kubepy.shell.syntax import Node, Script

__all__ = ["Exit", "Machine", "Output", "StartError"]

QUANTUM = 400  # steps of a process before it is another one's turn
BUSY_AFTER = 20_000  # steps at one moment: a program that works without a pause
FIRST_PAUSE = timedelta(milliseconds=10)  # that such a program is taken to have worked; doubled
LONGEST_PAUSE = timedelta(hours=1)
PIPE_SIZE = 65_536  # bytes that wait in a pipe
MAX_FRAMES = 900  # of one process: functions that call themselves
MAX_PROCESSES = 1_000


class Output(NamedTuple):
    """What was printed at a moment to ``stdout`` or ``stderr``."""

    time: datetime
    stream: str
    data: bytes


class Exit(NamedTuple):
    """The end of a process; ``signal`` is the one that has ended it, or 0."""

    code: int
    time: datetime
    signal: int = 0


class Machine:
    """The processes of a container. Pid 1 is the first one.

    :ivar files: what the processes see.
    :ivar env: the environment that processes are started with.
    :ivar now: the moment up to which everything has been done.
    :ivar unknowns: the programs and constructs that were met and are not known, once each.
    """

    def __init__(
        self,
        files: FileSystem,
        env: Mapping[str, str],
        *,
        now: datetime,
        cwd: str = "/",
        hostname: str = "localhost",
        surroundings: Surroundings | None = None,
        user: int = 0,
        unknown_ends: float | None = None,
    ) -> None:
        self.files = files
        self.env = dict(env)
        self.now = now
        self.cwd = cwd
        self.hostname = hostname
        self.surroundings: Surroundings = surroundings or Isolated()
        self.user = user
        self.unknown_ends = unknown_ends
        self.unknowns: list[str] = []
        self.processes: dict[int, Process] = {}
        self.handles: dict[int, Handle] = {}
        self.pipes: dict[int, Pipe] = {}
        self.captures: dict[str, Any] = {}
        self.captured_pipes: set[int] = set()
        self.ports: list[int] = []
        self.uses_network = False
        self.programs = Programs(self)
        self._scripts: list[str] = []
        self._script_numbers: dict[str, int] = {}
        self._outputs: dict[int, list[Output]] = {}
        self._last_pid = 0
        self._last_handle = 0
        self._last_pipe = 0
        self._steps = 0
        self._pause = FIRST_PAUSE
        self._draws = 0

    # --- what others ask for

    @property
    def noting_surroundings(self) -> Surroundings:
        """The surroundings, for a program: that they were asked is noted."""
        noting: Any = _Noting(self)
        return cast("Surroundings", noting)

    @property
    def has_main(self) -> bool:
        """Tell whether the machine runs the container's main process, which is pid 1."""
        return 1 in self.processes

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = b"",
        tty: bool = False,
        unknown_ends: float | None = None,
        is_main: bool = False,
    ) -> int:
        """Start a process, and return its pid: 1 for the main process, else a later one.

        :param stdin: its input; None: it stays open for :meth:`write_stdin`.
        :param unknown_ends: after so many seconds an unknown program ends with 0; None: as the
            machine has it.

        Raises StartError.
        """
        self.programs.check_start(argv)
        if not is_main:
            self._last_pid = max(self._last_pid, 1)
        pid = self._new_pid()
        shell = Shell(variables={**self.env, **(env or {})}, main_pid=pid)
        shell.exported = sorted(shell.variables)
        process = Process(pid, 0, pid, list(argv), self.cwd, shell, self.now)
        process.unknown_ends = self.unknown_ends if unknown_ends is None else unknown_ends
        process.files_version = self.files.version
        pipe = self.new_pipe()
        self.pipes[pipe].data = stdin or b""
        self.pipes[pipe].is_fed = stdin is None
        process.handles = {
            0: self.open(Handle(PIPE_END, pipe=pipe)),
            1: self.open(Handle(SINK, session=pid, stream="stdout")),
            2: self.open(Handle(SINK, session=pid, stream="stdout" if tty else "stderr")),
        }
        process.frames.append(
            ["program", -1, -1, 0, {"argv": list(argv), "env": {}, "replaces": True}]
        )
        self.processes[pid] = process
        self._outputs[pid] = []
        return pid

    def write_stdin(self, pid: int, data: bytes | None) -> None:
        """Write to the input of a process that was started with an open one; None closes it."""
        process = self.processes.get(pid)
        handle = self.handle_of(process, 0) if process is not None else None
        if handle is None or handle.kind != PIPE_END:
            return
        pipe = self.pipes[handle.pipe]
        if data is None:
            pipe.is_fed = False
        elif pipe.is_fed:
            pipe.data += data

    def run(self, until: datetime) -> None:
        """Do everything that is due at a moment or before it."""
        while True:
            if self._round():
                continue
            moment = self._next_moment()
            if moment is None or moment > until:
                break
            self._set_now(moment)
        self._set_now(until)

    def next_time(self) -> datetime | None:
        """Return the next moment at which something goes on by itself; None for never."""
        if any(process.is_alive and self._is_ready(process) for process in self.processes.values()):
            return self.now
        return self._next_moment()

    def exit_of(self, pid: int) -> Exit | None:
        """Return the end of a process; None while it runs."""
        process = self.processes.get(pid)
        if process is None or process.code is None or process.ended is None:
            return None
        return Exit(process.code, process.ended, process.signal)

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process from outside of the container."""
        process = self.processes.get(pid)
        if process is not None and process.is_alive:
            self.deliver(process, number, is_from_outside=True)

    def take_output(self, pid: int) -> list[Output]:
        """Return what a process and those that it has started have printed since the last call."""
        outputs = self._outputs.get(pid, [])
        self._outputs[pid] = []
        return outputs

    def waits_for_input(self, pid: int) -> bool:
        """Tell whether a process, or one that it has started, reads an input that is open."""
        for process in self.processes.values():
            block = process.block
            if process.session != pid or not process.is_alive or block is None:
                continue
            handle = self.handles.get(block.handle)
            if block.kind in ("read", "end") and handle is not None and handle.kind == PIPE_END:
                if self.pipes[handle.pipe].is_fed:
                    return True
        return False

    def is_steady(self, pid: int) -> bool:
        """Tell whether a process that has ended would do the same again while no file changes."""
        process = self.processes.get(pid)
        if process is None or process.is_alive:
            return False
        return not process.is_unsteady and process.files_version == self.files.version

    def forget(self, pid: int) -> None:
        """Forget a process that was started from outside and has ended."""
        process = self.processes.get(pid)
        if process is not None and not process.is_alive and pid != 1:
            del self.processes[pid]
            self._outputs.pop(pid, None)

    # --- time

    def after(self, seconds: float) -> datetime:
        """Return the moment that comes so many seconds from now."""
        return self.now + timedelta(microseconds=round(seconds * 1_000_000))

    def _set_now(self, moment: datetime) -> None:
        if moment > self.now:
            self.now = moment
            self._steps = 0

    def _next_moment(self) -> datetime | None:
        moments = [
            process.block.moment
            for process in self.processes.values()
            if process.is_alive and process.block is not None and process.block.moment is not None
        ]
        return min(moments, default=None)

    def _round(self) -> bool:
        """Let every process that can go on take its turn. Return whether there was one."""
        was_ready = False
        for process in [*self.processes.values()]:
            if not process.is_alive or not self._is_ready(process):
                continue
            was_ready = True
            self._run_process(process)
        return was_ready

    def _run_process(self, process: Process) -> None:
        process.block = None
        interpreter = Interpreter(self, process)
        for _ in range(QUANTUM):
            if not process.is_alive or process.block is not None:
                self._pause = FIRST_PAUSE
                return
            self._steps += 1
            if self._steps > BUSY_AFTER:
                self._make_busy(process)
                return
            if process.signals and self._take_signal(process, interpreter):
                continue
            if not process.frames:
                status = process.status if process.exiting is None else process.exiting
                if process.exiting is None and process.shell.traps.get("EXIT"):
                    interpreter.exit(status)
                else:
                    self.end(process, status)
                return
            if len(process.frames) > MAX_FRAMES:
                self.end(process, 139, signal=11)
                return
            interpreter.step()

    def _make_busy(self, process: Process) -> None:
        """Let a process that works without a pause take some time, more each time."""
        process.block = Block("until", moment=self.now + self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._steps = 0

    def _is_ready(self, process: Process) -> bool:
        block = process.block
        if block is None:
            return True
        match block.kind:
            case "until":
                return block.moment is not None and block.moment <= self.now
            case "child":
                return not any(self._lives(pid) for pid in block.pids)
            case "read":
                return self._can_read(block)
            case "end":
                handle = self.handles.get(block.handle)
                return handle is None or self._is_at_end(handle)
            case "write":
                handle = self.handles.get(block.handle)
                return handle is None or self._has_room(handle)
            case "file":
                return self.files.version != block.version
        return False

    def _lives(self, pid: int) -> bool:
        process = self.processes.get(pid)
        return process is not None and process.is_alive

    # --- signals and ends

    def deliver(self, process: Process, number: int, *, is_from_outside: bool = False) -> None:
        """Send a signal to a process."""
        name = SIGNAL_NAMES.get(number, "")
        action = process.shell.traps.get(name)
        if number == KILL:
            if process.pid != 1 or is_from_outside:
                self.end(process, 128 + KILL, signal=KILL)
            return
        if action is not None:
            self._interrupt(process, number, action)
            return
        if number in IGNORED:
            return
        if self._is_unknown(process):
            self.end(process, 0 if number == TERM else 128 + number)
            return
        if process.pid == 1:
            return  # the kernel keeps signals without a handler from the first process
        self.end(process, 128 + number, signal=number)

    def _interrupt(self, process: Process, number: int, action: str) -> None:
        """Note a signal for which a shell has a trap; only ``wait`` ends at once for it."""
        if not action:
            return
        process.signals.append(number)
        top = process.frames[-1][0] if process.frames else ""
        if top == "wait" and process.block is not None:
            process.block = None
            process.frames.pop()
            process.status = 128 + number

    def _is_unknown(self, process: Process) -> bool:
        if process.block is None or process.block.kind != "never" or not process.frames:
            return False
        frame = process.frames[-1]
        return frame[0] in ("program", "unknown") and frame[3] == 9

    def _take_signal(self, process: Process, interpreter: Interpreter) -> bool:
        """Begin the trap of a signal. Return whether there is one."""
        number = process.signals.pop(0)
        action = process.shell.traps.get(SIGNAL_NAMES.get(number, ""), "")
        if not action:
            return False
        interpreter.push("trapped", -1, -1, process.status)
        interpreter.push_script(action)
        return True

    def end(self, process: Process, status: int, *, signal: int = 0) -> None:
        """End a process; with the main process all others end."""
        process.code = status & 255
        process.signal = signal
        process.ended = self.now
        process.frames = []
        process.block = None
        process.handles = {}
        root = self.processes.get(process.session)
        if root is not None and process.is_unsteady:
            root.is_unsteady = True
        if process.pid == 1:
            for other in self.processes.values():
                if other.is_alive:
                    self.end(other, 128 + KILL, signal=KILL)

    def fork(self, parent: Process) -> Process:
        """Return a new process with a copy of what a shell has."""
        if len(self.processes) > MAX_PROCESSES:
            self._bury()
        pid = self._new_pid()
        child = Process(
            pid,
            parent.pid,
            parent.session,
            list(parent.argv),
            parent.cwd,
            parent.shell.copy(),
            self.now,
        )
        child.handles = dict(parent.handles)
        child.unknown_ends = parent.unknown_ends
        child.status = parent.status
        self.processes[pid] = child
        return child

    def _bury(self) -> None:
        """Forget processes that have ended and that nobody waits for."""
        awaited = {pid for process in self.processes.values() for pid in process.shell.jobs}
        for pid, process in [*self.processes.items()]:
            if not process.is_alive and pid not in awaited and process.parent:
                del self.processes[pid]

    def reap(self, pid: int) -> int:
        """Return the exit status of a process that has ended, and forget it."""
        process = self.processes.pop(pid, None)
        if process is None or process.code is None:
            return 127
        return process.code

    def _new_pid(self) -> int:
        self._last_pid += 1
        return self._last_pid

    def note_unknown(self, what: str) -> None:
        """Note a program or a construct of which nothing is known."""
        if what not in self.unknowns:
            self.unknowns.append(what)

    def random(self) -> float:
        """Return a number from 0 to 1: a function of the container and of how many were drawn."""
        self._draws += 1
        seed = f"{self.hostname}/{format_micro_time(self.now)}/{self._draws}".encode()
        digest = blake2b(seed, 6)
        return int.from_bytes(digest, "big") / (1 << 48)

    # --- scripts

    def script(self, text: str) -> int:
        """Return the number of a script."""
        number = self._script_numbers.get(text)
        if number is None:
            number = len(self._scripts)
            self._scripts.append(text)
            self._script_numbers[text] = number
        return number

    def parsed(self, script: int) -> Script:
        """Return a script by its number."""
        return parse(self._scripts[script])

    def node(self, script: int, number: int) -> Node:
        """Return a command of a script."""
        return parse(self._scripts[script]).nodes[number]

    # --- open files

    def absolute(self, process: Process, path: str) -> str:
        """Return the absolute path of a name that a process uses."""
        return posixpath.join(process.cwd, path)

    def open(self, handle: Handle) -> int:
        """Return the number of a new open file."""
        self._last_handle += 1
        self.handles[self._last_handle] = handle
        return self._last_handle

    def open_text(self, text: str) -> int:
        """Return an open file from which a text is read."""
        pipe = self.new_pipe()
        self.pipes[pipe].data = text.encode("utf-8", "surrogateescape")
        return self.open(Handle(PIPE_END, pipe=pipe))

    def new_pipe(self) -> int:
        """Return the number of a new pipe."""
        self._last_pipe += 1
        self.pipes[self._last_pipe] = Pipe()
        return self._last_pipe

    def handle_of(self, process: Process, number: int) -> Handle | None:
        """Return an open file of a process by its descriptor."""
        return self.handles.get(process.handles.get(number, 0))

    def write(self, process: Process, number: int, data: bytes) -> None:
        """Write to a descriptor of a process. A full pipe blocks it, a broken one ends it."""
        handle = self.handle_of(process, number)
        if handle is None or not data:
            return
        match handle.kind:
            case "sink":
                self._print(handle, data)
            case "file":
                self._append(process, handle, data)
            case "in":
                self._write_pipe(process, process.handles[number], handle, data)

    def _print(self, handle: Handle, data: bytes) -> None:
        outputs = self._outputs.setdefault(handle.session, [])
        last = outputs[-1] if outputs else None
        if last is not None and last.time == self.now and last.stream == handle.stream:
            outputs[-1] = last._replace(data=last.data + data)
        else:
            outputs.append(Output(self.now, handle.stream, data))

    def _append(self, process: Process, handle: Handle, data: bytes) -> None:
        try:
            self.files.write(handle.path, data, now=self.now, append=True)
        except FileError as error:
            message = f"{process.argv[0]}: write error: {error.problem}\n"
            process.status = 1
            number = process.handles.get(2)
            errors = self.handles.get(number) if number else None
            if errors is not None and errors.kind == SINK:
                self._print(errors, message.encode())

    def _write_pipe(self, process: Process, number: int, handle: Handle, data: bytes) -> None:
        if not self._is_read(handle.pipe):
            self.deliver(process, PIPE)
            return
        pipe = self.pipes[handle.pipe]
        pipe.data += data
        if len(pipe.data) > PIPE_SIZE and handle.pipe not in self.captured_pipes:
            process.block = Block("write", handle=number)

    def _has_room(self, handle: Handle) -> bool:
        pipe = self.pipes.get(handle.pipe)
        return pipe is None or len(pipe.data) <= PIPE_SIZE or not self._is_read(handle.pipe)

    def _held(self) -> set[int]:
        """Return the open files that some process has, or will have again."""
        held: set[int] = set()
        for process in self.processes.values():
            held.update(process.handles.values())
            for frame in process.frames:
                if frame[0] in ("restore", "redirected") and frame[4]:
                    held.update(frame[4].values())
        return held

    def _is_read(self, pipe: int) -> bool:
        if pipe in self.captured_pipes:
            return True
        return any(
            self.handles[number].kind == PIPE_END and self.handles[number].pipe == pipe
            for number in self._held()
            if number in self.handles
        )

    def _is_written(self, pipe: int) -> bool:
        if self.pipes[pipe].is_fed:
            return True
        return any(
            self.handles[number].kind == PIPE_BEGIN and self.handles[number].pipe == pipe
            for number in self._held()
            if number in self.handles
        )

    def peek_input(self, handle: Handle) -> tuple[bytes, bool]:
        """Return what can be read now, and whether nothing comes after it."""
        if handle.kind == PIPE_END:
            return self.pipes[handle.pipe].data, not self._is_written(handle.pipe)
        if handle.kind == SOURCE:
            try:
                return self.files.read(handle.path)[handle.offset :], True
            except FileError:
                return b"", True
        return b"", True

    def take_input(self, handle: Handle, size: int) -> None:
        """Take bytes that were read."""
        if handle.kind == PIPE_END:
            pipe = self.pipes[handle.pipe]
            pipe.data = pipe.data[size:]
        elif handle.kind == SOURCE:
            handle.offset += size

    def _is_at_end(self, handle: Handle) -> bool:
        return self.peek_input(handle)[1]

    def _can_read(self, block: Block) -> bool:
        handle = self.handles.get(block.handle)
        if handle is None:
            return True
        data, is_over = self.peek_input(handle)
        return is_over or len(data) > block.version

    def drain(self, pipe: int) -> bytes:
        """Return all that is in a pipe, and forget the pipe."""
        self.captured_pipes.discard(pipe)
        return self.pipes.pop(pipe).data

    # --- JSON

    def to_json(self) -> dict[str, Any]:
        """Return the machine as JSON, without files and surroundings."""
        held = self._held()
        handles = {number: self.handles[number] for number in held if number in self.handles}
        used = {handle.pipe for handle in handles.values() if handle.pipe} | self.captured_pipes
        self.handles = handles
        self.pipes = {number: pipe for number, pipe in self.pipes.items() if number in used}
        return {
            "env": self.env,
            "now": format_micro_time(self.now),
            "cwd": self.cwd,
            "hostname": self.hostname,
            "user": self.user,
            "unknown_ends": self.unknown_ends,
            "unknowns": self.unknowns,
            "processes": [process.to_json() for process in self.processes.values()],
            "handles": {str(number): handle.to_json() for number, handle in handles.items()},
            "pipes": {
                str(number): [pipe.data.decode("latin-1"), pipe.is_fed]
                for number, pipe in self.pipes.items()
            },
            "captures": self.captures,
            "captured": sorted(self.captured_pipes),
            "ports": self.ports,
            "uses_network": self.uses_network,
            "scripts": self._scripts,
            "outputs": {
                str(pid): [
                    [format_micro_time(part.time), part.stream, part.data.decode("latin-1")]
                    for part in outputs
                ]
                for pid, outputs in self._outputs.items()
                if outputs or pid in self.processes
            },
            "last": [self._last_pid, self._last_handle, self._last_pipe, self._draws],
            "pause": self._pause.total_seconds(),
        }

    @classmethod
    def from_json(
        cls, value: dict[str, Any], files: FileSystem, surroundings: Surroundings | None = None
    ) -> Machine:
        """Read what :meth:`to_json` has returned."""
        machine = cls(
            files,
            value["env"],
            now=parse_time(value["now"]),
            cwd=value["cwd"],
            hostname=value["hostname"],
            surroundings=surroundings,
            user=value["user"],
            unknown_ends=value["unknown_ends"],
        )
        machine.unknowns = list(value["unknowns"])
        processes = [Process.from_json(each) for each in value["processes"]]
        machine.processes = {process.pid: process for process in processes}
        machine.handles = {
            int(number): Handle.from_json(handle) for number, handle in value["handles"].items()
        }
        machine.pipes = {
            int(number): Pipe(data.encode("latin-1"), is_fed)
            for number, (data, is_fed) in value["pipes"].items()
        }
        machine.captures = value["captures"]
        machine.captured_pipes = set(value["captured"])
        machine.ports = list(value["ports"])
        machine.uses_network = value["uses_network"]
        for text in value["scripts"]:
            machine.script(text)
        machine._outputs = {
            int(pid): [
                Output(parse_time(time), stream, data.encode("latin-1"))
                for time, stream, data in outputs
            ]
            for pid, outputs in value["outputs"].items()
        }
        machine._last_pid, machine._last_handle, machine._last_pipe, machine._draws = value["last"]
        machine._pause = timedelta(seconds=value["pause"])
        return machine


class _Noting:
    """The surroundings of a machine, which notes that somebody asks them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        self._machine.uses_network = True
        return getattr(self._machine.surroundings, name)
