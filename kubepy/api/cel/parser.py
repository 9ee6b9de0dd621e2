"""The parser: expressions into trees, macros included (cel-go's ``parser``,
github.com/google/cel-spec)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

from kubepy.api.cel.syntax import (
    CallExpr,
    CelSyntaxError,
    Ident,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    dotted,
)
from kubepy.api.cel.values import INT_MAX, Uint

_QUOTED = r"""(?P<prefix>[rRbB]{0,2})(?P<quote>\"\"\"|'''|"|')"""
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|//[^\n]*)
  | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<string>{_QUOTED})
  | (?P<ident>[A-Za-z_]\w*)
  | (?P<escaped>`[\w.\-/ ]+`)
  | (?P<op>\?\.|\[\?|&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{{}}=])
""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|"
    r"U([0-9a-fA-F]{8})|"
    r"([0-3][0-7]{2}))",
    re.ASCII,
)
LONGEST_INTEGER = 4000  # digits; Python reads at most 4,300
_SIMPLE = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))

# Operators of two operands, those that bind least first.
_BINARY_OPERATORS = (("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_LITERALS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)
# Macros with the number of their arguments, variables included.
_MACROS = {
    ("all", 2),
    ("exists", 2),
    ("exists_one", 2),
    ("map", 2),
    ("map", 3),
    ("filter", 2),
    ("all", 3),
    ("exists", 3),
    ("existsOne", 2),
    ("existsOne", 3),
    ("transformList", 3),
    ("transformList", 4),
    ("transformMap", 3),
    ("transformMap", 4),
    ("transformMapEntry", 3),
    ("transformMapEntry", 4),
    ("sortBy", 2),
    ("optMap", 2),
    ("optFlatMap", 2),
}
_OF_TWO_VARIABLES = ("transformList", "transformMap", "transformMapEntry")
_SIZE = 100_000  # characters of an expression
_DEPTH = 50  # of nested expressions; cel-go accepts more, but Python's stack is limited


def parse(text: str, names: Container[str] = ()) -> Node:
    """Parse an expression. Raises CelSyntaxError.

    :param names: those of variables, which may be reserved words.
    """
    if len(text) > _SIZE:
        raise CelSyntaxError(
            f"expression code point size exceeds limit: size: {len(text)}, limit {_SIZE}", -1
        )
    return _Parser(text, names).expression_to_end()


# --- tokens ---------------------------------------------------------------------------------------


class Token(NamedTuple):
    """A token. ``kind``: op, ident, literal or end; ``value``: the text of an op or ident, the
    value of a literal."""

    kind: str
    value: Any
    at: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of an expression, the last of which is the end. Raises CelSyntaxError."""
    at = 0
    while at < len(text):
        lexeme = _TOKEN.match(text, at)
        if lexeme is None:
            raise CelSyntaxError(f"Syntax error: token recognition error at: '{text[at]}'", at)
        start = at
        at = lexeme.end()
        match lexeme.lastgroup:
            case _ if lexeme["string"] is not None:
                value, at = _string(text, lexeme)
                yield Token("literal", value, start)
            case "space":
                pass
            case "int":
                yield Token("literal", _whole(lexeme[0]), start)
            case "uint":
                yield Token("literal", Uint(_whole(lexeme[0][:-1])), start)
            case "float":
                if math.isinf(number := float(lexeme[0])):
                    raise CelSyntaxError("Syntax error: invalid double literal", start)
                yield Token("literal", number, start)
            case "escaped":
                yield Token("ident", lexeme[0][1:-1], start)
            case kind:
                yield Token(kind or "", lexeme[0], start)

    yield Token("end", "<EOF>", at)


def _whole(text: str) -> int:
    """Return the value of digits. Everything above 2**64 may be 2**64: the parser refuses what
    exceeds 64 bits."""
    if text.startswith("0x"):
        return int(text, 16)
    if len(text) <= LONGEST_INTEGER:
        return int(text)
    return 2**64


def _string(text: str, literal: re.Match[str]) -> tuple[str | bytes, int]:
    """Return the value of a string or bytes literal, and the position of its end."""
    prefix = literal["prefix"].lower()
    quote = literal["quote"]
    start = literal.end()
    end = literal.end()
    while not text.startswith(quote, end):
        if end >= len(text) or (len(quote) == 1 and text[end] == "\n"):
            message = f"Syntax error: token recognition error at: '{text[literal.start() : end]}'"
            raise CelSyntaxError(message, literal.start())
        end += 2 if text[end] == "\\" and "r" not in prefix else 1

    content = text[start:end]
    after = end + len(quote)
    if "r" in prefix:
        return (content.encode() if "b" in prefix else content), after
    content = _unescaped(content, literal.start(), is_bytes="b" in prefix)
    return (content.encode("latin-1") if "b" in prefix else content), after


def _unescaped(content: str, at: int, *, is_bytes: bool) -> str:
    """Replace escapes. In bytes an escaped number is one byte, and all else UTF-8, kept as one
    character a byte."""
    parts = []
    position = 0
    while position < len(content):
        if content[position] != "\\":
            character = content[position]
            parts.append(character.encode().decode("latin-1") if is_bytes else character)
            position += 1
            continue
        escape = _ESCAPE.match(content, position)
        if escape is None:
            raise CelSyntaxError("Syntax error: unable to unescape string", at)
        if escape[1]:
            parts.append(_SIMPLE[escape[1]])
        elif escape[6]:
            parts.append(chr(int(escape[6], 8)))
        else:
            parts.append(chr(int(escape[2] or escape[3] or escape[4] or escape[5], 16)))
        position = escape.end()

    return "".join(parts)


# --- trees ----------------------------------------------------------------------------------------


class _Parser:
    """The recursive descent over the tokens of one expression."""

    def __init__(self, text: str, names: Container[str]) -> None:
        self._tokens = list(tokens(text))
        self._names = names
        self._position = 0
        self._depth = 0

    # --- tokens -----------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _advance(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _is(self, *words: str) -> bool:
        return self._next.kind in ("op", "ident") and self._next.value in words

    def _take(self, *words: str) -> Token | None:
        if self._is(*words):
            return self._advance()
        return None

    def _expect(self, word: str) -> Token:
        return self._take(word) or self._fail(f"'{word}'")

    def _fail(self, expected: str) -> Token:
        token = self._next
        if token.kind == "end":
            raise CelSyntaxError(
                f"Syntax error: mismatched input '<EOF>' expecting {expected}", token.at
            )
        raise CelSyntaxError(
            f"Syntax error: mismatched input '{token.value}' expecting {expected}", token.at
        )

    # --- operators --------------------------------------------------------------------------------

    def expression_to_end(self) -> Node:
        """Read an expression and nothing after it. Raises CelSyntaxError."""
        expression = self._expression()
        if self._next.kind != "end":
            self._fail("<EOF>")
        return expression

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CelSyntaxError(f"expression recursion limit exceeded: {_DEPTH}", self._next.at)
        condition = self._logical(self._and, "||")
        if question := self._take("?"):
            yes = self._logical(self._and, "||")
            self._expect(":")
            condition = CallExpr("_?_:_", None, (condition, yes, self._expression()), question.at)
        self._depth -= 1
        return condition

    def _and(self) -> Node:
        return self._logical(self._binary, "&&")

    def _logical(self, operand: Callable[[], Node], operator: str) -> Node:
        """Read operands joined by ``||`` or ``&&`` into one call, so that long chains are not deep
        trees."""
        args = [operand()]
        at = self._next.at
        while self._take(operator):
            args.append(operand())
        if len(args) == 1:
            return args[0]
        return CallExpr(f"_{operator}_", None, tuple(args), at)

    def _binary(self, level: int = 0) -> Node:
        """Read operands joined by the operators of a level of ``_BINARY_OPERATORS``, or of those
        that bind more."""
        if level == len(_BINARY_OPERATORS):
            return self._unary()
        left = self._binary(level + 1)
        while operator := self._take(*_BINARY_OPERATORS[level]):
            name = "@in" if operator.value == "in" else f"_{operator.value}_"
            left = CallExpr(name, None, (left, self._binary(level + 1)), operator.at)
        return left

    def _unary(self) -> Node:
        """Read signs and their operand; two equal signs in a row cancel out (``visitLogicalNot``,
        ``visitNegate``)."""
        if operator := self._take("!"):
            is_negated = self._count("!") % 2 == 0
            operand = self._unary()
            if is_negated:
                return CallExpr("!_", None, (operand,), operator.at)
            return operand

        if operator := self._take("-"):
            if self._count("-") % 2 == 1:
                return self._unary()
            if self._next.kind == "literal" and type(self._next.value) in (int, float):
                self._tokens[self._position] = self._next._replace(
                    value=-self._next.value, at=operator.at
                )
                return self._member()
            return CallExpr("-_", None, (self._unary(),), operator.at)

        return self._member()

    def _count(self, operator: str) -> int:
        """Take all of the same operator that follow; return their number."""
        count = 0
        while self._take(operator):
            count += 1
        return count

    # --- members ----------------------------------------------------------------------------------

    def _member(self) -> Node:
        """Read a primary and the selections, calls and indexes that follow it."""
        member = self._primary()
        while operator := self._take(".", "?.", "[", "[?"):
            if operator.value in ("[", "[?"):
                name = "_[_]" if operator.value == "[" else "_[?_]"
                member = CallExpr(name, None, (member, self._expression()), operator.at)
                self._expect("]")
                continue
            is_optional = operator.value == "?." or self._take("?") is not None
            field = self._field_name()
            if opening := self._take("("):
                member = self._called(field, member, self._arguments(")"), opening.at)
            else:
                member = Select(member, field, operator.at, optional=is_optional)
                member = self._struct_of(member)

        return member

    def _field_name(self) -> str:
        """Take the name of a field. Words that the language uses as tokens are none; those that it
        only reserves are."""
        token = self._next
        if token.kind != "ident" or token.value in _LITERALS or token.value == "in":
            self._fail("IDENTIFIER")
        return str(self._advance().value)

    def _struct_of(self, name: Ident | Select) -> Node:
        """Read the fields of an object of a type that was named; without them the name is what it
        is."""
        type_name = dotted(name)
        if not type_name or not (opening := self._take("{")):
            return name
        fields: list[tuple[str, Node, bool]] = []
        while not self._take("}"):
            is_optional = self._take("?") is not None
            field = self._field_name()
            self._expect(":")
            fields.append((field, self._expression(), is_optional))
            if not self._is("}"):
                self._expect(",")
        return StructLiteral(type_name, tuple(fields), opening.at)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        args: list[Node] = []
        while not self._take(closing):
            args.append(self._expression())
            if not self._is(closing):
                self._expect(",")
        return tuple(args)

    def _called(self, name: str, target: Node | None, args: tuple[Node, ...], at: int) -> Node:
        """Return a call, or what a macro of that name expands to."""
        if target is None and name == "has":
            if len(args) != 1 or not isinstance(args[0], Select) or args[0].test:
                raise CelSyntaxError("invalid argument to has() macro", at)
            return args[0]._replace(test=True)
        if target is None or (name, len(args)) not in _MACROS:
            return CallExpr(name, target, args, at)
        count = 2 if name in _OF_TWO_VARIABLES or (len(args) == 3 and name != "map") else 1
        variables = []
        for node in args[:count]:
            if not isinstance(node, Ident):
                raise CelSyntaxError("argument must be a simple name", node.at)
            variables.append(node.name)
        return Macro(name, target, tuple(variables), args[count:], at)

    # --- primaries --------------------------------------------------------------------------------

    def _primary(self) -> Node:
        token = self._next
        if token.kind == "literal":
            value = self._advance().value
            if type(value) is int and not -INT_MAX - 1 <= value <= INT_MAX:
                raise CelSyntaxError("invalid int literal", token.at)
            if type(value) is Uint and value > 2 * INT_MAX + 1:
                raise CelSyntaxError("invalid uint literal", token.at)
            return Literal(value, token.at)

        if self._take("("):
            inner = self._expression()
            self._expect(")")
            return inner

        if self._take("["):
            return self._list(token.at)
        if self._take("{"):
            return self._map(token.at)
        leading = self._take(".")
        if token.kind == "ident" and token.value in _LITERALS:
            return Literal(_LITERALS[self._advance().value], token.at)
        if self._next.kind != "ident" or self._next.value == "in":
            self._fail(
                "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
                "NUM_UINT, STRING, "
                "BYTES, IDENTIFIER}"
            )

        name = str(self._advance().value)
        if name in _RESERVED and name not in self._names:
            raise CelSyntaxError(f"reserved identifier: {name}", token.at)
        if opening := self._take("("):
            return self._called(name, None, self._arguments(")"), opening.at)
        return self._struct_of(Ident(name, token.at if leading is None else leading.at))

    def _list(self, at: int) -> Node:
        items: list[Node] = []
        optional = set()
        while not self._take("]"):
            if self._take("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._is("]"):
                self._expect(",")
        return ListLiteral(tuple(items), frozenset(optional), at)

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._take("}"):
            is_optional = self._take("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), is_optional))
            if not self._is("}"):
                self._expect(",")
        return MapLiteral(tuple(entries), at)
