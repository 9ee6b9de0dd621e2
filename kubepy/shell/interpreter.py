"""The interpreter: one step of one process.

What a process does is a stack of frames: lists that say which command is carried out, how far it
is, and what it holds. So a process can be put down as JSON between any two steps. A frame is
``[kind, script, node, step, data]``; a command that has ended leaves its exit status in the process
and is taken off the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubepy.lazy import lazy_imports
from kubepy.shell import builtins, globbing
from kubepy.shell.conditions import Condition, ConditionError
from kubepy.shell.expansion import ExpansionError, NeedsOutput, WordExpansion, element_name
from kubepy.shell.files import FileError
from kubepy.shell.processes import (
    FILE,
    NULL,
    PIPE_BEGIN,
    PIPE_END,
    SOURCE,
    Block,
    Frame,
    OpenFile,
)
from kubepy.shell.programs import Programs
from kubepy.shell.scope import FatalError, set_variable
from kubepy.shell.stack import DATA, KIND, NODE, SCRIPT, STEP, Stack
from kubepy.shell.syntax import Assignment, Redirect, ShellCommand, Word
from kubepy.shell.tracing import bash_trace, posix_trace

with lazy_imports():
    from kubepy.shell.utilities import endless

FAILED = 2  # the step of a compound command whose redirections have failed
# The outputs of process substitutions are files under /dev/fd, beginning with this number, and so
# many are kept.
LAST_DESCRIPTOR, SUBSTITUTED_FILES = 63, 50
BAD_DESCRIPTOR = "Bad file descriptor"


class ShellInterpreter(Stack):
    """Carries out the steps of one process of a machine."""

    # --- frames

    def push_node(self, script: int, number: int) -> None:
        """Put the command of a node on the stack."""
        node = self.machine.node(script, number)
        if node.redirects and node.kind != "simple":
            self.push("redirected", script, number)
        else:
            self.push(node.kind, script, number)

    def step(self) -> None:
        """Carry out one step of the uppermost command."""
        process = self.process
        frame = process.frames[-1]
        try:
            HANDLERS[frame[KIND]](self, frame)
        except NeedsOutput as need:
            self.capture(frame, need)
        except ExpansionError as error:
            self.die(error.message, self.status_of(error))
        except FatalError as error:
            self.die(error.message, error.status)

    def die(self, message: str, status: int) -> None:
        """End the shell with a message."""
        self.complain(message)
        self.exit(status)

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
        child.shell.is_tested = child.shell.has_braces and self.is_tested()
        null = self.machine.open(OpenFile(NULL))
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
        if frame[STEP] == 0:
            frame[DATA] = self.values_of(node, frame)
            frame[STEP] = 1
            if not frame[DATA]:
                self.process.status = 0
        if not frame[DATA]:
            self.pop()
            return
        set_variable(self.process, node.name, frame[DATA].pop(0))
        self.push_node(frame[SCRIPT], node.children[0])

    def values_of(self, node: ShellCommand, frame: Frame) -> list[str]:
        if not node.operators:
            return list(self.process.shell.args)
        expansion = self.expansion(frame)
        return [value for word in node.words for value in expansion.fields(word)]

    def on_arithmetic_for(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        first, condition, last = node.words
        expansion = self.expansion(frame)
        self.evaluate(expansion.text(first if frame[STEP] == 0 else last))
        goes_on = not condition or self.evaluate(expansion.text(condition)) != 0
        frame[STEP] = 1
        frame[DATA] = None
        if not goes_on:
            self.pop(0)
            return
        self.push_node(frame[SCRIPT], node.children[0])

    def on_case(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        if frame[STEP] == 2:
            self.pop()
            return
        bodies = self.chosen_bodies(node, self.expansion(frame))
        frame[STEP] = 2
        frame[DATA] = None
        if not bodies:
            self.process.status = 0
        for body in reversed(bodies):
            self.push_node(frame[SCRIPT], body)

    def chosen_bodies(self, node: ShellCommand, expansion: WordExpansion) -> list[int]:
        """Return the lists of ``case`` that are carried out."""
        subject = expansion.text(node.words[0])
        bodies: list[int] = []
        is_chosen = False
        for item in node.items:
            is_chosen = is_chosen or any(
                globbing.matches(subject, expansion.pattern(pattern)) for pattern in item.patterns
            )
            if is_chosen:
                bodies.append(item.body)
                if not item.falls_through:
                    break
        return bodies

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
            if self.ends_with_frame(("pipeline",)):
                self.pop()
                self.push_node(frame[SCRIPT], node.children[0])
                return
            child = self.machine.fork(self.process)
            child.shell.is_tested = self.is_tested()
            child.frames.append(["node", frame[SCRIPT], node.children[0], 0, None])
            frame[STEP] = 1
            frame[DATA] = child.pid
            self.process.block = Block("child", pids=[child.pid])
            return
        self.pop(self.machine.reap(frame[DATA]))
        self.check_errexit()

    def ends_with_frame(self, kinds: Sequence[str] = ("pipeline", "list")) -> bool:
        """Tell whether the process does nothing after its uppermost frame, as that of ``( … ) &``:
        it is the subshell itself, and signals to it reach the traps in there.

        :param kinds: the kinds of frames that may be below.
        """
        for kind, script, number, step, _ in self.process.frames[:-1]:
            if kind == "redirected":
                continue
            if kind not in kinds:
                return False
            node = self.machine.node(script, number)
            is_negated = kind == "pipeline" and bool(node.operators)
            if is_negated or step < len(node.children):
                return False
        return True

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

    def start_pipeline(self, frame: Frame, node: ShellCommand) -> list[int]:
        pids = []
        previous: int | None = None
        for index, child_node in enumerate(node.children):
            child = self.machine.fork(self.process)
            child.shell.is_tested = self.is_tested()
            if previous is not None:
                child.handles[0] = previous
            if index < len(node.children) - 1:
                pipe = self.machine.new_pipe()
                child.handles[1] = self.machine.open(OpenFile(PIPE_BEGIN, pipe=pipe))
                previous = self.machine.open(OpenFile(PIPE_END, pipe=pipe))
            child.frames.append(["node", frame[SCRIPT], child_node, 0, None])
            pids.append(child.pid)
        return pids

    def on_arithmetic(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        text = self.expansion(frame).text(node.words[0])
        self.pop(self.judge(text))
        self.check_errexit()

    def on_condition(self, frame: Frame) -> None:
        """Judge ``[[ … ]]``."""
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        expansion = self.expansion(frame)
        words: list[str] = []
        for word in node.words:
            takes_pattern = bool(words) and words[-1] in ("=", "==", "!=")
            words.append(expansion.pattern(word) if takes_pattern else expansion.text(word))
        self.trace([], ["[[", *words, "]]"], is_quoted=False)
        condition = Condition(
            words,
            self.machine.files,
            self.process.cwd,
            is_extended=True,
        )
        try:
            status = int(not condition.holds())
        except ConditionError as error:
            self.complain(error.message)
            status = 2
        if condition.groups is not None:
            self.set_elements("BASH_REMATCH", condition.groups)
        self.pop(status)
        self.check_errexit()

    def on_unknown(self, frame: Frame) -> None:
        """Carry out a construct of which nothing is known."""
        line = self.machine.node(frame[SCRIPT], frame[NODE]).line
        self.run_unknown(frame, f"a construct in line {line} of a script")

    # --- substitutions and redirections

    def expansion(self, frame: Frame) -> WordExpansion:
        """Return the expansion of the words of a command: it begins anew with each substitution
        that has ended, until all outputs are there."""
        waiting: dict[str, Any] = frame[DATA] or {}
        if "pid" in waiting:
            self.take_capture(waiting)
        if "before" in waiting:
            self.process.status = waiting["before"]
        self.changes = []
        return WordExpansion(self.scope(), waiting.get("outputs", ()))

    def capture(self, frame: Frame, need: NeedsOutput) -> None:
        """Start the substitution that an expansion needs. It sees what the expansion has set by
        now; this is then undone, for the expansion begins again."""
        machine = self.machine
        child = machine.fork(self.process)
        if child.shell.has_braces:  # in a substitution of bash set -e counts no more
            child.shell.options = child.shell.options.replace("e", "")
        for name, value in reversed(self.changes):
            self.restore_variables({name: value})
        pipe = machine.new_pipe()
        child.handles[1] = machine.open(OpenFile(PIPE_BEGIN, pipe=pipe))
        child.frames.append(["node", frame[SCRIPT], need.body, 0, None])
        if frame[DATA] is None:
            frame[DATA] = {"outputs": [], "before": self.process.status}
        frame[DATA]["pid"] = child.pid
        frame[DATA]["pipe"] = pipe
        frame[DATA]["is_file"] = need.is_file
        machine.captured_pipes.add(pipe)
        self.process.block = Block("child", pids=[child.pid])

    def take_capture(self, waiting: dict[str, Any]) -> None:
        """Take the output of a substitution that has ended."""
        status = self.machine.reap(waiting.pop("pid"))
        data = self.machine.drain(waiting.pop("pipe"))
        if waiting.pop("is_file"):
            path = self.substituted_file(data)
            waiting["outputs"].append([path, None])
            return
        text = data.replace(b"\0", b"").decode("utf-8", "surrogateescape").rstrip("\n")
        waiting["outputs"].append([text, status])
        waiting["status"] = status

    def substituted_file(self, data: bytes) -> str:
        """Return the path of a file with what a process substitution has printed."""
        shell = self.process.shell
        number = LAST_DESCRIPTOR - shell.files % SUBSTITUTED_FILES
        shell.files += 1
        path = f"/dev/fd/{number}"
        files = self.machine.files
        files.make_dir("/dev/fd", parents=True, now=self.machine.now)
        files.write(path, data, now=self.machine.now)
        return path

    def on_redirected(self, frame: Frame) -> None:
        """Carry out a compound command with redirections."""
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        if frame[STEP] > 0:
            self.restore_handles(frame[DATA])
            self.pop()
            if frame[STEP] == FAILED:
                self.check_errexit()
            return
        expansion = self.expansion(frame)
        targets = [expansion.text(redirect.word) for redirect in node.redirects]
        frame[DATA] = {str(number): handle for number, handle in self.process.handles.items()}
        frame[STEP] = 1
        if not self.redirect(node.redirects, targets):
            self.process.status = self.redirect_status
            frame[STEP] = FAILED
            return
        self.push(node.kind, frame[SCRIPT], frame[NODE])

    @property
    def redirect_status(self) -> int:
        """The exit status of a command whose redirection fails."""
        is_dash = not self.process.shell.has_braces and not self.machine.has_busybox
        return 2 if is_dash else 1

    def redirect(self, redirects: list[Redirect], targets: list[str]) -> bool:
        """Carry out redirections. Return whether they succeed; a problem is printed.

        :param targets: what the words of the redirections have become.
        """
        for redirect, target in zip(redirects, targets, strict=True):
            try:
                self.redirect_one(redirect, target)
            except FileError as error:
                self.complain(self.redirect_problem(redirect, target, error.problem))
                return False
        return True

    def redirect_problem(self, redirect: Redirect, target: str, problem: str) -> str:
        """Return what a shell says of a file that cannot be opened."""
        if self.process.shell.has_braces or problem == BAD_DESCRIPTOR:
            return f"{target}: {problem}"
        verb = "open" if redirect.operator in ("<", "<>") else "create"
        if problem == "No such file or directory":
            problem = "No such file" if verb == "open" else "Directory nonexistent"
        return f"cannot {verb} {target}: {problem}"

    def redirect_one(self, redirect: Redirect, text: str) -> None:
        machine = self.machine
        handles = self.process.handles
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
                    raise FileError(BAD_DESCRIPTOR)
                handles[number] = handles[int(text)]
            case ">&" | "&>" | "&>>":
                handles[1] = self.open_path(text, "&>>" if redirect.operator == "&>>" else ">")
                handles[2] = handles[1]
            case _:
                handles[number] = self.open_path(text, redirect.operator)

    def _endless(self, path: str) -> bytes:
        """Return the first bytes of a device that has no end."""
        if path == "/dev/zero":
            return bytes(endless.READ_AT_MOST)
        self.process.is_unsteady = True
        return bytes(int(self.machine.random() * 256) for _ in range(endless.READ_AT_MOST))

    def open_path(self, path: str, operator: str) -> int:
        machine = self.machine
        if operator == "<" and path in endless.ENDLESS:
            return machine.open_bytes(self._endless(path))
        if path in ("/dev/null", "/dev/zero"):
            return machine.open(OpenFile(NULL))
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
                return machine.open(OpenFile(SOURCE, path=absolute))
            machine.files.read(absolute)
            return machine.open(OpenFile(SOURCE, path=absolute))
        is_appended = operator in (">>", "&>>", "<>")
        mode = 0o666 & ~self.process.shell.umask
        mode_of_new = None if machine.files.exists(absolute) else mode
        if is_appended and machine.files.exists(absolute):
            machine.files.write(
                absolute,
                b"",
                now=machine.now,
                append=True,
            )
        else:
            machine.files.write(
                absolute,
                b"",
                now=machine.now,
                mode=mode_of_new,
            )
        return machine.open(OpenFile(FILE, path=absolute))

    # --- simple commands

    def on_simple(self, frame: Frame) -> None:
        node = self.machine.node(frame[SCRIPT], frame[NODE])
        expansion = self.expansion(frame)
        words = [field for word in node.words for field in expansion.fields(word)]
        words = self.without_alias(words)
        targets = self.targets_of(words, node, expansion)
        if targets is None:
            self.pop()
            self.check_errexit()
            return
        if not words:
            self.assign_only(
                frame,
                node,
                expansion,
                targets,
            )
            return
        variables = self.assigned(node.assignments, expansion)
        self.trace([*variables.items()], words)
        if self.ends_with_frame() and words[0] not in self.process.shell.functions:
            self.process.argv = words
        frame[KIND] = "restore"
        frame[DATA] = {str(number): handle for number, handle in self.process.handles.items()}
        if not self.redirect(node.redirects, targets):
            self.process.status = self.redirect_status
            if words[0] in builtins.SPECIAL and not self.process.shell.has_braces:
                self.exit(self.redirect_status)
            return
        if not node.redirects:
            frame[DATA] = None
        self.invoke(words, variables)

    def targets_of(
        self, words: list[str], node: ShellCommand, expansion: WordExpansion
    ) -> list[str] | None:
        """Return what the words of redirections become. Those of a program are expanded in its
        process: an error ends that process alone, and the result is None."""
        before = len(self.changes)
        try:
            targets = [expansion.text(redirect.word) for redirect in node.redirects]
        except ExpansionError as error:
            if not words or self.is_own_word(words[0]):
                raise
            self.complain(error.message)
            self.process.status = self.status_of(error)
            return None
        if words and self.process.shell.has_braces and not self.is_own_word(words[0]):
            for name, value in reversed(self.changes[before:]):
                self.restore_variables({name: value})
        return targets

    def is_own_word(self, word: str) -> bool:
        """Tell whether a command is carried out by the shell itself."""
        return word in builtins.BUILTINS or word in self.process.shell.functions

    def without_alias(self, words: list[str]) -> list[str]:
        aliases = self.process.shell.aliases
        if words and words[0] in aliases:
            return [*aliases[words[0]].split(), *words[1:]]
        return words

    def assign_only(
        self, frame: Frame, node: ShellCommand, expansion: WordExpansion, targets: list[str]
    ) -> None:
        """Set variables; the status is that of the last substitution."""
        variables: list[tuple[str, str]] = []
        for assignment in node.assignments:
            value = self.assign(assignment, expansion)
            variables.append((assignment.name, value))
        self.trace(variables)
        waiting: dict[str, Any] = frame[DATA] or {}
        self.pop()
        handles = dict(self.process.handles)
        is_redirected = self.redirect(node.redirects, targets)
        self.process.handles = handles
        if is_redirected:
            self.process.status = waiting.get("status", 0)
        else:
            self.process.status = self.redirect_status
        self.check_errexit()

    def assign(self, assignment: Assignment, expansion: WordExpansion) -> str:
        """Carry out an assignment, and return the new value."""
        name = assignment.name
        scope = self.scope()
        if assignment.elements is not None:
            return self.assign_elements(assignment, assignment.elements, expansion)
        if assignment.subscript:
            number = self.evaluate(expansion.text(assignment.subscript))
            name = element_name(name, number)
        value = expansion.text(assignment.word)
        if assignment.is_appended:
            value = (scope.get(name) or "") + value
        scope.assign(name, value)
        return value

    def assign_elements(
        self, assignment: Assignment, words: Sequence[Word], expansion: WordExpansion
    ) -> str:
        """Set the elements of an array, in place of those that there are or after them."""
        name = assignment.name
        scope = self.scope()
        values = [value for word in words for value in expansion.fields(word)]
        present = scope.element_names(name)
        begin = 0
        if assignment.is_appended and present:
            last = present[-1].removeprefix(name).strip("[]")
            begin = int(last or 0) + 1
        if not assignment.is_appended:
            self.set_elements(name, values)
        else:
            for number, value in enumerate(values, begin):
                scope.assign(element_name(name, number), value)
        return values[0] if values else ""

    def set_elements(self, name: str, values: Sequence[str]) -> None:
        """Set an array to these elements."""
        scope = self.scope()
        for present in scope.element_names(name):
            self.process.shell.variables.pop(present, None)
        for number, value in enumerate(values):
            scope.assign(element_name(name, number), value)

    def assigned(self, assignments: list[Assignment], expansion: WordExpansion) -> dict[str, str]:
        """Return the variables that a command gets. Each sees those before it."""
        if not assignments:
            return {}
        variables = self.process.shell.variables
        saved = {each.name: variables.get(each.name) for each in assignments}
        values = {each.name: self.assign(each, expansion) for each in assignments}
        self.restore_variables(saved)
        return values

    def trace(
        self,
        variables: Sequence[tuple[str, str]],
        words: Sequence[str] = (),
        *,
        is_quoted: bool = True,
    ) -> None:
        """Print a command and the variables that it sets, as ``set -x`` wants it."""
        shell = self.process.shell
        if "x" not in shell.options:
            return
        if shell.has_braces:
            text = bash_trace(variables, words, is_quoted=is_quoted)
        else:
            text = posix_trace(variables, words)
        self.machine.write(self.process, 2, text.encode("utf-8", "surrogateescape"))

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
            builtins.run(
                self,
                builtin,
                words,
                variables,
            )
            return
        self.push(
            "program",
            -1,
            -1,
            {"argv": words, "env": variables},
        )

    def on_variables(self, frame: Frame) -> None:
        """Put the variables back that a word of the shell had."""
        self.restore_variables(frame[DATA])
        self.pop()

    def call(self, function: list[int], words: list[str], variables: dict[str, str]) -> None:
        """Call a function."""
        shell = self.process.shell
        saved: dict[str, Any] = {"args": shell.args, "locals": {}}
        for name, value in variables.items():
            saved["locals"][name] = shell.variables.get(name)
            set_variable(self.process, name, value)
        shell.args = words[1:]
        self.push(
            "call",
            -1,
            -1,
            saved,
        )
        self.push_node(function[0], function[1])

    def on_call(self, frame: Frame) -> None:
        self.end_call(frame)
        self.pop()

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
        if not self.is_tested():
            self.exit(process.status)

    def is_tested(self) -> bool:
        """Tell whether the status of what is carried out is looked at by a condition."""
        process = self.process
        return process.shell.is_tested or any(map(self.is_condition, process.frames))

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
        Programs(self.machine).run(self, frame)

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
        """Carry out the next commands that a shell reads from its input: whoever types them goes on
        after a program of which nothing is known.

        bash leaves what comes after a command to that command; sh takes all that is there.
        """
        machine = self.machine
        process = self.process
        if process.unknown_ends is None:
            process.unknown_ends = 0.0
        handle = machine.handle_of(process, 0)
        if handle is None:
            self.pop()
            return
        data, is_over = machine.peek_input(handle)
        end = data.rfind(b"\n") + 1
        if process.shell.has_braces and end:
            end = data.find(b"\n") + 1
            is_over = is_over and end == len(data)
        elif is_over:
            end = len(data)
        machine.take_input(handle, end)
        text = frame[DATA] + data[:end].decode("utf-8", "surrogateescape")
        if text.strip():
            parsed = machine.parsed(machine.script(text))
            is_open = parsed.is_open or text.endswith("\\\n")
            if is_over or not (parsed.error or is_open):
                frame[DATA] = ""
                self.push_script(text)
                return
            frame[DATA] = text
        if is_over:
            self.pop()
        elif data.find(b"\n", end) < 0:
            process.block = Block("read", handle=process.handles[0], version=len(data) - end)


Handler = Callable[[ShellInterpreter, Frame], None]
HANDLERS: Mapping[str, Handler] = {
    name.removeprefix("on_"): getattr(ShellInterpreter, name)
    for name in vars(ShellInterpreter)
    if name.startswith("on_")
}
