"""Checks: what must hold in each run, in CEL or built in, and their judgement after each write.

``always`` and ``never`` are judged after every write of a resource that they read, from ``after``
on, and at the end; with ``after`` also in the state that lasts at that moment. ``eventually`` must
hold at the end, and with ``within`` must have come to hold for good by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.cel.syntax import CallExpr, Computed, Node
from kubepy.api.cel.values import CelError
from kubepy.api.clock import format_exact_time, later
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.values.goformat import format_duration, format_value, parse_span
from kubepy.apiserver.strict_fields import (
    field_error,
    join_path,
    parse_fields,
    parse_text,
    shown,
)
from kubepy.fuzz.builtin_checks import BUILTINS, Breach, BuiltinChecks
from kubepy.fuzz.expressions import NOW, CheckExpressionError, compile_check
from kubepy.fuzz.memo import BodyError, RememberedMacro, evaluate_freely, remember
from kubepy.fuzz.objectlists import CheckedList, ObjectLists, hash_of
from kubepy.fuzz.objectlists import CheckError as CheckError
from kubepy.fuzz.words import said
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage import FolderError, Key

with lazy_imports():
    from kubepy.storage import yaml

if TYPE_CHECKING:
    from datetime import datetime

    from kubepy.apiserver.cluster import LocalCluster

ALWAYS, NEVER, EVENTUALLY, BUILTIN = "always", "never", "eventually", "builtin"
KINDS = (ALWAYS, NEVER, EVENTUALLY)
COMPARISONS = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
MOST_NAMES = 3  # of objects that a message names


class Check(NamedTuple):
    """A check.

    :ivar kind: ``always``, ``never``, ``eventually``; of a built-in one ``builtin``.
    :ivar expression: "" for a built-in one.
    :ivar after: the seconds of the cluster's time, from the beginning of the run, before which
        ``always`` and ``never`` are not judged.
    :ivar within: the seconds, from the beginning, by which an ``eventually`` must hold for good;
        None: by the end.
    """

    name: str
    kind: str
    expression: str
    after: float = 0.0
    within: float | None = None


class LastWrite(NamedTuple):
    """A write: the object and the revision; None and 0 for none."""

    key: Key | None
    revision: int


NO_WRITE = LastWrite(None, 0)


class Violation(NamedTuple):
    """A check that does not hold.

    :ivar at: when, in seconds of the cluster's time since the beginning of the run.
    :ivar moment: the cluster's time, RFC 3339.
    :ivar key: the object whose write violated it; None: it is so at the end.
    :ivar revision: that of the write; 0: it is so at the end.
    :ivar message: one plain sentence.
    """

    check: str
    at: float
    moment: str
    key: Key | None
    revision: int
    message: str


# --- reading --------------------------------------------------------------------------------------


def parse_checks(path: str, text: str) -> tuple[Check, ...]:
    """Read a file of checks: a YAML list of maps. Raises FolderError, which names the file, and the
    line or the field."""
    try:
        documents = yaml.load_all(text, unique_keys=True)
    except yaml.YamlError as error:
        raise FolderError(f"{printable(path)}: {error}") from None
    if len(documents) > 1:
        raise FolderError(f"{printable(path)}: must be one document, not {len(documents)}")
    value = documents[0].object if documents else None
    if not isinstance(value, list) or not value:
        raise field_error(path, "must be a list of checks, at least one")
    checks: list[Check] = []
    for index, entry in enumerate(value):
        place = f"{path}: [{index}]"
        check = parse_check(place, entry)
        checks.append(check)
    _refuse_repeated_names(path, checks)
    return tuple(checks)


def _refuse_repeated_names(path: str, checks: Iterable[Check]) -> None:
    names = set[str]()
    for index, check in enumerate(checks):
        name = check.name
        if name in names:
            place = f"{path}: [{index}].name"
            raise field_error(place, f"{shown(name)} is there twice")
        names.add(name)


def parse_check(path: str, value: Any) -> Check:
    """Check one entry of a list of checks. Raises FolderError, which names the field."""
    parsers = {
        "name": parse_text,
        **dict.fromkeys(KINDS, _parse_expression),
        "after": _parse_time,
        "within": _parse_time,
    }
    fields = parse_fields(path, value, parsers, ("name",))
    kinds = [kind for kind in KINDS if kind in fields]
    if len(kinds) != 1:
        count = "only one" if kinds else "one"
        raise field_error(path, f"must have {count} of {', '.join(KINDS)}")
    kind = kinds[0]
    misplaced = "after" if kind == EVENTUALLY else "within"
    if misplaced in fields:
        others = "always or never" if kind == EVENTUALLY else "eventually"
        place = join_path(path, misplaced)
        raise field_error(place, f"goes with {others} only")
    after = fields.get("after", 0.0)
    within = fields.get("within")
    return Check(fields["name"], kind, fields[kind], after, within)


def _parse_expression(path: str, value: Any) -> str:
    text = parse_text(path, value)
    try:
        compile_check(text)
    except CheckExpressionError as error:
        raise field_error(path, str(error)) from None
    return text


def _parse_time(path: str, value: Any) -> float:
    try:
        seconds = parse_span(value) if isinstance(value, str) else -1.0
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise field_error(path, f"{shown(value)} is not a duration such as 20m")
    return seconds


def builtin(name: str) -> Check:
    """Return a built-in check by its name. Raises FolderError, which lists the names."""
    if name not in BUILTINS:
        names = ", ".join(BUILTINS)
        raise field_error(shown(name), f"is no built-in check: must be one of {names}")
    return Check(name, BUILTIN, "")


# --- judging --------------------------------------------------------------------------------------


class JudgedCheck:
    """A check in CEL over the objects of one run.

    :ivar holds: its value when it was judged last; None: it was not yet, or could not be evaluated.
    :ivar last: the last write of what it reads.
    :ivar holds_since: the seconds after which an ``eventually`` has held without a break; None: it
        does not hold.
    """

    def __init__(self, check: Check, lists: ObjectLists) -> None:
        expression = compile_check(check.expression)
        variables = sorted(expression.variables)
        self.check = check
        self.lists: list[CheckedList] = [lists.add(variable) for variable in variables]
        self.reads_time = expression.reads_time
        self.node = remember(expression.node, lists.by_variable, lists.scope)
        self.last = NO_WRITE
        self.holds: bool | None = None
        self.holds_since: float | None = None

    @property
    def is_judged_at_end(self) -> bool:
        """Whether it matters only at the end."""
        check = self.check
        return check.kind == EVENTUALLY and check.within is None

    def evaluate(self, scope: Object, key: Key | None) -> bool:
        """Return whether the expression is true. Raises CheckError.

        :param key: of the object that was written last; None: of none.
        """
        self.holds = None
        try:
            value = evaluate_freely(self.node, scope)
        except CelError as error:
            raise self._error(error, key) from None
        if not isinstance(value, bool):
            message = f"check {self.check.name}: is neither true nor false"
            raise CheckError(printable(message))
        self.holds = value
        return value

    def _error(self, error: CelError, key: Key | None) -> CheckError:
        place = ""
        if isinstance(error, BodyError):
            place = f" of {_kind_and_name(error.obj)}"
        elif key is not None:
            place = f" after a write of {said(key)}"
        message = f"check {self.check.name}: cannot be evaluated{place}: {error}"
        return CheckError(printable(message))

    def note(self, scope: Object, key: Key | None, at: float) -> None:
        """Take in how an ``eventually`` stands after a write. What cannot be evaluated yet does not
        hold yet."""
        try:
            holds = self.evaluate(scope, key)
        except CheckError:
            holds = False
        if not holds:
            self.holds_since = None
        elif self.holds_since is None:
            self.holds_since = at


class CheckSuite:
    """The checks of one run.

    :param cluster: the fork of the run, before anything is done on it.
    :ivar violation: the first one.
    :ivar resources: those that any check reads, of whose writes :meth:`note` is to be told; None:
        of all, since a check reads the time, or it is not known yet which resource it reads.
    """

    def __init__(self, checks: Iterable[Check], cluster: LocalCluster) -> None:
        checks = tuple(checks)
        self.violation: Violation | None = None
        self._clock = cluster.clock
        self._client = cluster.controller_client
        self._start = cluster.clock.now()
        self._lists = ObjectLists(self._client, cluster.scheme)
        self._judged: list[JudgedCheck] = []
        builtin_names: list[str] = []
        for check in checks:
            if check.kind == BUILTIN:
                builtin_names.append(check.name)
            else:
                self._judged.append(JudgedCheck(check, self._lists))
        self._builtin = BuiltinChecks(builtin_names, cluster, self._lists)
        self._of_list: dict[int, list[JudgedCheck]] = {}  # by the id() of a list
        self._timed: list[JudgedCheck] = []
        for judged in self._judged:
            if not judged.is_judged_at_end:
                self._follow(judged)
        # Those whose time has not come, the next one last.
        self._waiting = [judged for judged in self._judged if judged.check.after]
        self._waiting.sort(key=lambda judged: -judged.check.after)
        self.resources = None if self._timed else self._lists.resources
        self._reads_time = any(judged.reads_time for judged in self._judged)
        for judged in self._judged:
            if judged.check.within is not None:
                scope = self._scope()
                judged.note(scope, None, 0.0)

    def _follow(self, judged: JudgedCheck) -> None:
        """Let a check be judged after each write of what it reads; after all, if it reads the
        time."""
        for read in judged.lists:
            readers = self._of_list.setdefault(id(read), [])
            readers.append(judged)
        if judged.reads_time:
            self._timed.append(judged)

    def _scope(self) -> Object:
        scope = self._lists.scope
        if self._reads_time:
            scope[NOW] = self._clock.now()
        return scope

    def _elapsed(self) -> float:
        now = self._clock.now()
        return self._since_start(now)

    def _since_start(self, moment: datetime) -> float:
        elapsed = moment - self._start
        return elapsed.total_seconds()

    # --- during the run

    def note(self, key: Key, obj: Object | None, user: Object) -> None:
        """Judge the checks that a write concerns: an observer of requests. Raises CheckError."""
        if self._waiting:
            self._judge_waiting()
        changed = self._lists.take(key, obj)
        if self.violation is not None:
            return
        due = self._due(changed)
        if not due:
            return
        key = key if key.name or obj is None else key._replace(name=name_of(obj))
        write = LastWrite(key, self._client.revision())
        at = self._elapsed()
        scope = self._scope()
        for judged in due:
            judged.last = write
            self._judge(judged, scope, write, at)
            if self.violation is not None:
                return

    def _judge_waiting(self) -> None:
        """Judge the checks whose ``after`` has passed, in the state that lasted then: nothing they
        read has been written since."""
        at = self._elapsed()
        while self._waiting and self.violation is None:
            judged = self._waiting[-1]
            after = judged.check.after
            if after >= at:
                return
            self._waiting.pop()
            scope = self._lists.scope
            if judged.reads_time:
                scope[NOW] = later(self._start, after)
            self._judge(judged, scope, judged.last, after)

    def _due(self, changed: Collection[CheckedList]) -> list[JudgedCheck]:
        """Return the checks to judge after some lists have changed."""
        due: list[JudgedCheck] = [*self._timed]
        for found in changed:
            readers = self._of_list.get(id(found), ())
            due += readers
        if len(due) <= 1:
            return due
        # A check that reads several of the lists is judged once.
        unique = dict.fromkeys(due)
        return list(unique)

    def _judge(self, judged: JudgedCheck, scope: Object, write: LastWrite, at: float) -> None:
        """Judge one check after a write, or at the end."""
        check = judged.check
        if check.kind == EVENTUALLY:
            judged.note(scope, write.key, at)
            return
        if at < check.after:
            return
        is_never = check.kind == NEVER
        holds = judged.evaluate(scope, write.key)
        if holds is not is_never:
            return
        when = self._when(write, at)
        message = _broken(judged, scope, when)
        self._violate(check, at, write, message)

    def _when(self, write: LastWrite, at: float) -> str:
        """Return in words when a check was broken."""
        if write.key is not None:
            return f"after a write of {said(write.key)}"
        if at == self._elapsed():
            return "at the end"
        return "from the beginning on"

    def _violate(self, check: Check, at: float, write: LastWrite, message: str) -> None:
        moment = later(self._start, at)
        self.violation = Violation(
            check.name,
            at,
            format_exact_time(moment),
            write.key,
            write.revision,
            printable(message),
        )

    def note_failure(self, controller: str, key: Key, error: Exception) -> None:
        """Take in that a sync of a controller, or a request (controller ""), has failed."""
        breach = self._builtin.note_failure(controller, key, error)
        self._take_breach(breach)

    def note_success(self, controller: str, key: Key) -> None:
        """Take in that a sync of a controller has succeeded."""
        self._builtin.note_success(controller, key)

    def _take_breach(self, breach: Breach | None) -> None:
        if breach is None or self.violation is not None:
            return
        moment = breach.moment or self._clock.now()
        self.violation = Violation(
            breach.check,
            self._since_start(moment),
            format_exact_time(moment),
            breach.key,
            breach.revision,
            printable(breach.message),
        )

    # --- at the end

    def finish(self, *, settled: bool) -> None:
        """Judge what is judged at the end: the run is over. Raises CheckError.

        :param settled: nothing is due any more but what repeats for ever.
        """
        if self.violation is not None:
            return
        self._judge_waiting()
        if self.violation is not None:
            return
        self._lists.read_all()
        at = self._elapsed()
        scope = self._scope()
        for judged in self._judged:
            if judged.check.kind == EVENTUALLY:
                self._judge_in_the_end(judged, scope, at)
            else:
                self._judge(judged, scope, NO_WRITE, at)
            if self.violation is not None:
                return
        breach = self._builtin.finish(settled=settled)
        self._take_breach(breach)

    def _judge_in_the_end(self, judged: JudgedCheck, scope: Object, at: float) -> None:
        """Judge an ``eventually``."""
        check = judged.check
        text = _shown_expression(check)
        if not judged.evaluate(scope, None):
            reason = _reason(judged.node, scope, value=False)
            message = f"{text} must hold at the end, but did not{reason}"
            self._violate(check, at, NO_WRITE, message)
            return
        if check.within is None:
            return
        since = at if judged.holds_since is None else judged.holds_since
        if since <= check.within:
            return
        limit = format_duration(check.within)
        begin = format_duration(since)
        message = f"{text} must hold within {limit}, but held only from {begin} on"
        self._violate(check, at, NO_WRITE, message)

    def digest(self) -> int:
        """Return 64 bits of what the checks read now: of each object the values of the bodies that
        are remembered, and whether it is being deleted, without its name; the numbers of objects;
        how the checks stand."""
        standing = [judged.holds for judged in self._judged]
        lists = self._lists.digest()
        return hash_of((lists, tuple(standing)))


# --- messages -------------------------------------------------------------------------------------


def _broken(judged: JudgedCheck, scope: Object, when: str) -> str:
    """Return the sentence about an ``always`` or ``never`` that is broken."""
    check = judged.check
    text = _shown_expression(check)
    is_never = check.kind == NEVER
    rule = "must never hold, but did" if is_never else "must always hold, but did not"
    reason = _reason(judged.node, scope, value=is_never)
    return f"{text} {rule} {when}{reason}"


def _shown_expression(check: Check) -> str:
    words = check.expression.split()
    return " ".join(words)


def _reason(node: Node, scope: Object, *, value: bool) -> str:
    """Return what makes an expression true or false, as far as one can say it in a few words."""
    part = _decisive_part(node, scope, value)
    if isinstance(part, Computed):
        macro = part.compute
        if isinstance(macro, RememberedMacro):
            return _reason_of_macro(macro, scope, value)
    if isinstance(part, CallExpr):
        return _reason_of_call(part, scope, value)
    return ""


def _reason_of_macro(macro: RememberedMacro, scope: Object, value: bool) -> str:
    """Return the first objects for which the body of a macro has a value; "" for none."""
    objects = macro.objects_with(value, scope)
    if not objects:
        return ""
    first = [_kind_and_name(obj) for obj in objects[:MOST_NAMES]]
    names = ", ".join(first)
    if len(objects) > MOST_NAMES:
        return f": {names}, …"
    return f": {names}"


def _reason_of_call(call: CallExpr, scope: Object, value: bool) -> str:
    """Return the two sides of a comparison; "" for other calls, and for sides that are long."""
    sign = COMPARISONS.get(call.function)
    if sign is None:
        return ""
    sides = [evaluate_freely(side, scope) for side in call.args]
    if any(isinstance(side, list | dict) for side in sides):
        return ""
    left, right = map(format_value, sides)
    said = "it was" if value else "it was not"
    return f": {said} {left} {sign} {right}"


def _decisive_part(node: Node, scope: Object, value: bool) -> Node:
    """Return the part of ``&&`` and ``||`` that alone makes an expression true or false."""
    decided = {"_&&_": False, "_||_": True}
    while isinstance(node, CallExpr):
        if decided.get(node.function) is not value:
            break
        parts = node.args
        node = next(part for part in parts if _is(part, scope, value))
    return node


def _is(node: Node, scope: Object, value: bool) -> bool:
    try:
        known = evaluate_freely(node, scope)
    except CelError:
        return False
    return known is value


def _kind_and_name(obj: Object) -> str:
    """Return an object by its kind: ``Pod default/web-1``."""
    kind = obj.get("kind", "object")
    namespace = namespace_of(obj)
    name = name_of(obj)
    if namespace:
        return f"{kind} {namespace}/{name}"
    return f"{kind} {name}"
