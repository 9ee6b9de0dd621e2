"""Expressions of checks: CEL over the objects of a cluster.

The plural name of a kind is the list of its objects in all namespaces.
``resources['plural.group']`` is that of any kind, ``now`` the cluster's time. A custom kind may be
defined only during a run, so a plural that no kind has yet is an empty list.
"""

from __future__ import annotations

import re
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
_CLOSE = 0.9  # the likeness from which a word counts as a misspelt plural


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
        names = free_names(_with_variables(parsed, frozenset()))
        compiled = checker.compile_expression(text, _types_of(names))
    except checker.CompileError as error:
        raise CheckExpressionError(f"does not compile: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise CheckExpressionError("does not compile: it is nested too deeply") from None
    if compiled.type not in (cel_types.BOOL, cel_types.DYN):
        raise CheckExpressionError("must be an expression that is true or false")
    node = _with_variables(compiled.node, frozenset())
    variables = frozenset(name for name in free_names(node) if name != NOW)
    return Expression(node, variables, NOW in names)


def resource_of(variable: str) -> str:
    """Return the resource that a variable names: ``pods``, ``things.example.org``."""
    return variable.removeprefix(f"{RESOURCES}['").removesuffix("']")


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
    return frozenset(resource.plural for resource in BUILT_IN if resource.is_stored)


@cache
def _other_names() -> dict[str, str]:
    """Return the plurals of built-in kinds by their singulars, short names and kinds."""
    return {
        word: resource.plural
        for resource in BUILT_IN
        if resource.is_stored
        for word in (resource.singular_name, resource.kind, *resource.short_names)
    }


def _meant_by(name: str) -> str:
    """Return the plural that somebody means who writes another name of its kind, or misspells it;
    "" where that is not known. A check over a list that is always empty would always hold."""
    if (plural := _other_names().get(name)) is not None:
        return plural
    close = get_close_matches(name, sorted(_plurals()), 1, _CLOSE)
    return close[0] if close else ""


def _with_variables(node: Node, bound: frozenset[str]) -> Node:
    """Return a tree in which ``resources['pods']`` and ``resources.pods`` are variables.

    :param bound: the variables of the macros around the node.
    """
    if RESOURCES not in bound and (word := _resource_word(node)) is not None:
        return Ident(f"{RESOURCES}['{word}']", node.at)
    if isinstance(node, Macro):
        inner = bound | set(node.variables)
        return node._replace(
            range=_with_variables(node.range, bound),
            body=tuple(_with_variables(part, inner) for part in node.body),
        )
    return replaced(node, lambda child: _with_variables(child, bound))


def _resource_word(node: Node) -> str | None:
    """Return ``pods`` of ``resources['pods']``; None for other nodes."""
    if isinstance(node, CallExpr) and node.function == "_[_]":
        container, index = node.args
        if isinstance(container, Ident) and container.name == RESOURCES:
            return index.value if isinstance(index, Literal) and type(index.value) is str else None
    if isinstance(node, Select) and not node.test and not node.optional:
        operand = node.operand
        return node.field if isinstance(operand, Ident) and operand.name == RESOURCES else None
    return None


def free_names(node: Node) -> frozenset[str]:
    """Return the names in an expression that no macro in it binds, without those of namespaces of
    functions (``sets.contains``)."""
    if isinstance(node, Ident):
        return frozenset((node.name,))
    if isinstance(node, Macro):
        in_body = frozenset[str]().union(*map(free_names, node.body))
        return free_names(node.range) | (in_body - set(node.variables))
    children = node.args if _is_qualified(node) else children_of(node)
    return frozenset[str]().union(*map(free_names, children))


def _is_qualified(node: Node) -> TypeGuard[CallExpr]:
    """Return whether the target of a call is a part of the function's name."""
    if not isinstance(node, CallExpr) or not isinstance(node.target, Ident):
        return False
    return f"{node.target.name}.{node.function}" in cel_types.OVERLOADS
