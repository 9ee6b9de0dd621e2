"""The interpreter: one step of one process.

What a process does is a stack of frames: lists that say which command is carried out, how far it
is, and what it holds. So a process can be put down as JSON between any two steps. A frame is
``[kind, script, node, step, data]``; a command that has ended leaves its exit status in the process
and is taken off the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kubepy.shell import builtins, globbing
from kubepy.shell.arithmetic import ExpressionError, evaluate
from kubepy.shell.conditions import Condition, ConditionError
from kubepy.shell.expansion import Expansion, ExpansionError, substitutions
from kubepy.shell.files import FileError
from kubepy.shell.processes import (
    FILE,
    NULL,
    PIPE_BEGIN,
    PIPE_END,
    SOURCE,
    Block,
    Frame,
    Handle,
    Process,
)
from kubepy.shell.syntax import Assignment, Node, Redirect, Word

if TYPE_CHECKING:
    from kubepy.shell.files import FileSystem
    from kubepy.shell.machine import Machine

KIND, SCRIPT, NODE, STEP, DATA = range(5)
CLOSED = -1  # a descriptor that a redirection has closed


class FatalError(Exception):
    """An error with which a shell that is not interactive ends."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class ShellScope:
    """The variables of a process, as expansions see them."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.machine = machine
        self.process = process
        self.files: FileSystem = machine.files
        self.cwd = process.cwd
        self.args = process.shell.args
        self.has_braces = process.shell.has_braces
        self.fails_on_unset = "u" in process.shell.options
        self.status = process.status

    def get(self, name: str) -> str | None:
        """Return the value of a variable or of a special parameter."""
        shell = self.process.shell
        value = shell.variables.get(name)
        if value is not None:
            return value
        match name:
            case "?":
                return str(self.status)
            case "#":
                return str(len(shell.args))
            case "$":
                return str(shell.main_pid or self.process.pid)
            case "!":
                return str(shell.last_job) if shell.last_job else None
            case "-":
                return shell.options
            case "0":
                return shell.zero
            case "RANDOM":
                self.process.is_unsteady = True
                return str(int(self.machine.random() * 32768)) if shell.has_braces else None
            case "PWD":
                return self.process.cwd
            case "HOSTNAME":
                return self.machine.hostname if shell.has_braces else None
            case "PPID":
                return str(self.process.parent)
            case "SECONDS" if shell.has_braces:
                self.process.is_unsteady = True
                return str(int((self.machine.now - self.process.started).total_seconds()))
        if name.isdigit():
            number = int(name)
            return shell.args[number - 1] if number <= len(shell.args) else None
        return None

    def assign(self, name: str, value: str) -> None:
        """Set a variable."""
        set_variable(self.process, name, value)


def set_variable(process: Process, name: str, value: str) -> None:
    """Set a variable of a shell. Raises FatalError for one that is read-only."""
    if name in process.shell.readonly:
        raise FatalError(f"{name}: is read only")
    process.shell.variables[name] = value
    if "a" in process.shell.options and name not in process.shell.exported:
        process.shell.exported.append(name)


class Interpreter:
    """Carries out the steps of one process of a machine."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.machine = machine
        self.process = process
        self.status_before = 0  # of the command before one whose substitutions have ended

    # --- frames

    def push(self, kind: str, script: int, node: int, data: Any = None) -> None:
        """Put a command on the stack."""
        self.process.frames.append([kind, script, node, 0, data])

    def push_node(self, script: int, number: int) -> None:
        """Put the command of a node on the stack."""
        node = self.machine.node(script, number)
        if node.redirects and node.kind != "simple":
            self.push("redirected", script, number)
        else:
            self.push(node.kind, script, number)

    def pop(self, status: int | None = None) -> None:
        """Take the uppermost command off the stack."""
        self.process.frames.pop()
        if status is not None:
            self.process.status = status

    def step(self) -> None:
        """Carry out one step of the uppermost command."""
        process = self.process
        frame = process.frames[-1]
        try:
            HANDLERS[frame[KIND]](self, frame)
        except ExpansionError as error:
            self.die(error.message, 2)
        except FatalError as error:
            self.die(error.message, error.status)

    def die(self, message: str, status: int) -> None:
        """End the shell with a message."""
        self.complain(message)
        self.exit(status)

    def complain(self, message: str) -> None:
        """Print a message of the shell itself."""
        line = self.line()
        zero = self.process.shell.zero
        separator = f"{zero}: {line}: "
        if self.process.shell.has_braces:
            separator = f"{zero}: line {line}: "
        self.machine.write(self.process, 2, f"{separator}{message}\n".encode())

    def line(self) -> int:
        """Return the line of the script that is carried out."""
        for frame in reversed(self.process.frames):
            if frame[SCRIPT] >= 0 and frame[NODE] >= 0:
                return self.machine.node(frame[SCRIPT], frame[NODE]).line
        return 1

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

    def unwind(self, height: int) -> None:
        """Take commands off the stack down to a height; what they have changed is put back."""
        frames = self.process.frames
        while len(frames) > height:
            self.machine.captures.pop(f"{self.process.pid}/{len(frames)}", None)
            frame = frames.pop()
            if frame[KIND] in ("redirected", "restore") and frame[DATA]:
                self.restore_handles(frame[DATA])
            elif frame[KIND] == "call":
                self.end_call(frame)

    # --- lists and conditions

    def on_list(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        index = frame[STEP]
        if index >= len(node.children):
            self.pop(0 if not node.children else None)
            return
        frame[STEP] = index + 1
        child = node.children[index]
        if node.operators[index] == "&":
            self.start_job(frame[SCRIPT], child)
            return
        self.push_node(frame[SCRIPT], child)

    def start_job(self, script: int, number: int) -> None:
        """Start a command in the background; it reads nothing."""
        child = self.machine.fork(self.process)
        null = self.machine.open(Handle(NULL))
        child.handles[0] = null
        child.frames.append(["node", script, number, 0, None])
        shell = self.process.shell
        shell.jobs.append(child.pid)
        shell.last_job = child.pid
        self.process.status = 0

    def on_node(self, frame: Frame) -> None:
        """Carry out a node in place of this frame."""
        self.pop()
        self.push_node(frame[SCRIPT], frame[NODE])

    def on_and_or(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        index = frame[STEP]
        while 0 < index < len(node.children):
            operator = node.operators[index - 1]
            has_succeeded = self.process.status == 0
            if (operator == "&&") == has_succeeded:
                break
            index += 1
        if index >= len(node.children):
            self.pop()
            return
        frame[STEP] = index + 1
        self.push_node(frame[SCRIPT], node.children[index])

    def on_if(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        step = frame[STEP]
        count = len(node.children)
        if step % 2 == 1:  # a condition has been judged
            if self.process.status == 0:
                frame[STEP] = 2 * count + 2
                self.push_node(frame[SCRIPT], node.children[step])
                return
            step += 1
        if step >= 2 * count or step >= count:
            self.pop(None if step >= 2 * count else 0)
            return
        if step == count - 1:  # else
            frame[STEP] = 2 * count + 2
        else:
            frame[STEP] = step + 1
        self.push_node(frame[SCRIPT], node.children[step])

    def on_loop(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        condition, body = node.children
        if frame[STEP] == 0:
            frame[DATA] = 0 if frame[DATA] is None else self.process.status
            frame[STEP] = 1
            self.push_node(frame[SCRIPT], condition)
            return
        is_met = (self.process.status == 0) == (node.operators[0] == "while")
        if not is_met:
            self.pop(frame[DATA])
            return
        frame[STEP] = 0
        self.push_node(frame[SCRIPT], body)

    def on_for(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        if frame[DATA] is None:
            outputs = self.outputs_of(frame, node.words)
            if outputs is None:
                return
            frame[DATA] = self.values_of(node, outputs)
            self.process.status = 0
        if not frame[DATA]:
            self.pop()
            return
        set_variable(self.process, node.name, frame[DATA].pop(0))
        self.push_node(frame[SCRIPT], node.children[0])

    def values_of(self, node: Node, outputs: list[str]) -> list[str]:
        if not node.operators:
            return list(self.process.shell.args)
        expansion = self.expansion(outputs)
        return [value for word in node.words for value in expansion.fields(word)]

    def on_arithmetic_for(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        first, condition, last = node.words
        if frame[STEP] == 0:
            self.evaluate(first)
        else:
            self.evaluate(last)
        frame[STEP] = 1
        if condition and not self.evaluate(condition):
            self.pop(0)
            return
        self.push_node(frame[SCRIPT], node.children[0])

    def on_case(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        if frame[STEP] == 2:
            self.pop()
            return
        patterns = [pattern for item in node.items for pattern in item.patterns]
        outputs = self.outputs_of(frame, [*node.words, *patterns])
        if outputs is None:
            return
        expansion = self.expansion(outputs)
        subject = expansion.text(node.words[0])
        frame[STEP] = 2
        frame[DATA] = None
        is_matched = False
        bodies: list[int] = []
        for item in node.items:
            item_patterns = [expansion.pattern(pattern) for pattern in item.patterns]
            if is_matched or any(globbing.matches(subject, each) for each in item_patterns):
                bodies.append(item.body)
                is_matched = item.falls_through
                if not is_matched:
                    break
        if not bodies:
            self.process.status = 0
        elif outputs:
            self.process.status = self.status_before
        for body in reversed(bodies):
            self.push_node(frame[SCRIPT], body)

    def on_function(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        self.process.shell.functions[node.name] = [frame[SCRIPT], node.children[0]]
        self.pop(0)

    def on_group(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        self.pop()
        self.push_node(frame[SCRIPT], node.children[0])

    def on_subshell(self, frame: Frame) -> None:
        if frame[STEP] == 0:
            node = self.machine.node(frame[SCRIPT], frame[NODE])
            child = self.machine.fork(self.process)
            child.frames.append(["node", frame[SCRIPT], node.children[0], 0, None])
            frame[STEP] = 1
            frame[DATA] = child.pid
            self.process.block = Block("child", pids=[child.pid])
            return
        self.pop(self.machine.reap(frame[DATA]))
        self.check_errexit()

    def on_pipeline(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        is_negated = bool(node.operators)
        if frame[STEP] == 0:
            frame[STEP] = 1
            if len(node.children) == 1:
                self.push_node(frame[SCRIPT], node.children[0])
                return
            frame[DATA] = self.start_pipeline(frame, node)
            self.process.block = Block("child", pids=list(frame[DATA]))
            return
        status = self.process.status
        if frame[DATA]:
            statuses = [self.machine.reap(pid) for pid in frame[DATA]]
            status = statuses[-1]
            if self.process.shell.pipefail:
                failed = [each for each in statuses if each]
                status = failed[-1] if failed else 0
        if is_negated:
            status = int(status == 0)
        self.pop(status)
        if not is_negated and frame[DATA]:
            self.check_errexit()

    def start_pipeline(self, frame: Frame, node: Node) -> list[int]:
        pids = []
        previous: int | None = None
        for index, child_node in enumerate(node.children):
            child = self.machine.fork(self.process)
            if previous is not None:
                child.handles[0] = previous
            if index < len(node.children) - 1:
                pipe = self.machine.new_pipe()
                child.handles[1] = self.machine.open(Handle(PIPE_BEGIN, pipe=pipe))
                previous = self.machine.open(Handle(PIPE_END, pipe=pipe))
            child.frames.append(["node", frame[SCRIPT], child_node, 0, None])
            pids.append(child.pid)
        return pids

    def on_arithmetic(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        outputs = self.outputs_of(frame, node.words)
        if outputs is None:
            return
        text = self.expansion(outputs).text(node.words[0])
        self.pop(int(self.evaluate_text(text) == 0))
        self.check_errexit()

    def evaluate(self, word: Word) -> int:
        if not word:
            return 0
        return self.evaluate_text(self.expansion([]).text(word))

    def evaluate_text(self, text: str) -> int:
        scope = self.scope()
        try:
            return evaluate(text, lambda name: scope.get(name) or "", scope.assign)
        except ExpressionError as error:
            raise FatalError(f"arithmetic expression: {error}") from None

    def on_condition(self, frame: Frame) -> None:
        """Judge ``[[ … ]]``."""
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        outputs = self.outputs_of(frame, node.words)
        if outputs is None:
            return
        expansion = self.expansion(outputs)
        words: list[str] = []
        for word in node.words:
            takes_pattern = bool(words) and words[-1] in ("=", "==", "!=")
            words.append(expansion.pattern(word) if takes_pattern else expansion.text(word))
        condition = Condition(words, self.machine.files, self.process.cwd, is_extended=True)
        try:
            status = int(not condition.holds())
        except ConditionError as error:
            self.complain(error.message)
            status = 2
        self.pop(status)
        self.check_errexit()

    def on_unknown(self, frame: Frame) -> None:
        """Carry out a construct of which nothing is known."""
        line = self.machine.node(frame[SCRIPT], frame[NODE]).line
        self.run_unknown(frame, f"a construct in line {line} of a script")

    # --- substitutions and redirections

    def scope(self) -> ShellScope:
        return ShellScope(self.machine, self.process)

    def expansion(self, outputs: list[str]) -> Expansion:
        scope = self.scope()
        if outputs:
            scope.status = self.status_before
        return Expansion(scope, outputs)

    def outputs_of(self, frame: Frame, words: list[Word]) -> list[str] | None:
        """Return what the substitutions in some words have printed; None while one of them runs:
        the step is carried out again when it has ended."""
        bodies = [body for word in words for body in substitutions(word)]
        if not bodies:
            return []
        key = len(self.process.frames)
        waiting: dict[str, Any] = self.machine.captures.setdefault(f"{self.process.pid}/{key}", {})
        waiting.setdefault("status", self.process.status)
        outputs: list[str] = waiting.setdefault("outputs", [])
        if "pid" in waiting:
            outputs.append(self.captured(waiting))
        if len(outputs) < len(bodies):
            self.capture(frame[SCRIPT], bodies[len(outputs)], waiting)
            return None
        del self.machine.captures[f"{self.process.pid}/{key}"]
        self.status_before = waiting["status"]
        return outputs

    def capture(self, script: int, body: int, waiting: dict[str, Any]) -> None:
        child = self.machine.fork(self.process)
        pipe = self.machine.new_pipe()
        child.handles[1] = self.machine.open(Handle(PIPE_BEGIN, pipe=pipe))
        child.frames.append(["node", script, body, 0, None])
        waiting["pid"] = child.pid
        waiting["pipe"] = pipe
        self.machine.captured_pipes.add(pipe)
        self.process.block = Block("child", pids=[child.pid])

    def captured(self, waiting: dict[str, Any]) -> str:
        self.process.status = self.machine.reap(waiting.pop("pid"))
        data = self.machine.drain(waiting.pop("pipe"))
        return data.replace(b"\0", b"").decode("utf-8", "surrogateescape").rstrip("\n")

    def on_redirected(self, frame: Frame) -> None:
        """Carry out a compound command with redirections."""
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        if frame[STEP] == 1:
            self.restore_handles(frame[DATA])
            self.pop()
            return
        outputs = self.outputs_of(frame, [redirect.word for redirect in node.redirects])
        if outputs is None:
            return
        frame[DATA] = {str(number): handle for number, handle in self.process.handles.items()}
        frame[STEP] = 1
        if not self.redirect(node.redirects, self.expansion(outputs)):
            self.process.status = self.redirect_status
            return
        self.push(node.kind, frame[SCRIPT], frame[NODE])

    @property
    def redirect_status(self) -> int:
        """The exit status of a command whose redirection fails."""
        return 1 if self.process.shell.has_braces else 2

    def restore_handles(self, saved: Mapping[str, int]) -> None:
        self.process.handles = {int(number): handle for number, handle in saved.items()}

    def redirect(self, redirects: list[Redirect], expansion: Expansion) -> bool:
        """Carry out redirections. Return whether they succeed; a problem is printed."""
        for redirect in redirects:
            try:
                self.redirect_one(redirect, expansion)
            except FileError as error:
                path = expansion_text(redirect, expansion)
                verb = "create" if redirect.operator not in ("<", "<>") else "open"
                problem = error.problem
                if problem == "No such file or directory":
                    problem = "No such file" if verb == "open" else "Directory nonexistent"
                if self.process.shell.has_braces:
                    self.complain(f"{path}: {error.problem}")
                else:
                    self.complain(f"cannot {verb} {path}: {problem}")
                return False
        return True

    def redirect_one(self, redirect: Redirect, expansion: Expansion) -> None:
        machine = self.machine
        handles = self.process.handles
        text = expansion.text(redirect.word)
        number = redirect.descriptor
        match redirect.operator:
            case "<<":
                handles[number] = machine.open_text(text)
            case "<<<":
                handles[number] = machine.open_text(text + "\n")
            case "<&" | ">&" if text == "-":
                handles.pop(number, None)
            case "<&" | ">&" if text.isdigit():
                if int(text) not in handles:
                    raise FatalError(f"{text}: Bad file descriptor")
                handles[number] = handles[int(text)]
            case ">&" | "&>" | "&>>":
                handles[1] = self.open_path(text, "&>>" if redirect.operator == "&>>" else ">")
                handles[2] = handles[1]
            case _:
                handles[number] = self.open_path(text, redirect.operator)
        self.last_path = text

    last_path = ""

    def open_path(self, path: str, operator: str) -> int:
        machine = self.machine
        self.last_path = path
        if path in ("/dev/null", "/dev/zero"):
            return machine.open(Handle(NULL))
        for number, name in enumerate(("/dev/stdin", "/dev/stdout", "/dev/stderr")):
            if path in (name, f"/proc/self/fd/{number}", f"/dev/fd/{number}"):
                return self.process.handles.get(number, 0)
        if path in ("/proc/1/fd/1", "/proc/1/fd/2"):
            main = machine.processes.get(1)
            number = int(path[-1])
            if main is not None and number in main.handles:
                return main.handles[number]
        absolute = machine.absolute(self.process, path)
        if operator == "<":
            if machine.files.is_dir(absolute):
                return machine.open(Handle(SOURCE, path=absolute))
            machine.files.read(absolute)
            return machine.open(Handle(SOURCE, path=absolute))
        is_appended = operator in (">>", "&>>", "<>")
        mode = 0o666 & ~self.process.shell.umask
        mode_of_new = None if machine.files.exists(absolute) else mode
        if is_appended and machine.files.exists(absolute):
            machine.files.write(absolute, b"", now=machine.now, append=True)
        else:
            machine.files.write(absolute, b"", now=machine.now, mode=mode_of_new)
        return machine.open(Handle(FILE, path=absolute))

    # --- simple commands

    def on_simple(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        outputs = self.outputs_of(frame, [*_words_of(node)])
        if outputs is None:
            return
        has_outputs = bool(outputs)
        expansion = self.expansion(outputs)
        words = [field for word in node.words for field in expansion.fields(word)]
        words = self.without_alias(words)
        if not words:
            self.pop()
            self.assign_only(node, expansion, has_outputs=has_outputs)
            return
        variables = self.assigned(node.assignments, expansion)
        self.trace(words)
        frame[KIND] = "restore"
        frame[DATA] = {str(number): handle for number, handle in self.process.handles.items()}
        if not self.redirect(node.redirects, expansion):
            self.process.status = self.redirect_status
            if words[0] in builtins.SPECIAL and not self.process.shell.has_braces:
                self.exit(self.redirect_status)
            return
        if not node.redirects:
            frame[DATA] = None
        self.invoke(words, variables)

    def without_alias(self, words: list[str]) -> list[str]:
        aliases = self.process.shell.aliases
        if words and words[0] in aliases:
            return [*aliases[words[0]].split(), *words[1:]]
        return words

    def assign_only(self, node: Node, expansion: Expansion, *, has_outputs: bool) -> None:
        """Set variables; the status is that of the last substitution."""
        handles = dict(self.process.handles)
        for name, value in self.assigned(node.assignments, expansion).items():
            set_variable(self.process, name, value)
        is_redirected = self.redirect(node.redirects, expansion)
        self.process.handles = handles
        if not is_redirected:
            self.process.status = self.redirect_status
        elif not has_outputs:
            self.process.status = 0
        self.check_errexit()

    def assigned(self, assignments: list[Assignment], expansion: Expansion) -> dict[str, str]:
        values: dict[str, str] = {}
        scope = self.scope()
        for assignment in assignments:
            value = expansion.text(assignment.word)
            if assignment.is_appended:
                value = (scope.get(assignment.name) or "") + value
            values[assignment.name] = value
        return values

    def trace(self, words: list[str]) -> None:
        """Print a command, as ``set -x`` wants it."""
        if "x" not in self.process.shell.options:
            return
        text = " ".join(words)
        self.machine.write(self.process, 2, f"+ {text}\n".encode("utf-8", "surrogateescape"))

    def on_restore(self, frame: Frame) -> None:
        """Put the descriptors back that a command had redirected."""
        if frame[DATA]:
            self.restore_handles(frame[DATA])
        self.pop()
        self.check_errexit()

    def invoke(self, words: list[str], variables: dict[str, str]) -> None:
        """Carry out a command: a function, a word of the shell or a program."""
        process = self.process
        name = words[0]
        function = process.shell.functions.get(name)
        if function is not None and name not in builtins.SPECIAL:
            self.call(function, words, variables)
            return
        builtin = builtins.BUILTINS.get(name)
        if builtin is not None:
            self.run_builtin(builtin, words, variables)
            return
        self.push("program", -1, -1, {"argv": words, "env": variables})

    def run_builtin(
        self, builtin: builtins.Builtin, words: list[str], variables: dict[str, str]
    ) -> None:
        process = self.process
        saved = {name: process.shell.variables.get(name) for name in variables}
        for name, value in variables.items():
            set_variable(process, name, value)
        if words[0] in builtins.SPECIAL:
            saved = {}
        try:
            status = builtin(self, words[1:])
        except builtins.Usage as error:
            self.complain(f"{words[0]}: {error.message}")
            status = error.status
            if words[0] in builtins.SPECIAL and not process.shell.has_braces:
                raise FatalError("", status) from None
        for name, before in saved.items():
            if before is None:
                process.shell.variables.pop(name, None)
            else:
                process.shell.variables[name] = before
        if status is not None:
            process.status = status

    def call(self, function: list[int], words: list[str], variables: dict[str, str]) -> None:
        """Call a function."""
        shell = self.process.shell
        saved: dict[str, Any] = {"args": shell.args, "locals": {}}
        for name, value in variables.items():
            saved["locals"][name] = shell.variables.get(name)
            set_variable(self.process, name, value)
        shell.args = words[1:]
        self.push("call", -1, -1, saved)
        self.push_node(function[0], function[1])

    def on_call(self, frame: Frame) -> None:
        self.end_call(frame)
        self.pop()

    def end_call(self, frame: Frame) -> None:
        shell = self.process.shell
        shell.args = frame[DATA]["args"]
        for name, value in frame[DATA]["locals"].items():
            if value is None:
                shell.variables.pop(name, None)
            else:
                shell.variables[name] = value

    def push_script(self, text: str) -> None:
        """Carry out a text: of ``eval``, a trap or a file."""
        script = self.machine.script(text)
        parsed = self.machine.parsed(script)
        if parsed.error:
            self.push("syntax_error", script, -1)
        self.push("list", script, parsed.main)

    def on_syntax_error(self, frame: Frame) -> None:
        """End a shell at the place where its script is wrong."""
        parsed = self.machine.parsed(frame[SCRIPT])
        zero = self.process.shell.zero
        message = f"{zero}: {parsed.error_line}: Syntax error: {parsed.error}\n"
        self.machine.write(self.process, 2, message.encode())
        self.exit(2)

    def on_trapped(self, frame: Frame) -> None:
        """Go on after a trap with the status from before it."""
        self.pop(frame[DATA])

    def check_errexit(self) -> None:
        """End the shell after a command that has failed, where ``set -e`` wants it."""
        process = self.process
        if process.status == 0 or "e" not in process.shell.options:
            return
        if any(self.is_condition(frame) for frame in process.frames):
            return
        self.exit(process.status)

    def is_condition(self, frame: Frame) -> bool:
        """Tell whether the part of a command that is carried out is a condition."""
        kind = frame[KIND]
        if kind not in ("if", "loop", "and_or", "pipeline"):
            return False
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        if kind == "if":
            return bool(frame[STEP] % 2 == 1 and frame[STEP] <= len(node.children))
        if kind == "loop":
            return bool(frame[STEP] == 1)
        if kind == "pipeline":
            return bool(node.operators)
        return bool(frame[STEP] < len(node.children))

    # --- programs

    def on_program(self, frame: Frame) -> None:
        """Carry out a program, in this process or in one of its own."""
        self.machine.programs.run(self, frame)

    def on_read(self, frame: Frame) -> None:
        """Go on with ``read``."""
        builtins.on_read(self, frame)

    def on_wait(self, frame: Frame) -> None:
        """Go on with ``wait``."""
        builtins.on_wait(self, frame)

    def on_sourced(self, frame: Frame) -> None:
        """End a script that was read in."""
        self.pop()

    def on_unknown_script(self, frame: Frame) -> None:
        """Carry out a script of an image, of which nothing is known."""
        self.run_unknown(frame, frame[DATA])

    def on_input(self, frame: Frame) -> None:
        """Carry out the next commands that a shell reads from its input."""
        machine = self.machine
        process = self.process
        handle = machine.handle_of(process, 0)
        if handle is None:
            self.pop()
            return
        data, is_over = machine.peek_input(handle)
        end = data.rfind(b"\n") + 1
        if is_over:
            end = len(data)
        machine.take_input(handle, end)
        text = frame[DATA] + data[:end].decode("utf-8", "surrogateescape")
        if text.strip():
            parsed = machine.parsed(machine.script(text))
            if not parsed.error or is_over:
                frame[DATA] = ""
                self.push_script(text)
                return
            frame[DATA] = text
        if is_over:
            self.pop()
            return
        process.block = Block("read", handle=process.handles[0], version=len(data) - end)

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


def _words_of(node: Node) -> Iterator[Word]:
    """Yield the words of a simple command in the order of their expansion."""
    yield from node.words
    for assignment in node.assignments:
        yield assignment.word
    for redirect in node.redirects:
        yield redirect.word


def expansion_text(redirect: Redirect, expansion: Expansion) -> str:
    """Return the path of a redirection for a message; one with substitutions is not run again."""
    if any(True for _ in substitutions(redirect.word)):
        return ""
    return expansion.text(redirect.word)


Handler = Callable[[Interpreter, Frame], None]
HANDLERS: Mapping[str, Handler] = {
    name.removeprefix("on_"): getattr(Interpreter, name)
    for name in vars(Interpreter)
    if name.startswith("on_")
}
