"""Programs: what a command does that is not one of the shell's own words."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kubepy.shell import builtins
from kubepy.shell.files import FileError
from kubepy.shell.processes import PIPE_END, Block, Frame, Process, ShellState
from kubepy.shell.streams import STREAMS, NotAStream
from kubepy.shell.utility import Delay, Execution, ListedProcess, Unknown
from kubepy.shell.words import (
    OWN_WORDS,
    PROGRAMS,
    SHELLS,
    is_replaced_by,
    names_program,
    program_name,
)
from kubepy.shell.wrappers import WrappedCommand, wrapped_command

if TYPE_CHECKING:
    from kubepy.shell.kernel import Kernel
    from kubepy.shell.stack import Stack

KIND, SCRIPT, NODE, STEP, DATA = range(5)
# How far a program is that has been started.
TIMED, DELAYED, WAITING, UNKNOWN = 6, 7, 8, 9
TIMED_OUT = 124
NOT_FOUND, NOT_EXECUTABLE, NOT_STARTED = 127, 126, 128


def not_found(word: str) -> str:
    """Return what a container runtime says of a program that is not there."""
    if "/" in word:
        return f'exec: "{word}": stat {word}: no such file or directory'
    return f'exec: "{word}": executable file not found in $PATH'


class StartError(Exception):
    """A process that cannot be started.

    :ivar code: the exit code of a container that it is the main process of.
    :ivar message: what a container runtime says of it.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NeedsInput(Exception):
    """A program that needs all of its input, which is not there yet."""


class ProgramCall(Execution):
    """A call whose input is looked at only when the program asks for it."""

    stack: Stack

    @property
    def stdin(self) -> bytes:
        """All of standard input. Raises NeedsInput."""
        return all_input(self.stack.machine, self.stack.process)

    @stdin.setter
    def stdin(self, value: bytes) -> None:
        """Ignore the value that every invocation is made with."""


class Programs:
    """Starts the programs of a machine."""

    def __init__(self, machine: Kernel) -> None:
        self._machine = machine

    def check_start(self, argv: Sequence[str]) -> None:
        """Raise StartError for a command that no container runtime can start."""
        if not argv:
            raise StartError(NOT_STARTED, "no command specified")
        word = argv[0]
        if self._machine.is_missing(word) or not names_program(word):
            raise StartError(NOT_STARTED, not_found(word))
        if "/" not in word:
            if word in OWN_WORDS and word not in PROGRAMS:
                raise StartError(NOT_STARTED, not_found(word))
            return
        path = posixpath.join(self._machine.cwd, word)
        files = self._machine.files
        if files.is_dir(path):
            raise StartError(NOT_STARTED, f'exec: "{word}": is a directory')
        if files.is_file(path):
            if not files.stat(path).mode & 0o111:
                raise StartError(NOT_STARTED, f'exec: "{word}": permission denied')
        elif self.is_of_model(path):
            raise StartError(NOT_STARTED, not_found(word))

    def is_of_model(self, path: str) -> bool:
        """Tell whether the model knows what is at a path: it lies in a volume, or in a directory
        that a process has made. Images have scripts of their own in ``/``."""
        files = self._machine.files
        path = posixpath.normpath(path)
        for mount in files.mounts:
            is_layer = mount.tree is files.root  # mounted over itself so that nobody writes to it
            if not is_layer and path.startswith(f"{mount.path.rstrip('/')}/"):
                return True
        folder = posixpath.dirname(path)
        if folder == "/":
            return False
        return folder == "/tmp" or (files.is_dir(folder) and bool(files.list(folder)))

    # --- carrying out

    def run(self, stack: Stack, frame: Frame) -> None:
        """Carry out a program that a frame names."""
        step = frame[STEP]
        if step == UNKNOWN:
            stack.pop(0)
        elif step == DELAYED:
            self._end_delayed(stack, frame)
        elif step == WAITING:
            stack.pop(self._machine.reap(frame[DATA]["pid"]))
        elif step == TIMED:
            self._end_timed(stack, frame)
        else:
            self._begin(stack, frame)

    def _begin(self, stack: Stack, frame: Frame) -> None:
        argv: list[str] = frame[DATA]["argv"]
        word = argv[0]
        name = program_name(word)
        if self._machine.is_missing(word):
            self._fail(stack, f"{word}: not found", NOT_FOUND)
        elif name in SHELLS:
            self._run_shell(stack, frame, argv)
        elif name in PROGRAMS:
            self._run_builtin(
                stack,
                frame,
                name,
                argv,
            )
        elif self._run_wrapped(
            stack,
            frame,
            name,
            argv,
        ) or self._run_stream(stack, frame, name, argv):
            return
        elif self._utility(name) is not None:
            self._run_utility(
                stack,
                frame,
                name,
                argv[1:],
            )
        elif "/" in word:
            self._run_file(stack, frame, argv)
        elif word in OWN_WORDS:
            self._fail(stack, f"{word}: not found", NOT_FOUND)
        else:
            stack.run_unknown(frame, word)

    def _utility(self, name: str) -> Any:
        from kubepy.shell.utilities import UTILITIES

        utility = UTILITIES.get(name)
        return utility() if utility is not None else None

    def _fail(self, stack: Stack, message: str, status: int) -> None:
        stack.complain(message)
        stack.pop(status)

    def _run_builtin(self, stack: Stack, frame: Frame, name: str, argv: list[str]) -> None:
        stack.pop()
        builtins.run(
            stack,
            builtins.BUILTINS[name],
            [name, *argv[1:]],
            {},
        )

    def _run_wrapped(self, stack: Stack, frame: Frame, name: str, argv: list[str]) -> bool:
        """Carry out a program that runs another one in its place. Return whether it is one."""
        wrapped = wrapped_command(name, argv[1:])
        if wrapped is None:
            return False
        env = {**(frame[DATA].get("env") or {}), **wrapped.variables}
        if wrapped.seconds is not None:
            self._run_timed(stack, frame, wrapped)
            return True
        data = {**frame[DATA], "argv": wrapped.argv, "env": env}
        if wrapped.unset == ():
            frame[DATA] = data
            return True
        child = self._machine.fork(stack.process)
        kept = [] if wrapped.unset is None else child.shell.exported
        child.shell.exported = [each for each in kept if each not in (wrapped.unset or ())]
        child.frames.append(["program", -1, -1, 0, {**data, "replaces": True}])
        frame[STEP] = WAITING
        frame[DATA] = {"pid": child.pid}
        stack.process.block = Block("child", pids=[child.pid])
        return True

    def _run_timed(self, stack: Stack, frame: Frame, wrapped: WrappedCommand) -> None:
        """Run a program that must end within a time."""
        child = self._machine.fork(stack.process)
        child.argv = list(wrapped.argv)
        data = {**frame[DATA], "argv": wrapped.argv, "replaces": True}
        child.frames.append(["program", -1, -1, 0, data])
        moment = self._machine.after(wrapped.seconds or 0.0)
        frame[STEP] = TIMED
        frame[DATA] = {"pid": child.pid, "signal": wrapped.signal, "is_late": False}
        stack.process.block = Block("child", moment=moment, pids=[child.pid])

    def _end_timed(self, stack: Stack, frame: Frame) -> None:
        """Take the status of a program that has ended in time, or end it."""
        data = frame[DATA]
        child = self._machine.processes.get(data["pid"])
        if child is None or not child.is_alive:
            status = self._machine.reap(data["pid"])
            stack.pop(TIMED_OUT if data["is_late"] else status)
            return
        data["is_late"] = True
        stack.process.block = Block("child", pids=[child.pid])
        self._machine.deliver(child, data["signal"], is_from_outside=True)

    def _run_stream(self, stack: Stack, frame: Frame, name: str, argv: list[str]) -> bool:
        """Carry out a program that must read while others write. Return whether it is one."""
        stream = STREAMS.get(name)
        if stream is None:
            return False
        try:
            status = stream(stack, frame, argv[1:])
        except NotAStream:
            return False
        if status is not None:
            stack.pop(status)
        return True

    def _run_utility(self, stack: Stack, frame: Frame, name: str, args: list[str]) -> None:
        process = stack.process
        call = self._invocation(
            stack,
            frame,
            name,
            args,
        )
        utility = self._utility(name)
        try:
            status = utility(call)
        except NeedsInput:
            process.block = Block("end", handle=process.handles[0])
            return
        except Unknown as error:
            stack.run_unknown(frame, f"{name} {error.what}".strip())
            return
        except FileError as error:
            call.err(f"{name}: {error.problem}\n")
            status = 1
        except Delay as delay:
            frame[STEP] = DELAYED
            frame[DATA] = {
                "status": delay.status,
                "out": delay.out.decode("latin-1"),
                "err": delay.err.decode("latin-1"),
            }
            process.block = Block("until", moment=self._machine.after(delay.seconds))
            status = 0
        if not call.is_steady:
            process.is_unsteady = True
        if frame[STEP] != DELAYED:
            stack.pop(status)
        self._machine.write(process, 1, bytes(call.stdout))
        if process.is_alive:
            errors = self._machine.in_its_words(name, bytes(call.stderr))
            self._machine.write(process, 2, errors)

    def _end_delayed(self, stack: Stack, frame: Frame) -> None:
        data = frame[DATA]
        stack.pop(data["status"])
        self._machine.write(stack.process, 1, data["out"].encode("latin-1"))
        if stack.process.is_alive:
            self._machine.write(stack.process, 2, data["err"].encode("latin-1"))

    def _invocation(self, stack: Stack, frame: Frame, name: str, args: list[str]) -> ProgramCall:
        machine = self._machine
        process = stack.process
        shell = process.shell
        env = {
            variable: shell.variables[variable]
            for variable in shell.exported
            if variable in shell.variables
        }
        env |= frame[DATA].get("env") or {}
        call = ProgramCall(
            name=name,
            args=args,
            stdin=b"",
            env=env,
            cwd=process.cwd,
            files=machine.files,
            now=machine.now,
            hostname=machine.hostname,
            surroundings=machine.noting_surroundings,
            user=machine.user,
            group=machine.group,
            groups=machine.groups,
            has_busybox=machine.has_busybox,
            pid=process.pid,
            random=machine.random,
            processes=self._listed(process, [name, *args]),
            started=self._began(),
        )
        call.stack = stack
        call.run = lambda argv, stdin: self._run_inner(call, argv, stdin)
        return call

    def _listed(self, caller: Process, argv: list[str]) -> list[ListedProcess]:
        """Return the processes, for ``ps``: with itself, where a shell runs it in its own."""
        machine = self._machine
        listed = machine.listed()
        if argv[0] == "ps" and program_name(caller.argv[0]) != "ps":
            offset = machine.pid_offset
            own = (machine.new_pid() + offset, caller.pid + offset, machine.user, " ".join(argv))
            listed.append(own)
        return sorted(listed, key=lambda process: process[0])

    def _began(self) -> datetime | None:
        main = self._machine.processes.get(1)
        return main.started if main is not None else None

    def _run_inner(
        self, call: ProgramCall, argv: list[str], stdin: bytes
    ) -> tuple[int, bytes, bytes]:
        """Run a program for another one, which takes its output."""
        name = program_name(argv[0])
        utility = self._utility(name)
        inner = Execution(
            name=name, args=argv[1:], stdin=stdin, env=call.env, cwd=call.cwd, files=call.files,
            now=call.now, hostname=call.hostname, surroundings=call.surroundings, user=call.user,
            group=call.group, groups=call.groups, has_busybox=call.has_busybox, pid=call.pid,
            random=call.random, run=call.run, processes=call.processes, started=call.started,
        )  # fmt: skip
        if utility is not None:
            status = utility(inner)
        else:
            status = self._run_apart(
                call,
                argv,
                stdin,
                inner,
            )
        call.is_steady = call.is_steady and inner.is_steady
        errors = self._machine.in_its_words(name, bytes(inner.stderr))
        return status, bytes(inner.stdout), errors

    def _run_apart(self, call: ProgramCall, argv: list[str], stdin: bytes, inner: Execution) -> int:
        """Run a shell or one of its words in a process of its own, which must end at once."""
        name = program_name(argv[0])
        if name not in SHELLS and name not in PROGRAMS:
            raise Unknown(argv[0])
        machine = self._machine
        pid = machine.start(
            argv,
            env=call.env,
            stdin=stdin,
            unknown_ends=0.0,
        )
        process = machine.processes[pid]
        process.cwd = call.cwd
        machine.run_apart(pid)
        end = machine.exit_of(pid)
        if end is None:
            machine.signal(pid, 9)
            raise Unknown(" ".join(argv))
        for part in machine.take_output(pid):
            target = inner.stdout if part.stream == "stdout" else inner.stderr
            target += part.data
        inner.is_steady = inner.is_steady and not process.is_unsteady
        machine.forget(pid)
        return end.code

    # --- shells and scripts

    def _run_file(self, stack: Stack, frame: Frame, argv: list[str]) -> None:
        """Carry out a file of the model."""
        word = argv[0]
        files = self._machine.files
        path = self._machine.absolute(stack.process, word)
        if not files.exists(path):
            if word.startswith(".") or self.is_of_model(path):
                self._fail(stack, f"{word}: not found", NOT_FOUND)
            else:
                stack.run_unknown(frame, word)
            return
        if files.is_dir(path) or not files.stat(path).mode & 0o111:
            self._fail(stack, f"{word}: Permission denied", NOT_EXECUTABLE)
            return
        text = files.read(path).decode("utf-8", "surrogateescape")
        words = ["sh"]
        if text.startswith("#!"):
            words = text[2:].partition("\n")[0].split()
            if words and posixpath.basename(words[0]) == "env":
                words = words[1:]
        if not words or posixpath.basename(words[0]) not in SHELLS:
            stack.run_unknown(frame, word)
            return
        self._run_shell(stack, frame, [*words, word, *argv[1:]])

    def _run_shell(self, stack: Stack, frame: Frame, argv: list[str]) -> None:
        """Carry out a shell, in this process where nothing comes after it."""
        process = stack.process
        if not frame[DATA].get("replaces"):
            child = self._machine.fork(process)
            child.argv = list(argv)
            data = {**frame[DATA], "argv": argv, "replaces": True}
            child.frames.append(["program", -1, -1, 0, data])
            frame[STEP] = WAITING
            frame[DATA] = {"pid": child.pid}
            process.block = Block("child", pids=[child.pid])
            return
        env = {
            name: process.shell.variables[name]
            for name in process.shell.exported
            if name in process.shell.variables
        }
        env |= frame[DATA].get("env") or {}
        name = program_name(argv[0]) or posixpath.basename(argv[0])
        shell = ShellState(
            variables=env,
            exported=sorted(env),
            zero=argv[0],
            main_pid=process.pid,
        )
        shell.umask = process.shell.umask
        shell.traps = {name: act for name, act in process.shell.traps.items() if not act}
        shell.has_braces = name in ("bash", "zsh", "ksh")
        process.shell = shell
        process.argv = list(argv)
        stack.pop()
        process.status = 0
        self._begin_script(stack, argv[1:])

    def _begin_script(self, stack: Stack, args: list[str]) -> None:
        """Find the script of a shell: after ``-c``, in a file, or on its input."""
        process = stack.process
        shell = process.shell
        is_command = False
        reads_input = False
        while args and args[0][:1] in ("-", "+") and len(args[0]) > 1:
            word = args.pop(0)
            if word == "--":
                break
            if word.startswith("--"):
                continue  # --login, --norc and the like change nothing here
            for letter in word[1:]:
                if letter == "c":
                    is_command = True
                elif letter == "s":
                    reads_input = True
                elif letter == "o" and args:
                    builtins.set_option(stack, args.pop(0), is_on=word[0] == "-")
                elif letter not in "il":
                    shell.options += letter
        if is_command and args:
            text = args.pop(0)
            if args:
                shell.zero = args.pop(0)
            shell.args = args
            if is_replaced_by(text):
                process.argv = text.split()
            stack.push_script(text)
            return
        if args and not reads_input:
            self._begin_file(stack, args)
            return
        shell.args = args
        if process.unknown_ends is None:
            process.unknown_ends = 0.0  # somebody types the next command, or has typed it
        stack.push(
            "input",
            -1,
            -1,
            "",
        )

    def _begin_file(self, stack: Stack, args: list[str]) -> None:
        shell = stack.process.shell
        path = self._machine.absolute(stack.process, args[0])
        try:
            text = self._machine.files.read(path).decode("utf-8", "surrogateescape")
        except FileError as error:
            problem = "No such file" if error.problem.startswith("No such") else error.problem
            if self._machine.files.exists(posixpath.dirname(path)) and not self.is_of_model(path):
                stack.push(
                    "unknown_script",
                    -1,
                    -1,
                    args[0],
                )
                return
            stack.complain(f"cannot open {args[0]}: {problem}")
            stack.exit(2 if problem == "No such file" else 126)
            return
        shell.zero = args[0]
        shell.args = args[1:]
        stack.push_script(text)


def all_input(machine: Kernel, process: Process) -> bytes:
    """Take all of the standard input of a process. Raises NeedsInput while more may come."""
    handle = machine.handle_of(process, 0)
    if handle is None:
        return b""
    data, is_over = machine.peek_input(handle)
    if not is_over and handle.kind == PIPE_END:
        raise NeedsInput
    machine.take_input(handle, len(data))
    return data
