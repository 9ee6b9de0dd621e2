"""The words of the shell that it carries out itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kubepy.shell.conditions import Condition, ConditionError
from kubepy.shell.files import FileError
from kubepy.shell.formatting import FormatError, format_text, unescape
from kubepy.shell.processes import SIGNALS, Block
from kubepy.shell.words import is_known_program

if TYPE_CHECKING:
    from kubepy.shell.interpreter import Interpreter

SPECIAL = frozenset(
    {".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
     "shift", "times", "trap", "unset"}
)  # fmt: skip
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SIGNAL_NAMES = {number: name for name, number in SIGNALS.items()}
LOOPS = ("loop", "for", "arithmetic_for")
DURATION = re.compile(r"(\d+\.?\d*|\.\d+)([smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
Builtin = Callable[["Interpreter", list[str]], "int | None"]


class Usage(Exception):
    """A builtin that was called wrongly."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def _out(interpreter: Interpreter, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    interpreter.machine.write(interpreter.process, 1, data)


def _number(text: str, what: str = "Illegal number") -> int:
    if not re.fullmatch(r"[+-]?\d+", text.strip()):
        raise Usage(f"{what}: {text}")
    return int(text)


# --- nothing, truth, output


def colon(interpreter: Interpreter, args: list[str]) -> int:
    """Do nothing."""
    return 0


def false(interpreter: Interpreter, args: list[str]) -> int:
    """Fail."""
    return 1


def echo(interpreter: Interpreter, args: list[str]) -> int:
    """Print words. dash takes ``-n`` and backslashes, bash ``-n``, ``-e`` and ``-E``."""
    has_newline = True
    shell = interpreter.process.shell
    unescapes = not shell.has_braces
    while args and re.fullmatch(r"-[neE]+", args[0]):
        if not shell.has_braces and args[0] != "-n" and not args[0].startswith("-e"):
            break
        for letter in args.pop(0)[1:]:
            if letter == "n":
                has_newline = False
            else:
                unescapes = letter == "e"
    text = " ".join(args)
    if unescapes:
        text, is_cut = unescape(text)
        has_newline = has_newline and not is_cut
    _out(interpreter, text + ("\n" if has_newline else ""))
    return 0


def printf(interpreter: Interpreter, args: list[str]) -> int:
    """Print by a format."""
    variable = ""
    if args[:1] == ["-v"] and len(args) > 2:
        variable = args[1]
        args = args[2:]
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        raise Usage("usage: printf format [arg ...]")
    try:
        text, problems = format_text(args[0], args[1:])
    except FormatError as error:
        raise Usage(str(error), 1) from None
    if variable:
        interpreter.scope().assign(variable, text)
    else:
        _out(interpreter, text)
    for problem in problems:
        interpreter.complain(f"printf: {problem}")
    return int(bool(problems))


def test(interpreter: Interpreter, args: list[str]) -> int:
    """Judge a condition."""
    condition = Condition(args, interpreter.machine.files, interpreter.process.cwd)
    try:
        return int(not condition.holds())
    except ConditionError as error:
        interpreter.complain(f"test: {error.message}")
        return 2


def bracket(interpreter: Interpreter, args: list[str]) -> int:
    """Judge a condition in brackets."""
    if args[-1:] != ["]"]:
        raise Usage("missing ]")
    condition = Condition(args[:-1], interpreter.machine.files, interpreter.process.cwd)
    try:
        return int(not condition.holds())
    except ConditionError as error:
        interpreter.complain(f"[: {error.message}")
        return 2


# --- where a shell is


def cd(interpreter: Interpreter, args: list[str]) -> int:
    """Change the working directory."""
    process = interpreter.process
    scope = interpreter.scope()
    args = [arg for arg in args if arg not in ("-P", "-L", "--")]
    target = args[0] if args else scope.get("HOME") or "/root"
    is_back = target == "-"
    if is_back:
        target = scope.get("OLDPWD") or process.cwd
    path = posixpath.normpath(posixpath.join(process.cwd, target))
    if path.startswith("//"):
        path = path[1:]
    files = interpreter.machine.files
    if not files.is_dir(path):
        if process.shell.has_braces:
            problem = "Not a directory" if files.exists(path) else "No such file or directory"
            raise Usage(f"{target}: {problem}", 1)
        raise Usage(f"can't cd to {target}")
    process.shell.variables["OLDPWD"] = process.cwd
    process.shell.variables["PWD"] = path
    process.cwd = path
    if is_back:
        _out(interpreter, f"{path}\n")
    return 0


def pwd(interpreter: Interpreter, args: list[str]) -> int:
    """Print the working directory."""
    _out(interpreter, f"{interpreter.process.cwd}\n")
    return 0


# --- control


def exit_(interpreter: Interpreter, args: list[str]) -> int | None:
    """End the shell."""
    process = interpreter.process
    status = process.status if process.exiting is None else process.exiting
    if args:
        status = _number(args[0]) & 255
    interpreter.exit(status)
    return None


def return_(interpreter: Interpreter, args: list[str]) -> int | None:
    """End a function or a script that was read in."""
    process = interpreter.process
    status = _number(args[0]) & 255 if args else process.status
    for height in range(len(process.frames) - 1, -1, -1):
        kind = process.frames[height][0]
        if kind in ("call", "sourced"):
            interpreter.unwind(height)
            process.status = status
            return None
    interpreter.exit(status)
    return None


def break_(interpreter: Interpreter, args: list[str]) -> int | None:
    """End loops."""
    return _leave_loops(interpreter, args, goes_on=False)


def continue_(interpreter: Interpreter, args: list[str]) -> int | None:
    """Begin the next round of a loop."""
    return _leave_loops(interpreter, args, goes_on=True)


def _leave_loops(interpreter: Interpreter, args: list[str], *, goes_on: bool) -> int | None:
    process = interpreter.process
    count = _number(args[0]) if args else 1
    if count < 1:
        raise Usage(f"Illegal number: {count}")
    heights = []
    for height in range(len(process.frames) - 1, -1, -1):
        kind = process.frames[height][0]
        if kind == "call":
            break
        if kind in LOOPS:
            heights.append(height)
    if not heights:
        return 0
    height = heights[min(count, len(heights)) - 1]
    interpreter.unwind(height + 1)
    process.status = 0
    if not goes_on:
        loop = process.frames[height]
        interpreter.unwind(height)
        if loop[0] == "loop" and loop[3] == 1:
            process.status = 0
    elif process.frames[height][0] == "loop":
        process.frames[height][3] = 0
    return None


def eval_(interpreter: Interpreter, args: list[str]) -> int | None:
    """Carry out words as a script."""
    text = " ".join(args)
    if not text.strip():
        return 0
    interpreter.push_script(text)
    return None


def source(interpreter: Interpreter, args: list[str]) -> int | None:
    """Carry out a file in this shell."""
    if not args:
        raise Usage("filename argument required")
    machine = interpreter.machine
    path = machine.absolute(interpreter.process, args[0])
    try:
        text = machine.files.read(path).decode("utf-8", "surrogateescape")
    except FileError as error:
        raise Usage(f"{args[0]}: {error.problem}" if "/" in args[0] else f"{args[0]}: not found")
    interpreter.push("sourced", -1, -1)
    interpreter.push_script(text)
    return None


def exec_(interpreter: Interpreter, args: list[str]) -> int | None:
    """Become a program; without one keep the redirections."""
    process = interpreter.process
    frame = process.frames[-1]
    if not args:
        frame[4] = None
        return 0
    frame[4] = None
    process.frames.clear()
    process.argv = list(args)
    process.shell.traps = {name: act for name, act in process.shell.traps.items() if not act}
    interpreter.push("program", -1, -1, {"argv": list(args), "env": {}, "replaces": True})
    return None


# --- variables


def export(interpreter: Interpreter, args: list[str]) -> int:
    """Give variables to programs."""
    shell = interpreter.process.shell
    names = [arg for arg in args if arg not in ("-p", "-n", "--")]
    if not names:
        for name in sorted(shell.exported):
            if name in shell.variables:
                _out(interpreter, f"export {name}='{shell.variables[name]}'\n")
    for arg in names:
        name = _declare(interpreter, arg)
        if "-n" in args:
            shell.exported = [each for each in shell.exported if each != name]
        elif name not in shell.exported:
            shell.exported.append(name)
    return 0


def _declare(interpreter: Interpreter, arg: str) -> str:
    name, separator, value = arg.partition("=")
    if not NAME.fullmatch(name):
        raise Usage(f"{name}: bad variable name")
    if separator:
        interpreter.scope().assign(name, value)
    return name


def readonly(interpreter: Interpreter, args: list[str]) -> int:
    """Keep variables from being changed."""
    shell = interpreter.process.shell
    for arg in args:
        if arg == "-p":
            continue
        name = _declare(interpreter, arg)
        if name not in shell.readonly:
            shell.readonly.append(name)
    return 0


def local(interpreter: Interpreter, args: list[str]) -> int:
    """Keep variables within a function."""
    process = interpreter.process
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
            _declare(interpreter, arg)
        elif call is not None and process.shell.has_braces:
            process.shell.variables.pop(name, None)
    return 0


def unset(interpreter: Interpreter, args: list[str]) -> int:
    """Forget variables or functions."""
    shell = interpreter.process.shell
    is_function = args[:1] == ["-f"]
    for name in args:
        if name in ("-f", "-v"):
            continue
        if name in shell.readonly:
            raise Usage(f"{name}: is read only")
        if is_function:
            shell.functions.pop(name, None)
        else:
            shell.variables.pop(name, None)
            shell.exported = [each for each in shell.exported if each != name]
    return 0


def shift(interpreter: Interpreter, args: list[str]) -> int:
    """Drop the first arguments."""
    shell = interpreter.process.shell
    count = _number(args[0]) if args else 1
    if count > len(shell.args):
        raise Usage("can't shift that many")
    shell.args = shell.args[count:]
    return 0


def set_(interpreter: Interpreter, args: list[str]) -> int:
    """Set options and arguments."""
    shell = interpreter.process.shell
    if not args:
        for name in sorted(shell.variables):
            _out(interpreter, f"{name}='{shell.variables[name]}'\n")
        return 0
    position = 0
    while position < len(args):
        arg = args[position]
        if arg == "--":
            shell.args = args[position + 1 :]
            return 0
        if arg in ("-o", "+o") and position + 1 < len(args):
            set_option(interpreter, args[position + 1], is_on=arg == "-o")
            position += 2
        elif len(arg) > 1 and arg[0] in "-+":
            _set_letters(interpreter, arg, args, position)
            position += 2 if arg.endswith("o") and position + 1 < len(args) else 1
        else:
            shell.args = args[position:]
            return 0
    return 0


def _set_letters(interpreter: Interpreter, arg: str, args: list[str], position: int) -> None:
    """Set options by their letters; an ``o`` at the end takes a name."""
    shell = interpreter.process.shell
    for letter in arg[1:]:
        if letter == "o":
            if position + 1 < len(args):
                set_option(interpreter, args[position + 1], is_on=arg[0] == "-")
        elif arg[0] == "+":
            shell.options = shell.options.replace(letter, "")
        elif letter not in "aefhuxvnCbm":
            raise Usage(f"Illegal option -{letter}")
        elif letter not in shell.options:
            shell.options += letter


OPTION_LETTERS = {"errexit": "e", "nounset": "u", "xtrace": "x", "allexport": "a", "noglob": "f"}


def set_option(interpreter: Interpreter, name: str, *, is_on: bool) -> None:
    """Set an option by its name. Raises Usage."""
    shell = interpreter.process.shell
    if name == "pipefail":
        shell.pipefail = is_on
        return
    letter = OPTION_LETTERS.get(name)
    if letter is None:
        if name in ("posix", "errtrace", "functrace", "noclobber", "monitor", "vi", "emacs"):
            return
        raise Usage(f"Illegal option -o {name}")
    shell.options = shell.options.replace(letter, "")
    if is_on:
        shell.options += letter


def getopts(interpreter: Interpreter, args: list[str]) -> int:
    """Take the next option of the arguments."""
    if len(args) < 2:
        raise Usage("usage: getopts optstring var [arg]")
    letters, name = args[0], args[1]
    scope = interpreter.scope()
    shell = interpreter.process.shell
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
                scope.assign("OPTARG", letter)
                if not is_silent:
                    interpreter.complain(f"No arg for -{letter} option")
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
            interpreter.complain(f"Illegal option -{letter}")
        return 0
    scope.assign(name, letter)
    if value is not None:
        scope.assign("OPTARG", value)
    return 0


def read(interpreter: Interpreter, args: list[str]) -> int | None:
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
    interpreter.push("read", -1, -1, [names, is_raw, end])
    return None


def _read_line(interpreter: Interpreter, end: bytes, *, is_raw: bool) -> tuple[bytes, bool] | None:
    """Return a line without its end, and whether it had one; None while more may come."""
    machine = interpreter.machine
    handle = machine.handle_of(interpreter.process, 0)
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


def on_read(interpreter: Interpreter, frame: list[Any]) -> None:
    """Go on with ``read``."""
    names, is_raw, end = frame[4]
    found = _read_line(interpreter, end.encode(), is_raw=is_raw)
    if found is None:
        handle = interpreter.process.handles[0]
        interpreter.process.block = Block("read", handle=handle, version=_waiting(interpreter))
        return
    line, had_end = found
    text = line.decode("utf-8", "surrogateescape")
    scope = interpreter.scope()
    _assign_fields(scope, names or ["REPLY"], text, is_raw=is_raw)
    interpreter.pop(int(not had_end))


def _waiting(interpreter: Interpreter) -> int:
    handle = interpreter.machine.handle_of(interpreter.process, 0)
    if handle is None:
        return 0
    return len(interpreter.machine.peek_input(handle)[0])


def _assign_fields(scope: Any, names: list[str], text: str, *, is_raw: bool) -> None:
    """Give the fields of a line to variables; the last one gets the rest."""
    ifs = scope.get("IFS")
    separators = " \t\n" if ifs is None else ifs
    blanks = "".join(each for each in separators if each in " \t\n")
    rest = text.lstrip(blanks) if blanks else text
    for index, name in enumerate(names):
        if index == len(names) - 1:
            value = rest.rstrip(blanks) if blanks else rest
            if len(value) > 0 and len(names) > 1:
                stripped = value[:-1]
                if value[-1] in separators and value[-1] not in blanks:
                    if not any(each in separators for each in stripped):
                        value = stripped
        else:
            value, rest = _first_field(rest, separators, blanks, is_raw=is_raw)
        scope.assign(name, value if is_raw else re.sub(r"\\(.)", r"\1", value))


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


def trap(interpreter: Interpreter, args: list[str]) -> int:
    """Set what a signal does."""
    shell = interpreter.process.shell
    args = [arg for arg in args if arg != "--"]
    if not args or args == ["-p"]:
        for name, command_text in shell.traps.items():
            _out(interpreter, f"trap -- '{command_text}' {name}\n")
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
            raise Usage(f"{text}: bad trap", 1)
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


def kill(interpreter: Interpreter, args: list[str]) -> int:
    """Send a signal to processes."""
    number = SIGNALS["TERM"]
    words = list(args)
    if words[:1] == ["-l"]:
        _out(interpreter, " ".join(SIGNALS) + "\n")
        return 0
    if words[:1] in (["-s"], ["-n"]) and len(words) > 1:
        words = [f"-{words[1]}", *words[2:]]
    if words and words[0].startswith("-") and words[0] != "--":
        name = signal_name(words.pop(0)[1:])
        if not name:
            raise Usage("invalid signal number or name", 1)
        number = 0 if name == "EXIT" else SIGNALS[name]
    status = 0
    for word in words:
        if word == "--":
            continue
        pid = _pid_of(interpreter, word)
        process = interpreter.machine.processes.get(abs(pid))
        if process is None or not process.is_alive:
            interpreter.complain("kill: No such process")
            status = 1
        elif number:
            interpreter.machine.deliver(process, number)
    return status


def _pid_of(interpreter: Interpreter, word: str) -> int:
    if word.startswith("%"):
        jobs = interpreter.process.shell.jobs
        index = int(word[1:]) - 1 if word[1:].isdigit() else len(jobs) - 1
        if 0 <= index < len(jobs):
            return jobs[index]
        raise Usage(f"No such job: {word}")
    return _number(word)


def wait(interpreter: Interpreter, args: list[str]) -> int | None:
    """Wait for jobs."""
    process = interpreter.process
    pids = [_pid_of(interpreter, arg) for arg in args if not arg.startswith("-")]
    has_names = bool(pids)
    pids = pids or list(process.shell.jobs)
    interpreter.push("wait", -1, -1, [pids, has_names])
    return None


def on_wait(interpreter: Interpreter, frame: list[Any]) -> None:
    """Go on with ``wait``."""
    pids, has_names = frame[4]
    machine = interpreter.machine
    children = [pid for pid in pids if pid in machine.processes]
    if frame[3] == 0 and any(machine.processes[pid].is_alive for pid in children):
        frame[3] = 1
        interpreter.process.block = Block("child", pids=children)
        return
    status = 127 if has_names and not children else 0
    for pid in children:
        if machine.processes[pid].is_alive:
            continue
        code = machine.reap(pid)
        status = code if has_names else 0
    jobs = interpreter.process.shell.jobs
    interpreter.process.shell.jobs = [pid for pid in jobs if pid in machine.processes]
    interpreter.pop(status)


def sleep(interpreter: Interpreter, args: list[str]) -> int | None:
    """Let time pass."""
    seconds = sleep_seconds(args)
    if seconds is None:
        interpreter.process.block = Block("never")
    else:
        moment = interpreter.machine.after(seconds)
        interpreter.process.block = Block("until", moment=moment)
    return 0


def sleep_seconds(args: list[str]) -> float | None:
    """Return how long ``sleep`` takes; None for ever. Raises Usage."""
    if not args:
        raise Usage("missing operand", 1)
    total = 0.0
    for arg in args:
        if arg in ("infinity", "inf"):
            return None
        found = DURATION.fullmatch(arg)
        if found is None:
            raise Usage(f"invalid time interval '{arg}'", 1)
        total += float(found[1]) * UNITS[found[2]]
    if total > 100 * 365 * 86400:
        return None
    return total


def jobs(interpreter: Interpreter, args: list[str]) -> int:
    """List the jobs."""
    processes = interpreter.machine.processes
    for index, pid in enumerate(interpreter.process.shell.jobs, 1):
        job = processes.get(pid)
        if job is not None and job.is_alive:
            if "-p" in args:
                _out(interpreter, f"{pid}\n")
            else:
                _out(interpreter, f"[{index}] + Running\n")
    return 0


def umask(interpreter: Interpreter, args: list[str]) -> int:
    """Show or set the mode that new files do not get."""
    shell = interpreter.process.shell
    if not args:
        _out(interpreter, f"{shell.umask:04o}\n")
        return 0
    if not re.fullmatch(r"[0-7]{1,4}", args[0]):
        raise Usage(f"Illegal number: {args[0]}")
    shell.umask = int(args[0], 8)
    return 0


def ulimit(interpreter: Interpreter, args: list[str]) -> int:
    """Show a limit: there is none."""
    if len([arg for arg in args if not arg.startswith("-")]) == 0:
        _out(interpreter, "unlimited\n")
    return 0


# --- programs


def command(interpreter: Interpreter, args: list[str]) -> int | None:
    """Carry out a command past functions, or say what it is."""
    words = [arg for arg in args if arg != "-p"]
    if words[:1] in (["-v"], ["-V"]):
        return _describe(interpreter, words[1:], is_verbose=words[0] == "-V")
    if not words:
        return 0
    builtin = BUILTINS.get(words[0])
    if builtin is not None:
        return builtin(interpreter, words[1:])
    interpreter.push("program", -1, -1, {"argv": words, "env": {}})
    return None


def type_(interpreter: Interpreter, args: list[str]) -> int:
    """Say what words are."""
    return _describe(interpreter, args, is_verbose=True)


def _describe(interpreter: Interpreter, words: list[str], *, is_verbose: bool) -> int:
    status = 0
    for word in words:
        if word in interpreter.process.shell.functions:
            what, shown = f"{word} is a shell function", word
        elif word in BUILTINS:
            what, shown = f"{word} is a shell builtin", word
        elif is_known_program(word):
            path = word if "/" in word else f"/bin/{word}"
            what, shown = f"{word} is {path}", path
        elif "/" in word and interpreter.machine.files.is_file(word):
            what, shown = f"{word} is {word}", word
        else:
            if is_verbose:
                _out(interpreter, f"{word}: not found\n")
            status = 127 if not is_verbose or not interpreter.process.shell.has_braces else 1
            continue
        _out(interpreter, f"{what if is_verbose else shown}\n")
    return status


def alias(interpreter: Interpreter, args: list[str]) -> int:
    """Give a command another name."""
    aliases = interpreter.process.shell.aliases
    for arg in args:
        name, separator, value = arg.partition("=")
        if separator:
            aliases[name] = value
    return 0


def unalias(interpreter: Interpreter, args: list[str]) -> int:
    """Forget other names of commands."""
    aliases = interpreter.process.shell.aliases
    for arg in args:
        if arg == "-a":
            aliases.clear()
        aliases.pop(arg, None)
    return 0


def let(interpreter: Interpreter, args: list[str]) -> int:
    """Evaluate expressions."""
    value = 0
    for arg in args:
        value = interpreter.evaluate_text(arg)
    return int(value == 0)


def times(interpreter: Interpreter, args: list[str]) -> int:
    """Print the time of processors that was used: none."""
    _out(interpreter, "0m0.000000s 0m0.000000s\n0m0.000000s 0m0.000000s\n")
    return 0


BUILTINS: Mapping[str, Builtin] = {
    ".": source, ":": colon, "[": bracket, "alias": alias, "break": break_, "cd": cd,
    "command": command, "continue": continue_, "declare": local, "echo": echo, "eval": eval_,
    "exec": exec_, "exit": exit_, "export": export, "false": false, "getopts": getopts,
    "jobs": jobs, "kill": kill, "let": let, "local": local, "printf": printf, "pwd": pwd,
    "read": read, "readonly": readonly, "return": return_, "set": set_, "shift": shift,
    "shopt": colon, "sleep": sleep, "source": source, "test": test, "times": times, "trap": trap,
    "true": colon, "type": type_, "typeset": local, "ulimit": ulimit, "umask": umask,
    "unalias": unalias, "unset": unset, "wait": wait,
}  # fmt: skip
