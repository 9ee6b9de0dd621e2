"""The rules of a schema (``x-kubernetes-validations``) and what they refuse in an object.

Upstream: ``apiextensions-apiserver/pkg/apiserver/schema/cel``. A transition rule, which names ``oldSelf``, holds only
where there is an old value to compare with; other rules let pass at an update what has not changed. All rules of an
object share one cost budget; where it ends, so does the validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.api.cel.checker import Compiled, CompileError, compile_expression
from kubepy.api.cel.cost import OUT_OF_BUDGET, BudgetExceeded, CostBudget, CostLimitExceeded
from kubepy.api.cel.interpreter import evaluate_within
from kubepy.api.cel.schemas import type_of_schema, value_of
from kubepy.api.cel.types import BOOL, DYN, STRING, Type, optional_of
from kubepy.api.cel.values import MAX_MESSAGE, NONE, CelError, OptionalValue
from kubepy.api.errors import FieldError, duplicate, forbidden_field, invalid_value, invalid_without_value, required
from kubepy.api.meta import Object
from kubepy.api.schema.structural import EMBEDDED, Schema, find_field
from kubepy.api.values.goformat import quote

RULES = "x-kubernetes-validations"
ABSENT = object()  # an old value that is not there


class Rule(NamedTuple):
    """A rule that compiles; ``message`` is its messageExpression."""

    source: Object
    expression: Compiled
    message: Compiled | None

    @property
    def is_transition(self) -> bool:
        return "oldSelf" in self.expression.names

    @property
    def text(self) -> str:
        """What an error calls the rule."""
        return str(self.source.get("message") or self.source["rule"]).strip()


class RuleProblem(NamedTuple):
    """Why a rule does not compile: the field of the rule, and the words."""

    field: str
    why: str


class Place(NamedTuple):
    """A place in an object: its path, if anything around it has the same old value, and what may be spent."""

    path: str
    is_unchanged: bool
    budget: CostBudget
    is_root: bool = False


class _Stopped(Exception):
    """No further rules are run. ``errors``: why, if the request hears of it."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__()
        self.errors = errors


def compile_rule(source: Object, schema: Schema, *, is_root: bool = False) -> Rule | RuleProblem:
    own = type_of_schema(schema, is_root=is_root) or DYN
    old = optional_of(own) if source.get("optionalOldSelf") else own
    variables: dict[str, Type] = {"self": own, "oldSelf": old}
    try:
        expression = compile_expression(source["rule"], variables)
    except CompileError as error:
        return RuleProblem("rule", f"compilation failed: {error}")
    if expression.type not in (BOOL, DYN):
        return RuleProblem("rule", "cel expression must evaluate to a bool")
    message = None
    if source.get("messageExpression"):
        try:
            message = compile_expression(source["messageExpression"], variables)
        except CompileError as error:
            return RuleProblem("messageExpression", f"messageExpression compilation failed: {error}")
        if message.type not in (STRING, DYN):
            return RuleProblem("messageExpression", "messageExpression must evaluate to a string")
    return Rule(source, expression, message)


class RuleSet:
    """The rules of one schema, compiled as they are needed."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._compiled: dict[tuple[int, int, bool], Rule | RuleProblem] = {}

    def validate(self, obj: Object, old: Any = ABSENT) -> list[FieldError]:
        """What the rules of the schema, and of everything in it, refuse in an object. ``old``: what it replaces."""
        errors: list[FieldError] = []
        place = Place("", is_unchanged=False, budget=CostBudget(), is_root=True)
        try:
            for error in self._walk(self._schema, self._schema, obj, old, place):
                errors.append(error)
        except _Stopped as stop:
            errors.extend(stop.errors)
        return errors

    def _rule(self, source: Object, schema: Schema, is_root: bool) -> Rule | RuleProblem:
        key = id(source), id(schema), is_root
        if key not in self._compiled:
            self._compiled[key] = compile_rule(source, schema, is_root=is_root)
        return self._compiled[key]

    def _walk(self, schema: Schema, rules_of: Schema, value: Any, old: Any, place: Place) -> Iterator[FieldError]:
        """``rules_of`` is the schema itself, or a part of its ``allOf``."""
        if value is None:
            return
        unchanged = place.is_unchanged or (old is not ABSENT and old == value)
        here = place._replace(is_unchanged=unchanged)
        if rules_of.get(RULES):
            yield from self._check(schema, rules_of[RULES], value, old, here)
        for part in rules_of.get("allOf") or ():
            yield from self._walk(schema, part, value, old, here)
        if isinstance(value, list):
            yield from self._walk_list(schema, rules_of, value, old, here)
        elif isinstance(value, dict):
            yield from self._walk_map(schema, rules_of, value, old, here)

    def _walk_list(self, schema: Schema, rules_of: Schema, value: list[Any], old: Any,
                   place: Place) -> Iterator[FieldError]:
        items, own = schema.get("items"), rules_of.get("items")
        if not isinstance(items, Mapping) or not isinstance(own, Mapping):
            return
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        is_map = schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list)
        known = {_key(item, keys): item for item in old if isinstance(item, dict)} if is_map else {}
        for index, item in enumerate(value):
            before = known.get(_key(item, keys), ABSENT) if isinstance(item, dict) else ABSENT
            at = place._replace(path=f"{place.path}[{index}]", is_root=bool(items.get(EMBEDDED)))
            yield from self._walk(items, own, item, before, at)

    def _walk_map(self, schema: Schema, rules_of: Schema, value: Object, old: Any,
                  place: Place) -> Iterator[FieldError]:
        before = old if isinstance(old, dict) else {}
        others, own_others = schema.get("additionalProperties"), rules_of.get("additionalProperties")
        fields, own_fields = schema.get("properties") or {}, rules_of.get("properties") or {}
        for key in sorted(value):
            if key in fields and key in own_fields:
                path = f"{place.path}.{key}" if place.path else key
                inner, own = fields[key], own_fields[key]
            elif isinstance(others, Mapping) and isinstance(own_others, Mapping):
                path, inner, own = f"{place.path}[{key}]", others, own_others
            else:
                continue
            at = place._replace(path=path, is_root=bool(inner.get(EMBEDDED)))
            yield from self._walk(inner, own, value[key], before.get(key, ABSENT), at)

    def _check(self, schema: Schema, sources: list[Object], value: Any, old: Any, place: Place) -> Iterator[FieldError]:
        path, kind = place.path or "<nil>", schema.get("type", "")
        if place.budget.remaining <= 0:
            raise _Stopped(invalid_value(path, kind, OUT_OF_BUDGET))
        for source in sources:
            rule = self._rule(source, schema, place.is_root)
            if isinstance(rule, RuleProblem):
                yield invalid_value(path, kind, f"rule compile error: {rule.why}")
                continue
            is_optional = bool(source.get("optionalOldSelf"))
            if rule.is_transition and (old is ABSENT or old is None) and not is_optional:
                continue
            try:
                scope = _scope(schema, value, old, is_optional=is_optional, is_root=place.is_root)
                if evaluate_within(rule.expression.node, scope, place.budget) is True:
                    continue
            except BudgetExceeded:
                raise _Stopped(invalid_value(path, kind, OUT_OF_BUDGET)) from None
            except CostLimitExceeded as error:
                why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: "
                raise _Stopped(invalid_value(path, kind, why + rule.text)) from None
            except CelError as error:
                yield invalid_value(path, kind, _failure(error, rule))
                continue
            except RecursionError:
                yield invalid_value(path, kind, _failure(CelError("expression recursion limit exceeded"), rule))
                continue
            yield from _refused(rule, value, scope, place._replace(path=_at(place.path, source, schema)), kind)


def _refused(rule: Rule, value: Any, scope: dict[str, Any], place: Place, kind: str) -> Iterator[FieldError]:
    """The errors of a value for which the rule does not hold: nothing of one that has not changed."""
    is_told = rule.is_transition or not place.is_unchanged
    try:
        detail = _detail(rule, scope, place.budget)
    except BudgetExceeded:
        why = ("messageExpression evaluation failed due to running out of cost budget, no further validation rules "
               "will be run")
        raise _Stopped(*[invalid_value(place.path, kind, why)] if is_told else ()) from None
    except CostLimitExceeded:
        why = ("no further validation rules will be run due to call cost exceeds limit for messageExpression: "
               f"{quote(rule.source['messageExpression'])}")
        raise _Stopped(*[invalid_value(place.path, kind, why)] if is_told else ()) from None
    if is_told:
        yield _refusal(rule, value, kind, place.path, detail)


def _key(item: Object, keys: Any) -> tuple[str, ...]:
    return tuple(str(item.get(key)) for key in keys)


def _scope(schema: Schema, value: Any, old: Any, *, is_optional: bool, is_root: bool) -> dict[str, Any]:
    is_there = old is not ABSENT and old is not None
    before = value_of(old, schema, is_root=is_root) if is_there else None
    if is_optional:
        before = OptionalValue(before, has_value=True) if is_there else NONE
    return {"self": value_of(value, schema, is_root=is_root), "oldSelf": before}


def _failure(error: CelError, rule: Rule) -> str:
    if str(error).startswith("no such overload"):
        return (f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: "
                f"{rule.text}")
    return f"{error} evaluating rule: {rule.text}"


def _at(path: str, source: Object, schema: Schema) -> str:
    """The path that an error names: that of the value, or what the rule's fieldPath makes of it."""
    field = find_field(schema, source.get("fieldPath") or "").text
    return f"{path}{field}".lstrip(".") or "<nil>"


def _detail(rule: Rule, scope: dict[str, Any], budget: CostBudget) -> str:
    if rule.message is not None and (found := _message(rule.message, scope, budget)):
        return found
    return rule.text if rule.source.get("message") else f"failed rule: {rule.text}"


def _message(expression: Compiled, scope: dict[str, Any], budget: CostBudget) -> str:
    """The message of a messageExpression; "" if it fails, or says nothing that fits into one line."""
    try:
        found = evaluate_within(expression.node, scope, budget)
    except CostLimitExceeded:
        raise
    except CelError:
        return ""
    text = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in text or len(text.encode()) > MAX_MESSAGE else text


def _refusal(rule: Rule, value: Any, kind: str, path: str, detail: str) -> FieldError:
    match rule.source.get("reason"):
        case "FieldValueForbidden":
            return forbidden_field(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid_without_value(path, detail) if kind in ("object", "array") else invalid_value(path, value, detail)
