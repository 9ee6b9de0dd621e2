"""The rules of a schema (``x-kubernetes-validations``), and the errors of objects for which they do
not hold.

A transition rule, which names ``oldSelf``, is run only if there is an old value; at an update other
rules report nothing about values that have not changed. All rules of an object share one cost
budget; when it is spent, the validation ends. Upstream:
``apiextensions-apiserver/pkg/apiserver/schema/cel``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.api.cel.checker import Compiled, CompileError, compile_expression
from kubepy.api.cel.cost import OUT_OF_BUDGET, BudgetExceeded, CostBudget, CostLimitExceeded
from kubepy.api.cel.interpreter import evaluate_within
from kubepy.api.cel.schemas import ConvertedValues, type_of_schema
from kubepy.api.cel.types import BOOL, DYN, STRING, Type, optional_of
from kubepy.api.cel.values import MAX_MESSAGE, NONE, CelError, OptionalValue
from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_without_value,
    required,
)
from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.schema.structural import EMBEDDED, Schema, find_field
from kubepy.api.values.goformat import quote

RULES = "x-kubernetes-validations"
ABSENT = object()  # stands for a missing old value


class ValidationRule(NamedTuple):
    """A compiled rule; ``message`` is its messageExpression."""

    source: Object
    expression: Compiled
    message: Compiled | None

    @property
    def is_transition(self) -> bool:
        return "oldSelf" in self.expression.names

    @property
    def reads_old(self) -> bool:
        """Whether the old value is looked at, be it for the message alone."""
        return self.is_transition or (self.message is not None and "oldSelf" in self.message.names)

    @property
    def text(self) -> str:
        """Return the text that stands for the rule in errors."""
        return str(self.source.get("message") or self.source["rule"]).strip()


class RuleProblem(NamedTuple):
    """The error of a rule that does not compile, and the field of the rule that it is about."""

    field: str
    message: str


class Place(NamedTuple):
    """A place in an object: its path, whether something around it is unchanged, and what the whole
    validation shares: the cost budget, and the values as expressions see them."""

    path: str
    is_unchanged: bool
    budget: CostBudget
    values: ConvertedValues
    is_root: bool = False


class _Stopped(Exception):
    """The end of the validation: no further rules are run. ``errors``: the reason, if it is to be
    reported."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__()
        self.errors = errors


def compile_rule(
    source: Object, schema: Schema, *, is_root: bool = False
) -> ValidationRule | RuleProblem:
    """Compile a rule of a schema and its messageExpression."""
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
            return RuleProblem(
                "messageExpression", f"messageExpression compilation failed: {error}"
            )
        if message.type not in (STRING, DYN):
            return RuleProblem("messageExpression", "messageExpression must evaluate to a string")

    return ValidationRule(source, expression, message)


class RuleSet:
    """The rules of one schema, each compiled when it is first needed."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._compiled: dict[tuple[int, int, bool], ValidationRule | RuleProblem] = {}
        self._with_rules: dict[int, bool] = {}  # the parts of the schema, by identity

    def validate(self, obj: Object, old: Any = ABSENT) -> list[FieldError]:
        """Return the errors of the rules of the schema and of all its parts. ``old``: the object
        that is replaced."""
        errors: list[FieldError] = []
        place = Place("", False, CostBudget(), ConvertedValues(), is_root=True)
        try:
            for error in self._walk(self._schema, self._schema, obj, old, place):
                errors.append(error)
        except _Stopped as stop:
            errors.extend(stop.errors)
        return errors

    def _walk(
        self, schema: Schema, rules_of: Schema, value: Any, old: Any, place: Place
    ) -> Iterator[FieldError]:
        """Yield the errors of a value. ``rules_of``: the schema itself, or a part of its
        ``allOf``."""
        if value is None or not self._has_rules(rules_of):
            return
        unchanged = place.is_unchanged or (old is not ABSENT and old == value)
        here = place._replace(is_unchanged=unchanged)
        if rules_of.get(RULES):
            yield from self._check(schema, rules_of[RULES], value, old, here)
        for part in nested_list(rules_of, "allOf"):
            yield from self._walk(schema, part, value, old, here)
        if isinstance(value, list):
            yield from self._walk_list(schema, rules_of, value, old, here)
        elif isinstance(value, dict):
            yield from self._walk_map(schema, rules_of, value, old, here)

    def _has_rules(self, schema: Schema) -> bool:
        """Tell whether a part of the schema or anything in it has rules."""
        known = self._with_rules.get(id(schema))
        if known is None:
            parts = [
                *nested_map(schema, "properties").values(),
                *nested_list(schema, "allOf"),
                schema.get("items"),
                schema.get("additionalProperties"),
            ]
            known = bool(schema.get(RULES)) or any(
                isinstance(part, Mapping) and self._has_rules(part) for part in parts
            )
            self._with_rules[id(schema)] = known
        return known

    def _walk_list(
        self, schema: Schema, rules_of: Schema, value: list[Any], old: Any, place: Place
    ) -> Iterator[FieldError]:
        items = schema.get("items")
        own = rules_of.get("items")
        if not isinstance(items, Mapping) or not isinstance(own, Mapping):
            return
        keys = nested_list(schema, "x-kubernetes-list-map-keys")
        is_map = schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list)
        olds = {_key(item, keys): item for item in old if isinstance(item, dict)} if is_map else {}
        for index, item in enumerate(value):
            before = olds.get(_key(item, keys), ABSENT) if isinstance(item, dict) else ABSENT
            at = place._replace(path=f"{place.path}[{index}]", is_root=bool(items.get(EMBEDDED)))
            yield from self._walk(items, own, item, before, at)

    def _walk_map(
        self, schema: Schema, rules_of: Schema, value: Object, old: Any, place: Place
    ) -> Iterator[FieldError]:
        before = old if isinstance(old, dict) else {}
        others = schema.get("additionalProperties")
        own_others = rules_of.get("additionalProperties")
        fields = nested_map(schema, "properties")
        own_fields = nested_map(rules_of, "properties")
        for key in sorted(value):
            if key in fields and key in own_fields:
                path = f"{place.path}.{key}" if place.path else key
                inner = fields[key]
                own = own_fields[key]
            elif isinstance(others, Mapping) and isinstance(own_others, Mapping):
                path = f"{place.path}[{key}]"
                inner = others
                own = own_others
            else:
                continue
            at = place._replace(path=path, is_root=bool(inner.get(EMBEDDED)))
            yield from self._walk(inner, own, value[key], before.get(key, ABSENT), at)

    def _check(
        self, schema: Schema, sources: list[Object], value: Any, old: Any, place: Place
    ) -> Iterator[FieldError]:
        """Yield the errors of a value for which rules fail or do not hold."""
        path = place.path or "<nil>"
        kind = schema.get("type", "")
        if place.budget.remaining <= 0:
            raise _Stopped(invalid_value(path, kind, OUT_OF_BUDGET))
        has_old = old is not ABSENT and old is not None
        for source in sources:
            key = id(source), id(schema), place.is_root
            if key not in self._compiled:
                self._compiled[key] = compile_rule(source, schema, is_root=place.is_root)
            rule = self._compiled[key]
            if isinstance(rule, RuleProblem):
                yield invalid_value(path, kind, f"rule compile error: {rule.message}")
                continue
            if rule.is_transition and not has_old and not source.get("optionalOldSelf"):
                continue
            try:
                scope = _scope(rule, schema, value, old if has_old else None, place)
                if evaluate_within(rule.expression.node, scope, place.budget) is True:
                    continue
            except BudgetExceeded:
                raise _Stopped(invalid_value(path, kind, OUT_OF_BUDGET)) from None
            except CostLimitExceeded as error:
                reason = (
                    f"'{error}': no further validation rules will be run due to call cost "
                    f"exceeds limit for rule: "
                )
                raise _Stopped(invalid_value(path, kind, reason + rule.text)) from None
            except CelError as error:
                yield invalid_value(path, kind, _failure(error, rule))
                continue
            except RecursionError:
                yield invalid_value(
                    path, kind, _failure(CelError("expression recursion limit exceeded"), rule)
                )
                continue
            field = find_field(schema, source.get("fieldPath") or "").text
            at = place._replace(path=f"{place.path}{field}".lstrip(".") or "<nil>")
            yield from _refuse(rule, value, scope, at, kind)


def _scope(
    rule: ValidationRule, schema: Schema, value: Any, old: Any, place: Place
) -> dict[str, Any]:
    """Return the variables of a rule. Raises CelError.

    :param old: None where there is none.
    """
    has_old = old is not None
    before = None
    if has_old and rule.reads_old:
        before = place.values.value_of(old, schema, is_root=place.is_root)
    if rule.source.get("optionalOldSelf"):
        before = OptionalValue(before, has_value=True) if has_old else NONE
    return {
        "self": place.values.value_of(value, schema, is_root=place.is_root),
        "oldSelf": before,
    }


def _refuse(
    rule: ValidationRule, value: Any, scope: dict[str, Any], place: Place, kind: str
) -> Iterator[FieldError]:
    """Yield the error of a value for which a rule does not hold; none of an unchanged one. Raises
    _Stopped."""
    is_reported = rule.is_transition or not place.is_unchanged
    detail = rule.text if rule.source.get("message") else f"failed rule: {rule.text}"
    try:
        if rule.message is not None:
            detail = _message(rule.message, scope, place.budget) or detail
    except BudgetExceeded:
        reason = (
            "messageExpression evaluation failed due to running out of cost budget, no further "
            "validation rules "
            "will be run"
        )
        raise _Stopped(*[invalid_value(place.path, kind, reason)] if is_reported else ()) from None
    except CostLimitExceeded:
        reason = (
            "no further validation rules will be run due to call cost exceeds limit for "
            "messageExpression: "
            f"{quote(rule.source['messageExpression'])}"
        )
        raise _Stopped(*[invalid_value(place.path, kind, reason)] if is_reported else ()) from None

    if not is_reported:
        return
    match rule.source.get("reason"):
        case "FieldValueForbidden":
            yield forbidden_field(place.path, detail)
        case "FieldValueRequired":
            yield required(place.path, detail)
        case "FieldValueDuplicate":
            yield duplicate(place.path, value)
        case _ if kind in ("object", "array"):
            yield invalid_without_value(place.path, detail)
        case _:
            yield invalid_value(place.path, value, detail)


def _key(item: Object, keys: Any) -> tuple[str, ...]:
    return tuple(str(item.get(key)) for key in keys)


def _failure(error: CelError, rule: ValidationRule) -> str:
    if str(error).startswith("no such overload"):
        return (
            f"'{error}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: "
            f"{rule.text}"
        )
    return f"{error} evaluating rule: {rule.text}"


def _message(expression: Compiled, scope: dict[str, Any], budget: CostBudget) -> str:
    """Evaluate a messageExpression; "" if it fails, or if its value is empty, too long or of
    several lines."""
    try:
        value = evaluate_within(expression.node, scope, budget)
    except CostLimitExceeded:
        raise
    except CelError:
        return ""
    text = value.strip() if isinstance(value, str) else ""
    if "\n" in text or len(text.encode()) > MAX_MESSAGE:
        return ""
    return text
