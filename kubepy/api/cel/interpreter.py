"""Evaluates a tree, and counts what that costs.

Costs are those that cel-go counts (``interpreter/{interpretable,planner,runtimecost}.go``): 1 for a name and for each
step along a path, what ``cost.CALL_COSTS`` says of a call, and what a macro costs by the loop that cel-go makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubepy.api.cel import library
from kubepy.api.cel.cost import (
    CALL_COSTS,
    LIST_COST,
    MAP_COST,
    CostBudget,
    CostLimitExceeded,
    CostTracker,
    sorting_cost,
)
from kubepy.api.cel.library.lists import sort_by
from kubepy.api.cel.operators import field_of, has_field
from kubepy.api.cel.syntax import Call, Ident, ListLiteral, Literal, Macro, MapLiteral, Node, Select
from kubepy.api.cel.types import OVERLOADS, call
from kubepy.api.cel.values import NONE, TYPE_NAMES, CelError, CelType, OptionalValue

__all__ = ["evaluate", "library"]

Scope = Mapping[str, Any]

_TYPES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type")
_TYPE_NAMES = frozenset((*_TYPES, *TYPE_NAMES.values()))
_TYPE_FIELDS = frozenset(name.rpartition(".")[2] for name in _TYPE_NAMES if "." in name)


def evaluate(node: Node, scope: Scope, tracker: CostTracker | None = None) -> Any:
    """Return the value of an expression. Raises CelError; CostLimitExceeded if it costs more than one may."""
    tracker = tracker or CostTracker()
    value = _run(node, scope, tracker)
    tracker.check()
    return value


def evaluate_within(node: Node, scope: Scope, budget: CostBudget) -> Any:
    """Return the value of an expression; its cost is taken out of a budget. Raises CelError and BudgetExceeded."""
    tracker = CostTracker()
    try:
        return evaluate(node, scope, tracker)
    finally:
        budget.spend(tracker.cost)


def dotted(node: Node) -> str:
    """``a.b.c`` for names that may be one qualified name, "" for anything else."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        outer = dotted(node.operand)
        return f"{outer}.{node.field}" if outer else ""
    return ""


def _run(node: Node, scope: Scope, tracker: CostTracker, base: int = 1) -> Any:
    """``base``: what the name costs that a path begins with; nothing where cel-go does not observe it."""
    return _HANDLERS[type(node)](node, scope, tracker, base)


def _literal(node: Literal, scope: Scope, tracker: CostTracker, base: int) -> Any:
    return node.value


def _variable(node: Ident, scope: Scope, tracker: CostTracker, base: int) -> Any:
    name = node.name
    if name in scope:
        tracker.cost += base
        return scope[name]
    if name in _TYPE_NAMES:
        return CelType(name)
    raise CelError(f"no such attribute(s): {name}")


def _selected(node: Select, scope: Scope, tracker: CostTracker, base: int) -> Any:
    if node.field in _TYPE_FIELDS and (name := dotted(node)) in _TYPE_NAMES and name.partition(".")[0] not in scope:
        return CelType(name)
    value = _operand(node.operand, scope, tracker, 0 if node.test else base)
    is_optional = node.optional
    if isinstance(value, OptionalValue):
        if not value.has_value:
            return False if node.test else NONE
        is_optional, value = True, value.value
    tracker.cost += 1
    if node.test:
        return has_field(value, node.field)
    if not is_optional:
        return field_of(value, node.field)
    if has_field(value, node.field):
        return OptionalValue(field_of(value, node.field), has_value=True)
    tracker.cost -= 1
    return NONE


def _operand(node: Node, scope: Scope, tracker: CostTracker, base: int) -> Any:
    """The value that a path goes on from: a path, or any other value, which then counts as a name of its own."""
    if type(node) is not Ident and type(node) is not Select and not (type(node) is Call and node.function in _PATHS):
        tracker.cost += base
    return _run(node, scope, tracker, base)


# --- calls ----------------------------------------------------------------------------------------------------------


def _called(node: Call, scope: Scope, tracker: CostTracker, base: int) -> Any:
    if (special := _SPECIAL.get(node.function)) is not None:
        return special(node, scope, tracker, base)
    name, target, is_member = node.function, node.target, False
    if target is not None:
        qualified = f"{target.name}.{name}" if type(target) is Ident and target.name not in scope else ""
        if qualified in OVERLOADS:
            name = qualified
        elif name in ("or", "orValue"):
            return _alternative(node, target, scope, tracker)
        else:
            is_member = True
    try:
        nodes = (target, *node.args) if is_member and target is not None else node.args
        args = [_HANDLERS[type(arg)](arg, scope, tracker, 1) for arg in nodes]
    except CelError:
        tracker.cost += 1  # a call whose argument fails counts as well
        raise
    cost = CALL_COSTS.get(name)
    tracker.cost += 1 if cost is None else cost(args)
    if tracker.cost > tracker.limit:
        raise CostLimitExceeded
    return call(name, args, is_member=is_member)


def _alternative(node: Call, target: Node, scope: Scope, tracker: CostTracker) -> Any:
    """``optional.or(…)`` and ``optional.orValue(…)``, whose argument is only evaluated where it is wanted."""
    value = _run(target, scope, tracker)
    if isinstance(value, OptionalValue) and value.has_value and len(node.args) == 1:
        return value if node.function == "or" else value.value
    return call(node.function, [value, *(_run(arg, scope, tracker) for arg in node.args)], is_member=True)


def _conditional(node: Call, scope: Scope, tracker: CostTracker, base: int) -> Any:
    condition, yes, no = node.args
    return _run(yes if _truth(_run(condition, scope, tracker)) else no, scope, tracker, 0)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _and(node: Call, scope: Scope, tracker: CostTracker, base: int) -> bool:
    return _decided(node.args, scope, tracker, decisive=False)


def _or(node: Call, scope: Scope, tracker: CostTracker, base: int) -> bool:
    return _decided(node.args, scope, tracker, decisive=True)


def _decided(expressions: Iterable[Node], scope: Scope, tracker: CostTracker, *, decisive: bool) -> bool:
    """One expression that decides is enough, even if another one fails. Raises CelError, the first one's."""
    failure: CelError | None = None
    for node in expressions:
        try:
            if _truth(_run(node, scope, tracker)) is decisive:
                return decisive
        except CostLimitExceeded:
            raise
        except CelError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


def _indexed(node: Call, scope: Scope, tracker: CostTracker, base: int) -> Any:
    container, key = node.args
    value, index = _operand(container, scope, tracker, base), _run(key, scope, tracker, 0)
    is_optional = node.function == "_[?_]" or isinstance(value, OptionalValue)
    if isinstance(value, OptionalValue):
        if not value.has_value:
            return NONE
        value = value.value
    tracker.cost += 1
    if not is_optional:
        return call("_[_]", [value, index])
    try:
        return OptionalValue(call("_[_]", [value, index]), has_value=True)
    except CelError as error:
        if str(error).startswith(("no such key", "index out of bounds")):
            tracker.cost -= 1
            return NONE
        raise


# --- literals -------------------------------------------------------------------------------------------------------


def _list(node: ListLiteral, scope: Scope, tracker: CostTracker, base: int) -> list[Any]:
    tracker.cost += LIST_COST
    items: list[Any] = []
    for index, item in enumerate(node.items):
        value = _run(item, scope, tracker)
        if index not in node.optional:
            items.append(value)
        elif value.has_value:
            items.append(value.value)
    return items


def _map(node: MapLiteral, scope: Scope, tracker: CostTracker, base: int) -> dict[Any, Any]:
    tracker.cost += MAP_COST
    made: dict[Any, Any] = {}
    for key_node, value_node, is_optional in node.entries:
        key, value = _run(key_node, scope, tracker), _run(value_node, scope, tracker)
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


def _folded(node: Macro, scope: Scope, tracker: CostTracker, base: int) -> Any:
    over = _run(node.range, scope, tracker)
    if node.name in ("optMap", "optFlatMap"):
        return _mapped_optional(node, over, scope, tracker)
    if node.name == "all":
        return _quantified(node, over, scope, tracker, decisive=False)
    if node.name == "exists":
        return _quantified(node, over, scope, tracker, decisive=True)
    tracker.cost += 1  # the result
    match node.name:
        case "exists_one" | "existsOne":
            tracker.cost += 1
            return sum(1 for _ in _chosen(node, over, scope, tracker, 2)) == 1
        case "filter":
            name = node.variables[0]
            return [inner[name] for inner in _chosen(node, over, scope, tracker, LIST_COST + 3)]
        case "sortBy":
            return _sorted(node, over, scope, tracker)
        case "transformMapEntry":
            return _united(_run(node.body[-1], inner, tracker) for inner in _mapping(node, over, scope, tracker, 2))
        case "transformMap":
            name = node.variables[0]
            return {inner[name]: _run(node.body[-1], inner, tracker)
                    for inner in _mapping(node, over, scope, tracker, 3)}
    return [_run(node.body[-1], inner, tracker) for inner in _mapping(node, over, scope, tracker, _appending(node))]


def _appending(node: Macro) -> int:
    """The cost of adding an item to the list that a macro makes; a constant is a list of one item before it runs."""
    return 2 if isinstance(node.body[-1], Literal) else 2 + LIST_COST


def _united(entries: Iterator[dict[Any, Any]]) -> dict[Any, Any]:
    """One map of all entries. Raises CelError where two have a key in common."""
    found: dict[Any, Any] = {}
    for entry in entries:
        for key, value in entry.items():
            if key in found:
                raise CelError(f"insert failed: key '{key}' already exists")
            found[key] = value
    return found


def _mapping(node: Macro, over: Any, scope: Scope, tracker: CostTracker, cost: int) -> Iterator[Scope]:
    """The scopes of what the first of two expressions chooses; all if there is one."""
    if len(node.body) > 1:
        yield from _chosen(node, over, scope, tracker, cost)
        return
    for inner in _scopes(node, over, scope):
        tracker.cost += cost
        tracker.check()
        yield inner


def _chosen(node: Macro, over: Any, scope: Scope, tracker: CostTracker, cost: int) -> Iterator[Scope]:
    """The scopes in which the first expression holds; each costs ``cost``."""
    for inner in _scopes(node, over, scope):
        if _truth(_run(node.body[0], inner, tracker)):
            tracker.cost += cost
            yield inner
        tracker.check()


def _items(over: Any, *, with_keys: bool = False) -> Iterable[Any]:
    """The values that a macro goes over: items or keys; with keys: pairs of index and item, or of key and value."""
    if not isinstance(over, list | dict):
        raise CelError("no such overload")
    if not with_keys:
        return over
    return enumerate(over) if isinstance(over, list) else over.items()


def _scopes(node: Macro, over: Any, scope: Scope) -> Iterator[dict[str, Any]]:
    """One scope for each item or key, the same one with other values."""
    inner = dict(scope)
    if len(node.variables) == 1:
        name = node.variables[0]
        for item in _items(over):
            inner[name] = item
            yield inner
        return
    first, second = node.variables
    for key, item in _items(over, with_keys=True):
        inner[first], inner[second] = key, item
        yield inner


def _quantified(node: Macro, over: Any, scope: Scope, tracker: CostTracker, *, decisive: bool) -> bool:
    """``all`` and ``exists``: an item costs what the loop's condition (2 or 3) and the accumulator cost."""
    failure: CelError | None = None
    condition, left = (3 if decisive else 2), len(over) if isinstance(over, list | dict) else 0
    tracker.cost += 1
    for inner in _scopes(node, over, scope):
        tracker.cost += condition + 1
        tracker.check()
        left -= 1
        try:
            if _truth(_run(node.body[0], inner, tracker)) is decisive:
                tracker.cost += condition if left else 0
                return decisive
        except CostLimitExceeded:
            raise
        except CelError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


def _sorted(node: Macro, over: Any, scope: Scope, tracker: CostTracker) -> list[Any]:
    keys = [_run(node.body[0], inner, tracker) for inner in _mapping(node, over, scope, tracker, _appending(node))]
    tracker.cost += 2 + sorting_cost(keys)
    tracker.check()
    return sort_by(list(over), keys)


def _mapped_optional(node: Macro, over: Any, scope: Scope, tracker: CostTracker) -> Any:
    """The target is evaluated twice: for whether it has a value, and for the value."""
    if not isinstance(over, OptionalValue):
        raise CelError("no such overload")
    if not over.has_value:
        tracker.cost += 2
        return NONE
    _run(node.range, scope, tracker)
    found = _run(node.body[0], {**scope, node.variables[0]: over.value}, tracker)
    tracker.cost += 2 if node.name == "optFlatMap" else 3
    return found if node.name == "optFlatMap" else OptionalValue(found, has_value=True)


_HANDLERS: dict[type, Callable[[Any, Scope, CostTracker, int], Any]] = {
    Literal: _literal, Ident: _variable, Select: _selected, Call: _called, Macro: _folded, ListLiteral: _list,
    MapLiteral: _map,
}  # fmt: skip
_SPECIAL: dict[str, Callable[[Call, Scope, CostTracker, int], Any]] = {
    "_&&_": _and, "_||_": _or, "_?_:_": _conditional, "_[_]": _indexed, "_[?_]": _indexed,
}  # fmt: skip
_PATHS = ("_[_]", "_[?_]", "_?_:_")


# --- constants ------------------------------------------------------------------------------------------------------

_CONVERSIONS = ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")


def optimized(node: Node) -> Node:
    """Replace lists, maps and conversions of constants by their values, which then cost nothing (``decOptimize``)."""
    match node:
        case Select():
            return node._replace(operand=optimized(node.operand))
        case Call():
            target = None if node.target is None else optimized(node.target)
            return _optimized_call(node._replace(target=target, args=tuple(map(optimized, node.args))))
        case Macro():
            return node._replace(range=optimized(node.range), body=tuple(map(optimized, node.body)))
        case ListLiteral():
            list_node = node._replace(items=tuple(map(optimized, node.items)))
            is_constant = not node.optional and all(isinstance(item, Literal) for item in list_node.items)
            return _evaluated(list_node) if is_constant else list_node
        case MapLiteral():
            map_node = node._replace(entries=tuple(
                (optimized(key), optimized(value), is_optional) for key, value, is_optional in node.entries))
            is_constant = all(isinstance(key, Literal) and isinstance(value, Literal) and not is_optional
                              for key, value, is_optional in map_node.entries)
            return _evaluated(map_node) if is_constant else map_node
    return node


def _optimized_call(node: Call) -> Node:
    last = node.args[-1] if node.args else None
    if not isinstance(last, Literal) or node.target is not None:
        return node
    if node.function in _CONVERSIONS and len(node.args) == 1:
        return _evaluated(node)
    if node.function == "@in" and isinstance(last.value, list):
        if not last.value:
            return Literal(False, node.at)
        if all(isinstance(item, bool | int | float | str) for item in last.value):
            return node._replace(function="@member")
    return node


def _evaluated(node: Call | ListLiteral | MapLiteral) -> Node:
    """A constant; the node itself if it cannot be evaluated, so that it fails where it stands."""
    try:
        return Literal(_run(node, {}, CostTracker()), node.at)
    except CelError:
        return node
