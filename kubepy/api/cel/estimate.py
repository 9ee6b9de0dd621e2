"""The estimate of the cost of an expression, from the types and sizes of the values that it is
about.

It decides which rules a CustomResourceDefinition may have, so that it follows upstream even where
that looks like an oversight (the size of a value that no path leads to is taken from the root).
Upstream: cel-go's ``checker/cost.go`` and ``ext/{lists,sets}.go``, Kubernetes'
``apiserver/pkg/cel/library/cost.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from kubepy.api.cel.checker import Checked
from kubepy.api.cel.cost import (
    LIST_COST,
    MAP_COST,
    REGEX_FACTOR,
    SORT_FACTOR,
    STRING_FACTOR,
    STRUCT_COST,
)
from kubepy.api.cel.sizes import UNKNOWN, Shape
from kubepy.api.cel.syntax import (
    MAPPING,
    CallExpr,
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
from kubepy.api.cel.types import DYN, TYPE, Overload, Type

MAX = 2**64 - 1


class Range(NamedTuple):
    """The smallest and the largest cost or size, both at most ``MAX``."""

    least: int
    most: int

    def plus(self, *others: Range) -> Range:
        return Range(
            min(self.least + sum(other.least for other in others), MAX),
            min(self.most + sum(other.most for other in others), MAX),
        )

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MAX), min(self.most * other.most, MAX))

    def scaled(self, factor: float) -> Range:
        """Return the product with a factor, rounded up."""
        return Range(
            min(ceil(float(self.least) * factor), MAX), min(ceil(float(self.most) * factor), MAX)
        )

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def fixed(amount: int) -> Range:
    return Range(amount, amount)


ANY_SIZE = Range(0, MAX)
_NOTHING_YET = Range(MAX, 0)  # the union with any range is that range
_ONE = fixed(1)


class EntrySizes(NamedTuple):
    """The sizes of the keys (of a list: 1) and of the values in a list or map that an expression
    makes."""

    key: Range
    value: Range
    is_list: bool

    def union(self, other: EntrySizes | None) -> EntrySizes | None:
        if other is None:
            return None
        return EntrySizes(self.key.union(other.key), self.value.union(other.value), self.is_list)


class Estimate(NamedTuple):
    """The estimate of a value. ``size``: None if unknown; ``shape``: that at the end of a path,
    None without a path."""

    cost: Range
    size: Range | None
    shape: Shape | None
    entry: EntrySizes | None
    type: Type
    node: Node | None = None

    @property
    def any_size(self) -> Range:
        if self.size is None:
            return ANY_SIZE
        return self.size


class Local(NamedTuple):
    """A variable of a macro."""

    shape: Shape | None
    size: Range | None = None
    entry: EntrySizes | None = None


Locals = Mapping[str, Local]


class Sizes:
    """The sizes of values that a schema describes."""

    def __init__(self, root: Shape | None) -> None:
        self.root = root or Shape()

    def size_of(self, shape: Shape | None, type: Type) -> Range | None:
        """Return the size of the value at the end of a path, None if unknown. Subclasses may use
        the ``type``."""
        if shape is None or shape.largest is None:
            return None
        return Range(0, shape.largest)

    def below(self, shape: Shape | None, step: str) -> Shape:
        """Return the shape after a step: ``@items``, ``@keys``, ``@indices`` or a field. Without a
        path, the root."""
        if shape is None:
            return self.root
        if step == "@items":
            return shape.item or UNKNOWN
        if step == "@keys":
            return shape.key or UNKNOWN
        return (shape.fields or {}).get(step, UNKNOWN)


def estimate_cost(checked: Checked, sizes: Sizes) -> Range:
    """Return the least and the most that the expression can cost."""
    return _Estimator(checked, sizes).visit(checked.node, {}).cost


def _is_scalar(type: Type) -> bool:
    if type.name == "optional" and type.params:
        return _is_scalar(type.params[0])
    return type.name in ("bool", "double", "duration", "int", "timestamp", "uint")


class _Estimator(NodeVisitor[Locals, Estimate]):
    """One estimate of a checked tree; scopes are the variables of macros."""

    def __init__(self, checked: Checked, sizes: Sizes) -> None:
        self._types = checked.types
        self._calls = checked.calls
        self._sizes = sizes

    def _type(self, node: Node) -> Type:
        return self._types.get(id(node), DYN)

    def _size(
        self, shape: Shape | None, type: Type, otherwise: Range | None = None
    ) -> Range | None:
        size = self._sizes.size_of(shape, type)
        if size is None and _is_scalar(type):
            size = _ONE
        if size is None:
            return otherwise
        return size

    def _result(
        self, cost: Range, node: Node, size: Range | None = None, entry: EntrySizes | None = None
    ) -> Estimate:
        """Return the estimate of the result of a node, which stands at no path of an object."""
        type = self._type(node)
        return Estimate(
            cost, self._size(None, type) if size is None else size, None, entry, type, node
        )

    # --- values and paths -------------------------------------------------------------------------

    def visit_literal(self, node: Literal, scope: Locals) -> Estimate:
        size = len(node.value) if isinstance(node.value, str | bytes) else 1
        return self._result(fixed(0), node, fixed(size))

    def visit_ident(self, node: Ident, scope: Locals) -> Estimate:
        local = scope.get(node.name, Local(self._sizes.root))
        type = self._type(node)
        return Estimate(
            _ONE, self._size(local.shape, type, local.size), local.shape, local.entry, type, node
        )

    def visit_select(self, node: Select, scope: Locals) -> Estimate:
        if self._type(node) == TYPE and (name := dotted(node)):
            return self.visit_ident(Ident(name, node.at), {})
        operand = self.visit(node.operand, scope)
        if node.test:
            return self._result(operand.cost, node)
        if node.optional:
            return self._result(operand.cost.plus(_ONE), node)
        has_cost = operand.type.name in ("map", "object") or operand.type.is_parameter
        shape = self._sizes.below(operand.shape, node.field)
        type = self._type(node)
        cost = operand.cost.plus(_ONE) if has_cost else operand.cost
        return Estimate(cost, self._size(shape, type), shape, None, type, node)

    def visit_list(self, node: ListLiteral, scope: Locals) -> Estimate:
        items = [self.visit(item, scope) for item in node.items]
        entry = EntrySizes(_ONE, _union(item.any_size for item in items), is_list=True)
        return self._result(
            fixed(LIST_COST).plus(*(item.cost for item in items)), node, fixed(len(items)), entry
        )

    def visit_map(self, node: MapLiteral, scope: Locals) -> Estimate:
        keys = [self.visit(key, scope) for key, _, _ in node.entries]
        values = [self.visit(value, scope) for _, value, _ in node.entries]
        entry = EntrySizes(
            _union(key.any_size for key in keys),
            _union(value.any_size for value in values),
            is_list=False,
        )
        cost = fixed(MAP_COST).plus(*(estimate.cost for estimate in (*keys, *values)))
        return self._result(cost, node, fixed(len(keys)), entry)

    def visit_struct(self, node: StructLiteral, scope: Locals) -> Estimate:
        values = [self.visit(value, scope) for _, value, _ in node.fields]
        return self._result(fixed(STRUCT_COST).plus(*(value.cost for value in values)), node)

    # --- calls ------------------------------------------------------------------------------------

    def visit_call(self, node: CallExpr, scope: Locals) -> Estimate:
        resolved = self._calls.get(id(node))
        has_target = node.target is not None and (resolved is None or resolved.is_member)
        nodes = (node.target, *node.args) if has_target else node.args
        args = [self.visit(arg, scope) for arg in nodes if arg is not None]
        match node.function:
            case "_&&_" | "_||_":
                return self._result(
                    Range(args[0].cost.least, fixed(0).plus(*(arg.cost for arg in args)).most), node
                )
            case "_?_:_":
                condition, yes, no = args
                cost = condition.cost.plus(yes.cost.union(no.cost))
                entry = None if yes.entry is None else yes.entry.union(no.entry)
                return self._result(cost, node, yes.any_size.union(no.any_size), entry)
            case "_[_]" | "_[?_]":
                return self._index(node, *args)
            case "dyn":
                return self._result(args[0].cost.plus(_ONE), node, args[0].size, args[0].entry)

        name, overloads = (
            (node.function, []) if resolved is None else (resolved.name, resolved.overloads)
        )
        estimates = [self._function(name, overload, args) for overload in overloads] or [
            _CallEstimate(_ONE)
        ]
        cost = _union(estimate.cost for estimate in estimates).plus(*(arg.cost for arg in args))
        sizes = [estimate.size for estimate in estimates if estimate.size is not None]
        entry = None
        if name == "_+_" and args[0].entry is not None:
            entry = args[0].entry.union(args[1].entry)
        return self._result(cost, node, _union(sizes) if sizes else None, entry)

    def _index(self, node: CallExpr, container: Estimate, index: Estimate) -> Estimate:
        cost = container.cost.plus(index.cost, _ONE)
        if node.function == "_[?_]" or container.type.name == "optional":
            return self._result(cost, node)
        shape = self._sizes.below(container.shape, "@items")
        type = self._type(node)
        size = container.entry.value if container.entry else self._size(shape, type)
        return Estimate(cost, size, shape, None, type, node)

    def _function(self, name: str, overload: Overload, args: Sequence[Estimate]) -> _CallEstimate:
        """Return the cost of the call itself, without its arguments."""
        if name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"):
            return _CallEstimate(self._traversal(args[0]))
        if name != "join":
            return _function(name, overload, args)
        items = self._items_of(args[0])
        count = args[0].any_size
        size = count.times(items[1]) if items else fixed(0)
        if len(args) > 1:
            size = size.plus(
                args[1].any_size.times(Range(max(count.least - 1, 0), max(count.most - 1, 0)))
            )
        return _CallEstimate(size.scaled(STRING_FACTOR), size)

    def _items_of(self, container: Estimate) -> tuple[Type, Range] | None:
        """Return the type and the size of a list's items."""
        if not container.type.params:
            return None
        type = container.type.params[0]
        shape = None if container.shape is None else self._sizes.below(container.shape, "@items")
        size = self._sizes.size_of(shape, type)
        return type, ANY_SIZE if size is None else size

    def _traversal(self, target: Estimate) -> Range:
        """Return the cost of looking at all items of a list, or at a text."""
        items = self._items_of(target)
        if items is None:
            return target.any_size.scaled(STRING_FACTOR)
        type, size = items
        each = _ONE.plus(size.scaled(STRING_FACTOR)) if type.name in ("string", "bytes") else _ONE
        return target.any_size.times(each)

    # --- macros -----------------------------------------------------------------------------------

    def visit_macro(self, node: Macro, scope: Locals) -> Estimate:
        over = self.visit(node.range, scope)
        if node.name in ("optMap", "optFlatMap"):
            return self._mapped_optional(node, over, scope)
        if node.name == "sortBy":
            return self._sorted(node, over, scope)
        inner = {**scope, **self._variables(node, over)}
        bodies = [self.visit(body, inner) for body in node.body]
        loop = _loop(node, [body.cost for body in bodies])
        cost = over.cost.plus(loop.around, over.any_size.times(loop.step))
        if not (node.name in MAPPING or node.name == "filter"):
            return self._result(cost, node, _ONE)
        entry = None
        if node.name in ("map", "filter", "transformList"):
            size = bodies[-1].any_size
            if node.name == "filter":
                local = inner[node.variables[0]]
                type = next(iter(self._type(node).params), DYN)
                size = self._size(local.shape, type, local.size) or ANY_SIZE
            entry = EntrySizes(_ONE, Range(0, size.most), is_list=True)

        return self._result(cost, node, over.any_size, entry)

    def _variables(self, node: Macro, over: Estimate) -> dict[str, Local]:
        is_list = over.entry.is_list if over.entry else over.type.name == "list"
        key = Local(
            self._sizes.below(over.shape, "@indices" if is_list else "@keys"),
            over.entry.key if over.entry else None,
        )
        value = Local(
            self._sizes.below(over.shape, "@items"), over.entry.value if over.entry else None
        )
        if len(node.variables) == 2:
            return dict(zip(node.variables, (key, value), strict=True))
        return {node.variables[0]: value if is_list else key}

    def _mapped_optional(self, node: Macro, over: Estimate, scope: Locals) -> Estimate:
        """Estimate ``target.hasValue() ? optional.of(body) : optional.none()``, the variable bound
        to the value."""
        type = over.type.params[0] if over.type.name == "optional" and over.type.params else DYN
        local = Local(None, self._size(None, type))
        body = self.visit(node.body[0], {**scope, node.variables[0]: local})
        bound = fixed(LIST_COST).plus(over.cost, _ONE, body.cost)
        some = bound if node.name == "optFlatMap" else bound.plus(_ONE)
        return self._result(over.cost.plus(_ONE, some.union(_ONE)), node, ANY_SIZE)

    def _sorted(self, node: Macro, over: Estimate, scope: Locals) -> Estimate:
        """Estimate ``sortBy``: the list is bound to a variable, mapped to the keys, and sorted by
        them."""
        body = self.visit(node.body[0], {**scope, **self._variables(node, over)})
        keys = over.any_size.times(_loop(node._replace(name="map"), [body.cost]).step)
        mapping = _ONE.plus(fixed(LIST_COST + 1), keys)
        sorting = _sorting(over.any_size, [body.type.name])
        return self._result(
            over.cost.plus(fixed(LIST_COST), _ONE, mapping, sorting.cost), node, sorting.size
        )


def _union(ranges: Iterable[Range]) -> Range:
    """Return the union of ranges; zero without any."""
    union = _NOTHING_YET
    for range_ in ranges:
        union = union.union(range_)
    if union is _NOTHING_YET:
        return fixed(0)
    return union


class _Loop(NamedTuple):
    """The cost of a macro: ``around`` its loop, and of each ``step``."""

    around: Range
    step: Range


def _loop(node: Macro, bodies: Sequence[Range]) -> _Loop:
    """Return the cost of a macro's loop (``parser/macro.go``), in which naming the accumulator
    costs 1."""
    first = bodies[0]
    last = bodies[-1]
    match node.name:
        case "all":
            return _Loop(fixed(1), fixed(2).plus(Range(1, min(1 + last.most, MAX))))
        case "exists":
            return _Loop(fixed(1), fixed(3).plus(Range(1, min(1 + last.most, MAX))))
        case "exists_one" | "existsOne":
            return _Loop(fixed(2), first.plus(Range(1, 2)))
        case "filter":
            return _Loop(fixed(LIST_COST + 1), first.plus(Range(1, LIST_COST + 3)))
        case "transformMap":
            added = fixed(3).plus(last)
            base = MAP_COST
        case "transformMapEntry":
            added = fixed(2).plus(last)
            base = MAP_COST
        case _:
            added = fixed(LIST_COST + 2).plus(last)
            base = LIST_COST

    step = added if len(bodies) == 1 else first.plus(added.union(_ONE))
    return _Loop(fixed(base + 1), step)


# --- functions ------------------------------------------------------------------------------------


class _CallEstimate(NamedTuple):
    cost: Range
    size: Range | None = None


_READERS = ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "format")
_KEPT = (
    "url",
    "jsonpatch.escapeKey",
    "lowerAscii",
    "upperAscii",
    "substring",
    "trim",
)  # the result is as long
_LIST_CALLS = ("slice", "lists.range", "reverse", "flatten", "distinct", "sort")
_CONSTANT_EQUALITY = ("ip", "cidr", "quantity", "semver")
_TEXTS = ("string", "bytes")
_SETS = {"sets.contains": 1, "sets.intersects": 1, "sets.equivalent": 2}
_NETWORK_BYTES = Range(4, 16)


def _function(name: str, overload: Overload, args: Sequence[Estimate]) -> _CallEstimate:
    """Return the cost of a call that depends on nothing but its arguments."""
    sizes = [arg.any_size for arg in args]
    kind = overload.params[0].name if overload.params else ""
    if name in _READERS or (name == "ip" and kind == "string"):
        return _CallEstimate(sizes[0].scaled(STRING_FACTOR))
    if name in _KEPT:
        return _CallEstimate(sizes[0].scaled(STRING_FACTOR), sizes[0])
    if name in _LIST_CALLS:
        return _list_call(name, args)
    if name in _SETS:
        return _CallEstimate(sizes[0].times(sizes[1]).scaled(_SETS[name]).plus(_ONE))
    match name:
        case "_==_" | "_!=_":
            return _CallEstimate(_equality(name, args))
        case "_<_" | "_<=_" | "_>_" | "_>=_" if kind in _TEXTS:
            return _CallEstimate(_comparison(sizes))
        case "_+_" if kind in (*_TEXTS, "list"):
            size = sizes[0].plus(sizes[1])
            return _CallEstimate(_ONE if kind == "list" else size.scaled(STRING_FACTOR), size)
        case "@in" if overload.params[1].name == "list":
            return _CallEstimate(sizes[1])
        case "startsWith" | "endsWith":
            return _CallEstimate(sizes[1].scaled(STRING_FACTOR))
        case "contains":
            return _CallEstimate(
                sizes[0].scaled(STRING_FACTOR).times(sizes[1].scaled(STRING_FACTOR))
            )
        case "matches" if overload.is_member:
            return _CallEstimate(_matching(sizes))
        case "find" | "findAll":
            return _CallEstimate(_matching(sizes), Range(0, sizes[0].most))
        case "ip.isCanonical":
            return _CallEstimate(sizes[0].scaled(2 * STRING_FACTOR))
        case "containsIP" | "containsCIDR":
            cost = _NETWORK_BYTES.plus(_NETWORK_BYTES).scaled(STRING_FACTOR)
            if name == "containsCIDR":
                cost = cost.plus(_NETWORK_BYTES.scaled(STRING_FACTOR), _ONE)
            is_text = overload.params[1].name == "string"
            return _CallEstimate(cost.plus(sizes[1].scaled(STRING_FACTOR)) if is_text else cost)
        case "validate":
            return _CallEstimate(sizes[1].scaled(STRING_FACTOR).scaled(128 * REGEX_FACTOR))

    return _text_call(name, kind, args, sizes)


def _text_call(
    name: str, kind: str, args: Sequence[Estimate], sizes: Sequence[Range]
) -> _CallEstimate:
    """Return the cost of calls that make texts, or lists of them."""
    size = sizes[0] if sizes else ANY_SIZE
    match name:
        case "bytes" if kind == "string":
            return _CallEstimate(size.scaled(STRING_FACTOR), Range(size.least, size.most * 4 & MAX))
        case "string" if kind == "bytes":
            return _CallEstimate(size.scaled(STRING_FACTOR), Range(size.least // 4, size.most))
        case "strings.quote":
            return _CallEstimate(
                size.scaled(STRING_FACTOR), Range(size.least + 2 & MAX, size.most * 2 + 2 & MAX)
            )
        case "split":
            most = _literal_int(args[2], size.most) if len(args) > 2 else size.most
            return _CallEstimate(size.scaled(2 * STRING_FACTOR), Range(0, most))
        case "replace":
            return _CallEstimate(size.scaled(2 * STRING_FACTOR), replaced_size(*sizes[:3]))

    return _CallEstimate(_ONE)


def replaced_size(text: Range, old: Range, new: Range) -> Range:
    """Return the size of ``text.replace(old, new)``."""
    return Range(
        _replaced(text.least, old.most, new.least, is_kept=old.most <= new.least),
        _replaced(text.most, old.least, new.most, is_kept=new.most <= old.least),
    )


def _replaced(text: int, old: int, new: int, *, is_kept: bool) -> int:
    """Return a bound of the size after replacing. ``is_kept``: the text gets no longer (or no
    shorter) by it."""
    if old == 0:  # the new text stands around every character
        return min(min(text + 1, MAX) * new + text, MAX)
    if is_kept:
        return text
    return min(ceil(float(text) / float(old)) * new, MAX)


def _equality(name: str, args: Sequence[Estimate]) -> Range:
    left, right = args
    if name == "_==_" and left.type == right.type:
        if left.type.name in _CONSTANT_EQUALITY:
            return _ONE
        if left.type.name == "format":
            return Range(1, 64).scaled(STRING_FACTOR)
        if left.type.name == "url":
            return Range(1, right.size.most if right.size else 1).scaled(STRING_FACTOR)
    return _comparison([left.any_size, right.any_size])


def _comparison(sizes: Sequence[Range]) -> Range:
    smallest = min(sizes[0].most, sizes[1].most)
    return Range(1 if smallest else 0, smallest).scaled(STRING_FACTOR)


def _matching(sizes: Sequence[Range]) -> Range:
    return sizes[0].plus(_ONE).scaled(STRING_FACTOR).times(sizes[1].scaled(REGEX_FACTOR))


def _list_call(name: str, args: Sequence[Estimate]) -> _CallEstimate:
    size = args[0].any_size
    match name:
        case "slice":
            size = fixed(_literal_int(args[2], size.most) - _literal_int(args[1], 0) & MAX)
        case "lists.range":
            size = fixed(_literal_int(args[0], MAX))
        case "flatten":
            return _allocation(size, float(_literal_int(args[1], MAX) if len(args) > 1 else 1))
        case "distinct":
            return _allocation(size.times(size), SORT_FACTOR)
        case "sort":
            return _sorting(size, [type.name for type in args[0].type.params])
    return _allocation(size, 1)


def _sorting(size: Range, kinds: Sequence[str]) -> _CallEstimate:
    """Return the cost of sorting. ``kinds``: the type of the items, which may be a text if it is
    not known."""
    plain, texts = (
        _allocation(size.times(size), factor)
        for factor in (SORT_FACTOR, SORT_FACTOR + STRING_FACTOR)
    )
    if not kinds or kinds[0] == "dyn":
        return plain._replace(cost=plain.cost.union(texts.cost))
    if kinds[0] in _TEXTS:
        return texts
    return plain


def _allocation(size: Range, factor: float) -> _CallEstimate:
    return _CallEstimate(size.scaled(factor).plus(fixed(1 + LIST_COST)), size)


def _literal_int(arg: Estimate, otherwise: int) -> int:
    value = arg.node.value if isinstance(arg.node, Literal) else None
    if type(value) is int:
        return max(value, 0)
    return otherwise
