"""Arithmetic of the shell: ``$((…))``, ``((…))``, ``let`` (64 bits, C's operators)."""

from __future__ import annotations

import re
from collections.abc import Callable

TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+#[0-9a-zA-Z]+|\d+|[A-Za-z_]\w*"
    r"|<<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^<>=!]=|[-+*/%&|^<>=!~?:(),])"
)
BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}  # fmt: skip
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
BITS = 1 << 64
MAX_DEPTH = 200


class ExpressionError(Exception):
    """An expression that cannot be evaluated."""


def evaluate(text: str, get: Callable[[str], str], assign: Callable[[str, str], object]) -> int:
    """Return the value of an expression. Raises ExpressionError.

    :param get: returns the value of a variable, "" for one that is not set.
    :param assign: sets a variable.
    """
    return _Evaluation(text, get, assign).value()


class _Evaluation:
    """One pass over the tokens of an expression; with ``is_active`` off nothing is assigned."""

    def __init__(
        self, text: str, get: Callable[[str], str], assign: Callable[[str, str], object]
    ) -> None:
        self.tokens = _tokens(text)
        self.position = 0
        self.get = get
        self.assign = assign
        self.is_active = True
        self.depth = 0

    def value(self) -> int:
        if not self.tokens:
            return 0
        result = self.comma()
        if self.position < len(self.tokens):
            raise ExpressionError(f'expecting EOF: "{self.tokens[self.position]}"')
        return result

    def peek(self) -> str:
        if self.position < len(self.tokens):
            return self.tokens[self.position]
        return ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise ExpressionError(f'expecting "{token}"')

    def comma(self) -> int:
        result = self.assignment()
        while self.peek() == ",":
            self.take()
            result = self.assignment()
        return result

    def assignment(self) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError("expression recursion level exceeded")
        following = self.tokens[self.position + 1 : self.position + 2]
        if following and following[0] in ASSIGNMENTS and _is_name(self.peek()):
            result = self.assign_to(self.take(), self.take())
        else:
            result = self.condition()
        self.depth -= 1
        return result

    def assign_to(self, name: str, operator: str) -> int:
        value = self.assignment()
        if operator != "=":
            value = self.apply(operator[:-1], self.variable(name), value)
        if self.is_active:
            self.assign(name, str(value))
        return value

    def condition(self) -> int:
        result = self.binary(1)
        if self.peek() != "?":
            return result
        self.take()
        first = self.when(bool(result), self.assignment)
        self.expect(":")
        second = self.when(not result, self.assignment)
        return first if result else second

    def when(self, is_chosen: bool, parse: Callable[[], int]) -> int:
        """Evaluate a part that takes effect only if it is chosen."""
        before = self.is_active
        self.is_active = before and is_chosen
        result = parse()
        self.is_active = before
        return result

    def binary(self, least: int) -> int:
        left = self.unary()
        while True:
            operator = self.peek()
            level = BINARY.get(operator, 0)
            if level < least:
                return left
            self.take()
            following = level if operator == "**" else level + 1
            if operator == "&&":
                right = self.when(bool(left), lambda: self.binary(3))
                left = int(bool(left) and bool(right))
            elif operator == "||":
                right = self.when(not left, lambda: self.binary(2))
                left = int(bool(left) or bool(right))
            else:
                left = self.apply(operator, left, self.binary(following))

    def unary(self) -> int:
        token = self.take()
        match token:
            case "-":
                return _wrapped(-self.unary())
            case "+":
                return self.unary()
            case "!":
                return int(not self.unary())
            case "~":
                return _wrapped(~self.unary())
            case "++" | "--":
                return self.step(self.take(), token)
            case "(":
                result = self.comma()
                self.expect(")")
                return result
        if _is_name(token):
            if self.peek() in ("++", "--"):
                before = self.variable(token)
                self.step(token, self.take())
                return before
            return self.variable(token)
        return _number(token)

    def step(self, name: str, operator: str) -> int:
        if not _is_name(name):
            raise ExpressionError("expecting primary")
        value = self.variable(name) + (1 if operator == "++" else -1)
        if self.is_active:
            self.assign(name, str(value))
        return value

    def variable(self, name: str) -> int:
        text = self.get(name).strip()
        if not text:
            return 0
        if _is_name(text):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise ExpressionError("expression recursion level exceeded")
            return self.variable(text)
        sign = -1 if text.startswith("-") else 1
        return sign * _number(text.lstrip("+-"))

    def apply(self, operator: str, left: int, right: int) -> int:
        if not self.is_active and operator in ("/", "%"):
            return 0
        match operator:
            case "+":
                return _wrapped(left + right)
            case "-":
                return _wrapped(left - right)
            case "*":
                return _wrapped(left * right)
            case "/" | "%":
                return _divided(operator, left, right)
            case "**":
                return _wrapped(left ** max(right, 0))
            case "<<":
                return _wrapped(left << (right & 63))
            case ">>":
                return left >> (right & 63)
            case "&":
                return left & right
            case "|":
                return left | right
            case "^":
                return left ^ right
            case "==":
                return int(left == right)
            case "!=":
                return int(left != right)
            case "<":
                return int(left < right)
            case ">":
                return int(left > right)
            case "<=":
                return int(left <= right)
        return int(left >= right)


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        found = TOKEN.match(text, position)
        if found is None:
            raise ExpressionError(f'expecting primary: "{text.strip()}"')
        tokens.append(found[1])
        position = found.end()
    return tokens


def _is_name(token: str) -> bool:
    return bool(token) and (token[0].isalpha() or token[0] == "_")


def _number(token: str) -> int:
    try:
        if "#" in token:
            base, _, digits = token.partition("#")
            return int(digits, int(base))
        if token[:2] in ("0x", "0X"):
            return int(token, 16)
        if token.startswith("0") and len(token) > 1:
            return int(token, 8)
        return int(token)
    except ValueError:
        raise ExpressionError(f'expecting primary: "{token}"') from None


def _wrapped(value: int) -> int:
    value %= BITS
    return value - BITS if value >= BITS // 2 else value


def _divided(operator: str, left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("division by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    if operator == "/":
        return _wrapped(quotient)
    return left - quotient * right
