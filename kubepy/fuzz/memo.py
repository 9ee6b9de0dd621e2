"""Memory of the bodies of macros: of ``pods.all(p, BODY)`` the value of BODY for each pod.

Stored objects never change, so a body that reads nothing but its object has one value for it. One
write then costs at most one evaluation of each body, however many objects there are, and none of a
body whose fields are in the new object what they were in the old one. A body that reads other lists
as well is remembered until one of them changes. One that reads the variable of a macro around it is
remembered for each object that this stands for, so that a join of two lists costs one write as many
evaluations as the other list is long. A body that reads its own list, or the time, is not
remembered.

``remember`` puts a :class:`~kubepy.api.cel.syntax.Computed` in the place of such a macro. Values
and errors are those of the plain interpreter; errors also say of which object they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress, repeat
from math import inf
from typing import Any, NamedTuple, cast

from kubepy.api.cel.cost import CostTracker
from kubepy.api.cel.interpreter import Scope, evaluate
from kubepy.api.cel.syntax import Computed, Ident, Macro, Node, replaced
from kubepy.api.cel.values import CelError
from kubepy.api.meta import Object
from kubepy.fuzz.expressions import free_names
from kubepy.fuzz.footprint import Paths, have_same, paths_of
from kubepy.fuzz.objectlists import CheckedList

Lists = Mapping[str, CheckedList]  # by the names of their variables
# The variables of macros, each with the list whose objects it stands for; None: it stands for other
# values.
Bound = Mapping[str, CheckedList | None]
REMEMBERED = ("all", "exists", "exists_one", "existsOne", "filter", "map")
UNKNOWN = object()
FAILED = "failed"  # the token of a body that cannot be evaluated


class BodyError(CelError):
    """The body of a macro that cannot be evaluated, and the object for which it cannot."""

    def __init__(self, message: str, obj: Object) -> None:
        super().__init__(message)
        self.obj = obj


class FailedBody(NamedTuple):
    """An error in the place of a value."""

    message: str
    obj: Object


def evaluate_freely(node: Node, scope: Scope) -> Any:
    """Return the value of an expression, whatever it costs. Raises CelError."""
    return evaluate(node, scope, CostTracker(inf))


def remember(node: Node, lists: Lists, scope: Scope) -> Node:
    """Return an expression that remembers the bodies of its macros.

    :param lists: by the names of their variables.
    :param scope: the objects of all lists, by these names.
    """
    return _Rememberer(lists, scope).rebuild(node, {})


class MacroRange(NamedTuple):
    """The objects that a macro goes over: those of a list for which all guards are true. Guards are
    None where they are not remembered."""

    objects: CheckedList
    guards: tuple[RememberedBody, ...] | None = ()


class BodyFootprint(NamedTuple):
    """The fields that a body reads; paths are None where it reads all.

    :ivar paths: those of its object.
    :ivar outer: the variables of macros around it, each with the paths of its object.
    """

    paths: Paths | None
    outer: tuple[tuple[str, Paths | None], ...] = ()


class RememberedBody:
    """The body of a macro, with its values.

    :param variable: that of the macro.
    :param guards: the bodies of the filters before it.
    :param footprint: what it reads of its object, and of those of macros around it.
    :param is_condition: it must be true or false.
    """

    def __init__(
        self,
        node: Node,
        variable: str,
        guards: tuple[RememberedBody, ...],
        footprint: BodyFootprint,
        *,
        is_condition: bool,
    ) -> None:
        self._node = node
        self._variable = variable
        self._guards = guards
        self._is_condition = is_condition
        self._paths = footprint.paths
        self._outer = footprint.outer
        # By the id() of the objects around it, then by that of its object, which the lists hold; a
        # FailedBody where there is no value.
        self._values: dict[tuple[int, ...], dict[int, Any]] = {}

    def replace(self, old: Object, new: Object | None) -> None:
        """Forget the values of an object, or take them over for another in its place."""
        old_id = id(old)
        new_id = id(new)
        is_same = new is not None and have_same(self._paths, old, new)
        for known in self._values.values():
            value = known.pop(old_id, UNKNOWN)
            if is_same and value is not UNKNOWN:
                known[new_id] = value

    def replace_outer(self, variable: str, old: Object, new: Object | None) -> None:
        """Do the same for an object around the body's own, by the variable that stands for it."""
        names = [name for name, _ in self._outer]
        place = names.index(variable)
        _, paths = self._outer[place]
        old_id = id(old)
        new_id = id(new)
        is_same = new is not None and have_same(paths, old, new)
        # The dictionary changes below: the keys are collected first.
        old_keys = [ids for ids in self._values if ids[place] == old_id]
        for ids in old_keys:
            known = self._values.pop(ids)
            if is_same:
                before = ids[:place]
                behind = ids[place + 1 :]
                self._values[(*before, new_id, *behind)] = known

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def values(self, objects: Sequence[Object], scope: Scope, tracker: CostTracker) -> list[Any]:
        """Return the values for some objects."""
        outer_ids = tuple([id(scope[name]) for name, _ in self._outer])
        known = self._values.get(outer_ids)
        if known is None:
            known = {}
            self._values[outer_ids] = known
        ids = map(id, objects)
        values = list(map(known.get, ids, repeat(UNKNOWN)))
        if UNKNOWN not in values:
            return values
        inner = dict(scope)
        for index, value in enumerate(values):
            if value is not UNKNOWN:
                continue
            obj = objects[index]
            computed = self._compute(obj, inner, tracker)
            known[id(obj)] = computed
            values[index] = computed
        return values

    def _compute(self, obj: Object, inner: dict[str, Any], tracker: CostTracker) -> Any:
        """Return the value for an object.

        :param inner: the scope, in which the variable is set.
        """
        inner[self._variable] = obj
        try:
            value = evaluate(self._node, inner, tracker)
        except BodyError as error:
            return FailedBody(str(error), error.obj)
        except CelError as error:
            return FailedBody(str(error), obj)
        if self._is_condition and not isinstance(value, bool):
            return FailedBody("no such overload", obj)
        return value

    def token(self, scope: Scope, obj: Object) -> Any:
        """Return what a digest has of the value for an object of the list; None where a guard keeps
        the macro from it."""
        for guard in self._guards:
            if guard.token(scope, obj) is not True:
                return None
        tracker = CostTracker(inf)
        [value] = self.values([obj], scope, tracker)
        if isinstance(value, FailedBody):
            return FAILED
        return value


class OuterMemory:
    """The part of a body's memory that is about the objects of a macro around it."""

    def __init__(self, body: RememberedBody, variable: str) -> None:
        self._body = body
        self._variable = variable

    def replace(self, old: Object, new: Object | None) -> None:
        """Forget the values for an object, or take them over for another in its place."""
        self._body.replace_outer(self._variable, old, new)

    def clear(self) -> None:
        """Forget all values."""
        self._body.clear()


class RememberedMacro:
    """A macro over objects, with the memory of its body. Called, it returns its value.

    :ivar name: that of the macro.
    """

    def __init__(self, name: str, over: Node, body: RememberedBody) -> None:
        self.name = name
        self.body = body
        self._range = over

    def __call__(self, scope: Scope, tracker: CostTracker) -> Any:
        objects = evaluate(self._range, scope, tracker)
        values = self.body.values(objects, scope, tracker)
        match self.name:
            case "all":
                return self._quantified(values, decisive=False)
            case "exists":
                return self._quantified(values, decisive=True)
            case "filter":
                _check(values)
                return list(compress(objects, values))
            case "map":
                _check(values)
                return values
        _check(values)
        return values.count(True) == 1

    def _quantified(self, values: Sequence[Any], *, decisive: bool) -> bool:
        if values.count(not decisive) == len(values):
            return not decisive
        if values.count(decisive):
            return decisive
        _check(values)
        return not decisive

    def objects_with(self, value: bool, scope: Scope) -> list[Object]:
        """Return the objects for which the body has a value."""
        tracker = CostTracker(inf)
        objects = evaluate(self._range, scope, tracker)
        values = self.body.values(objects, scope, tracker)
        pairs = zip(objects, values, strict=True)
        return [obj for obj, known in pairs if known is value]


def _check(values: Iterable[Any]) -> None:
    """Raise the first error among some values."""
    for value in values:
        if type(value) is FailedBody:
            raise BodyError(*value)


class NamingBody:
    """A body that is not remembered: an error in it says of which object it is."""

    def __init__(self, node: Node, variable: str) -> None:
        self._node = node
        self._variable = variable

    def __call__(self, scope: Scope, tracker: CostTracker) -> Any:
        try:
            return evaluate(self._node, scope, tracker)
        except BodyError:
            raise
        except CelError as error:
            raise BodyError(str(error), scope[self._variable]) from None


class _Rememberer:
    """Rebuilds an expression.

    :ivar _chosen: the objects that filters choose, by the ``id()`` of the rebuilt filter.
    """

    def __init__(self, lists: Lists, scope: Scope) -> None:
        self._lists = lists
        self._scope = scope
        self._chosen: dict[int, MacroRange] = {}

    def rebuild(self, node: Node, bound: Bound) -> Node:
        """Return a node that remembers.

        :param bound: the variables of the macros around it.
        """
        if not isinstance(node, Macro):
            return replaced(node, lambda child: self.rebuild(child, bound))
        rebuilt_range = self.rebuild(node.range, bound)
        over = self._range_of(rebuilt_range, bound)
        unknown = dict.fromkeys(node.variables)
        inner = {**bound, **unknown}
        if over is not None:
            item = node.variables[-1]
            inner[item] = over.objects
        parts = [self.rebuild(part, inner) for part in node.body]
        rebuilt = node._replace(range=rebuilt_range, body=tuple(parts))
        if over is None:
            return rebuilt
        return self._over_objects(node, rebuilt, over, bound)

    def _range_of(self, over: Node, bound: Bound) -> MacroRange | None:
        """Return which stored objects a range has; None where it may have others."""
        if not isinstance(over, Ident):
            return self._chosen.get(id(over))
        # A macro's variable hides the list that has its name.
        if over.name in bound:
            return None
        objects = self._lists.get(over.name)
        if objects is None:
            return None
        return MacroRange(objects)

    def _over_objects(self, node: Macro, rebuilt: Macro, over: MacroRange, bound: Bound) -> Node:
        """Return a macro over stored objects, which remembers its body if it can."""
        guards: tuple[RememberedBody, ...] | None = None
        new: Node
        read = self._read_by(node)
        if read is not None and self._can_remember(read, over, bound):
            body = self._remembered(node, rebuilt, over, read, bound)
            macro = RememberedMacro(node.name, rebuilt.range, body)
            new = _computed(macro, node.at)
            # A body that depends on an object around it guards nothing by its own object alone.
            reads_outer = not read.isdisjoint(bound)
            if over.guards is not None and not reads_outer:
                guards = (*over.guards, body)
        else:
            new = _with_naming_bodies(rebuilt)
        if node.name == "filter":
            chosen = MacroRange(over.objects, guards)
            self._chosen[id(new)] = chosen
        return new

    def _read_by(self, node: Macro) -> frozenset[str] | None:
        """Return the names that a macro's body reads beside the macro's variable; None for a macro
        that cannot remember its body."""
        if node.name not in REMEMBERED:
            return None
        if len(node.variables) != 1 or len(node.body) != 1:
            return None
        [text] = node.body
        names = free_names(text)
        return names.difference(node.variables)

    def _can_remember(self, read: frozenset[str], over: MacroRange, bound: Bound) -> bool:
        """Return whether all that a body reads are other lists than its own, and variables that
        stand for stored objects."""
        for name in read:
            if name in bound:
                if bound[name] is None:
                    return False
            elif self._lists.get(name, over.objects) is over.objects:
                return False
        return True

    def _remembered(
        self, node: Macro, rebuilt: Macro, over: MacroRange, read: frozenset[str], bound: Bound
    ) -> RememberedBody:
        """Return the body of a macro with a memory, which the lists know from now on."""
        [variable] = node.variables
        [text] = node.body
        [rebuilt_text] = rebuilt.body
        paths = paths_of(text, variable)
        outer_names = sorted(read & bound.keys())
        outer = tuple((name, paths_of(text, name)) for name in outer_names)
        footprint = BodyFootprint(paths, outer)
        guards = over.guards or ()
        is_condition = node.name != "map"
        body = RememberedBody(rebuilt_text, variable, guards, footprint, is_condition=is_condition)
        over.objects.memories.append(body)
        for name in sorted(read):
            around = bound.get(name)
            if around is not None:
                outer_memory = OuterMemory(body, name)
                around.memories.append(outer_memory)
            else:
                other = self._lists[name]
                other.dependents.append((body, over.objects))
        if over.guards is not None and not outer:
            abstract = partial(body.token, self._scope)
            over.objects.abstracts.append(abstract)
        return body


def _with_naming_bodies(macro: Macro) -> Macro:
    """Return a macro whose errors say of which object they are; it remembers nothing."""
    item = macro.variables[-1]
    named: list[Node] = []
    for part in macro.body:
        body = NamingBody(part, item)
        named.append(_computed(body, macro.at))
    return macro._replace(body=tuple(named))


def _computed(compute: Callable[[Scope, CostTracker], Any], at: int) -> Node:
    """Return the node whose value a function gives."""
    return cast(Node, Computed(compute, at))
