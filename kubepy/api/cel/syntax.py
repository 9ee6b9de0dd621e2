"""The tree of an expression. ``at`` is the offset, in characters, that an error about a node points to."""

from __future__ import annotations

from typing import Any, NamedTuple


class CelSyntaxError(ValueError):
    """An expression that cannot be read. ``at``: where, in characters from its beginning; -1 if it is all of it."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


class Literal(NamedTuple):
    value: Any
    at: int


class Ident(NamedTuple):
    name: str
    at: int


class Select(NamedTuple):
    """``operand.field``; ``test``: ``has(operand.field)``; ``optional``: ``operand.?field``."""

    operand: Node
    field: str
    at: int
    test: bool = False
    optional: bool = False


class Call(NamedTuple):
    """``function(args)`` or ``target.function(args)``; operators are called ``_+_`` and the like."""

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int


class ListLiteral(NamedTuple):
    """``optional``: the indices of items written ``?item``."""

    items: tuple[Node, ...]
    optional: frozenset[int]
    at: int


class MapLiteral(NamedTuple):
    entries: tuple[tuple[Node, Node, bool], ...]
    at: int


class Macro(NamedTuple):
    """``range.name(variables…, body…)``: all, exists, exists_one, map, filter and those of two variables."""

    name: str
    range: Node
    variables: tuple[str, ...]
    body: tuple[Node, ...]
    at: int


MAPPING = ("map", "transformList", "transformMap", "transformMapEntry")  # their last expression makes what they give

Node = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Macro
