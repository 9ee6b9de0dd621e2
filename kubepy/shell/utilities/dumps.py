"""Programs that show and compare bytes: od, hexdump, xxd, cmp, diff, strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import absolute, joined_inputs, kept_lines, read_file
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Execution, Unknown

CMP_HELP = "\ncmp: Try 'cmp --help' for more information."
SIZES = {"": 4, "C": 1, "S": 2, "I": 4, "L": 8}
NAMED = [
    "nul",
    "soh",
    "stx",
    "etx",
    "eot",
    "enq",
    "ack",
    "bel",
    "bs",
    "ht",
    "nl",
    "vt",
    "ff",
    "cr",
    "so",
    "si",
    "dle",
    "dc1",
    "dc2",
    "dc3",
    "dc4",
    "nak",
    "syn",
    "etb",
    "can",
    "em",
    "sub",
    "esc",
    "fs",
    "gs",
    "rs",
    "us",
    "sp",
]
ESCAPED = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
ROW = 16


def _rows(data: bytes, *, shows_all: bool) -> Iterator[tuple[int, bytes | None]]:
    """Yield rows of 16 bytes; None, once, for rows that are like the one before."""
    last = b""
    is_marked = False
    for start in range(0, len(data), ROW):
        row = data[start : start + ROW]
        if row == last and len(row) == ROW and not shows_all:
            if not is_marked:
                yield start, None
            is_marked = True
            continue
        last = row
        is_marked = False
        yield start, row


def _byte_count(text: str) -> int:
    multipliers = {
        "b": 512,
        "k": 1024,
        "m": 1024**2,
    }
    digits = text.rstrip("bkmKM")
    suffix = text[len(digits) :].lower()
    try:
        return int(digits, 0) * multipliers.get(suffix, 1)
    except ValueError:
        raise Failure(f"invalid argument '{text}'") from None


@program(
    "-A,--address-radix=RADIX",
    "-t,--format=TYPE",
    "-N,--read-bytes=BYTES",
    "-j,--skip-bytes=BYTES",
    "-v,--output-duplicates",
    "-a",
    "-b",
    "-c",
    "-d",
    "-o",
    "-x",
    "-An",
)
def od(call: Execution, options: Arguments) -> int:
    """Show bytes as octal or other numbers."""
    data, status = joined_inputs(call, options.operands)
    if status and not data:
        return status
    start = _byte_count(options.get("j", "0"))
    data = data[start:]
    if options.has("N"):
        limit = _byte_count(options.get("N"))
        data = data[:limit]
    formats = _od_formats(options)
    widths: list[int] = []
    for kind, size, _ in formats:
        cells_in_row = ROW // size
        widths.append(_cell_width(kind, size) * cells_in_row)
    address = _address(options)
    for offset, row in _rows(data, shows_all=options.has("v")):
        if row is None:
            call.out("*\n")
            continue
        lead = address(start + offset)
        for kind, size, has_text in formats:
            cells = _od_cells(row, kind, size, max(widths))
            text = _printable(row, has_text)
            line = f"{lead}{cells}{text}\n"
            call.out(line)
            lead = " " * len(lead)
    end = address(start + len(data))
    if end:
        call.out(f"{end}\n")
    return status


def _od_formats(options: Arguments) -> list[tuple[str, int, bool]]:
    short = {
        "a": ("a", 1),
        "b": ("o", 1),
        "c": ("c", 1),
        "d": ("u", 2),
        "o": ("o", 2),
        "x": ("x", 2),
    }
    formats: list[tuple[str, int, bool]] = []
    for key, value in options.given:
        if key in short:
            formats.append((*short[key], False))
        elif key == "t":
            formats.append(_od_type(value))
    return formats or [("o", 2, False)]


def _od_type(text: str) -> tuple[str, int, bool]:
    has_text = text.endswith("z")
    kind = text[:1]
    size = text[1:].removesuffix("z")
    if kind in ("a", "c") and not size:
        return kind, 1, has_text
    width = SIZES.get(size, 0)
    if size in ("1", "2", "4", "8"):
        width = int(size)
    if kind not in ("d", "o", "u", "x") or not width:
        raise Unknown(f"od -t {text}")
    return kind, width, has_text


def _cell_width(kind: str, size: int) -> int:
    digits = {
        "a": {1: 3},
        "c": {1: 3},
        "o": {1: 3, 2: 6, 4: 11, 8: 22},
        "x": {1: 2, 2: 4, 4: 8, 8: 16},
        "u": {1: 3, 2: 5, 4: 10, 8: 20},
        "d": {1: 4, 2: 6, 4: 11, 8: 20},
    }
    return digits[kind][size] + 1


def _od_cells(row: bytes, kind: str, size: int, width: int) -> str:
    cell = width * size // ROW
    missing = -len(row) % size
    padded = row + bytes(missing)
    texts: list[str] = []
    for place in range(0, len(padded), size):
        value = padded[place : place + size]
        text = _od_value(value, kind, size)
        texts.append(text.rjust(cell))
    return "".join(texts)


def _od_value(value: bytes, kind: str, size: int) -> str:
    if kind == "c":
        return _character(value[0])
    if kind == "a":
        return _named(value[0] & 127)
    number = int.from_bytes(value, "little", signed=kind == "d")
    digits = _cell_width(kind, size) - 1
    if kind == "o":
        return f"{number:0{digits}o}"
    if kind == "x":
        return f"{number:0{digits}x}"
    return str(number)


def _named(byte: int) -> str:
    if byte < len(NAMED):
        return NAMED[byte]
    if byte == 127:
        return "del"
    return chr(byte)


def _character(byte: int) -> str:
    if byte in ESCAPED:
        return ESCAPED[byte]
    if 32 <= byte < 127:
        return chr(byte)
    return f"{byte:03o}"


def _printable(row: bytes, is_asked: bool) -> str:
    if not is_asked:
        return ""
    if len(row) < ROW:
        raise Unknown("od -t …z of a row that is not full")
    return f"  >{_dotted(row)}<"


def _dotted(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def _address(options: Arguments) -> Callable[[int], str]:
    radix = "n"
    if not options.has("An"):
        radix = options.get("A", "o")
    formats = {
        "o": "{:07o}",
        "d": "{:07d}",
        "x": "{:06x}",
        "n": "",
    }
    if radix not in formats:
        raise Failure(
            f"invalid output address radix '{radix}'; it must be one character from [doxn]"
        )
    return formats[radix].format


@program("-C,--canonical", "-n,--length=LENGTH", "-s,--skip=OFFSET", "-v,--no-squeezing")
def hexdump(call: Execution, options: Arguments) -> int:
    """Show bytes as hexadecimal numbers."""
    data, status = joined_inputs(call, options.operands)
    start = _byte_count(options.get("s", "0"))
    data = data[start:]
    if options.has("n"):
        data = data[: _byte_count(options.get("n"))]
    is_canonical = options.has("C")
    digits = 7
    if is_canonical:
        digits = 8
    for offset, row in _rows(data, shows_all=options.has("v")):
        if row is None:
            call.out("*\n")
        elif is_canonical:
            line = f"{start + offset:08x}{_canonical(row)}\n"
            call.out(line)
        else:
            line = f"{start + offset:07x}{_words(row)}\n"
            call.out(line)
    if data:
        call.out(f"{start + len(data):0{digits}x}\n")
    return status


def _canonical(row: bytes) -> str:
    cells = [f"{byte:02x}" for byte in row]
    missing = ROW - len(row)
    cells += ["  "] * missing
    left = " ".join(cells[:8])
    right = " ".join(cells[8:])
    return f"  {left}  {right}  |{_dotted(row)}|"


def _words(row: bytes) -> str:
    padded = row + b"\0" * (len(row) % 2)
    cells = []
    for place in range(0, len(padded), 2):
        cells.append(f" {int.from_bytes(padded[place : place + 2], 'little'):04x}")
    return "".join(cells).ljust(ROW // 2 * 5)


@program("-p", "-l=LENGTH", "-s=OFFSET", "-c=COLUMNS", "-u")
def xxd(call: Execution, options: Arguments) -> int:
    """Show bytes as hexadecimal numbers beside their text."""
    data, status = joined_inputs(call, options.operands)
    start = _byte_count(options.get("s", "0"))
    data = data[start:]
    if options.has("l"):
        limit = _byte_count(options.get("l"))
        data = data[:limit]
    is_plain = options.has("p")
    usual = "16"
    if is_plain:
        usual = "30"
    columns = _byte_count(options.get("c", usual))
    for offset in range(0, len(data), columns):
        row = data[offset : offset + columns]
        line = row.hex()
        if not is_plain:
            line = _pairs(row, columns)
        if options.has("u"):
            line = line.upper()
        if not is_plain:
            line = f"{start + offset:08x}: {line}  {_dotted(row)}"
        call.out(f"{line}\n")
    return status


def _pairs(row: bytes, columns: int) -> str:
    pairs = []
    for place in range(0, len(row), 2):
        pairs.append(row[place : place + 2].hex())
    width = columns * 2 + (columns + 1) // 2 - 1
    return " ".join(pairs).ljust(width)


@program("-n,--bytes=LENGTH")
def strings(call: Execution, options: Arguments) -> int:
    """Print the runs of printable characters in files."""
    data, status = joined_inputs(call, options.operands)
    least = int(options.get("n", "4"))
    run = bytearray()
    for byte in [*data, 0]:
        if 32 <= byte < 127 or byte == 9:
            run.append(byte)
            continue
        if len(run) >= least:
            call.out(bytes(run) + b"\n")
        run.clear()
    return status


@program(
    "-s,--quiet,--silent",
    "-l,--verbose",
    "-n,--bytes=LIMIT",
    style=ArgumentStyle(usage_status=2),
)
def cmp(call: Execution, options: Arguments) -> int:
    """Compare two files byte by byte."""
    names = options.operands
    if not names:
        raise Failure(f"missing operand after 'cmp'{CMP_HELP}", 2)
    if len(names) > 2:
        raise Unknown("cmp with these operands")
    first, second = [*names, "-"][:2]
    left = _compared(call, first)
    right = _compared(call, second)
    if options.has("n"):
        limit = _byte_count(options.get("n"))
        left = left[:limit]
        right = right[:limit]
    shorter = min(len(left), len(right))
    differing = [place for place in range(shorter) if left[place] != right[place]]
    if options.has("l"):
        _list_differences(call, left, right, differing)
    elif differing:
        place = differing[0]
        line = left.count(b"\n", 0, place) + 1
        if not options.has("s"):
            call.out(f"{first} {second} differ: char {place + 1}, line {line}\n")
        return 1
    if len(left) < len(right):
        _report_end(call, options, first, left)
    elif len(right) < len(left):
        _report_end(call, options, second, right)
    is_same = left == right
    if is_same:
        return 0
    return 1


def _list_differences(call: Execution, left: bytes, right: bytes, differing: list[int]) -> None:
    shorter = min(len(left), len(right))
    width = len(str(shorter))
    for place in differing:
        mine = left[place]
        other = right[place]
        line = f"{place + 1:{width}d} {mine:3o} {other:3o}\n"
        call.out(line)


def _compared(call: Execution, name: str) -> bytes:
    try:
        return read_file(call, name)
    except FileError as error:
        message = f"{name}: {error.problem}"
        raise Failure(message, 2) from error


def _report_end(call: Execution, options: Arguments, name: str, data: bytes) -> None:
    if options.has("s"):
        return
    if not data:
        complain(call, f"EOF on {name} which is empty")
        return
    lines = data.count(b"\n")
    place = f"after byte {len(data)}"
    if not options.has("l"):
        if data.endswith(b"\n"):
            place += f", line {lines}"
        else:
            place += f", in line {lines + 1}"
    message = f"EOF on {name} {place}"
    complain(call, message)


@program("-q,--brief", "-s,--report-identical-files", style=ArgumentStyle(usage_status=2))
def diff(call: Execution, options: Arguments) -> int:
    """Compare two files line by line."""
    names = options.operands
    if len(names) < 2:
        after = "diff"
        if names:
            after = names[-1]
        raise Failure(
            f"missing operand after '{after}'\ndiff: Try 'diff --help' for more information.", 2
        )
    if len(names) > 2:
        raise Failure(
            f"extra operand '{names[2]}'\ndiff: Try 'diff --help' for more information.", 2
        )
    for name in names:
        if name != "-" and call.files.is_dir(absolute(call, name)):
            raise Unknown("diff of directories")
    left, right = (_compared(call, name) for name in names)
    if left == right:
        if options.has("s"):
            line = f"Files {names[0]} and {names[1]} are identical\n"
            call.out(line)
        return 0
    if options.has("q"):
        line = f"Files {names[0]} and {names[1]} differ\n"
        call.out(line)
        return 1
    if b"\0" in left or b"\0" in right:
        line = f"Binary files {names[0]} and {names[1]} differ\n"
        call.out(line)
        return 1
    for hunk in _hunks(kept_lines(left), kept_lines(right)):
        call.out(hunk)
    return 1


class DiffChange(NamedTuple):
    """Lines of one file in place of lines of another."""

    left_start: int
    left_end: int
    right_start: int
    right_end: int


def _hunks(left: list[bytes], right: list[bytes]) -> Iterator[bytes]:
    for change in _changes(left, right):
        removed = left[change.left_start : change.left_end]
        added = right[change.right_start : change.right_end]
        letter = "a"
        if removed:
            letter = "d"
        if removed and added:
            letter = "c"
        left_span = _span(change.left_start, change.left_end)
        right_span = _span(change.right_start, change.right_end)
        yield f"{left_span}{letter}{right_span}\n".encode()
        for line in removed:
            yield _marked(b"< ", line)
        if removed and added:
            yield b"---\n"
        for line in added:
            yield _marked(b"> ", line)


def _changes(left: list[bytes], right: list[bytes]) -> Iterator[DiffChange]:
    """Yield what differs, where there is one shortest answer; raise Unknown where there are more.

    There is one if the lines that both have between their common start and end occur once in
    each, and in the same order.
    """
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    left_end = len(left) - end
    right_end = len(right) - end
    left_common = _places(left, start, left_end, right[start:right_end])
    right_common = _places(right, start, right_end, left[start:left_end])
    left_lines = [left[place] for place in left_common]
    right_lines = [right[place] for place in right_common]
    if left_lines != right_lines:
        raise Unknown("diff of lines in another order")
    left_place = right_place = start
    left_stops = [*left_common, left_end]
    right_stops = [*right_common, right_end]
    ends = zip(left_stops, right_stops, strict=True)
    for left_stop, right_stop in ends:
        change = DiffChange(left_place, left_stop, right_place, right_stop)
        has_removed = left_place < left_stop
        has_added = right_place < right_stop
        if has_removed or has_added:
            yield change
        left_place = left_stop + 1
        right_place = right_stop + 1


def _places(lines: list[bytes], start: int, end: int, other: list[bytes]) -> list[int]:
    """Return where the lines are that are in others, too. Raises Unknown for one that is twice."""
    wanted = set(other)
    places = [place for place in range(start, end) if lines[place] in wanted]
    common = {lines[place] for place in places}
    if len(common) != len(places):
        raise Unknown("diff of lines that are there several times")
    return places


def _span(start: int, end: int) -> str:
    if end - start > 1:
        return f"{start + 1},{end}"
    return str(end)


def _marked(mark: bytes, line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return mark + line
    return mark + line + b"\n\\ No newline at end of file\n"
