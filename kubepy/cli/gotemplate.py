"""Go's ``text/template``, as far as ``-o go-template`` needs it: fields, pipelines, variables, if, range, with,
and the built-in functions. Values are parsed JSON.

:class:`Template` reads a text into a tree of nodes; :mod:`kubepy.cli.gotemplate_run` fills it in. Errors are in Go's
words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple


class TemplateError(Exception):
    """What is wrong with a template, or with how it fits an object."""


# --- the tree -----------------------------------------------------------------------------------------------------


class Field(NamedTuple):
    """``.a.b`` of a value: of the dot, of ``$x`` or of a parenthesis."""

    base: Any
    names: tuple[str, ...]


class Dot(NamedTuple):
    pass


class Variable(NamedTuple):
    name: str


class Literal(NamedTuple):
    value: Any


class Function(NamedTuple):
    name: str


class Command(NamedTuple):
    """A function or field with its arguments, or one value."""

    words: tuple[Any, ...]


class Pipeline(NamedTuple):
    """Commands, each given the result of the one before; the result goes to the variables, if any."""

    variables: tuple[str, ...]
    commands: tuple[Command, ...]
    assigns: bool = False


class Text(NamedTuple):
    text: str


class Action(NamedTuple):
    pipeline: Pipeline


class Block(NamedTuple):
    """``if``, ``range`` or ``with``."""

    keyword: str
    pipeline: Pipeline
    body: tuple[Any, ...]
    otherwise: tuple[Any, ...]


class Jump(NamedTuple):
    """``break`` or ``continue``."""

    keyword: str


# --- reading ------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<raw>`[^`]*`)
  | (?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
  | (?P<variable>\$\w*)
  | (?P<field>\.\w+)
  | (?P<dot>\.)
  | (?P<assign>:=|=)
  | (?P<pipe>\|)
  | (?P<open>\()
  | (?P<close>\))
  | (?P<comma>,)
  | (?P<word>\w+)
""", re.VERBOSE)
KEYWORDS = ("if", "range", "with")
FUNCTIONS = ("and", "call", "eq", "exists", "ge", "gt", "html", "index", "js", "len", "le", "lt", "ne", "not", "or",
             "print", "printf", "println", "slice", "urlquery", "base64decode")


class Token(NamedTuple):
    kind: str
    text: str


class Template:
    """A template that has been read. Raises TemplateError."""

    def __init__(self, text: str) -> None:
        self._pieces = _split(text)
        self._position = 0
        self.nodes, end = self._nodes()
        if end:
            raise _error(self._line(), f"unexpected {{{{{end}}}}}")

    def render(self, obj: Any, *, missing_ok: bool = True) -> str:
        """The template filled in; without ``missing_ok`` a key that is not there is an error. Raises TemplateError."""
        from kubepy.cli.gotemplate_run import Run

        return Run(obj, missing_ok).render(self.nodes)

    def _line(self) -> int:
        at = min(self._position, len(self._pieces)) - 1
        return self._pieces[at].line if self._pieces else 1

    def _nodes(self) -> tuple[tuple[Any, ...], str]:
        """The nodes up to an ``end`` or ``else``, and that word with what follows it ("": the end of the text)."""
        nodes: list[Any] = []
        while self._position < len(self._pieces):
            piece = self._pieces[self._position]
            self._position += 1
            if not piece.is_action:
                nodes.append(Text(piece.text))
                continue
            word, _, rest = piece.text.partition(" ")
            if word in ("end", "else"):
                return tuple(nodes), piece.text
            if word in ("break", "continue"):
                nodes.append(Jump(word))
            elif word in KEYWORDS:
                nodes.append(self._block(word, rest, piece.line))
            elif piece.text:
                nodes.append(Action(_pipeline(piece.text, piece.line)))
        return tuple(nodes), ""

    def _block(self, keyword: str, rest: str, line: int) -> Block:
        pipeline = _pipeline(rest, line)
        body, end = self._nodes()
        otherwise: tuple[Any, ...] = ()
        if end.startswith("else"):
            word, _, inner = end.removeprefix("else").strip().partition(" ")
            if word in KEYWORDS:
                return Block(keyword, pipeline, body, (self._block(word, inner, line),))
            otherwise, end = self._nodes()
        if end != "end":
            raise _error(self._line(), "unexpected EOF")
        return Block(keyword, pipeline, body, otherwise)


class Piece(NamedTuple):
    is_action: bool
    text: str
    line: int


def _split(text: str) -> list[Piece]:
    """Text and actions in turn; ``{{-`` and ``-}}`` take the space around them, comments are left out."""
    pieces: list[Piece] = []
    position, trim = 0, False
    while (start := text.find("{{", position)) >= 0:
        line = text.count("\n", 0, start) + 1
        inner, end = _action(text, start, line)
        before = text[position:start]
        before = before.lstrip() if trim else before
        if inner.startswith("- "):
            before, inner = before.rstrip(), inner[2:]
        if trim := inner.endswith(" -"):
            inner = inner[:-2]
        if before:
            pieces.append(Piece(False, before, line))
        inner = inner.strip()
        if not inner.startswith("/*"):
            pieces.append(Piece(True, " ".join(inner.split()) if '"' not in inner and "`" not in inner else inner,
                                line))
        position = end
    rest = text[position:].lstrip() if trim else text[position:]
    return [*pieces, Piece(False, rest, 0)] if rest else pieces


def _action(text: str, start: int, line: int) -> tuple[str, int]:
    """What is between ``{{`` and ``}}`` (which may stand in a string inside), and where it ends."""
    position = start + 2
    while position < len(text):
        if text.startswith("}}", position):
            return text[start + 2:position], position + 2
        quoted = re.match(r'"(?:\\.|[^"\\\n])*"|`[^`]*`', text[position:])
        position += len(quoted[0]) if quoted else 1
    raise _error(line, "unclosed action")


def _error(line: int, what: str) -> TemplateError:
    return TemplateError(f"template: output:{line}: {what}")


def _tokens(text: str, line: int) -> list[Token]:
    """The tokens of an action; a space stays where it separates a field from what is before it."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _error(line, f"unexpected {json.dumps(text[position])} in operand")
        tokens.append(Token(match.lastgroup or "", match[0]))
        position = match.end()
    return tokens


def _pipeline(text: str, line: int) -> Pipeline:
    tokens = _tokens(text, line)
    reader = _Reader(tokens, line)
    pipeline = reader.pipeline()
    if reader.rest():
        raise _error(line, f"unexpected {json.dumps(reader.rest()[0].text)} in operand")
    return pipeline


class _Reader:
    """Reads the tokens of one action."""

    def __init__(self, tokens: Sequence[Token], line: int) -> None:
        self._tokens = list(tokens)
        self._line = line
        self._at = 0

    def rest(self) -> list[Token]:
        self._skip_space()
        return self._tokens[self._at:]

    def pipeline(self) -> Pipeline:
        variables, assigns = self._variables()
        commands = [self._command()]
        while self._next("pipe"):
            commands.append(self._command())
        if not all(command.words for command in commands):
            raise _error(self._line, "missing value for command")
        return Pipeline(variables, tuple(commands), assigns)

    def _variables(self) -> tuple[tuple[str, ...], bool]:
        """``$x :=``, ``$i, $x :=``, ``$x =``; () when the pipeline begins with a value."""
        start, names = self._at, []
        while token := self._next("variable"):
            names.append(token.text)
            if self._next("comma"):
                continue
            if sign := self._next("assign"):
                return tuple(names), sign.text == "="
            break
        self._at = start
        return (), False

    def _command(self) -> Command:
        words: list[Any] = []
        while (word := self._operand()) is not None:
            words.append(word)
        return Command(tuple(words))

    def _operand(self) -> Any:
        """One value with the fields right behind it; None at the end of the command."""
        self._skip_space()
        token = self._peek()
        if token is None or token.kind in ("pipe", "close"):
            return None
        self._at += 1
        value = self._value(token)
        names = []
        while (after := self._peek()) is not None and after.kind == "field":
            names.append(after.text[1:])
            self._at += 1
        if isinstance(value, Field) and isinstance(value.base, Dot):
            return Field(value.base, (*value.names, *names))
        return Field(value, tuple(names)) if names else value

    def _value(self, token: Token) -> Any:
        match token.kind:
            case "field":
                return Field(Dot(), (token.text[1:],))
            case "dot":
                return Dot()
            case "variable":
                return Variable(token.text)
            case "string":
                return Literal(json.loads(token.text.replace("\t", "\\t")))
            case "raw":
                return Literal(token.text[1:-1])
            case "number":
                return Literal(json.loads(token.text.lstrip("+")))
            case "open":
                inner = self.pipeline()
                if not self._next("close"):
                    raise _error(self._line, "unclosed left paren")
                return inner
            case "word":
                return self._word(token.text)
        raise _error(self._line, f"unexpected {json.dumps(token.text)} in operand")

    def _word(self, text: str) -> Any:
        if text in ("true", "false", "nil"):
            return Literal({"true": True, "false": False, "nil": None}[text])
        if text not in FUNCTIONS:
            raise _error(self._line, f'function "{text}" not defined')
        return Function(text)

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self, kind: str) -> Token | None:
        self._skip_space()
        token = self._peek()
        if token is None or token.kind != kind:
            return None
        self._at += 1
        return token

    def _skip_space(self) -> None:
        while (token := self._peek()) is not None and token.kind == "space":
            self._at += 1
