"""Expressions into trees, macros included (the grammar of github.com/google/cel-spec)."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api.cel.lexer import Token, tokens
from kubepy.api.cel.syntax import (
    Call,
    CelSyntaxError,
    Ident,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Node,
    Select,
)
from kubepy.api.cel.values import INT_MAX, Uint

RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_LITERALS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
                       "package", "namespace", "return", "var", "void", "while"))
# How many variables and expressions a macro takes.
_MACROS = {("all", 2), ("exists", 2), ("exists_one", 2), ("map", 2), ("map", 3), ("filter", 2), ("all", 3),
           ("exists", 3), ("existsOne", 2), ("existsOne", 3), ("transformList", 3), ("transformList", 4),
           ("transformMap", 3), ("transformMap", 4), ("transformMapEntry", 3), ("transformMapEntry", 4),
           ("sortBy", 2), ("optMap", 2), ("optFlatMap", 2)}
_OF_TWO_VARIABLES = ("transformList", "transformMap", "transformMapEntry")
_SIZE = 100_000  # characters of an expression
_DEPTH = 50  # how deep an expression may be nested; cel-go takes more than Python's stack does


def parse(text: str) -> Node:
    """Raises CelSyntaxError."""
    if len(text) > _SIZE:
        raise CelSyntaxError(f"expression code point size exceeds limit: size: {len(text)}, limit {_SIZE}", -1)
    return _Parser(text).expression_to_end()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._position = 0
        self._depth = 0

    # --- tokens -----------------------------------------------------------------------------------------------------

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
        return self._advance() if self._is(*words) else None

    def _expect(self, word: str) -> Token:
        return self._take(word) or self._fail(f"'{word}'")

    def _fail(self, expected: str) -> Token:
        found = self._next
        if found.kind == "end":
            raise CelSyntaxError(f"Syntax error: mismatched input '<EOF>' expecting {expected}", found.at)
        raise CelSyntaxError(f"Syntax error: mismatched input '{found.value}' expecting {expected}", found.at)

    # --- operators --------------------------------------------------------------------------------------------------

    def expression_to_end(self) -> Node:
        found = self._expression()
        if self._next.kind != "end":
            self._fail("<EOF>")
        return found

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CelSyntaxError(f"expression recursion limit exceeded: {_DEPTH}", self._next.at)
        condition = self._logical(self._and, "||")
        if question := self._take("?"):
            yes = self._logical(self._and, "||")
            self._expect(":")
            condition = Call("_?_:_", None, (condition, yes, self._expression()), question.at)
        self._depth -= 1
        return condition

    def _and(self) -> Node:
        return self._logical(self._relation, "&&")

    def _relation(self) -> Node:
        return self._binary(self._sum, *RELATIONS)

    def _sum(self) -> Node:
        return self._binary(self._product, "+", "-")

    def _product(self) -> Node:
        return self._binary(self._unary, "*", "/", "%")

    def _logical(self, operand: Callable[[], Node], operator: str) -> Node:
        """However many there are, they are one call, so that long chains are not deep trees."""
        args = [operand()]
        at = self._next.at
        while self._take(operator):
            args.append(operand())
        return args[0] if len(args) == 1 else Call(f"_{operator}_", None, tuple(args), at)

    def _binary(self, operand: Callable[[], Node], *operators: str) -> Node:
        left = operand()
        while operator := self._take(*operators):
            name = "@in" if operator.value == "in" else f"_{operator.value}_"
            left = Call(name, None, (left, operand()), operator.at)
        return left

    def _unary(self) -> Node:
        """Signs in a row cancel each other out, two and two (``visitLogicalNot``, ``visitNegate``)."""
        if operator := self._take("!"):
            is_negated = self._count("!") % 2 == 0
            operand = self._unary()
            return Call("!_", None, (operand,), operator.at) if is_negated else operand
        if operator := self._take("-"):
            if self._count("-") % 2 == 1:
                return self._unary()
            if self._next.kind == "literal" and type(self._next.value) in (int, float):
                self._tokens[self._position] = self._next._replace(value=-self._next.value, at=operator.at)
                return self._member()
            return Call("-_", None, (self._unary(),), operator.at)
        return self._member()

    def _count(self, operator: str) -> int:
        """Take an operator as often as it comes, and return how often it did."""
        count = 0
        while self._take(operator):
            count += 1
        return count

    # --- members ----------------------------------------------------------------------------------------------------

    def _member(self) -> Node:
        found = self._primary()
        while operator := self._take(".", "?.", "[", "[?"):
            if operator.value in (".", "?."):
                found = self._selected(found, operator)
            else:
                name = "_[_]" if operator.value == "[" else "_[?_]"
                found = Call(name, None, (found, self._expression()), operator.at)
                self._expect("]")
        return found

    def _selected(self, operand: Node, dot: Token) -> Node:
        is_optional = dot.value == "?." or self._take("?") is not None
        name = self._name()
        if opening := self._take("("):
            return self._called(name, operand, self._arguments(")"), opening.at)
        return Select(operand, name, dot.at, optional=is_optional)

    def _name(self) -> str:
        if self._next.kind != "ident" or self._next.value in _LITERALS or self._next.value == "in":
            self._fail("IDENTIFIER")
        return str(self._advance().value)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._take(closing):
            found.append(self._expression())
            if not self._is(closing):
                self._expect(",")
        return tuple(found)

    def _called(self, name: str, target: Node | None, args: tuple[Node, ...], at: int) -> Node:
        if target is None and name == "has":
            if len(args) != 1 or not isinstance(args[0], Select) or args[0].test:
                raise CelSyntaxError("invalid argument to has() macro", at)
            return args[0]._replace(test=True)
        if target is not None and (name, len(args)) in _MACROS:
            return _macro(name, target, args, at)
        return Call(name, target, args, at)

    # --- primaries --------------------------------------------------------------------------------------------------

    def _primary(self) -> Node:
        token = self._next
        if token.kind == "literal":
            return self._literal(self._advance())
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
            self._fail("{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, "
                       "BYTES, IDENTIFIER}")
        name = str(self._advance().value)
        if name in _RESERVED:
            raise CelSyntaxError(f"reserved identifier: {name}", token.at)
        if opening := self._take("("):
            return self._called(name, None, self._arguments(")"), opening.at)
        return Ident(name, token.at if leading is None else leading.at)

    def _literal(self, token: Token) -> Node:
        if type(token.value) is int and not -INT_MAX - 1 <= token.value <= INT_MAX:
            raise CelSyntaxError("invalid int literal", token.at)
        if type(token.value) is Uint and token.value > 2 * INT_MAX + 1:
            raise CelSyntaxError("invalid uint literal", token.at)
        return Literal(token.value, token.at)

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


def _macro(name: str, target: Node, args: tuple[Node, ...], at: int) -> Node:
    of_two = name in _OF_TWO_VARIABLES or (len(args) == 3 and name != "map")
    count = 2 if of_two else 1
    variables = []
    for node in args[:count]:
        if not isinstance(node, Ident):
            raise CelSyntaxError("argument must be a simple name", node.at)
        variables.append(node.name)
    return Macro(name, target, tuple(variables), args[count:], at)
