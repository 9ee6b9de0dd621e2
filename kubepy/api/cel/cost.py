"""The cost of evaluating expressions: of each call, the limit of one evaluation, the budget of
several.

Costs are those of cel-go (``interpreter/runtimecost.go``, ``ext``) and of Kubernetes' library
(``apiserver/pkg/cel/library/cost.go``), limits those of ``apiserver/pkg/apis/cel/config.go``. Costs
are charged before the call, so that a call beyond the limit is not made. One call costs more than
upstream: ``matches(text, pattern)`` costs as much as ``text.matches(pattern)``; there it costs 1
for any text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from math import ceil
from typing import Any

from kubepy.api.cel.values import CelError, Format, OptionalValue, Semver
from kubepy.api.values.gourls import GoUrl
from kubepy.api.values.quantity import Quantity

PER_CALL_LIMIT = 1_000_000
RUNTIME_BUDGET = 10_000_000
MATCH_CONDITIONS_BUDGET = 2_500_000

LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40  # of creating one
STRING_FACTOR, REGEX_FACTOR = 0.1, 0.25  # for each character of a text, and of a pattern
SORT_FACTOR = 2.0  # for each pair of items

OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class CostLimitExceeded(CelError):
    """An evaluation that was stopped because it exceeded its limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class BudgetExceeded(Exception):
    """Several evaluations that together exceed their budget; the text is the error's in
    upstream."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class CostTracker:
    """The cost of one evaluation so far. Callers that add much to ``cost`` call :meth:`check`."""

    __slots__ = ("cost", "limit")

    def __init__(self, limit: float = PER_CALL_LIMIT) -> None:
        self.cost = 0
        self.limit = limit

    def check(self) -> None:
        """Raise CostLimitExceeded if the cost exceeds the limit."""
        if self.cost > self.limit:
            raise CostLimitExceeded


class CostBudget:
    """The cost that a number of evaluations may still have."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: int = RUNTIME_BUDGET) -> None:
        self.remaining = remaining

    def spend(self, cost: int) -> None:
        """Subtract a cost. Raises BudgetExceeded."""
        if cost > self.remaining:
            raise BudgetExceeded
        self.remaining -= cost


def size_of(value: Any) -> int:
    """Return the size of a value for costs: characters, bytes, items or entries; 1 for values
    without a size."""
    if isinstance(value, _SIZED):
        return len(value)
    match value:
        case IPv4Interface() | IPv6Interface():
            return ceil(value.network.prefixlen / 8)
        case IPv4Address() | IPv6Address():
            return value.max_prefixlen // 8
        case OptionalValue() if value.has_value:
            return size_of(value.value)
    return 1


# --- calls ----------------------------------------------------------------------------------------

Args = Sequence[Any]
CallCost = Callable[[Args], int]
_TEXTS = (str, bytes)
_SIZED = (str, bytes, list, dict)
_OF_FIXED_SIZE = (
    Quantity,
    IPv4Address,
    IPv6Address,
    Format,
    GoUrl,
    Semver,
)  # addresses with their networks


# Costs of functions that do not cost 1; the target is the first argument.
CALL_COSTS: dict[str, CallCost] = {}


def _cost_of(*functions: str) -> Callable[[CallCost], CallCost]:
    """Register the cost of calls of some functions."""

    def register(cost: CallCost) -> CallCost:
        CALL_COSTS.update(dict.fromkeys(functions, cost))
        return cost

    return register


# --- texts


@_cost_of(
    "url",
    "lowerAscii",
    "upperAscii",
    "substring",
    "trim",
    "jsonpatch.escapeKey",
    "cidr",
    "isIP",
    "isCIDR",
    "quantity",
    "isQuantity",
    "semver",
    "isSemver",
    "startsWith",
    "endsWith",
    "strings.quote",
    "format",
)
def _reading(args: Args) -> int:
    return ceil(size_of(args[0]) * STRING_FACTOR)


@_cost_of("replace", "split", "ip.isCanonical")
def _reading_twice(args: Args) -> int:
    return ceil(size_of(args[0]) * 2 * STRING_FACTOR)


@_cost_of("ip", "bytes")
def _reading_a_string(args: Args) -> int:
    if isinstance(args[0], str):
        return _reading(args)
    return 1


@_cost_of("string")
def _reading_bytes(args: Args) -> int:
    if isinstance(args[0], bytes):
        return _reading(args)
    return 1


@_cost_of("contains")
def _searching(args: Args) -> int:
    return ceil(size_of(args[0]) * STRING_FACTOR) * ceil(size_of(args[1]) * STRING_FACTOR)


@_cost_of("join")
def _joining(args: Args) -> int:
    items = args[0]
    separator = args[1] if len(args) > 1 else ""
    size = sum(map(size_of, items)) + size_of(separator) * max(len(items) - 1, 0)
    return ceil(size * 2 * STRING_FACTOR)


@_cost_of("find", "findAll", "matches")
def _matching(args: Args) -> int:
    return _match_cost(args[0], size_of(args[1]))


def _match_cost(text: Any, pattern_size: int) -> int:
    return ceil((1.0 + size_of(text)) * STRING_FACTOR) * ceil(pattern_size * REGEX_FACTOR)


# The sizes of the formats' patterns as upstream states them.
_FORMAT_PATTERNS = {
    "dns1123Subdomain": 60,
    "qualifiedName": 60,
    "dns1123SubdomainPrefix": 60,
    "labelValue": 40,
    "uri": 1103,
    "uuid": 70,
    "byte": 84,
    "date": 71,
    "datetime": 71,
}


@_cost_of("validate")
def _validating(args: Args) -> int:
    return _match_cost(args[1], _FORMAT_PATTERNS.get(args[0].name, 30))


# --- operators


@_cost_of("_!=_")
def _comparing(args: Args) -> int:
    return ceil(min(size_of(args[0]), size_of(args[1])) * STRING_FACTOR)


@_cost_of("_==_")
def _equality(args: Args) -> int:
    if isinstance(args[0], _OF_FIXED_SIZE):
        return 1
    return _comparing(args)


@_cost_of("_<_", "_<=_", "_>_", "_>=_")
def _ordering(args: Args) -> int:
    if isinstance(args[0], _TEXTS):
        return _comparing(args)
    return 1


@_cost_of("_+_")
def _adding(args: Args) -> int:
    if isinstance(args[0], _TEXTS):
        return ceil((size_of(args[0]) + size_of(args[1])) * STRING_FACTOR)
    return 1


@_cost_of("@in")
def _membership(args: Args) -> int:
    if isinstance(args[1], list):
        return size_of(args[1])
    return 1


@_cost_of("@member")
def _constant_membership(args: Args) -> int:
    return 0


# --- networks


@_cost_of("containsIP")
def _containing_address(args: Args) -> int:
    parsing = ceil(size_of(args[1]) * STRING_FACTOR) if isinstance(args[1], str) else 0
    return ceil(2 * size_of(args[0]) * STRING_FACTOR) + parsing


@_cost_of("containsCIDR")
def _containing_network(args: Args) -> int:
    return _containing_address(args) + ceil(size_of(args[0]) * STRING_FACTOR) + 1


# --- lists


@_cost_of("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
def _traversing(args: Args) -> int:
    return _traversal(args[0])


def _traversal(value: Any) -> int:
    if isinstance(value, _TEXTS):
        return int(
            len(value.encode(errors="surrogatepass") if isinstance(value, str) else value)
            * STRING_FACTOR
        )
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1


def _allocation(size: float) -> int:
    return int(size) + 1 + LIST_COST


@_cost_of("distinct", "sort")
def _sorting(args: Args) -> int:
    return sorting_cost(args[0])


def sorting_cost(keys: Args) -> int:
    """Return the cost of comparing all items of a list with each other."""
    factor = SORT_FACTOR + (STRING_FACTOR if keys and isinstance(keys[0], _TEXTS) else 0)
    return _allocation(len(keys) ** 2 * factor)


@_cost_of("flatten")
def _flattening(args: Args) -> int:
    return _allocation(size_of(args[0]) * float(args[1] if len(args) > 1 else 1))


@_cost_of("slice")
def _slicing(args: Args) -> int:
    if args[2] <= size_of(args[0]):
        return _allocation(max(args[2] - args[1], 0))
    return _allocation(0)


@_cost_of("lists.range")
def _counting(args: Args) -> int:
    return _allocation(max(args[0], 0))


@_cost_of("reverse")
def _reversing(args: Args) -> int:
    return _allocation(size_of(args[0]))


@_cost_of("sets.contains", "sets.intersects")
def _comparing_sets(args: Args) -> int:
    return 1 + size_of(args[0]) * size_of(args[1])


@_cost_of("sets.equivalent")
def _comparing_sets_twice(args: Args) -> int:
    return 1 + size_of(args[0]) * size_of(args[1]) * 2
