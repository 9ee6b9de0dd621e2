"""What cannot be right about an expression, told from the types of its variables (cel-go's ``checker``).

Only what is certain is an error: a ``dyn`` value fits everywhere.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kubepy.api.cel.interpreter import dotted, optimized
from kubepy.api.cel.literals import differing, wrong_argument
from kubepy.api.cel.parser import parse
from kubepy.api.cel.syntax import (
    MAPPING,
    Call,
    CelSyntaxError,
    Ident,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Node,
    Select,
)
from kubepy.api.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    OVERLOADS,
    TYPE,
    Overload,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kubepy.api.cel.values import TYPE_NAMES, kind_of, reserved

Variables = Mapping[str, Type]
Bindings = dict[str, Type]

_POLICY_VARIABLES = dict.fromkeys(("object", "oldObject", "request", "params", "namespaceObject", "variables"), DYN)

_NULLABLE = ("object", "map", "list", "timestamp", "duration", "optional", "null", "dyn")
_TYPE_WORDS = frozenset(("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type",
                         "optional_type", *TYPE_NAMES.values()))


class Resolution(NamedTuple):
    """The function that a call names, and those of its overloads that fit the types of the arguments."""

    name: str
    overloads: list[Overload]
    is_member: bool


class Checked(NamedTuple):
    """A tree as it is written, and by a node's ``id()`` its type and the function that it calls."""

    node: Node
    types: Mapping[int, Type]
    calls: Mapping[int, Resolution]


class Compiled(NamedTuple):
    """``node`` is what to evaluate, ``type`` that of the value, ``names`` the variables that the expression uses."""

    node: Node
    type: Type
    names: frozenset[str]
    checked: Checked


class CompileError(ValueError):
    """Why an expression does not compile, in cel-go's words with the lines that they are about."""


def parse_expression(text: str) -> Node:
    """Only the syntax is looked at. Raises CompileError."""
    try:
        return parse(text)
    except CelSyntaxError as error:
        raise CompileError(_shown(text, str(error), error.at)) from None


def compile_expression(text: str, variables: Variables) -> Compiled:
    """Raises CompileError."""
    node = parse_expression(text)
    checker = _Checker(variables)
    try:
        found = checker.type_of(node, variables)
        folded = optimized(node)
    except RecursionError:
        raise CompileError(_shown(text, "expression recursion limit exceeded", 0)) from None
    if problems := checker.problems or checker.wrong_literals:
        raise CompileError("\n".join(_shown(text, why, at) for at, why in sorted(problems)))
    return Compiled(folded, found, frozenset(checker.names), Checked(node, checker.types, checker.calls))


def _shown(text: str, why: str, at: int) -> str:
    """An error with its line and a mark under the place, both left out if it has no place (-1)."""
    if at < 0:
        return f"ERROR: <input>:-1:0: {why}"
    before = text[:at]
    line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1)
    return f"ERROR: <input>:{line}:{column + 1}: {why}\n | {text.split(chr(10))[line - 1]}\n | {'.' * column}^"


class _Checker:
    def __init__(self, variables: Variables) -> None:
        self.problems: list[tuple[int, str]] = []
        self.wrong_literals: list[tuple[int, str]] = []  # told if there are no other problems
        self.names: set[str] = set()
        self.types: dict[int, Type] = {}
        self.calls: dict[int, Resolution] = {}
        self._globals = variables

    def _fail(self, at: int, why: str) -> Type:
        self.problems.append((at, why))
        return DYN

    def type_of(self, node: Node, scope: Variables) -> Type:
        found = self.types[id(node)] = self._type_of(node, scope)
        return found

    def _type_of(self, node: Node, scope: Variables) -> Type:
        match node:
            case Literal():
                return _type_of_value(node.value)
            case Ident():
                return self._variable(node, scope)
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case ListLiteral():
                return list_of(self._common(node.items, scope, node.optional))
            case MapLiteral():
                keys = self._common([key for key, _, _ in node.entries], scope)
                optional = {index for index, entry in enumerate(node.entries) if entry[2]}
                return map_of(keys, self._common([one for _, one, _ in node.entries], scope, optional))
            case Macro():
                return self._macro(node, scope)

    def _common(self, items: Sequence[Node], scope: Variables, optional: Container[int] = ()) -> Type:
        """The type of all of several values, dyn if they differ or there are none. ``optional``: those that may be."""
        types = [self.type_of(item, scope) for item in items]
        types = [found.params[0] if index in optional and found.params else found for index, found in enumerate(types)]
        self.wrong_literals.extend(differing(items, types))
        if not types or any(not assignable(types[0], other, {}) for other in types):
            return DYN
        return types[0]

    def _variable(self, node: Ident, scope: Variables) -> Type:
        found = scope.get(node.name)
        if found is None:
            if node.name in _TYPE_WORDS:
                return TYPE
            return self._fail(node.at, f"undeclared reference to '{node.name}' (in container '')")
        if found is self._globals.get(node.name):
            self.names.add(node.name)
        return found

    # --- selection --------------------------------------------------------------------------------------------------

    def _select(self, node: Select, scope: Variables) -> Type:
        name = dotted(node)
        if name in _TYPE_WORDS and name.partition(".")[0] not in scope:
            return TYPE
        outer = self.type_of(node.operand, scope)
        is_optional = node.optional or outer.name == "optional"
        found = self._field(outer.params[0] if outer.name == "optional" and outer.params else outer, node)
        if node.test:
            return BOOL
        return optional_of(found) if is_optional else found

    def _field(self, outer: Type, node: Select) -> Type:
        if outer.fields is not None:
            found = outer.fields.get(node.field, outer.fields.get(reserved(node.field)))
            return found if found is not None else self._fail(node.at, f"undefined field '{node.field}'")
        if outer.name == "map":
            return outer.params[1] if outer.params else DYN
        if outer == DYN:
            return DYN
        return self._fail(node.at, f"type '{outer}' does not support field selection")

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, node: Call, scope: Variables) -> Type:
        args = self._args(node, scope)
        self.wrong_literals.extend(wrong_argument(node))
        match node.function:
            case "_&&_" | "_||_":
                return self._logical(node, args)
            case "_?_:_":
                return self._conditional(node, args)
            case "_[_]" | "_[?_]":
                return self._index(node, args)
        name, is_member = node.function, False
        if node.target is not None:
            outer = dotted(node.target)
            if f"{outer}.{name}" in OVERLOADS and outer.partition(".")[0] not in scope:
                name = f"{outer}.{name}"
            else:
                args, is_member = [self.type_of(node.target, scope), *args], True
        return self._resolve(node, name, args, is_member)

    def _args(self, node: Call, scope: Variables) -> list[Type]:
        """Format takes values of any types, in a list."""
        known = len(self.wrong_literals)
        args = [self.type_of(arg, scope) for arg in node.args]
        if node.function == "format":
            del self.wrong_literals[known:]
        return args

    def _resolve(self, node: Call, name: str, args: list[Type], is_member: bool) -> Type:
        if name not in OVERLOADS:
            return self._fail(node.at, f"undeclared reference to '{name}' (in container '')")
        fitting = [(one, found) for one in OVERLOADS[name]
                   if one.is_member == is_member and (found := _result(one, args)) is not None]
        results = [found for _, found in fitting]
        self.calls[id(node)] = Resolution(name, [one for one, _ in fitting], is_member)
        if not results:
            shown = ", ".join(map(str, args[is_member:]))
            applied = f"{args[0]}.({shown})" if is_member else f"({shown})"
            return self._fail(node.at, f"found no matching overload for '{name}' applied to '{applied}'")
        return results[0] if all(one == results[0] for one in results) else DYN

    def _logical(self, node: Call, args: list[Type]) -> Type:
        for arg, found in zip(node.args, args, strict=True):
            if found not in (BOOL, DYN):
                self._fail(arg.at, f"expected type 'bool' but found '{found}'")
        return BOOL

    def _conditional(self, node: Call, args: list[Type]) -> Type:
        condition, yes, no = args
        if condition not in (BOOL, DYN) or not assignable(yes, no, {}):
            shown = ", ".join(map(str, args))
            return self._fail(node.at, f"found no matching overload for '_?_:_' applied to '({shown})'")
        return no if yes in (DYN, NULL) else yes

    def _index(self, node: Call, args: list[Type]) -> Type:
        outer, index = args
        is_optional = node.function == "_[?_]" or outer.name == "optional"
        inner = outer.params[0] if outer.name == "optional" and outer.params else outer
        if inner == DYN:
            found: Type | None = DYN
        elif inner.name == "list" and index in (INT, DYN):
            found = inner.params[0]
        elif inner.name == "map" and assignable(inner.params[0], index, {}):
            found = inner.params[1]
        else:
            found = None
        if found is None:
            shown = f"({outer}, {index})"
            return self._fail(node.at, f"found no matching overload for '{node.function}' applied to '{shown}'")
        return optional_of(found) if is_optional else found

    # --- macros -----------------------------------------------------------------------------------------------------

    def _macro(self, node: Macro, scope: Variables) -> Type:
        over = self.type_of(node.range, scope)
        inner = {**scope, **dict(zip(node.variables, self._types_in(node, over), strict=True))}
        bodies = [self.type_of(body, inner) for body in node.body]
        if node.name in ("optMap", "optFlatMap"):
            return bodies[0] if node.name == "optFlatMap" else optional_of(bodies[0])
        tests = [] if node.name == "sortBy" else bodies[:-1] if node.name in MAPPING else bodies
        for body, found in zip(node.body, tests, strict=False):
            if found not in (BOOL, DYN):
                self._fail(body.at, f"expected type 'bool' but found '{found}'")
        if node.name in ("all", "exists", "exists_one", "existsOne"):
            return BOOL
        if node.name in ("filter", "sortBy"):
            return list_of(inner[node.variables[0]])
        if node.name == "transformMapEntry":
            return bodies[-1]
        return map_of(inner[node.variables[0]], bodies[-1]) if node.name == "transformMap" else list_of(bodies[-1])

    def _types_in(self, node: Macro, over: Type) -> list[Type]:
        """The types of the macro's variables."""
        two = len(node.variables) == 2
        if node.name in ("optMap", "optFlatMap"):
            return [over.params[0] if over.name == "optional" and over.params else DYN]
        if over.name == "list" and over.params:
            return [INT, over.params[0]] if two else [over.params[0]]
        if over.name == "map" and over.params:
            return list(over.params) if two else [over.params[0]]
        if over != DYN:
            self._fail(node.range.at, f"expression of type '{over}' cannot be range of a comprehension (must be list, "
                                      "map, or dynamic)")
        return [DYN] * len(node.variables)


def _type_of_value(value: Any) -> Type:
    return Type(kind_of(value))


def _result(one: Overload, args: list[Type]) -> Type | None:
    """What an overload gives for these arguments, None if it does not take them."""
    bindings: Bindings = {}
    if len(one.params) != len(args) or not all(
            assignable(param, arg, bindings) for param, arg in zip(one.params, args, strict=True)):
        return None
    return _bound(one.result, bindings)


def _bound(wanted: Type, bindings: Bindings) -> Type:
    if wanted.is_parameter:
        return bindings.get(wanted.name, DYN)
    return wanted._replace(params=tuple(_bound(param, bindings) for param in wanted.params))


def assignable(wanted: Type, found: Type, bindings: Bindings) -> bool:
    """Whether a value of one type can be where another is wanted; parameters are bound on the way."""
    if wanted.is_parameter:
        bound = bindings.get(wanted.name)
        if bound is None or bound == DYN:
            bindings[wanted.name] = found
            return True
        return assignable(bound, found, bindings) or assignable(found, bound, bindings)
    if DYN in (wanted, found) or found.is_parameter:
        return True
    if NULL in (wanted, found):
        return (wanted.name in _NULLABLE or wanted.fields is not None) and (
            found.name in _NULLABLE or found.fields is not None)
    if wanted.fields is not None or found.fields is not None:
        return wanted.fields is found.fields
    return wanted.name == found.name and all(
        assignable(one, other, bindings) for one, other in zip(wanted.params, found.params, strict=False))


@lru_cache(maxsize=512)
def compile_policy_expression(expression: str) -> Compiled:
    """Compile an expression of an admission policy or webhook. Raises CompileError."""
    return compile_expression(expression, _POLICY_VARIABLES)
