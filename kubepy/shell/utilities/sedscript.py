"""The scripts of ``sed``: addresses and commands as values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from kubepy.shell.utilities.patterns import BadPattern, Pattern, compile_pattern
from kubepy.shell.utilities.program import Failure
from kubepy.shell.utility import Unknown

COMMANDS = "{}=abcdDgGhHilnNpPqQrstTwxy:#"
TEXT_COMMANDS = "aic"
LABEL_COMMANDS = "btT:"
FILE_COMMANDS = "rw"
UNKNOWN_COMMANDS = "eFvzRW"
STEP = re.compile(r"(\d+)~(\d+)")
NUMBER = re.compile(r"\d+")
CONTINUED = re.compile(r"\\[ \t]*\n")
CASES = "ULEul"


class SedAddress(NamedTuple):
    """A line number, the last line, every so many lines, or lines that match."""

    kind: str  # "line", "last", "step", "pattern", "plus", "multiple"
    number: int = 0
    step: int = 0
    pattern: Pattern | None = None  # None in a "pattern": the last that was used


@dataclass
class SedSubstitution:
    """The parts of an ``s`` command."""

    pattern: Pattern | None
    replacement: list[str | int]  # texts, groups, and "\\U" and the like
    is_global: bool = False
    number: int = 1
    is_printed: bool = False
    file: str = ""


@dataclass
class SedCommand:
    """One command with its addresses."""

    name: str
    addresses: tuple[SedAddress, ...] = ()
    is_negated: bool = False
    text: str = ""  # of a, i, c; a label; a file
    number: int = 0  # an exit status; the index of the end of a block
    substitution: SedSubstitution | None = None
    translation: dict[int, str] = field(default_factory=dict)
    active_until: int = 0  # of a range that has begun: its last line; -1 while a pattern is awaited


class SedParser:
    """The reading of one script."""

    def __init__(self, source: str, *, extended: bool) -> None:
        self.source = source
        self.extended = extended
        self.position = 0
        self.commands: list[SedCommand] = []
        self.blocks: list[int] = []

    def parse(self) -> list[SedCommand]:
        """Read all commands. Raises Failure."""
        while self._skip(" \t\n;"):
            self._read_command()
        if self.blocks:
            raise self._error("unmatched `{'", at=0)
        self._resolve_labels()
        return self.commands

    def _error(self, message: str, at: int | None = None) -> Failure:
        place = at
        if at is None:
            place = self.position
        return Failure(f"-e expression #1, char {place}: {message}")

    def _skip(self, characters: str) -> bool:
        """Pass over characters; tell whether something follows."""
        while self._peek() and self._peek() in characters:
            self.position += 1
        return bool(self._peek())

    def _peek(self) -> str:
        return self.source[self.position : self.position + 1]

    def _take(self) -> str:
        character = self._peek()
        self.position += len(character)
        return character

    def _read_command(self) -> None:
        addresses = self._addresses()
        self._skip(" \t")
        is_negated = False
        while self._peek() == "!":
            is_negated = True
            self.position += 1
            self._skip(" \t")
        name = self._take()
        if not name:
            raise self._error("missing command")
        if name in UNKNOWN_COMMANDS:
            raise Unknown(f"sed {name}")
        if name not in COMMANDS:
            raise self._error(f"unknown command: `{name}'")
        command = SedCommand(name, addresses, is_negated)
        if name == "}":
            self._close_block(command)
            return
        if name == "#":
            self._line()
            return
        self.commands.append(command)
        self._read_arguments(command)

    def _close_block(self, command: SedCommand) -> None:
        if command.addresses:
            raise self._error("} doesn't want any addresses")
        if not self.blocks:
            raise self._error("unexpected `}'")
        self.commands[self.blocks.pop()].number = len(self.commands)
        self._end_command()

    def _addresses(self) -> tuple[SedAddress, ...]:
        first = self._address()
        if first is None:
            return ()
        self._skip(" \t")
        if self._peek() != ",":
            if first.kind == "line" and first.number == 0:
                raise self._error("invalid usage of line address 0")
            return (first,)
        self.position += 1
        self._skip(" \t")
        second = self._second_address()
        if second is None:
            raise self._error("unexpected `,'")
        if first == SedAddress("line", 0) and second.kind != "pattern":
            raise self._error("invalid usage of line address 0")
        return first, second

    def _second_address(self) -> SedAddress | None:
        mark = self._peek()
        if mark in ("+", "~"):
            self.position += 1
            number = self._number()
            return SedAddress("plus" if mark == "+" else "multiple", number or 0)
        return self._address()

    def _number(self) -> int | None:
        match = NUMBER.match(self.source, self.position)
        if match is None:
            return None
        self.position = match.end()
        return int(match[0])

    def _address(self) -> SedAddress | None:
        if match := STEP.match(self.source, self.position):
            self.position = match.end()
            return SedAddress("step", int(match[1]), int(match[2]))
        number = self._number()
        if number is not None:
            return SedAddress("line", number)
        character = self._peek()
        if character == "$":
            self.position += 1
            return SedAddress("last")
        if character not in ("/", "\\"):
            return None
        self.position += 1
        delimiter = "/"
        if character == "\\":
            delimiter = self._take()
        source = self._delimited(delimiter, "unterminated address regex", is_pattern=True)
        flags = ""
        while self._peek() and self._peek() in "IM":
            flags += self._take()
        return SedAddress("pattern", pattern=self._compile(source, flags))

    def _delimited(self, delimiter: str, message: str, *, is_pattern: bool) -> str:
        """Read to a delimiter; an escaped one stands for itself."""
        pieces: list[str] = []
        in_bracket = False
        while True:
            character = self._take()
            if not character or (character == "\n" and is_pattern and message.endswith("regex")):
                raise self._error(message)
            if character == "\\":
                pieces.append(self._escaped(delimiter, is_pattern=is_pattern))
                continue
            if is_pattern and not in_bracket and character == "[":
                pieces.append(self._opened_bracket())
                in_bracket = True
                continue
            if in_bracket and character == "]":
                in_bracket = False
            elif character == delimiter and not in_bracket:
                return "".join(pieces)
            pieces.append(character)

    def _opened_bracket(self) -> str:
        """Return the opening of a bracket with what is a member at its first place, as ``]``."""
        opening = "["
        if self._peek() == "^":
            opening += self._take()
        if self._peek() == "]":
            opening += self._take()
        while self.source.startswith("[:", self.position):
            end = self.source.find(":]", self.position)
            if end < 0:
                break
            opening += self.source[self.position : end + 2]
            self.position = end + 2
        return opening

    def _escaped(self, delimiter: str, *, is_pattern: bool) -> str:
        following = self._take()
        if is_pattern and following == "n":
            return "\n"
        if following == "\n":
            if is_pattern:
                return "\n"
            return "\\\n"
        if following == delimiter and (is_pattern or following != "&"):
            return following
        return f"\\{following}"

    def _compile(self, source: str, flags: str) -> Pattern | None:
        if not source:
            return None
        try:
            return compile_pattern(
                source,
                extended=self.extended,
                ignore_case="I" in flags or "i" in flags,
                multiline="M" in flags or "m" in flags,
            )
        except BadPattern as error:
            raise self._error(str(error)) from error

    def _read_arguments(self, command: SedCommand) -> None:
        name = command.name
        if name == "{":
            self.blocks.append(len(self.commands) - 1)
        elif name in TEXT_COMMANDS:
            command.text = self._text()
        elif name in LABEL_COMMANDS:
            command.text = self._label(name)
        elif name in FILE_COMMANDS:
            self._skip(" \t")
            command.text = self._line()
            if not command.text:
                raise self._error("missing filename in r/R/w/W commands")
        elif name == "s":
            command.substitution = self._substitution()
        elif name == "y":
            command.translation = self._translation()
        else:
            self._skip(" \t")
            command.number = self._number() or 0
            self._end_command()

    def _label(self, name: str) -> str:
        self._skip(" \t")
        start = self.position
        endings = "\n;}"
        if name == ":":
            endings = "\n;"
        while self._peek() and self._peek() not in endings:
            self.position += 1
        label = self.source[start : self.position].strip()
        if name == ":" and not label:
            raise self._error('":" lacks a label')
        return label

    def _end_command(self) -> None:
        self._skip(" \t")
        following = self._peek()
        if following and following not in "\n;}#":
            self.position += 1
            raise self._error("extra characters after command")

    def _line(self) -> str:
        end = self.source.find("\n", self.position)
        end = len(self.source) if end < 0 else end
        line = self.source[self.position : end]
        self.position = end
        return line

    def _text(self) -> str:
        """Read the text of a, i and c; a backslash at the end of a line continues it."""
        self._skip(" \t")
        if not self._peek():
            raise self._error("expected \\ after `a', `c' or `i'")
        if match := CONTINUED.match(self.source, self.position):
            self.position = match.end()
        elif self._peek() == "\\":
            self.position += 1
        pieces: list[str] = []
        while character := self._take():
            if character == "\\":
                pieces.append(self._take())
            elif character == "\n":
                break
            else:
                pieces.append(character)
        return "".join(pieces) + "\n"

    def _substitution(self) -> SedSubstitution:
        delimiter = self._take()
        unterminated = "unterminated `s' command"
        if not delimiter:
            raise self._error(unterminated)
        source = self._delimited(delimiter, unterminated, is_pattern=True)
        replacement = self._delimited(delimiter, unterminated, is_pattern=False)
        substitution = SedSubstitution(None, [])
        flags = ""
        while self._peek() and self._peek() not in "\n;}# \t":
            flags += self._read_flag(substitution)
        self._end_command()
        substitution.pattern = self._compile(source, flags)
        substitution.replacement = self._replacement(replacement)
        groups = [part for part in substitution.replacement if isinstance(part, int)]
        most = 9
        if substitution.pattern:
            most = substitution.pattern.groups
        if groups and max(groups) > most:
            raise self._error(f"invalid reference \\{max(groups)} on `s' command's RHS")
        return substitution

    def _read_flag(self, substitution: SedSubstitution) -> str:
        number = self._number()
        if number is not None:
            if number == 0:
                raise self._error("number option to `s' command may not be zero")
            substitution.number = number
            return ""
        flag = self._take()
        if flag == "g":
            substitution.is_global = True
        elif flag == "p":
            substitution.is_printed = True
        elif flag == "w":
            self._skip(" \t")
            substitution.file = self._line()
        elif flag == "e":
            raise Unknown("sed s///e")
        elif flag not in "iImM":
            raise self._error("unknown option to `s'")
        return flag

    def _replacement(self, text: str) -> list[str | int]:
        parts: list[str | int] = []
        position = 0
        while position < len(text):
            character = text[position]
            position += 1
            if character == "&":
                parts.append(0)
            elif character != "\\" or position == len(text):
                parts.append(character)
            else:
                parts.append(_replacement_escape(text[position]))
                position += 1
        return parts

    def _translation(self) -> dict[int, str]:
        delimiter = self._take()
        unterminated = "unterminated `y' command"
        sides = []
        for _ in range(2):
            sides.append(
                self._delimited(delimiter, unterminated, is_pattern=False) if delimiter else ""
            )
        old, new = (side.replace("\\n", "\n").replace("\\\\", "\\") for side in sides)
        if len(old) != len(new):
            raise self._error("strings for `y' command are different lengths")
        self._end_command()
        return {ord(before): after for before, after in zip(old, new, strict=True)}

    def _resolve_labels(self) -> None:
        labels = {
            command.text: index
            for index, command in enumerate(self.commands)
            if command.name == ":"
        }
        for command in self.commands:
            if command.name in ("b", "t", "T"):
                if command.text and command.text not in labels:
                    raise Failure(f"can't find label for jump to `{command.text}'")
                command.number = labels.get(command.text, len(self.commands))


def _replacement_escape(character: str) -> str | int:
    if character.isdigit():
        return int(character)
    if character in CASES:
        return f"\\{character}"
    return {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}.get(
        character, character
    )
