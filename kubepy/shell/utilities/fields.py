"""The programs cut, tr, paste, fold and nl: parts of lines."""

from __future__ import annotations

import re

from kubepy.shell.utilities.inputs import Inputs, from_argument, kept_lines, lines_of, to_bytes
from kubepy.shell.utilities.patterns import CLASSES, CONTROLS
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, program, usage_error
from kubepy.shell.utility import Execution, Unknown

RANGE = re.compile(r"(\d*)(-?)(\d*)")
CHARACTER_CLASS = re.compile(r"\[:(\w+):\]")
OCTAL = re.compile(r"[0-7]{1,3}")
REPEATED = re.compile(r"\[(.)\*(\d*)\]", re.DOTALL)


def _usage(call: Execution, message: str) -> Failure:
    return usage_error(call.name, message)


@program(
    "-b,--bytes=LIST",
    "-c,--characters=LIST",
    "-f,--fields=LIST",
    "-d,--delimiter=DELIM",
    "-s,--only-delimited",
    "-n",
    "--complement",
    "--output-delimiter=STRING",
)
def cut(call: Execution, options: Arguments) -> int:
    """Print parts of lines."""
    kinds = [key for key, _ in options.given if key in "bcf" and key]
    if not kinds:
        raise _usage(call, "you must specify a list of bytes, characters, or fields")
    if len(kinds) > 1:
        raise _usage(call, "only one list may be specified")
    kind = kinds[0]
    if kind != "f" and options.has("d"):
        raise _usage(call, "an input delimiter may be specified only when operating on fields")
    if kind != "f" and options.has("s"):
        raise _usage(
            call,
            "suppressing non-delimited lines makes sense\n\tonly when operating on fields",
        )
    delimiter = options.get("d", "\t").encode() or b"\0"
    if len(delimiter) > 1:
        raise _usage(call, "the delimiter must be a single character")
    ranges = _ranges(call, options.get(kind), kind)
    inputs = Inputs(call, options.operands)
    for _, data in inputs:
        for line in lines_of(data):
            if kind == "f":
                call.out(_cut_fields(line, ranges, delimiter, options))
            else:
                call.out(_cut_bytes(line, ranges, options))
    return inputs.status


def _ranges(call: Execution, text: str, kind: str) -> list[tuple[int, int]]:
    """Read ``1,3-5,7-``; an open range has no end."""
    ranges = []
    for item in re.split(r"[, ]", text):
        match = RANGE.fullmatch(item)
        if match is None:
            subject = "byte/character position"
            if kind == "f":
                subject = "field"
            raise _usage(call, f"invalid {subject} value '{item}'")
        first, dash, last = match.groups()
        if not first and not last:
            raise _usage(call, _bad_range(kind, has_dash=bool(dash)))
        if first == "0" or last == "0":
            raise _usage(call, _numbered_from_one(kind))
        start = int(first or 1)
        end = start
        if dash:
            end = int(last or 0)
        if end and end < start:
            raise _usage(call, "invalid decreasing range")
        ranges.append((start, end))
    return ranges


def _numbered_from_one(kind: str) -> str:
    if kind == "f":
        return "fields are numbered from 1"
    return "byte/character positions are numbered from 1"


def _bad_range(kind: str, *, has_dash: bool) -> str:
    if has_dash:
        return "invalid range with no endpoint: -"
    return _numbered_from_one(kind)


def _is_chosen(position: int, ranges: list[tuple[int, int]], *, is_complement: bool) -> bool:
    is_named = any(start <= position and (not end or position <= end) for start, end in ranges)
    return is_named != is_complement


def _cut_bytes(line: bytes, ranges: list[tuple[int, int]], options: Arguments) -> bytes:
    is_complement = options.has("complement")
    separator = options.get("output-delimiter").encode()
    pieces: list[bytes] = []
    last = 0
    for position in range(1, len(line) + 1):
        if not _is_chosen(position, ranges, is_complement=is_complement):
            continue
        starts_range = any(position == start for start, _ in ranges)
        is_apart = position != last + 1 or starts_range
        if pieces and separator and is_apart:
            pieces.append(separator)
        pieces.append(line[position - 1 : position])
        last = position
    return b"".join(pieces) + b"\n"


def _cut_fields(
    line: bytes, ranges: list[tuple[int, int]], delimiter: bytes, options: Arguments
) -> bytes:
    if delimiter not in line:
        if options.has("s"):
            return b""
        return line + b"\n"
    is_complement = options.has("complement")
    separator = options.get("output-delimiter").encode() or delimiter
    fields = []
    for position, field in enumerate(line.split(delimiter), 1):
        if _is_chosen(position, ranges, is_complement=is_complement):
            fields.append(field)
    return separator.join(fields) + b"\n"


class _Set:
    """The characters that an argument of ``tr`` lists, in order."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self.characters: list[str] = []
        self.classes: list[str] = []
        self.fill: tuple[int, str] | None = None
        while self.position < len(source):
            self._read_item()

    def _read_item(self) -> None:
        if match := CHARACTER_CLASS.match(self.source, self.position):
            self._add_class(match[1])
            self.position = match.end()
            return
        if match := REPEATED.match(self.source, self.position):
            self._add_repeated(match[1], match[2])
            self.position = match.end()
            return
        if self.source.startswith("[=", self.position):
            raise Unknown("[=c=] in tr")
        first = self._character()
        rest = self.source[self.position :]
        if not (rest.startswith("-") and len(rest) > 1):
            self.characters.append(first)
            return
        self.position += 1
        last = self._character()
        if last < first:
            raise Failure(
                f"range-endpoints of '{first}-{last}' are in reverse collating sequence order"
            )
        self.characters += [chr(code) for code in range(ord(first), ord(last) + 1)]

    def _add_class(self, name: str) -> None:
        members = _class_members(name)
        if not members:
            raise Failure(f"invalid character class '{name}'")
        self.classes.append(name)
        self.characters += members

    def _add_repeated(self, character: str, count: str) -> None:
        if not count or int(count, 8 if count.startswith("0") else 10) == 0:
            self.fill = (len(self.characters), character)
        else:
            self.characters += [character] * int(count, 8 if count.startswith("0") else 10)

    def _character(self) -> str:
        character = self.source[self.position]
        self.position += 1
        if character != "\\" or self.position == len(self.source):
            return character
        if match := OCTAL.match(self.source, self.position):
            self.position = match.end()
            return chr(int(match[0], 8) & 255)
        escaped = self.source[self.position]
        self.position += 1
        return {**CONTROLS, "b": "\b"}.get(escaped, escaped)

    def extended(self, length: int) -> list[str]:
        """Return the characters, made as many as those that they replace."""
        characters = list(self.characters)
        missing = length - len(characters)
        if missing <= 0:
            return characters
        if self.fill:
            place, character = self.fill
            characters[place:place] = [character] * missing
        elif characters:
            characters += [characters[-1]] * missing
        return characters


def _class_members(name: str) -> list[str]:
    if name not in CLASSES:
        return []
    member = re.compile(f"[{CLASSES[name]}]")
    return [chr(code) for code in range(128) if member.match(chr(code))]


@program(
    "-c,-C,--complement",
    "-d,--delete",
    "-s,--squeeze-repeats",
    "-t,--truncate-set1",
    style=ArgumentStyle(is_permuted=False),
)
def tr(call: Execution, options: Arguments) -> int:
    """Replace, delete or squeeze characters."""
    operands = options.operands
    _check_tr_operands(call, options)
    sets = [_Set(from_argument(text)) for text in operands]
    first = sets[0].characters
    if options.has("c"):
        named = set(first)
        first = []
        for code in range(256):
            if chr(code) not in named:
                first.append(chr(code))
    text = call.stdin.decode("latin-1")
    squeezed: set[str] = set()
    if options.has("d"):
        text = text.translate(dict.fromkeys(map(ord, first)))
        if len(sets) > 1:
            squeezed = set(sets[1].characters)
    elif len(sets) > 1:
        text = text.translate(_translation(first, sets, options))
        squeezed = set(sets[1].extended(len(first)))
    else:
        squeezed = set(first)
    if options.has("s"):
        text = _squeezed(text, squeezed)
    call.out(to_bytes(text))
    return 0


def _translation(first: list[str], sets: list[_Set], options: Arguments) -> dict[int, str]:
    if options.has("t"):
        replacements = list(sets[1].characters)
    else:
        replacements = sets[1].extended(len(first))
        if not replacements:
            raise Failure("when not truncating set1, string2 must be non-empty")
    if sets[1].classes and set(sets[1].classes) - {"upper", "lower"}:
        raise Failure(
            "when translating, the only character classes that may appear in\n"
            "string2 are 'upper' and 'lower'"
        )
    return {ord(old): new for old, new in zip(first, replacements, strict=False)}


def _check_tr_operands(call: Execution, options: Arguments) -> None:
    operands = options.operands
    needs_one = options.has("d") != options.has("s")
    least = 2
    if needs_one:
        least = 1
    if not operands:
        raise _usage(call, "missing operand")
    if len(operands) < least:
        kind = "translating"
        if options.has("d"):
            kind = "both deleting and squeezing repeats"
        raise _usage(
            call, f"missing operand after '{operands[-1]}'\nTwo strings must be given when {kind}."
        )
    most = 2
    if options.has("d") and not options.has("s"):
        most = 1
    if len(operands) > most:
        note = "\nOnly one string may be given when deleting without squeezing repeats."
        if most == 2:
            note = ""
        raise _usage(call, f"extra operand '{operands[most]}'{note}")


def _squeezed(text: str, characters: set[str]) -> str:
    kept: list[str] = []
    last = ""
    for character in text:
        if character == last and character in characters:
            continue
        kept.append(character)
        last = character
    return "".join(kept)


@program("-d,--delimiters=LIST", "-s,--serial")
def paste(call: Execution, options: Arguments) -> int:
    """Join lines of files side by side."""
    delimiters = _paste_delimiters(options.get("d", "\t"))
    inputs = Inputs(call, options.operands)
    if options.operands.count("-") > 1:
        columns = _dealt_columns(call, options)
    else:
        columns = [lines_of(data) for _, data in inputs]
    if inputs.status:
        return inputs.status
    if options.has("s"):
        rows = columns
    else:
        height = max((len(column) for column in columns), default=0)
        rows = [
            [column[row] if row < len(column) else b"" for column in columns]
            for row in range(height)
        ]
    for row in rows:
        call.out(_pasted(row, delimiters) + b"\n")
    return 0


def _dealt_columns(call: Execution, options: Arguments) -> list[list[bytes]]:
    """Deal the lines of standard input to as many columns as name it."""
    if set(options.operands) != {"-"}:
        raise Unknown("paste of standard input and files")
    count = len(options.operands)
    lines = lines_of(call.stdin)
    return [lines[column::count] for column in range(count)]


def _paste_delimiters(text: str) -> list[bytes]:
    delimiters = []
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and position + 1 < len(text):
            position += 1
            character = {"n": "\n", "t": "\t", "0": "", "\\": "\\"}.get(
                text[position], text[position]
            )
        delimiters.append(character.encode())
        position += 1
    return delimiters or [b""]


def _pasted(row: list[bytes], delimiters: list[bytes]) -> bytes:
    pieces = row[:1]
    for place, cell in enumerate(row[1:]):
        pieces += [delimiters[place % len(delimiters)], cell]
    return b"".join(pieces)


@program("-w,--width=WIDTH", "-b,--bytes")
def fold(call: Execution, options: Arguments) -> int:
    """Break lines that are longer than a width."""
    width_text = options.get("w", "80")
    if not width_text.isdigit() or int(width_text) == 0:
        raise Failure(f"invalid number of columns: '{width_text}'")
    width = int(width_text)
    inputs = Inputs(call, options.operands)
    for _, data in inputs:
        if b"\t" in data and not options.has("b"):
            raise Unknown("fold of tabs")
        for line in kept_lines(data):
            body = line.removesuffix(b"\n")
            starts = range(0, len(body), width)
            pieces = []
            for start in starts:
                pieces.append(body[start : start + width])
            folded = b"\n".join(pieces)
            end = line[len(body) :]
            call.out(folded + end)
    return inputs.status


@program(
    "-b,--body-numbering=STYLE",
    "-w,--number-width=NUM",
    "-s,--number-separator=STRING",
    "-v,--starting-line-number=NUM",
)
def nl(call: Execution, options: Arguments) -> int:
    """Number lines."""
    style = options.get("b", "t")
    if style not in ("a", "t", "n"):
        raise Unknown(f"nl -b {style}")
    width = int(options.get("w", "6"))
    number = int(options.get("v", "1"))
    separator = options.get("s", "\t")
    inputs = Inputs(call, options.operands)
    for _, data in inputs:
        for line in lines_of(data):
            is_numbered = style == "a" or (style == "t" and line)
            lead = " " * (width + len(separator))
            if is_numbered:
                lead = f"{number:{width}d}{separator}"
                number += 1
            call.out(lead.encode() + line + b"\n")
    return inputs.status
