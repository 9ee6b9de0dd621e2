"""The interpreter: evaluates a tree and counts the cost.

Costs are those that cel-go counts (``interpreter/{interpretable,planner,runtimecost}.go``): 1 for a
name and for each step along a path, ``cost.CALL_COSTS`` for calls, and for a macro the cost of the
loop that cel-go expands it to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kubepy.api.cel import addresses, lists, operators, quantities, strings, times
from kubepy.api.cel.cost import (
    CALL_COSTS,
    LIST_COST,
    MAP_COST,
    STRUCT_COST,
    CostBudget,
    CostLimitExceeded,
    CostTracker,
    sorting_cost,
)
from kubepy.api.cel.lists import sort_by
from kubepy.api.cel.operators import field_of, has_field
from kubepy.api.cel.syntax import (
    CallExpr,
    Computed,
    Ident,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    dotted,
)
from kubepy.api.cel.types import OVERLOADS, call
from kubepy.api.cel.values import NONE, TYPE_NAMES, CelError, CelType, OptionalValue, StructValue

# Importing these modules registers the functions of the language, cel-go's extensions and
# Kubernetes' libraries.
_LIBRARIES = (addresses, lists, operators, quantities, strings, times)

Scope = Mapping[str, Any]

_TYPES = (
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
)
_TYPE_NAMES = frozenset((*_TYPES, *TYPE_NAMES.values()))
_TYPE_FIELDS = frozenset(name.rpartition(".")[2] for name in _TYPE_NAMES if "." in name)


def evaluate(node: Node, scope: Scope, tracker: CostTracker | None = None) -> Any:
    """Return the value of an expression. Raises CelError, of which CostLimitExceeded is one."""
    tracker = tracker or CostTracker()
    value = _run(node, scope, tracker)
    tracker.check()
    return value


def evaluate_within(node: Node, scope: Scope, budget: CostBudget) -> Any:
    """Return the value of an expression, and take its cost out of a budget. Raises CelError and
    BudgetExceeded."""
    tracker = CostTracker()
    try:
        return evaluate(node, scope, tracker)
    finally:
        budget.spend(tracker.cost)


Handler = Callable[[Any, Scope, CostTracker, int], Any]
HandlerT = TypeVar("HandlerT", bound=Handler)
_HANDLERS: dict[type, Handler] = {}  # by type of node
_SPECIAL_CALLS: dict[
    str, Handler
] = {}  # by function, for calls that do not evaluate all of their arguments
_PATHS = ("_[_]", "_[?_]", "_?_:_")  # functions that a path may go on from


def _handles(node_type: type) -> Callable[[HandlerT], HandlerT]:
    """Register the handler of a type of nodes."""

    def register(handler: HandlerT) -> HandlerT:
        _HANDLERS[node_type] = handler
        return handler

    return register


def _handles_call(*functions: str) -> Callable[[HandlerT], HandlerT]:
    """Register the handler of calls of some functions."""

    def register(handler: HandlerT) -> HandlerT:
        _SPECIAL_CALLS.update(dict.fromkeys(functions, handler))
        return handler

    return register


def _run(node: Node, scope: Scope, tracker: CostTracker, base: int = 1) -> Any:
    """Evaluate a node. ``base``: the cost of the name that a path begins with; 0 where cel-go does
    not observe it."""
    return _HANDLERS[type(node)](node, scope, tracker, base)


@_handles(Literal)
def _literal(node: Literal, scope: Scope, tracker: CostTracker, base: int) -> Any:
    return node.value


@_handles(Computed)
def _computed(node: Computed, scope: Scope, tracker: CostTracker, base: int) -> Any:
    return node.compute(scope, tracker)


@_handles(Ident)
def _variable(node: Ident, scope: Scope, tracker: CostTracker, base: int) -> Any:
    name = node.name
    if name in scope:
        tracker.cost += base
        return scope[name]
    if name in _TYPE_NAMES:
        return CelType(name)
    raise CelError(f"no such attribute(s): {name}")


@_handles(Select)
def _selected(node: Select, scope: Scope, tracker: CostTracker, base: int) -> Any:
    if (
        node.field in _TYPE_FIELDS
        and (name := dotted(node)) in _TYPE_NAMES
        and name.partition(".")[0] not in scope
    ):
        return CelType(name)

    value = _operand(node.operand, scope, tracker, 0 if node.test else base)
    is_optional = node.optional
    if isinstance(value, OptionalValue):
        if not value.has_value:
            if node.test:
                return False
            return NONE
        is_optional = True
        value = value.value

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
    """Return the value that a path goes on from. One that is not a path itself counts as a name."""
    if not (type(node) in (Ident, Select) or (type(node) is CallExpr and node.function in _PATHS)):
        tracker.cost += base
    return _run(node, scope, tracker, base)


# --- calls ----------------------------------------------------------------------------------------


@_handles(CallExpr)
def _called(node: CallExpr, scope: Scope, tracker: CostTracker, base: int) -> Any:
    if (special := _SPECIAL_CALLS.get(node.function)) is not None:
        return special(node, scope, tracker, base)
    name = node.function
    target = node.target
    is_member = False
    if target is not None:
        qualified = (
            f"{target.name}.{name}" if type(target) is Ident and target.name not in scope else ""
        )
        if qualified in OVERLOADS:
            name = qualified
        elif name in ("or", "orValue"):
            value = _run(target, scope, tracker)
            if isinstance(value, OptionalValue) and value.has_value and len(node.args) == 1:
                return value if name == "or" else value.value  # the argument is not evaluated
            return call(
                name, [value, *(_run(arg, scope, tracker) for arg in node.args)], is_member=True
            )
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


@_handles_call("_?_:_")
def _conditional(node: CallExpr, scope: Scope, tracker: CostTracker, base: int) -> Any:
    condition, yes, no = node.args
    return _run(yes if _truth(_run(condition, scope, tracker)) else no, scope, tracker, 0)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


@_handles_call("_&&_", "_||_")
def _logical(node: CallExpr, scope: Scope, tracker: CostTracker, base: int) -> bool:
    """Evaluate ``&&`` or ``||``: one argument that decides is enough, even if another fails. Raises
    the first error."""
    decisive = node.function == "_||_"
    failure: CelError | None = None
    for arg in node.args:
        try:
            if _truth(_run(arg, scope, tracker)) is decisive:
                return decisive
        except CostLimitExceeded:
            raise
        except CelError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


@_handles_call("_[_]", "_[?_]")
def _indexed(node: CallExpr, scope: Scope, tracker: CostTracker, base: int) -> Any:
    container, key = node.args
    value = _operand(container, scope, tracker, base)
    index = _run(key, scope, tracker, 0)
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


# --- literals -------------------------------------------------------------------------------------


@_handles(ListLiteral)
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


@_handles(MapLiteral)
def _map(node: MapLiteral, scope: Scope, tracker: CostTracker, base: int) -> dict[Any, Any]:
    tracker.cost += MAP_COST
    entries: dict[Any, Any] = {}
    for key_node, value_node, is_optional in node.entries:
        key = _run(key_node, scope, tracker)
        value = _run(value_node, scope, tracker)
        if isinstance(key, float | list | dict):
            raise CelError("unsupported key type")
        if key in entries:
            raise CelError(f"Failed with repeated key: {key}")
        if not is_optional:
            entries[key] = value
        elif value.has_value:
            entries[key] = value.value
    return entries


@_handles(StructLiteral)
def _struct(node: StructLiteral, scope: Scope, tracker: CostTracker, base: int) -> StructValue:
    tracker.cost += STRUCT_COST
    struct = StructValue(node.type_name)
    for field, value_node, is_optional in node.fields:
        value = _run(value_node, scope, tracker)
        if not is_optional:
            struct[field] = value
        elif value.has_value:
            struct[field] = value.value
    return struct


# --- macros ---------------------------------------------------------------------------------------


@_handles(Macro)
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
            keys = [
                _run(node.body[0], inner, tracker)
                for inner in _mapping(node, over, scope, tracker, _appending(node))
            ]
            tracker.cost += 2 + sorting_cost(keys)
            tracker.check()
            return sort_by(list(over), keys)
        case "transformMapEntry":
            return _united(
                _run(node.body[-1], inner, tracker)
                for inner in _mapping(node, over, scope, tracker, 2)
            )
        case "transformMap":
            name = node.variables[0]
            return {
                inner[name]: _run(node.body[-1], inner, tracker)
                for inner in _mapping(node, over, scope, tracker, 3)
            }

    return [
        _run(node.body[-1], inner, tracker)
        for inner in _mapping(node, over, scope, tracker, _appending(node))
    ]


def _appending(node: Macro) -> int:
    """Return the cost of adding an item to the result's list; a constant was made a list of one
    item before."""
    if isinstance(node.body[-1], Literal):
        return 2
    return 2 + LIST_COST


def _united(entries: Iterator[dict[Any, Any]]) -> dict[Any, Any]:
    """Merge all entries into one map. Raises CelError if two have a key in common."""
    united: dict[Any, Any] = {}
    for entry in entries:
        for key, value in entry.items():
            if key in united:
                raise CelError(f"insert failed: key '{key}' already exists")
            united[key] = value
    return united


def _mapping(
    node: Macro, over: Any, scope: Scope, tracker: CostTracker, cost: int
) -> Iterator[Scope]:
    """Yield the scopes in which the first of two expressions holds; all scopes if there is one
    expression."""
    if len(node.body) > 1:
        yield from _chosen(node, over, scope, tracker, cost)
        return
    for inner in _scopes(node, over, scope):
        tracker.cost += cost
        tracker.check()
        yield inner


def _chosen(
    node: Macro, over: Any, scope: Scope, tracker: CostTracker, cost: int
) -> Iterator[Scope]:
    """Yield the scopes in which the first expression holds; each costs ``cost``."""
    for inner in _scopes(node, over, scope):
        if _truth(_run(node.body[0], inner, tracker)):
            tracker.cost += cost
            yield inner
        tracker.check()


def _items(over: Any, *, with_keys: bool = False) -> Iterable[Any]:
    """Return the items or keys that a macro goes over; with keys pairs of index and item, or of key
    and value."""
    if not isinstance(over, list | dict):
        raise CelError("no such overload")
    if not with_keys:
        return over
    if isinstance(over, list):
        return enumerate(over)
    return over.items()


def _scopes(node: Macro, over: Any, scope: Scope) -> Iterator[dict[str, Any]]:
    """Yield a scope for each item or key; it is one dict whose values change."""
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


def _quantified(
    node: Macro, over: Any, scope: Scope, tracker: CostTracker, *, decisive: bool
) -> bool:
    """Evaluate ``all`` or ``exists``: an item costs the loop's condition (2 or 3) and the
    accumulator."""
    failure: CelError | None = None
    condition = 3 if decisive else 2
    left = len(over) if isinstance(over, list | dict) else 0
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


def _mapped_optional(node: Macro, over: Any, scope: Scope, tracker: CostTracker) -> Any:
    """Evaluate ``optMap`` or ``optFlatMap``, whose target is evaluated twice: for hasValue() and
    for value()."""
    if not isinstance(over, OptionalValue):
        raise CelError("no such overload")
    if not over.has_value:
        tracker.cost += 2
        return NONE
    _run(node.range, scope, tracker)
    value = _run(node.body[0], {**scope, node.variables[0]: over.value}, tracker)
    tracker.cost += 2 if node.name == "optFlatMap" else 3
    if node.name == "optFlatMap":
        return value
    return OptionalValue(value, has_value=True)


# --- constants ------------------------------------------------------------------------------------

_CONVERSIONS = (
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
)


def optimized(node: Node) -> Node:
    """Replace lists, maps and conversions of constants by their values, which then cost nothing
    (``decOptimize``)."""
    match node:
        case Select():
            return node._replace(operand=optimized(node.operand))
        case CallExpr():
            target = None if node.target is None else optimized(node.target)
            return _optimized_call(
                node._replace(target=target, args=tuple(map(optimized, node.args)))
            )
        case Macro():
            return node._replace(range=optimized(node.range), body=tuple(map(optimized, node.body)))
        case ListLiteral():
            list_node = node._replace(items=tuple(map(optimized, node.items)))
            is_constant = not node.optional and all(
                isinstance(item, Literal) for item in list_node.items
            )
            if is_constant:
                return _evaluated(list_node)
            return list_node
        case MapLiteral():
            map_node = node._replace(
                entries=tuple(
                    (optimized(key), optimized(value), is_optional)
                    for key, value, is_optional in node.entries
                )
            )
            is_constant = all(
                isinstance(key, Literal) and isinstance(value, Literal) and not is_optional
                for key, value, is_optional in map_node.entries
            )
            if is_constant:
                return _evaluated(map_node)
            return map_node

        case StructLiteral():
            fields = ((name, optimized(value), optional) for name, value, optional in node.fields)
            return node._replace(fields=tuple(fields))

    return node


def _optimized_call(node: CallExpr) -> Node:
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


def _evaluated(node: CallExpr | ListLiteral | MapLiteral) -> Node:
    """Return the constant that a node evaluates to; the node itself if it fails, so that it fails
    when it is run."""
    try:
        return Literal(_run(node, {}, CostTracker()), node.at)
    except CelError:
        return node
