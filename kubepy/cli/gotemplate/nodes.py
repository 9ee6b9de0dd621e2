"""The tree of a template. ``str`` of a node is its source as Go writes it, which errors quote.

``position`` counts bytes from the start of the template.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class TemplateError(Exception):
    """A template that cannot be parsed; the message is Go's."""


class Int(int):
    """Go's ``int``, the type of literals and lengths. Numbers of objects are plain ints: Go's
    ``int64``."""


class Byte(Int):
    """Go's ``uint8``: a byte of a string."""


class Boxed:
    """Go's ``interface {}`` around a value, for functions that look at the interface and not into
    it."""


# --- operands -------------------------------------------------------------------------------------


class DotNode(NamedTuple):
    position: int

    def __str__(self) -> str:
        return "."


class NilNode(NamedTuple):
    position: int

    def __str__(self) -> str:
        return "nil"


class ConstantNode(NamedTuple):
    """A number, string, character or boolean."""

    position: int
    source: str
    value: bool | Int | float | str

    def __str__(self) -> str:
        return self.source


class FunctionNode(NamedTuple):
    """The name of a function."""

    position: int
    name: str

    def __str__(self) -> str:
        return self.name


class FieldPathNode(NamedTuple):
    """``.a.b`` of the dot."""

    position: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


class VariableNode(NamedTuple):
    """``$x.a.b``."""

    position: int
    name: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.name, *self.names))


class ChainNode(NamedTuple):
    """``(…).a.b``, or of a function without arguments."""

    position: int
    base: Any
    names: tuple[str, ...]

    def __str__(self) -> str:
        base = f"({self.base})" if isinstance(self.base, PipeNode) else str(self.base)
        return base + "".join(f".{name}" for name in self.names)


class CommandNode(NamedTuple):
    """A function, field or value, with its arguments."""

    position: int
    words: list[Any]

    def __str__(self) -> str:
        return " ".join(
            f"({word})" if isinstance(word, PipeNode) else str(word) for word in self.words
        )


class PipeNode(NamedTuple):
    """Commands, each with the value of the one before as its last argument.

    The last value is assigned to the variables, if there are any.
    """

    position: int
    variables: list[str]
    assigns: bool
    commands: list[CommandNode]

    def __str__(self) -> str:
        commands = " | ".join(map(str, self.commands))
        if self.variables:
            return f"{', '.join(self.variables)} {'=' if self.assigns else ':='} {commands}"
        return commands


# --- nodes ----------------------------------------------------------------------------------------


class TextNode(NamedTuple):
    text: str


class ActionNode(NamedTuple):
    """``{{pipeline}}``."""

    position: int
    pipe: PipeNode

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


class BranchNode(NamedTuple):
    """``if``, ``range`` and ``with``."""

    position: int
    kind: str
    pipe: PipeNode
    body: list[Any]
    otherwise: list[Any] | None


class TemplateNode(NamedTuple):
    """``{{template "name" pipeline}}``."""

    position: int
    name: str
    pipe: PipeNode | None

    def __str__(self) -> str:
        pipe = f" {self.pipe}" if self.pipe else ""
        return f'{{{{template "{self.name}"{pipe}}}}}'


class JumpNode(NamedTuple):
    """``break`` or ``continue``."""

    kind: str


class EndNode(NamedTuple):
    """``end`` or ``else``, which close a list of nodes."""

    kind: str

    def __str__(self) -> str:
        return f"{{{{{self.kind}}}}}"
