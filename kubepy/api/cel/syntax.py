"""The tree of an expression (cel-go's ``common/ast``).

``at`` of a node is the offset, in characters, that errors about it point to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar


class CelSyntaxError(ValueError):
    """An expression that cannot be parsed. ``at``: the offset of the error; -1 if it is about the
    whole expression."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class Literal(NamedTuple):
    value: Any
    at: int


class Ident(NamedTuple):
    name: str
    at: int


class Select(NamedTuple):
    """A selection ``operand.field``; with ``test`` ``has(operand.field)``, with ``optional``
    ``operand.?field``."""

    operand: Node
    field: str
    at: int
    test: bool = False
    optional: bool = False


class CallExpr(NamedTuple):
    """A call ``function(args)`` or ``target.function(args)``; operators are functions named ``_+_``
    and the like."""

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int


class ListLiteral(NamedTuple):
    """A list; ``optional`` has the indices of items written ``?item``."""

    items: tuple[Node, ...]
    optional: frozenset[int]
    at: int


class MapLiteral(NamedTuple):
    entries: tuple[tuple[Node, Node, bool], ...]
    at: int


class StructLiteral(NamedTuple):
    """An object of a named type: ``Object.spec{replicas: 1, ?paused: optional}``."""

    type_name: str
    fields: tuple[tuple[str, Node, bool], ...]
    at: int


class Macro(NamedTuple):
    """A macro ``range.name(variables…, body…)``: all, exists, exists_one, map, filter and those of
    two variables."""

    name: str
    range: Node
    variables: tuple[str, ...]
    body: tuple[Node, ...]
    at: int


# Macros whose last expression makes the values of the result.
MAPPING = ("map", "transformList", "transformMap", "transformMapEntry")

Node = Literal | Ident | Select | CallExpr | ListLiteral | MapLiteral | StructLiteral | Macro


class Computed(NamedTuple):
    """A node that a program has put in the place of another (``replaced``): a function gives its
    value, and takes the scope and the cost tracker of the evaluation. No parser makes one, so it is
    none of ``Node``: visitors meet trees as they were parsed."""

    compute: Callable[[Any, Any], Any]
    at: int


def children_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes right below one, in the order of the text."""
    match node:
        case Select():
            return (node.operand,)
        case CallExpr():
            return node.args if node.target is None else (node.target, *node.args)
        case ListLiteral():
            return node.items
        case MapLiteral():
            return tuple(part for key, value, _ in node.entries for part in (key, value))
        case StructLiteral():
            return tuple(value for _, value, _ in node.fields)
        case Macro():
            return (node.range, *node.body)
    return ()


def replaced(node: Node, replace: Callable[[Node], Node]) -> Node:
    """Return a node with each of the nodes right below it replaced by what a function returns."""
    match node:
        case Select():
            return node._replace(operand=replace(node.operand))
        case CallExpr():
            target = None if node.target is None else replace(node.target)
            return node._replace(target=target, args=tuple(map(replace, node.args)))
        case ListLiteral():
            return node._replace(items=tuple(map(replace, node.items)))
        case MapLiteral():
            entries = ((replace(key), replace(value), mark) for key, value, mark in node.entries)
            return node._replace(entries=tuple(entries))
        case StructLiteral():
            fields = ((name, replace(value), mark) for name, value, mark in node.fields)
            return node._replace(fields=tuple(fields))
        case Macro():
            return node._replace(range=replace(node.range), body=tuple(map(replace, node.body)))
    return node


def dotted(node: Node) -> str:
    """Return ``a.b.c`` for a path that may be a qualified name, "" for any other node."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        outer = dotted(node.operand)
        if outer:
            return f"{outer}.{node.field}"
        return ""
    return ""


Scope = TypeVar("Scope")
Result = TypeVar("Result")


class NodeVisitor(ABC, Generic[Scope, Result]):
    """A walk over a tree that computes a result for each node in a scope of variables."""

    def visit(self, node: Node, scope: Scope) -> Result:
        """Return the result for a node, from the method for its type."""
        match node:
            case Literal():
                return self.visit_literal(node, scope)
            case Ident():
                return self.visit_ident(node, scope)
            case Select():
                return self.visit_select(node, scope)
            case CallExpr():
                return self.visit_call(node, scope)
            case ListLiteral():
                return self.visit_list(node, scope)
            case MapLiteral():
                return self.visit_map(node, scope)
            case StructLiteral():
                return self.visit_struct(node, scope)
            case Macro():
                return self.visit_macro(node, scope)

    @abstractmethod
    def visit_literal(self, node: Literal, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_ident(self, node: Ident, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_select(self, node: Select, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_call(self, node: CallExpr, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_list(self, node: ListLiteral, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_map(self, node: MapLiteral, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_struct(self, node: StructLiteral, scope: Scope) -> Result: ...

    @abstractmethod
    def visit_macro(self, node: Macro, scope: Scope) -> Result: ...
