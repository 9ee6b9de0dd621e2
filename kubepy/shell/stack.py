"""The stack of one process: the frames that say what it does.

A frame is ``[kind, script, node, step, data]``: the command that is carried out, how far it is, and
what it holds. A command that has ended leaves its exit status in the process and is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.shell.arithmetic import ExpressionError, evaluate
from kubepy.shell.expansion import ExpansionError
from kubepy.shell.kernel import Kernel
from kubepy.shell.processes import Block, Frame, Process
from kubepy.shell.scope import FatalError, ShellScope, set_variable

KIND, SCRIPT, NODE, STEP, DATA = range(5)


class Stack:
    """The frames of one process, and what the words of the shell need of it.

    :ivar changes: the variables that an expansion has set, and what they were before.
    """

    def __init__(self, machine: Kernel, process: Process) -> None:
        self.machine = machine
        self.process = process
        self.changes: list[tuple[str, str | None]] = []

    def push(self, kind: str, script: int, node: int, data: Any = None) -> None:
        """Put a command on the stack."""
        self.process.frames.append([kind, script, node, 0, data])

    def pop(self, status: int | None = None) -> None:
        """Take the uppermost command off the stack."""
        self.process.frames.pop()
        if status is not None:
            self.process.status = status

    def unwind(self, height: int) -> None:
        """Take commands off the stack down to a height; what they have changed is put back."""
        frames = self.process.frames
        while len(frames) > height:
            frame = frames.pop()
            if frame[KIND] in ("redirected", "restore") and frame[DATA]:
                self.restore_handles(frame[DATA])
            elif frame[KIND] == "call":
                self.end_call(frame)
            elif frame[KIND] == "variables":
                self.restore_variables(frame[DATA])

    def restore_handles(self, saved: Mapping[str, int]) -> None:
        self.process.handles = {int(number): handle for number, handle in saved.items()}

    def restore_variables(self, saved: Mapping[str, str | None]) -> None:
        """Give variables the values that they had; None for those that were not set."""
        variables = self.process.shell.variables
        for name, value in saved.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = value

    def set_for_builtin(self, variables: dict[str, str], *, is_kept: bool) -> None:
        """Set the variables before a word of the shell; most words lose them when they end."""
        shell = self.process.shell
        if is_kept:
            shell.exported = sorted({*shell.exported, *variables})
        else:
            saved = {name: shell.variables.get(name) for name in variables}
            self.push(
                "variables",
                -1,
                -1,
                saved,
            )
        for name, value in variables.items():
            set_variable(self.process, name, value)

    def end_call(self, frame: Frame) -> None:
        shell = self.process.shell
        shell.args = frame[DATA]["args"]
        self.restore_variables(frame[DATA]["locals"])

    def push_script(self, text: str) -> None:
        """Carry out a text: of ``eval``, a trap or a file."""
        script = self.machine.script(text)
        parsed = self.machine.parsed(script)
        if parsed.error:
            self.push("syntax_error", script, -1)
        self.push("list", script, parsed.main)

    def exit(self, status: int) -> None:
        """End the shell: the trap of EXIT is carried out first."""
        process = self.process
        self.unwind(0)
        action = process.shell.traps.pop("EXIT", "")
        process.status = status
        if action:
            process.exiting = status
            self.push_script(action)
        else:
            process.exiting = None
            self.machine.end(process, status)

    def status_of(self, error: ExpansionError) -> int:
        """Return the exit status of a shell that ends with an error."""
        if not self.process.shell.has_braces:
            return 2
        shell = self.process.shell
        is_subshell = self.process.pid != shell.main_pid
        return 127 if error.is_unset and not is_subshell and "e" not in shell.options else 1

    def complain(self, message: str) -> None:
        """Print a message of the shell itself."""
        line = self.line()
        zero = self.process.shell.zero
        separator = f"{zero}: {line}: "
        if self.process.shell.has_braces:
            separator = f"{zero}: line {line}: "
        elif (words := self.machine.in_words_of_ash(message)) is not None:
            separator = f"{zero}: "
            message = words
        self.machine.write(self.process, 2, f"{separator}{message}\n".encode())

    def line(self) -> int:
        """Return the line of the script that is carried out."""
        for frame in reversed(self.process.frames):
            if frame[SCRIPT] >= 0 and frame[NODE] >= 0:
                return self.machine.node(frame[SCRIPT], frame[NODE]).line
        return 1

    def scope(self) -> ShellScope:
        return ShellScope(self.machine, self.process, self.changes)

    def evaluate(self, text: str) -> int:
        """Return the value of an expression."""
        scope = self.scope()
        try:
            return evaluate(text, lambda name: scope.get(name) or "", scope.assign)
        except ExpressionError as error:
            raise FatalError(f"arithmetic expression: {error}") from None

    def judge(self, text: str) -> int:
        """Return the exit status of an expression that is a command; an error fails it."""
        try:
            return int(self.evaluate(text) == 0)
        except FatalError as error:
            self.complain(error.message)
            return 1

    def run_unknown(self, frame: Frame, what: str) -> None:
        """Carry out something of which nothing is known: it goes on, or ends after a while."""
        process = self.process
        if frame[STEP] == 9:
            self.pop(0)
            return
        self.machine.note_unknown(what)
        frame[STEP] = 9
        if process.unknown_ends is None:
            process.block = Block("never")
        else:
            process.block = Block("until", moment=self.machine.after(process.unknown_ends))
