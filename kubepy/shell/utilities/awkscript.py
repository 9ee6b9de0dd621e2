"""The programs of awk: text to a tree.

Known are patterns, actions, fields, arrays, control flow and most functions; not user-defined
functions, ``getline`` and pipes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kubepy.shell.utility import Unknown

KEYWORDS = frozenset(
    [
        "BEGIN",
        "END",
        "if",
        "else",
        "while",
        "for",
        "do",
        "in",
        "delete",
        "next",
        "exit",
        "break",
        "continue",
        "print",
        "printf",
    ]
)
UNKNOWN_WORDS = frozenset(
    ["function", "func", "getline", "nextfile", "system", "return", "srand", "rand"]
)
FUNCTIONS = frozenset(
    [
        "length",
        "substr",
        "index",
        "split",
        "sub",
        "gsub",
        "match",
        "sprintf",
        "tolower",
        "toupper",
        "int",
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "atan2",
        "close",
        "fflush",
    ]
)
TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r]|\\\n)+|\#[^\n]*)
  | (?P<newline>\n)
  | (?P<number>0[xX][0-9a-fA-F]+(?!\w)|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
  | (?P<string>"(?:[^"\\\n]|\\.|\\\n)*")
  | (?P<word>[A-Za-z_]\w*)
  | (?P<operator>\*\*=|\|\||&&|\+\+|--|[-+*/%^=<>!]=|!~|>>|\*\*|[-{}()\[\];,+*/%^!<>|?:~$=])
    """,
    re.VERBOSE | re.DOTALL,
)
ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "^="])
ENDINGS = frozenset([";", "\n", "}"])


class AwkToken(NamedTuple):
    kind: str  # "number", "string", "word", "operator", "newline", "end"
    text: str
    position: int
    has_space: bool = False  # before it


class AwkNode(NamedTuple):
    """A node of the tree: what it is, a text, and its parts."""

    kind: str
    text: str = ""
    parts: tuple[AwkNode, ...] = ()


class AwkRule(NamedTuple):
    """A pattern with its action; a kind "range" has two patterns."""

    kind: str  # "BEGIN", "END", "always", "pattern", "range"
    patterns: tuple[AwkNode, ...]
    action: AwkNode | None


EMPTY = AwkNode("empty")


class AwkParser:
    """A recursive descent over the text of a program."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self.last = AwkToken("newline", "\n", 0)
        self.token = self._scan()
        self.is_in_group = 0
        self.forbids_in = False
        self.forbids_greater = False

    def _scan(self) -> AwkToken:
        has_space = False
        while self.position < len(self.source):
            match = TOKEN.match(self.source, self.position)
            if match is None:
                raise Unknown(f"awk: {self.source[self.position :][:20]}")
            start = self.position
            self.position = match.end()
            kind = match.lastgroup or ""
            if kind == "space":
                has_space = True
                continue
            return AwkToken(kind, match[0].replace("**", "^"), start, has_space)
        return AwkToken("end", "", self.position)

    def _advance(self) -> AwkToken:
        self.last = self.token
        self.token = self._scan()
        return self.last

    def _is(self, *texts: str) -> bool:
        return self.token.kind in ("operator", "newline", "word") and self.token.text in texts

    def _accept(self, *texts: str) -> bool:
        if not self._is(*texts):
            return False
        self._advance()
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error()

    def _error(self) -> Unknown:
        """Return an error: this parser does not know all that awk does."""
        return Unknown(f"awk: {self.token.text or 'end of program'}")

    def _skip_newlines(self) -> None:
        while self._is("\n"):
            self._advance()

    def _skip_terminators(self) -> None:
        while self._is("\n", ";"):
            self._advance()

    def parse(self) -> list[AwkRule]:
        """Read all rules. Raises Failure and Unknown."""
        rules: list[AwkRule] = []
        self._skip_terminators()
        while self.token.kind != "end":
            rules.append(self._rule())
            self._skip_terminators()
        return rules

    def _rule(self) -> AwkRule:
        if self._is("BEGIN", "END"):
            kind = self._advance().text
            return AwkRule(kind, (), self._block())
        if self._is("{"):
            return AwkRule("always", (), self._block())
        patterns = [self.expression()]
        if self._accept(","):
            self._skip_newlines()
            patterns.append(self.expression())
        action = self._block() if self._is("{") else None
        return AwkRule("range" if len(patterns) == 2 else "pattern", tuple(patterns), action)

    def _block(self) -> AwkNode:
        self._expect("{")
        statements: list[AwkNode] = []
        self._skip_terminators()
        while not self._is("}"):
            if self.token.kind == "end":
                raise self._error()
            statements.append(self._statement())
            self._skip_terminators()
        self._expect("}")
        return AwkNode("block", parts=tuple(statements))

    def _body(self) -> AwkNode:
        """Read the statement that a condition or a loop governs."""
        self._skip_newlines()
        if self._accept(";"):
            return EMPTY
        return self._statement()

    def _statement(self) -> AwkNode:
        if self._is("{"):
            return self._block()
        if self._is("if"):
            return self._condition()
        if self._is("while"):
            self._advance()
            condition = self._parenthesized()
            return AwkNode("while", parts=(condition, self._body()))
        if self._is("do"):
            return self._do()
        if self._is("for"):
            return self._for()
        statement = self._simple_statement()
        if not self._is("}") and self.token.kind != "end":
            if not self._is(";", "\n"):
                raise self._error()
            self._advance()
        return statement

    def _parenthesized(self) -> AwkNode:
        self._expect("(")
        expression = self._grouped_expression()
        self._expect(")")
        return expression

    def _grouped_expression(self) -> AwkNode:
        """Read an expression in which ``>`` compares and ``in`` is an operator again."""
        before = self.forbids_greater, self.forbids_in
        self.forbids_greater = self.forbids_in = False
        expression = self.expression()
        self.forbids_greater, self.forbids_in = before
        return expression

    def _condition(self) -> AwkNode:
        self._advance()
        condition = self._parenthesized()
        yes = self._body()
        self._skip_terminators_before_else()
        no = EMPTY
        if self._accept("else"):
            no = self._body()
        return AwkNode("if", parts=(condition, yes, no))

    def _skip_terminators_before_else(self) -> None:
        """Pass over ends of statements if ``else`` follows them."""
        before = self.position, self.last, self.token
        self._skip_terminators()
        if not self._is("else"):
            self.position, self.last, self.token = before

    def _do(self) -> AwkNode:
        self._advance()
        body = self._body()
        self._skip_terminators()
        self._expect("while")
        return AwkNode("do", parts=(body, self._parenthesized()))

    def _for(self) -> AwkNode:
        self._advance()
        self._expect("(")
        first = EMPTY
        if not self._is(";"):
            self.forbids_in = True
            first = self._simple_statement()
            self.forbids_in = False
        if self._accept("in"):
            array = self._name()
            self._expect(")")
            variable = first
            if first.kind == "expression":
                variable = first.parts[0]
            return AwkNode("for in", array, (variable, self._body()))
        self._expect(";")
        condition = EMPTY
        if not self._is(";"):
            condition = self.expression()
        self._expect(";")
        step = EMPTY
        if not self._is(")"):
            step = self._simple_statement()
        self._expect(")")
        return AwkNode("for", parts=(first, condition, step, self._body()))

    def _name(self) -> str:
        if self.token.kind != "word":
            raise self._error()
        return self._advance().text

    def _simple_statement(self) -> AwkNode:
        if self._is("print", "printf"):
            return self._print()
        if self._is("next", "break", "continue"):
            return AwkNode(self._advance().text)
        if self._is("exit"):
            self._advance()
            parts = () if self._at_end() else (self.expression(),)
            return AwkNode("exit", parts=parts)
        if self._is("delete"):
            self._advance()
            name = self._name()
            return AwkNode("delete", name, self._subscripts() if self._is("[") else ())
        return AwkNode("expression", parts=(self.expression(),))

    def _at_end(self) -> bool:
        return self.token.kind == "end" or self._is(*ENDINGS)

    def _print(self) -> AwkNode:
        kind = self._advance().text
        arguments: list[AwkNode] = []
        self.forbids_greater = True
        if not self._at_end() and not self._is(">", ">>", "|"):
            arguments = self._list()
        self.forbids_greater = False
        if self._is("|"):
            raise Unknown("awk: output to a program")
        if len(arguments) == 1 and arguments[0].kind == "grouping":
            arguments = list(arguments[0].parts)
        if self._is(">", ">>"):
            mode = self._advance().text
            target = self._concatenation(forbids_comparison=True)
            return AwkNode(kind, mode, (target, *arguments))
        return AwkNode(kind, "", (EMPTY, *arguments))

    def _list(self) -> list[AwkNode]:
        expressions = [self.expression()]
        while self._accept(","):
            self._skip_newlines()
            expressions.append(self.expression())
        return expressions

    def expression(self) -> AwkNode:
        """Read an expression, assignments included."""
        left = self._ternary()
        is_place = left.kind in ("variable", "field", "element")
        if is_place and self.token.kind == "operator" and self.token.text in ASSIGNMENTS:
            operator = self._advance().text
            self._skip_newlines()
            return AwkNode("assign", operator[:-1], (left, self.expression()))
        return left

    def _ternary(self) -> AwkNode:
        condition = self._or()
        if not self._accept("?"):
            return condition
        self._skip_newlines()
        yes = self.expression()
        self._skip_newlines()
        self._expect(":")
        self._skip_newlines()
        return AwkNode("choice", parts=(condition, yes, self.expression()))

    def _or(self) -> AwkNode:
        left = self._and()
        while self._accept("||"):
            self._skip_newlines()
            left = AwkNode("or", parts=(left, self._and()))
        return left

    def _and(self) -> AwkNode:
        left = self._membership()
        while self._accept("&&"):
            self._skip_newlines()
            left = AwkNode("and", parts=(left, self._membership()))
        return left

    def _membership(self) -> AwkNode:
        left = self._match()
        while not self.forbids_in and self._accept("in"):
            subscripts = left.parts if left.kind == "grouping" else (left,)
            left = AwkNode("in", self._name(), subscripts)
        return left

    def _match(self) -> AwkNode:
        left = self._comparison()
        while self._is("~", "!~"):
            operator = self._advance().text
            left = AwkNode("match", operator, (left, self._comparison()))
        return left

    def _comparison(self) -> AwkNode:
        left = self._concatenation()
        operators = ["<", "<=", "==", "!=", ">="]
        if not self.forbids_greater:
            operators.append(">")
        if self._is(*operators):
            operator = self._advance().text
            return AwkNode("compare", operator, (left, self._concatenation()))
        return left

    def _concatenation(self, *, forbids_comparison: bool = False) -> AwkNode:
        left = self._sum()
        while self._starts_operand():
            left = AwkNode("concatenate", parts=(left, self._sum()))
        return left

    def _starts_operand(self) -> bool:
        if self.token.kind in ("number", "string"):
            return True
        if self.token.kind == "word":
            return self.token.text not in KEYWORDS
        return self._is("$", "(", "!", "-", "+", "++", "--") and not self._is("!")

    def _sum(self) -> AwkNode:
        left = self._product()
        while self._is("+", "-"):
            operator = self._advance().text
            left = AwkNode("binary", operator, (left, self._product()))
        return left

    def _product(self) -> AwkNode:
        left = self._unary()
        while self._is("*", "/", "%"):
            operator = self._advance().text
            left = AwkNode("binary", operator, (left, self._unary()))
        return left

    def _unary(self) -> AwkNode:
        if self._is("!", "-", "+"):
            operator = self._advance().text
            return AwkNode("unary", operator, (self._unary(),))
        return self._power()

    def _power(self) -> AwkNode:
        left = self._postfix()
        if self._accept("^"):
            right = self._unary() if self._is("-", "+", "!") else self._power()
            return AwkNode("binary", "^", (left, right))
        return left

    def _postfix(self) -> AwkNode:
        if self._is("++", "--"):
            operator = self._advance().text
            return AwkNode("before", operator, (self._primary(),))
        operand = self._primary()
        is_place = operand.kind in ("variable", "field", "element")
        if is_place and self._is("++", "--"):
            return AwkNode("after", self._advance().text, (operand,))
        return operand

    def _primary(self) -> AwkNode:
        token = self.token
        if token.kind == "number":
            self._advance()
            return AwkNode("number", token.text)
        if token.kind == "string":
            self._advance()
            return AwkNode("string", unescape(token.text[1:-1]))
        if self._is("/", "/="):
            return self._pattern()
        if self._accept("$"):
            if self._is("++", "--"):
                operator = self._advance().text
                return AwkNode("field", parts=(AwkNode("before", operator, (self._primary(),)),))
            if self._is("-", "+", "!"):
                operator = self._advance().text
                return AwkNode("field", parts=(AwkNode("unary", operator, (self._primary(),)),))
            return AwkNode("field", parts=(self._primary(),))
        if self._is("("):
            return self._grouping()
        if token.kind == "word" and token.text not in KEYWORDS:
            return self._word()
        raise self._error()

    def _grouping(self) -> AwkNode:
        self._expect("(")
        before = self.forbids_greater, self.forbids_in
        self.forbids_greater = self.forbids_in = False
        expressions = self._list()
        self.forbids_greater, self.forbids_in = before
        self._expect(")")
        if len(expressions) > 1:
            return AwkNode("grouping", parts=tuple(expressions))
        return AwkNode("parenthesis", parts=(expressions[0],))

    def _word(self) -> AwkNode:
        name = self._advance().text
        if name in UNKNOWN_WORDS:
            raise Unknown(f"awk: {name}")
        if name in FUNCTIONS:
            return self._call(name)
        if self._is("("):
            if not self.token.has_space:
                raise Unknown(f"awk: function {name}")
            return AwkNode("variable", name)
        if self._is("["):
            return AwkNode("element", name, self._subscripts())
        return AwkNode("variable", name)

    def _call(self, name: str) -> AwkNode:
        if not self._is("("):
            if name != "length":
                raise self._error()
            return AwkNode("call", name)
        self._expect("(")
        before = self.forbids_greater, self.forbids_in
        self.forbids_greater = self.forbids_in = False
        arguments = [] if self._is(")") else self._list()
        self.forbids_greater, self.forbids_in = before
        self._expect(")")
        return AwkNode("call", name, tuple(arguments))

    def _subscripts(self) -> tuple[AwkNode, ...]:
        self._expect("[")
        before = self.forbids_greater, self.forbids_in
        self.forbids_greater = self.forbids_in = False
        subscripts = self._list()
        self.forbids_greater, self.forbids_in = before
        self._expect("]")
        return tuple(subscripts)

    def _pattern(self) -> AwkNode:
        """Read a regular expression; the current token is its opening slash."""
        start = self.token.position + 1
        position = start
        in_bracket = False
        while position < len(self.source):
            character = self.source[position]
            if character == "\\":
                position += 1
            elif character == "[":
                in_bracket = True
            elif character == "]":
                in_bracket = False
            elif character == "/" and not in_bracket:
                break
            elif character == "\n":
                raise Unknown("awk: regular expression without an end")
            position += 1
        source = self.source[start:position].replace("\\/", "/")
        self.position = position + 1
        self._advance()
        return AwkNode("pattern", source)


ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)


def unescape(text: str) -> str:
    """Return a string's text."""
    return ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 255)
    known = {
        "n": "\n",
        "t": "\t",
        "r": "\r",
        "f": "\f",
        "v": "\v",
        "a": "\a",
        "b": "\b",
    }
    known |= {"\\": "\\", '"': '"', "/": "/", "\n": ""}
    return known.get(escape, f"\\{escape}")
