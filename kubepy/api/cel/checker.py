"""The type checker: errors in an expression, from the types of its variables (cel-go's
``checker``).

Values of type ``dyn`` fit everywhere. Kubernetes also compiles with cel-go's validators of
literals: of durations, timestamps, regular expressions, and of lists and maps of several types
(``apiserver/pkg/cel/environment``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from kubepy.api.cel import times
from kubepy.api.cel.interpreter import optimized
from kubepy.api.cel.parser import parse
from kubepy.api.cel.syntax import (
    MAPPING,
    CallExpr,
    CelSyntaxError,
    Ident,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Node,
    NodeVisitor,
    Select,
    StructLiteral,
    dotted,
)
from kubepy.api.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    OVERLOADS,
    STRING,
    TYPE,
    Overload,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kubepy.api.cel.values import TYPE_NAMES, CelError, kind_of, reserved
from kubepy.api.values.goregex import GoRegexError, compile_go

Variables = Mapping[str, Type]
Bindings = dict[str, Type]

_POLICY_VARIABLES = dict.fromkeys(
    ("object", "oldObject", "request", "params", "namespaceObject", "variables"), DYN
)

OBJECT = Type("Object")  # an apply configuration; below it are Object.spec …
JSON_PATCH = Type("JSONPatch")  # one operation
JSON_PATCHES = list_of(JSON_PATCH)
PATCH_TEXTS = ("op", "path", "from")  # its fields that are strings
_NULLABLE = ("object", "map", "list", "timestamp", "duration", "optional", "null", "dyn")
_TYPE_WORDS = frozenset(
    (
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional_type",
        *TYPE_NAMES.values(),
    )
)


class ResolvedCall(NamedTuple):
    """The function of a call, and its overloads that accept the types of the arguments."""

    name: str
    overloads: list[Overload]
    is_member: bool


class Checked(NamedTuple):
    """A tree as written, with types of nodes and functions of calls by the ``id()`` of the node."""

    node: Node
    types: Mapping[int, Type]
    calls: Mapping[int, ResolvedCall]


class Compiled(NamedTuple):
    """A compiled expression: the tree to evaluate, the type of its value, and the names of the
    variables in it."""

    node: Node
    type: Type
    names: frozenset[str]
    checked: Checked


class CompileError(ValueError):
    """The errors of an expression that does not compile, in cel-go's words, with their lines."""


class WrongTypeError(CompileError):
    """An expression that compiles, but has a value of another type than its place needs."""


def parse_expression(text: str, names: Container[str] = ()) -> Node:
    """Parse an expression without checking types. Raises CompileError.

    :param names: those of variables, which may be reserved words.
    """
    try:
        return parse(text, names)
    except CelSyntaxError as error:
        raise CompileError(_with_line(text, str(error), error.at)) from None


def compile_expression(text: str, variables: Variables, *, makes_patches: bool = False) -> Compiled:
    """Parse and check an expression. Raises CompileError.

    :param makes_patches: it may make objects of the types Object and JSONPatch.
    """
    node = parse_expression(text, variables)
    checker = _Checker(variables, makes_patches=makes_patches)
    try:
        result_type = checker.visit(node, variables)
        folded = optimized(node)
    except RecursionError:
        raise CompileError(_with_line(text, "expression recursion limit exceeded", 0)) from None
    if problems := checker.problems or checker.literal_problems:
        raise CompileError(
            "\n".join(_with_line(text, message, at) for at, message in sorted(problems))
        )
    return Compiled(
        folded, result_type, frozenset(checker.names), Checked(node, checker.types, checker.calls)
    )


def _with_line(text: str, message: str, at: int) -> str:
    """Return an error with its line and a mark under its place; without both if it has no place
    (-1)."""
    if at < 0:
        return f"ERROR: <input>:-1:0: {message}"
    before = text[:at]
    line = before.count("\n") + 1
    column = at - (before.rfind("\n") + 1)
    return (
        f"ERROR: <input>:{line}:{column + 1}: {message}\n | {text.split(chr(10))[line - 1]}\n "
        f"| {'.' * column}^"
    )


class _Checker(NodeVisitor[Variables, Type]):
    """One check of a tree; scopes are the types of the variables."""

    def __init__(self, variables: Variables, *, makes_patches: bool = False) -> None:
        self.problems: list[tuple[int, str]] = []
        self.literal_problems: list[tuple[int, str]] = []  # reported if there are no other problems
        self.names: set[str] = set()
        self.types: dict[int, Type] = {}
        self.calls: dict[int, ResolvedCall] = {}
        self._globals = variables
        self._makes_patches = makes_patches

    def _fail(self, at: int, message: str) -> Type:
        self.problems.append((at, message))
        return DYN

    def visit(self, node: Node, scope: Variables) -> Type:
        """Return the type of a node, and remember it."""
        result = self.types[id(node)] = super().visit(node, scope)
        return result

    def visit_literal(self, node: Literal, scope: Variables) -> Type:
        return Type(kind_of(node.value))

    def visit_ident(self, node: Ident, scope: Variables) -> Type:
        declared = scope.get(node.name)
        if declared is None:
            if node.name in _TYPE_WORDS:
                return TYPE
            return self._fail(node.at, f"undeclared reference to '{node.name}' (in container '')")
        if declared is self._globals.get(node.name):
            self.names.add(node.name)
        return declared

    def visit_list(self, node: ListLiteral, scope: Variables) -> Type:
        return list_of(self._common(node.items, scope, node.optional))

    def visit_map(self, node: MapLiteral, scope: Variables) -> Type:
        keys = self._common([key for key, _, _ in node.entries], scope)
        optional = {index for index, (_, _, is_optional) in enumerate(node.entries) if is_optional}
        return map_of(keys, self._common([value for _, value, _ in node.entries], scope, optional))

    def visit_struct(self, node: StructLiteral, scope: Variables) -> Type:
        name = node.type_name
        is_object = name.split(".")[0] == OBJECT.name
        if not self._makes_patches or not (is_object or name == JSON_PATCH.name):
            return self._fail(node.at, f"undeclared reference to '{name}' (in container '')")
        for field, value, is_optional in node.fields:
            type = self.visit(value, scope)
            if is_optional and type.name == "optional" and type.params:
                type = type.params[0]
            if is_object or field == "value":
                continue
            if field not in PATCH_TEXTS:
                self._fail(value.at, f"undefined field '{field}'")
            elif type not in (STRING, DYN):
                self._fail(
                    value.at,
                    f"expected type of field '{field}' is 'string' but provided type is '{type}'",
                )
        return Type(name)

    def _common(
        self, items: Sequence[Node], scope: Variables, optional: Container[int] = ()
    ) -> Type:
        """Return the type of all values, dyn if they differ or there are none. ``optional``:
        indices of ``?item``."""
        types = [self.visit(item, scope) for item in items]
        types = [
            type.params[0] if index in optional and type.params else type
            for index, type in enumerate(types)
        ]
        for item, type in zip(items, types, strict=True):
            if types[0] != type and DYN not in (types[0], type):
                self.literal_problems.append(
                    (item.at, f"expected type '{types[0]}' but found '{type}'")
                )
                break
        if not types or any(not assignable(types[0], other, {}) for other in types):
            return DYN
        return types[0]

    def visit_select(self, node: Select, scope: Variables) -> Type:
        name = dotted(node)
        if name in _TYPE_WORDS and name.partition(".")[0] not in scope:
            return TYPE
        operand = self.visit(node.operand, scope)
        is_optional = node.optional or operand.name == "optional"
        holder = operand.params[0] if operand.name == "optional" and operand.params else operand
        if holder.fields is not None:
            field = holder.fields.get(node.field, holder.fields.get(reserved(node.field)))
            if field is not None:
                selected = field
            else:
                selected = self._fail(node.at, f"undefined field '{node.field}'")
        elif holder.name == "map":
            selected = holder.params[1] if holder.params else DYN
        elif holder == DYN:
            selected = DYN
        else:
            selected = self._fail(node.at, f"type '{holder}' does not support field selection")

        if node.test:
            return BOOL
        if is_optional:
            return optional_of(selected)
        return selected

    # --- calls ------------------------------------------------------------------------------------

    def visit_call(self, node: CallExpr, scope: Variables) -> Type:
        known_problems = len(self.literal_problems)
        args = [self.visit(arg, scope) for arg in node.args]
        if node.function == "format":  # takes values of any types, in a list
            del self.literal_problems[known_problems:]
        if (problem := _literal_problem(node)) is not None:
            self.literal_problems.append(problem)
        match node.function:
            case "_&&_" | "_||_":
                return self._all_bool(node.args, args)
            case "_?_:_":
                return self._conditional(node, args)
            case "_[_]" | "_[?_]":
                return self._index(node, args)

        name = node.function
        is_member = False
        if node.target is not None:
            namespace = dotted(node.target)
            if f"{namespace}.{name}" in OVERLOADS and namespace.partition(".")[0] not in scope:
                name = f"{namespace}.{name}"
            else:
                args = [self.visit(node.target, scope), *args]
                is_member = True

        return self._resolve(node, name, args, is_member)

    def _resolve(self, node: CallExpr, name: str, args: list[Type], is_member: bool) -> Type:
        """Return the result's type of the overloads that accept the arguments, dyn if they
        differ."""
        if name not in OVERLOADS:
            return self._fail(node.at, f"undeclared reference to '{name}' (in container '')")
        fitting = [
            (overload, result)
            for overload in OVERLOADS[name]
            if overload.is_member == is_member and (result := _result(overload, args)) is not None
        ]
        results = [result for _, result in fitting]
        self.calls[id(node)] = ResolvedCall(name, [overload for overload, _ in fitting], is_member)
        if not results:
            shown = ", ".join(map(str, args[is_member:]))
            applied = f"{args[0]}.({shown})" if is_member else f"({shown})"
            return self._fail(
                node.at, f"found no matching overload for '{name}' applied to '{applied}'"
            )

        if all(result == results[0] for result in results):
            return results[0]
        return DYN

    def _all_bool(self, nodes: Sequence[Node], types: Sequence[Type]) -> Type:
        for node, type in zip(nodes, types, strict=False):
            if type not in (BOOL, DYN):
                self._fail(node.at, f"expected type 'bool' but found '{type}'")
        return BOOL

    def _conditional(self, node: CallExpr, args: list[Type]) -> Type:
        condition, yes, no = args
        if condition not in (BOOL, DYN) or not assignable(yes, no, {}):
            shown = ", ".join(map(str, args))
            return self._fail(
                node.at, f"found no matching overload for '_?_:_' applied to '({shown})'"
            )
        if yes in (DYN, NULL):
            return no
        return yes

    def _index(self, node: CallExpr, args: list[Type]) -> Type:
        container, index = args
        is_optional = node.function == "_[?_]" or container.name == "optional"
        inner = (
            container.params[0] if container.name == "optional" and container.params else container
        )
        if inner == DYN:
            element = DYN
        elif inner.name == "list" and index in (INT, DYN):
            element = inner.params[0]
        elif inner.name == "map" and assignable(inner.params[0], index, {}):
            element = inner.params[1]
        else:
            shown = f"({container}, {index})"
            return self._fail(
                node.at, f"found no matching overload for '{node.function}' applied to '{shown}'"
            )

        if is_optional:
            return optional_of(element)
        return element

    # --- macros -----------------------------------------------------------------------------------

    def visit_macro(self, node: Macro, scope: Variables) -> Type:
        over = self.visit(node.range, scope)
        inner = {
            **scope,
            **dict(zip(node.variables, self._variable_types(node, over), strict=True)),
        }
        bodies = [self.visit(body, inner) for body in node.body]
        if node.name in ("optMap", "optFlatMap"):
            if node.name == "optFlatMap":
                return bodies[0]
            return optional_of(bodies[0])

        if node.name != "sortBy":
            self._all_bool(node.body, bodies[:-1] if node.name in MAPPING else bodies)
        if node.name in ("all", "exists", "exists_one", "existsOne"):
            return BOOL
        if node.name in ("filter", "sortBy"):
            return list_of(inner[node.variables[0]])
        if node.name == "transformMapEntry":
            return bodies[-1]
        if node.name == "transformMap":
            return map_of(inner[node.variables[0]], bodies[-1])
        return list_of(bodies[-1])

    def _variable_types(self, node: Macro, over: Type) -> list[Type]:
        """Return the types of the macro's variables."""
        two = len(node.variables) == 2
        if node.name in ("optMap", "optFlatMap"):
            return [over.params[0] if over.name == "optional" and over.params else DYN]
        if over.name == "list" and over.params:
            if two:
                return [INT, over.params[0]]
            return [over.params[0]]

        if over.name == "map" and over.params:
            if two:
                return list(over.params)
            return [over.params[0]]

        if over != DYN:
            self._fail(
                node.range.at,
                f"expression of type '{over}' cannot be range of a comprehension (must be list, "
                "map, or dynamic)",
            )

        return [DYN] * len(node.variables)


def _literal_problem(call: CallExpr) -> tuple[int, str] | None:
    """Return the problem of a literal that is not the duration, time or regular expression that a
    call wants."""
    arg = call.args[0] if len(call.args) == 1 else None
    if not isinstance(arg, Literal):
        return None
    try:
        match call.function, arg.value:
            case "duration", str(text):
                times.parse_duration(text)
            case "timestamp", str(text):
                times.parse_timestamp(text)
            case "timestamp", int(seconds):
                times.shifted(times.EPOCH, seconds * 10**9)
            case "matches", str(text):
                compile_go(text)
    except (CelError, GoRegexError):
        return arg.at, f"invalid {call.function} argument"

    return None


def _result(overload: Overload, args: list[Type]) -> Type | None:
    """Return the type of an overload's result for these arguments, None if it does not accept
    them."""
    bindings: Bindings = {}
    if len(overload.params) != len(args) or not all(
        assignable(param, arg, bindings) for param, arg in zip(overload.params, args, strict=True)
    ):
        return None
    return _bound(overload.result, bindings)


def _bound(type: Type, bindings: Bindings) -> Type:
    """Replace type parameters by the types that they are bound to."""
    if type.is_parameter:
        return bindings.get(type.name, DYN)
    return type._replace(params=tuple(_bound(param, bindings) for param in type.params))


def assignable(target: Type, source: Type, bindings: Bindings) -> bool:
    """Return whether a value of one type can be where another is expected; type parameters are
    bound on the way."""
    if target.is_parameter:
        bound = bindings.get(target.name)
        if bound is None or bound == DYN:
            bindings[target.name] = source
            return True
        return assignable(bound, source, bindings) or assignable(source, bound, bindings)

    if DYN in (target, source) or source.is_parameter:
        return True
    if NULL in (target, source):
        return (target.name in _NULLABLE or target.fields is not None) and (
            source.name in _NULLABLE or source.fields is not None
        )

    if target.fields is not None or source.fields is not None:
        return target.fields is source.fields
    return target.name == source.name and all(
        assignable(left, right, bindings)
        for left, right in zip(target.params, source.params, strict=False)
    )


@lru_cache(maxsize=512)
def compile_policy_expression(expression: str) -> Compiled:
    """Compile an expression of an admission policy or webhook. Raises CompileError."""
    return compile_expression(expression, _POLICY_VARIABLES)


@lru_cache(maxsize=512)
def compile_mutation(expression: str, expected: Type) -> Compiled:
    """Compile an expression of a MutatingAdmissionPolicy, whose value is an Object or a list of
    JSONPatches. Raises CompileError; WrongTypeError for a value of another type."""
    compiled = compile_expression(expression, _POLICY_VARIABLES, makes_patches=True)
    if not assignable(expected, compiled.type, {}):
        raise WrongTypeError(f"must evaluate to {expected} but got {compiled.type}")
    return compiled
