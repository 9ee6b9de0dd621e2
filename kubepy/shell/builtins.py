"""The words of the shell that it carries out itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from kubepy.shell.conditions import Condition, ConditionError
from kubepy.shell.files import FileError
from kubepy.shell.formatting import FormatError, format_text, unescape
from kubepy.shell.processes import SIGNAL_NAMES, SIGNALS, Block, loop_heights
from kubepy.shell.scope import FatalError
from kubepy.shell.stack import Stack
from kubepy.shell.words import is_known_program

SPECIAL = frozenset(
    {".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
     "shift", "times", "trap", "unset"}
)  # fmt: skip
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DURATION = re.compile(r"(\d+\.?\d*|\.\d+)([smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
Builtin = Callable[[Stack, list[str]], "int | None"]


class BadUsage(Exception):
    """A builtin that was called wrongly."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def _out(stack: Stack, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    stack.machine.write(stack.process, 1, data)


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text.strip()):
        raise BadUsage(f"Illegal number: {text}")
    return int(text)


def _status(stack: Stack, text: str) -> int:
    """Return an exit status; dash takes none below 0."""
    number = _number(text)
    if number < 0 and not stack.process.shell.has_braces:
        raise BadUsage(f"Illegal number: {text}")
    return number & 255


# --- nothing, truth, output


def colon(stack: Stack, args: list[str]) -> int:
    """Do nothing."""
    return 0


def false(stack: Stack, args: list[str]) -> int:
    """Fail."""
    return 1


def echo(stack: Stack, args: list[str]) -> int:
    """Print words. dash takes ``-n`` and backslashes, bash ``-n``, ``-e`` and ``-E``."""
    has_newline = True
    shell = stack.process.shell
    unescapes = not shell.has_braces
    is_asked = False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        if not shell.has_braces and args[0] != "-n" and not args[0].startswith("-e"):
            break
        for letter in args.pop(0)[1:]:
            if letter == "n":
                has_newline = False
            else:
                unescapes = letter == "e"
                is_asked = unescapes
    text = " ".join(args)
    if unescapes:
        text, is_cut = unescape(text, has_hexadecimal=is_asked)
        has_newline = has_newline and not is_cut
    _out(stack, text + ("\n" if has_newline else ""))
    return 0


def printf(stack: Stack, args: list[str]) -> int:
    """Print by a format."""
    variable = ""
    if args[:1] == ["-v"] and len(args) > 2:
        variable = args[1]
        args = args[2:]
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        raise BadUsage("usage: printf format [arg ...]")
    try:
        text, problems = format_text(args[0], args[1:])
    except FormatError as error:
        raise BadUsage(str(error), 1) from None
    if variable:
        stack.scope().assign(variable, text)
    else:
        _out(stack, text)
    for problem in problems:
        stack.complain(f"printf: {problem}")
    return int(bool(problems))


def test(stack: Stack, args: list[str]) -> int:
    """Judge a condition."""
    condition = Condition(args, stack.machine.files, stack.process.cwd)
    try:
        return int(not condition.holds())
    except ConditionError as error:
        stack.complain(f"test: {error.message}")
        return 2


def bracket(stack: Stack, args: list[str]) -> int:
    """Judge a condition in brackets."""
    if args[-1:] != ["]"]:
        raise BadUsage("missing ]")
    condition = Condition(args[:-1], stack.machine.files, stack.process.cwd)
    try:
        return int(not condition.holds())
    except ConditionError as error:
        stack.complain(f"[: {error.message}")
        return 2


# --- where a shell is


def cd(stack: Stack, args: list[str]) -> int:
    """Change the working directory."""
    process = stack.process
    scope = stack.scope()
    args = [arg for arg in args if arg not in ("-P", "-L", "--")]
    target = args[0] if args else scope.get("HOME") or "/root"
    is_back = target == "-"
    if is_back:
        target = scope.get("OLDPWD") or process.cwd
    path = posixpath.normpath(posixpath.join(process.cwd, target))
    if path.startswith("//"):
        path = path[1:]
    files = stack.machine.files
    if not files.is_dir(path):
        if process.shell.has_braces:
            problem = "Not a directory" if files.exists(path) else "No such file or directory"
            raise BadUsage(f"{target}: {problem}", 1)
        raise BadUsage(f"can't cd to {target}")
    process.shell.variables["OLDPWD"] = process.cwd
    process.shell.variables["PWD"] = path
    process.cwd = path
    if is_back:
        _out(stack, f"{path}\n")
    return 0


def pwd(stack: Stack, args: list[str]) -> int:
    """Print the working directory."""
    _out(stack, f"{stack.process.cwd}\n")
    return 0


# --- control


def exit_(stack: Stack, args: list[str]) -> int | None:
    """End the shell."""
    process = stack.process
    status = process.status if process.exiting is None else process.exiting
    if args:
        status = _status(stack, args[0])
        if not process.shell.has_braces:
            status = _number(args[0])  # a trap of dash sees all of it
    stack.exit(status)
    return None


def return_(stack: Stack, args: list[str]) -> int | None:
    """End a function or a script that was read in."""
    process = stack.process
    status = _status(stack, args[0]) if args else process.status
    for height in range(len(process.frames) - 1, -1, -1):
        kind = process.frames[height][0]
        if kind in ("call", "sourced"):
            stack.unwind(height)
            process.status = status
            return None
    stack.exit(status)
    return None


def break_(stack: Stack, args: list[str]) -> int | None:
    """End loops."""
    return _leave_loops(stack, args, goes_on=False)


def continue_(stack: Stack, args: list[str]) -> int | None:
    """Begin the next round of a loop."""
    return _leave_loops(stack, args, goes_on=True)


def _leave_loops(stack: Stack, args: list[str], *, goes_on: bool) -> int | None:
    process = stack.process
    count = _number(args[0]) if args else 1
    if count < 1:
        raise BadUsage(f"Illegal number: {count}")
    heights = loop_heights(process.frames)
    if count > len(heights) and process.shell.outer_loops and not process.shell.has_braces:
        stack.exit(0)  # dash leaves a subshell in a loop
        return None
    if not heights:
        return 0
    height = heights[min(count, len(heights)) - 1]
    stack.unwind(height + 1)
    process.status = 0
    if not goes_on:
        loop = process.frames[height]
        stack.unwind(height)
        if loop[0] == "loop" and loop[3] == 1:
            process.status = 0
    elif process.frames[height][0] == "loop":
        process.frames[height][3] = 0
    return None


def eval_(stack: Stack, args: list[str]) -> int | None:
    """Carry out words as a script."""
    text = " ".join(args)
    if not text.strip():
        return 0
    stack.push_script(text)
    return None


def source(stack: Stack, args: list[str]) -> int | None:
    """Carry out a file in this shell."""
    if not args:
        raise BadUsage("filename argument required")
    machine = stack.machine
    path = machine.absolute(stack.process, args[0])
    try:
        text = machine.files.read(path).decode("utf-8", "surrogateescape")
    except FileError as error:
        problem = error.problem if "/" in args[0] else "not found"
        raise BadUsage(f"{args[0]}: {problem}") from None
    stack.push("sourced", -1, -1)
    stack.push_script(text)
    return None


def exec_(stack: Stack, args: list[str]) -> int | None:
    """Become a program; without one keep the redirections."""
    process = stack.process
    frame = process.frames[-1]
    if not args:
        frame[4] = None
        return 0
    frame[4] = None
    process.frames.clear()
    process.argv = list(args)
    process.shell.traps = {name: act for name, act in process.shell.traps.items() if not act}
    stack.push(
        "program",
        -1,
        -1,
        {"argv": list(args), "env": {}, "replaces": True},
    )
    return None


# --- variables


def export(stack: Stack, args: list[str]) -> int:
    """Give variables to programs."""
    shell = stack.process.shell
    names = [arg for arg in args if arg not in ("-p", "-n", "--")]
    if not names:
        for name in sorted(shell.exported):
            if name in shell.variables:
                _out(stack, f"export {name}='{shell.variables[name]}'\n")
    for arg in names:
        name = _declare(stack, arg)
        if "-n" in args:
            shell.exported = [each for each in shell.exported if each != name]
        elif name not in shell.exported:
            shell.exported.append(name)
    return 0


def _declare(stack: Stack, arg: str) -> str:
    name, separator, value = arg.partition("=")
    if not NAME.fullmatch(name):
        raise BadUsage(f"{name}: bad variable name")
    if separator:
        stack.scope().assign(name, value)
    return name


def readonly(stack: Stack, args: list[str]) -> int:
    """Keep variables from being changed."""
    shell = stack.process.shell
    for arg in args:
        if arg == "-p":
            continue
        name = _declare(stack, arg)
        if name not in shell.readonly:
            shell.readonly.append(name)
    return 0


def local(stack: Stack, args: list[str]) -> int:
    """Keep variables within a function."""
    process = stack.process
    call: list[Any] | None = None
    for frame in reversed(process.frames):
        if frame[0] == "call":
            call = frame
            break
    for arg in args:
        if arg.startswith("-"):
            continue
        name = arg.partition("=")[0]
        if call is not None:
            call[4]["locals"].setdefault(name, process.shell.variables.get(name))
        if "=" in arg:
            _declare(stack, arg)
        elif call is not None and process.shell.has_braces:
            process.shell.variables.pop(name, None)
    return 0


def unset(stack: Stack, args: list[str]) -> int:
    """Forget variables or functions."""
    shell = stack.process.shell
    is_function = args[:1] == ["-f"]
    for name in args:
        if name in ("-f", "-v"):
            continue
        if name in shell.readonly:
            raise BadUsage(f"{name}: is read only")
        if is_function:
            shell.functions.pop(name, None)
        else:
            shell.variables.pop(name, None)
            shell.exported = [each for each in shell.exported if each != name]
    return 0


def shift(stack: Stack, args: list[str]) -> int:
    """Drop the first arguments."""
    shell = stack.process.shell
    count = _number(args[0]) if args else 1
    if count > len(shell.args):
        raise BadUsage("can't shift that many")
    shell.args = shell.args[count:]
    return 0


def set_(stack: Stack, args: list[str]) -> int:
    """Set options and arguments."""
    shell = stack.process.shell
    if not args:
        for name in sorted(shell.variables):
            _out(stack, f"{name}='{shell.variables[name]}'\n")
        return 0
    position = 0
    while position < len(args):
        arg = args[position]
        if arg == "--":
            shell.args = args[position + 1 :]
            return 0
        if arg in ("-o", "+o") and position + 1 < len(args):
            set_option(stack, args[position + 1], is_on=arg == "-o")
            position += 2
        elif len(arg) > 1 and arg[0] in "-+":
            _set_letters(
                stack,
                arg,
                args,
                position,
            )
            position += 2 if arg.endswith("o") and position + 1 < len(args) else 1
        else:
            shell.args = args[position:]
            return 0
    return 0


def _set_letters(stack: Stack, arg: str, args: list[str], position: int) -> None:
    """Set options by their letters; an ``o`` at the end takes a name."""
    shell = stack.process.shell
    for letter in arg[1:]:
        if letter == "o":
            if position + 1 < len(args):
                set_option(stack, args[position + 1], is_on=arg[0] == "-")
        elif arg[0] == "+":
            shell.options = shell.options.replace(letter, "")
        elif letter not in "aefhuxvnCbm":
            raise BadUsage(f"Illegal option -{letter}")
        elif letter not in shell.options:
            shell.options += letter


OPTION_LETTERS = {"errexit": "e", "nounset": "u", "xtrace": "x", "allexport": "a", "noglob": "f"}


def set_option(stack: Stack, name: str, *, is_on: bool) -> None:
    """Set an option by its name. Raises Usage."""
    shell = stack.process.shell
    if name == "pipefail":
        shell.pipefail = is_on
        return
    letter = OPTION_LETTERS.get(name)
    if letter is None:
        if name in ("posix", "errtrace", "functrace", "noclobber", "monitor", "vi", "emacs"):
            return
        raise BadUsage(f"Illegal option -o {name}")
    shell.options = shell.options.replace(letter, "")
    if is_on:
        shell.options += letter


def getopts(stack: Stack, args: list[str]) -> int:
    """Take the next option of the arguments."""
    if len(args) < 2:
        raise BadUsage("usage: getopts optstring var [arg]")
    letters, name = args[0], args[1]
    scope = stack.scope()
    shell = stack.process.shell
    words = args[2:] or shell.args
    index = int(scope.get("OPTIND") or 1)
    position = shell.getopts[1] if shell.getopts[0] == index else 0
    if index > len(words) or (position == 0 and not re.match(r"-[^-]", words[index - 1])):
        if index <= len(words) and words[index - 1] == "--":
            index += 1
        scope.assign("OPTIND", str(index))
        scope.assign(name, "?")
        return 1
    word = words[index - 1]
    letter = word[position + 1]
    position += 1
    is_silent = letters.startswith(":")
    found = letters.find(letter, 1 if is_silent else 0)
    value = None
    if found >= 0 and letters[found + 1 : found + 2] == ":":
        value = word[position + 1 :]
        position = 0
        index += 1
        if not value:
            if index > len(words):
                scope.assign("OPTIND", str(index))
                scope.assign(name, ":" if is_silent else "?")
                scope.assign("OPTARG", letter if is_silent else "")
                if not is_silent:
                    stack.complain(f"No arg for -{letter} option")
                return 0
            value = words[index - 1]
            index += 1
    elif position + 1 >= len(word):
        position = 0
        index += 1
    shell.getopts = [index, position]
    scope.assign("OPTIND", str(index))
    if found < 0:
        scope.assign(name, "?")
        scope.assign("OPTARG", letter if is_silent else "")
        if not is_silent:
            stack.complain(f"Illegal option -{letter}")
        return 0
    scope.assign(name, letter)
    scope.assign("OPTARG", value or "")
    return 0


def read(stack: Stack, args: list[str]) -> int | None:
    """Read a line into variables."""
    is_raw = False
    end = "\n"
    names = []
    words = list(args)
    while words:
        word = words.pop(0)
        if word == "-r":
            is_raw = True
        elif word in ("-p", "-t", "-n", "-N", "-u") and words:
            words.pop(0)
        elif word == "-d" and words:
            end = words.pop(0)[:1] or "\0"
        elif word.startswith("-") and len(word) > 1:
            is_raw = is_raw or "r" in word
        else:
            names.append(word)
    stack.push(
        "read",
        -1,
        -1,
        [names, is_raw, end],
    )
    return None


def _read_line(stack: Stack, end: bytes, *, is_raw: bool) -> tuple[bytes, bool] | None:
    """Return a line without its end, and whether it had one; None while more may come."""
    machine = stack.machine
    handle = machine.handle_of(stack.process, 0)
    if handle is None:
        return b"", False
    data, is_over = machine.peek_input(handle)
    position = 0
    line = bytearray()
    while position < len(data):
        character = data[position : position + 1]
        if character == end:
            machine.take_input(handle, position + 1)
            return bytes(line), True
        if character == b"\\" and not is_raw:
            following = data[position + 1 : position + 2]
            if following != b"\n":
                line += b"\\" + following
            position += 2
            continue
        line += character
        position += 1
    if not is_over:
        return None
    machine.take_input(handle, len(data))
    return bytes(line), False


def on_read(stack: Stack, frame: list[Any]) -> None:
    """Go on with ``read``."""
    names, is_raw, end = frame[4]
    found = _read_line(stack, end.encode(), is_raw=is_raw)
    if found is None:
        handle = stack.process.handles[0]
        stack.process.block = Block("read", handle=handle, version=_waiting(stack))
        return
    line, had_end = found
    text = line.decode("utf-8", "surrogateescape")
    scope = stack.scope()
    _assign_fields(
        scope,
        names or ["REPLY"],
        text,
        is_raw=is_raw,
    )
    stack.pop(int(not had_end))


def _waiting(stack: Stack) -> int:
    handle = stack.machine.handle_of(stack.process, 0)
    if handle is None:
        return 0
    return len(stack.machine.peek_input(handle)[0])


def _assign_fields(scope: Any, names: list[str], text: str, *, is_raw: bool) -> None:
    """Give the fields of a line to variables; the last one gets the rest."""
    ifs = scope.get("IFS")
    separators = " \t\n" if ifs is None else ifs
    blanks = "".join(each for each in separators if each in " \t\n")
    rest = text.lstrip(blanks) if blanks else text
    for index, name in enumerate(names):
        if index == len(names) - 1:
            value = rest.rstrip(blanks) if blanks else rest
            if len(names) > 1:
                value = _without_end(value, separators, blanks)
        else:
            value, rest = _first_field(
                rest,
                separators,
                blanks,
                is_raw=is_raw,
            )
        scope.assign(name, value if is_raw else re.sub(r"\\(.)", r"\1", value))


def _without_end(value: str, separators: str, blanks: str) -> str:
    """Return the rest of a line without the separator that ends its only field."""
    last = value[-1:]
    if not last or last not in separators or last in blanks:
        return value
    rest = value[:-1]
    has_more = any(each in separators for each in rest)
    return value if has_more else rest


def _first_field(text: str, separators: str, blanks: str, *, is_raw: bool) -> tuple[str, str]:
    position = 0
    while position < len(text):
        if text[position] == "\\" and not is_raw:
            position += 2
            continue
        if text[position] in separators:
            break
        position += 1
    value = text[:position]
    rest = text[position:]
    stripped = rest.lstrip(blanks) if blanks else rest
    if stripped and stripped[0] in separators and stripped[0] not in blanks:
        stripped = stripped[1:].lstrip(blanks) if blanks else stripped[1:]
    return value, stripped


# --- signals, jobs, time


def trap(stack: Stack, args: list[str]) -> int:
    """Set what a signal does."""
    shell = stack.process.shell
    args = [arg for arg in args if arg != "--"]
    if not args or args == ["-p"]:
        for name, command_text in shell.traps.items():
            _out(stack, f"trap -- '{command_text}' {name}\n")
        return 0
    if args[0] == "-l":
        return 0
    action: str | None = args[0]
    names = args[1:]
    if not names:
        names = [args[0]]
        action = None
    elif args[0] == "-":
        action = None
    for text in names:
        name = signal_name(text)
        if not name:
            raise BadUsage(f"{text}: bad trap", 1)
        if action is None:
            shell.traps.pop(name, None)
        else:
            shell.traps[name] = action
    return 0


def signal_name(text: str) -> str:
    """Return the name of a signal that is given by name or number; "" for none."""
    if text.isdigit():
        return "EXIT" if text == "0" else SIGNAL_NAMES.get(int(text), "")
    name = text.upper().removeprefix("SIG")
    if name in SIGNALS or name in ("EXIT", "ERR", "DEBUG"):
        return name
    return ""


def kill(stack: Stack, args: list[str]) -> int:
    """Send a signal to processes."""
    number = SIGNALS["TERM"]
    words = list(args)
    if words[:1] == ["-l"]:
        _out(stack, " ".join(SIGNALS) + "\n")
        return 0
    if words[:1] in (["-s"], ["-n"]) and len(words) > 1:
        words = [f"-{words[1]}", *words[2:]]
    if words and words[0].startswith("-") and words[0] != "--":
        name = signal_name(words.pop(0)[1:])
        if not name:
            raise BadUsage("invalid signal number or name", 1)
        number = 0 if name == "EXIT" else SIGNALS[name]
    status = 0
    for word in words:
        if word == "--":
            continue
        pid = _pid_of(stack, word)
        if pid == 1 and stack.machine.has_sandbox:
            continue  # the program of the sandbox, which does nothing
        machine, process = stack.machine.process_at(abs(pid))
        if process is None or not process.is_alive:
            stack.complain("kill: No such process")
            status = 1
        elif number:
            machine.deliver(process, number)
    return status


def killall(stack: Stack, args: list[str]) -> int:
    """Send a signal to all other processes with some names."""
    number = SIGNALS["TERM"]
    names = [word for word in args if word not in ("-q", "--")]
    is_quiet = "-q" in args
    if names[:1] == ["-s"] and len(names) > 1:
        names = [f"-{names[1]}", *names[2:]]
    if names and names[0].startswith("-"):
        signal = signal_name(names.pop(0)[1:])
        if not signal:
            raise BadUsage("invalid signal number or name", 1)
        number = SIGNALS[signal]
    if not names:
        raise BadUsage("you need to specify whom to kill", 1)
    machine = stack.machine
    status = 0
    for name in names:
        named = [
            process
            for process in machine.processes.values()
            if process.is_alive and posixpath.basename(process.argv[0]) == name
        ]
        others = [process for process in named if process is not stack.process]
        for process in others:
            machine.deliver(process, number)
        if not others:
            status = 1
            if not is_quiet:
                stack.complain(f"{name}: no process killed")
    return status


def _pid_of(stack: Stack, word: str) -> int:
    if word.startswith("%"):
        jobs = stack.process.shell.jobs
        index = int(word[1:]) - 1 if word[1:].isdigit() else len(jobs) - 1
        if 0 <= index < len(jobs):
            return jobs[index]
        raise BadUsage(f"No such job: {word}")
    return _number(word)


def wait(stack: Stack, args: list[str]) -> int | None:
    """Wait for jobs."""
    process = stack.process
    pids = [_pid_of(stack, arg) for arg in args if not arg.startswith("-")]
    has_names = bool(pids)
    pids = pids or list(process.shell.jobs)
    stack.push(
        "wait",
        -1,
        -1,
        [pids, has_names],
    )
    return None


def on_wait(stack: Stack, frame: list[Any]) -> None:
    """Go on with ``wait``."""
    pids, has_names = frame[4]
    machine = stack.machine
    children = [pid for pid in pids if pid in machine.processes]
    if frame[3] == 0 and any(machine.processes[pid].is_alive for pid in children):
        frame[3] = 1
        stack.process.block = Block("child", pids=children)
        return
    status = 127 if has_names and not children else 0
    for pid in children:
        if machine.processes[pid].is_alive:
            continue
        code = machine.reap(pid)
        status = code if has_names else 0
    jobs = stack.process.shell.jobs
    stack.process.shell.jobs = [pid for pid in jobs if pid in machine.processes]
    stack.pop(status)


def sleep(stack: Stack, args: list[str]) -> int | None:
    """Let time pass."""
    seconds = sleep_seconds(args)
    if seconds is None:
        stack.process.block = Block("never")
    else:
        moment = stack.machine.after(seconds)
        stack.process.block = Block("until", moment=moment)
    return 0


def sleep_seconds(args: list[str]) -> float | None:
    """Return how long ``sleep`` takes; None for ever. Raises Usage."""
    if not args:
        raise BadUsage("missing operand", 1)
    total = 0.0
    for arg in args:
        if arg in ("infinity", "inf"):
            return None
        found = DURATION.fullmatch(arg)
        if found is None:
            raise BadUsage(f"invalid time interval '{arg}'", 1)
        total += float(found[1]) * UNITS[found[2]]
    if total > 100 * 365 * 86400:
        return None
    return total


def jobs(stack: Stack, args: list[str]) -> int:
    """List the jobs."""
    processes = stack.machine.processes
    for index, pid in enumerate(stack.process.shell.jobs, 1):
        job = processes.get(pid)
        if job is not None and job.is_alive:
            if "-p" in args:
                _out(stack, f"{pid}\n")
            else:
                _out(stack, f"[{index}] + Running\n")
    return 0


def umask(stack: Stack, args: list[str]) -> int:
    """Show or set the mode that new files do not get."""
    shell = stack.process.shell
    if not args:
        _out(stack, f"{shell.umask:04o}\n")
        return 0
    if not re.fullmatch(r"[0-7]{1,4}", args[0]):
        raise BadUsage(f"Illegal number: {args[0]}")
    shell.umask = int(args[0], 8)
    return 0


def ulimit(stack: Stack, args: list[str]) -> int:
    """Show a limit: there is none."""
    if len([arg for arg in args if not arg.startswith("-")]) == 0:
        _out(stack, "unlimited\n")
    return 0


# --- programs


def command(stack: Stack, args: list[str]) -> int | None:
    """Carry out a command past functions, or say what it is."""
    words = [arg for arg in args if arg != "-p"]
    if words[:1] in (["-v"], ["-V"]):
        return _describe(stack, words[1:], is_verbose=words[0] == "-V")
    if not words:
        return 0
    builtin = BUILTINS.get(words[0])
    if builtin is not None:
        return builtin(stack, words[1:])
    stack.push(
        "program",
        -1,
        -1,
        {"argv": words, "env": {}},
    )
    return None


def type_(stack: Stack, args: list[str]) -> int:
    """Say what words are."""
    return _describe(stack, args, is_verbose=True)


def _describe(stack: Stack, words: list[str], *, is_verbose: bool) -> int:
    status = 0
    for word in words:
        if word in stack.process.shell.functions:
            what, shown = f"{word} is a shell function", word
        elif word in BUILTINS:
            what, shown = f"{word} is a shell builtin", word
        elif is_known_program(word) and not stack.machine.is_missing(word):
            path = word if "/" in word else f"/bin/{word}"
            what, shown = f"{word} is {path}", path
        elif "/" in word and stack.machine.files.is_file(word):
            what, shown = f"{word} is {word}", word
        else:
            if is_verbose:
                _out(stack, f"{word}: not found\n")
            status = 127 if not is_verbose or not stack.process.shell.has_braces else 1
            continue
        _out(stack, f"{what if is_verbose else shown}\n")
    return status


def alias(stack: Stack, args: list[str]) -> int:
    """Give a command another name."""
    aliases = stack.process.shell.aliases
    for arg in args:
        name, separator, value = arg.partition("=")
        if separator:
            aliases[name] = value
    return 0


def unalias(stack: Stack, args: list[str]) -> int:
    """Forget other names of commands."""
    aliases = stack.process.shell.aliases
    for arg in args:
        if arg == "-a":
            aliases.clear()
        aliases.pop(arg, None)
    return 0


def let(stack: Stack, args: list[str]) -> int:
    """Evaluate expressions."""
    status = 1
    for arg in args:
        status = stack.judge(arg)
    return status


def times(stack: Stack, args: list[str]) -> int:
    """Print the time of processors that was used: none."""
    _out(stack, "0m0.000000s 0m0.000000s\n0m0.000000s 0m0.000000s\n")
    return 0


BUILTINS: Mapping[str, Builtin] = {
    ".": source, ":": colon, "[": bracket, "alias": alias, "break": break_, "cd": cd,
    "command": command, "continue": continue_, "declare": local, "echo": echo, "eval": eval_,
    "exec": exec_, "exit": exit_, "export": export, "false": false, "getopts": getopts,
    "jobs": jobs, "kill": kill, "killall": killall, "let": let, "local": local,
    "printf": printf, "pwd": pwd, "read": read, "readonly": readonly, "return": return_,
    "set": set_, "shift": shift, "shopt": colon, "sleep": sleep, "source": source, "test": test,
    "times": times, "trap": trap, "true": colon, "type": type_, "typeset": local,
    "ulimit": ulimit, "umask": umask, "unalias": unalias, "unset": unset, "wait": wait,
}  # fmt: skip


def run(stack: Stack, builtin: Builtin, words: list[str], variables: dict[str, str]) -> None:
    process = stack.process
    is_special = words[0] in SPECIAL and not process.shell.has_braces
    if variables:
        stack.set_for_builtin(variables, is_kept=is_special or words[0] == "exec")
    try:
        status = builtin(stack, words[1:])
    except BadUsage as error:
        stack.complain(f"{words[0]}: {error.message}")
        status = error.status
        if is_special:
            raise FatalError("", status) from None
    except FatalError as error:
        if not process.shell.has_braces or not error.message:
            raise
        stack.complain(error.message)  # bash goes on
        status = error.status
    if status is not None:
        process.status = status
