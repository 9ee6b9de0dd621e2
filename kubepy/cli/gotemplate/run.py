"""Run templates over an object (Go's ``text/template/exec.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from kubepy.api.values.goformat import format_value, quote
from kubepy.cli.gotemplate.functions import (
    FUNCTIONS,
    NOTHING,
    FunctionError,
    NoFunctionError,
    truth,
)
from kubepy.cli.gotemplate.nodes import (
    ActionNode,
    Boxed,
    BranchNode,
    ChainNode,
    CommandNode,
    ConstantNode,
    DotNode,
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
from kubepy.cli.gotemplate.printf import type_name

_NO_VALUE = object()  # there is no value of an earlier command of the pipeline
_TOO_DEEP = 100_000  # Go's limit; Python's own stack ends before


class ExecutionError(TemplateError):
    """The template cannot be run over its object. ``written`` is the output before the error."""

    def __init__(self, message: str, written: str) -> None:
        super().__init__(message)
        self.written = written


class _JumpSignal(Exception):
    """``break`` or ``continue`` ends the body of a range."""


class _Variable(NamedTuple):
    """A variable; ``boxed``: its static type is ``interface {}``, as of elements of lists and
    maps."""

    name: str
    value: Any
    boxed: bool = False


class Run:
    """The execution of a template.

    ``variables`` is a stack, ``node`` is what errors point at, ``boxed_dot``: the dot is the
    element of a range.
    """

    def __init__(
        self, name: str, text: str, templates: dict[str, list[Any]], missing_ok: bool
    ) -> None:
        self.name = name  # of the text
        self.text = text.encode()
        self.templates = templates
        self.missing_ok = missing_ok
        self.template = name  # the one that runs
        self.variables: list[_Variable] = []
        self.boxed_dot = False
        self.node: Any = None
        self.written: list[str] = []

    def execute(self, obj: Any) -> None:
        """Run the templates over an object. Raises ExecutionError."""
        self.variables = [_Variable("$", obj)]
        try:
            self.walk_all(obj, self.templates[self.name])
        except RecursionError:
            self.fail(f"exceeded maximum template depth ({_TOO_DEEP})")

    def fail(self, message: str) -> NoReturn:
        before = self.text[: self.node.position]
        line_start = before.rfind(b"\n") + 1
        line = before.count(b"\n") + 1
        place = f"{self.name}:{line}:{len(before) - line_start if line > 1 else len(before)}"
        raise ExecutionError(
            f"template: {place}: executing {quote(self.template)} at <{self.node}>: {message}",
            "".join(self.written),
        )

    # --- nodes ------------------------------------------------------------------------------------

    def walk_all(self, dot: Any, nodes: Iterable[Any]) -> None:
        for node in nodes:
            self.walk(dot, node)

    def walk_inner(self, dot: Any, nodes: Iterable[Any], *, boxed: bool = False) -> None:
        """Run nodes with a dot of their own."""
        outer = self.boxed_dot
        self.boxed_dot = boxed
        try:
            self.walk_all(dot, nodes)
        finally:
            self.boxed_dot = outer

    def walk(self, dot: Any, node: Any) -> None:
        match node:
            case TextNode():
                self.written.append(node.text)
            case ActionNode():
                value = self.pipeline(dot, node.pipe)
                if not node.pipe.variables:
                    self.written.append("<no value>" if value is NOTHING else format_value(value))
            case BranchNode(kind="range"):
                self.scoped(lambda: self.range(dot, node))
            case BranchNode():
                self.scoped(lambda: self.choose(dot, node))
            case TemplateNode():
                self.call(dot, node)
            case JumpNode():
                raise _JumpSignal(node.kind)

    def scoped(self, step: Any) -> None:
        """Run a step, and remove the variables that it declared."""
        outer_variables = len(self.variables)
        step()
        del self.variables[outer_variables:]

    def choose(self, dot: Any, node: BranchNode) -> None:
        value = self.pipeline(dot, node.pipe)
        if truth(value) and node.kind == "with":
            self.walk_inner(value, node.body)
        elif truth(value):
            self.walk_all(dot, node.body)
        else:
            self.walk_all(dot, node.otherwise or ())

    def range(self, dot: Any, node: BranchNode) -> None:
        value = self.pipeline(dot, node.pipe)
        pairs = self.elements(value, node.pipe)
        boxed = isinstance(value, list | dict)
        outer_variables = len(self.variables)
        for index, element in pairs:
            self.bind(node.pipe, index, element, boxed)
            try:
                self.walk_inner(element, node.body, boxed=boxed)
            except _JumpSignal as jump:
                if str(jump) == "break":
                    break
            finally:
                del self.variables[outer_variables:]

        if not pairs:
            self.walk_all(dot, node.otherwise or ())

    def elements(self, value: Any, pipe: PipeNode) -> Sequence[tuple[Any, Any]]:
        if value is NOTHING:
            return ()
        if isinstance(value, list):
            return [(Int(index), element) for index, element in enumerate(value)]
        if isinstance(value, dict):
            return [(key, value[key]) for key in sorted(value)]
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(f"range can't iterate over {format_value(value)}")
        if len(pipe.variables) > 1:
            self.fail(f"can't use {value} to iterate over more than one variable")
        return [(NOTHING, type(value)(number)) for number in range(value)]

    def bind(self, pipe: PipeNode, index: Any, element: Any, boxed: bool) -> None:
        """Set the range's one or two variables, which the pipeline has declared."""
        for name in pipe.variables[:-1]:
            self.set(pipe, _Variable(name, index))
        for name in pipe.variables[-1:]:
            self.set(pipe, _Variable(name, element, boxed))

    def set(self, pipe: PipeNode, variable: _Variable) -> None:
        if not pipe.assigns:
            self.variables.append(variable)
            return
        for position in reversed(range(len(self.variables))):
            if self.variables[position].name == variable.name:
                self.variables[position] = variable
                return
        self.fail(f"undefined variable: {variable.name}")

    def call(self, dot: Any, node: TemplateNode) -> None:
        self.node = node
        if node.name not in self.templates:
            self.fail(f"template {quote(node.name)} not defined")
        inner = self.pipeline(dot, node.pipe) if node.pipe else NOTHING
        outer = self.variables
        self.variables = [_Variable("$", inner)]
        caller = self.template
        self.template = node.name
        self.walk_inner(inner, self.templates[node.name])
        self.variables = outer
        self.template = caller

    # --- pipelines --------------------------------------------------------------------------------

    def pipeline(self, dot: Any, pipe: PipeNode) -> Any:
        """Return the pipeline's value. From here on a null counts as a missing value."""
        self.node = pipe
        value: Any = _NO_VALUE
        for command in pipe.commands:
            value = self.command(dot, command, value)
            value = NOTHING if value is None else value
        for name in pipe.variables:
            self.set(pipe, _Variable(name, value))
        return value

    def lookup(self, name: str) -> _Variable:
        variables = [variable for variable in self.variables if variable.name == name]
        if not variables:
            self.fail(f"undefined variable: {name}")
        return variables[-1]

    def command(self, dot: Any, command: CommandNode, final: Any) -> Any:
        first = command.words[0]
        has_arguments = len(command.words) > 1 or final is not _NO_VALUE
        match first:
            case FieldPathNode() | VariableNode() | ChainNode():
                return self.reach(dot, first, has_arguments)
            case FunctionNode():
                return self.function(dot, first, command, command.words[1:], final)
            case PipeNode():
                self.no_function(first, has_arguments)
                return self.pipeline(dot, first)

        self.node = first
        self.no_function(first, has_arguments)
        if isinstance(first, NilNode):
            self.fail("nil is not a command")
        return self.plain(dot, first)

    def no_function(self, word: Any, has_arguments: bool) -> None:
        if has_arguments:
            self.fail(f"can't give argument to non-function {word}")

    def plain(self, dot: Any, word: DotNode | ConstantNode) -> Any:
        if isinstance(word, DotNode):
            return dot
        if isinstance(word.value, Int) and word.value >= 2**63:
            self.fail(f"{word} overflows int")
        return word.value

    # --- fields -----------------------------------------------------------------------------------

    def reach(
        self, dot: Any, node: FieldPathNode | VariableNode | ChainNode, has_arguments: bool
    ) -> Any:
        """Return a field of the dot, of a variable, or of what is in parentheses."""
        self.node = node
        value = dot
        boxed = self.boxed_dot
        if isinstance(node, VariableNode):
            _, value, boxed = self.lookup(node.name)
            if not node.names:
                self.no_function(node, has_arguments)
        elif isinstance(node, ChainNode):
            value = self.argument(dot, node.base)
            boxed = False
        for place, name in enumerate(node.names, 1):
            value = self.field(value, name, boxed, has_arguments and place == len(node.names))
            boxed = True
        return value

    def field(self, value: Any, name: str, boxed: bool, has_arguments: bool) -> Any:
        """Return one field. ``boxed``: the value's static type is ``interface {}``, as of values of
        maps."""
        if value is NOTHING:
            if not self.missing_ok:
                self.fail(f"nil data; no entry for key {quote(name)}")
            return NOTHING

        if value is None:
            self.fail(f"nil pointer evaluating interface {{}}.{name}")
        if not isinstance(value, dict):
            self.fail(
                f"can't evaluate field {name} in type "
                f"{'interface {}' if boxed else type_name(value)}"
            )

        if has_arguments:
            self.fail(f"{name} is not a method but has arguments")
        if name not in value and not self.missing_ok:
            self.fail(f"map has no entry for key {quote(name)}")
        return value.get(name, NOTHING)

    # --- functions --------------------------------------------------------------------------------

    def function(
        self, dot: Any, name: FunctionNode, whole: Any, words: Sequence[Any], final: Any
    ) -> Any:
        self.node = name
        function = FUNCTIONS[name.name]
        self.count(name.name, len(words), final is not _NO_VALUE)
        if name.name in ("and", "or"):
            return self.short_circuit(dot, name.name, words, final)
        values = [
            self.checked(name.name, position, self.argument(dot, word), word)
            for position, word in enumerate(words)
        ]
        if function.boxes:
            values[1:] = [
                Boxed() if value is not NOTHING and self.is_boxed(word) else value
                for word, value in zip(words[1:], values[1:], strict=True)
            ]

        if final is not _NO_VALUE:
            values.append(self.checked(name.name, len(values), final, None))
        try:
            return function.call(*values)
        except FunctionError as error:
            self.node = whole
            if isinstance(error, NoFunctionError):
                callee = words[0] if words else final
                if not words and not isinstance(final, str):  # as Go prints a reflect.Value
                    callee = f"<{type_name(final)} Value>"
                self.fail(f"error calling {name.name}: non-function {callee} {error}")
            self.fail(f"error calling {name.name}: {error}")

    def count(self, name: str, count: int, piped: bool) -> None:
        """Check the number of arguments."""
        function = FUNCTIONS[name]
        if function.more and count + piped < function.least:
            self.fail(
                f"wrong number of args for {name}: want at least {function.least} got {count}"
            )
        if not function.more and count + piped != function.least:
            self.fail(f"wrong number of args for {name}: want {function.least} got {count + piped}")

    def short_circuit(self, dot: Any, name: str, words: Sequence[Any], final: Any) -> Any:
        value: Any = NOTHING
        for word in words:
            value = self.argument(dot, word)
            if truth(value) is (name == "or"):
                return value
        if final is _NO_VALUE:
            return value
        return final

    def checked(self, name: str, position: int, value: Any, word: Any) -> Any:
        """Return an argument as the function takes it."""
        function = FUNCTIONS[name]
        if position not in function.texts:
            if function.absent or value is not NOTHING:
                return value
            return None
        if not isinstance(value, str):
            self.fail(_text_error(value, word))
        return value

    def is_boxed(self, word: Any) -> bool:
        """Return whether the static type of an argument is ``interface {}``."""
        match word:
            case FieldPathNode() | ChainNode():
                return True
            case VariableNode():
                return bool(word.names) or self.lookup(word.name).boxed
            case DotNode():
                return self.boxed_dot
        return False

    def argument(self, dot: Any, word: Any) -> Any:
        self.node = word
        match word:
            case NilNode():
                return NOTHING
            case FieldPathNode() | VariableNode() | ChainNode():
                return self.reach(dot, word, False)
            case PipeNode():
                return self.pipeline(dot, word)
            case FunctionNode():
                return self.function(dot, word, word, (), _NO_VALUE)
        return self.plain(dot, word)


def _text_error(value: Any, word: Any) -> str:
    """Return the message for an argument that is no string."""
    if isinstance(word, ConstantNode):
        return f"expected string; found {word}"
    if isinstance(word, NilNode):
        return "cannot assign nil to string"
    if value is NOTHING:
        return "invalid value; expected string"
    return (
        f"wrong type for value; expected string; got "
        f"{'interface {}' if value is None else type_name(value)}"
    )
