"""The things that the processes of a container share: files, open files, pipes, signals, scripts.

It is what the kernel is to real processes; ``machine`` adds the turns that they take.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from kubepy.api.clock import format_micro_time
from kubepy.lazy import blake2b, lazy_imports
from kubepy.shell.files import FileError, FileSystem
from kubepy.shell.parser import parse
from kubepy.shell.processes import (
    IGNORED,
    KILL,
    PIPE,
    PIPE_BEGIN,
    PIPE_END,
    SIGNAL_NAMES,
    SINK,
    SOURCE,
    TERM,
    Block,
    OpenFile,
    Pipe,
    Process,
    loop_heights,
)
from kubepy.shell.processfiles import ProcessFiles
from kubepy.shell.surroundings import Isolated, Surroundings
from kubepy.shell.syntax import Script, ShellCommand
from kubepy.shell.utility import ListedProcess

with lazy_imports():
    from kubepy.shell.utilities import busyboxwords
from kubepy.shell.words import INSTALLERS, program_name

FIRST_PAUSE = timedelta(milliseconds=10)  # that a busy program is taken to have worked; doubled
PIPE_SIZE = 65_536  # bytes that wait in a pipe
MAX_PROCESSES = 1_000


class Output(NamedTuple):
    """Bytes that were printed at a moment to ``stdout`` or ``stderr``."""

    time: datetime
    stream: str
    data: bytes


class Exit(NamedTuple):
    """The end of a process; ``signal`` is the one that has ended it, or 0."""

    code: int
    time: datetime
    signal: int = 0


class ContainerSetting(NamedTuple):
    """The circumstances in which the processes of a container start.

    :ivar unknown_ends: after so many seconds an unknown program ends with 0; None: it runs until a
        signal ends it.
    :ivar has_busybox: the programs of its image are those of busybox.
    :ivar group: the primary group of the user.
    :ivar groups: further groups of the user.
    :ivar capabilities: those that its processes can have, as a mask: usually those of containerd.
    :ivar user_base: the user of the node that root is in a user namespace; 0: it has none.
    :ivar lacks: names of programs that are not there, until a program has run that installs some.
    :ivar own_programs: the names of all programs that are there, besides files in volumes; None:
        the usual ones.
    """

    cwd: str = "/"
    hostname: str = "localhost"
    user: int = 0
    unknown_ends: float | None = None
    has_busybox: bool = False
    group: int = 0
    groups: Sequence[int] = ()
    capabilities: int = 0xA80425FB
    user_base: int = 0
    lacks: Sequence[str] = ()
    own_programs: Sequence[str] | None = None


class Kernel(ABC):
    """The processes of a container and what they share.

    :ivar files: what the processes see.
    :ivar env: the environment that processes are started with.
    :ivar now: the moment up to which everything has been done.
    :ivar unknowns: the programs and constructs that were met and are not known, once each.
    :ivar neighbours: the other containers whose processes these see; :meth:`share_processes`.
    :ivar pid_offset: the difference of the pids that are shown then to those here.
    """

    def __init__(
        self,
        files: FileSystem,
        env: Mapping[str, str],
        setting: ContainerSetting | None = None,
        *,
        now: datetime,
        surroundings: Surroundings | None = None,
    ) -> None:
        setting = setting or ContainerSetting()
        self.setting = setting
        self.running_pid = 1
        self.pid_offset = 0
        self.neighbours: list[Kernel] = []
        self.files = files
        self.env = dict(env)
        self.now = now
        self.cwd = setting.cwd
        self.hostname = setting.hostname
        self.surroundings: Surroundings = surroundings or Isolated()
        self.user = setting.user
        self.unknown_ends = setting.unknown_ends
        self.has_busybox = setting.has_busybox
        self.group = setting.group
        self.groups = tuple(setting.groups)
        self.capabilities = setting.capabilities
        self.user_base = setting.user_base
        files.user = setting.user
        files.group = setting.group
        self.lacks = setting.lacks
        self.own_programs = setting.own_programs
        self.unknowns: list[str] = []
        self.processes: dict[int, Process] = {}
        self.handles: dict[int, OpenFile] = {}
        self.pipes: dict[int, Pipe] = {}
        self.captured_pipes: set[int] = set()
        self.ports: list[int] = []
        self.uses_network = False
        self._scripts: list[str] = []
        self._script_numbers: dict[str, int] = {}
        self._outputs: dict[int, list[Output]] = {}
        self._last_pid = 0
        self._last_handle = 0
        self._last_pipe = 0
        self._steps = 0
        self._pause = FIRST_PAUSE
        self._draws = 0
        files.mount_aside("/proc", ProcessFiles(self))

    @property
    def noting_surroundings(self) -> Surroundings:
        """The surroundings, for a program: that they were asked is noted."""
        noting: Any = _Noting(self)
        return cast("Surroundings", noting)

    def in_its_words(self, program: str, errors: bytes) -> bytes:
        """Return what a program prints to standard error, in the words of the image's own."""
        if not errors or not self.has_busybox:
            return errors
        return busyboxwords.busybox_errors(program, errors)

    def in_words_of_ash(self, message: str) -> str | None:
        """Return what the image's own shell says in place of dash's message; None for the same."""
        if not self.has_busybox:
            return None
        return busyboxwords.shell_message(message)

    @abstractmethod
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
        """Start a process, and return its pid."""

    @abstractmethod
    def run(self, until: datetime) -> None:
        """Do everything that is due at a moment or before it."""

    @abstractmethod
    def run_apart(self, pid: int) -> None:
        """Let one process, and those that it starts, do what takes no time."""

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
        if process.pid == 1 and not is_from_outside:
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
        pid = self.new_pid()
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
        child.shell.outer_loops = parent.shell.outer_loops + len(loop_heights(parent.frames))
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

    def share_processes(self, machines: Sequence[Kernel], first_pid: int) -> None:
        """See the processes of other containers too, as with ``shareProcessNamespace``."""
        self.neighbours = [machine for machine in machines if machine is not self]
        self.pid_offset = first_pid - 1

    @property
    def has_sandbox(self) -> bool:
        """Tell whether the first process that is seen is that of the pod's sandbox."""
        machines = (self, *self.neighbours)
        return bool(self.neighbours) and all(machine.pid_offset for machine in machines)

    def process_at(self, pid: int) -> tuple[Kernel, Process | None]:
        """Return the process that has a pid as it is shown, with the container that it is in."""
        for machine in (self, *self.neighbours):
            process = machine.processes.get(pid - machine.pid_offset)
            if process is not None:
                return machine, process
        return self, self.processes.get(pid)

    def listed(self) -> list[ListedProcess]:
        """Return the processes that can be seen, as they are shown."""
        shown: list[ListedProcess] = []
        if self.has_sandbox:
            shown.append((1, 0, 0, "/pause"))
        for machine in (self, *self.neighbours):
            offset = machine.pid_offset
            for process in machine.processes.values():
                if process.is_alive:
                    parent = process.parent + offset if process.parent else 0
                    user = process.owner or machine.user
                    command = " ".join(process.argv)
                    shown.append((process.pid + offset, parent, user, command))
        return sorted(shown, key=lambda process: process[0])

    def new_pid(self) -> int:
        """Return the pid of the next process."""
        self._last_pid += 1
        return self._last_pid

    # --- scripts

    def is_missing(self, word: str) -> bool:
        """Tell whether a command names a program that the image is known not to have."""
        if self.own_programs is not None:
            is_own = posixpath.basename(word) in self.own_programs
            is_file = "/" in word and self.files.is_file(word)
            return not is_own and not is_file
        if program_name(word) not in self.lacks:
            return False
        return INSTALLERS.isdisjoint(self.unknowns)

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

    def node(self, script: int, number: int) -> ShellCommand:
        """Return a command of a script."""
        return parse(self._scripts[script]).nodes[number]

    # --- open files

    def absolute(self, process: Process, path: str) -> str:
        """Return the absolute path of a name that a process uses."""
        return posixpath.join(process.cwd, path)

    def open(self, handle: OpenFile) -> int:
        """Return the number of a new open file."""
        self._last_handle += 1
        self.handles[self._last_handle] = handle
        return self._last_handle

    def open_text(self, text: str) -> int:
        """Return an open file from which a text is read."""
        return self.open_bytes(text.encode("utf-8", "surrogateescape"))

    def open_bytes(self, data: bytes) -> int:
        """Return an open file from which some bytes are read."""
        pipe = self.new_pipe()
        self.pipes[pipe].data = data
        return self.open(OpenFile(PIPE_END, pipe=pipe))

    def new_pipe(self) -> int:
        """Return the number of a new pipe."""
        self._last_pipe += 1
        self.pipes[self._last_pipe] = Pipe()
        return self._last_pipe

    def handle_of(self, process: Process, number: int) -> OpenFile | None:
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
                self._write_pipe(
                    process,
                    process.handles[number],
                    handle,
                    data,
                )

    def _print(self, handle: OpenFile, data: bytes) -> None:
        outputs = self._outputs.setdefault(handle.session, [])
        last = outputs[-1] if outputs else None
        if last is not None and last.time == self.now and last.stream == handle.stream:
            outputs[-1] = last._replace(data=last.data + data)
        else:
            outputs.append(Output(self.now, handle.stream, data))

    def _append(self, process: Process, handle: OpenFile, data: bytes) -> None:
        try:
            self.files.write(
                handle.path,
                data,
                now=self.now,
                append=True,
            )
        except FileError as error:
            message = f"{process.argv[0]}: write error: {error.problem}\n"
            process.status = 1
            number = process.handles.get(2)
            errors = self.handles.get(number) if number else None
            if errors is not None and errors.kind == SINK:
                self._print(errors, message.encode())

    def _write_pipe(self, process: Process, number: int, handle: OpenFile, data: bytes) -> None:
        if not self._is_read(handle.pipe):
            self.deliver(process, PIPE)
            return
        pipe = self.pipes[handle.pipe]
        pipe.data += data
        if len(pipe.data) > PIPE_SIZE and handle.pipe not in self.captured_pipes:
            process.block = Block("write", handle=number)

    def _has_room(self, handle: OpenFile) -> bool:
        pipe = self.pipes.get(handle.pipe)
        if pipe is None or len(pipe.data) <= PIPE_SIZE:
            return True
        return self._is_awaited(handle.pipe) or not self._is_read(handle.pipe)

    def _is_awaited(self, pipe: int) -> bool:
        """Tell whether a process waits for more than a pipe holds."""
        for process in self.processes.values():
            block = process.block
            if block is None or block.kind not in ("read", "end"):
                continue
            handle = self.handles.get(block.handle)
            if handle is not None and handle.kind == PIPE_END and handle.pipe == pipe:
                return True
        return False

    def _held(self) -> set[int]:
        """Return the open files that some process has, or will have again."""
        held: set[int] = set()
        for process in self.processes.values():
            held.update(process.handles.values())
            for frame in process.frames:
                is_holding = frame[0] in ("restore", "redirected") and frame[4]
                if is_holding and "outputs" not in frame[4]:  # those of a substitution are none
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

    def peek_input(self, handle: OpenFile) -> tuple[bytes, bool]:
        """Return what can be read now, and whether nothing comes after it."""
        if handle.kind == PIPE_END:
            return self.pipes[handle.pipe].data, not self._is_written(handle.pipe)
        if handle.kind == SOURCE:
            try:
                return self.files.read(handle.path)[handle.offset :], True
            except FileError:
                return b"", True
        return b"", True

    def take_input(self, handle: OpenFile, size: int) -> None:
        """Take bytes that were read."""
        if handle.kind == PIPE_END:
            pipe = self.pipes[handle.pipe]
            pipe.data = pipe.data[size:]
        elif handle.kind == SOURCE:
            handle.offset += size

    def _is_at_end(self, handle: OpenFile) -> bool:
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


class _Noting:
    """The surroundings of a machine, which notes that somebody asks them."""

    def __init__(self, machine: Kernel) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        self._machine.uses_network = True
        return getattr(self._machine.surroundings, name)
