"""A template's tokens as a tree (Go's ``text/template/parse/parse.go``)."""

from __future__ import annotations

from typing import Any, NoReturn

from kubepy.api.values.goformat import quote
from kubepy.cli.gotemplate import functions, literals
from kubepy.cli.gotemplate.lexer import Lexer, Token
from kubepy.cli.gotemplate.nodes import (
    Action,
    Call,
    Chain,
    Command,
    Control,
    Dot,
    Field,
    Int,
    Jump,
    Literal,
    Mark,
    Name,
    Nil,
    Pipe,
    TemplateError,
    Text,
    Variable,
)

Nodes = list[Any]
_OPERANDS = frozenset(("bool", "char-constant", "dot", "field", "identifier", "number", "nil", "string", "variable",
                       "("))


class Parser:
    """Reads the templates of one text: the one that it is, and those that it defines."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tokens = list(Lexer(text).tokens())
        self.at = 0
        self.read = 0  # where the last token that was read stands
        self.token = self.tokens[0]  # the last one looked at, for the line of an error
        self.action_line = 0
        self.range_depth = 0
        self.variables = ["$"]
        self.templates: dict[str, Nodes] = {}

    def parse(self) -> dict[str, Nodes]:
        """The templates by name. Raises TemplateError."""
        nodes: Nodes = []
        while self.peek().kind != "eof":
            if self.peek().kind == "left" and self.following().kind == "define":
                self.definition()
                continue
            node = self.text_or_action()
            if isinstance(node, Mark):
                self.error(f"unexpected {node}")
            nodes.append(node)
        self.add(self.name, nodes)
        return self.templates

    # --- tokens -------------------------------------------------------------------------------------------------

    def next(self) -> Token:
        self.token = self.tokens[self.at]
        self.read = self.at
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return self.token

    def back(self) -> None:
        """Read the last token once more."""
        self.at = self.read

    def peek(self) -> Token:
        self.token = self.tokens[self.at]
        return self.token

    def next_word(self) -> Token:
        """The next token that is no space."""
        while self.next().kind == "space":
            pass
        return self.token

    def peek_word(self) -> Token:
        while self.peek().kind == "space":
            self.next()
        return self.token

    def following(self) -> Token:
        """The token after the next one, spaces left out."""
        rest = (token for token in self.tokens[self.at + 1:] if token.kind != "space")
        return next(rest, self.tokens[-1])

    def expect(self, kind: str, context: str) -> Token:
        token = self.next_word()
        if token.kind != kind:
            self.unexpected(token, context)
        return token

    def error(self, message: str) -> NoReturn:
        raise TemplateError(f"template: {self.name}:{self.token.line}: {message}")

    def unexpected(self, token: Token, context: str) -> NoReturn:
        if token.kind != "error":
            self.error(f"unexpected {token} in {context}")
        where = ""
        if self.action_line not in (0, token.line):
            where = f" in action started at {self.name}:{self.action_line}"
            where = where.removeprefix(" in action") if token.value.endswith(" action") else where
        self.error(f"{token}{where}")

    # --- the templates ------------------------------------------------------------------------------------------

    def add(self, name: str, nodes: Nodes) -> None:
        if not self.templates.get(name) or _is_empty(self.templates[name]):
            self.templates[name] = nodes
        elif not _is_empty(nodes):
            self.error(f"template: multiple definition of template {quote(name)}")

    def definition(self) -> None:
        self.next()
        self.next_word()
        name = self.template_name(self.next_word(), "define clause")
        self.expect("right", "define clause")
        self.body_of(name, "define clause")

    def body_of(self, name: str, context: str) -> None:
        """Read a template of its own: it knows no variables and no range of the text around it."""
        outer, depth = self.variables, self.range_depth
        self.variables, self.range_depth = ["$"], 0
        nodes, end = self.list_of_nodes()
        if end.kind != "end":
            self.error(f"unexpected {end} in {context}")
        self.add(name, nodes)
        self.variables, self.range_depth = outer, depth

    def template_name(self, token: Token, context: str) -> str:
        if token.kind != "string":
            self.unexpected(token, context)
        return self.unquoted(token)

    def list_of_nodes(self) -> tuple[Nodes, Mark]:
        """The nodes up to ``end`` or ``else``."""
        nodes: Nodes = []
        while True:
            if self.peek_word().kind == "eof":
                self.error("unexpected EOF")
            node = self.text_or_action()
            if isinstance(node, Mark):
                return nodes, node
            nodes.append(node)

    def text_or_action(self) -> Any:
        token = self.next_word()
        if token.kind == "text":
            return Text(token.value)
        if token.kind != "left":
            self.unexpected(token, "input")
        self.action_line = token.line
        node = self.action()
        self.action_line = 0
        return node

    def action(self) -> Any:
        token = self.next_word()
        match token.kind:
            case "if" | "range" | "with":
                return self.control(token.kind)
            case "break" | "continue":
                return self.jump(token.kind)
            case "else":
                return self.otherwise()
            case "end":
                self.expect("right", "end")
                return Mark("end")
            case "template":
                return self.call()
            case "block":
                return self.block()
        self.back()
        return Action(self.peek().position, self.pipeline("command", "right"))

    def jump(self, kind: str) -> Jump:
        token = self.next_word()
        if token.kind != "right":
            self.unexpected(token, f"{{{{{kind}}}}}")
        if not self.range_depth:
            self.error(f"{{{{{kind}}}}} outside {{{{range}}}}")
        return Jump(kind)

    def otherwise(self) -> Mark:
        """``else``; one that an ``if`` or ``with`` follows leaves that to be read as the next action."""
        if self.peek_word().kind not in ("if", "with"):
            self.expect("right", "else")
        return Mark("else")

    def control(self, kind: str) -> Control:
        known = len(self.variables)
        pipe = self.pipeline(kind, "right")
        self.range_depth += kind == "range"
        body, mark = self.list_of_nodes()
        self.range_depth -= kind == "range"
        alternative = self.alternative(kind) if mark.kind == "else" else None
        del self.variables[known:]
        return Control(pipe.position, kind, pipe, body, alternative)

    def alternative(self, kind: str) -> Nodes:
        if kind in ("if", "with") and self.peek().kind == kind:
            self.next()
            return [self.control(kind)]
        nodes, mark = self.list_of_nodes()
        if mark.kind != "end":
            self.error(f"expected end; found {mark}")
        return nodes

    def call(self) -> Call:
        token = self.next_word()
        name = self.template_name(token, "template clause")
        if self.peek_word().kind == "right":
            self.next()
            return Call(token.position, name, None)
        return Call(token.position, name, self.pipeline("template clause", "right"))

    def block(self) -> Call:
        token = self.next_word()
        name = self.template_name(token, "block clause")
        pipe = self.pipeline("block clause", "right")
        self.body_of(name, "block clause")
        return Call(token.position, name, pipe)

    # --- pipelines ----------------------------------------------------------------------------------------------

    def pipeline(self, context: str, end: str) -> Pipe:
        position = self.peek_word().position
        variables, assigns = self.declarations(context)
        commands: list[Command] = []
        while (token := self.next_word()).kind != end:
            if token.kind not in _OPERANDS:
                self.unexpected(token, context)
            self.back()
            commands.append(self.command())
        self.check(commands, context)
        return Pipe(position, variables, assigns, commands)

    def check(self, commands: list[Command], context: str) -> None:
        if not commands:
            self.error(f"missing value for {context}")
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.words[0], (Dot, Nil, Literal)):
                self.error(f"non executable command in pipeline stage {stage}")

    def declarations(self, context: str) -> tuple[list[str], bool]:
        """``$x :=``, ``$x =``, or ``$i, $x :=`` of a range."""
        found: list[str] = []
        while self.peek_word().kind == "variable":
            name, after = self.token.value, self.following()
            if after.kind in ("assign", "declare"):
                self.next_word()
                self.next_word()
                self.variables.append(name)
                return [*found, name], after.kind == "assign"
            if after.value != ",":
                break
            self.next_word()
            self.next_word()
            found.append(name)
            self.variables.append(name)
            if context != "range" or len(found) > 1:
                self.error(f"too many declarations in {context}")
            if self.peek_word().kind not in ("variable", "right", ")"):
                self.error("range can only initialize variables")
        return found, False

    def command(self) -> Command:
        words: list[Any] = []
        position = self.peek_word().position
        while True:
            self.peek_word()
            operand = self.operand()
            if operand is not None:
                words.append(operand)
            token = self.next()
            if token.kind == "space":
                continue
            if token.kind in ("right", ")"):
                self.back()
            elif token.kind != "pipe":
                self.unexpected(token, "operand")
            break
        if not words:
            self.error("empty command")
        return Command(position, words)

    def operand(self) -> Any:
        """A value with the fields that follow it, or None."""
        node = self.term()
        if node is None or self.peek().kind != "field":
            return node
        position, names = self.token.position, []
        while self.peek().kind == "field":
            names.append(self.next().value[1:])
        match node:
            case Field():
                return Field(position, (*node.names, *names))
            case Variable():
                return Variable(position, node.name, (*node.names, *names))
            case Literal() | Nil() | Dot():
                self.error(f"unexpected . after term {quote(str(node))}")
        return Chain(position, node, tuple(names))

    def term(self) -> Any:
        token = self.next_word()
        match token.kind:
            case "identifier":
                if not functions.exists(token.value):
                    self.error(f"function {quote(token.value)} not defined")
                return Name(token.position, token.value)
            case "dot":
                return Dot(token.position)
            case "nil":
                return Nil(token.position)
            case "field":
                return Field(token.position, (token.value[1:],))
            case "variable":
                if token.value not in self.variables:
                    self.error(f"undefined variable {quote(token.value)}")
                return Variable(token.position, token.value, ())
            case "(":
                return self.pipeline("parenthesized pipeline", ")")
            case "bool" | "number" | "char-constant" | "string":
                return Literal(token.position, token.value, self.literal(token))
        self.back()
        return None

    def literal(self, token: Token) -> bool | Int | float | str:
        try:
            match token.kind:
                case "bool":
                    return token.value == "true"
                case "string":
                    return literals.unquote(token.value)
                case "char-constant":
                    return literals.character(token.value)
            return literals.number(token.value)
        except ValueError as error:
            self.error(str(error))

    def unquoted(self, token: Token) -> str:
        try:
            return literals.unquote(token.value)
        except ValueError as error:
            self.error(str(error))


def _is_empty(nodes: Nodes) -> bool:
    return all(isinstance(node, Text) and not node.text.strip() for node in nodes)
