"""The CEL rules of CustomResourceDefinitions: they compile, and their cost stays within the limits.

Upstream: ``apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.cel.checker import Compiled
from kubepy.api.cel.estimate import MAX, Sizes, estimate_cost
from kubepy.api.cel.rules import RULES, RuleProblem, compile_rule
from kubepy.api.cel.sizes import MAX_REQUEST, Shape, shape_of
from kubepy.api.errors import FieldError, forbidden_field, invalid_value
from kubepy.api.meta import Object, nested_list
from kubepy.api.schema.structural import EMBEDDED

RULE_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and "
    "strings are declared)"
)
_MOST_REPORTED = 4


def validate_rules(schema: Object, path: str, *, limits_each: bool = True) -> list[FieldError]:
    """Validate the rules of a schema; ``limits_each`` limits the cost of each rule besides their
    total."""
    validation = _Validation(limits_each)
    errors = list(validation.walk(schema, _Place(path, is_root=True)))
    return errors + list(validation.check_total(path))


class _Place(NamedTuple):
    """The place of a schema.

    :param uncorrelatable: the path of an enclosing list whose items cannot be matched with old
        items, "" for none.
    :param times: the number of values that an object can have at this place; None: no limit.
    """

    path: str
    is_root: bool = False
    uncorrelatable: str = ""
    times: int | None = 1

    def below(self, step: str, limit: int | None = 1) -> _Place:
        """Return the place of a field or item; ``limit`` is the number of them in one value of this
        place."""
        if limit is None or self.times is None:
            times = None
        else:
            times = min(self.times * max(limit, 0), MAX)
        return _Place(f"{self.path}.{step}", False, self.uncorrelatable, times)


class _Validation:
    """The cost of the rules of a schema, and the costliest of them."""

    def __init__(self, limits_each: bool) -> None:
        self._limits_each = limits_each
        self._total = 0
        self._most: list[tuple[int, str]] = []

    def walk(self, schema: Object, place: _Place) -> Iterator[FieldError]:
        others = schema.get("additionalProperties")
        items = schema.get("items")
        if isinstance(others, dict):
            yield from self.walk(
                others, place.below("additionalProperties", schema.get("maxProperties"))
            )

        for name, field in sorted((schema.get("properties") or {}).items()):
            below = place.below(f"properties[{name}]", schema.get("maxProperties") if others else 1)
            yield from self.walk(field, below._replace(is_root=bool(field.get(EMBEDDED))))
        if isinstance(items, dict):
            within = place.uncorrelatable or (
                "" if schema.get("x-kubernetes-list-type") == "map" else place.path
            )
            below = place.below("items", schema.get("maxItems"))
            yield from self.walk(items, below._replace(uncorrelatable=within))

        for index, rule in enumerate(nested_list(schema, RULES)):
            yield from self._check(rule, schema, place, f"{place.path}.{RULES}[{index}]")

    def _check(
        self, source: Object, schema: Object, place: _Place, path: str
    ) -> Iterator[FieldError]:
        rule = compile_rule(source, schema, is_root=place.is_root)
        if isinstance(rule, RuleProblem):
            shown = {
                "Rule": source.get("rule", ""),
                "Message": source.get("message", ""),
                "MessageExpression": source.get("messageExpression", ""),
                "Reason": source.get("reason"),
                "FieldPath": source.get("fieldPath", ""),
                "OptionalOldSelf": source.get("optionalOldSelf"),
            }
            yield invalid_value(f"{path}.{rule.field}", shown, rule.message)
            return

        shape = shape_of(schema, is_root=place.is_root)
        times = place.times
        if times is None:  # as many as fit into a request, with a comma between them
            times = MAX_REQUEST // ((shape.least if shape else 0) + 1)
        cost = min(_most(rule.expression, shape) * times, MAX)
        yield from self._observe(cost, f"{path}.rule", "estimated rule cost")

        if rule.message is not None:
            yield from self._observe(
                _most(rule.message, shape),
                f"{path}.messageExpression",
                "estimated messageExpression cost",
            )

        if rule.is_transition and place.uncorrelatable:
            detail = (
                f"oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{place.uncorrelatable}"
            )
            yield invalid_value(f"{path}.rule", source["rule"], detail)
        elif not rule.is_transition and source.get("optionalOldSelf") is not None:
            yield invalid_value(
                f"{path}.optionalOldSelf",
                source["optionalOldSelf"],
                "may not be set if oldSelf is not used in rule",
            )

    def _observe(self, cost: int, path: str, name: str) -> Iterator[FieldError]:
        self._total = min(self._total + cost, MAX)
        if cost >= SCHEMA_LIMIT // 100:
            self._most.append((cost, path))
        if self._limits_each and cost > RULE_LIMIT:
            yield forbidden_field(path, _too_much(name, cost, RULE_LIMIT))

    def check_total(self, path: str) -> Iterator[FieldError]:
        if self._total <= SCHEMA_LIMIT:
            return
        for _, rule in sorted(self._most, key=lambda entry: -entry[0])[:_MOST_REPORTED]:
            detail = (
                "contributed to estimated rule cost total exceeding cost limit for entire "
                "OpenAPIv3 schema"
            )
            yield forbidden_field(rule, detail)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden_field(path, _too_much(name, self._total, SCHEMA_LIMIT))


def _most(expression: Compiled, shape: Shape | None) -> int:
    return estimate_cost(expression.checked, Sizes(shape)).most


def _too_much(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:.6f}x"
    else:
        shown = f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
