"""Programs that run others: env, xargs, timeout, nohup, nice, which."""

from __future__ import annotations

import re
import shlex

from kubepy.shell.utilities.inputs import from_argument
from kubepy.shell.utilities.program import (
    Arguments,
    ArgumentStyle,
    Failure,
    complain,
    program,
    usage_error,
)
from kubepy.shell.utility import Execution, Unknown

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)([smhd]?)")
SHELL_WORDS = ("sh", "bash", "echo", "printf", "sleep", "true", "false", "test", "kill", "pwd")
MOST_CHARACTERS = 128 * 1024
NOT_FOUND, NOT_RUN = 127, 126


def run_program(call: Execution, argv: list[str], stdin: bytes) -> int:
    """Run another program; what it prints is printed. Raises Unknown."""
    if call.run is None:
        raise Unknown(f"{call.name} that runs a program")
    status, out, err = call.run(argv, stdin)
    call.out(out)
    call.err(err)
    return status


@program(
    "-i,--ignore-environment",
    "-u,--unset=NAME",
    "-0,--null",
    style=ArgumentStyle(is_permuted=False, usage_status=125),
)
def env(call: Execution, options: Arguments) -> int:
    """Print the environment, or run a program in another."""
    words = list(options.operands)
    is_empty = options.has("i")
    if words[:1] == ["-"]:
        is_empty = True
        words.pop(0)
    variables = {} if is_empty else dict(call.env)
    for name in options.all("u"):
        variables.pop(name, None)
    assigned: dict[str, str] = {}
    while words and ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        assigned[name] = value
    if not words:
        end = "\n"
        if options.has("0"):
            end = "\0"
        for name, value in (variables | assigned).items():
            line = f"{name}={value}{end}"
            call.out(line)
        return 0
    if is_empty:
        raise Unknown("env -i that runs a program")
    steps = [f"unset {name}" for name in options.all("u")]
    steps += [f"export {name}={shlex.quote(value)}" for name, value in assigned.items()]
    if not steps:
        return run_program(call, words, call.stdin)
    script = "; ".join([*steps, '"$@"'])
    return run_program(call, ["sh", "-c", script, "sh", *words], call.stdin)


@program("-0,--null", style=ArgumentStyle(usage_status=2))
def printenv(call: Execution, options: Arguments) -> int:
    """Print variables of the environment."""
    end = "\n"
    if options.has("0"):
        end = "\0"
    if not options.operands:
        for name, value in call.env.items():
            line = f"{name}={value}{end}"
            call.out(line)
        return 0
    status = 0
    for name in options.operands:
        if name in call.env:
            call.out(call.env[name] + end)
        else:
            status = 1
    return status


@program(
    "-0,--null",
    "-I,--replace=STRING",
    "-L,--max-lines=NUM",
    "-P,--max-procs=NUM",
    "-d,--delimiter=CHARACTER",
    "-n,--max-args=NUM",
    "-r,--no-run-if-empty",
    "-t,--verbose",
    style=ArgumentStyle(is_permuted=False),
)
def xargs(call: Execution, options: Arguments) -> int:
    """Run a program with arguments from standard input."""
    command = options.operands or ["echo"]
    words = _xargs_words(call, options)
    status = 0
    for argv in _command_lines(command, words, options):
        if options.has("t"):
            call.err(" ".join(argv) + "\n")
        ended = run_program(call, argv, b"")
        if ended in (NOT_FOUND, NOT_RUN):
            return ended
        if ended == 255:
            complain(call, f"{argv[0]}: exited with status 255; aborting")
            return 124
        if ended > 128:
            message = f"{argv[0]}: terminated by signal {ended - 128}"
            complain(call, message)
            return 125
        if ended:
            status = 123
    return status


def _xargs_words(call: Execution, options: Arguments) -> list[str]:
    text = call.stdin.decode("utf-8", "surrogateescape")
    if options.has("0"):
        return _separated(text, "\0")
    if options.has("d"):
        delimiter = {"\\n": "\n", "\\t": "\t", "\\0": "\0"}.get(options.get("d"), options.get("d"))
        return _separated(text, delimiter)
    if options.has("I"):
        return _quoted_words(text, "\n")
    if options.has("L"):
        lines = [line.strip(" \t") for line in text.split("\n")]
        return [line for line in lines if line]
    return _quoted_words(text)


def _separated(text: str, delimiter: str) -> list[str]:
    words = text.split(delimiter)
    if words[-1] == "":
        words.pop()
    return words


def _quoted_words(text: str, separators: str = " \t\n") -> list[str]:
    """Split at separators; blanks before a word are left out, and quotes and backslashes protect
    what follows. Raises Failure."""
    words: list[str] = []
    word: list[str] | None = None
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character in separators or (word is None and character in " \t"):
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        if character in "'\"":
            end = text.find(character, position)
            if end < 0 or "\n" in text[position:end]:
                kind = "double"
                if character == "'":
                    kind = "single"
                raise Failure(
                    f"unmatched {kind} quote; by default quotes are special to xargs unless you "
                    "use the -0 option"
                )
            word.append(text[position:end])
            position = end + 1
        elif character == "\\":
            word.append(text[position : position + 1])
            position += 1
        else:
            word.append(character)
    if word is not None:
        words.append("".join(word))
    return words


def _command_lines(command: list[str], words: list[str], options: Arguments) -> list[list[str]]:
    """Return the command lines that are run."""
    if options.has("I"):
        mark = options.get("I")
        return [_replaced(command, mark, word) for word in words]
    if not words:
        if options.has("r"):
            return []
        return [command]
    if options.has("L"):
        count = int(options.get("L"))
        groups = _groups(words, count)
        return [command + _quoted_words(" ".join(lines)) for lines in groups]
    characters = sum(len(from_argument(word)) + 1 for word in words)
    if characters > MOST_CHARACTERS:
        raise Unknown("xargs with more words than a command line takes")
    most = str(len(words))
    count = int(options.get("n", most))
    groups = _groups(words, count)
    return [command + group for group in groups]


def _replaced(command: list[str], mark: str, word: str) -> list[str]:
    return [part.replace(mark, word) for part in command]


def _groups(words: list[str], count: int) -> list[list[str]]:
    starts = range(0, len(words), count)
    return [words[start : start + count] for start in starts]


@program(
    "-k,--kill-after=DURATION",
    "-s,--signal=SIGNAL",
    "-v,--verbose",
    "-t=SECONDS",
    "--foreground",
    "--preserve-status",
    style=ArgumentStyle(is_permuted=False, usage_status=125),
)
def timeout(call: Execution, options: Arguments) -> int:
    """Run a program that ends by itself; the machine knows of those that take time."""
    words = list(options.operands)
    if options.has("t"):
        words.insert(0, options.get("t"))
    if len(words) < 2:
        call.err(f"Try '{call.name} --help' for more information.\n")
        return 125
    if not DURATION.fullmatch(words[0]):
        raise usage_error(call.name, f"invalid time interval '{words[0]}'", 125)
    return run_program(call, words[1:], call.stdin)


@program(style=ArgumentStyle(is_permuted=False, usage_status=125))
def nohup(call: Execution, options: Arguments) -> int:
    """Run a program; there is no terminal that could hang up."""
    if not options.operands:
        raise usage_error(call.name, "missing operand", 125)
    return run_program(call, options.operands, call.stdin)


@program("-n,--adjustment=N", style=ArgumentStyle(is_permuted=False, usage_status=125))
def nice(call: Execution, options: Arguments) -> int:
    """Run a program; priorities change nothing in the model."""
    if not options.operands:
        call.out("0\n")
        return 0
    return run_program(call, options.operands, call.stdin)


@program("-a", style=ArgumentStyle(is_permuted=False))
def which(call: Execution, options: Arguments) -> int:
    """Print the paths of programs that the model knows."""
    from kubepy.shell.utilities import UTILITIES

    status = 0
    for name in options.operands:
        path = _path_of(call, name)
        if not path and (name in UTILITIES or name in SHELL_WORDS):
            path = f"/usr/bin/{name}"
        if path:
            call.out(f"{path}\n")
        else:
            status = 1
    return status


def _path_of(call: Execution, name: str) -> str:
    """Return the path of a program among the files, an empty text if there is none."""
    folders = [""] if "/" in name else call.env.get("PATH", "").split(":")
    for folder in folders:
        path = name
        if folder:
            path = f"{folder}/{name}"
        absolute = f"{call.cwd}/{path}"
        if path.startswith("/"):
            absolute = path
        if call.files.is_file(absolute) and call.files.stat(absolute).mode & 0o111:
            return path
    return ""
