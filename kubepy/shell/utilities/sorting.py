"""The programs sort, uniq and comm."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cmp_to_key
from itertools import groupby
from typing import Any, NamedTuple

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import Inputs, absolute, lines_of, read_file, whole_number
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Execution, Unknown

NUMBER = re.compile(rb"[ \t]*(-?)(\d*)(?:\.(\d*))?")
GENERAL_NUMBER = re.compile(rb"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)")
VERSION_PART = re.compile(rb"\d+|\D+")
SUFFIXES = b"KMGTPEZY"
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
KEY = re.compile(r"(\d+)(?:\.(\d+))?([a-zA-Z]*)(?:,(\d+)(?:\.(\d+))?([a-zA-Z]*))?")
ORDERS = "bdfghiMnRrV"
KNOWN_ORDERS = "bdfghMnrV"


class SortKey(NamedTuple):
    """The part of a line that ``-k`` names, and the order of it."""

    first_field: int
    first_character: int
    last_field: int  # 0: to the end of the line
    last_character: int  # 0: to the end of the field
    orders: str
    skips_blanks_at_end: bool

    def part(self, line: bytes, separator: bytes) -> bytes:
        """Return the part of a line."""
        start = self._start(line, separator)
        end = self._end(line, separator)
        if end > start:
            return line[start:end]
        return b""

    def _start(self, line: bytes, separator: bytes) -> int:
        start = _field_start(line, self.first_field, separator)
        if "b" in self.orders:
            start = _after_blanks(line, start)
        return min(start + self.first_character - 1, len(line))

    def _end(self, line: bytes, separator: bytes) -> int:
        if not self.last_field:
            return len(line)
        if not self.last_character:
            return _field_end(line, self.last_field, separator)
        start = _field_start(line, self.last_field, separator)
        if self.skips_blanks_at_end:
            start = _after_blanks(line, start)
        return min(start + self.last_character, len(line))


def _after_blanks(line: bytes, start: int) -> int:
    while start < len(line) and line[start] in b" \t":
        start += 1
    return start


def _field_start(line: bytes, field: int, separator: bytes) -> int:
    start = 0
    for _ in range(field - 1):
        if separator:
            end = line.find(separator, start)
            if end < 0:
                return len(line)
            start = end + 1
        else:
            start = _end_of_word(line, start)
    return start


def _field_end(line: bytes, field: int, separator: bytes) -> int:
    start = _field_start(line, field, separator)
    if not separator:
        return _end_of_word(line, start)
    end = line.find(separator, start)
    if end < 0:
        return len(line)
    return end


def _end_of_word(line: bytes, start: int) -> int:
    position = _after_blanks(line, start)
    while position < len(line) and line[position] not in b" \t":
        position += 1
    return position


def _number(part: bytes) -> float | int:
    match = NUMBER.match(part)
    if match is None:
        return 0
    sign, whole, fraction = match.groups()
    digits = int(whole or 0)
    value: float = digits
    if fraction:
        value = digits + float(b"0." + fraction)
    if sign:
        return -value
    return value


def _general_number(part: bytes) -> tuple[int, float]:
    match = GENERAL_NUMBER.match(part)
    if match:
        return (1, float(match[0]))
    return (0, 0.0)


def _human_number(part: bytes) -> tuple[int, float]:
    match = NUMBER.match(part)
    value = _number(part)
    suffix = b""
    if match:
        suffix = part[match.end() : match.end() + 1].upper()
    magnitude = 0
    if suffix:
        magnitude = SUFFIXES.find(suffix) + 1
    if value == 0:
        return 0, 0
    if value < 0:
        return (-magnitude - 1, value)
    return (magnitude + 1, value)


def _month(part: bytes) -> int:
    name = part.strip()[:3].upper().decode("latin-1")
    if name in MONTHS:
        return MONTHS.index(name) + 1
    return 0


def _version_order(left: bytes, right: bytes) -> int:
    """Compare as ``sort -V`` does for names of letters, digits and dots."""
    left_parts = VERSION_PART.findall(left)
    right_parts = VERSION_PART.findall(right)
    for mine, other in zip(left_parts, right_parts, strict=False):
        if mine.isdigit() and other.isdigit():
            difference = int(mine) - int(other)
            if difference:
                return difference
        elif mine != other:
            if _version_text(mine) > _version_text(other):
                return 1
            return -1
    return len(left_parts) - len(right_parts)


def _version_text(part: bytes) -> list[int]:
    ranks = []
    for byte in part:
        if byte == ord("~"):
            ranks.append(-1)
        elif chr(byte).isalpha():
            ranks.append(byte)
        elif chr(byte).isdigit():
            ranks.append(0)
        else:
            ranks.append(byte + 256)
    return [*ranks, 0]


def _folded(part: bytes, orders: str) -> bytes:
    if "d" in orders:
        part = bytes(byte for byte in part if chr(byte).isalnum() or byte in b" \t")
    if "f" in orders:
        return part.upper()
    return part


VALUES: dict[str, Callable[[bytes], Any]] = {
    "n": _number,
    "g": _general_number,
    "h": _human_number,
    "M": _month,
    "V": cmp_to_key(_version_order),
}


class Ordering:
    """The order of lines that the options of ``sort`` ask for."""

    def __init__(self, options: Arguments) -> None:
        self.separator = _separator(options)
        orders = "".join(key for key, _ in options.given if key in ORDERS)
        self.keys = [_parse_key(text, orders) for text in options.all("k")]
        if not self.keys:
            self.keys = [SortKey(1, 1, 0, 0, orders, False)]
        self.is_reversed = "r" in orders
        self.has_last_resort = not options.has("s", "u")

    def compare(self, left: bytes, right: bytes) -> int:
        """Compare by all keys, then by the whole lines."""
        difference = self.compare_keys(left, right)
        if difference or not self.has_last_resort:
            return difference
        whole = (left > right) - (left < right)
        if self.is_reversed:
            return -whole
        return whole

    def compare_keys(self, left: bytes, right: bytes) -> int:
        """Compare by the keys alone."""
        for key in self.keys:
            mine = self._value(key, left)
            other = self._value(key, right)
            if mine != other:
                is_after: bool = mine > other
                if is_after != ("r" in key.orders):
                    return 1
                return -1
        return 0

    def _value(self, key: SortKey, line: bytes) -> Any:
        part = key.part(line, self.separator)
        for order, value in VALUES.items():
            if order in key.orders:
                return value(part)
        return _folded(part, key.orders)


def _separator(options: Arguments) -> bytes:
    text = options.get("t")
    if options.has("t") and not text:
        raise Failure("empty tab", 2)
    if text == "\\0":
        return b"\0"
    separator = text.encode()
    if len(separator) > 1:
        raise Failure(f"multi-character tab '{text}'", 2)
    return separator


def _parse_key(text: str, inherited: str) -> SortKey:
    match = KEY.fullmatch(text)
    if match is None:
        raise Failure(f"invalid number at field start: invalid count at start of '{text}'", 2)
    first, first_character, orders, last, last_character, last_orders = match.groups()
    if int(first) == 0:
        raise Failure(f"field number is zero: invalid field specification '{text}'", 2)
    own = orders + (last_orders or "")
    if set(own) - set(KNOWN_ORDERS):
        raise Unknown(f"key {text}")
    effective = own or inherited
    if own and "b" not in orders:
        effective = effective.replace("b", "")
    skips_at_end = "b" in (last_orders or "") or (not own and "b" in inherited)
    return SortKey(
        int(first),
        int(first_character or 1),
        int(last or 0),
        int(last_character or 0),
        effective,
        skips_at_end,
    )


@program(
    "-b,--ignore-leading-blanks",
    "-d,--dictionary-order",
    "-f,--ignore-case",
    "-g,--general-numeric-sort",
    "-h,--human-numeric-sort",
    "-M,--month-sort",
    "-n,--numeric-sort",
    "-r,--reverse",
    "-V,--version-sort",
    "-c,--check",
    "-C",
    "-k,--key=KEYDEF",
    "-o,--output=FILE",
    "-s,--stable",
    "-t,--field-separator=SEP",
    "-u,--unique",
    "-z,--zero-terminated",
    style=ArgumentStyle(usage_status=2),
)
def sort(call: Execution, options: Arguments) -> int:
    """Sort lines."""
    ordering = Ordering(options)
    inputs = Inputs(
        call,
        options.operands,
        message="cannot read: {name}: {problem}",
        directory="read failed: {name}: {problem}",
        status=2,
    )
    terminator = b"\n"
    if options.has("z"):
        terminator = b"\0"
    lines = [line for _, data in inputs for line in lines_of(data, terminator)]
    if inputs.status:
        return inputs.status
    if options.has("c", "C"):
        return _check(call, options, ordering, lines)
    lines.sort(key=cmp_to_key(ordering.compare))
    if options.has("u"):
        groups = groupby(lines, key=cmp_to_key(ordering.compare_keys))
        lines = [next(group) for _, group in groups]
    content = b"".join(line + terminator for line in lines)
    _write(call, options.get("o"), content)
    return 0


def _write(call: Execution, name: str, content: bytes) -> None:
    if not name:
        call.out(content)
        return
    try:
        path = absolute(call, name)
        call.files.write(path, content, now=call.now)
    except FileError as error:
        message = f"open failed: {name}: {error.problem}"
        raise Failure(message, 2) from error


def _check(call: Execution, options: Arguments, ordering: Ordering, lines: list[bytes]) -> int:
    name = "-"
    if options.operands:
        name = options.operands[0]
    for number in range(1, len(lines)):
        difference = ordering.compare(lines[number - 1], lines[number])
        if difference > 0 or (difference == 0 and options.has("u")):
            if not options.has("C"):
                complain(
                    call,
                    f"{name}:{number + 1}: disorder: {lines[number].decode('utf-8', 'replace')}",
                )
            return 1
    return 0


@program(
    "-c,--count",
    "-d,--repeated",
    "-u,--unique",
    "-i,--ignore-case",
    "-f,--skip-fields=N",
    "-s,--skip-chars=N",
    "-w,--check-chars=N",
    "-D",
)
def uniq(call: Execution, options: Arguments) -> int:
    """Leave out lines that are like the one before them."""
    operands = options.operands
    if len(operands) > 2:
        raise Failure(f"extra operand '{operands[2]}'\nTry 'uniq --help' for more information.")
    name = "-"
    if operands:
        name = operands[0]
    try:
        data = read_file(call, name)
    except FileError as error:
        is_directory = error.problem == "Is a directory"
        subject = name
        if is_directory:
            subject = f"error reading '{name}'"
        message = f"{subject}: {error.problem}"
        raise Failure(message) from error
    groups = [list(group) for _, group in groupby(lines_of(data), key=_uniq_key(options))]
    content = b"".join(_uniq_lines(group, options) for group in groups)
    _write(call, operands[1] if len(operands) > 1 else "", content)
    return 0


def _uniq_key(options: Arguments) -> Callable[[bytes], bytes]:
    fields = whole_number(
        options.get("f", "0"), f"{options.get('f')}: invalid number of fields to skip"
    )
    skipped = whole_number(
        options.get("s", "0"), f"{options.get('s')}: invalid number of bytes to skip"
    )
    width = options.get("w")
    compared = (
        whole_number(width, f"{width}: invalid number of bytes to compare") if width else None
    )
    ignores_case = options.has("i")

    def key(line: bytes) -> bytes:
        start = 0
        for _ in range(fields):
            start = _end_of_word(line, start)
        part = line[start + skipped :][:compared]
        if ignores_case:
            return part.upper()
        return part

    return key


def _uniq_lines(group: list[bytes], options: Arguments) -> bytes:
    is_repeated = len(group) > 1
    if options.has("d", "D") and not is_repeated:
        return b""
    if options.has("u") and is_repeated:
        return b""
    if options.has("D"):
        return b"".join(line + b"\n" for line in group)
    count = b""
    if options.has("c"):
        count = f"{len(group):7d} ".encode()
    return count + group[0] + b"\n"
