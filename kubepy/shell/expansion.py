"""The expansion of words: parameters, substitutions, arithmetic, splitting into fields, patterns.

A command substitution whose output is not there yet ends the expansion with NeedsOutput: the
interpreter runs it, and begins again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kubepy.shell import globbing
from kubepy.shell.arithmetic import ExpressionError, evaluate
from kubepy.shell.syntax import Arithmetic, Parameter, Part, Substitution, Text, Word

if TYPE_CHECKING:
    from kubepy.shell.files import FileSystem

DEFAULT_IFS = " \t\n"
BRACES = re.compile(r"\{[^{}\s]*(,|\.\.)[^{}\s]*\}")
RANGE = re.compile(r"(-?\d+|[a-zA-Z])\.\.(-?\d+|[a-zA-Z])(?:\.\.(-?\d+))?")


class ExpansionError(Exception):
    """A word that cannot be expanded: the shell ends with the message.

    :ivar is_unset: because a variable is not set.
    """

    def __init__(self, message: str, *, is_unset: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_unset = is_unset


class NeedsOutput(Exception):
    """A substitution whose output is needed next: the list that prints it, and whether it is needed
    in a file."""

    def __init__(self, body: int, *, is_file: bool) -> None:
        super().__init__(body)
        self.body = body
        self.is_file = is_file


class VariableScope(Protocol):
    """The shell whose words are expanded."""

    files: FileSystem
    cwd: str
    args: list[str]
    has_braces: bool
    fails_on_unset: bool
    finds_paths: bool

    def get(self, name: str) -> str | None:
        """Return the value of a variable or of a special parameter, None where it is not set."""

    def take_status(self, status: int) -> None:
        """Take the status of a substitution: that of the command so far in bash."""

    def elements(self, name: str) -> Sequence[str]:
        """Return the elements of an array; those of another variable are its value."""

    def assign(self, name: str, value: str) -> None:
        """Set a variable."""


class Piece(NamedTuple):
    """A part of a field, or with ``is_break`` the end of one."""

    text: str
    is_quoted: bool
    is_split: bool = False
    is_break: bool = False


def element_name(name: str, number: int) -> str:
    """Return the name of the variable that holds an element of an array: the first one is that of
    the array."""
    return f"{name}[{number}]" if number else name


BREAK = Piece("", is_quoted=True, is_break=True)


class WordExpansion:
    """Expands the words of one command. Everything here raises ExpansionError and NeedsOutput.

    :param outputs: what substitutions have printed, in the order in which they are needed, and the
        status with which each has ended (None for one that leaves ``$?`` as it is).
    """

    def __init__(
        self, scope: VariableScope, outputs: Sequence[tuple[str, int | None]] = ()
    ) -> None:
        self._scope = scope
        self._outputs = list(outputs)

    # --- what others ask for

    def fields(self, word: Word) -> list[str]:
        """Return the fields that a word becomes."""
        fields: list[str] = []
        for alternative in self._braces(word):
            pieces = self._tilde([*self._pieces(alternative)])
            for field in self._split(pieces):
                fields += self._paths(field)
        return fields

    def text(self, word: Word) -> str:
        """Return the text that a word becomes where nothing is split."""
        pieces = self._tilde([*self._pieces(word)])
        joined = [" " if piece.is_break else piece.text for piece in pieces]
        return "".join(joined)

    def pattern(self, word: Word) -> str:
        """Return the pattern that a word becomes: what is quoted stands for itself."""
        parts = []
        for piece in self._pieces(word):
            parts.append(globbing.quoted(piece.text) if piece.is_quoted else piece.text)
        return "".join(parts)

    # --- parts

    def _pieces(self, word: Word) -> Iterator[Piece]:
        for part in word:
            yield from self._part(part)

    def _part(self, part: Part) -> Iterator[Piece]:
        match part:
            case Text(text, is_quoted):
                yield Piece(text, is_quoted)
            case Substitution(body, is_quoted, is_file):
                if not self._outputs:
                    raise NeedsOutput(body, is_file=is_file)
                output, status = self._outputs.pop(0)
                if status is not None:
                    self._scope.take_status(status)
                yield Piece(output, is_quoted, is_split=not is_quoted)
            case Arithmetic(expression, is_quoted):
                value = self._evaluate(self.text(expression))
                yield Piece(value, is_quoted, is_split=not is_quoted)
            case Parameter():
                yield from self._parameter(part)

    def _evaluate(self, text: str) -> str:
        try:
            return str(evaluate(text, lambda name: self._scope.get(name) or "", self._scope.assign))
        except ExpressionError as error:
            raise ExpansionError(f"arithmetic expression: {error}") from None

    def _parameter(self, part: Parameter) -> Iterator[Piece]:
        if part.subscript:
            yield from self._element(part)
            return
        operator = part.operator
        if operator == "" and part.name in "@*":
            yield from self._arguments(part)
            return
        value = self._scope.get(part.name)
        if part.name in ("@", "*"):
            value = " ".join(self._scope.args) if self._scope.args else None
        if operator.lstrip(":") in ("-", "=", "?", "+") and operator != ":":
            is_set = value is not None and (value != "" or not operator.startswith(":"))
            yield from self._conditional(part, value or "", is_set=is_set)
            return
        if value is None and self._scope.fails_on_unset and part.name not in ("@", "*"):
            what = "unbound variable" if self._scope.has_braces else "parameter not set"
            raise ExpansionError(f"{part.name}: {what}", is_unset=True)
        text = self._transformed(part, value or "")
        yield Piece(text, part.is_quoted, is_split=not part.is_quoted)

    def _element(self, part: Parameter) -> Iterator[Piece]:
        """Yield an element of an array, or all of them."""
        subscript = self.text(part.subscript)
        if subscript not in ("@", "*"):
            name = element_name(part.name, int(self._evaluate(subscript)))
            yield from self._parameter(part._replace(name=name, subscript=()))
            return
        elements = self._scope.elements(part.name)
        if part.operator == "length":
            yield Piece(str(len(elements)), part.is_quoted)
            return
        if part.operator:
            raise ExpansionError("Bad substitution")
        yield from self._list(part._replace(name=subscript), elements)

    def _arguments(self, part: Parameter) -> Iterator[Piece]:
        """Yield the arguments of the shell."""
        yield from self._list(part, self._scope.args)

    def _list(self, part: Parameter, args: Sequence[str]) -> Iterator[Piece]:
        """Yield several values, each a field of its own, or as one where that is asked for."""
        if part.is_quoted and part.name == "*":
            ifs = self._scope.get("IFS")
            separator = " " if ifs is None else ifs[:1]
            yield Piece(separator.join(args), is_quoted=True)
            return
        if part.is_quoted and not args:
            yield Piece("", is_quoted=False)  # "$@" without arguments is no field
            return
        for index, argument in enumerate(args):
            if index:
                yield BREAK
            yield Piece(argument, part.is_quoted, is_split=not part.is_quoted)

    def _conditional(self, part: Parameter, value: str, *, is_set: bool) -> Iterator[Piece]:
        operator = part.operator[-1]
        if operator == "+":
            if is_set:
                yield from self._operand(part)
            elif part.is_quoted:
                yield Piece("", is_quoted=True)
            return
        if is_set:
            yield Piece(value, part.is_quoted, is_split=not part.is_quoted)
            return
        if operator == "-":
            yield from self._operand(part)
            return
        text = self.text(part.word)
        if operator == "=":
            self._scope.assign(part.name, text)
            yield Piece(text, part.is_quoted, is_split=not part.is_quoted)
            return
        default = "parameter not set or null" if ":" in part.operator else "parameter not set"
        raise ExpansionError(f"{part.name}: {text or default}", is_unset=True)

    def _operand(self, part: Parameter) -> Iterator[Piece]:
        if part.is_quoted and not part.word:
            yield Piece("", is_quoted=True)
        for piece in self._pieces(part.word):
            if part.is_quoted:
                yield piece._replace(is_quoted=True, is_split=False)
            elif piece.is_quoted:
                yield piece
            else:
                yield piece._replace(is_split=True)

    def _transformed(self, part: Parameter, value: str) -> str:
        if not value and self._scope.has_braces and part.operator in ("#", "##", "%", "%%"):
            return ""  # bash does not look at the pattern
        match part.operator:
            case "":
                return value
            case "length":
                if part.name in ("@", "*"):
                    return str(len(self._scope.args))
                return str(len(value.encode("utf-8", "surrogateescape")))
            case "#" | "##":
                pattern = self.pattern(part.word)
                return globbing.remove_prefix(value, pattern, is_longest=part.operator == "##")
            case "%" | "%%":
                pattern = self.pattern(part.word)
                return globbing.remove_suffix(value, pattern, is_longest=part.operator == "%%")
            case "/" | "//":
                return self._replaced(part, value)
            case "^" | "^^" | "," | ",,":
                return _cased(part.operator, value)
            case ":":
                return self._slice(part, value)
            case "!":
                return self._scope.get(value) or ""
        raise ExpansionError("Bad substitution")

    def _replaced(self, part: Parameter, value: str) -> str:
        """Return ``${x/pattern/replacement}``."""
        before: list[Part] = []
        after: list[Part] = []
        target = before
        for piece in part.word:
            if target is before and isinstance(piece, Text) and not piece.is_quoted:
                text, separator, rest = piece.text.partition("/")
                before.append(Text(text, is_quoted=False))
                if separator:
                    target = after
                    after.append(Text(rest, is_quoted=False))
            elif target is before and isinstance(piece, Text) and part.is_quoted:
                text, separator, rest = piece.text.partition("/")
                before.append(Text(text, is_quoted=False))
                if separator:
                    target = after
                    after.append(Text(rest, is_quoted=True))
            else:
                target.append(piece)
        pattern = self.pattern(tuple(before))
        replacement = self.text(tuple(after))
        if pattern.startswith("#"):
            rest = globbing.remove_prefix(value, pattern[1:], is_longest=True)
            return value if rest == value else replacement + rest
        if pattern.startswith("%"):
            rest = globbing.remove_suffix(value, pattern[1:], is_longest=True)
            return value if rest == value else rest + replacement
        is_global = part.operator == "//"
        return globbing.replace(
            value,
            pattern,
            replacement,
            is_global=is_global,
        )

    def _slice(self, part: Parameter, value: str) -> str:
        """Return ``${x:offset:length}``."""
        offset_text, separator, length_text = self.text(part.word).partition(":")
        offset = int(self._evaluate(offset_text))
        if offset < 0:
            offset += len(value)
        if offset < 0:
            return ""
        if not separator:
            return value[offset:]
        length = int(self._evaluate(length_text))
        end = offset + length if length >= 0 else len(value) + length
        return value[offset:end]

    # --- fields

    def _tilde(self, pieces: list[Piece]) -> list[Piece]:
        """Put the home directory in place of a tilde at the begin."""
        if not pieces or pieces[0].is_quoted or not pieces[0].text.startswith("~"):
            return pieces
        text = pieces[0].text
        if text == "~" or text.startswith("~/"):
            home = self._scope.get("HOME") or "/root"
            return [Piece(home, is_quoted=True), Piece(text[1:], is_quoted=False), *pieces[1:]]
        return pieces

    def _split(self, pieces: list[Piece]) -> Iterator[list[Piece]]:
        """Yield the fields of which pieces consist."""
        ifs = self._scope.get("IFS")
        separators = DEFAULT_IFS if ifs is None else ifs
        field: list[Piece] = []
        for piece in pieces:
            if piece.is_break:
                if field:
                    yield field
                field = []
            elif not piece.is_split or not separators:
                if piece.text or piece.is_quoted:
                    field.append(piece)
            else:
                complete, field = _split_value(piece, field, separators)
                yield from complete
        if field:
            yield field

    def _paths(self, field: list[Piece]) -> list[str]:
        """Return the files that a field matches as a pattern, else its text."""
        text = "".join(piece.text for piece in field)
        if not self._scope.finds_paths or not any(
            not piece.is_quoted and any(each in piece.text for each in globbing.SPECIAL)
            for piece in field
        ):
            return [text]
        pattern = "".join(
            globbing.quoted(piece.text) if piece.is_quoted else piece.text for piece in field
        )
        return globbing.paths(pattern, self._scope.cwd, self._scope.files) or [text]

    def _braces(self, word: Word) -> list[Word]:
        """Return the words that braces make of one."""
        if not self._scope.has_braces:
            return [word]
        for index, part in enumerate(word):
            if not isinstance(part, Text) or part.is_quoted:
                continue
            found = BRACES.search(part.text)
            if found is None:
                continue
            words: list[Word] = []
            for alternative in _alternatives(found[0][1:-1]):
                text = part.text[: found.start()] + alternative + part.text[found.end() :]
                replaced = (*word[:index], Text(text, is_quoted=False), *word[index + 1 :])
                words += self._braces(replaced)
            return words
        return [word]


def _alternatives(text: str) -> list[str]:
    found = RANGE.fullmatch(text)
    if found is None:
        return text.split(",")
    first, last, step = found.groups()
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return [f"{{{text}}}"]
    if not first.lstrip("-").isdigit():
        return [chr(code) for code in _range(ord(first), ord(last), step)]
    return [str(number) for number in _range(int(first), int(last), step)]


def _range(first: int, last: int, step: str | None) -> range:
    size = abs(int(step or 1)) or 1
    if first <= last:
        return range(first, last + 1, size)
    return range(first, last - 1, -size)


def _cased(operator: str, value: str) -> str:
    if operator == "^^":
        return value.upper()
    if operator == ",,":
        return value.lower()
    head = value[:1].upper() if operator == "^" else value[:1].lower()
    return head + value[1:]


def _split_value(
    piece: Piece, field: list[Piece], separators: str
) -> tuple[list[list[Piece]], list[Piece]]:
    """Split a value at the separators. Return the fields that are complete, and the last one."""
    complete: list[list[Piece]] = []
    blanks = "".join(each for each in separators if each in DEFAULT_IFS)
    others = "".join(each for each in separators if each not in DEFAULT_IFS)
    text = piece.text
    position = 0
    begin = 0
    while position < len(text):
        character = text[position]
        if character not in separators:
            position += 1
            continue
        part = text[begin:position]
        if part:
            field.append(Piece(part, is_quoted=False))
        had_other = False
        while position < len(text) and text[position] in separators:
            if text[position] in others:
                if had_other:
                    break
                had_other = True
            position += 1
        if field or had_other:
            complete.append(field or [Piece("", is_quoted=True)])
        field = []
        begin = position
        if had_other:
            while begin < len(text) and text[begin] in blanks:
                begin += 1
            position = max(position, begin)
    if begin < len(text):
        field.append(Piece(text[begin:], is_quoted=False))
    return complete, field
