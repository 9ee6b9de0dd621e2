"""The CEL rules in the schemas of CustomResourceDefinitions: that they compile, and where ``oldSelf`` may be named.

What a rule may cost, which upstream estimates and limits, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.cluster.cel.rules import RULES, RuleProblem, compile_rule
from kubepy.cluster.errors import FieldError, invalid_value
from kubepy.cluster.meta import Object


def validate_rules(schema: Object, path: str) -> list[FieldError]:
    return list(_walk(schema, path, "", is_root=True))


def _walk(schema: Object, path: str, uncorrelatable: str, *, is_root: bool) -> Iterator[FieldError]:
    """``uncorrelatable``: the path of a list around, whose items have no old ones to be compared with; "" for none."""
    others, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(others, dict):
        yield from _walk(others, f"{path}.additionalProperties", uncorrelatable, is_root=False)
    for name, one in sorted((schema.get("properties") or {}).items()):
        embedded = bool(one.get("x-kubernetes-embedded-resource"))
        yield from _walk(one, f"{path}.properties[{name}]", uncorrelatable, is_root=embedded)
    if isinstance(items, dict):
        within = uncorrelatable or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        yield from _walk(items, f"{path}.items", within, is_root=False)
    for index, rule in enumerate(schema.get(RULES) or ()):
        yield from _check(rule, schema, f"{path}.{RULES}[{index}]", uncorrelatable, is_root)


def _check(source: Object, schema: Object, path: str, uncorrelatable: str, is_root: bool) -> Iterator[FieldError]:
    rule = compile_rule(source, schema, is_root=is_root)
    if isinstance(rule, RuleProblem):
        yield invalid_value(f"{path}.{rule.field}", _shown(source), rule.why)
    elif rule.is_transition and uncorrelatable:
        why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        yield invalid_value(f"{path}.rule", source["rule"], why)
    elif not rule.is_transition and source.get("optionalOldSelf") is not None:
        yield invalid_value(f"{path}.optionalOldSelf", source["optionalOldSelf"],
                            "may not be set if oldSelf is not used in rule")


def _shown(source: Object) -> Object:
    """A rule as Go's internal type shows it."""
    return {"Rule": source.get("rule", ""), "Message": source.get("message", ""),
            "MessageExpression": source.get("messageExpression", ""), "Reason": source.get("reason"),
            "FieldPath": source.get("fieldPath", ""), "OptionalOldSelf": source.get("optionalOldSelf")}
