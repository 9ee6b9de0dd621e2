"""The cost of evaluating expressions: what each call costs, the limit of one evaluation, the budget of several.

Costs are those of cel-go (``interpreter/runtimecost.go``, ``ext``) and of Kubernetes' library
(``apiserver/pkg/cel/library/cost.go``), limits those of ``apiserver/pkg/apis/cel/config.go``. Costs are charged before
the call, so that what would go over the limit does not run. One call costs more than upstream: ``matches(text,
pattern)``, which there costs 1 whatever the text, costs the same as ``text.matches(pattern)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from math import ceil
from typing import Any

from kubepy.api.cel.values import CelError, Format, OptionalValue, Semver, Url
from kubepy.api.values.quantity import Quantity

PER_CALL_LIMIT = 1_000_000
RUNTIME_BUDGET = 10_000_000
MATCH_CONDITIONS_BUDGET = 2_500_000

LIST_COST, MAP_COST = 10, 30  # of making one
STRING_FACTOR, REGEX_FACTOR = 0.1, 0.25  # of each character of a text, and of a pattern
SORT_FACTOR = 2.0  # of each pair of items

OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class CostLimitExceeded(CelError):
    """An evaluation that was stopped since it went over its limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class BudgetExceeded(Exception):
    """Several evaluations that together cost more than they may."""


class CostTracker:
    """The cost of one evaluation so far. A caller that adds much calls :meth:`check`."""

    __slots__ = ("cost", "limit")

    def __init__(self, limit: int = PER_CALL_LIMIT) -> None:
        self.cost = 0
        self.limit = limit

    def check(self) -> None:
        """Raises CostLimitExceeded."""
        if self.cost > self.limit:
            raise CostLimitExceeded


class CostBudget:
    """The cost that a number of evaluations may still have."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: int = RUNTIME_BUDGET) -> None:
        self.remaining = remaining

    def spend(self, cost: int) -> None:
        """Raises BudgetExceeded."""
        if cost > self.remaining:
            raise BudgetExceeded
        self.remaining -= cost


def size_of(value: Any) -> int:
    """The size of a value as costs count it: characters, bytes, items or entries; 1 for all that has none."""
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


# --- calls ----------------------------------------------------------------------------------------------------------

Args = Sequence[Any]
CallCost = Callable[[Args], int]
_TEXTS = (str, bytes)
_SIZED = (str, bytes, list, dict)
_OF_FIXED_SIZE = (Quantity, IPv4Address, IPv6Address, Format, Url, Semver)  # addresses with their networks


def _reading(times: int = 1) -> CallCost:
    """The cost of going over the first argument."""
    return lambda args: ceil(size_of(args[0]) * times * STRING_FACTOR)


def _traversal(value: Any) -> int:
    if isinstance(value, _TEXTS):
        return int(len(value.encode(errors="surrogatepass") if isinstance(value, str) else value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1


def _matching(args: Args, pattern_size: int | None = None) -> int:
    """The cost of matching a text with a regular expression."""
    pattern = size_of(args[1]) if pattern_size is None else pattern_size
    return ceil((1.0 + size_of(args[0])) * STRING_FACTOR) * ceil(pattern * REGEX_FACTOR)


def _comparison(args: Args) -> int:
    return ceil(min(size_of(args[0]), size_of(args[1])) * STRING_FACTOR)


def _equality(args: Args) -> int:
    return 1 if isinstance(args[0], _OF_FIXED_SIZE) else _comparison(args)


def _order(args: Args) -> int:
    return _comparison(args) if isinstance(args[0], _TEXTS) else 1


def _sum(args: Args) -> int:
    if isinstance(args[0], _TEXTS):
        return ceil((size_of(args[0]) + size_of(args[1])) * STRING_FACTOR)
    return 1


def _containment(args: Args) -> int:
    return ceil(size_of(args[0]) * STRING_FACTOR) * ceil(size_of(args[1]) * STRING_FACTOR)


def _join(args: Args) -> int:
    items, separator = args[0], args[1] if len(args) > 1 else ""
    size = sum(map(size_of, items)) + size_of(separator) * max(len(items) - 1, 0)
    return ceil(size * 2 * STRING_FACTOR)


def _network(args: Args) -> int:
    """The cost of ``containsIP``."""
    parsing = ceil(size_of(args[1]) * STRING_FACTOR) if isinstance(args[1], str) else 0
    return ceil(2 * size_of(args[0]) * STRING_FACTOR) + parsing


def _networks(args: Args) -> int:
    """The cost of ``containsCIDR``."""
    return _network(args) + ceil(size_of(args[0]) * STRING_FACTOR) + 1


def _allocation(size: float) -> int:
    return int(size) + 1 + LIST_COST


def sorting_cost(keys: Args) -> int:
    """The cost of comparing all items of a list with each other."""
    factor = SORT_FACTOR + (STRING_FACTOR if keys and isinstance(keys[0], _TEXTS) else 0)
    return _allocation(len(keys) ** 2 * factor)


def _flattening(args: Args) -> int:
    return _allocation(size_of(args[0]) * float(args[1] if len(args) > 1 else 1))


def _slice(args: Args) -> int:
    return _allocation(max(args[2] - args[1], 0)) if args[2] <= size_of(args[0]) else _allocation(0)


def _sets(factor: int) -> CallCost:
    return lambda args: 1 + size_of(args[0]) * size_of(args[1]) * factor


# The formats' patterns, as long as the library says that they are.
_FORMAT_PATTERNS = {
    "dns1123Subdomain": 60, "qualifiedName": 60, "dns1123SubdomainPrefix": 60, "labelValue": 40, "uri": 1103,
    "uuid": 70, "byte": 84, "date": 71, "datetime": 71,
}  # fmt: skip


def _format(args: Args) -> int:
    return _matching(args[1:], _FORMAT_PATTERNS.get(args[0].name, 30))


# Functions that do not cost 1; the target is the first argument.
CALL_COSTS: dict[str, CallCost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda args: _traversal(args[0])),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "cidr", "isIP",
                     "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "startsWith", "endsWith",
                     "strings.quote", "format"), _reading()),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _reading(2)),
    **dict.fromkeys(("find", "findAll", "matches"), _matching),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    "_==_": _equality, "_!=_": _comparison, "_+_": _sum, "contains": _containment, "join": _join,
    "@in": lambda args: size_of(args[1]) if isinstance(args[1], list) else 1, "@member": lambda args: 0,
    "ip": lambda args: _reading()(args) if isinstance(args[0], str) else 1,
    "bytes": lambda args: _reading()(args) if isinstance(args[0], str) else 1,
    "string": lambda args: _reading()(args) if isinstance(args[0], bytes) else 1,
    "containsIP": _network, "containsCIDR": _networks, "validate": _format,
    "slice": _slice, "flatten": _flattening, "lists.range": lambda args: _allocation(max(args[0], 0)),
    "reverse": lambda args: _allocation(size_of(args[0])), "distinct": lambda args: sorting_cost(args[0]),
    "sort": lambda args: sorting_cost(args[0]),
    "sets.contains": _sets(1), "sets.intersects": _sets(1), "sets.equivalent": _sets(2),
}  # fmt: skip
