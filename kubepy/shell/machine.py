"""The processes of one container.

A machine is deterministic: what its processes do follows from their commands, the files, the
moment and what the surroundings answer. Everything that it holds has a JSON form, so that it goes
on in another program where this one has left it. Nothing runs by itself: :meth:`Machine.run` does
what is due up to a moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.shell.files import FileSystem
from kubepy.shell.interpreter import ShellInterpreter
from kubepy.shell.kernel import FIRST_PAUSE, ContainerSetting, Exit, Kernel, Output
from kubepy.shell.processes import (
    PIPE_END,
    SIGNAL_NAMES,
    SINK,
    Block,
    OpenFile,
    Pipe,
    Process,
    ShellState,
)
from kubepy.shell.programs import UNKNOWN, Programs, StartError
from kubepy.shell.surroundings import Surroundings

__all__ = ["ContainerSetting", "Exit", "Machine", "Output", "StartError"]

QUANTUM = 400  # steps of a process before it is another one's turn
BUSY_AFTER = 20_000  # steps at one moment: a program that works without a pause
RELOADS = ("HUP", "USR1", "USR2")  # signals that make servers read their files again
LONGEST_PAUSE = timedelta(hours=1)
MAX_FRAMES = 900  # of one process: functions that call themselves


class Machine(Kernel):
    """The processes of a container. Pid 1 is the first one."""

    # --- what others ask for

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
        Programs(self).check_start(argv)
        if not is_main:
            self._last_pid = max(self._last_pid, 1)
        pid = self.new_pid()
        process = self._add_process(pid, 0, argv, env or {})
        process.unknown_ends = self.unknown_ends if unknown_ends is None else unknown_ends
        pipe = self.new_pipe()
        self.pipes[pipe].data = stdin or b""
        self.pipes[pipe].is_fed = stdin is None
        error_stream = "stdout" if tty else "stderr"
        process.handles = {
            0: self.open(OpenFile(PIPE_END, pipe=pipe)),
            1: self.open(OpenFile(SINK, session=pid, stream="stdout")),
            2: self.open(OpenFile(SINK, session=pid, stream=error_stream)),
        }
        process.frames.append(
            ["program", -1, -1, 0, {"argv": list(argv), "env": {}, "replaces": True}]
        )
        return pid

    def _add_process(
        self, pid: int, parent: int, argv: Sequence[str], env: Mapping[str, str]
    ) -> Process:
        """Add a process that has no files yet and nothing to do."""
        shell = ShellState(variables={**self.env, **env}, main_pid=pid)
        shell.exported = sorted(shell.variables)
        process = Process(
            pid,
            parent,
            pid,
            list(argv),
            self.cwd,
            shell,
            self.now,
        )
        process.files_version = self.files.version
        self.processes[pid] = process
        self._outputs[pid] = []
        return process

    def add_resident(self, title: str, owner: str = "") -> None:
        """Let a program run of which nothing but its name is known, as a container's main process
        or, after that, as a child of it.

        :param title: what ``ps`` shows of it.
        :param owner: the name of its user; "": the container's.
        """
        pid = 1 if 1 not in self.processes else self.new_pid()
        self._last_pid = max(self._last_pid, pid)
        process = self._add_process(pid, int(pid != 1), title.split(), {})
        process.shell.traps = dict.fromkeys(RELOADS, "")
        process.owner = owner
        process.frames.append(["program", -1, -1, UNKNOWN, {"argv": [title]}])
        process.block = Block("never")

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
            if self.take_turns():
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

    def waits_for_input(self, pid: int) -> bool:
        """Tell whether a process, or one that it has started, reads an input that is open."""
        return any(
            process.session == pid and process.is_alive and self._reads_fed_pipe(process.block)
            for process in self.processes.values()
        )

    def _reads_fed_pipe(self, block: Block | None) -> bool:
        if block is None or block.kind not in ("read", "end"):
            return False
        handle = self.handles.get(block.handle)
        if handle is None or handle.kind != PIPE_END:
            return False
        return self.pipes[handle.pipe].is_fed

    def is_steady(self, pid: int) -> bool:
        """Tell whether a process that has ended would do the same again while no file changes."""
        process = self.processes.get(pid)
        if process is None or process.is_alive:
            return False
        return not process.is_unsteady and process.files_version == self.files.version

    # --- time

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

    def take_turns(self) -> bool:
        """Let every process that can go on take its turn. Return whether there was one."""
        was_ready = False
        for process in [*self.processes.values()]:
            if not process.is_alive or not self._is_ready(process):
                continue
            was_ready = True
            self._run_process(process)
        return was_ready

    def run_apart(self, pid: int) -> None:
        """Let one process, and those that it starts, do what takes no time."""
        while True:
            processes = [each for each in self.processes.values() if each.session == pid]
            ready = [each for each in processes if each.is_alive and self._is_ready(each)]
            if not ready:
                return
            for process in ready:
                self._run_process(process)

    def _run_process(self, process: Process) -> None:
        process.block = None
        self.running_pid = process.pid
        interpreter = ShellInterpreter(self, process)
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
                if block.moment is not None and block.moment <= self.now:
                    return True
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

    def _take_signal(self, process: Process, interpreter: ShellInterpreter) -> bool:
        """Begin the trap of a signal. Return whether there is one."""
        number = process.signals.pop(0)
        action = process.shell.traps.get(SIGNAL_NAMES.get(number, ""), "")
        if not action:
            return False
        interpreter.push(
            "trapped",
            -1,
            -1,
            process.status,
        )
        interpreter.push_script(action)
        return True

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
            "setting": [*self.setting],
            "unknowns": self.unknowns,
            "processes": [process.to_json() for process in self.processes.values()],
            "handles": {str(number): handle.to_json() for number, handle in handles.items()},
            "pipes": {
                str(number): [pipe.data.decode("latin-1"), pipe.is_fed]
                for number, pipe in self.pipes.items()
            },
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
            ContainerSetting(*value["setting"]),
            now=parse_time(value["now"]),
            surroundings=surroundings,
        )
        machine.unknowns = list(value["unknowns"])
        processes = [Process.from_json(each) for each in value["processes"]]
        machine.processes = {process.pid: process for process in processes}
        machine.handles = {
            int(number): OpenFile.from_json(handle) for number, handle in value["handles"].items()
        }
        machine.pipes = {
            int(number): Pipe(data.encode("latin-1"), is_fed)
            for number, (data, is_fed) in value["pipes"].items()
        }
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
