"""The tree of a template. ``str`` of a node is its source as Go writes it, which errors quote.

``position`` counts bytes from the start of the template.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class TemplateError(Exception):
    """A template that cannot be read, in Go's words."""


class Int(int):
    """Go's ``int``: what literals and lengths are. Numbers of objects are plain ints, Go's ``int64``."""


class Byte(Int):
    """Go's ``uint8``: a byte of a string."""


class Boxed:
    """Go's ``interface {}`` around a value, where a function looks at that and not into it."""


# --- operands -----------------------------------------------------------------------------------------------------


class Dot(NamedTuple):
    position: int

    def __str__(self) -> str:
        return "."


class Nil(NamedTuple):
    position: int

    def __str__(self) -> str:
        return "nil"


class Literal(NamedTuple):
    """A number, string, character or boolean."""

    position: int
    source: str
    value: bool | Int | float | str

    def __str__(self) -> str:
        return self.source


class Name(NamedTuple):
    """A function."""

    position: int
    name: str

    def __str__(self) -> str:
        return self.name


class Field(NamedTuple):
    """``.a.b`` of the dot."""

    position: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


class Variable(NamedTuple):
    """``$x.a.b``."""

    position: int
    name: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.name, *self.names))


class Chain(NamedTuple):
    """``(…).a.b``, or of a function without arguments."""

    position: int
    base: Any
    names: tuple[str, ...]

    def __str__(self) -> str:
        base = f"({self.base})" if isinstance(self.base, Pipe) else str(self.base)
        return base + "".join(f".{name}" for name in self.names)


class Command(NamedTuple):
    """A function, field or value, with its arguments."""

    position: int
    words: list[Any]

    def __str__(self) -> str:
        return " ".join(f"({word})" if isinstance(word, Pipe) else str(word) for word in self.words)


class Pipe(NamedTuple):
    """Commands, each given what the one before made; the last one's value goes to the variables, if there are any."""

    position: int
    variables: list[str]
    assigns: bool
    commands: list[Command]

    def __str__(self) -> str:
        commands = " | ".join(map(str, self.commands))
        return f"{', '.join(self.variables)} {'=' if self.assigns else ':='} {commands}" if self.variables else commands


# --- what a template is made of -----------------------------------------------------------------------------------


class Text(NamedTuple):
    text: str


class Action(NamedTuple):
    """``{{pipeline}}``."""

    position: int
    pipe: Pipe

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


class Control(NamedTuple):
    """``if``, ``range`` and ``with``."""

    position: int
    kind: str
    pipe: Pipe
    body: list[Any]
    otherwise: list[Any] | None


class Call(NamedTuple):
    """``{{template "name" pipeline}}``."""

    position: int
    name: str
    pipe: Pipe | None

    def __str__(self) -> str:
        pipe = f" {self.pipe}" if self.pipe else ""
        return f'{{{{template "{self.name}"{pipe}}}}}'


class Jump(NamedTuple):
    """``break`` or ``continue``."""

    kind: str


class Mark(NamedTuple):
    """``end`` or ``else``, which close a list of nodes."""

    kind: str

    def __str__(self) -> str:
        return f"{{{{{self.kind}}}}}"
