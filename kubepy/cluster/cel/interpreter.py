"""Evaluates a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubepy.cluster.cel import library
from kubepy.cluster.cel.library.lists import sort_by
from kubepy.cluster.cel.operators import field_of, has_field
from kubepy.cluster.cel.syntax import Call, Ident, ListLiteral, Literal, Macro, MapLiteral, Node, Select
from kubepy.cluster.cel.types import OVERLOADS, call
from kubepy.cluster.cel.values import NONE, TYPE_NAMES, CelError, CelType, OptionalValue

__all__ = ["evaluate", "library"]

Scope = Mapping[str, Any]

_TYPES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type")
_TYPE_NAMES = frozenset((*_TYPES, *TYPE_NAMES.values()))


def evaluate(node: Node, scope: Scope) -> Any:
    """The value of an expression. Raises CelError."""
    match node:
        case Literal():
            return node.value
        case Ident():
            return _variable(node.name, scope)
        case Select():
            return _selected(node, scope)
        case Call():
            return _called(node, scope)
        case Macro():
            return _folded(node, scope)
        case ListLiteral():
            return list(_items(node, scope))
        case MapLiteral():
            return _entries(node, scope)


def dotted(node: Node) -> str:
    """``a.b.c`` for names that may be one qualified name, "" for anything else."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        outer = dotted(node.operand)
        return f"{outer}.{node.field}" if outer else ""
    return ""


def _variable(name: str, scope: Scope) -> Any:
    if name in scope:
        return scope[name]
    if name in _TYPE_NAMES:
        return CelType(name)
    raise CelError(f"no such attribute(s): {name}")


def _selected(node: Select, scope: Scope) -> Any:
    name = dotted(node)
    if name in _TYPE_NAMES and name.partition(".")[0] not in scope:
        return CelType(name)
    value = evaluate(node.operand, scope)
    is_optional = node.optional or isinstance(value, OptionalValue)
    if isinstance(value, OptionalValue):
        if not value.has_value:
            return False if node.test else NONE
        value = value.value
    if node.test:
        return has_field(value, node.field)
    if not is_optional:
        return field_of(value, node.field)
    return OptionalValue(field_of(value, node.field), has_value=True) if has_field(value, node.field) else NONE


# --- calls ----------------------------------------------------------------------------------------------------------


def _called(node: Call, scope: Scope) -> Any:
    match node.function:
        case "_&&_":
            return _logical(node, scope, decisive=False)
        case "_||_":
            return _logical(node, scope, decisive=True)
        case "_?_:_":
            condition, yes, no = node.args
            return evaluate(yes if _truth(evaluate(condition, scope)) else no, scope)
        case "_[_]" | "_[?_]":
            return _indexed(node, scope)
    args = [evaluate(arg, scope) for arg in node.args]
    if node.target is None:
        return call(node.function, args)
    qualified = f"{dotted(node.target)}.{node.function}"
    if qualified in OVERLOADS and dotted(node.target).partition(".")[0] not in scope:
        return call(qualified, args)
    return call(node.function, [evaluate(node.target, scope), *args], is_member=True)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _logical(node: Call, scope: Scope, *, decisive: bool) -> bool:
    return _decided(((arg, scope) for arg in node.args), decisive=decisive)


def _decided(expressions: Iterable[tuple[Node, Scope]], *, decisive: bool) -> bool:
    """One expression that decides is enough, even if another one fails. Raises CelError, the first one's."""
    failure: CelError | None = None
    for node, scope in expressions:
        try:
            if _truth(evaluate(node, scope)) is decisive:
                return decisive
        except CelError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


def _indexed(node: Call, scope: Scope) -> Any:
    value, index = (evaluate(arg, scope) for arg in node.args)
    is_optional = node.function == "_[?_]" or isinstance(value, OptionalValue)
    if isinstance(value, OptionalValue):
        if not value.has_value:
            return NONE
        value = value.value
    if not is_optional:
        return call("_[_]", [value, index])
    try:
        return OptionalValue(call("_[_]", [value, index]), has_value=True)
    except CelError as error:
        if str(error).startswith(("no such key", "index out of bounds")):
            return NONE
        raise


# --- literals -------------------------------------------------------------------------------------------------------


def _items(node: ListLiteral, scope: Scope) -> Iterator[Any]:
    for index, item in enumerate(node.items):
        value = evaluate(item, scope)
        if index not in node.optional:
            yield value
        elif value.has_value:
            yield value.value


def _entries(node: MapLiteral, scope: Scope) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key_node, value_node, is_optional in node.entries:
        key, value = evaluate(key_node, scope), evaluate(value_node, scope)
        if isinstance(key, float | list | dict):
            raise CelError("unsupported key type")
        if key in made:
            raise CelError(f"Failed with repeated key: {key}")
        if not is_optional:
            made[key] = value
        elif value.has_value:
            made[key] = value.value
    return made


# --- macros ---------------------------------------------------------------------------------------------------------


def _folded(node: Macro, scope: Scope) -> Any:
    over = evaluate(node.range, scope)
    if node.name in ("optMap", "optFlatMap"):
        return _mapped_optional(node, over, scope)
    scopes = _scopes(node, over, scope)
    match node.name:
        case "all":
            return _quantified(node, scopes, decisive=False)
        case "exists":
            return _quantified(node, scopes, decisive=True)
        case "exists_one" | "existsOne":
            return sum(_truth(evaluate(node.body[0], inner)) for inner in scopes) == 1
        case "filter":
            return [inner[node.variables[0]] for inner in scopes if _truth(evaluate(node.body[0], inner))]
        case "sortBy":
            return sort_by([inner[node.variables[0]] for inner in scopes],
                           [evaluate(node.body[0], inner) for inner in _scopes(node, over, scope)])
        case "transformMapEntry":
            return _united(evaluate(node.body[-1], inner) for inner in _chosen(node, scopes))
        case "transformMap":
            return {inner[node.variables[0]]: evaluate(node.body[-1], inner) for inner in _chosen(node, scopes)}
    return [evaluate(node.body[-1], inner) for inner in _chosen(node, scopes)]


def _united(entries: Iterator[dict[Any, Any]]) -> dict[Any, Any]:
    """One map of all entries. Raises CelError where two have a key in common."""
    found: dict[Any, Any] = {}
    for entry in entries:
        for key, value in entry.items():
            if key in found:
                raise CelError(f"insert failed: key '{key}' already exists")
            found[key] = value
    return found


def _chosen(node: Macro, scopes: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those that the first of two expressions chooses."""
    for inner in scopes:
        if len(node.body) == 1 or _truth(evaluate(node.body[0], inner)):
            yield inner


def _scopes(node: Macro, over: Any, scope: Scope) -> Iterator[dict[str, Any]]:
    """One scope for each item or key; two variables are index and item, or key and value."""
    if not isinstance(over, list | dict):
        raise CelError("no such overload")
    if len(node.variables) == 1:
        pairs: Iterator[tuple[Any, ...]] = ((item,) for item in over)
    else:
        pairs = iter(enumerate(over)) if isinstance(over, list) else iter(over.items())
    for values in pairs:
        yield {**scope, **dict(zip(node.variables, values, strict=True))}


def _quantified(node: Macro, scopes: Iterator[dict[str, Any]], *, decisive: bool) -> bool:
    return _decided(((node.body[0], inner) for inner in scopes), decisive=decisive)


def _mapped_optional(node: Macro, over: Any, scope: Scope) -> Any:
    if not isinstance(over, OptionalValue):
        raise CelError("no such overload")
    if not over.has_value:
        return NONE
    found = evaluate(node.body[0], {**scope, node.variables[0]: over.value})
    return found if node.name == "optFlatMap" else OptionalValue(found, has_value=True)
