"""Expressions of checks: CEL over the objects of a cluster.

The plural name of a kind is the list of its objects in all namespaces.
``resources['plural.group']`` is that of any kind, ``now`` the cluster's time. A custom kind may be
defined only during a run, so a plural that no kind has yet is an empty list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import NamedTuple, TypeGuard

from kubepy.api.cel import checker
from kubepy.api.cel import types as cel_types
from kubepy.api.cel.syntax import (
    CallExpr,
    Ident,
    Literal,
    Macro,
    Node,
    Select,
    children_of,
    replaced,
)
from kubepy.api.scheme import BUILT_IN

NOW = "now"
RESOURCES = "resources"
OBJECTS = cel_types.list_of(cel_types.DYN)
_PLURAL = re.compile(r"[a-z][a-z0-9]*s")
_GROUP_RESOURCE = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9.-]*)?")
_TYPE = "bytes"  # the only name of a type that looks like a plural
_CLOSE = 0.8  # the likeness from which a word counts as a misspelt plural


class Expression(NamedTuple):
    """A compiled expression.

    :ivar node: the tree; the list of a resource is a variable in it.
    :ivar variables: the names of these variables, by which :func:`resource_of` names the resource.
    :ivar reads_time: ``now`` is in it.
    """

    node: Node
    variables: frozenset[str]
    reads_time: bool


class CheckExpressionError(ValueError):
    """An expression that cannot be a check, and why, in one line."""


@lru_cache(maxsize=512)
def compile_check(text: str) -> Expression:
    """Compile the expression of a check. Raises CheckExpressionError."""
    try:
        parsed = checker.parse_expression(text)
        named = _with_variables(parsed, frozenset())
        names = free_names(named)
        types = _types_of(names)
        compiled = checker.compile_expression(text, types)
    except checker.CompileError as error:
        first, *_ = str(error).splitlines()
        raise CheckExpressionError(f"does not compile: {first}") from None
    except RecursionError:
        raise CheckExpressionError("does not compile: it is nested too deeply") from None
    if compiled.type not in (cel_types.BOOL, cel_types.DYN):
        raise CheckExpressionError("must be an expression that is true or false")
    node = _with_variables(compiled.node, frozenset())
    variables = free_names(node) - {NOW}
    reads_time = NOW in names
    return Expression(node, variables, reads_time)


def resource_of(variable: str) -> str:
    """Return the resource that a variable names: ``pods``, ``things.example.org``."""
    word = variable.removeprefix(f"{RESOURCES}['")
    return word.removesuffix("']")


def _types_of(names: frozenset[str]) -> dict[str, cel_types.Type]:
    """Return the types of the variables that an expression may have. Raises CheckExpressionError
    for a name that is none."""
    variables = {
        RESOURCES: cel_types.map_of(cel_types.STRING, OBJECTS),
        NOW: cel_types.TIMESTAMP,
    }
    for name in names - {NOW}:
        if name == RESOURCES:
            raise CheckExpressionError(
                "resources must be followed by a name in brackets: resources['pods']"
            )
        if name.startswith(RESOURCES):
            if not _GROUP_RESOURCE.fullmatch(resource_of(name)):
                raise CheckExpressionError(
                    f"{name}: must be a plural and its group: resources['deployments.apps']"
                )
        elif name in _plurals():
            variables[name] = OBJECTS
        elif (plural := _meant_by(name)) != "":
            raise CheckExpressionError(
                f"{name} names no kind: did you mean {plural}? A custom kind is "
                f"resources['{name}.GROUP']"
            )
        elif _PLURAL.fullmatch(name) and name != _TYPE:
            variables[name] = OBJECTS
    return variables


@cache
def _plurals() -> frozenset[str]:
    """Return the plurals of the built-in kinds whose objects are stored."""
    stored = (resource for resource in BUILT_IN if resource.is_stored)
    return frozenset(resource.plural for resource in stored)


@cache
def _other_names() -> dict[str, str]:
    """Return the plurals of built-in kinds by their singulars, short names and kinds."""
    plurals: dict[str, str] = {}
    for resource in BUILT_IN:
        if not resource.is_stored:
            continue
        words = (resource.singular_name, resource.kind, *resource.short_names)
        for word in words:
            plurals[word] = resource.plural
    return plurals


def _meant_by(name: str) -> str:
    """Return the plural that somebody means who writes another name of its kind, or misspells it;
    "" where that is not known. A check over a list that is always empty would always hold."""
    plural = _other_names().get(name)
    if plural is not None:
        return plural
    plurals = sorted(_plurals())
    close = get_close_matches(name, plurals, 1, _CLOSE)
    return close[0] if close else ""


def _with_variables(node: Node, bound: frozenset[str]) -> Node:
    """Return a tree in which ``resources['pods']`` and ``resources.pods`` are variables.

    :param bound: the variables of the macros around the node.
    """
    # A macro's variable may be called resources, too.
    if RESOURCES not in bound:
        word = _resource_word(node)
        if word is not None:
            return Ident(f"{RESOURCES}['{word}']", node.at)
    if isinstance(node, Macro):
        inner = bound.union(node.variables)
        over = _with_variables(node.range, bound)
        body = [_with_variables(part, inner) for part in node.body]
        return node._replace(range=over, body=tuple(body))
    return replaced(node, lambda child: _with_variables(child, bound))


def _resource_word(node: Node) -> str | None:
    """Return ``pods`` of ``resources['pods']`` and ``resources.pods``; None for other nodes."""
    if isinstance(node, CallExpr):
        return _index_word(node)
    if not isinstance(node, Select):
        return None
    if node.test or node.optional:
        return None
    if not _is_resources(node.operand):
        return None
    return node.field


def _index_word(call: CallExpr) -> str | None:
    """Return ``pods`` of ``resources['pods']``; None for other calls."""
    if call.function != "_[_]":
        return None
    container, index = call.args
    if not _is_resources(container) or not isinstance(index, Literal):
        return None
    word = index.value
    # A literal of bytes is none.
    if type(word) is not str:
        return None
    return word


def _is_resources(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == RESOURCES


def free_names(node: Node) -> frozenset[str]:
    """Return the names in an expression that no macro in it binds, without those of namespaces of
    functions (``sets.contains``)."""
    if isinstance(node, Ident):
        return frozenset((node.name,))
    if isinstance(node, Macro):
        in_range = free_names(node.range)
        in_body = _free_names_in(node.body)
        return in_range | in_body.difference(node.variables)
    if _is_qualified(node):
        return _free_names_in(node.args)
    children = children_of(node)
    return _free_names_in(children)


def _free_names_in(nodes: Iterable[Node]) -> frozenset[str]:
    names = frozenset[str]()
    for node in nodes:
        names |= free_names(node)
    return names


def _is_qualified(node: Node) -> TypeGuard[CallExpr]:
    """Return whether the target of a call is a part of the function's name."""
    if not isinstance(node, CallExpr):
        return False
    target = node.target
    if not isinstance(target, Ident):
        return False
    qualified = f"{target.name}.{node.function}"
    return qualified in cel_types.OVERLOADS
