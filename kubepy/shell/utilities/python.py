"""Small programs in Python: ``python3 -c`` and files, as far as :mod:`pythonscript` knows what is
in them. A program with anything else is unknown as a whole."""

from __future__ import annotations

import ast
import re

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import absolute
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, program
from kubepy.shell.utilities.pythonscript import PythonScript, ScriptError, ScriptExit
from kubepy.shell.utility import Delay, Execution, Unknown

FLAGS = re.compile(r"-[BEIOPRsSu]+|-X|-W")


@program("-c=PROGRAM", "-u", style=ArgumentStyle(is_raw=True))
def python(call: Execution, options: Arguments) -> int:
    """Carry out a program."""
    words = list(options.operands)
    while words and FLAGS.fullmatch(words[0]):
        if words.pop(0) in ("-X", "-W") and words:
            words.pop(0)
    if words[:1] == ["-c"] and len(words) > 1:
        return _run(call, "<string>", words[1], ["-c", *words[2:]])
    if not words or words[0].startswith("-"):
        raise Unknown(" ".join(words[:1]))
    path = absolute(call, words[0])
    try:
        text = call.files.read(path).decode("utf-8", "replace")
    except FileError as error:
        if not call.files.is_dir(path.rpartition("/")[0] or "/"):
            raise Unknown(words[0]) from error
        message = f"can't open file '{path}': [Errno 2] {error.problem}"
        raise Failure(message, 2) from error
    return _run(call, path, text, words)


def _run(call: Execution, name: str, text: str, argv: list[str]) -> int:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Unknown("a program that cannot be read") from error
    script = PythonScript(call, argv)
    status = 0
    try:
        script.run(tree)
    except ScriptExit as end:
        status = end.status
        if end.message:
            script.print_error(f"{end.message}\n")
    except ScriptError as error:
        status = 1
        place = f'  File "{name}", line {error.line}, in <module>\n'
        script.print_error(f"Traceback (most recent call last):\n{place}{error}\n")
    call.out("".join(script.first.out))
    call.err("".join(script.first.err))
    if script.slept <= 0:
        return status
    out = "".join(script.last.out).encode()
    err = "".join(script.last.err).encode()
    raise Delay(
        script.slept,
        status,
        out=out,
        err=err,
    )
