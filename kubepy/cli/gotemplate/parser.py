"""Parse a template's tokens into a tree (Go's ``text/template/parse/parse.go``)."""

from __future__ import annotations

from typing import Any, NoReturn

from kubepy.api.values.goformat import quote
from kubepy.cli.gotemplate import functions, literals
from kubepy.cli.gotemplate.lexer import Lexer, TemplateToken
from kubepy.cli.gotemplate.nodes import (
    ActionNode,
    BranchNode,
    ChainNode,
    CommandNode,
    ConstantNode,
    DotNode,
    EndNode,
    FieldPathNode,
    FunctionNode,
    Int,
    JumpNode,
    NilNode,
    PipeNode,
    TemplateError,
    TemplateNode,
    TextNode,
    VariableNode,
)

Nodes = list[Any]
_OPERANDS = frozenset(
    (
        "bool",
        "char-constant",
        "dot",
        "field",
        "identifier",
        "number",
        "nil",
        "string",
        "variable",
        "(",
    )
)


class TemplateParser:
    """A parser of a text's templates: the text itself, and those that it defines."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tokens = list(Lexer(text).tokens())
        self.at = 0
        self.read = 0  # the position of the last token that was read
        self.token = self.tokens[0]  # the last token that was looked at, for the line of an error
        self.action_line = 0
        self.range_depth = 0
        self.variables = ["$"]
        self.templates: dict[str, Nodes] = {}

    def parse(self) -> dict[str, Nodes]:
        """Return the templates by name. Raises TemplateError."""
        nodes: Nodes = []
        while self.peek().kind != "eof":
            if self.peek().kind == "left" and self.following().kind == "define":
                self.definition()
                continue
            node = self.text_or_action()
            if isinstance(node, EndNode):
                self.error(f"unexpected {node}")
            nodes.append(node)
        self.add(self.name, nodes)
        return self.templates

    # --- tokens -----------------------------------------------------------------------------------

    def next(self) -> TemplateToken:
        self.token = self.tokens[self.at]
        self.read = self.at
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return self.token

    def back(self) -> None:
        """Step back, to read the last token once more."""
        self.at = self.read

    def peek(self) -> TemplateToken:
        self.token = self.tokens[self.at]
        return self.token

    def next_word(self) -> TemplateToken:
        """Return the next token that is no space."""
        while self.next().kind == "space":
            pass
        return self.token

    def peek_word(self) -> TemplateToken:
        while self.peek().kind == "space":
            self.next()
        return self.token

    def following(self) -> TemplateToken:
        """Return the token after the next one, without counting spaces."""
        rest = (token for token in self.tokens[self.at + 1 :] if token.kind != "space")
        return next(rest, self.tokens[-1])

    def expect(self, kind: str, context: str) -> TemplateToken:
        token = self.next_word()
        if token.kind != kind:
            self.unexpected(token, context)
        return token

    def error(self, message: str) -> NoReturn:
        raise TemplateError(f"template: {self.name}:{self.token.line}: {message}")

    def unexpected(self, token: TemplateToken, context: str) -> NoReturn:
        if token.kind != "error":
            self.error(f"unexpected {token} in {context}")
        place = ""
        if self.action_line not in (0, token.line):
            place = f" in action started at {self.name}:{self.action_line}"
            place = place.removeprefix(" in action") if token.value.endswith(" action") else place
        self.error(f"{token}{place}")

    # --- the templates ----------------------------------------------------------------------------

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
        """Parse a template's body, which sees no variables and no range of the text around it."""
        outer = self.variables
        depth = self.range_depth
        self.variables = ["$"]
        self.range_depth = 0
        nodes, end = self.list_of_nodes()
        if end.kind != "end":
            self.error(f"unexpected {end} in {context}")
        self.add(name, nodes)
        self.variables = outer
        self.range_depth = depth

    def template_name(self, token: TemplateToken, context: str) -> str:
        if token.kind != "string":
            self.unexpected(token, context)
        return self.unquoted(token)

    def list_of_nodes(self) -> tuple[Nodes, EndNode]:
        """Parse nodes up to ``end`` or ``else``."""
        nodes: Nodes = []
        while True:
            if self.peek_word().kind == "eof":
                self.error("unexpected EOF")
            node = self.text_or_action()
            if isinstance(node, EndNode):
                return nodes, node
            nodes.append(node)

    def text_or_action(self) -> Any:
        token = self.next_word()
        if token.kind == "text":
            return TextNode(token.value)
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
                return EndNode("end")
            case "template":
                return self.call()
            case "block":
                return self.block()

        self.back()
        return ActionNode(self.peek().position, self.pipeline("command", "right"))

    def jump(self, kind: str) -> JumpNode:
        token = self.next_word()
        if token.kind != "right":
            self.unexpected(token, f"{{{{{kind}}}}}")
        if not self.range_depth:
            self.error(f"{{{{{kind}}}}} outside {{{{range}}}}")
        return JumpNode(kind)

    def otherwise(self) -> EndNode:
        """Parse ``else``; an ``if`` or ``with`` after it is left to be read as the next action."""
        if self.peek_word().kind not in ("if", "with"):
            self.expect("right", "else")
        return EndNode("else")

    def control(self, kind: str) -> BranchNode:
        outer_variables = len(self.variables)
        pipe = self.pipeline(kind, "right")
        self.range_depth += kind == "range"
        body, mark = self.list_of_nodes()
        self.range_depth -= kind == "range"
        alternative = self.alternative(kind) if mark.kind == "else" else None
        del self.variables[outer_variables:]
        return BranchNode(pipe.position, kind, pipe, body, alternative)

    def alternative(self, kind: str) -> Nodes:
        if kind in ("if", "with") and self.peek().kind == kind:
            self.next()
            return [self.control(kind)]
        nodes, mark = self.list_of_nodes()
        if mark.kind != "end":
            self.error(f"expected end; found {mark}")
        return nodes

    def call(self) -> TemplateNode:
        token = self.next_word()
        name = self.template_name(token, "template clause")
        if self.peek_word().kind == "right":
            self.next()
            return TemplateNode(token.position, name, None)
        return TemplateNode(token.position, name, self.pipeline("template clause", "right"))

    def block(self) -> TemplateNode:
        token = self.next_word()
        name = self.template_name(token, "block clause")
        pipe = self.pipeline("block clause", "right")
        self.body_of(name, "block clause")
        return TemplateNode(token.position, name, pipe)

    # --- pipelines --------------------------------------------------------------------------------

    def pipeline(self, context: str, end: str) -> PipeNode:
        position = self.peek_word().position
        variables, assigns = self.declarations(context)
        commands: list[CommandNode] = []
        while (token := self.next_word()).kind != end:
            if token.kind not in _OPERANDS:
                self.unexpected(token, context)
            self.back()
            commands.append(self.command())
        self.check(commands, context)
        return PipeNode(position, variables, assigns, commands)

    def check(self, commands: list[CommandNode], context: str) -> None:
        if not commands:
            self.error(f"missing value for {context}")
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.words[0], (DotNode, NilNode, ConstantNode)):
                self.error(f"non executable command in pipeline stage {stage}")

    def declarations(self, context: str) -> tuple[list[str], bool]:
        """Parse ``$x :=``, ``$x =``, or ``$i, $x :=`` of a range."""
        names: list[str] = []
        while self.peek_word().kind == "variable":
            name = self.token.value
            after = self.following()
            if after.kind in ("assign", "declare"):
                self.next_word()
                self.next_word()
                self.variables.append(name)
                return [*names, name], after.kind == "assign"
            if after.value != ",":
                break
            self.next_word()
            self.next_word()
            names.append(name)
            self.variables.append(name)
            if context != "range" or len(names) > 1:
                self.error(f"too many declarations in {context}")
            if self.peek_word().kind not in ("variable", "right", ")"):
                self.error("range can only initialize variables")

        return names, False

    def command(self) -> CommandNode:
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
        return CommandNode(position, words)

    def operand(self) -> Any:
        """Parse a value with the fields that follow it; None when there is no value."""
        node = self.term()
        if node is None or self.peek().kind != "field":
            return node
        position = self.token.position
        names = []
        while self.peek().kind == "field":
            names.append(self.next().value[1:])
        match node:
            case FieldPathNode():
                return FieldPathNode(position, (*node.names, *names))
            case VariableNode():
                return VariableNode(position, node.name, (*node.names, *names))
            case ConstantNode() | NilNode() | DotNode():
                self.error(f"unexpected . after term {quote(str(node))}")

        return ChainNode(position, node, tuple(names))

    def term(self) -> Any:
        token = self.next_word()
        match token.kind:
            case "identifier":
                if not functions.exists(token.value):
                    self.error(f"function {quote(token.value)} not defined")
                return FunctionNode(token.position, token.value)
            case "dot":
                return DotNode(token.position)
            case "nil":
                return NilNode(token.position)
            case "field":
                return FieldPathNode(token.position, (token.value[1:],))
            case "variable":
                if token.value not in self.variables:
                    self.error(f"undefined variable {quote(token.value)}")
                return VariableNode(token.position, token.value, ())
            case "(":
                return self.pipeline("parenthesized pipeline", ")")
            case "bool" | "number" | "char-constant" | "string":
                return ConstantNode(token.position, token.value, self.literal(token))

        self.back()
        return None

    def literal(self, token: TemplateToken) -> bool | Int | float | str:
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

    def unquoted(self, token: TemplateToken) -> str:
        try:
            return literals.unquote(token.value)
        except ValueError as error:
            self.error(str(error))


def _is_empty(nodes: Nodes) -> bool:
    return all(isinstance(node, TextNode) and not node.text.strip() for node in nodes)
