"""Programs that print what they read: cat, head, tail, wc, tac, rev, tee."""

from __future__ import annotations

import re

from kubepy.shell.files import FileError
from kubepy.shell.utilities.endless import ENDLESS, endless_bytes
from kubepy.shell.utilities.inputs import (
    Inputs,
    absolute,
    kept_lines,
    lines_of,
)
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Execution

MULTIPLIERS = {
    "": 1,
    "b": 512,
    "kB": 1000,
    "K": 1024,
    "k": 1024,
    "KiB": 1024,
    "MB": 1000**2,
    "M": 1024**2,
    "m": 1024**2,
    "MiB": 1024**2,
    "GB": 1000**3,
    "G": 1024**3,
    "GiB": 1024**3,
}
COUNT = re.compile(r"([-+]?)(\d+)([a-zA-Z]*)")


@program(
    "-n,--number",
    "-b,--number-nonblank",
    "-s,--squeeze-blank",
    "-E,--show-ends",
    "-T,--show-tabs",
    "-v,--show-nonprinting",
    "-A,--show-all",
    "-e",
    "-t",
    "-u",
)
def cat(call: Execution, options: Arguments) -> int:
    """Concatenate files."""
    inputs = Inputs(call, options.operands)
    chunks = [data for _, data in inputs]
    if set(dict(options.given)) <= {"u"}:
        for chunk in chunks:
            call.out(chunk)
        return inputs.status
    number = 0
    was_blank = False
    for line in kept_lines(b"".join(chunks)):
        is_blank = line == b"\n"
        if is_blank and was_blank and options.has("s"):
            continue
        was_blank = is_blank
        is_numbered = not is_blank if options.has("b") else options.has("n")
        if is_numbered:
            number += 1
            call.out(f"{number:6d}\t")
        call.out(_shown(line, options))
    return inputs.status


def _shown(line: bytes, options: Arguments) -> bytes:
    if options.has("v", "A", "e", "t"):
        line = b"".join(_visible(byte) for byte in line)
    if options.has("T", "A", "t"):
        line = line.replace(b"\t", b"^I")
    if options.has("E", "A", "e") and line.endswith(b"\n"):
        line = line[:-1] + b"$\n"
    return line


def _visible(byte: int) -> bytes:
    if byte >= 128:
        if byte not in (137, 138):
            return b"M-" + _visible(byte - 128)
        return b"M-^" + bytes([byte - 64])
    if byte == 127:
        return b"^?"
    if byte < 32 and byte not in (9, 10):
        return b"^" + bytes([byte + 64])
    return bytes([byte])


def _count(text: str, what: str) -> tuple[str, int]:
    """Read ``10``, ``-10``, ``+3`` or ``1K``: the sign and the number."""
    match = COUNT.fullmatch(text)
    if match is None or match[3] not in MULTIPLIERS:
        message = f"invalid number of {what}: '{text}'"
        raise Failure(message)
    return match[1], int(match[2]) * MULTIPLIERS[match[3]]


def _parts(call: Execution, options: Arguments) -> int:
    """Print the part of each file that head or tail is asked for, with headers between several."""
    names = options.operands
    if call.name == "head" and len(names) == 1 and names[0] in ENDLESS and options.has("c"):
        call.out(endless_bytes(call, names[0], _count(options.get("c"), "bytes")[1]))
        return 0
    inputs = Inputs(
        call,
        names,
        message="cannot open '{name}' for reading: {problem}",
        directory="error reading '{name}': {problem}",
    )
    has_headers = options.last_of("q", "v") == "v" or (len(names) > 1 and not options.has("q"))
    is_first = True
    for name, data in inputs:
        if has_headers:
            title = name
            if name == "-":
                title = "standard input"
            line = f"{'' if is_first else chr(10)}==> {title} <==\n"
            call.out(line)
            is_first = False
        call.out(_part(call.name, data, options))
    return inputs.status


def _part(name: str, data: bytes, options: Arguments) -> bytes:
    unit = options.last_of("n", "c")
    what = "lines"
    if unit == "c":
        what = "bytes"
    sign, count = _count(options.get(unit, "10"), what)
    pieces = (
        [data[index : index + 1] for index in range(len(data))] if unit == "c" else kept_lines(data)
    )
    return b"".join(_chosen(name, pieces, sign, count))


def _chosen(name: str, pieces: list[bytes], sign: str, count: int) -> list[bytes]:
    if name == "head":
        if sign == "-":
            return pieces[: max(len(pieces) - count, 0)]
        return pieces[:count]
    if sign == "+":
        return pieces[max(count - 1, 0) :]
    return pieces[max(len(pieces) - count, 0) :]


@program(
    "-n,--lines=NUM",
    "-c,--bytes=NUM",
    "-q,--quiet,--silent",
    "-v,--verbose",
    style=ArgumentStyle(old_count="-n"),
)
def head(call: Execution, options: Arguments) -> int:
    """Print the first lines of files."""
    return _parts(call, options)


@program(
    "-n,--lines=NUM",
    "-c,--bytes=NUM",
    "-q,--quiet,--silent",
    "-v,--verbose",
    style=ArgumentStyle(old_count="-n"),
)
def tail(call: Execution, options: Arguments) -> int:
    """Print the last lines of files; ``-f`` is the machine's."""
    return _parts(call, options)


@program("-l,--lines", "-w,--words", "-c,--bytes", "-m,--chars", "-L,--max-line-length")
def wc(call: Execution, options: Arguments) -> int:
    """Count lines, words and bytes."""
    names = options.operands
    columns = [key for key in "lwmcL" if options.has(key)]
    columns = columns or ["l", "w", "c"]
    inputs = Inputs(call, names, is_directory_empty=True)
    rows = [(name, _counts(data, columns)) for name, data in inputs]
    if len(names) > 1:
        counts = [row for _, row in rows]
        rows.append(("total", _totals(counts, columns)))
    width = _count_width(call, options, columns)
    for name, row in rows:
        cells = [f"{number:{width}d}" for number in row]
        if names:
            cells.append(name)
        line = " ".join(cells)
        call.out(f"{line}\n")
    return inputs.status


def _totals(rows: list[list[int]], columns: list[str]) -> list[int]:
    totals: list[int] = []
    for place, column in enumerate(columns):
        numbers = [row[place] for row in rows]
        total = sum(numbers)
        if column == "L":
            total = max(numbers, default=0)
        totals.append(total)
    return totals


def _counts(data: bytes, columns: list[str]) -> list[int]:
    counters = {
        "l": lambda: data.count(b"\n"),
        "w": lambda: len(data.split()),
        "m": lambda: len(data),
        "c": lambda: len(data),
        "L": lambda: max((_display_width(line) for line in lines_of(data)), default=0),
    }
    return [counters[column]() for column in columns]


def _display_width(line: bytes) -> int:
    expanded = line.decode("latin-1").expandtabs(8)
    return sum(32 <= ord(character) < 127 for character in expanded)


def _count_width(call: Execution, options: Arguments, columns: list[str]) -> int:
    """Return the width of columns: that of the total size, 7 where a size is not known."""
    names = options.operands
    if len(names) <= 1 and len(columns) == 1:
        return 1
    if not names:
        return 7
    total = 0
    least = 1
    for name in names:
        path = absolute(call, name)
        if name == "-" or call.files.is_dir(path):
            least = 7
        elif call.files.is_file(path):
            total += len(call.files.read(path))
    return max(len(str(total)), least)


@program()
def tac(call: Execution, options: Arguments) -> int:
    """Print the lines of files, the last first."""
    inputs = Inputs(
        call,
        options.operands,
        message="failed to open '{name}' for reading: {problem}",
        directory="{name}: read error: Invalid argument",
    )
    for _, data in inputs:
        call.out(b"".join(reversed(kept_lines(data))))
    return inputs.status


@program()
def rev(call: Execution, options: Arguments) -> int:
    """Print lines with their characters in reverse order."""
    inputs = Inputs(call, options.operands, message="cannot open {name}: {problem}")
    for _, data in inputs:
        for line in kept_lines(data):
            text = line.decode("utf-8", "surrogateescape")
            body = text.removesuffix("\n")
            call.out((body[::-1] + text[len(body) :]).encode("utf-8", "surrogateescape"))
    return inputs.status


@program("-a,--append", "-i,--ignore-interrupts")
def tee(call: Execution, options: Arguments) -> int:
    """Copy standard input to files and to standard output."""
    status = 0
    call.out(call.stdin)
    for name in options.operands:
        if name in ("/dev/stdout", "/dev/stderr"):
            write = call.err
            if name == "/dev/stdout":
                write = call.out
            write(call.stdin)
            continue
        try:
            call.files.write(
                absolute(call, name), call.stdin, append=options.has("a"), now=call.now
            )
        except FileError as error:
            message = f"{name}: {error.problem}"
            complain(call, message)
            status = 1
    return status
