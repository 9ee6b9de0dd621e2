"""Programs that show and compare bytes: od, hexdump, xxd, cmp, diff, strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import absolute, joined_inputs, kept_lines, read_file
from kubepy.shell.utilities.program import Arguments, Failure, Style, complain, program
from kubepy.shell.utility import Invocation, Unknown

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
        last, is_marked = row, False
        yield start, row


def _byte_count(text: str) -> int:
    multipliers = {"b": 512, "k": 1024, "m": 1024**2}
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
def od(call: Invocation, options: Arguments) -> int:
    """Show bytes as octal or other numbers."""
    data, status = joined_inputs(call, options.operands)
    if status and not data:
        return status
    start = _byte_count(options.get("j", "0"))
    data = data[start:]
    if options.has("N"):
        data = data[: _byte_count(options.get("N"))]
    formats = _od_formats(options)
    width = max(_cell_width(kind, size) * (ROW // size) for kind, size, _ in formats)
    address = _address(options)
    for offset, row in _rows(data, shows_all=options.has("v")):
        if row is None:
            call.out("*\n")
            continue
        for index, (kind, size, has_text) in enumerate(formats):
            lead = address(start + offset)
            shown = lead if index == 0 else " " * len(lead)
            call.out(shown + _od_cells(row, kind, size, width) + (_printable(row, has_text)) + "\n")
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
    kind, size = text[:1], text[1:].removesuffix("z")
    if kind in ("a", "c") and not size:
        return kind, 1, has_text
    width = SIZES.get(size) or (int(size) if size in ("1", "2", "4", "8") else 0)
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
    padded = row + b"\0" * (-len(row) % size)
    values = [padded[place : place + size] for place in range(0, len(padded), size)]
    return "".join(_od_value(value, kind, size).rjust(cell) for value in values)


def _od_value(value: bytes, kind: str, size: int) -> str:
    if kind == "c":
        return _character(value[0])
    if kind == "a":
        return _named(value[0] & 127)
    number = int.from_bytes(value, "little", signed=kind == "d")
    digits = _cell_width(kind, size) - 1
    if kind == "o":
        return f"{number:0{digits}o}"
    return f"{number:0{digits}x}" if kind == "x" else str(number)


def _named(byte: int) -> str:
    if byte < len(NAMED):
        return NAMED[byte]
    return "del" if byte == 127 else chr(byte)


def _character(byte: int) -> str:
    if byte in ESCAPED:
        return ESCAPED[byte]
    return chr(byte) if 32 <= byte < 127 else f"{byte:03o}"


def _printable(row: bytes, is_asked: bool) -> str:
    if not is_asked:
        return ""
    if len(row) < ROW:
        raise Unknown("od -t …z of a row that is not full")
    return f"  >{_dotted(row)}<"


def _dotted(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def _address(options: Arguments) -> Callable[[int], str]:
    radix = "n" if options.has("An") else options.get("A", "o")
    formats = {"o": "{:07o}", "d": "{:07d}", "x": "{:06x}", "n": ""}
    if radix not in formats:
        raise Failure(
            f"invalid output address radix '{radix}'; it must be one character from [doxn]"
        )
    return formats[radix].format


@program("-C,--canonical", "-n,--length=LENGTH", "-s,--skip=OFFSET", "-v,--no-squeezing")
def hexdump(call: Invocation, options: Arguments) -> int:
    """Show bytes as hexadecimal numbers."""
    data, status = joined_inputs(call, options.operands)
    start = _byte_count(options.get("s", "0"))
    data = data[start:]
    if options.has("n"):
        data = data[: _byte_count(options.get("n"))]
    is_canonical = options.has("C")
    digits = 8 if is_canonical else 7
    for offset, row in _rows(data, shows_all=options.has("v")):
        if row is None:
            call.out("*\n")
        elif is_canonical:
            call.out(f"{start + offset:08x}{_canonical(row)}\n")
        else:
            call.out(f"{start + offset:07x}{_words(row)}\n")
    if data:
        call.out(f"{start + len(data):0{digits}x}\n")
    return status


def _canonical(row: bytes) -> str:
    cells = [f"{byte:02x}" for byte in row] + ["  "] * (ROW - len(row))
    halves = " ".join(cells[:8]), " ".join(cells[8:])
    return f"  {halves[0]}  {halves[1]}  |{_dotted(row)}|"


def _words(row: bytes) -> str:
    padded = row + b"\0" * (len(row) % 2)
    cells = [
        f" {int.from_bytes(padded[place : place + 2], 'little'):04x}"
        for place in range(0, len(padded), 2)
    ]
    return "".join(cells).ljust(ROW // 2 * 5)


@program("-p", "-l=LENGTH", "-s=OFFSET", "-c=COLUMNS", "-u")
def xxd(call: Invocation, options: Arguments) -> int:
    """Show bytes as hexadecimal numbers beside their text."""
    data, status = joined_inputs(call, options.operands)
    start = _byte_count(options.get("s", "0"))
    data = data[start:]
    if options.has("l"):
        data = data[: _byte_count(options.get("l"))]
    is_plain = options.has("p")
    columns = _byte_count(options.get("c", "30" if is_plain else "16"))
    for offset in range(0, len(data), columns):
        row = data[offset : offset + columns]
        pairs = row.hex() if is_plain else _pairs(row, columns)
        if options.has("u"):
            pairs = pairs.upper()
        call.out(f"{pairs}\n" if is_plain else f"{start + offset:08x}: {pairs}  {_dotted(row)}\n")
    return status


def _pairs(row: bytes, columns: int) -> str:
    pairs = [row[place : place + 2].hex() for place in range(0, len(row), 2)]
    width = columns * 2 + (columns + 1) // 2 - 1
    return " ".join(pairs).ljust(width)


@program("-n,--bytes=LENGTH")
def strings(call: Invocation, options: Arguments) -> int:
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
    style=Style(usage_status=2),
)
def cmp(call: Invocation, options: Arguments) -> int:
    """Compare two files byte by byte."""
    names = options.operands
    if not names:
        raise Failure("missing operand after 'cmp'\ncmp: Try 'cmp --help' for more information.", 2)
    if len(names) > 2:
        raise Unknown("cmp with these operands")
    pair = [*names, "-"][:2]
    left, right = (_compared(call, name) for name in pair)
    if options.has("n"):
        limit = _byte_count(options.get("n"))
        left, right = left[:limit], right[:limit]
    shorter = min(len(left), len(right))
    differing = [place for place in range(shorter) if left[place] != right[place]]
    if options.has("l"):
        width = len(str(shorter))
        for place in differing:
            call.out(f"{place + 1:{width}d} {left[place]:3o} {right[place]:3o}\n")
    elif differing and not options.has("s"):
        line = left.count(b"\n", 0, differing[0]) + 1
        call.out(f"{pair[0]} {pair[1]} differ: char {differing[0] + 1}, line {line}\n")
    if differing and not options.has("l"):
        return 1
    if len(left) != len(right):
        _report_end(
            call, options, pair[0 if len(left) < len(right) else 1], min(left, right, key=len)
        )
    return 1 if differing or len(left) != len(right) else 0


def _compared(call: Invocation, name: str) -> bytes:
    try:
        return read_file(call, name)
    except FileError as error:
        raise Failure(f"{name}: {error.problem}", 2) from error


def _report_end(call: Invocation, options: Arguments, name: str, data: bytes) -> None:
    if options.has("s"):
        return
    if not data:
        complain(call, f"EOF on {name} which is empty")
        return
    lines = data.count(b"\n")
    place = f"after byte {len(data)}"
    if not options.has("l"):
        place += f", line {lines}" if data.endswith(b"\n") else f", in line {lines + 1}"
    complain(call, f"EOF on {name} {place}")


@program("-q,--brief", "-s,--report-identical-files", style=Style(usage_status=2))
def diff(call: Invocation, options: Arguments) -> int:
    """Compare two files line by line."""
    names = options.operands
    if len(names) < 2:
        after = names[-1] if names else "diff"
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
            call.out(f"Files {names[0]} and {names[1]} are identical\n")
        return 0
    if options.has("q"):
        call.out(f"Files {names[0]} and {names[1]} differ\n")
        return 1
    if b"\0" in left or b"\0" in right:
        call.out(f"Binary files {names[0]} and {names[1]} differ\n")
        return 1
    for hunk in _hunks(kept_lines(left), kept_lines(right)):
        call.out(hunk)
    return 1


def _hunks(left: list[bytes], right: list[bytes]) -> Iterator[bytes]:
    for tag, left_start, left_end, right_start, right_end in _changes(left, right):
        letter = {"replace": "c", "delete": "d", "insert": "a"}[tag]
        places = f"{_span(left_start, left_end)}{letter}{_span(right_start, right_end)}\n"
        yield places.encode()
        yield b"".join(_marked(b"< ", line) for line in left[left_start:left_end])
        if tag == "replace":
            yield b"---\n"
        yield b"".join(_marked(b"> ", line) for line in right[right_start:right_end])


def _changes(left: list[bytes], right: list[bytes]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield what differs: by a longest common subsequence, as diff finds it."""
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return (opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal")


def _span(start: int, end: int) -> str:
    if end - start > 1:
        return f"{start + 1},{end}"
    return str(end)


def _marked(mark: bytes, line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return mark + line
    return mark + line + b"\n\\ No newline at end of file\n"
